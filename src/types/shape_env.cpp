#include "types/shape_env.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "support/check.h"
#include "support/text.h"
#include "types/interval.h"

namespace flexor::types {
namespace {

constexpr int kMaxRounds = 8;   // of settling and of rewriting; more rounds only prove more
constexpr int kProofDepth = 2;  // facts combined in one proof of an order
constexpr std::size_t kMaxFactsTried = 64;
constexpr std::int64_t kMaxDivisor = std::int64_t{1} << 40;  // larger divisors are not remembered

struct Summand {
    std::vector<Dim> atoms;
    std::int64_t coefficient;
    Dim monomial() const { return product(atoms); }
};

// d = sum of the terms + constant.
struct Sum {
    std::vector<Summand> terms;
    std::int64_t constant = 0;
};

// The least integer, whose magnitude does not fit, and a second constant (of a sum that would overflow) stand as
// factors of their own, so that every coefficient and constant can be negated and divided.
void append_term(Sum& sum, const Dim& d) {
    const auto fits = [](std::int64_t v) { return v != std::numeric_limits<std::int64_t>::min(); };
    if (d.is_constant()) {
        if (sum.constant == 0 && fits(d.constant())) {
            sum.constant = d.constant();
        } else {
            sum.terms.push_back({{d}, 1});
        }
    } else if (d.op() == DimOp::kMul) {
        const auto factors = d.operands();
        const bool scaled = factors[0].is_constant() && fits(factors[0].constant());
        sum.terms.push_back(
            {std::vector<Dim>(factors.begin() + (scaled ? 1 : 0), factors.end()), scaled ? factors[0].constant() : 1});
    } else {
        sum.terms.push_back({{d}, 1});
    }
}

Sum sum_of(const Dim& d) {
    Sum sum;
    if (d.op() == DimOp::kAdd) {
        for (const Dim& operand : d.operands()) append_term(sum, operand);
    } else {
        append_term(sum, d);
    }
    return sum;
}

std::size_t term_count(const Dim& d) { return d.is_constant() ? 0 : d.op() == DimOp::kAdd ? d.operands().size() : 1; }

// Greatest common divisor of the coefficients, without the constant.
std::int64_t content(const Sum& sum) {
    std::int64_t gcd = 0;
    for (const Summand& t : sum.terms) gcd = std::gcd(gcd, t.coefficient);
    return gcd;
}

// d divided by its content and made positive in its first term: equal for all nonzero multiples of one expression.
Dim primitive(const Dim& d) {
    const Sum sum = sum_of(d);
    std::int64_t gcd = std::gcd(content(sum), sum.constant);
    if (gcd == 0) return d;
    if (!sum.terms.empty() && sum.terms[0].coefficient < 0) gcd = -gcd;
    Dim out = sum.constant / gcd;
    for (const Summand& t : sum.terms) out = out + t.monomial() * Dim(t.coefficient / gcd);
    return out;
}

bool mentions(const Dim& d, SymbolId id) {
    if (d.is_symbol()) return d.symbol_id() == id;
    const auto operands = d.operands();
    return std::any_of(operands.begin(), operands.end(), [&](const Dim& o) { return mentions(o, id); });
}

// a - b where that is a constant, without building the difference.
std::optional<std::int64_t> constant_difference(const Dim& a, const Dim& b) {
    const auto parts = [](const Dim& d, std::span<const Dim>& terms) -> std::int64_t {
        terms = d.op() == DimOp::kAdd ? d.operands() : std::span(&d, 1);
        if (!terms.back().is_constant()) return 0;
        const std::int64_t constant = terms.back().constant();
        terms = terms.first(terms.size() - 1);
        return constant;
    };
    std::span<const Dim> x;
    std::span<const Dim> y;
    std::int64_t difference;
    if (__builtin_sub_overflow(parts(a, x), parts(b, y), &difference)) return std::nullopt;
    return std::equal(x.begin(), x.end(), y.begin(), y.end()) ? std::optional(difference) : std::nullopt;
}

std::int64_t positive_remainder(std::int64_t a, std::int64_t m) {
    const std::int64_t r = a % m;
    return r < 0 ? r + m : r;
}

std::int64_t multiply_modulo(std::int64_t a, std::int64_t b, std::int64_t m) {
    __extension__ using Wide = __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(positive_remainder(a, m)) * positive_remainder(b, m) % m);
}

// Capped products and least common multiples: a smaller known divisor is still a divisor.
std::int64_t capped_product(std::int64_t a, std::int64_t b) {
    std::int64_t out;
    return __builtin_mul_overflow(a, b, &out) ? std::max(a, b) : out;
}

}  // namespace

SymbolId ShapeEnv::add_symbol(std::string name, Range range, std::optional<std::int64_t> hint) {
    const Range known{std::max(range.lo, -kDimInfinity), std::min(range.hi, kDimInfinity)};
    symbols_.push_back({std::move(name), range, hint, known, std::nullopt});
    const auto id = static_cast<SymbolId>(symbols_.size() - 1);
    if (is_point(known)) symbols_.back().equal_to = Dim(known.lo);
    return id;
}

std::optional<std::int64_t> ShapeEnv::hint(const Dim& d) const {
    std::vector<SymbolId> used;
    d.collect_symbols(used);
    std::vector<std::int64_t> values(symbols_.size());
    for (const SymbolId id : used) {
        const Symbol& symbol = symbols_[id];
        std::optional<std::int64_t> value = symbol.hint;
        if (!value && symbol.equal_to) value = hint(*symbol.equal_to);
        if (!value) return std::nullopt;
        values[id] = *value;
    }
    const Evaluated result = d.evaluate(values);
    return result.status == EvalStatus::kOk ? std::optional(result.value) : std::nullopt;
}

// ---------------------------------------------------------------- intervals and bounds

Range ShapeEnv::interval(const Dim& d, const std::vector<Range>& temporaries) const {
    if (d.is_constant()) return point(d.constant());
    const auto operands = d.operands();
    const auto of = [&](std::size_t i) { return interval(operands[i], temporaries); };
    Range out = kEverything;
    switch (d.op()) {
        case DimOp::kConstant: break;
        case DimOp::kSymbol: {
            const SymbolId id = d.symbol_id();
            return id < symbols_.size() ? symbols_[id].known : temporaries[id - symbols_.size()];
        }
        case DimOp::kAdd:
            out = of(0);
            for (std::size_t i = 1; i < operands.size(); ++i) out = add(out, of(i));
            break;
        case DimOp::kMul:
            out = of(0);
            for (std::size_t i = 1; i < operands.size(); ++i) out = multiply(out, of(i));
            break;
        case DimOp::kFloorDiv: out = floor_divide(of(0), of(1)); break;
        case DimOp::kTruncDiv: out = trunc_divide(of(0), of(1)); break;
        case DimOp::kMod: out = modulo(of(0), of(1)); break;
        case DimOp::kMin: out = minimum(of(0), of(1)); break;
        case DimOp::kMax: out = maximum(of(0), of(1)); break;
        case DimOp::kBroadcast: out = broadcast(of(0), of(1)); break;
    }
    for (const auto& [fact, range] : ranges_) {
        if (fact == d) out = intersect(out, range);
    }
    return out;
}

// Interval arithmetic does not see that x*y - x grows with x when y >= 1. With every atom written as its lower bound
// plus a rest >= 0 it does.
std::int64_t ShapeEnv::shifted_lower_bound(const Dim& d) const {
    if (d.op() != DimOp::kAdd) return -kDimInfinity;
    const Sum sum = sum_of(d);
    const bool helps =
        std::any_of(sum.terms.begin(), sum.terms.end(), [](const Summand& t) { return t.atoms.size() > 1; }) &&
        std::any_of(sum.terms.begin(), sum.terms.end(), [](const Summand& t) { return t.coefficient < 0; });
    if (!helps) return -kDimInfinity;
    std::vector<Dim> atoms;
    std::vector<Range> rests;
    Dim shifted = sum.constant;
    for (const Summand& term : sum.terms) {
        Dim out = term.coefficient;
        for (const Dim& atom : term.atoms) {
            auto at = static_cast<std::size_t>(std::find(atoms.begin(), atoms.end(), atom) - atoms.begin());
            if (at == atoms.size()) {
                const Range range = interval(atom);
                if (!is_lower_bounded(range)) return -kDimInfinity;
                atoms.push_back(atom);
                rests.push_back(add(range, point(-range.lo)));
            }
            const Dim rest = Dim::symbol(static_cast<SymbolId>(symbols_.size() + at));
            out = out * (rest + Dim(interval(atom).lo));
        }
        shifted = shifted + out;
    }
    return interval(shifted, rests).lo;
}

std::int64_t ShapeEnv::lower_bound(const Dim& d, int depth) const {
    std::int64_t best = std::max(interval(d).lo, shifted_lower_bound(d));
    if (depth == 0 || d.is_constant()) return best;
    const Sum sum = sum_of(d);
    // Takes multiples of facts out of d: d = (d - k*f) + k*f.
    const auto try_fact = [&](const Dim& fact, std::int64_t least) {
        std::vector<std::int64_t> tried;
        for (const Summand& f : sum_of(fact).terms) {
            for (const Summand& t : sum.terms) {
                if (f.atoms != t.atoms || t.coefficient % f.coefficient != 0) continue;
                const std::int64_t k = t.coefficient / f.coefficient;
                if (k <= 0 || std::find(tried.begin(), tried.end(), k) != tried.end()) continue;
                tried.push_back(k);
                const Dim rest = d - fact * Dim(k);
                if (term_count(rest) > term_count(d)) continue;
                const std::int64_t part = lower_bound(rest, depth - 1);
                if (part > -kDimInfinity)
                    best = std::max(best, add(Range{part, kDimInfinity}, multiply(point(k), {least, kDimInfinity})).lo);
            }
        }
    };
    std::size_t budget = kMaxFactsTried;
    for (const auto& [fact, range] : ranges_) {
        if (budget-- == 0) return best;
        if (is_lower_bounded(range)) try_fact(fact, range.lo);
        if (is_upper_bounded(range)) try_fact(-fact, -range.hi);
    }
    for (const auto& [a, b] : equalities_) {
        if (budget-- == 0) return best;
        try_fact(a - b, 0);
        try_fact(b - a, 0);
    }
    return best;
}

// Of an expression that is already simplified.
Range ShapeEnv::bounds(const Dim& d) const {
    if (d.is_constant()) return point(d.constant());
    Range out = interval(d);
    if (d.op() != DimOp::kSymbol) {
        out.lo = std::max(out.lo, lower_bound(d, kProofDepth));
        const std::int64_t mirrored = lower_bound(-d, kProofDepth);
        if (mirrored > -kDimInfinity) out.hi = std::min(out.hi, -mirrored);
    }
    bool moved = true;
    while (moved && !is_empty(out)) {
        moved = false;
        for (const auto& [fact, value] : not_equal_) {
            const auto shift = constant_difference(d, fact);  // d != value + shift
            if (!shift) continue;
            const Range excluded = add(point(value), point(*shift));
            if (!is_point(excluded)) continue;
            if (is_lower_bounded(out) && out.lo == excluded.lo) {
                ++out.lo;
                moved = true;
            } else if (is_upper_bounded(out) && out.hi == excluded.lo) {
                --out.hi;
                moved = true;
            }
        }
    }
    return out;
}

bool ShapeEnv::is_known_nonzero(const Dim& d) const {
    if (!contains(bounds(d), 0)) return true;
    if (!not_equal_.empty()) {
        const Dim reduced = primitive(d);
        for (const auto& [fact, value] : not_equal_) {
            if (primitive(fact - Dim(value)) == reduced) return true;
        }
    }
    const Sum sum = sum_of(d);
    const std::int64_t gcd = content(sum);
    if (gcd != 0 && sum.constant % gcd != 0) return true;
    std::vector<std::int64_t> tried;
    for (const auto& [fact, divisor] : divisors_) {
        if (std::find(tried.begin(), tried.end(), divisor) != tried.end()) continue;
        tried.push_back(divisor);
        if (const auto r = residue(d, divisor); r && *r != 0) return true;
    }
    return false;
}

// ---------------------------------------------------------------- divisibility

// A positive number that divides every value of d; 1 if none is known.
std::int64_t ShapeEnv::known_divisor(const Dim& d) const {
    const auto of_atom = [&](const Dim& atom) {
        std::int64_t out = 1;
        for (const auto& [fact, divisor] : divisors_) {
            if (fact == atom) out = capped_product(out / std::gcd(out, divisor), divisor);
        }
        if (atom.op() == DimOp::kMin || atom.op() == DimOp::kMax || atom.op() == DimOp::kBroadcast) {
            const std::int64_t both = std::gcd(known_divisor(atom.operands()[0]), known_divisor(atom.operands()[1]));
            if (both > out) out = both;
        }
        return out;
    };
    const Sum sum = sum_of(d);
    std::int64_t out = std::abs(sum.constant);
    for (const Summand& term : sum.terms) {
        std::int64_t divisor = std::abs(term.coefficient);
        for (const Dim& atom : term.atoms) {
            if (!atom.is_constant()) divisor = capped_product(divisor, of_atom(atom));
        }
        out = std::gcd(out, divisor);
    }
    return out == 0 ? 1 : out;
}

// d modulo a positive divisor, if the facts decide it.
std::optional<std::int64_t> ShapeEnv::residue(const Dim& d, std::int64_t m, int depth) const {
    if (m == 1) return 0;
    if (m > kMaxDivisor) return std::nullopt;
    const auto of_atom = [&](const Dim& atom) -> std::optional<std::int64_t> {
        if (atom.is_constant()) return positive_remainder(atom.constant(), m);
        for (const auto& [fact, divisor] : divisors_) {
            if (divisor % m != 0) continue;
            if (const auto rest = constant_difference(atom, fact)) return positive_remainder(*rest, m);
        }
        if (depth == 0) return std::nullopt;
        const auto operands = atom.operands();
        switch (atom.op()) {
            case DimOp::kMod:
                if (operands[1].is_constant() && operands[1].constant() % m == 0)
                    return residue(operands[0], m, depth - 1);
                return std::nullopt;
            case DimOp::kMin:
            case DimOp::kMax:
            case DimOp::kBroadcast: {
                const auto a = residue(operands[0], m, depth - 1);
                const auto b = residue(operands[1], m, depth - 1);
                return a && b && *a == *b ? a : std::nullopt;
            }
            default: return std::nullopt;
        }
    };
    const Sum sum = sum_of(d);
    std::int64_t total = positive_remainder(sum.constant, m);
    bool decided = true;
    for (const Summand& term : sum.terms) {
        if (known_divisor(term.monomial() * Dim(term.coefficient)) % m == 0) continue;
        std::int64_t value = positive_remainder(term.coefficient, m);
        for (const Dim& atom : term.atoms) {
            const auto r = of_atom(atom);
            if (!r) {
                decided = false;
                break;
            }
            value = multiply_modulo(value, *r, m);
        }
        if (!decided) break;
        total = positive_remainder(total + value, m);
    }
    if (decided) return total;
    if (depth == 0) return std::nullopt;
    for (const auto& [fact, divisor] : divisors_) {
        if (divisor % m != 0) continue;
        const Sum terms = sum_of(fact);
        for (const Summand& t : sum.terms) {
            if (terms.terms.empty() || terms.terms[0].atoms != t.atoms ||
                t.coefficient % terms.terms[0].coefficient != 0) {
                continue;
            }
            const Dim rest = d - fact * Dim(t.coefficient / terms.terms[0].coefficient);
            if (term_count(rest) >= term_count(d)) continue;
            if (const auto r = residue(rest, m, depth - 1)) return r;
        }
    }
    return std::nullopt;
}

// ---------------------------------------------------------------- simplification

Dim ShapeEnv::resolve(const Dim& d) const {
    return d.substitute([&](SymbolId id) -> const Dim* {
        return id < symbols_.size() && symbols_[id].equal_to ? &*symbols_[id].equal_to : nullptr;
    });
}

Dim ShapeEnv::rewrite(Dim d) const {
    for (int round = 0; round < kMaxRounds; ++round) {
        bool changed = false;
        for (const auto& [monomial, replacement] : rules_) {
            const std::vector<Dim> pattern = sum_of(monomial).terms[0].atoms;
            const Sum sum = sum_of(d);
            Dim out = sum.constant;
            bool matched = false;
            for (const Summand& term : sum.terms) {
                if (std::includes(term.atoms.begin(), term.atoms.end(), pattern.begin(), pattern.end())) {
                    std::vector<Dim> rest;
                    std::set_difference(term.atoms.begin(), term.atoms.end(), pattern.begin(), pattern.end(),
                                        std::back_inserter(rest));
                    out = out + product(rest) * replacement * Dim(term.coefficient);
                    matched = true;
                } else {
                    out = out + term.monomial() * Dim(term.coefficient);
                }
            }
            if (!matched) continue;
            d = out;
            changed = true;
        }
        if (!changed) break;
    }
    return d;
}

// k*c * (x // k) is c*x where k divides x.
Dim ShapeEnv::fold_sum(const Dim& d) const {
    if (divisors_.empty()) return d;
    const Sum sum = sum_of(d);
    const bool divides = std::any_of(sum.terms.begin(), sum.terms.end(), [](const Summand& t) {
        return std::any_of(t.atoms.begin(), t.atoms.end(), [](const Dim& a) { return a.op() == DimOp::kFloorDiv; });
    });
    if (!divides) return d;
    Dim out = sum.constant;
    for (const Summand& term : sum.terms) {
        Dim folded = term.monomial() * Dim(term.coefficient);
        for (std::size_t i = 0; i < term.atoms.size(); ++i) {
            const Dim& atom = term.atoms[i];
            if (atom.op() != DimOp::kFloorDiv) continue;
            const Dim& x = atom.operands()[0];
            const Dim& k = atom.operands()[1];
            if (!k.is_constant() || k.constant() <= 0 || term.coefficient % k.constant() != 0) continue;
            if (residue(x, k.constant()) != std::optional<std::int64_t>(0)) continue;
            std::vector<Dim> rest = term.atoms;
            rest[i] = x;
            folded = product(rest) * Dim(term.coefficient / k.constant());
            break;
        }
        out = out + folded;
    }
    return out;
}

// One node whose operands are folded already.
Dim ShapeEnv::fold_node(const Dim& d) const {
    if (d.is_constant()) return d;
    if (d.op() == DimOp::kAdd || d.op() == DimOp::kMul) {
        const Dim out = rewrite(fold_sum(d));
        const Range range = interval(out);
        return is_point(range) ? Dim(range.lo) : out;
    }
    if (d.op() != DimOp::kSymbol) {
        const Dim& a = d.operands()[0];
        const Dim& b = d.operands()[1];
        switch (d.op()) {
            case DimOp::kMin:
            case DimOp::kMax: {
                const Range difference = bounds(rewrite(b - a));
                const bool is_min = d.op() == DimOp::kMin;
                if (difference.lo >= 0) return is_min ? a : b;
                if (difference.hi <= 0) return is_min ? b : a;
                break;
            }
            case DimOp::kBroadcast: {
                const Dim offset = rewrite(a - Dim(1));
                if (is_known_nonzero(offset)) return a;
                const Range range = bounds(offset);
                if (is_point(range)) return b;
                if (const Range one = bounds(b); is_point(one) && one.lo == 1) return a;
                if (rewrite(a - b).is_constant(0)) return a;
                break;
            }
            case DimOp::kTruncDiv:
                if (bounds(a).lo >= 0 && bounds(b).lo > 0) return fold_node(Dim::floor_div(a, b));
                break;
            case DimOp::kMod: {
                if (bounds(a).lo >= 0 && bounds(rewrite(b - a)).lo > 0) return a;
                if (b.is_constant() && b.constant() > 0) {
                    if (const auto r = residue(a, b.constant())) return *r;
                }
                break;
            }
            case DimOp::kFloorDiv: {
                if (bounds(a).lo >= 0 && bounds(rewrite(b - a)).lo > 0) return 0;
                if (b.is_constant() && b.constant() > 0) {
                    const std::int64_t constant = sum_of(a).constant;
                    if (constant > 0 && constant < b.constant()) {
                        const Dim rest = a - Dim(constant);
                        if (residue(rest, b.constant()) == std::optional<std::int64_t>(0)) {
                            return fold_node(Dim::floor_div(rest, b));
                        }
                    }
                }
                break;
            }
            default: break;
        }
    }
    const Range range = interval(d);
    return is_point(range) ? Dim(range.lo) : d;
}

Dim ShapeEnv::fold(const Dim& d) const {
    if (d.is_constant() || d.is_symbol()) return fold_node(d);
    std::vector<Dim> operands;
    bool changed = false;
    for (const Dim& operand : d.operands()) {
        operands.push_back(fold(operand));
        changed |= operands.back() != operand;
    }
    return fold_node(changed ? Dim::rebuild(d.op(), operands) : d);
}

Dim ShapeEnv::simplify(const Dim& d) const {
    Dim current = resolve(d);
    for (int round = 0; round < kMaxRounds; ++round) {
        Dim next = fold(current);
        if (next == current) break;
        current = std::move(next);
    }
    return current;
}

Range ShapeEnv::range(const Dim& d) const { return bounds(simplify(d)); }

Truth ShapeEnv::eq(const Dim& a, const Dim& b) const {
    const Dim difference = simplify(a - b);
    if (difference.is_constant()) return difference.is_constant(0) ? Truth::kTrue : Truth::kFalse;
    const Range range = bounds(difference);
    if (range.lo == 0 && range.hi == 0) return Truth::kTrue;
    if (is_known_nonzero(difference)) return Truth::kFalse;
    const Dim separate = simplify(a) - simplify(b);  // folding the operands apart may show more
    if (separate.is_constant()) return separate.is_constant(0) ? Truth::kTrue : Truth::kFalse;
    return Truth::kUnknown;
}

Truth ShapeEnv::le(const Dim& a, const Dim& b) const {
    const Range range = bounds(simplify(b - a));
    if (range.lo >= 0) return Truth::kTrue;
    return range.hi < 0 ? Truth::kFalse : Truth::kUnknown;
}

Truth ShapeEnv::divisible(const Dim& d, std::int64_t divisor) const {
    if (divisor == 0 || divisor == std::numeric_limits<std::int64_t>::min()) return Truth::kUnknown;
    const auto r = residue(simplify(d), std::abs(divisor));
    if (!r) return Truth::kUnknown;
    return *r == 0 ? Truth::kTrue : Truth::kFalse;
}

// ---------------------------------------------------------------- assuming

template <class Change>
bool ShapeEnv::transact(Change change) {
    ShapeEnv saved = *this;
    if (change() && settle()) return true;
    *this = std::move(saved);
    return false;
}

bool ShapeEnv::narrow(SymbolId id, Range range, bool& changed) {
    Symbol& symbol = symbols_[id];
    Range next = intersect(symbol.known, range);
    const Dim self = Dim::symbol(id);
    // Bounds move to the next multiple that divisibility allows.
    for (const auto& [fact, divisor] : divisors_) {
        const auto offset = constant_difference(fact, self);  // symbol + offset is a multiple
        if (!offset || is_empty(next)) continue;
        if (is_lower_bounded(next)) {
            next.lo += positive_remainder(-positive_remainder(next.lo, divisor) - positive_remainder(*offset, divisor),
                                          divisor);
        }
        if (is_upper_bounded(next)) {
            next.hi -= positive_remainder(positive_remainder(next.hi, divisor) + positive_remainder(*offset, divisor),
                                          divisor);
        }
    }
    next.lo = std::min(next.lo, kDimInfinity - 1);
    if (next.lo != symbol.known.lo || next.hi != symbol.known.hi) {
        symbol.known = next;
        changed = true;
    }
    return !is_empty(next);
}

// d lies in `range`: what that says of each symbol that stands alone in a term.
bool ShapeEnv::propagate(const Dim& d, Range range, bool& changed) {
    const Sum sum = sum_of(d);
    for (std::size_t i = 0; i < sum.terms.size(); ++i) {
        const Summand& term = sum.terms[i];
        if (term.atoms.size() != 1 || !term.atoms[0].is_symbol()) continue;
        Range rest = point(sum.constant);
        for (std::size_t j = 0; j < sum.terms.size(); ++j) {
            if (j != i) rest = add(rest, interval(sum.terms[j].monomial() * Dim(sum.terms[j].coefficient)));
        }
        // c * s in [lo, hi], so s in [ceil(lo / c), floor(hi / c)].
        Range scaled = add(range, types::negate(rest));
        std::int64_t c = term.coefficient;
        if (c < 0) {
            scaled = types::negate(scaled);
            c = -c;
        }
        Range symbol = kEverything;
        if (is_lower_bounded(scaled)) symbol.lo = -floor_divide(point(-scaled.lo), point(c)).lo;
        if (is_upper_bounded(scaled)) symbol.hi = floor_divide(point(scaled.hi), point(c)).lo;
        if (!narrow(term.atoms[0].symbol_id(), symbol, changed)) return false;
    }
    return true;
}

// Solves a == b for a symbol, turns it into facts of another kind, or keeps it. False on a contradiction.
bool ShapeEnv::add_equality(const Dim& a, const Dim& b, bool& solved) {
    solved = true;
    Dim difference = simplify(a - b);
    if (difference.is_constant()) return difference.is_constant(0);
    Sum sum = sum_of(difference);
    const std::int64_t gcd = content(sum);
    if (sum.constant % gcd != 0) return false;
    difference = primitive(difference);
    sum = sum_of(difference);

    const Summand* best = nullptr;
    for (const Summand& term : sum.terms) {
        if (term.atoms.size() != 1 || !term.atoms[0].is_symbol() || std::abs(term.coefficient) != 1) continue;
        const SymbolId id = term.atoms[0].symbol_id();
        if (mentions(difference - Dim::symbol(id) * Dim(term.coefficient), id)) continue;
        if (best == nullptr || id > best->atoms[0].symbol_id()) best = &term;
    }
    if (best != nullptr) {
        const SymbolId id = best->atoms[0].symbol_id();
        const Dim rest = difference - Dim::symbol(id) * Dim(best->coefficient);
        symbols_[id].equal_to = best->coefficient == 1 ? -rest : rest;
        ranges_.emplace_back(*symbols_[id].equal_to, symbols_[id].known);
        return true;
    }

    if (sum.terms.size() == 1 && sum.terms[0].atoms.size() == 1 && std::abs(sum.terms[0].coefficient) == 1) {
        const Dim& atom = sum.terms[0].atoms[0];
        const Dim value = Dim(sum.constant) * Dim(-sum.terms[0].coefficient);
        const bool by_positive = (atom.op() == DimOp::kMod || atom.op() == DimOp::kFloorDiv) &&
                                 atom.operands()[1].is_constant() && atom.operands()[1].constant() > 0;
        if (by_positive && value.is_constant()) {
            const std::int64_t k = atom.operands()[1].constant();
            const Dim& x = atom.operands()[0];
            if (atom.op() == DimOp::kMod) {
                if (value.constant() < 0 || value.constant() >= k) return false;
                if (k <= kMaxDivisor) divisors_.emplace_back(x - value, k);
            } else {
                ranges_.emplace_back(x - value * Dim(k), Range{0, k - 1});
            }
            return true;
        }
    }
    solved = false;
    return true;
}

bool ShapeEnv::settle_round(bool& changed) {
    for (SymbolId id = 0; id < symbols_.size(); ++id) {
        Symbol& symbol = symbols_[id];
        if (!narrow(id, kEverything, changed)) return false;
        if (symbol.equal_to) {
            const Dim resolved = resolve(*symbol.equal_to);
            if (resolved != *symbol.equal_to) {
                symbol.equal_to = resolved;
                changed = true;
            }
        } else if (is_point(symbol.known)) {
            symbol.equal_to = Dim(symbol.known.lo);
            changed = true;
        }
    }

    auto equalities = std::exchange(equalities_, {});
    rules_.clear();
    for (const auto& [a, b] : equalities) {
        bool solved = false;
        if (!add_equality(a, b, solved)) return false;
        if (solved) {
            changed = true;
            continue;
        }
        const Dim left = simplify(a);
        const Dim right = simplify(b);
        equalities_.emplace_back(left, right);
        if (!propagate(left - right, point(0), changed)) return false;
        // The largest term is rewritten into the others; that all others are smaller ends the rewriting.
        const Sum sum = sum_of(primitive(left - right));
        const Summand* lead = nullptr;
        for (const Summand& term : sum.terms) {
            const bool larger = lead == nullptr || term.atoms.size() > lead->atoms.size() ||
                                (term.atoms.size() == lead->atoms.size() && lead->monomial() < term.monomial());
            if (larger) lead = &term;
        }
        // A replacement that hides the rewritten symbols inside an operator would be rewritten again and again.
        const bool nested = std::any_of(sum.terms.begin(), sum.terms.end(), [&](const Summand& term) {
            return &term != lead && std::any_of(term.atoms.begin(), term.atoms.end(), [&](const Dim& atom) {
                std::vector<SymbolId> symbols;
                lead->monomial().collect_symbols(symbols);
                return !atom.is_symbol() &&
                       std::any_of(symbols.begin(), symbols.end(), [&](SymbolId id) { return mentions(atom, id); });
            });
        });
        if (std::abs(lead->coefficient) == 1 && !nested) {
            Dim rest = sum.constant;
            for (const Summand& term : sum.terms) {
                if (&term != lead) rest = rest + term.monomial() * Dim(term.coefficient);
            }
            rules_.emplace_back(lead->monomial(), lead->coefficient == 1 ? -rest : rest);
        }
    }

    auto ranges = std::exchange(ranges_, {});
    for (auto& [fact, range] : ranges) {
        const Dim d = resolve(fact);
        if (d.is_constant()) {
            if (!contains(range, d.constant())) return false;
            continue;
        }
        const Range now = intersect(interval(d), range);
        if (is_empty(now)) return false;
        if (!propagate(d, range, changed)) return false;
        const Sum sum = sum_of(d);
        const bool absorbed =
            sum.terms.size() == 1 && sum.terms[0].atoms.size() == 1 && sum.terms[0].atoms[0].is_symbol();
        if (absorbed) continue;
        const auto same = std::find_if(ranges_.begin(), ranges_.end(), [&](const auto& r) { return r.first == d; });
        if (same == ranges_.end()) {
            if (is_lower_bounded(range) || is_upper_bounded(range)) ranges_.emplace_back(d, range);
        } else {
            same->second = intersect(same->second, range);
            if (is_empty(same->second)) return false;
        }
    }

    auto divisors = std::exchange(divisors_, {});
    for (auto& [fact, divisor] : divisors) {
        const Dim d = resolve(fact);
        const Sum sum = sum_of(d);
        const std::int64_t shared = std::gcd(std::gcd(content(sum), sum.constant), divisor);
        if (d.is_constant()) {
            if (d.constant() % divisor != 0) return false;
            continue;
        }
        const std::int64_t reduced = divisor / shared;
        if (reduced == 1) continue;
        // g*x + c is a multiple only if gcd(g, divisor) divides c.
        if (sum.constant % std::gcd(content(sum), divisor) != 0) return false;
        Dim scaled = positive_remainder(sum.constant / shared, reduced);
        for (const Summand& term : sum.terms) scaled = scaled + term.monomial() * Dim(term.coefficient / shared);
        if (const auto r = residue(scaled, reduced)) {
            if (*r != 0) return false;
            continue;
        }
        divisors_.emplace_back(scaled, reduced);
        if (scaled != fact || reduced != divisor) changed = true;
    }

    auto not_equal = std::exchange(not_equal_, {});
    for (auto& [fact, value] : not_equal) {
        const Dim d = resolve(fact);
        if (d.is_constant()) {
            if (d.is_constant(value)) return false;
            continue;
        }
        const Range range = interval(d);
        if (is_point(range) && range.lo == value) return false;
        if (!contains(range, value)) continue;
        if (d.is_symbol() && (range.lo == value || range.hi == value)) {
            const Range kept = range.lo == value ? Range{value + 1, kDimInfinity} : Range{-kDimInfinity, value - 1};
            if (!narrow(d.symbol_id(), kept, changed)) return false;
            continue;
        }
        not_equal_.emplace_back(d, value);
    }
    return true;
}

// Brings the facts into terms of unsolved symbols and lets each narrow the others. False on a contradiction.
bool ShapeEnv::settle() {
    for (int round = 0; round < kMaxRounds; ++round) {
        bool changed = false;
        if (!settle_round(changed)) return false;
        if (!changed) break;
    }
    // Narrowing may stop early (two facts may narrow each other one step at a time), resolving may not.
    for (Symbol& symbol : symbols_) {
        if (symbol.equal_to) symbol.equal_to = resolve(*symbol.equal_to);
    }
    return true;
}

bool ShapeEnv::assume_eq(const Dim& a, const Dim& b) {
    const Truth known = eq(a, b);
    if (known != Truth::kUnknown) return known == Truth::kTrue;
    return transact([&] {
        equalities_.emplace_back(a, b);
        return true;
    });
}

bool ShapeEnv::assume_range(const Dim& d, Range range) {
    const Range clamped{std::max(range.lo, -kDimInfinity), std::min(range.hi, kDimInfinity)};
    const Dim simplified = simplify(d);
    const Range known = bounds(simplified);
    if (is_empty(intersect(known, clamped))) return false;
    const bool implied = known.lo >= clamped.lo && known.hi <= clamped.hi;
    if (implied) return true;
    return transact([&] {
        ranges_.emplace_back(simplified, clamped);
        return true;
    });
}

bool ShapeEnv::assume_divisible(const Dim& d, std::int64_t divisor) {
    if (divisor == 0 || divisor == std::numeric_limits<std::int64_t>::min()) return assume_eq(d, 0);
    const Truth known = divisible(d, divisor);
    if (known != Truth::kUnknown) return known == Truth::kTrue;
    if (std::abs(divisor) > kMaxDivisor) return true;
    return transact([&] {
        divisors_.emplace_back(simplify(d), std::abs(divisor));
        return true;
    });
}

bool ShapeEnv::assume_ne(const Dim& d, std::int64_t value) {
    const Truth known = eq(d, value);
    if (known != Truth::kUnknown) return known == Truth::kFalse;
    return transact([&] {
        not_equal_.emplace_back(simplify(d), value);
        return true;
    });
}

// ---------------------------------------------------------------- text

std::string ShapeEnv::to_string(const Dim& d) const {
    return d.to_string([&](SymbolId id) { return id < symbols_.size() ? symbols_[id].name : "?"; });
}

std::string ShapeEnv::facts_to_string() const {
    std::vector<std::string> facts;
    const auto in = [](Range r) {
        return " in " + (is_lower_bounded(r) ? std::to_string(r.lo) : "-inf") + ".." +
               (is_upper_bounded(r) ? std::to_string(r.hi) : "inf");
    };
    for (const Symbol& symbol : symbols_) {
        if (symbol.equal_to) {
            facts.push_back(symbol.name + " == " + to_string(*symbol.equal_to));
        } else if (symbol.known.lo != 0 || is_upper_bounded(symbol.known)) {
            facts.push_back(symbol.name + in(symbol.known));
        }
    }
    for (const auto& [a, b] : equalities_) facts.push_back(to_string(a) + " == " + to_string(b));
    for (const auto& [d, range] : ranges_) facts.push_back(to_string(d) + in(range));
    for (const auto& [d, divisor] : divisors_) {
        facts.push_back((d.op() == DimOp::kAdd ? "(" + to_string(d) + ")" : to_string(d)) + " % " +
                        std::to_string(divisor) + " == 0");
    }
    for (const auto& [d, value] : not_equal_) facts.push_back(to_string(d) + " != " + std::to_string(value));
    return support::join(facts, ", ");
}

}  // namespace flexor::types
