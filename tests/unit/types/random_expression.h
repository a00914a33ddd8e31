#pragma once
// Random integer expressions over symbols, evaluated without Dim: the oracle of the Dim and ShapeEnv property tests.
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "types/dim.h"

namespace flexor::types::testing {

struct Expression {
    DimOp op;
    std::int64_t value = 0;  // constant or symbol id
    std::vector<Expression> operands;

    Dim dim() const {
        switch (op) {
            case DimOp::kConstant: return value;
            case DimOp::kSymbol: return Dim::symbol(static_cast<SymbolId>(value));
            default: {
                const std::vector<Dim> dims{operands[0].dim(), operands[1].dim()};
                return Dim::rebuild(op, dims);
            }
        }
    }

    // Nothing where a divisor is zero, evaluated or not.
    std::optional<std::int64_t> evaluate(std::span<const std::int64_t> symbols) const {
        if (op == DimOp::kConstant) return value;
        if (op == DimOp::kSymbol) return symbols[static_cast<std::size_t>(value)];
        const auto x = operands[0].evaluate(symbols);
        const auto y = operands[1].evaluate(symbols);
        if (!x || !y) return std::nullopt;
        const std::int64_t a = *x;
        const std::int64_t b = *y;
        switch (op) {
            case DimOp::kAdd: return a + b;
            case DimOp::kMul: return a * b;
            case DimOp::kTruncDiv: return b == 0 ? std::nullopt : std::optional(a / b);
            case DimOp::kFloorDiv: {
                if (b == 0) return std::nullopt;
                std::int64_t q = a / b;
                if (q * b != a && (a < 0) != (b < 0)) --q;
                return q;
            }
            case DimOp::kMod: {
                if (b == 0) return std::nullopt;
                std::int64_t r = a % b;
                if (r != 0 && (r < 0) != (b < 0)) r += b;
                return r;
            }
            case DimOp::kMin: return a < b ? a : b;
            case DimOp::kMax: return a < b ? b : a;
            case DimOp::kBroadcast: return a == 1 ? b : a;
            default: return std::nullopt;
        }
    }
};

class ExpressionSource {
public:
    ExpressionSource(std::uint64_t seed, int symbols) : random_(seed), symbols_(symbols) {}

    int pick(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }

    Expression make(int depth) {
        if (depth == 0 || pick(5) == 0) {
            if (pick(3) == 0) return {DimOp::kConstant, pick(9) - 2, {}};
            return {DimOp::kSymbol, pick(symbols_), {}};
        }
        constexpr DimOp kOps[] = {DimOp::kAdd, DimOp::kAdd,      DimOp::kAdd,      DimOp::kMul,
                                  DimOp::kMul, DimOp::kFloorDiv, DimOp::kTruncDiv, DimOp::kMod,
                                  DimOp::kMin, DimOp::kMax,      DimOp::kBroadcast};
        Expression e{kOps[pick(11)], 0, {}};
        e.operands.push_back(make(depth - 1));
        e.operands.push_back(make(depth - 1));
        return e;
    }

private:
    std::mt19937_64 random_;
    int symbols_;
};

}  // namespace flexor::types::testing
