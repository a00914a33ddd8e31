#pragma once
// What is known about symbols while a region is specialised: names, ranges, equalities, divisibility, and the values of
// the call that caused the specialisation (hints). Facts come from declarations (always true), from guards (true for
// the entry) or from shape rules.
//
// Laws
//  E1  kTrue/kFalse answers are proofs for every value the facts allow; when unsure the answer is kUnknown.
//  E2  Hints never prove anything. They only choose which guard to propose.
//  E3  Assuming a fact that contradicts the known ones returns false and leaves the environment unchanged.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "types/dim.h"

namespace flexor::types {

inline constexpr std::int64_t kDimInfinity = std::int64_t{1} << 62;  // upper end of an unbounded range

struct Range {
    std::int64_t lo = 0;
    std::int64_t hi = kDimInfinity;
};

enum class Truth : std::uint8_t { kFalse, kTrue, kUnknown };

class ShapeEnv {
public:
    SymbolId add_symbol(std::string name, Range range, std::optional<std::int64_t> hint = std::nullopt);
    std::size_t symbol_count() const { return symbols_.size(); }
    const std::string& name(SymbolId id) const { return symbols_[id].name; }
    std::optional<std::int64_t> hint(SymbolId id) const { return symbols_[id].hint; }
    std::optional<std::int64_t> hint(
        const Dim& d) const;  // evaluated with all hints; none if one is missing or on overflow

    bool assume_eq(const Dim& a, const Dim& b);
    bool assume_range(const Dim& d, Range range);
    bool assume_divisible(const Dim& d, std::int64_t divisor);
    bool assume_ne(const Dim& d, std::int64_t value);

    Dim simplify(
        const Dim& d) const;  // rewrites by equalities, folds what ranges decide (min, max, broadcast, mod, //)
    Range range(const Dim& d) const;
    Truth eq(const Dim& a, const Dim& b) const;
    Truth le(const Dim& a, const Dim& b) const;
    Truth lt(const Dim& a, const Dim& b) const { return negate(le(b, a)); }
    Truth divisible(const Dim& d, std::int64_t divisor) const;

    std::string to_string(const Dim& d) const;
    std::string facts_to_string() const;  // "B in 1..64, S2 == S, S % 4 == 0"

    static Truth negate(Truth t) {
        return t == Truth::kUnknown ? t : (t == Truth::kTrue ? Truth::kFalse : Truth::kTrue);
    }

private:
    struct Symbol {
        std::string name;
        Range range;  // declared
        std::optional<std::int64_t> hint;
        Range known;                  // declared range, narrowed by facts
        std::optional<Dim> equal_to;  // solved equality: this symbol is that expression of unsolved symbols
    };

    template <class Change>
    bool transact(Change change);  // applies the change and settles, or restores everything
    bool settle();
    bool settle_round(bool& changed);
    bool add_equality(const Dim& a, const Dim& b, bool& solved);
    bool narrow(SymbolId id, Range range, bool& changed);
    bool propagate(const Dim& d, Range range, bool& changed);

    Dim resolve(const Dim& d) const;  // replaces solved symbols
    Dim rewrite(Dim d) const;         // applies rules_
    Dim fold(const Dim& d) const;
    Dim fold_node(const Dim& d) const;
    Dim fold_sum(const Dim& d) const;
    Range interval(const Dim& d, const std::vector<Range>& temporaries = {}) const;
    std::int64_t shifted_lower_bound(const Dim& d) const;
    std::int64_t lower_bound(const Dim& d, int depth) const;
    Range bounds(const Dim& d) const;
    bool is_known_nonzero(const Dim& d) const;
    std::int64_t known_divisor(const Dim& d) const;
    std::optional<std::int64_t> residue(const Dim& d, std::int64_t divisor, int depth = 2) const;

    std::vector<Symbol> symbols_;
    std::vector<std::pair<Dim, Dim>> equalities_;  // those that no symbol could be solved for
    std::vector<std::pair<Dim, Dim>> rules_;       // monomial -> smaller expression, from equalities_
    std::vector<std::pair<Dim, Range>> ranges_;
    std::vector<std::pair<Dim, std::int64_t>> divisors_;
    std::vector<std::pair<Dim, std::int64_t>> not_equal_;
};

}  // namespace flexor::types
