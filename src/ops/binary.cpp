// Element-by-element functions of two or more tensors.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using loopir::BodyBuilder;
using loopir::NodeId;
using S = loopir::ScalarOp;
using NodeArgs = std::span<const NodeId>;
using SampleMaker = std::vector<Sample> (*)();
using I = std::int64_t;

OpDef binary_entry(std::string_view name, std::string_view summary, std::span<const OperandSpec> operands,
                   DTypeRule dtype, Reference reference, MapLower lower, Samples samples, Names names,
                   std::span<const AttrSpec> attrs = {}) {
    static const std::span<const Constraint> constraints = keep<Constraint>({{rules::kBroadcastText}});
    return {.name = {name},
            .summary = {summary},
            .constraints = {constraints},
            .operands = {operands},
            .attrs = {attrs},
            .dtype = {dtype},
            .shape = {rules::broadcast_shape},
            .effects = {Effects::kPure},
            .alias = {Alias::kFresh},
            .layout = {Layout::kElementwise},
            .reference = {reference},
            .lower = {LowerRule(lower)},
            .samples = {samples},
            .names = {names}};
}

// ---------------------------------------------------------------- lowering

using rules::number;
bool is_bool(BodyBuilder& b, NodeId n) { return b.dtype(n) == DType::kBool; }

template <S op>
NodeId binary_direct(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return b.binary(op, a[0], a[1]);
}
// Arithmetic on bools is logic.
template <S op, S op_of_bools>
NodeId direct_or_bool(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return b.binary(is_bool(b, a[0]) ? op_of_bools : op, a[0], a[1]);
}
NodeId lower_scaled(BodyBuilder& b, NodeId x, const Attrs& attrs) {
    const double alpha = attrs.real("alpha");
    if (alpha == 1) return x;
    return b.binary(is_bool(b, x) ? S::kAnd : S::kMul, x, number(b, x, alpha));
}
NodeId lower_add(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    return b.binary(is_bool(b, a[0]) ? S::kOr : S::kAdd, a[0], lower_scaled(b, a[1], attrs));
}
NodeId lower_sub(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    return b.binary(S::kSub, a[0], lower_scaled(b, a[1], attrs));
}
// Whether r is not zero and lies on the other side of zero than divisor.
NodeId other_side(BodyBuilder& b, NodeId r, NodeId divisor) {
    const NodeId zero = number(b, r, 0);
    const NodeId signs = b.binary(S::kXor, b.binary(S::kLt, r, zero), b.binary(S::kLt, divisor, zero));
    return b.binary(S::kAnd, b.binary(S::kNe, r, zero), signs);
}
// As C's fmod-based division of NumPy and torch: exact where the quotient is near a whole number.
NodeId lower_floor_divide(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId x = a[0], y = a[1];
    if (!is_floating(b.dtype(x))) return b.binary(S::kFloorDiv, x, y);
    const NodeId zero = number(b, x, 0);
    const NodeId one = number(b, x, 1);
    const NodeId rest = b.binary(S::kTruncMod, x, y);
    const NodeId exact = b.binary(S::kDiv, b.binary(S::kSub, x, rest), y);
    const NodeId below = b.select(other_side(b, rest, y), b.binary(S::kSub, exact, one), exact);
    const NodeId floor = b.unary(S::kFloor, below);
    const NodeId up = b.binary(S::kGt, b.binary(S::kSub, below, floor), number(b, x, 0.5));
    const NodeId rounded = b.select(up, b.binary(S::kAdd, floor, one), floor);
    const NodeId quotient = b.binary(S::kDiv, x, y);
    // A zero takes the sign of the true quotient; a zero divisor gives what the division gives.
    const NodeId signed_zero = b.binary(S::kMul, quotient, zero);
    const NodeId nonzero = b.select(b.binary(S::kNe, below, zero), rounded, signed_zero);
    return b.select(b.binary(S::kEq, y, zero), quotient, nonzero);
}
NodeId lower_remainder(BodyBuilder& b, NodeArgs a, const Attrs&) {
    if (!is_floating(b.dtype(a[0]))) return b.binary(S::kFloorMod, a[0], a[1]);
    const NodeId rest = b.binary(S::kTruncMod, a[0], a[1]);
    return b.select(other_side(b, rest, a[1]), b.binary(S::kAdd, rest, a[1]), rest);
}
// Powers that people write are multiplications and roots.
NodeId lower_pow(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId x = a[0];
    const loopir::Node exponent = b.body().nodes[a[1]];
    if (exponent.op == S::kConst) {
        const bool floating = is_floating(exponent.dtype);
        const double e =
            floating ? std::bit_cast<double>(exponent.constant_bits) : static_cast<double>(exponent.constant_bits);
        const NodeId two = e == 2 || e == 3 ? b.binary(S::kMul, x, x) : x;
        if (e == 1) return x;
        if (e == 2) return two;
        if (e == 3) return b.binary(S::kMul, two, x);
        if (floating && e == 0.5) return b.unary(S::kSqrt, x);
        if (floating && e == -0.5) return b.unary(S::kRsqrt, x);
        if (floating && e == -1) return b.binary(S::kDiv, number(b, x, 1), x);
    }
    return b.binary(S::kPow, x, a[1]);
}
NodeId lower_where(BodyBuilder& b, NodeArgs a, const Attrs&) { return b.select(a[0], a[1], a[2]); }
NodeId lower_clamp(BodyBuilder& b, NodeArgs a, const Attrs&) {
    NodeId x = a[0];
    if (a[1] != loopir::kNoNode) x = b.binary(S::kMax, x, a[1]);
    if (a[2] != loopir::kNoNode) x = b.binary(S::kMin, x, a[2]);
    return x;
}
NodeId lower_lerp(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId difference = b.binary(S::kSub, a[1], a[0]);
    const NodeId from_start = b.binary(S::kAdd, a[0], b.binary(S::kMul, a[2], difference));
    const NodeId rest = b.binary(S::kSub, number(b, a[2], 1), a[2]);
    const NodeId from_end = b.binary(S::kSub, a[1], b.binary(S::kMul, difference, rest));
    return b.select(b.binary(S::kLt, b.unary(S::kAbs, a[2]), number(b, a[2], 0.5)), from_start, from_end);
}
NodeId lower_addcmul(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    const NodeId product = b.binary(S::kMul, a[1], a[2]);
    const double value = attrs.real("value");
    const NodeId scaled = value == 1 ? product : b.binary(S::kMul, number(b, product, value), product);
    return b.binary(S::kAdd, a[0], scaled);
}
// A shift by a negative count or by all bits leaves 0 (left) or the sign (right).
int bits_of(DType dtype) { return static_cast<int>(dtype_size(dtype)) * 8; }
NodeId count_in_range(BodyBuilder& b, NodeId count) {
    const DType dtype = b.dtype(count);
    const NodeId fits = b.binary(S::kLt, count, b.constant_int(dtype, bits_of(dtype)));
    if (dtype == DType::kU8) return fits;
    return b.binary(S::kAnd, fits, b.binary(S::kGe, count, b.constant_int(dtype, 0)));
}
NodeId lower_shift_left(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId zero = b.constant_int(b.dtype(a[0]), 0);
    const NodeId fits = count_in_range(b, a[1]);
    return b.select(fits, b.binary(S::kShl, a[0], b.select(fits, a[1], zero)), zero);
}
NodeId lower_shift_right(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const DType dtype = b.dtype(a[0]);
    const NodeId fits = count_in_range(b, a[1]);
    const NodeId last = b.constant_int(dtype, bits_of(dtype) - 1);
    const NodeId shifted = b.binary(S::kShr, a[0], b.select(fits, a[1], last));
    if (dtype != DType::kU8) return shifted;
    return b.select(fits, shifted, b.constant_int(dtype, 0));
}

// ---------------------------------------------------------------- dtype rules of one op

Expected<DTypes> where_dtype(std::span<const ArgType> args, const Attrs&, types::Promotion promotion) {
    if (args[0].type.dtype != DType::kBool && promotion == types::Promotion::kTorch) {
        return rules::refuse_dtype(args, 0, "bool");
    }
    const DType d = rules::common_dtype(args, promotion, 1);
    DTypes dtypes{{DType::kBool, d, d}, {d}, std::vector<IntegerBound>()};  // NumPy wraps integers here
    if (promotion == types::Promotion::kTorch) rules::bound_integers(args, promotion, dtypes);
    return dtypes;
}
Expected<DTypes> clamp_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    if (!args[1].present && !args[2].present) {
        return Diagnostic(DiagnosticId::kMissingArgument).expected("min, max or both");
    }
    if (promotion == types::Promotion::kTorch) {
        FLEXOR_ASSIGN(DTypes dtypes, rules::promote_not_bool(args, attrs, promotion));
        rules::bound_integers(args, promotion, dtypes);
        return dtypes;
    }
    FLEXOR_ASSIGN(DTypes dtypes, rules::promote(args, attrs, promotion));
    const auto range = types::integer_range(dtypes.results[0]);
    if (!range || std::ranges::none_of(args, rules::is_integer_scalar)) return dtypes;
    // NumPy takes limits that nothing in the dtype exceeds, and refuses those that everything does.
    const types::IntegerRange all = *types::integer_range(DType::kI64);
    dtypes.operands.assign(args.size(), DType::kI64);
    dtypes.bounds.emplace();
    if (rules::is_integer_scalar(args[0])) dtypes.bounds->push_back({0, range->lo, range->hi});
    if (rules::is_integer_scalar(args[1])) dtypes.bounds->push_back({1, all.lo, range->hi});
    if (rules::is_integer_scalar(args[2])) dtypes.bounds->push_back({2, range->lo, all.hi});
    return dtypes;
}
// NumPy warns of an integer divided by zero, and goes on with 0.
template <DTypeRule rule>
Expected<DTypes> division_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rule(args, attrs, promotion));
    dtypes.zero_divisor_gives_zero = promotion == types::Promotion::kNumpy;
    return dtypes;
}
// NumPy has no negative powers of integers.
Expected<DTypes> pow_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rules::promote_not_bool(args, attrs, promotion));
    rules::bound_integers(args, promotion, dtypes);
    const auto range = types::integer_range(dtypes.results[0]);
    if (promotion == types::Promotion::kTorch) {
        // torch looks at the exponent alone.
        std::erase_if(*dtypes.bounds, [](const IntegerBound& bound) { return bound.operand != 1; });
    } else if (range && args[1].type.dtype != DType::kBool && args[1].type.dtype != DType::kU8) {
        dtypes.bounds->push_back({1, 0, range->hi});
    }
    return dtypes;
}
Expected<DTypes> lerp_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    for (std::size_t i = 0; i < 2; ++i) {
        if (!is_floating(args[i].type.dtype)) return rules::refuse_dtype(args, i, "a floating dtype");
    }
    if (args[0].type.dtype != args[1].type.dtype) {
        return rules::refuse_dtype(args, 1, std::string(dtype_name(args[0].type.dtype)));
    }
    FLEXOR_ASSIGN(DTypes dtypes, rules::promote(args, attrs, promotion));
    if (args[2].strength == types::Strength::kScalar && dtypes.results[0] != DType::kF64)
        dtypes.operands[2] = DType::kF32;  // not rounded to 16 bits first
    return dtypes;
}

// ---------------------------------------------------------------- references

double max_nan(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }
double min_nan(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b); }
constexpr auto kMaxInt = [](I a, I b) { return std::max(a, b); };
constexpr auto kMinInt = [](I a, I b) { return std::min(a, b); };

// Python's // and % of doubles.
double floor_divide(double a, double b) {
    if (b == 0) return a / b;
    const double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double floor = std::floor(quotient);
    return quotient - floor > 0.5 ? floor + 1 : floor;
}
double remainder(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
I trunc_mod(I a, I b) { return b == -1 ? 0 : a % b; }
I floor_mod(I a, I b) {
    const I rest = trunc_mod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
I floor_div(I a, I b) {
    if (b == -1) return wrap_sub(0, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
// f for floats; g for integers, whose divisor is not zero.
template <auto F, auto G>
Expected<void> reference_division(ReferenceContext& c) {
    return map_elements(c, [&](Elements e, Element* out) {
        if (e[0].floating) {
            *out = real_element(F(e[0].real, e[1].real));
        } else {
            const bool zero = e[1].integer == 0;
            if (zero && !c.dtypes.zero_divisor_gives_zero) return false;
            *out = int_element(zero ? 0 : G(e[0].integer, e[1].integer));
        }
        return true;
    });
}
I int_pow(I base, I exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    I result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = wrap_mul(result, base);
        base = wrap_mul(base, base);
    }
    return result;
}
// a + sign * alpha * b
template <int sign>
Expected<void> reference_add(ReferenceContext& c) {
    const double alpha = c.attrs.real("alpha");
    const bool bools = c.dtypes.operands[0] == DType::kBool;
    return map_elements(c, [&](Elements e) {
        if (e[0].floating) return real_element(e[0].real + sign * alpha * e[1].real);
        const I scaled = wrap_mul(static_cast<I>(alpha), e[1].integer);
        if (bools) return int_element(e[0].integer | (scaled != 0));
        return int_element(sign > 0 ? wrap_add(e[0].integer, scaled) : wrap_sub(e[0].integer, scaled));
    });
}
Expected<void> reference_where(ReferenceContext& c) {
    return map_elements(c, [](Elements e) { return e[0].integer != 0 ? e[1] : e[2]; });
}
Expected<void> reference_clamp(ReferenceContext& c) {
    const bool has_min = c.inputs[1].defined();
    const bool has_max = c.inputs[2].defined();
    return map_elements(c, [&](Elements e) {
        Element x = e[0];
        if (has_min) x = {x.floating, max_nan(x.real, e[1].real), std::max(x.integer, e[1].integer)};
        if (has_max) x = {x.floating, min_nan(x.real, e[2].real), std::min(x.integer, e[2].integer)};
        return x;
    });
}
Expected<void> reference_lerp(ReferenceContext& c) {
    return map_elements(c, [](Elements e) { return real_element(e[0].real + e[2].real * (e[1].real - e[0].real)); });
}
Expected<void> reference_addcmul(ReferenceContext& c) {
    const double value = c.attrs.real("value");
    return map_elements(c, [&](Elements e) {
        if (e[0].floating) return real_element(e[0].real + value * e[1].real * e[2].real);
        const I product = wrap_mul(e[1].integer, e[2].integer);
        return int_element(wrap_add(e[0].integer, wrap_mul(static_cast<I>(value), product)));
    });
}
template <bool left>
Expected<void> reference_shift(ReferenceContext& c) {
    const int bits = bits_of(c.dtypes.operands[0]);
    return map_elements(c, [&](Elements e) {
        const I x = e[0].integer;
        const I count = e[1].integer;
        const bool fits = count >= 0 && count < bits;
        if (left) return int_element(fits ? static_cast<I>(static_cast<std::uint64_t>(x) << count) : 0);
        return int_element(fits ? x >> count : (x < 0 ? -1 : 0));
    });
}

// ---------------------------------------------------------------- samples

std::vector<Sample> with_alpha() {
    std::vector<Sample> out = samples::binary();
    out.push_back(samples::sample({samples::input({2, 3}), samples::input({3})}, Attrs{{"alpha", 2.0}}));
    return out;
}
std::vector<Sample> where_samples() {
    using samples::input, samples::typed, samples::sample, samples::scalar;
    constexpr DType b = DType::kBool;
    return {sample({typed({2, 3}, b), input({2, 3}), input({2, 3})}),
            sample({typed({3}, b), input({2, 1}), input({1})}), sample({typed({}, b), input({17}), input({17})}),
            sample({typed({0, 1}, b), input({1, 3}), input({3})}),
            sample({typed({2, 33}, b), input({2, 33}), scalar(0, DType::kI64)})};
}
std::vector<Sample> clamp_samples() {
    using samples::input, samples::none, samples::sample, samples::scalar;
    constexpr DType i = DType::kI64;
    return {sample({input({2, 17}), scalar(-1, i), scalar(1, i)}), sample({input({0}), scalar(0, i), none()}),
            sample({input({3, 1}), none(), scalar(1, i)}), sample({input({2, 3}), input({3}), input({2, 1})})};
}
std::vector<Sample> ternary_samples() {
    using samples::input, samples::sample;
    return {sample({input({2, 3}), input({2, 3}), input({2, 3}, samples::Fill::kUnit)}),
            sample({input({17}), input({1}), input({}, samples::Fill::kUnit)}),
            sample({input({2, 1}), input({0}), input({1}, samples::Fill::kUnit)})};
}

}  // namespace

std::vector<OpDef> binary_ops() {
    using namespace rules;
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> numbers = samples::kNumberDTypes;
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    constexpr std::span<const DType> bits = samples::kBitsDTypes;
    constexpr std::span<const DType> integers = samples::kIntegerDTypes;
    constexpr SampleMaker any = samples::binary;
    constexpr SampleMaker positive = samples::binary_positive;
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr OperandKind optional = OperandKind::kOptionalTensor;
    const auto two = keep<OperandSpec>({{"x", tensor, true}, {"y", tensor, true}});
    const auto alpha = keep<AttrSpec>({{"alpha", AttrKind::kFloat, 1.0}});

    std::vector<OpDef> ops;
    const auto add = [&](std::string_view name, std::string_view summary, DTypeRule dtype, Reference reference,
                         MapLower lower, Samples samples, Names names, std::span<const AttrSpec> attrs = {}) {
        ops.push_back(binary_entry(name, summary, two, dtype, reference, lower, samples, names, attrs));
    };

    add("add", "x + alpha y; logical or of bools.", promote, reference_add<1>, lower_add, {all, with_alpha},
        {"torch.add", "numpy.add", "Add"}, alpha);
    add("sub", "x - alpha y.", subtract, reference_add<-1>, lower_sub, {numbers, with_alpha},
        {"torch.sub", "numpy.subtract", "Sub"}, alpha);
    add("mul", "x times y; logical and of bools.", product,
        reference_binary<[](double a, double b) { return a * b; }, wrap_mul>, direct_or_bool<S::kMul, S::kAnd>,
        {all, any}, {"torch.mul", "numpy.multiply", "Mul"});
    add("div", "x over y as a float, whatever the dtypes are.", quotient,
        reference_binary<[](double a, double b) { return a / b; }, floor_div>, binary_direct<S::kDiv>, {all, positive},
        {"torch.div", "numpy.divide", "Div"});
    add("floor_divide",
        "x over y, rounded towards minus infinity; an integer zero divisor raises, beside NumPy it gives 0.",
        division_dtype<floor_quotient>, reference_division<floor_divide, floor_div>, lower_floor_divide,
        {numbers, positive}, {"torch.floor_divide", "numpy.floor_divide", ""});
    add("remainder",
        "x - y floor(x / y): the rest with the sign of y; an integer zero divisor raises, beside NumPy it gives 0.",
        division_dtype<promote_not_bool>, reference_division<remainder, floor_mod>, lower_remainder,
        {numbers, positive}, {"torch.remainder", "numpy.remainder", "Mod"});
    add("fmod", "The rest of x over y with the sign of x; an integer zero divisor raises, beside NumPy it gives 0.",
        division_dtype<promote_not_bool>,
        reference_division<[](double a, double b) { return std::fmod(a, b); }, trunc_mod>, binary_direct<S::kTruncMod>,
        {numbers, positive}, {"torch.fmod", "numpy.fmod", ""});
    add("pow", "x to the power y; integers wrap, and a negative power of an integer is 0 except of 1 and -1.",
        pow_dtype, reference_binary<[](double a, double b) { return std::pow(a, b); }, int_pow>, lower_pow,
        {numbers,
         [] {
             std::vector<Sample> out;
             for (Sample s : samples::binary_positive()) {
                 s.inputs[0].fill = samples::Fill::kPositive;
                 out.push_back(std::move(s));
             }
             for (const double e : {0.5, 3.0, -1.0}) {
                 out.push_back(samples::sample({samples::input({17}, samples::Fill::kPositive), samples::scalar(e)}));
             }
             return out;
         }},
        {"torch.pow", "numpy.power", "Pow"});
    add("maximum", "The larger of x and y; NaN if either is.", promote, reference_binary<max_nan, kMaxInt>,
        direct_or_bool<S::kMax, S::kOr>, {all, any}, {"torch.maximum", "numpy.maximum", "Max"});
    add("minimum", "The smaller of x and y; NaN if either is.", promote, reference_binary<min_nan, kMinInt>,
        direct_or_bool<S::kMin, S::kAnd>, {all, any}, {"torch.minimum", "numpy.minimum", "Min"});
    add("fmax", "The larger of x and y; the other one if one is NaN.", promote,
        reference_binary<[](double a, double b) { return std::fmax(a, b); }, kMaxInt>,
        direct_or_bool<S::kMaxNum, S::kOr>, {all, any}, {"torch.fmax", "numpy.fmax", ""});
    add("fmin", "The smaller of x and y; the other one if one is NaN.", promote,
        reference_binary<[](double a, double b) { return std::fmin(a, b); }, kMinInt>,
        direct_or_bool<S::kMinNum, S::kAnd>, {all, any}, {"torch.fmin", "numpy.fmin", ""});
    add("atan2", "The angle of the point (y, x), x being the ordinate, as C has it.", promote_to_float,
        reference_binary<[](double a, double b) { return std::atan2(a, b); }, wrap_sub>, binary_direct<S::kAtan2>,
        {all, any}, {"torch.atan2", "numpy.arctan2", ""});
    add("eq", "Whether x equals y.", compare, reference_compare<[](auto a, auto b) { return a == b; }>,
        binary_direct<S::kEq>, {all, any}, {"torch.eq", "numpy.equal", "Equal"});
    add("ne", "Whether x differs from y.", compare, reference_compare<[](auto a, auto b) { return a != b; }>,
        binary_direct<S::kNe>, {all, any}, {"torch.ne", "numpy.not_equal", ""});
    add("lt", "Whether x is less than y.", compare, reference_compare<[](auto a, auto b) { return a < b; }>,
        binary_direct<S::kLt>, {all, any}, {"torch.lt", "numpy.less", "Less"});
    add("le", "Whether x is at most y.", compare, reference_compare<[](auto a, auto b) { return a <= b; }>,
        binary_direct<S::kLe>, {all, any}, {"torch.le", "numpy.less_equal", "LessOrEqual"});
    add("gt", "Whether x is greater than y.", compare, reference_compare<[](auto a, auto b) { return b < a; }>,
        binary_direct<S::kGt>, {all, any}, {"torch.gt", "numpy.greater", "Greater"});
    add("ge", "Whether x is at least y.", compare, reference_compare<[](auto a, auto b) { return a >= b; }>,
        binary_direct<S::kGe>, {all, any}, {"torch.ge", "numpy.greater_equal", "GreaterOrEqual"});
    add("logical_and", "Whether x and y are both not zero.", logical,
        reference_compare<[](auto a, auto b) { return a != 0 && b != 0; }>, binary_direct<S::kAnd>, {all, any},
        {"torch.logical_and", "numpy.logical_and", "And"});
    add("logical_or", "Whether x or y is not zero.", logical,
        reference_compare<[](auto a, auto b) { return a != 0 || b != 0; }>, binary_direct<S::kOr>, {all, any},
        {"torch.logical_or", "numpy.logical_or", "Or"});
    add("logical_xor", "Whether exactly one of x and y is not zero.", logical,
        reference_compare<[](auto a, auto b) { return (a != 0) != (b != 0); }>, binary_direct<S::kXor>, {all, any},
        {"torch.logical_xor", "numpy.logical_xor", "Xor"});
    constexpr auto no_float = [](double, double) { return 0.0; };  // the dtype rule lets no float in
    add("bitwise_and", "The bits set in both x and y.", promote_bits,
        reference_binary<no_float, [](I a, I b) { return a & b; }>, binary_direct<S::kAnd>, {bits, any},
        {"torch.bitwise_and", "numpy.bitwise_and", "BitwiseAnd"});
    add("bitwise_or", "The bits set in x or y.", promote_bits,
        reference_binary<no_float, [](I a, I b) { return a | b; }>, binary_direct<S::kOr>, {bits, any},
        {"torch.bitwise_or", "numpy.bitwise_or", "BitwiseOr"});
    add("bitwise_xor", "The bits set in exactly one of x and y.", promote_bits,
        reference_binary<no_float, [](I a, I b) { return a ^ b; }>, binary_direct<S::kXor>, {bits, any},
        {"torch.bitwise_xor", "numpy.bitwise_xor", "BitwiseXor"});
    add("shift_left", "x shifted left by y bits; 0 if y is negative or all bits leave.", promote_shift,
        reference_shift<true>, lower_shift_left, {integers, positive},
        {"torch.bitwise_left_shift", "numpy.left_shift", ""});
    add("shift_right", "x shifted right by y bits, keeping the sign.", promote_shift, reference_shift<false>,
        lower_shift_right, {integers, positive}, {"torch.bitwise_right_shift", "numpy.right_shift", ""});

    ops.push_back(binary_entry(
        "where", "y where the condition is true, else z.",
        keep<OperandSpec>({{"condition", tensor, true}, {"y", tensor, true}, {"z", tensor, true}}), where_dtype,
        reference_where, lower_where, {all, where_samples}, {"torch.where", "numpy.where", "Where"}));
    ops.push_back(binary_entry(
        "clamp", "x, at least min and at most max; NaN stays NaN.",
        keep<OperandSpec>({{"x", tensor, true}, {"min", optional, true}, {"max", optional, true}}), clamp_dtype,
        reference_clamp, lower_clamp, {numbers, clamp_samples}, {"torch.clamp", "numpy.clip", "Clip"}));
    ops.push_back(binary_entry("lerp", "From start to end by weight.",
                               keep<OperandSpec>({{"start", tensor}, {"end", tensor}, {"weight", tensor, true}}),
                               lerp_dtype, reference_lerp, lower_lerp, {floats, ternary_samples},
                               {"torch.lerp", "", ""}));
    ops.push_back(binary_entry("addcmul", "x + value y z.",
                               keep<OperandSpec>({{"x", tensor}, {"y", tensor}, {"z", tensor}}), promote_not_bool,
                               reference_addcmul, lower_addcmul, {numbers, ternary_samples}, {"torch.addcmul", "", ""},
                               keep<AttrSpec>({{"value", AttrKind::kFloat, 1.0}})));
    return ops;
}

}  // namespace flexor::ops
