#include "codegen/triton/expression.h"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "support/check.h"
#include "support/text.h"

namespace flexor::codegen::triton {

using loopir::Combine;
using loopir::Node;
using loopir::ScalarOp;

namespace {

// Functions that expressions call, callees first. `needs` are the functions that one calls itself.
struct Helper {
    std::string_view name;
    std::string_view needs;
    std::string_view text;
};

constexpr Helper kHelpers[] = {
    {"_add", "", "def _add(a, b):\n    return a + b\n"},
    {"_mul", "", "def _mul(a, b):\n    return a * b\n"},
    {"_or", "", "def _or(a, b):\n    return a | b\n"},
    {"_and", "", "def _and(a, b):\n    return a & b\n"},
    {"_max", "", "def _max(a, b):\n    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)\n"},
    {"_min", "", "def _min(a, b):\n    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)\n"},
    {"_max_f64", "", "def _max_f64(a, b):\n    return tl.where((a > b) | (a != a), a, b)\n"},
    {"_min_f64", "", "def _min_f64(a, b):\n    return tl.where((a < b) | (a != a), a, b)\n"},
    {"_max_num", "", "def _max_num(a, b):\n    return tl.where((a > b) | (b != b), a, b)\n"},
    {"_min_num", "", "def _min_num(a, b):\n    return tl.where((a < b) | (b != b), a, b)\n"},
    // Position -1 is no value at all.
    {"_argmax", "", R"(def _argmax(a, i, b, j):
    wins = ((b > a) & (a == a)) | ((b != b) & (a == a)) | (((a == b) | ((a != a) & (b != b))) & (j < i))
    take = (j >= 0) & ((i < 0) | wins)
    return tl.where(take, b, a), tl.where(take, j, i)
)"},
    {"_argmin", "", R"(def _argmin(a, i, b, j):
    wins = ((b < a) & (a == a)) | ((b != b) & (a == a)) | (((a == b) | ((a != a) & (b != b))) & (j < i))
    take = (j >= 0) & ((i < 0) | wins)
    return tl.where(take, b, a), tl.where(take, j, i)
)"},
    // Out of range and NaN give the minimum.
    {"_to_int32", "", R"(def _to_int32(x):
    whole = libdevice.trunc(x)
    fits = (whole >= -2147483648.0) & (whole < 2147483648.0)
    return tl.where(fits, tl.cast(tl.where(fits, whole, 0.0), tl.int32), -2147483648)
)"},
    {"_to_int64", "", R"(def _to_int64(x):
    whole = libdevice.trunc(x)
    fits = (whole >= -9223372036854775808.0) & (whole < 9223372036854775808.0)
    return tl.where(fits, tl.cast(tl.where(fits, whole, 0.0), tl.int64), -9223372036854775808)
)"},
    // Integer division: a zero divisor gives 0, and the one overflow wraps.
    {"_divisor", "", "def _divisor(b):\n    return tl.where((b == 0) | (b == -1), 1, b)\n"},
    {"_trunc_div", "_divisor", R"(def _trunc_div(a, b):
    return tl.where(b == 0, 0, tl.where(b == -1, -a, a // _divisor(b)))
)"},
    {"_trunc_mod", "_divisor", R"(def _trunc_mod(a, b):
    return tl.where((b == 0) | (b == -1), 0, a % _divisor(b))
)"},
    {"_floor_div", "_trunc_div _trunc_mod", R"(def _floor_div(a, b):
    rest = _trunc_mod(a, b)
    down = (rest != 0) & ((rest < 0) != (b < 0))
    return _trunc_div(a, b) - tl.cast(down, a.dtype)
)"},
    {"_floor_mod", "_trunc_mod", R"(def _floor_mod(a, b):
    rest = _trunc_mod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
)"},
    {"_pow_int", "", R"(def _pow_int(base, exponent):
    odd = (exponent & 1) != 0
    minus = tl.where(odd, -1, 1)
    below = tl.where(base == 1, 1, tl.where(base == -1, minus, 0))
    power = tl.cast(tl.where(exponent < 0, below, 1), base.dtype)
    square = base
    rest = tl.where(exponent < 0, 0, exponent)
    for _ in range(64):
        power = tl.where((rest & 1) != 0, power * square, power)
        square = square * square
        rest = rest >> 1
    return power
)"},
    {"_floor_div_float", "", R"(def _floor_div_float(a, b):
    plain = libdevice.div_rn(a, b)
    rest = libdevice.fmod(a, b)
    quotient = libdevice.div_rn(a - rest, b)
    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    down = libdevice.floor(quotient)
    whole = tl.where(quotient - down > 0.5, down + 1, down)
    whole = tl.where(quotient == 0, libdevice.copysign(whole * 0, plain), whole)
    return tl.where(b == 0, plain, whole)
)"},
    {"_floor_mod_float", "", R"(def _floor_mod_float(a, b):
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
)"},
    {"_sigmoid", "", R"(def _sigmoid(x):
    up = 1 + libdevice.exp(-x)
    return libdevice.div_rn(tl.full(up.shape, 1, up.dtype), up)
)"},
    // The processor's own approximations, within 2 ulp but for denormals, which count as 0.
    {"_quick_exp2", "", R"(def _quick_exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
)"},
    {"_quick_inverse", "", R"(def _quick_inverse(x):
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
)"},
    // 1 + erf(x), within 4e-7: erfc(|x|) is exp(-x^2) times a polynomial of 1 / (1 + 0.34 |x|).
    {"_erf_up", "_quick_exp2 _quick_inverse", R"(def _erf_up(x):
    size = tl.abs(x)
    t = _quick_inverse(1 + 0.34 * size)
    p = (-0.24418036862196085 * t + 1.0736698179527182) * t - 1.2222219043335196
    p = ((p * t + 1.1796866689860896) * t - 0.2667280653342388) * t + 0.29877929955302185
    p = (p * t + 0.18099455359130465) * t
    p = p * _quick_exp2(size * size * -1.4426950408889634)
    return tl.where(x < 0, p, 2 - p)
)"},
    // 1 + erf(x) for 16-bit floats, within 1e-6 and 4e-4 of itself: erfc(|x|) is 2 to the power of a polynomial.
    {"_short_erf_up", "_quick_exp2", R"(def _short_erf_up(x):
    size = tl.abs(x)
    p = (-1.4148726222629193e-05 * size + 0.00039351877057924867) * size - 0.004708866588771343
    p = ((p * size + 0.0326070562005043) * size - 0.15092438459396362) * size - 0.9178062677383423
    p = _quick_exp2((p * size - 1.627956748008728) * size)
    return tl.where(x < 0, p, 2 - p)
)"},
    {"_short_tanh_up", "_quick_exp2 _quick_inverse", R"(def _short_tanh_up(x):
    return 2 * _quick_inverse(1 + _quick_exp2(x * -2.8853900817779268))
)"},
    {"_short_sigmoid", "_quick_exp2 _quick_inverse", R"(def _short_sigmoid(x):
    return _quick_inverse(1 + _quick_exp2(x * -1.4426950408889634))
)"},
    {"_rsqrt", "", R"(def _rsqrt(x):
    root = libdevice.sqrt_rn(x)
    return libdevice.div_rn(tl.full(root.shape, 1, root.dtype), root)
)"},
};

bool is_narrow(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }
bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

std::string infix(const std::string& a, std::string_view op, const std::string& b) {
    return a + " " + std::string(op) + " " + b;
}

std::string cast_text(const std::string& name, DType to) {
    return "tl.cast(" + name + ", " + std::string(dtype_text(to)) + ")";
}

std::string float_text(double value) {
    if (std::isnan(value)) return "float(\"nan\")";
    if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    return support::text_from_double(value);
}

// The function of libdevice, exact to 2 ulp and without flushing of denormals, that an operator is.
std::optional<std::string_view> library_function(ScalarOp op) {
    switch (op) {
        case ScalarOp::kSqrt: return "sqrt_rn";
        case ScalarOp::kExp: return "exp";
        case ScalarOp::kExp2: return "exp2";
        case ScalarOp::kExpm1: return "expm1";
        case ScalarOp::kLog: return "log";
        case ScalarOp::kLog2: return "log2";
        case ScalarOp::kLog10: return "log10";
        case ScalarOp::kLog1p: return "log1p";
        case ScalarOp::kSin: return "sin";
        case ScalarOp::kCos: return "cos";
        case ScalarOp::kTan: return "tan";
        case ScalarOp::kTanh: return "tanh";
        case ScalarOp::kErf: return "erf";
        case ScalarOp::kFloor: return "floor";
        case ScalarOp::kCeil: return "ceil";
        case ScalarOp::kTrunc: return "trunc";
        case ScalarOp::kRound: return "rint";
        case ScalarOp::kDiv: return "div_rn";
        case ScalarOp::kPow: return "pow";
        case ScalarOp::kAtan2: return "atan2";
        case ScalarOp::kTruncMod: return "fmod";
        case ScalarOp::kFma: return "fma";
        default: return std::nullopt;
    }
}

}  // namespace

std::string_view dtype_text(DType dtype) {
    switch (dtype) {
        case DType::kBool: return "tl.int1";
        case DType::kU8: return "tl.uint8";
        case DType::kI8: return "tl.int8";
        case DType::kI32: return "tl.int32";
        case DType::kI64: return "tl.int64";
        case DType::kF16: return "tl.float16";
        case DType::kBF16: return "tl.bfloat16";
        case DType::kF32: return "tl.float32";
        case DType::kF64: return "tl.float64";
    }
    FLEXOR_UNREACHABLE();
}

std::string_view pointee_text(DType dtype) {
    switch (dtype) {
        case DType::kBool:
        case DType::kU8: return "u8";
        case DType::kI8: return "i8";
        case DType::kI32: return "i32";
        case DType::kI64: return "i64";
        case DType::kF16: return "fp16";
        case DType::kBF16: return "bf16";
        case DType::kF32: return "fp32";
        case DType::kF64: return "fp64";
    }
    FLEXOR_UNREACHABLE();
}

std::string int_text(std::int64_t value) {
    return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
}

std::string constant_text(const Node& n) {
    std::string value;
    if (is_floating(n.dtype))
        value = float_text(std::bit_cast<double>(n.constant_bits));
    else if (n.dtype == DType::kBool)
        value = n.constant_bits != 0 ? "True" : "False";
    else
        value = std::to_string(n.constant_bits);
    return "tl.full((), " + value + ", " + std::string(dtype_text(n.dtype)) + ")";
}

std::string identity_text(Combine combine, DType dtype) {
    switch (combine) {
        case Combine::kSum:
        case Combine::kAny:
        case Combine::kArgMax:
        case Combine::kArgMin: return "0";
        case Combine::kProd:
        case Combine::kAll: return "1";
        case Combine::kMax:
        case Combine::kMin: break;
    }
    const bool lowest = combine == Combine::kMax;
    if (is_floating(dtype)) return float_text(lowest ? -HUGE_VAL : HUGE_VAL);
    switch (dtype) {
        case DType::kU8: return lowest ? "0" : "255";
        case DType::kI8: return lowest ? "-128" : "127";
        case DType::kI32: return lowest ? "-2147483648" : "2147483647";
        default: return lowest ? "-9223372036854775808" : "9223372036854775807";
    }
}

std::string Expressions::call(std::string_view helper, std::string arguments) {
    for (const Helper& h : kHelpers) {
        if (h.name != helper) continue;
        if (!used_.emplace(h.name).second || h.needs.empty()) break;
        for (const std::string_view callee : support::split(h.needs, ' ')) call(callee, "");
        break;
    }
    return std::string(helper) + "(" + std::move(arguments) + ")";
}

std::string Expressions::definitions() const {
    std::string out;
    for (const Helper& h : kHelpers) {
        if (used_.contains(h.name)) out += "@triton.jit\n" + std::string(h.text) + "\n\n";
    }
    return out;
}

std::string Expressions::combine(Combine combine, DType dtype) {
    const bool wide = dtype == DType::kF64;
    std::string_view name;
    switch (combine) {
        case Combine::kSum: name = "_add"; break;
        case Combine::kProd: name = "_mul"; break;
        case Combine::kMax: name = wide ? "_max_f64" : "_max"; break;
        case Combine::kMin: name = wide ? "_min_f64" : "_min"; break;
        case Combine::kAny: name = "_or"; break;
        case Combine::kAll: name = "_and"; break;
        case Combine::kArgMax: name = "_argmax"; break;
        case Combine::kArgMin: name = "_argmin"; break;
    }
    call(name, "");
    return std::string(name);
}

std::string Expressions::cast(const std::string& name, DType from, DType to) {
    if (from == to) return name;
    if (to == DType::kBool) return infix(name, "!=", "0");
    if (is_floating(from) && is_integer(to)) {
        const std::string wide = is_half(from) ? cast_text(name, DType::kF32) : name;
        if (to == DType::kI64) return call("_to_int64", wide);
        const std::string whole = call("_to_int32", wide);
        return to == DType::kI32 ? whole : cast_text(whole, to);
    }
    // The 16-bit floats are reached from f32, as the evaluator does it.
    if (is_half(to) && from != DType::kF32) return cast_text(cast_text(name, DType::kF32), to);
    if (is_half(from) && to == DType::kF64) return cast_text(cast_text(name, DType::kF32), to);
    return cast_text(name, to);
}

std::string Expressions::compare(ScalarOp op, DType operand, const std::string (&names)[3]) {
    if (op == ScalarOp::kIsNan) return infix(names[0], "!=", names[0]);
    if (op == ScalarOp::kIsInf) {
        return is_floating(operand) ? "tl.abs(" + names[0] + ") == float(\"inf\")" : infix(names[0], "!=", names[0]);
    }
    // One bit has no order of its own.
    const bool bits = operand == DType::kBool;
    const std::string a = bits ? cast_text(names[0], DType::kI32) : names[0];
    const std::string b = bits ? cast_text(names[1], DType::kI32) : names[1];
    switch (op) {
        case ScalarOp::kEq: return infix(a, "==", b);
        case ScalarOp::kNe: return infix(a, "!=", b);
        case ScalarOp::kLt: return infix(a, "<", b);
        case ScalarOp::kLe: return infix(a, "<=", b);
        case ScalarOp::kGt: return infix(a, ">", b);
        case ScalarOp::kGe: return infix(a, ">=", b);
        default: FLEXOR_UNREACHABLE();
    }
}

std::string Expressions::floating(ScalarOp op, DType dtype, const std::string (&names)[3]) {
    const bool wide = dtype == DType::kF64;
    const std::string& a = names[0];
    const std::string& b = names[1];
    if (const auto name = library_function(op)) {
        std::string arguments = a;
        for (int i = 1; i < loopir::scalar_arity(op); ++i) arguments += ", " + names[i];
        return "libdevice." + std::string(*name) + "(" + arguments + ")";
    }
    switch (op) {
        case ScalarOp::kAdd: return infix(a, "+", b);
        case ScalarOp::kSub: return infix(a, "-", b);
        case ScalarOp::kMul: return infix(a, "*", b);
        case ScalarOp::kFloorDiv: return call("_floor_div_float", a + ", " + b);
        case ScalarOp::kFloorMod: return call("_floor_mod_float", a + ", " + b);
        case ScalarOp::kTruncDiv: return "libdevice.trunc(libdevice.div_rn(" + a + ", " + b + "))";
        case ScalarOp::kMax: return call(wide ? "_max_f64" : "_max", a + ", " + b);
        case ScalarOp::kMin: return call(wide ? "_min_f64" : "_min", a + ", " + b);
        case ScalarOp::kMaxNum: return call("_max_num", a + ", " + b);
        case ScalarOp::kMinNum: return call("_min_num", a + ", " + b);
        case ScalarOp::kNeg: return "-" + a;
        case ScalarOp::kAbs: return "tl.abs(" + a + ")";
        case ScalarOp::kSign: return "tl.where(" + a + " > 0, 1.0, tl.where(" + a + " < 0, -1.0, " + a + "))";
        case ScalarOp::kSigmoid: return call("_sigmoid", a);
        case ScalarOp::kRsqrt: return call("_rsqrt", a);
        default: FLEXOR_UNREACHABLE();
    }
}

std::string Expressions::integer(ScalarOp op, DType dtype, const std::string (&names)[3]) {
    const std::string& a = names[0];
    const std::string& b = names[1];
    // Division and powers of the narrow integers are those of 32 bits, cut off.
    const auto widened = [&](std::string_view helper) {
        if (!is_narrow(dtype)) return call(helper, a + ", " + b);
        return cast_text(call(helper, cast_text(a, DType::kI32) + ", " + cast_text(b, DType::kI32)), dtype);
    };
    switch (op) {
        case ScalarOp::kAdd: return infix(a, "+", b);
        case ScalarOp::kSub: return infix(a, "-", b);
        case ScalarOp::kMul: return infix(a, "*", b);
        case ScalarOp::kFloorDiv: return widened("_floor_div");
        case ScalarOp::kTruncDiv: return widened("_trunc_div");
        case ScalarOp::kFloorMod: return widened("_floor_mod");
        case ScalarOp::kTruncMod: return widened("_trunc_mod");
        case ScalarOp::kPow: return widened("_pow_int");
        case ScalarOp::kMax:
        case ScalarOp::kMaxNum: return "tl.maximum(" + a + ", " + b + ")";
        case ScalarOp::kMin:
        case ScalarOp::kMinNum: return "tl.minimum(" + a + ", " + b + ")";
        case ScalarOp::kNeg: return "-" + a;
        case ScalarOp::kAbs: return dtype == DType::kU8 ? a : "tl.abs(" + a + ")";
        case ScalarOp::kSign: return infix(cast_text(a + " > 0", dtype), "-", cast_text(a + " < 0", dtype));
        case ScalarOp::kAnd: return infix(a, "&", b);
        case ScalarOp::kOr: return infix(a, "|", b);
        case ScalarOp::kXor: return infix(a, "^", b);
        case ScalarOp::kNot: return dtype == DType::kU8 ? "255 - " + a : "~" + a;
        case ScalarOp::kShl: return infix(a, "<<", b);
        case ScalarOp::kShr: return infix(a, ">>", b);
        default: FLEXOR_UNREACHABLE();
    }
}

std::optional<std::string> Expressions::short_function(ScalarOp op, const std::string (&names)[3]) {
    switch (op) {
        case ScalarOp::kExp: return call("_quick_exp2", names[0] + " * 1.4426950408889634");
        case ScalarOp::kSigmoid: return call("_short_sigmoid", names[0]);
        case ScalarOp::kDiv: return infix(names[0], "/", names[1]);
        default: return std::nullopt;
    }
}

std::string Expressions::apply(const Node& node, DType operand, const std::string (&names)[3]) {
    if (node.op == ScalarOp::kSelect) return "tl.where(" + names[0] + ", " + names[1] + ", " + names[2] + ")";
    if (node.op == ScalarOp::kCast) return cast(names[0], operand, node.dtype);
    if (loopir::scalar_class(node.op) == loopir::ScalarClass::kCompare) return compare(node.op, operand, names);
    return is_floating(operand) ? floating(node.op, operand, names) : integer(node.op, operand, names);
}

}  // namespace flexor::codegen::triton
