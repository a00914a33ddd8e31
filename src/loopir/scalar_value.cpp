#include "loopir/scalar_value.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/check.h"
#include "types/half.h"

namespace flexor::loopir {
namespace {

std::int64_t wrap(DType dtype, std::int64_t v) {
    switch (dtype) {
        case DType::kBool: return v != 0;
        case DType::kU8: return static_cast<std::uint8_t>(v);
        case DType::kI8: return static_cast<std::int8_t>(v);
        case DType::kI32: return static_cast<std::int32_t>(v);
        default: return v;
    }
}

double round_to(DType dtype, double v) {
    switch (dtype) {
        case DType::kF16: return types::f32_from_f16(types::f16_from_f64(v));
        case DType::kBF16: return types::f32_from_bf16(types::bf16_from_f64(v));
        case DType::kF32: return static_cast<float>(v);
        default: return v;
    }
}

std::int64_t int_from_float(DType to, double v) {
    const double whole = std::trunc(v);
    if (to == DType::kI64) {
        return -0x1p63 <= whole && whole < 0x1p63 ? static_cast<std::int64_t>(whole)
                                                  : std::numeric_limits<std::int64_t>::min();
    }
    const std::int32_t narrow = -0x1p31 <= whole && whole < 0x1p31 ? static_cast<std::int32_t>(whole)
                                                                   : std::numeric_limits<std::int32_t>::min();
    return wrap(to, narrow);
}

ScalarValue of_int(std::int64_t i) { return {i, 0}; }
ScalarValue of_float(double f) { return {0, f}; }

std::uint64_t u(std::int64_t v) { return static_cast<std::uint64_t>(v); }
std::int64_t s(std::uint64_t v) { return static_cast<std::int64_t>(v); }

// Exact quotient and remainder towards zero; the one overflow wraps.
std::int64_t quotient(std::int64_t a, std::int64_t b) { return b == -1 ? s(0 - u(a)) : a / b; }
std::int64_t remainder(std::int64_t a, std::int64_t b) { return b == -1 ? 0 : a % b; }

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0);
    std::uint64_t out = 1;
    std::uint64_t square = u(base);
    for (auto e = u(exponent); e != 0; e >>= 1) {
        if (e & 1) out *= square;
        square *= square;
    }
    return s(out);
}

std::int64_t apply_int(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b, bool& fault) {
    switch (op) {
        case ScalarOp::kAdd: return s(u(a) + u(b));
        case ScalarOp::kSub: return s(u(a) - u(b));
        case ScalarOp::kMul: return s(u(a) * u(b));
        case ScalarOp::kFloorDiv:
        case ScalarOp::kTruncDiv:
        case ScalarOp::kFloorMod:
        case ScalarOp::kTruncMod: {
            if (b == 0) {
                fault = true;
                return 0;
            }
            const std::int64_t r = remainder(a, b);
            const bool adjust = r != 0 && (r < 0) != (b < 0);
            if (op == ScalarOp::kTruncDiv) return quotient(a, b);
            if (op == ScalarOp::kTruncMod) return r;
            return op == ScalarOp::kFloorDiv ? quotient(a, b) - adjust : r + (adjust ? b : 0);
        }
        case ScalarOp::kMax:
        case ScalarOp::kMaxNum: return a > b ? a : b;
        case ScalarOp::kMin:
        case ScalarOp::kMinNum: return a < b ? a : b;
        case ScalarOp::kPow: return integer_power(a, b);
        case ScalarOp::kNeg: return s(0 - u(a));
        case ScalarOp::kAbs: return a < 0 ? s(0 - u(a)) : a;
        case ScalarOp::kSign: return (a > 0) - (a < 0);
        case ScalarOp::kAnd: return a & b;
        case ScalarOp::kOr: return a | b;
        case ScalarOp::kXor: return a ^ b;
        case ScalarOp::kNot: return dtype == DType::kBool ? a == 0 : ~a;
        case ScalarOp::kShl:
        case ScalarOp::kShr: {
            const auto bits = static_cast<std::int64_t>(dtype_size(dtype)) * 8;
            FLEXOR_CHECK(0 <= b && b < bits);
            return op == ScalarOp::kShl ? s(u(a) << b) : a >> b;  // u8 is held as a non-negative number
        }
        default: FLEXOR_UNREACHABLE();
    }
}

double floor_division(double a, double b, double (*round)(double)) {
    if (b == 0) return round(a / b);
    const double rest = std::fmod(a, b);
    double quotient = round(round(a - rest) / b);
    if (rest != 0 && (rest < 0) != (b < 0)) quotient = round(quotient - 1);
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double down = std::floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

// In f64; the caller rounds. Sums, differences, products, quotients and roots of f32 come out correctly rounded that
// way.
double apply_float(ScalarOp op, DType dtype, double a, double b, double c) {
    switch (op) {
        case ScalarOp::kAdd: return a + b;
        case ScalarOp::kSub: return a - b;
        case ScalarOp::kMul: return a * b;
        case ScalarOp::kDiv: return a / b;
        case ScalarOp::kFma:
            if (dtype == DType::kF32) {
                return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
            }
            return std::fma(a, b, c);
        case ScalarOp::kFloorDiv:
            return dtype == DType::kF32 ? floor_division(a, b, [](double v) -> double { return static_cast<float>(v); })
                                        : floor_division(a, b, [](double v) { return v; });
        case ScalarOp::kTruncDiv: return std::trunc(round_to(dtype, a / b));
        case ScalarOp::kFloorMod: {
            const double rest = std::fmod(a, b);
            return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        }
        case ScalarOp::kTruncMod: return std::fmod(a, b);
        case ScalarOp::kMax:
            return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : (a > b ? a : b);
        case ScalarOp::kMin:
            return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : (a < b ? a : b);
        case ScalarOp::kMaxNum: return std::fmax(a, b);
        case ScalarOp::kMinNum: return std::fmin(a, b);
        case ScalarOp::kPow: return std::pow(a, b);
        case ScalarOp::kAtan2: return std::atan2(a, b);
        case ScalarOp::kNeg: return -a;
        case ScalarOp::kAbs: return std::fabs(a);
        case ScalarOp::kSign: return std::isnan(a) || a == 0 ? a : (a > 0 ? 1 : -1);
        case ScalarOp::kSqrt: return std::sqrt(a);
        case ScalarOp::kRsqrt: return 1 / std::sqrt(a);
        case ScalarOp::kExp: return std::exp(a);
        case ScalarOp::kExp2: return std::exp2(a);
        case ScalarOp::kExpm1: return std::expm1(a);
        case ScalarOp::kLog: return std::log(a);
        case ScalarOp::kLog2: return std::log2(a);
        case ScalarOp::kLog10: return std::log10(a);
        case ScalarOp::kLog1p: return std::log1p(a);
        case ScalarOp::kSin: return std::sin(a);
        case ScalarOp::kCos: return std::cos(a);
        case ScalarOp::kTan: return std::tan(a);
        case ScalarOp::kTanh: return std::tanh(a);
        case ScalarOp::kErf: return std::erf(a);
        case ScalarOp::kSigmoid: return 1 / (1 + std::exp(-a));
        case ScalarOp::kFloor: return std::floor(a);
        case ScalarOp::kCeil: return std::ceil(a);
        case ScalarOp::kTrunc: return std::trunc(a);
        case ScalarOp::kRound: return std::nearbyint(a);
        default: FLEXOR_UNREACHABLE();
    }
}

template <class T>
bool compare(ScalarOp op, T a, T b) {
    switch (op) {
        case ScalarOp::kEq: return a == b;
        case ScalarOp::kNe: return a != b;
        case ScalarOp::kLt: return a < b;
        case ScalarOp::kLe: return a <= b;
        case ScalarOp::kGt: return a > b;
        case ScalarOp::kGe: return a >= b;
        case ScalarOp::kIsNan: return a != a;
        case ScalarOp::kIsInf:
            if constexpr (std::is_floating_point_v<T>) return std::isinf(a);
            return false;
        default: FLEXOR_UNREACHABLE();
    }
}

template <class T>
T read(const void* memory, std::int64_t element) {
    T out;
    std::memcpy(&out, static_cast<const char*>(memory) + element * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return out;
}

template <class T>
void write(void* memory, std::int64_t element, T value) {
    std::memcpy(static_cast<char*>(memory) + element * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

ScalarValue scalar_from_int(DType dtype, std::int64_t value) {
    if (!is_floating(dtype)) return of_int(wrap(dtype, value));
    // From the integer straight to the dtype; the 16-bit floats by way of f32.
    if (dtype == DType::kF64) return of_float(static_cast<double>(value));
    return of_float(round_to(dtype, static_cast<float>(value)));
}

ScalarValue scalar_from_double(DType dtype, double value) {
    if (is_floating(dtype)) return of_float(round_to(dtype, value));
    return of_int(dtype == DType::kBool ? value != 0 : int_from_float(dtype, value));
}

ScalarValue cast_scalar(ScalarValue value, DType from, DType to) {
    return is_floating(from) ? scalar_from_double(to, value.f) : scalar_from_int(to, value.i);
}

ScalarValue load_scalar(const void* memory, DType dtype, std::int64_t element) {
    switch (dtype) {
        case DType::kBool: return of_int(read<std::uint8_t>(memory, element) != 0);
        case DType::kU8: return of_int(read<std::uint8_t>(memory, element));
        case DType::kI8: return of_int(read<std::int8_t>(memory, element));
        case DType::kI32: return of_int(read<std::int32_t>(memory, element));
        case DType::kI64: return of_int(read<std::int64_t>(memory, element));
        case DType::kF16: return of_float(types::f32_from_f16(read<std::uint16_t>(memory, element)));
        case DType::kBF16: return of_float(types::f32_from_bf16(read<std::uint16_t>(memory, element)));
        case DType::kF32: return of_float(read<float>(memory, element));
        case DType::kF64: return of_float(read<double>(memory, element));
    }
    FLEXOR_UNREACHABLE();
}

void store_scalar(void* memory, DType dtype, std::int64_t element, ScalarValue value) {
    switch (dtype) {
        case DType::kBool: return write<std::uint8_t>(memory, element, value.i != 0);
        case DType::kU8: return write(memory, element, static_cast<std::uint8_t>(value.i));
        case DType::kI8: return write(memory, element, static_cast<std::int8_t>(value.i));
        case DType::kI32: return write(memory, element, static_cast<std::int32_t>(value.i));
        case DType::kI64: return write(memory, element, value.i);
        case DType::kF16: return write(memory, element, types::f16_from_f64(value.f));
        case DType::kBF16: return write(memory, element, types::bf16_from_f64(value.f));
        case DType::kF32: return write(memory, element, static_cast<float>(value.f));
        case DType::kF64: return write(memory, element, value.f);
    }
    FLEXOR_UNREACHABLE();
}

ScalarValue apply_scalar(ScalarOp op, DType operand, const ScalarValue* v, bool& fault) {
    const int arity = scalar_arity(op);
    const ScalarValue zero;
    const ScalarValue& b = arity > 1 ? v[1] : zero;
    if (op == ScalarOp::kSelect) return v[0].i != 0 ? v[1] : v[2];
    if (scalar_class(op) == ScalarClass::kCompare) {
        return of_int(is_floating(operand) ? compare(op, v[0].f, b.f) : compare(op, v[0].i, b.i));
    }
    if (!is_floating(operand)) return of_int(wrap(operand, apply_int(op, operand, v[0].i, b.i, fault)));
    return of_float(round_to(operand, apply_float(op, operand, v[0].f, b.f, arity > 2 ? v[2].f : 0)));
}

ScalarValue combine_identity(Combine combine, DType dtype) {
    const bool floating = is_floating(dtype);
    switch (combine) {
        case Combine::kSum:
        case Combine::kAny: return {};
        case Combine::kProd: return scalar_from_int(dtype, 1);
        case Combine::kAll: return of_int(1);
        case Combine::kMax:
        case Combine::kMin: {
            const bool is_max = combine == Combine::kMax;
            if (floating) return of_float(is_max ? -HUGE_VAL : HUGE_VAL);
            const std::int64_t highest = dtype == DType::kU8    ? 255
                                         : dtype == DType::kI8  ? 127
                                         : dtype == DType::kI32 ? std::numeric_limits<std::int32_t>::max()
                                                                : std::numeric_limits<std::int64_t>::max();
            const std::int64_t lowest = dtype == DType::kU8 ? 0 : -highest - 1;
            return of_int(is_max ? lowest : highest);
        }
        case Combine::kArgMax:
        case Combine::kArgMin: break;
    }
    FLEXOR_UNREACHABLE();
}

ScalarValue combine_scalars(Combine combine, DType dtype, ScalarValue a, ScalarValue b) {
    constexpr ScalarOp kOps[] = {ScalarOp::kAdd, ScalarOp::kMul, ScalarOp::kMax,
                                 ScalarOp::kMin, ScalarOp::kOr,  ScalarOp::kAnd};
    FLEXOR_CHECK(combine <= Combine::kAll);
    const ScalarValue operands[] = {a, b};
    bool fault = false;
    return apply_scalar(kOps[static_cast<std::size_t>(combine)], dtype, operands, fault);
}

}  // namespace flexor::loopir
