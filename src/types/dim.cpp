#include "types/dim.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <numeric>
#include <optional>

#include "support/check.h"
#include "support/hash.h"
#include "types/interval.h"

namespace flexor::types {

// `opaque` marks a sum or product whose coefficients would overflow, or that is too long to multiply out: its operands
// stay as they are, and it counts as an atom.
struct Dim::Node {
    DimOp op;
    SymbolId symbol;
    bool opaque;
    std::size_t hash;
    std::vector<Dim> operands;
};

namespace {

constexpr std::size_t kMaxTerms = 64;  // sums longer than this are not multiplied out

using Product = std::vector<Dim>;  // atoms, sorted, with repetition
struct Term {
    Product atoms;
    std::int64_t coefficient;
};
struct Polynomial {
    std::vector<Term> terms;  // sorted by atoms, none with coefficient 0
    std::int64_t constant = 0;
};

__extension__ using Wide = __int128;

bool narrow(Wide wide, std::int64_t* out) {
    *out = static_cast<std::int64_t>(wide);
    return *out == wide;
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
    const std::int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

bool can_divide(std::int64_t a, std::int64_t b) {
    return b != 0 && !(a == std::numeric_limits<std::int64_t>::min() && b == -1);
}

}  // namespace

struct DimCanonical {
    static const Dim::Node* node(const Dim& d) { return d.node_.get(); }

    static Dim make(DimOp op, std::vector<Dim> operands, bool opaque = false, SymbolId symbol = 0) {
        std::uint64_t hash = static_cast<std::uint64_t>(op) * 2 + (opaque ? 1 : 0);
        hash = support::hash_combine(hash, symbol);
        for (const Dim& d : operands) hash = support::hash_combine(hash, d.hash());
        return Dim(std::make_shared<const Dim::Node>(Dim::Node{op, symbol, opaque, hash, std::move(operands)}));
    }

    static bool is_atom(const Dim& d) {
        return d.op() != DimOp::kConstant && (node(d)->opaque || (d.op() != DimOp::kAdd && d.op() != DimOp::kMul));
    }

    static std::strong_ordering compare(const Dim& a, const Dim& b) {
        if (a.node_ == b.node_) return a.constant_ <=> b.constant_;
        if (a.op() != b.op()) return a.op() <=> b.op();
        const Dim::Node& x = *node(a);
        const Dim::Node& y = *node(b);
        if (x.symbol != y.symbol) return x.symbol <=> y.symbol;
        if (x.opaque != y.opaque) return x.opaque <=> y.opaque;
        return compare(x.operands, y.operands);
    }

    static std::strong_ordering compare(const std::vector<Dim>& a, const std::vector<Dim>& b) {
        return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end(),
                                                      [](const Dim& x, const Dim& y) { return compare(x, y); });
    }

    static Term term_of(const Dim& d) {
        if (is_atom(d)) return {{d}, 1};
        const auto& factors = node(d)->operands;
        if (factors.front().is_constant()) {
            return {Product(factors.begin() + 1, factors.end()), factors.front().constant()};
        }
        return {factors, 1};
    }

    static Polynomial polynomial_of(const Dim& d) {
        Polynomial p;
        if (d.is_constant()) {
            p.constant = d.constant();
        } else if (is_atom(d) || d.op() == DimOp::kMul) {
            p.terms.push_back(term_of(d));
        } else {
            for (const Dim& operand : node(d)->operands) {
                if (operand.is_constant()) {
                    p.constant = operand.constant();
                } else {
                    p.terms.push_back(term_of(operand));
                }
            }
        }
        return p;
    }

    static Dim dim_of(const Term& term) {
        if (term.atoms.empty()) return term.coefficient;
        if (term.coefficient == 1) return term.atoms.size() == 1 ? term.atoms[0] : make(DimOp::kMul, term.atoms);
        std::vector<Dim> factors{term.coefficient};
        factors.insert(factors.end(), term.atoms.begin(), term.atoms.end());
        return make(DimOp::kMul, std::move(factors));
    }

    static Dim dim_of(const Polynomial& p) {
        if (p.terms.empty()) return p.constant;
        if (p.terms.size() == 1 && p.constant == 0) return dim_of(p.terms[0]);
        std::vector<Dim> terms;
        terms.reserve(p.terms.size() + 1);
        for (const Term& term : p.terms) terms.push_back(dim_of(term));
        if (p.constant != 0) terms.emplace_back(p.constant);
        return make(DimOp::kAdd, std::move(terms));
    }

    // Both arithmetic functions give nothing when a coefficient would overflow.
    static std::optional<Polynomial> add(const Polynomial& a, const Polynomial& b) {
        Polynomial out;
        if (__builtin_add_overflow(a.constant, b.constant, &out.constant)) return std::nullopt;
        auto i = a.terms.begin();
        auto j = b.terms.begin();
        while (i != a.terms.end() || j != b.terms.end()) {
            const auto order = i == a.terms.end()   ? std::strong_ordering::greater
                               : j == b.terms.end() ? std::strong_ordering::less
                                                    : compare(i->atoms, j->atoms);
            if (order < 0) {
                out.terms.push_back(*i++);
            } else if (order > 0) {
                out.terms.push_back(*j++);
            } else {
                Term sum = *i;
                if (__builtin_add_overflow(sum.coefficient, j->coefficient, &sum.coefficient)) return std::nullopt;
                if (sum.coefficient != 0) out.terms.push_back(std::move(sum));
                ++i;
                ++j;
            }
        }
        return out;
    }

    static std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) {
        if ((a.terms.size() + 1) * (b.terms.size() + 1) > kMaxTerms) return std::nullopt;
        std::vector<Term> left = a.terms;
        std::vector<Term> right = b.terms;
        if (a.constant != 0) left.push_back({{}, a.constant});
        if (b.constant != 0) right.push_back({{}, b.constant});
        Polynomial out;
        for (const Term& x : left) {
            for (const Term& y : right) {
                Term term;
                if (__builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient)) return std::nullopt;
                term.atoms.resize(x.atoms.size() + y.atoms.size(), Dim(0));
                std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), term.atoms.begin());
                Polynomial one;
                if (term.atoms.empty()) {
                    one.constant = term.coefficient;
                } else {
                    one.terms.push_back(std::move(term));
                }
                auto sum = add(out, one);
                if (!sum) return std::nullopt;
                out = std::move(*sum);
            }
        }
        return out;
    }

    static std::vector<Dim> ordered_pair(const Dim& a, const Dim& b) {
        return b < a ? std::vector<Dim>{b, a} : std::vector<Dim>{a, b};
    }

    // Terms of a polynomial with its constant as a term of no atoms.
    static std::vector<Term> all_terms(const Polynomial& p) {
        std::vector<Term> terms = p.terms;
        if (p.constant != 0 || terms.empty()) terms.push_back({{}, p.constant});
        return terms;
    }

    static bool has_minimum(const std::vector<Term>& terms) {
        return std::any_of(terms.begin(), terms.end(),
                           [](const Term& t) { return t.coefficient == std::numeric_limits<std::int64_t>::min(); });
    }

    // The largest monomial that divides every term of both.
    static Term common_factor(const std::vector<Term>& a, const std::vector<Term>& b) {
        std::int64_t coefficient = 0;
        std::optional<Product> atoms;
        for (const auto* side : {&a, &b}) {
            for (const Term& term : *side) {
                if (term.coefficient == 0) continue;  // zero has every divisor
                coefficient = std::gcd(coefficient, term.coefficient);
                if (!atoms) {
                    atoms = term.atoms;
                } else {
                    Product both;
                    std::set_intersection(atoms->begin(), atoms->end(), term.atoms.begin(), term.atoms.end(),
                                          std::back_inserter(both));
                    atoms = std::move(both);
                }
            }
        }
        return {atoms.value_or(Product{}), coefficient};
    }

    static Term divide(const Term& term, const Term& divisor) {
        Product rest;
        std::set_difference(term.atoms.begin(), term.atoms.end(), divisor.atoms.begin(), divisor.atoms.end(),
                            std::back_inserter(rest));
        return {std::move(rest), term.coefficient / divisor.coefficient};
    }

    static Dim sum_of(const std::vector<Term>& terms) {
        Dim sum = 0;
        for (const Term& term : terms) sum = sum + dim_of(term);
        return sum;
    }

    // Cancels what the two sides of a division share. A factor that cancels is taken to be nonzero.
    static void cancel(Dim& a, Dim& b) {
        const auto numerator = all_terms(polynomial_of(a));
        const auto denominator = all_terms(polynomial_of(b));
        if (has_minimum(numerator) || has_minimum(denominator)) return;
        Term factor = common_factor(numerator, denominator);
        if (factor.coefficient == 0) return;
        const bool negate =
            std::all_of(denominator.begin(), denominator.end(), [](const Term& t) { return t.coefficient < 0; });
        if (negate) factor.coefficient = -factor.coefficient;
        if (factor.atoms.empty() && factor.coefficient == 1) return;
        std::vector<Term> top;
        std::vector<Term> bottom;
        for (const Term& t : numerator) top.push_back(divide(t, factor));
        for (const Term& t : denominator) bottom.push_back(divide(t, factor));
        a = sum_of(top);
        b = sum_of(bottom);
    }

    // Constant difference a - b, if it is one.
    static std::optional<std::int64_t> difference(const Dim& a, const Dim& b) {
        const Dim d = a - b;
        return d.is_constant() ? std::optional(d.constant()) : std::nullopt;
    }

    static bool has_operand(const Dim& d, DimOp op, const Dim& operand) {
        if (d.op() != op) return false;
        const auto& operands = node(d)->operands;
        return std::find(operands.begin(), operands.end(), operand) != operands.end();
    }

    // x, where d is max(0, x) - c and c >= 0: max(0, d) is then max(0, x - c).
    static std::optional<Dim> within_max(const Dim& d) {
        if (d.op() != DimOp::kAdd || node(d)->opaque || node(d)->operands.size() != 2) return std::nullopt;
        const Dim& largest = node(d)->operands[0];
        const Dim& rest = node(d)->operands[1];
        if (largest.op() != DimOp::kMax || !rest.is_constant() || rest.constant() > 0) return std::nullopt;
        const auto& operands = node(largest)->operands;
        for (int i = 0; i < 2; ++i) {
            if (operands[static_cast<std::size_t>(i)].is_constant(0))
                return operands[static_cast<std::size_t>(1 - i)] + rest;
        }
        return std::nullopt;
    }

    static Dim extremum(DimOp op, const Dim& a, const Dim& b) {
        if (op == DimOp::kMax) {
            if (const auto inner = a.is_constant(0) ? within_max(b) : b.is_constant(0) ? within_max(a) : std::nullopt) {
                return extremum(op, 0, *inner);
            }
        }
        if (const auto d = difference(a, b)) return (*d <= 0) == (op == DimOp::kMin) ? a : b;
        if (has_operand(a, op, b)) return a;
        if (has_operand(b, op, a)) return b;
        const DimOp other = op == DimOp::kMin ? DimOp::kMax : DimOp::kMin;
        if (has_operand(a, other, b)) return b;
        if (has_operand(b, other, a)) return a;
        return make(op, ordered_pair(a, b));
    }
};

Dim Dim::make(DimOp op, std::vector<Dim> operands, SymbolId symbol) {
    return DimCanonical::make(op, std::move(operands), false, symbol);
}

Dim Dim::symbol(SymbolId id) { return make(DimOp::kSymbol, {}, id); }

DimOp Dim::op() const { return node_ == nullptr ? DimOp::kConstant : node_->op; }

SymbolId Dim::symbol_id() const {
    FLEXOR_DCHECK(is_symbol());
    return node_->symbol;
}

std::span<const Dim> Dim::operands() const {
    if (node_ == nullptr) return {};
    return node_->operands;
}

std::size_t Dim::hash() const {
    return node_ == nullptr ? support::hash_combine(0x51ED27, static_cast<std::uint64_t>(constant_)) : node_->hash;
}

bool operator==(const Dim& a, const Dim& b) {
    if (a.node_ == b.node_) return a.constant_ == b.constant_;
    if (a.node_ == nullptr || b.node_ == nullptr || a.node_->hash != b.node_->hash) return false;
    return DimCanonical::compare(a, b) == 0;
}

bool operator<(const Dim& a, const Dim& b) { return DimCanonical::compare(a, b) < 0; }

Dim operator+(const Dim& a, const Dim& b) {
    if (a.is_constant(0)) return b;
    if (b.is_constant(0)) return a;
    const auto sum = DimCanonical::add(DimCanonical::polynomial_of(a), DimCanonical::polynomial_of(b));
    return sum ? DimCanonical::dim_of(*sum)
               : DimCanonical::make(DimOp::kAdd, DimCanonical::ordered_pair(a, b), /*opaque=*/true);
}

Dim operator*(const Dim& a, const Dim& b) {
    if (a.is_constant(1)) return b;
    if (b.is_constant(1)) return a;
    if (a.is_constant(0) || b.is_constant(0)) return 0;
    const auto product = DimCanonical::multiply(DimCanonical::polynomial_of(a), DimCanonical::polynomial_of(b));
    return product ? DimCanonical::dim_of(*product)
                   : DimCanonical::make(DimOp::kMul, DimCanonical::ordered_pair(a, b), /*opaque=*/true);
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim Dim::operator-() const { return *this * Dim(-1); }

Dim Dim::floor_div(const Dim& numerator, const Dim& denominator) {
    Dim a = numerator;
    Dim b = denominator;
    if (b.is_constant(0)) return make(DimOp::kFloorDiv, {a, b});
    if (a.is_constant() && b.is_constant() && !can_divide(a.constant(), b.constant())) {
        return make(DimOp::kFloorDiv, {a, b});
    }
    DimCanonical::cancel(a, b);
    if (b.is_constant(1)) return a;
    if (!b.is_constant()) return make(DimOp::kFloorDiv, {a, b});
    const std::int64_t d = b.constant();
    if (a.is_constant())
        return can_divide(a.constant(), d) ? Dim(floor_quotient(a.constant(), d)) : make(DimOp::kFloorDiv, {a, b});
    if (d < 0) return make(DimOp::kFloorDiv, {a, b});
    // floor((d*x + y) / d) = x + floor(y / d), and a constant gives up its whole part.
    Dim whole = 0;
    Dim rest = 0;
    for (const Term& term : DimCanonical::all_terms(DimCanonical::polynomial_of(a))) {
        if (term.atoms.empty()) {
            whole = whole + Dim(floor_quotient(term.coefficient, d));
            rest = rest + Dim(floor_remainder(term.coefficient, d));
        } else if (term.coefficient % d == 0) {
            whole = whole + DimCanonical::dim_of(Term{term.atoms, term.coefficient / d});
        } else {
            rest = rest + DimCanonical::dim_of(term);
        }
    }
    if (!whole.is_constant(0)) return whole + floor_div(rest, b);
    // floor(floor(x / c) / d) = floor(x / (c * d))
    if (a.op() == DimOp::kFloorDiv && a.operands()[1].is_constant() && a.operands()[1].constant() > 0) {
        std::int64_t both;
        if (!__builtin_mul_overflow(a.operands()[1].constant(), d, &both)) return floor_div(a.operands()[0], both);
    }
    return make(DimOp::kFloorDiv, {a, b});
}

Dim Dim::trunc_div(const Dim& numerator, const Dim& denominator) {
    Dim a = numerator;
    Dim b = denominator;
    if (a.is_constant() && b.is_constant()) {
        if (!can_divide(a.constant(), b.constant())) return make(DimOp::kTruncDiv, {a, b});
        return a.constant() / b.constant();
    }
    if (b.is_constant(0)) return make(DimOp::kTruncDiv, {a, b});
    DimCanonical::cancel(a, b);
    if (b.is_constant(1)) return a;
    if (a.is_constant() && b.is_constant() && can_divide(a.constant(), b.constant())) {
        return a.constant() / b.constant();
    }
    return make(DimOp::kTruncDiv, {a, b});
}

Dim Dim::mod(const Dim& a, const Dim& b) {
    if (b.is_constant(0)) return make(DimOp::kMod, {a, b});
    if (b.is_constant(1) || b.is_constant(-1)) return 0;
    if (a == b) return 0;
    if (!b.is_constant()) {
        // Whole multiples of the divisor: (B*S) mod S.
        const auto divisor = DimCanonical::all_terms(DimCanonical::polynomial_of(b));
        if (divisor.size() == 1 && !DimCanonical::has_minimum(divisor)) {
            const auto terms = DimCanonical::all_terms(DimCanonical::polynomial_of(a));
            const Term& d = divisor[0];
            if (std::all_of(terms.begin(), terms.end(), [&](const Term& t) {
                    return t.coefficient % d.coefficient == 0 &&
                           t.coefficient != std::numeric_limits<std::int64_t>::min() &&
                           std::includes(t.atoms.begin(), t.atoms.end(), d.atoms.begin(), d.atoms.end());
                })) {
                return 0;
            }
        }
        return make(DimOp::kMod, {a, b});
    }
    const std::int64_t m = b.constant();
    if (m == std::numeric_limits<std::int64_t>::min()) return make(DimOp::kMod, {a, b});
    if (a.is_constant()) return floor_remainder(a.constant(), m);
    const std::int64_t magnitude = m < 0 ? -m : m;
    Dim rest = 0;
    for (const Term& term : DimCanonical::all_terms(DimCanonical::polynomial_of(a))) {
        const std::int64_t coefficient = floor_remainder(term.coefficient, magnitude);
        if (coefficient != 0) rest = rest + DimCanonical::dim_of(Term{term.atoms, coefficient});
    }
    if (rest.is_constant()) return floor_remainder(rest.constant(), m);
    // (x mod (k*m)) mod m = x mod m
    if (rest.op() == DimOp::kMod && rest.operands()[1].is_constant() && rest.operands()[1].constant() % m == 0) {
        return mod(rest.operands()[0], b);
    }
    return make(DimOp::kMod, {rest, b});
}

Dim Dim::min(const Dim& a, const Dim& b) { return DimCanonical::extremum(DimOp::kMin, a, b); }

Dim Dim::max(const Dim& a, const Dim& b) { return DimCanonical::extremum(DimOp::kMax, a, b); }

Dim Dim::broadcast(const Dim& a, const Dim& b) {
    // The first of a list that is not 1: nested to the right, each size once, nothing behind one that is known.
    std::vector<Dim> sizes;
    bool is_settled = false;
    const auto add = [&](const Dim& size) {
        if (is_settled || size.is_constant(1) || std::find(sizes.begin(), sizes.end(), size) != sizes.end()) return;
        sizes.push_back(size);
        is_settled = size.is_constant();
    };
    for (const Dim* side : {&a, &b}) {
        Dim rest = *side;
        for (; rest.op() == DimOp::kBroadcast; rest = Dim(rest.operands()[1])) add(rest.operands()[0]);
        add(rest);
    }
    if (sizes.empty()) return 1;
    Dim out = sizes.back();
    for (std::size_t i = sizes.size() - 1; i-- > 0;) out = make(DimOp::kBroadcast, {sizes[i], out});
    return out;
}

Evaluated Dim::evaluate(std::span<const std::int64_t> symbol_values) const {
    if (node_ == nullptr) return {EvalStatus::kOk, constant_};
    const auto& operands = node_->operands;
    const Evaluated overflow{EvalStatus::kOverflow, 0};
    if (node_->op == DimOp::kSymbol) {
        FLEXOR_CHECK(node_->symbol < symbol_values.size());
        return {EvalStatus::kOk, symbol_values[node_->symbol]};
    }
    if (node_->op == DimOp::kAdd || node_->op == DimOp::kMul) {
        Wide sum = 0;
        std::int64_t product = 1;
        bool product_overflows = false;
        bool has_zero = false;
        for (const Dim& operand : operands) {
            const Evaluated v = operand.evaluate(symbol_values);
            if (v.status != EvalStatus::kOk) return v;
            sum += v.value;
            has_zero |= v.value == 0;
            product_overflows |= __builtin_mul_overflow(product, v.value, &product);
        }
        if (node_->op == DimOp::kMul) {
            if (has_zero) return {EvalStatus::kOk, 0};
            return product_overflows ? overflow : Evaluated{EvalStatus::kOk, product};
        }
        std::int64_t value;
        return narrow(sum, &value) ? Evaluated{EvalStatus::kOk, value} : overflow;
    }
    const Evaluated x = operands[0].evaluate(symbol_values);
    if (x.status != EvalStatus::kOk) return x;
    if (node_->op == DimOp::kBroadcast && x.value != 1) return x;
    const Evaluated y = operands[1].evaluate(symbol_values);
    if (y.status != EvalStatus::kOk) return y;
    const std::int64_t a = x.value;
    const std::int64_t b = y.value;
    switch (node_->op) {
        case DimOp::kFloorDiv:
        case DimOp::kTruncDiv:
            if (b == 0) return {EvalStatus::kZeroDivisor, 0};
            if (!can_divide(a, b)) return overflow;
            return {EvalStatus::kOk, node_->op == DimOp::kFloorDiv ? floor_quotient(a, b) : a / b};
        case DimOp::kMod:
            if (b == 0) return {EvalStatus::kZeroDivisor, 0};
            return {EvalStatus::kOk, b == -1 ? 0 : floor_remainder(a, b)};
        case DimOp::kMin: return a < b ? x : y;
        case DimOp::kMax: return a > b ? x : y;
        case DimOp::kBroadcast: return y;
        case DimOp::kConstant:
        case DimOp::kSymbol:
        case DimOp::kAdd:
        case DimOp::kMul: break;
    }
    FLEXOR_UNREACHABLE();
}

Dim Dim::substitute(const std::function<const Dim*(SymbolId)>& replacement) const {
    if (node_ == nullptr) return *this;
    if (node_->op == DimOp::kSymbol) {
        const Dim* other = replacement(node_->symbol);
        return other == nullptr ? *this : *other;
    }
    std::vector<Dim> operands;
    operands.reserve(node_->operands.size());
    bool changed = false;
    for (const Dim& operand : node_->operands) {
        operands.push_back(operand.substitute(replacement));
        changed |= operands.back() != operand;
    }
    if (!changed) return *this;
    return rebuild(node_->op, operands);
}

Dim Dim::rebuild(DimOp op, std::span<const Dim> operands) {
    switch (op) {
        case DimOp::kAdd: {
            Dim sum = 0;
            for (const Dim& operand : operands) sum = sum + operand;
            return sum;
        }
        case DimOp::kMul: return product(operands);
        case DimOp::kFloorDiv: return floor_div(operands[0], operands[1]);
        case DimOp::kTruncDiv: return trunc_div(operands[0], operands[1]);
        case DimOp::kMod: return mod(operands[0], operands[1]);
        case DimOp::kMin: return min(operands[0], operands[1]);
        case DimOp::kMax: return max(operands[0], operands[1]);
        case DimOp::kBroadcast: return broadcast(operands[0], operands[1]);
        case DimOp::kConstant:
        case DimOp::kSymbol: break;
    }
    FLEXOR_UNREACHABLE();
}

void Dim::collect_symbols(std::vector<SymbolId>& out) const {
    if (node_ == nullptr) return;
    if (node_->op == DimOp::kSymbol) {
        if (std::find(out.begin(), out.end(), node_->symbol) == out.end()) out.push_back(node_->symbol);
        return;
    }
    for (const Dim& operand : node_->operands) operand.collect_symbols(out);
}

namespace {

// Precedence of the printed form: sums bind least, names and calls most.
int precedence(const Dim& d) {
    switch (d.op()) {
        case DimOp::kAdd: return 0;
        case DimOp::kMul:
        case DimOp::kFloorDiv:
        case DimOp::kMod: return 1;
        case DimOp::kConstant: return d.constant() < 0 ? 0 : 2;
        case DimOp::kSymbol:
        case DimOp::kTruncDiv:
        case DimOp::kMin:
        case DimOp::kMax:
        case DimOp::kBroadcast: return 2;
    }
    return 2;
}

}  // namespace

std::string Dim::to_string(const std::function<std::string(SymbolId)>& name) const {
    const auto text = [&](const Dim& d, int at_least) {
        std::string s = d.to_string(name);
        return precedence(d) >= at_least ? s : "(" + s + ")";
    };
    const auto call = [&](const char* function) {
        return std::string(function) + "(" + node_->operands[0].to_string(name) + ", " +
               node_->operands[1].to_string(name) + ")";
    };
    const auto infix = [&](const char* sign) {
        return text(node_->operands[0], 1) + sign + text(node_->operands[1], 2);
    };
    switch (op()) {
        case DimOp::kConstant: return std::to_string(constant_);
        case DimOp::kSymbol: return name(node_->symbol);
        case DimOp::kAdd: {
            std::string out;
            for (const Dim& operand : node_->operands) {
                const std::string term = text(operand, operand.is_constant() ? 0 : 1);
                if (!out.empty() && term[0] != '-') out += '+';
                out += term;
            }
            return out;
        }
        case DimOp::kMul: {
            std::string out;
            for (std::size_t i = 0; i < node_->operands.size(); ++i) {
                const Dim& factor = node_->operands[i];
                if (i == 0 && factor.is_constant(-1) && !node_->opaque) {
                    out = "-";
                    continue;
                }
                if (i != 0 && out != "-") out += '*';
                out += i == 0 && factor.is_constant() ? std::to_string(factor.constant()) : text(factor, 2);
            }
            return out;
        }
        case DimOp::kFloorDiv: return infix("//");
        case DimOp::kMod: return infix("%");
        case DimOp::kTruncDiv: return call("trunc_div");
        case DimOp::kMin: return call("min");
        case DimOp::kMax: return call("max");
        case DimOp::kBroadcast: return call("broadcast");
    }
    FLEXOR_UNREACHABLE();
}

Dim product(std::span<const Dim> dims) {
    Dim out = 1;
    for (const Dim& d : dims) out = out * d;
    return out;
}

std::optional<LinearForm> linear_in(const Dim& dim, SymbolId symbol) {
    std::vector<SymbolId> used;
    dim.collect_symbols(used);
    if (std::ranges::find(used, symbol) == used.end()) return LinearForm{0, dim};
    if (dim.is_symbol()) return LinearForm{1, 0};
    const bool sum = dim.op() == DimOp::kAdd;
    if (!sum && dim.op() != DimOp::kMul) return std::nullopt;
    LinearForm out = sum ? LinearForm{0, 0} : LinearForm{0, 1};
    for (const Dim& operand : dim.operands()) {
        const auto part = linear_in(operand, symbol);
        if (!part) return std::nullopt;
        if (sum) {
            out = {out.coefficient + part->coefficient, out.rest + part->rest};
            continue;
        }
        // The square of the symbol is not linear.
        if (!out.coefficient.is_constant(0) && !part->coefficient.is_constant(0)) return std::nullopt;
        out = {out.coefficient * part->rest + out.rest * part->coefficient, out.rest * part->rest};
    }
    return out;
}

std::vector<Dim> contiguous_strides(std::span<const Dim> sizes) {
    std::vector<Dim> strides(sizes.size());
    Dim stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        if (!sizes[i].is_constant(0)) stride = stride * sizes[i];
    }
    return strides;
}

}  // namespace flexor::types
