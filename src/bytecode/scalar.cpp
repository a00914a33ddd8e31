#include "bytecode/scalar.h"

#include <cmath>
#include <limits>

#include "support/diagnostic.h"
#include "tensor/element.h"

namespace flexor::bytecode {

namespace {

constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

double as_real(const Value& value) { return value.is_float() ? value.real() : static_cast<double>(value.integer()); }

// -1, 0, 1, or 2 when NaN takes part. Exact between integers and floats: an x87 extended double holds both.
int compare(const Value& a, const Value& b) {
    if (!a.is_float() && !b.is_float()) return a.integer() < b.integer() ? -1 : (a.integer() > b.integer() ? 1 : 0);
    const long double x = a.is_float() ? static_cast<long double>(a.real()) : static_cast<long double>(a.integer());
    const long double y = b.is_float() ? static_cast<long double>(b.real()) : static_cast<long double>(b.integer());
    if (x < y) return -1;
    if (x > y) return 1;
    return x == y ? 0 : 2;
}

bool nonzero(const Value& value) { return value.is_float() ? value.real() != 0.0 : value.integer() != 0; }

Diagnostic wrong_kind(const Value& value) {
    return Diagnostic(DiagnosticId::kValueKindMismatch)
        .found(value.describe())
        .expected("a scalar")
        .hint(value.is_tensor() ? "ITEM reads a one-element tensor" : "");
}

Diagnostic overflow(std::int64_t a, const char* op, std::int64_t b) {
    return Diagnostic(DiagnosticId::kSizeOverflow)
        .found(std::to_string(a) + " " + op + " " + std::to_string(b))
        .expected("a result that fits in 64 bits");
}

Diagnostic zero_divisor(const Value& a) {
    return Diagnostic(DiagnosticId::kDivisionByZero).found(a.describe() + " divided by 0");
}

Expected<Value> integer_power(std::int64_t base, std::int64_t exponent) {
    std::int64_t result = 1, factor = base;
    for (std::int64_t left = exponent; left > 0; left >>= 1) {
        if ((left & 1) != 0 && __builtin_mul_overflow(result, factor, &result)) return overflow(base, "**", exponent);
        if (left > 1 && __builtin_mul_overflow(factor, factor, &factor)) return overflow(base, "**", exponent);
    }
    return Value(result);
}

Expected<Value> integer_arithmetic(ScalarOperator op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    switch (op) {
        case ScalarOperator::kAdd:
            if (__builtin_add_overflow(a, b, &result)) return overflow(a, "+", b);
            return Value(result);
        case ScalarOperator::kSub:
            if (__builtin_sub_overflow(a, b, &result)) return overflow(a, "-", b);
            return Value(result);
        case ScalarOperator::kMul:
            if (__builtin_mul_overflow(a, b, &result)) return overflow(a, "*", b);
            return Value(result);
        case ScalarOperator::kFloorDiv: {
            if (b == 0) return zero_divisor(Value(a));
            if (a == kInt64Min && b == -1) return overflow(a, "//", b);
            const std::int64_t q = a / b;
            return Value((a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q);
        }
        case ScalarOperator::kMod: {
            if (b == 0) return zero_divisor(Value(a));
            if (b == -1) return Value(std::int64_t{0});
            const std::int64_t r = a % b;
            return Value((r != 0 && ((r < 0) != (b < 0))) ? r + b : r);
        }
        default: break;
    }
    FLEXOR_UNREACHABLE();
}

double float_mod(double a, double b) {
    double r = std::fmod(a, b);
    if (r != 0.0) {
        if ((b < 0) != (r < 0)) r += b;
    } else {
        r = std::copysign(0.0, b);
    }
    return r;
}

double float_floor_div(double a, double b) {
    // As CPython: the quotient of what mod leaves, rounded to the nearest integer.
    const double mod = std::fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0.0 && ((b < 0) != (mod < 0))) div -= 1.0;
    if (div == 0.0) return std::copysign(0.0, a / b);
    double floored = std::floor(div);
    if (div - floored > 0.5) floored += 1.0;
    return floored;
}

Expected<Value> float_arithmetic(ScalarOperator op, double a, double b) {
    switch (op) {
        case ScalarOperator::kAdd: return Value(a + b);
        case ScalarOperator::kSub: return Value(a - b);
        case ScalarOperator::kMul: return Value(a * b);
        case ScalarOperator::kFloorDiv:
            if (b == 0.0) return zero_divisor(Value(a));
            return Value(float_floor_div(a, b));
        case ScalarOperator::kMod:
            if (b == 0.0) return zero_divisor(Value(a));
            return Value(float_mod(a, b));
        default: break;
    }
    FLEXOR_UNREACHABLE();
}

Expected<Value> power(const Value& a, const Value& b) {
    if (!a.is_float() && !b.is_float() && b.integer() >= 0) return integer_power(a.integer(), b.integer());
    const double x = as_real(a), y = as_real(b);
    if (x == 0.0 && y < 0.0) return zero_divisor(Value(1.0));
    if (x < 0.0 && std::isfinite(x) && std::isfinite(y) && std::floor(y) != y) {
        return Diagnostic(DiagnosticId::kValueKindMismatch)
            .found(a.describe() + " ** " + b.describe())
            .expected("a real result");
    }
    return Value(std::pow(x, y));
}

}  // namespace

Expected<Value> scalar_binary(ScalarOperator op, const Value& a, const Value& b) {
    if (op == ScalarOperator::kEq || op == ScalarOperator::kNe) {
        const bool want = op == ScalarOperator::kEq;
        if (a.is_scalar() && b.is_scalar()) return Value((compare(a, b) == 0) == want);
        if (a.is_string() && b.is_string()) return Value((a.text() == b.text()) == want);
        if (a.is_none() || b.is_none()) return Value((a.is_none() && b.is_none()) == want);
    }
    if (!a.is_scalar()) return wrong_kind(a);
    if (!b.is_scalar()) return wrong_kind(b);
    switch (op) {
        case ScalarOperator::kAdd:
        case ScalarOperator::kSub:
        case ScalarOperator::kMul:
        case ScalarOperator::kFloorDiv:
        case ScalarOperator::kMod:
            if (a.is_float() || b.is_float()) return float_arithmetic(op, as_real(a), as_real(b));
            return integer_arithmetic(op, a.integer(), b.integer());
        case ScalarOperator::kTrueDiv:
            if (!nonzero(b)) return zero_divisor(a);
            return Value(as_real(a) / as_real(b));
        case ScalarOperator::kPow: return power(a, b);
        case ScalarOperator::kMin: return compare(b, a) == -1 ? b : a;
        case ScalarOperator::kMax: return compare(b, a) == 1 ? b : a;
        case ScalarOperator::kEq: return Value(compare(a, b) == 0);
        case ScalarOperator::kNe: return Value(compare(a, b) != 0);
        case ScalarOperator::kLt: return Value(compare(a, b) == -1);
        case ScalarOperator::kLe: {
            const int order = compare(a, b);
            return Value(order == -1 || order == 0);
        }
        case ScalarOperator::kGt: return Value(compare(a, b) == 1);
        case ScalarOperator::kGe: {
            const int order = compare(a, b);
            return Value(order == 1 || order == 0);
        }
        case ScalarOperator::kAnd: return nonzero(a) ? b : a;
        case ScalarOperator::kOr: return nonzero(a) ? a : b;
        case ScalarOperator::kNeg:
        case ScalarOperator::kNot:
        case ScalarOperator::kToInt:
        case ScalarOperator::kToFloat:
        case ScalarOperator::kToBool: break;
    }
    FLEXOR_UNREACHABLE();
}

Expected<Value> scalar_unary(ScalarOperator op, const Value& a) {
    if (op == ScalarOperator::kNot) {
        FLEXOR_ASSIGN(const bool is_true, truth(a));
        return Value(!is_true);
    }
    if (op == ScalarOperator::kToBool) {
        FLEXOR_ASSIGN(const bool is_true, truth(a));
        return Value(is_true);
    }
    if (!a.is_scalar()) return wrong_kind(a);
    switch (op) {
        case ScalarOperator::kNeg:
            if (a.is_float()) return Value(-a.real());
            if (a.integer() == kInt64Min) return overflow(0, "-", a.integer());
            return Value(-a.integer());
        case ScalarOperator::kToInt:
            if (!a.is_float()) return Value(a.integer());
            if (!(a.real() >= -0x1p63 && a.real() < 0x1p63)) {
                return Diagnostic(DiagnosticId::kSizeOverflow)
                    .found(a.describe())
                    .expected("a number that fits in 64 bits");
            }
            return Value(static_cast<std::int64_t>(a.real()));
        case ScalarOperator::kToFloat: return Value(as_real(a));
        default: break;
    }
    FLEXOR_UNREACHABLE();
}

Expected<Value> item(const Value& value) {
    if (value.is_scalar()) return value;
    if (!value.is_tensor()) {
        return Diagnostic(DiagnosticId::kValueKindMismatch)
            .found(value.describe())
            .expected("a one-element tensor or a scalar");
    }
    const Tensor& tensor = value.tensor();
    if (tensor.numel() != 1) {
        return Diagnostic(DiagnosticId::kShapeMismatch)
            .found(value.describe())
            .expected("a tensor of exactly one element")
            .hint("its truth value or scalar value is ambiguous");
    }
    if (tensor.dtype() == DType::kBool) return Value(read_integer(tensor.dtype(), tensor.data(), 0) != 0);
    if (is_integer(tensor.dtype())) return Value(read_integer(tensor.dtype(), tensor.data(), 0));
    return Value(read_real(tensor.dtype(), tensor.data(), 0));
}

Expected<bool> truth(const Value& value) {
    if (value.is_scalar()) return nonzero(value);
    FLEXOR_ASSIGN(const Value scalar, item(value));
    return nonzero(scalar);
}

}  // namespace flexor::bytecode
