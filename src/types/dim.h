#pragma once
// Symbolic dims: immutable integer expressions over symbols, kept in one canonical form so that equal polynomials
// compare equal.
//
// Laws
//  D1  Arithmetic never wraps: a constant fold that would overflow stays an expression, and evaluation reports
//      kOverflow (of a sum or product, when the exact result does not fit; a factor 0 makes a product 0).
//  D2  Canonical form: + is a flattened sum of (coefficient x product of atoms) sorted by a fixed order, plus a
//      constant. Atoms are symbols and the non-polynomial operators. a - b is a + (-1) * b. What would overflow, or
//      would not be short when multiplied out, is kept as it is and counts as an atom.
//  D3  floor_div and mod have Python sign semantics, trunc_div C semantics; a zero divisor is reported at evaluation. A
//      divisor that cancels ((B*S) // B is S) is taken to be nonzero: the rule that divides requires that.
//  D4  broadcast(a, b) = (a == 1 ? b : a), whatever the rule requires; nested to the right, it names each size once.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flexor::types {

using SymbolId = std::uint32_t;

enum class DimOp : std::uint8_t { kConstant, kSymbol, kAdd, kMul, kFloorDiv, kTruncDiv, kMod, kMin, kMax, kBroadcast };

enum class EvalStatus : std::uint8_t { kOk, kOverflow, kZeroDivisor };
struct Evaluated {
    EvalStatus status;
    std::int64_t value;
};

class Dim {
public:
    Dim(std::int64_t constant = 0) : constant_(constant) {}  // NOLINT: implicit on purpose
    static Dim symbol(SymbolId id);

    DimOp op() const;
    bool is_constant() const { return node_ == nullptr; }
    bool is_constant(std::int64_t v) const { return node_ == nullptr && constant_ == v; }
    bool is_symbol() const { return op() == DimOp::kSymbol; }
    std::int64_t constant() const { return constant_; }  // only if is_constant()
    SymbolId symbol_id() const;                          // only if is_symbol()
    std::span<const Dim> operands()
        const;  // kAdd: terms (a constant term, if any, last); kMul: factors (a constant factor, if any, first)

    std::size_t hash() const;
    friend bool operator==(const Dim& a, const Dim& b);
    friend bool operator<(const Dim& a, const Dim& b);  // the fixed order of D2, total

    friend Dim operator+(const Dim& a, const Dim& b);
    friend Dim operator-(const Dim& a, const Dim& b);
    friend Dim operator*(const Dim& a, const Dim& b);
    Dim operator-() const;
    static Dim floor_div(const Dim& a,
                         const Dim& b);  // folds exact division of every term by a constant or a common factor
    static Dim trunc_div(const Dim& a, const Dim& b);
    static Dim mod(const Dim& a, const Dim& b);
    static Dim min(const Dim& a, const Dim& b);
    static Dim max(const Dim& a, const Dim& b);
    static Dim broadcast(const Dim& a, const Dim& b);
    // The operator applied to its operands; not for kConstant and kSymbol.
    static Dim rebuild(DimOp op, std::span<const Dim> operands);

    Evaluated evaluate(std::span<const std::int64_t> symbol_values) const;         // indexed by SymbolId
    Dim substitute(const std::function<const Dim*(SymbolId)>& replacement) const;  // null: keep
    void collect_symbols(std::vector<SymbolId>& out) const;                        // appends, without duplicates

    // "2*S+1", "B*S//4", "max(S, T-1)"; `name` gives the spelling of a symbol.
    std::string to_string(const std::function<std::string(SymbolId)>& name) const;

private:
    struct Node;
    explicit Dim(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
    static Dim make(DimOp op, std::vector<Dim> operands, SymbolId symbol = 0);
    std::shared_ptr<const Node> node_;
    std::int64_t constant_ = 0;
    friend struct DimCanonical;
};

Dim product(std::span<const Dim> dims);  // 1 for none

// coefficient * symbol + rest, neither of which names the symbol.
struct LinearForm {
    Dim coefficient, rest;
};
// Nothing: the dim is no such sum.
std::optional<LinearForm> linear_in(const Dim& dim, SymbolId symbol);

// Row-major; as in the frameworks, a constant size 0 counts as 1.
std::vector<Dim> contiguous_strides(std::span<const Dim> sizes);

}  // namespace flexor::types

template <>
struct std::hash<flexor::types::Dim> {
    std::size_t operator()(const flexor::types::Dim& d) const { return d.hash(); }
};
