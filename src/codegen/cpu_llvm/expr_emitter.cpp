#include "codegen/cpu_llvm/expr_emitter.h"

#include <bit>

#include "support/check.h"
#include "types/half.h"

namespace flexor::codegen::cpu_llvm {

using loopir::ScalarOp;

Value ExprEmitter::constant(const loopir::Node& node, int lanes) {
    const Type t = ir_.vec(register_type(ir_, node.dtype), lanes);
    if (!is_floating(node.dtype)) return ir_.integer(t, node.constant_bits);
    const double value = std::bit_cast<double>(node.constant_bits);
    if (!is_half(node.dtype)) return ir_.fp(t, value);
    return ir_.integer(t, node.dtype == DType::kF16 ? types::f16_from_f64(value) : types::bf16_from_f64(value));
}

Value ExprEmitter::contractable(Value v) {
    if (LLVMIsAInstruction(v)) LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
    return v;
}

Value ExprEmitter::emit(ScalarOp op, DType dtype, DType operand_dtype, std::span<const Value> v,
                        const std::function<void(Value)>& zero_divisor) {
    if (op == ScalarOp::kCast) return convert(ir_, v[0], operand_dtype, dtype);
    if (op == ScalarOp::kSelect) return ir_.select(v[0], v[1], v[2]);
    if (is_half(operand_dtype) && loopir::scalar_class(op) != loopir::ScalarClass::kBits) {
        // Law L3 forbids arithmetic on halves; comparisons and the rest are well defined through float.
        std::array<Value, 3> wide{};
        for (size_t i = 0; i < v.size(); ++i) wide[i] = convert(ir_, v[i], operand_dtype, DType::kF32);
        const bool keeps = is_half(dtype);
        Value r = emit(op, keeps ? DType::kF32 : dtype, DType::kF32, std::span(wide.data(), v.size()), zero_divisor);
        return keeps ? convert(ir_, r, DType::kF32, dtype) : r;
    }
    switch (op) {
        case ScalarOp::kEq:
        case ScalarOp::kNe:
        case ScalarOp::kLt:
        case ScalarOp::kLe:
        case ScalarOp::kGt:
        case ScalarOp::kGe: return compare(op, operand_dtype, v[0], v[1]);
        case ScalarOp::kIsNan:
            if (is_floating(operand_dtype)) return ir_.is_nan(v[0]);
            return ir_.integer(ir_.with_element(Ir::type_of(v[0]), ir_.i1()), 0);
        case ScalarOp::kIsInf:
            if (is_floating(operand_dtype)) return math_.is_inf(v[0]);
            return ir_.integer(ir_.with_element(Ir::type_of(v[0]), ir_.i1()), 0);
        default: return is_floating(operand_dtype) ? emit_float(op, v) : emit_integer(op, dtype, v, zero_divisor);
    }
}

Value ExprEmitter::compare(ScalarOp op, DType operand_dtype, Value a, Value b) {
    if (is_floating(operand_dtype)) {
        switch (op) {
            case ScalarOp::kEq: return ir_.fcmp(LLVMRealOEQ, a, b);
            case ScalarOp::kNe: return ir_.fcmp(LLVMRealUNE, a, b);
            case ScalarOp::kLt: return ir_.fcmp(LLVMRealOLT, a, b);
            case ScalarOp::kLe: return ir_.fcmp(LLVMRealOLE, a, b);
            case ScalarOp::kGt: return ir_.fcmp(LLVMRealOGT, a, b);
            default: return ir_.fcmp(LLVMRealOGE, a, b);
        }
    }
    const bool is_signed = is_signed_integer(operand_dtype);
    switch (op) {
        case ScalarOp::kEq: return ir_.icmp(LLVMIntEQ, a, b);
        case ScalarOp::kNe: return ir_.icmp(LLVMIntNE, a, b);
        case ScalarOp::kLt: return ir_.icmp(is_signed ? LLVMIntSLT : LLVMIntULT, a, b);
        case ScalarOp::kLe: return ir_.icmp(is_signed ? LLVMIntSLE : LLVMIntULE, a, b);
        case ScalarOp::kGt: return ir_.icmp(is_signed ? LLVMIntSGT : LLVMIntUGT, a, b);
        default: return ir_.icmp(is_signed ? LLVMIntSGE : LLVMIntUGE, a, b);
    }
}

Value ExprEmitter::emit_float(ScalarOp op, std::span<const Value> v) {
    switch (op) {
        case ScalarOp::kAdd: return contractable(ir_.fadd(v[0], v[1]));
        case ScalarOp::kSub: return contractable(ir_.fsub(v[0], v[1]));
        case ScalarOp::kMul: return contractable(ir_.fmul(v[0], v[1]));
        case ScalarOp::kDiv: return ir_.fdiv(v[0], v[1]);
        case ScalarOp::kFma: return ir_.fma(v[0], v[1], v[2]);
        case ScalarOp::kFloorDiv: return math_.floor_div(v[0], v[1]);
        case ScalarOp::kTruncDiv: return math_.trunc_div(v[0], v[1]);
        case ScalarOp::kFloorMod: return math_.floor_mod(v[0], v[1]);
        case ScalarOp::kTruncMod: return math_.fmod(v[0], v[1]);
        case ScalarOp::kMax: return math_.max(v[0], v[1]);
        case ScalarOp::kMin: return math_.min(v[0], v[1]);
        case ScalarOp::kMaxNum: return math_.max_num(v[0], v[1]);
        case ScalarOp::kMinNum: return math_.min_num(v[0], v[1]);
        case ScalarOp::kPow: return math_.pow(v[0], v[1]);
        case ScalarOp::kAtan2: return math_.atan2(v[0], v[1]);
        case ScalarOp::kNeg: return ir_.fneg(v[0]);
        case ScalarOp::kAbs: return ir_.fabs(v[0]);
        case ScalarOp::kSign: return math_.sign(v[0]);
        case ScalarOp::kSqrt: return math_.sqrt(v[0]);
        case ScalarOp::kRsqrt: return math_.rsqrt(v[0]);
        case ScalarOp::kExp: return math_.exp(v[0]);
        case ScalarOp::kExp2: return math_.exp2(v[0]);
        case ScalarOp::kExpm1: return math_.expm1(v[0]);
        case ScalarOp::kLog: return math_.log(v[0]);
        case ScalarOp::kLog2: return math_.log2(v[0]);
        case ScalarOp::kLog10: return math_.log10(v[0]);
        case ScalarOp::kLog1p: return math_.log1p(v[0]);
        case ScalarOp::kSin: return math_.sin(v[0]);
        case ScalarOp::kCos: return math_.cos(v[0]);
        case ScalarOp::kTan: return math_.tan(v[0]);
        case ScalarOp::kTanh: return math_.tanh(v[0]);
        case ScalarOp::kErf: return math_.erf(v[0]);
        case ScalarOp::kSigmoid: return math_.sigmoid(v[0]);
        case ScalarOp::kFloor: return math_.floor(v[0]);
        case ScalarOp::kCeil: return math_.ceil(v[0]);
        case ScalarOp::kTrunc: return math_.trunc(v[0]);
        case ScalarOp::kRound: return math_.round_even(v[0]);
        default: FLEXOR_CHECK(!"operator without a floating form"); return v[0];
    }
}

Value ExprEmitter::emit_integer(ScalarOp op, DType dtype, std::span<const Value> v,
                                const std::function<void(Value)>& zero_divisor) {
    const bool is_signed = is_signed_integer(dtype);
    const Type t = Ir::type_of(v[0]);
    const int bits = Ir::int_bits(v[0]);
    auto choose = [&](LLVMIntPredicate p) { return ir_.select(ir_.icmp(p, v[0], v[1]), v[0], v[1]); };
    auto divide = [&](Value (VectorMath::*f)(Value, Value, bool)) {
        zero_divisor(ir_.icmp(LLVMIntEQ, v[1], 0));
        return (math_.*f)(v[0], v[1], is_signed);
    };
    switch (op) {
        case ScalarOp::kAdd: return dtype == DType::kBool ? ir_.bit_or(v[0], v[1]) : ir_.add(v[0], v[1]);
        case ScalarOp::kSub: return ir_.sub(v[0], v[1]);
        case ScalarOp::kMul: return ir_.mul(v[0], v[1]);
        case ScalarOp::kFloorDiv: return divide(&VectorMath::int_floor_div);
        case ScalarOp::kTruncDiv: return divide(&VectorMath::int_trunc_div);
        case ScalarOp::kFloorMod: return divide(&VectorMath::int_floor_mod);
        case ScalarOp::kTruncMod: return divide(&VectorMath::int_trunc_mod);
        case ScalarOp::kMax:
        case ScalarOp::kMaxNum: return choose(is_signed ? LLVMIntSGT : LLVMIntUGT);
        case ScalarOp::kMin:
        case ScalarOp::kMinNum: return choose(is_signed ? LLVMIntSLT : LLVMIntULT);
        case ScalarOp::kPow: return math_.int_pow(v[0], v[1], is_signed);
        case ScalarOp::kNeg: return ir_.sub(ir_.integer(t, 0), v[0]);
        case ScalarOp::kAbs:
            return is_signed ? ir_.select(ir_.icmp(LLVMIntSLT, v[0], 0), ir_.sub(ir_.integer(t, 0), v[0]), v[0]) : v[0];
        case ScalarOp::kSign: {
            Value positive = ir_.select(ir_.icmp(LLVMIntNE, v[0], 0), ir_.integer(t, 1), ir_.integer(t, 0));
            return is_signed ? ir_.select(ir_.icmp(LLVMIntSLT, v[0], 0), ir_.integer(t, -1), positive) : positive;
        }
        case ScalarOp::kAnd: return ir_.bit_and(v[0], v[1]);
        case ScalarOp::kOr: return ir_.bit_or(v[0], v[1]);
        case ScalarOp::kXor: return ir_.bit_xor(v[0], v[1]);
        case ScalarOp::kNot: return ir_.bit_not(v[0]);
        case ScalarOp::kShl: {
            Value fits = ir_.icmp(LLVMIntULT, v[1], bits);
            Value amount = ir_.select(fits, v[1], ir_.integer(t, 0));
            return ir_.select(fits, ir_.shl(v[0], amount), ir_.integer(t, 0));
        }
        case ScalarOp::kShr: {
            Value fits = ir_.icmp(LLVMIntULT, v[1], bits);
            Value amount = ir_.select(fits, v[1], ir_.integer(t, bits - 1));
            if (is_signed) return ir_.ashr(v[0], amount);
            return ir_.select(fits, ir_.lshr(v[0], amount), ir_.integer(t, 0));
        }
        default: FLEXOR_CHECK(!"operator without an integer form"); return v[0];
    }
}

int ExprEmitter::cost(ScalarOp op, DType dtype, DType operand_dtype) {
    const int wide = operand_dtype == DType::kF64 ? 2 : 1;
    switch (op) {
        case ScalarOp::kConst:
        case ScalarOp::kParam:
        case ScalarOp::kRowValue: return 0;
        case ScalarOp::kDiv:
        case ScalarOp::kSqrt: return 6 * wide;
        case ScalarOp::kRsqrt:
        case ScalarOp::kExp:
        case ScalarOp::kExp2: return 14 * wide;
        case ScalarOp::kErf:
        case ScalarOp::kTanh: return 18 * wide;
        case ScalarOp::kExpm1:
        case ScalarOp::kSigmoid:
        case ScalarOp::kLog:
        case ScalarOp::kLog1p:
        case ScalarOp::kLog2:
        case ScalarOp::kLog10:
        case ScalarOp::kAtan2: return 26 * wide;
        case ScalarOp::kSin:
        case ScalarOp::kCos:
        case ScalarOp::kTan: return 32 * wide;
        case ScalarOp::kPow: return 70 * wide;
        case ScalarOp::kFloorDiv:
        case ScalarOp::kFloorMod:
        case ScalarOp::kTruncMod: return 24;
        case ScalarOp::kTruncDiv: return 12;
        case ScalarOp::kMax:
        case ScalarOp::kMin:
        case ScalarOp::kMaxNum:
        case ScalarOp::kMinNum: return is_floating(dtype) ? 3 : 1;
        case ScalarOp::kCast:
            if (dtype == DType::kBF16) return operand_dtype == DType::kF64 ? 16 : 7;
            if (operand_dtype == DType::kBF16) return 2;
            return 2;
        default: return 1;
    }
}

}  // namespace flexor::codegen::cpu_llvm
