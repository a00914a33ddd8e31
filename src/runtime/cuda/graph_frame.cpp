#include "runtime/cuda/graph_frame.h"

#include <algorithm>
#include <limits>

namespace flexor::runtime::cuda {

namespace {

constexpr std::int64_t kMostDivisor = std::int64_t{1} << 30;

std::int64_t saturated(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

template <class T>
void add_once(std::vector<T>& items, const T& item) {
    if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
}

}  // namespace

std::uint32_t GraphFrame::add(const Word& word) {
    const auto known = std::find(words_.begin(), words_.end(), word);
    if (known != words_.end()) return static_cast<std::uint32_t>(known - words_.begin());
    words_.push_back(word);
    return static_cast<std::uint32_t>(words_.size() - 1);
}

GraphNumber GraphFrame::product(const GraphNumber& a, const GraphNumber& b) {
    if (a.fixed() && !b.fixed()) return product(b, a);
    GraphNumber out;
    out.now = saturated(a.now, b.now);
    out.most = saturated(a.most, b.most);
    out.divisor = std::min(saturated(a.divisor, b.divisor), kMostDivisor);
    if (out.divisor == kMostDivisor) out.divisor = std::max(a.divisor, b.divisor);
    if (a.fixed()) return GraphNumber::of(out.now);
    if (b.fixed() && b.now == 1) return a;
    if (b.fixed())
        out.word = add({Source::kMultiple, a.word, 0, b.now});
    else
        out.word = add({Source::kProduct, std::min(a.word, b.word), std::max(a.word, b.word), 0});
    return out;
}

void GraphFrame::bound(const GraphNumber& number, std::int64_t least) {
    if (!number.fixed()) add_once(bounds_, {number.word, least, number.most});
}

void GraphFrame::divide(const GraphNumber& number) {
    if (!number.fixed() && number.divisor != 1) add_once(divided_, {number.word, number.divisor});
}

bool GraphFrame::equal(const GraphNumber& a, const GraphNumber& b) {
    if (a.now != b.now) return false;
    if (a.fixed() && b.fixed()) return true;
    if (a.fixed()) return equal(b, a);
    if (a.word != b.word) add_once(equal_, {a.word, b.word, b.fixed() ? b.now : 0});
    return true;
}

bool GraphFrame::fill(const std::int64_t* frame, void* const* buffers, std::int64_t* to) const {
    std::int64_t* next = to;
    for (const Word& word : words_) {
        switch (word.source) {
            case Source::kSlot: *next = frame[word.a]; break;
            case Source::kAddress: *next = reinterpret_cast<std::int64_t>(buffers[word.a]); break;
            case Source::kProduct:
                if (__builtin_mul_overflow(to[word.a], to[word.b], next)) return false;
                break;
            case Source::kMultiple:
                if (__builtin_mul_overflow(to[word.a], word.multiplier, next)) return false;
                break;
        }
        ++next;
    }
    bool holds = true;
    for (const Bound& bound : bounds_) holds = holds && to[bound.word] >= bound.least && to[bound.word] <= bound.most;
    for (const Divided& divided : divided_) holds = holds && to[divided.word] % divided.divisor == 0;
    for (const Equal& equal : equal_)
        holds = holds && to[equal.a] == (equal.b == GraphNumber::kFixed ? equal.value : to[equal.b]);
    return holds;
}

}  // namespace flexor::runtime::cuda
