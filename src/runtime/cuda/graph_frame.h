#pragma once
// What the launches of a graph know of their numbers and addresses: fixed ones, and words of a frame that each call fills
// before the graph runs. A word is a slot of the call, the address of a buffer, or a product of other numbers.
//
// Laws
//  F1  What a launch has taken for granted about words (bounds, equalities) is checked by every fill: a call for which it does
//      not hold is not the graph's.
#include <cstdint>
#include <vector>

namespace flexor::runtime::cuda {

// A number of a launch as all calls of a graph see it.
struct GraphNumber {
    static constexpr std::uint32_t kFixed = ~std::uint32_t{0};
    std::uint32_t word = kFixed;  // of the frame
    std::int64_t now = 0;         // in the call that the graph is made for; if fixed, the value
    std::int64_t most = 0;        // no call has a larger magnitude, once bound() is called; if fixed, the value
    std::int64_t divisor = 1;     // of the value in every call
    bool fixed() const { return word == kFixed; }

    static GraphNumber of(std::int64_t value) {
        return {kFixed, value, value, value == 0 ? std::int64_t{1} << 30 : value};
    }
};

class GraphFrame {
public:
    // ---- what words hold; equal ones are one

    std::uint32_t slot(std::uint32_t slot) { return add({Source::kSlot, slot, 0, 0}); }
    std::uint32_t address(std::uint32_t buffer) { return add({Source::kAddress, buffer, 0, 0}); }
    GraphNumber product(const GraphNumber& a, const GraphNumber& b);

    // ---- what holds for every call

    void bound(const GraphNumber& number, std::int64_t least);  // least <= value <= number.most
    void divide(const GraphNumber& number);                     // value % number.divisor == 0
    // False: they differ already.
    bool equal(const GraphNumber& a, const GraphNumber& b);

    std::size_t words() const { return words_.size(); }
    // Fills `to`, of words() elements; false: the call is not the graph's.
    bool fill(const std::int64_t* frame, void* const* buffers, std::int64_t* to) const;

private:
    enum class Source : std::uint8_t { kSlot, kAddress, kProduct, kMultiple };
    struct Word {
        Source source;
        std::uint32_t a, b;       // slot, buffer, or words
        std::int64_t multiplier;  // kMultiple
        friend bool operator==(const Word&, const Word&) = default;
    };
    struct Bound {
        std::uint32_t word;
        std::int64_t least, most;
        friend bool operator==(const Bound&, const Bound&) = default;
    };
    struct Divided {
        std::uint32_t word;
        std::int64_t divisor;
        friend bool operator==(const Divided&, const Divided&) = default;
    };
    struct Equal {
        std::uint32_t a, b;  // b may be kFixed
        std::int64_t value;  // then
        friend bool operator==(const Equal&, const Equal&) = default;
    };
    std::uint32_t add(const Word& word);

    std::vector<Word> words_;
    std::vector<Bound> bounds_;
    std::vector<Divided> divided_;
    std::vector<Equal> equal_;
};

}  // namespace flexor::runtime::cuda
