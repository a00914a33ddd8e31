// Scalar operators. Constants are folded by the interpreter's own arithmetic; run-time integers and truth values are
// dims (a truth value is 0 or 1); run-time floats are registers.
#include <cmath>

#include "bytecode/scalar.h"
#include "specialize/specializer.h"

namespace flexor::specialize {

using bytecode::ScalarOperator;
using specialised::RealOp;
using Kind = LiveValue::Kind;

// 1 if a <= b else 0.
Dim Specializer::less_equal(const Dim& a, const Dim& b) { return Dim::min(Dim::max(b - a + Dim(1), 0), 1); }

Dim Specializer::equal(const Dim& a, const Dim& b) { return less_equal(a, b) * less_equal(b, a); }

Dim Specializer::truth(const LiveValue& value) const {
    if (value.kind == Kind::kBool) return value.integer;
    switch (program_.env.eq(value.integer, 0)) {
        case Truth::kTrue: return 0;
        case Truth::kFalse: return 1;
        case Truth::kUnknown: break;
    }
    return Dim(1) - equal(value.integer, 0);
}

namespace {

bool is_constant(const LiveValue& v) { return v.kind == Kind::kFloat || (is_integral(v) && v.integer.is_constant()); }

LiveValue make(Kind kind, Dim d) {
    LiveValue v;
    v.kind = kind;
    v.integer = std::move(d);
    return v;
}

bool is_zero_constant(const LiveValue& v) {
    return v.kind == Kind::kFloat ? v.real == 0 : is_integral(v) && v.integer.is_constant(0);
}

Value value_of(const LiveValue& v) {
    if (v.kind == Kind::kFloat) return Value(v.real);
    return v.kind == Kind::kBool ? Value(v.integer.constant() != 0) : Value(v.integer.constant());
}

LiveValue live_value_of(const Value& v) {
    if (!v.is_float()) return make(v.is_bool() ? Kind::kBool : Kind::kInt, v.integer());
    LiveValue out;
    out.kind = Kind::kFloat;
    out.real = v.real();
    return out;
}

// Whether a double holds the integer exactly, so that comparing doubles compares the numbers.
bool is_exact(std::int64_t i) { return i >= -(std::int64_t{1} << 53) && i <= std::int64_t{1} << 53; }

}  // namespace

bool Specializer::is_float(const LiveValue& v) const {
    return v.kind == Kind::kFloat ||
           (v.kind == Kind::kReg && program_.registers[v.reg].type.strength == types::Strength::kScalar);
}

Reg Specializer::float_register() {
    ops::ArgType type;
    type.type.dtype = DType::kF64;
    type.strength = types::Strength::kScalar;
    return new_register(std::move(type));
}

// The register that holds a number as a double.
Reg Specializer::real_operand(const LiveValue& v, std::int32_t pc) {
    if (v.kind == Kind::kReg) return v.reg;
    Inst inst;
    if (is_constant(v)) {
        inst.kind = InstKind::kConst;
        inst.constant = ConstScalar{v.kind == Kind::kFloat ? v.real : static_cast<double>(v.integer.constant())};
    } else {
        inst.kind = InstKind::kReal;
        inst.real = RealOp::kOfInt;
        inst.dim = v.integer;
    }
    const Reg reg = float_register();
    inst.results = {reg};
    emit(std::move(inst), pc);
    return reg;
}

LiveValue Specializer::as_float(const LiveValue& integer, std::int32_t pc) {
    LiveValue out;
    if (is_constant(integer)) {
        out.kind = Kind::kFloat;
        out.real = static_cast<double>(integer.integer.constant());
        return out;
    }
    out.kind = Kind::kReg;
    out.reg = real_operand(integer, pc);
    return out;
}

LiveValue Specializer::real(RealOp op, std::span<const LiveValue> operands, std::int32_t pc) {
    Inst inst;
    inst.kind = InstKind::kReal;
    inst.real = op;
    for (const LiveValue& v : operands) inst.operands.push_back(real_operand(v, pc));
    LiveValue out;
    if (specialised::is_comparison(op)) {
        inst.symbol = program_.env.add_symbol("compare" + std::to_string(pc), {0, 1});
        out = make(Kind::kBool, Dim::symbol(inst.symbol));
    } else {
        out.kind = Kind::kReg;
        out.reg = float_register();
        inst.results = {out.reg};
    }
    emit(std::move(inst), pc);
    return out;
}

bool Specializer::scalar(ScalarOperator op, std::int32_t pc, State& state) {
    const std::size_t count = bytecode::is_unary(op) ? 1 : 2;
    const std::size_t base = state.stack.size() - count;
    std::vector<LiveValue> operands(state.stack.begin() + static_cast<std::ptrdiff_t>(base), state.stack.end());
    bool constant = true, numbers = true, integral = true;
    for (LiveValue& v : operands) {
        if (is_integral(v)) v.integer = program_.env.simplify(v.integer);
        constant = constant && is_constant(v);
        integral = integral && is_integral(v);
        numbers = numbers && (is_integral(v) || is_float(v));
    }
    if (!numbers) return refuse("scalar arithmetic on something else than numbers");
    std::optional<LiveValue> result;
    if (constant) {
        const Value a = value_of(operands[0]);
        auto folded =
            count == 1 ? bytecode::scalar_unary(op, a) : bytecode::scalar_binary(op, a, value_of(operands[1]));
        if (!folded) return refuse("scalar arithmetic that raises: " + folded.error().code());
        result = live_value_of(*folded);
    } else if (!integral || op == ScalarOperator::kTrueDiv || op == ScalarOperator::kToFloat) {
        result = real_scalar(op, operands, pc);
    } else {
        result = integral_scalar(op, operands);
    }
    if (!result) return !stopped() && refuse("a scalar operator that the interpreter alone knows");
    state.stack.resize(base);
    state.stack.push_back(std::move(*result));
    return true;
}

// None: the interpreter's.
std::optional<LiveValue> Specializer::integral_scalar(ScalarOperator op, std::span<const LiveValue> operands) {
    const auto& env = program_.env;
    const LiveValue& a = operands[0];
    const Dim& x = a.integer;
    switch (op) {
        case ScalarOperator::kNeg: return make(Kind::kInt, -x);
        case ScalarOperator::kNot: return make(Kind::kBool, Dim(1) - truth(a));
        case ScalarOperator::kToInt: return make(Kind::kInt, x);
        case ScalarOperator::kToBool: return make(Kind::kBool, truth(a));
        default: break;
    }
    const LiveValue& b = operands[1];
    const Dim& y = b.integer;
    const bool bools = a.kind == Kind::kBool && b.kind == Kind::kBool;
    const auto decided = [&](Truth t, Dim otherwise) {
        if (t == Truth::kTrue) return make(Kind::kBool, 1);
        if (t == Truth::kFalse) return make(Kind::kBool, 0);
        return make(Kind::kBool, std::move(otherwise));
    };
    switch (op) {
        case ScalarOperator::kAdd: return make(Kind::kInt, env.simplify(x + y));
        case ScalarOperator::kSub: return make(Kind::kInt, env.simplify(x - y));
        case ScalarOperator::kMul: return make(Kind::kInt, env.simplify(x * y));
        case ScalarOperator::kFloorDiv:
        case ScalarOperator::kMod:
            if (env.eq(y, 0) != Truth::kFalse) {
                refuse("an integer division whose divisor may be 0");
                return std::nullopt;
            }
            return make(Kind::kInt, env.simplify(op == ScalarOperator::kMod ? Dim::mod(x, y) : Dim::floor_div(x, y)));
        case ScalarOperator::kMin:
        case ScalarOperator::kMax:
            if (a.kind != b.kind) return std::nullopt;  // the result is of the kind of the one that is chosen
            return make(a.kind, env.simplify(op == ScalarOperator::kMin ? Dim::min(x, y) : Dim::max(x, y)));
        case ScalarOperator::kEq: return decided(env.eq(x, y), equal(x, y));
        case ScalarOperator::kNe: return decided(types::ShapeEnv::negate(env.eq(x, y)), Dim(1) - equal(x, y));
        case ScalarOperator::kLe: return decided(env.le(x, y), less_equal(x, y));
        case ScalarOperator::kLt: return decided(env.lt(x, y), Dim(1) - less_equal(y, x));
        case ScalarOperator::kGe: return decided(env.le(y, x), less_equal(y, x));
        case ScalarOperator::kGt: return decided(env.lt(y, x), Dim(1) - less_equal(x, y));
        case ScalarOperator::kAnd:
            if (bools) return make(Kind::kBool, x * y);
            return std::nullopt;
        case ScalarOperator::kOr:
            if (bools) return make(Kind::kBool, Dim::max(x, y));
            return std::nullopt;
        default: return std::nullopt;
    }
}

// None: the interpreter's.
std::optional<LiveValue> Specializer::real_scalar(ScalarOperator op, std::span<const LiveValue> operands,
                                                  std::int32_t pc) {
    const auto compared = [&](RealOp real_op, bool swap) -> std::optional<LiveValue> {
        for (const LiveValue& v : operands) {
            if (is_integral(v) && !(v.integer.is_constant() && is_exact(v.integer.constant()))) return std::nullopt;
        }
        const std::array<LiveValue, 2> both = {operands[swap ? 1 : 0], operands[swap ? 0 : 1]};
        return real(real_op, both, pc);
    };
    const auto negated = [](std::optional<LiveValue> value) {
        if (value) value->integer = Dim(1) - value->integer;
        return value;
    };
    const auto is_zero = [&] {
        LiveValue zero;
        zero.kind = Kind::kFloat;
        const std::array<LiveValue, 2> both = {operands[0], zero};
        return real(RealOp::kEq, both, pc);
    };
    switch (op) {
        case ScalarOperator::kAdd: return real(RealOp::kAdd, operands, pc);
        case ScalarOperator::kSub: return real(RealOp::kSub, operands, pc);
        case ScalarOperator::kMul: return real(RealOp::kMul, operands, pc);
        case ScalarOperator::kTrueDiv:
            if (is_zero_constant(operands[1])) return std::nullopt;
            return real(RealOp::kDiv, operands, pc);
        case ScalarOperator::kNeg: return real(RealOp::kNeg, operands, pc);
        case ScalarOperator::kToFloat: {
            LiveValue out;
            out.kind = Kind::kReg;
            out.reg = real_operand(operands[0], pc);
            return out;
        }
        case ScalarOperator::kNot: return is_zero();
        case ScalarOperator::kToBool: return negated(is_zero());
        case ScalarOperator::kEq: return compared(RealOp::kEq, false);
        case ScalarOperator::kNe: return negated(compared(RealOp::kEq, false));
        case ScalarOperator::kLt: return compared(RealOp::kLt, false);
        case ScalarOperator::kLe: return compared(RealOp::kLe, false);
        case ScalarOperator::kGt: return compared(RealOp::kLt, true);
        case ScalarOperator::kGe: return compared(RealOp::kLe, true);
        default: return std::nullopt;
    }
}

}  // namespace flexor::specialize
