// Element-by-element functions of one tensor.
#include <algorithm>
#include <cmath>

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

// What few entries state.
struct Extra {
    std::span<const AttrSpec> attrs = {};
    std::span<const Constraint> constraints = {};
    ShapeRule shape = rules::same_shape;
    Layout layout = Layout::kElementwise;
};

OpDef unary_entry(std::string_view name, std::string_view summary, DTypeRule dtype, Reference reference, MapLower lower,
                  Samples samples, Names names, const Extra& extra) {
    static const std::span<const OperandSpec> operands = keep<OperandSpec>({{"x", OperandKind::kTensor, true}});
    return {.name = {name},
            .summary = {summary},
            .constraints = {extra.constraints},
            .operands = {operands},
            .attrs = {extra.attrs},
            .dtype = {dtype},
            .shape = {extra.shape},
            .effects = {Effects::kPure},
            .alias = {Alias::kFresh},
            .layout = {extra.layout},
            .reference = {reference},
            .lower = {LowerRule(lower)},
            .samples = {samples},
            .names = {names}};
}

// ---------------------------------------------------------------- lowering

template <S op>
NodeId unary_direct(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return b.unary(op, a[0]);
}
// Integers and bools are their own value.
template <S op>
NodeId floats_only(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return is_floating(b.dtype(a[0])) ? b.unary(op, a[0]) : a[0];
}
template <S op>
NodeId not_for_bool(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return b.dtype(a[0]) == DType::kBool ? a[0] : b.unary(op, a[0]);
}
template <S op>
NodeId float_test(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return is_floating(b.dtype(a[0])) ? b.unary(op, a[0]) : b.constant_int(DType::kBool, 0);
}
using rules::number;
NodeId clamp(BodyBuilder& b, NodeId x, double lo, double hi) {
    return b.binary(S::kMin, b.binary(S::kMax, x, number(b, x, lo)), number(b, x, hi));
}

NodeId lower_sign(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    if (b.dtype(a[0]) == DType::kBool) return a[0];
    const NodeId sign = b.unary(S::kSign, a[0]);
    if (!is_floating(b.dtype(a[0])) || attrs.flag("keep_nan")) return sign;
    return b.select(b.unary(S::kIsNan, a[0]), number(b, a[0], 0), sign);
}
// Of integers rounded towards zero.
NodeId lower_reciprocal(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const DType dtype = b.dtype(a[0]);
    const NodeId one = number(b, a[0], 1);
    if (is_floating(dtype)) return b.binary(S::kDiv, one, a[0]);
    const NodeId floor = b.binary(S::kFloorDiv, one, a[0]);
    if (dtype == DType::kU8) return floor;
    return b.select(b.binary(S::kLt, a[0], b.constant_int(dtype, -1)), b.constant_int(dtype, 0), floor);
}
NodeId lower_square(BodyBuilder& b, NodeArgs a, const Attrs&) { return b.binary(S::kMul, a[0], a[0]); }
NodeId lower_relu(BodyBuilder& b, NodeArgs a, const Attrs&) { return b.binary(S::kMax, a[0], number(b, a[0], 0)); }
NodeId lower_relu6(BodyBuilder& b, NodeArgs a, const Attrs&) { return clamp(b, a[0], 0, 6); }
NodeId lower_silu(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return b.binary(S::kMul, a[0], b.unary(S::kSigmoid, a[0]));
}
NodeId lower_gelu(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    const NodeId x = a[0];
    NodeId inner;
    if (attrs.text("approximate") == "tanh") {
        const NodeId cube = b.binary(S::kMul, b.binary(S::kMul, x, x), x);
        const NodeId sum = b.binary(S::kAdd, x, b.binary(S::kMul, number(b, x, 0.044715), cube));
        inner = b.unary(S::kTanh, b.binary(S::kMul, number(b, x, std::sqrt(2.0 / M_PI)), sum));
    } else {
        inner = b.unary(S::kErf, b.binary(S::kMul, x, number(b, x, M_SQRT1_2)));
    }
    const NodeId half = b.binary(S::kMul, number(b, x, 0.5), x);
    return b.binary(S::kMul, half, b.binary(S::kAdd, inner, number(b, x, 1)));
}
NodeId lower_softplus(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    const NodeId scaled = b.binary(S::kMul, a[0], number(b, a[0], attrs.real("beta")));
    const NodeId soft =
        b.binary(S::kDiv, b.unary(S::kLog1p, b.unary(S::kExp, scaled)), number(b, a[0], attrs.real("beta")));
    return b.select(b.binary(S::kGt, scaled, number(b, a[0], attrs.real("threshold"))), a[0], soft);
}
NodeId lower_elu(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    const NodeId negative = b.binary(S::kMul, b.unary(S::kExpm1, a[0]), number(b, a[0], attrs.real("alpha")));
    return b.select(b.binary(S::kLe, a[0], number(b, a[0], 0)), negative, a[0]);
}
NodeId lower_leaky_relu(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    const NodeId negative = b.binary(S::kMul, a[0], number(b, a[0], attrs.real("negative_slope")));
    return b.select(b.binary(S::kGt, a[0], number(b, a[0], 0)), a[0], negative);
}
NodeId lower_hardswish(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId gate = clamp(b, b.binary(S::kAdd, a[0], number(b, a[0], 3)), 0, 6);
    return b.binary(S::kDiv, b.binary(S::kMul, a[0], gate), number(b, a[0], 6));
}
NodeId lower_hardsigmoid(BodyBuilder& b, NodeArgs a, const Attrs&) {
    const NodeId gate = clamp(b, b.binary(S::kAdd, a[0], number(b, a[0], 3)), 0, 6);
    return b.binary(S::kDiv, gate, number(b, a[0], 6));
}
NodeId lower_hardtanh(BodyBuilder& b, NodeArgs a, const Attrs& attrs) {
    return clamp(b, a[0], attrs.real("min"), attrs.real("max"));
}
NodeId lower_isfinite(BodyBuilder& b, NodeArgs a, const Attrs&) {
    if (!is_floating(b.dtype(a[0]))) return b.constant_int(DType::kBool, 1);
    return b.unary(S::kNot, b.binary(S::kOr, b.unary(S::kIsNan, a[0]), b.unary(S::kIsInf, a[0])));
}
NodeId lower_cast(BodyBuilder& b, NodeArgs a, const Attrs& attrs) { return b.cast(a[0], attrs.dtype("dtype")); }

// ---------------------------------------------------------------- rules of one op

bool gelu_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    const std::string& approximate = context.attrs().text("approximate");
    if (approximate != "none" && approximate != "tanh") return context.fail(1);
    return rules::same_shape(context, results);
}

Expected<DTypes> hardtanh_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rules::same_not_bool(args, attrs, promotion));
    if (dtypes.results[0] == DType::kU8 && attrs.real("min") < 0) {
        return rules::refuse_dtype(args, 0, "a signed dtype where min is negative");
    }
    return dtypes;
}
Expected<DTypes> sign_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    return promotion == types::Promotion::kNumpy ? rules::same_not_bool(args, attrs, promotion)
                                                 : rules::same(args, attrs, promotion);
}
// NumPy keeps integers and rounds bools as its smallest floats.
Expected<DTypes> reciprocal_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    if (promotion == types::Promotion::kTorch) return rules::to_float(args, attrs, promotion);
    FLEXOR_ASSIGN(DTypes dtypes, rules::same(args, attrs, promotion));
    if (dtypes.results[0] == DType::kBool) dtypes = {{DType::kI8}, {DType::kI8}};
    return dtypes;
}
Expected<DTypes> round_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rules::same_not_bool_in_torch(args, attrs, promotion));
    if (dtypes.results[0] == DType::kBool) dtypes = {{DType::kF16}, {DType::kF16}};
    return dtypes;
}
Expected<DTypes> square_dtype(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rules::same(args, attrs, promotion));
    if (dtypes.results[0] == DType::kBool) {
        const DType d = promotion == types::Promotion::kTorch ? DType::kI64 : DType::kI8;
        dtypes = {{d}, {d}};
    }
    return dtypes;
}

// ---------------------------------------------------------------- references

using I = std::int64_t;
constexpr auto kIdentity = [](I x) { return x; };
double nan_clamp(double x, double lo, double hi) { return std::isnan(x) ? x : std::min(std::max(x, lo), hi); }
double sign_of(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

Expected<void> reference_sign(ReferenceContext& c) {
    const bool keep_nan = c.attrs.flag("keep_nan");
    return map_elements(c, [&](Elements e) {
        if (!e[0].floating) return int_element((e[0].integer > 0) - (e[0].integer < 0));
        return real_element(std::isnan(e[0].real) && !keep_nan ? 0.0 : sign_of(e[0].real));
    });
}
Expected<void> reference_reciprocal(ReferenceContext& c) {
    return map_elements(c, [](Elements e, Element* out) {
        if (!e[0].floating && e[0].integer == 0) return false;
        *out = e[0].floating ? real_element(1 / e[0].real) : int_element(1 / e[0].integer);
        return true;
    });
}
Expected<void> reference_gelu(ReferenceContext& c) {
    const bool by_tanh = c.attrs.text("approximate") == "tanh";
    return map_elements(c, [&](Elements e) {
        const double x = e[0].real;
        if (!by_tanh) return real_element(0.5 * x * std::erfc(-x * M_SQRT1_2));
        return real_element(0.5 * x * (1 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x))));
    });
}
Expected<void> reference_softplus(ReferenceContext& c) {
    const double beta = c.attrs.real("beta");
    const double threshold = c.attrs.real("threshold");
    return map_elements(c, [&](Elements e) {
        const double x = e[0].real;
        return real_element(x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta);
    });
}
Expected<void> reference_elu(ReferenceContext& c) {
    const double alpha = c.attrs.real("alpha");
    return map_elements(
        c, [&](Elements e) { return real_element(e[0].real <= 0 ? alpha * std::expm1(e[0].real) : e[0].real); });
}
Expected<void> reference_leaky_relu(ReferenceContext& c) {
    const double slope = c.attrs.real("negative_slope");
    return map_elements(c, [&](Elements e) { return real_element(e[0].real > 0 ? e[0].real : slope * e[0].real); });
}
Expected<void> reference_hardtanh(ReferenceContext& c) {
    const double lo = c.attrs.real("min");
    const double hi = c.attrs.real("max");
    return map_elements(c, [&](Elements e) {
        if (e[0].floating) return real_element(nan_clamp(e[0].real, lo, hi));
        return int_element(std::min(std::max(e[0].integer, static_cast<I>(lo)), static_cast<I>(hi)));
    });
}
Expected<void> reference_cast(ReferenceContext& c) {
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        copy_element(c.outputs[0], offset_of(c.outputs[0], index), c.inputs[0], broadcast_offset(c.inputs[0], index));
    });
    return {};
}

// ---------------------------------------------------------------- samples

std::vector<Sample> with_attrs(std::initializer_list<Attrs> all) {
    std::vector<Sample> out = samples::unary();
    for (const Attrs& attrs : all) out.push_back(samples::sample({samples::input({2, 15})}, attrs));
    return out;
}
constexpr SampleMaker kUnary = samples::unary;
constexpr SampleMaker kPositive = samples::unary_positive;
constexpr SampleMaker kUnit = samples::unary_unit;

}  // namespace

std::vector<OpDef> unary_ops() {
    using namespace rules;
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> numbers = samples::kNumberDTypes;
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    constexpr std::span<const DType> bits = samples::kBitsDTypes;
    constexpr std::span<const DType> signed_numbers = numbers.first(numbers.size() - 1);
    static_assert(numbers.back() == DType::kU8);
    const auto attr = [](std::initializer_list<AttrSpec> specs) { return keep<AttrSpec>(specs); };

    std::vector<OpDef> ops;
    const auto add = [&](std::string_view name, std::string_view summary, DTypeRule dtype, Reference reference,
                         MapLower lower, Samples samples, Names names, const Extra& extra = {}) {
        ops.push_back(unary_entry(name, summary, dtype, reference, lower, samples, names, extra));
    };

    add("neg", "Minus x.", same_not_bool,
        reference_unary<[](double x) { return -x; }, [](I x) { return wrap_sub(0, x); }>, unary_direct<S::kNeg>,
        Samples{numbers, kUnary}, Names{"torch.neg", "numpy.negative", "Neg"});
    add("abs", "The magnitude of x.", same_not_bool_in_torch,
        reference_unary<[](double x) { return std::fabs(x); }, [](I x) { return x < 0 ? wrap_sub(0, x) : x; }>,
        not_for_bool<S::kAbs>, Samples{numbers, kUnary}, Names{"torch.abs", "numpy.absolute", "Abs"});
    add("sign", "-1, 0 or 1 by the sign of x; NaN stays NaN, or gives 0 without keep_nan (as torch has it).",
        sign_dtype, reference_sign, lower_sign, Samples{all, kUnary}, Names{"torch.sign", "numpy.sign", "Sign"},
        {attr({{"keep_nan", AttrKind::kBool, true}})});
    add("sqrt", "The square root of x.", to_float, reference_real<[](double x) { return std::sqrt(x); }>,
        unary_direct<S::kSqrt>, Samples{all, kPositive}, Names{"torch.sqrt", "numpy.sqrt", "Sqrt"});
    add("rsqrt", "One over the square root of x.", to_float, reference_real<[](double x) { return 1 / std::sqrt(x); }>,
        unary_direct<S::kRsqrt>, Samples{all, kPositive}, Names{"torch.rsqrt", "", ""});
    add("reciprocal", "One over x. Beside NumPy, integers stay integers, rounded towards zero, and a zero raises.",
        reciprocal_dtype, reference_reciprocal, lower_reciprocal, Samples{all, kPositive},
        Names{"torch.reciprocal", "numpy.reciprocal", "Reciprocal"});
    add("square", "x times x; a bool becomes an integer.", square_dtype,
        reference_unary<[](double x) { return x * x; }, [](I x) { return wrap_mul(x, x); }>, lower_square,
        Samples{all, kUnary}, Names{"torch.square", "numpy.square", ""});
    add("exp", "e to the power x.", to_float, reference_real<[](double x) { return std::exp(x); }>,
        unary_direct<S::kExp>, Samples{all, kUnit}, Names{"torch.exp", "numpy.exp", "Exp"});
    add("exp2", "2 to the power x.", to_float, reference_real<[](double x) { return std::exp2(x); }>,
        unary_direct<S::kExp2>, Samples{all, kUnit}, Names{"torch.exp2", "numpy.exp2", ""});
    add("expm1", "e to the power x, minus 1, exact near 0.", to_float,
        reference_real<[](double x) { return std::expm1(x); }>, unary_direct<S::kExpm1>, Samples{all, kUnit},
        Names{"torch.expm1", "numpy.expm1", ""});
    add("log", "The natural logarithm of x.", to_float, reference_real<[](double x) { return std::log(x); }>,
        unary_direct<S::kLog>, Samples{all, kPositive}, Names{"torch.log", "numpy.log", "Log"});
    add("log2", "The logarithm of x to base 2.", to_float, reference_real<[](double x) { return std::log2(x); }>,
        unary_direct<S::kLog2>, Samples{all, kPositive}, Names{"torch.log2", "numpy.log2", ""});
    add("log10", "The logarithm of x to base 10.", to_float, reference_real<[](double x) { return std::log10(x); }>,
        unary_direct<S::kLog10>, Samples{all, kPositive}, Names{"torch.log10", "numpy.log10", ""});
    add("log1p", "The natural logarithm of 1 + x, exact near 0.", to_float,
        reference_real<[](double x) { return std::log1p(x); }>, unary_direct<S::kLog1p>, Samples{all, kPositive},
        Names{"torch.log1p", "numpy.log1p", ""});
    add("sin", "The sine of x.", to_float, reference_real<[](double x) { return std::sin(x); }>, unary_direct<S::kSin>,
        Samples{all, kUnary}, Names{"torch.sin", "numpy.sin", "Sin"});
    add("cos", "The cosine of x.", to_float, reference_real<[](double x) { return std::cos(x); }>,
        unary_direct<S::kCos>, Samples{all, kUnary}, Names{"torch.cos", "numpy.cos", "Cos"});
    add("tan", "The tangent of x.", to_float, reference_real<[](double x) { return std::tan(x); }>,
        unary_direct<S::kTan>, Samples{all, kUnit}, Names{"torch.tan", "numpy.tan", "Tan"});
    add("tanh", "The hyperbolic tangent of x.", to_float, reference_real<[](double x) { return std::tanh(x); }>,
        unary_direct<S::kTanh>, Samples{all, kUnary}, Names{"torch.tanh", "numpy.tanh", "Tanh"});
    add("erf", "The error function of x.", to_float, reference_real<[](double x) { return std::erf(x); }>,
        unary_direct<S::kErf>, Samples{all, kUnary}, Names{"torch.erf", "", "Erf"});
    add("sigmoid", "1 / (1 + exp(-x)).", to_float, reference_real<[](double x) { return 1 / (1 + std::exp(-x)); }>,
        unary_direct<S::kSigmoid>, Samples{all, kUnary}, Names{"torch.sigmoid", "", "Sigmoid"});
    add("relu", "x where x is positive, else 0; NaN stays NaN.", same_not_bool,
        reference_unary<[](double x) { return x < 0 ? 0.0 : x; }, [](I x) { return x < 0 ? I{0} : x; }>, lower_relu,
        Samples{numbers, kUnary}, Names{"torch.relu", "", "Relu"});
    add("relu6", "x clamped to 0..6.", same_not_bool,
        reference_unary<[](double x) { return nan_clamp(x, 0, 6); }, [](I x) { return std::clamp(x, I{0}, I{6}); }>,
        lower_relu6, Samples{numbers, kUnary}, Names{"torch.nn.functional.relu6", "", ""});
    add("silu", "x times sigmoid(x).", same_float, reference_real<[](double x) { return x / (1 + std::exp(-x)); }>,
        lower_silu, Samples{floats, kUnary}, Names{"torch.nn.functional.silu", "", ""});
    add("gelu", "x times the normal distribution function at x; approximate is \"none\" (erf) or \"tanh\".", same_float,
        reference_gelu, lower_gelu, Samples{floats, [] { return with_attrs({{{"approximate", "tanh"}}}); }},
        Names{"torch.nn.functional.gelu", "", "Gelu"},
        {attr({{"approximate", AttrKind::kString, "none"}}),
         keep<Constraint>({{"approximate is \"none\" or \"tanh\"", DiagnosticId::kBadAttribute}}), gelu_shape});
    add("softplus", "log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold.", same_float,
        reference_softplus, lower_softplus,
        Samples{floats, [] { return with_attrs({{{"beta", 2.0}, {"threshold", 1.0}}}); }},
        Names{"torch.nn.functional.softplus", "", "Softplus"},
        {attr({{"beta", AttrKind::kFloat, 1.0}, {"threshold", AttrKind::kFloat, 20.0}})});
    add("elu", "x where x is positive, else alpha (exp(x) - 1).", same_float, reference_elu, lower_elu,
        Samples{floats, [] { return with_attrs({{{"alpha", 0.5}}}); }}, Names{"torch.nn.functional.elu", "", "Elu"},
        {attr({{"alpha", AttrKind::kFloat, 1.0}})});
    add("leaky_relu", "x where x is positive, else negative_slope x.", same_float, reference_leaky_relu,
        lower_leaky_relu, Samples{floats, [] { return with_attrs({{{"negative_slope", 0.25}}}); }},
        Names{"torch.nn.functional.leaky_relu", "", "LeakyRelu"}, {attr({{"negative_slope", AttrKind::kFloat, 0.01}})});
    add("hardswish", "x times (x + 3 clamped to 0..6) / 6.", same_float,
        reference_real<[](double x) { return x * nan_clamp(x + 3, 0, 6) / 6; }>, lower_hardswish,
        Samples{floats, kUnary}, Names{"torch.nn.functional.hardswish", "", "HardSwish"});
    add("hardsigmoid", "x + 3 clamped to 0..6, over 6.", same_float,
        reference_real<[](double x) { return nan_clamp(x + 3, 0, 6) / 6; }>, lower_hardsigmoid, Samples{floats, kUnary},
        Names{"torch.nn.functional.hardsigmoid", "", ""});
    add("hardtanh", "x clamped to min..max.", hardtanh_dtype, reference_hardtanh, lower_hardtanh,
        Samples{signed_numbers, [] { return with_attrs({{{"min", 0.0}, {"max", 2.0}}}); }},
        Names{"torch.nn.functional.hardtanh", "", ""},
        {attr({{"min", AttrKind::kFloat, -1.0}, {"max", AttrKind::kFloat, 1.0}})});
    add("floor", "The largest whole number not above x.", same_not_bool_in_torch,
        reference_unary<[](double x) { return std::floor(x); }, kIdentity>, floats_only<S::kFloor>,
        Samples{numbers, kUnary}, Names{"torch.floor", "numpy.floor", "Floor"});
    add("ceil", "The smallest whole number not below x.", same_not_bool_in_torch,
        reference_unary<[](double x) { return std::ceil(x); }, kIdentity>, floats_only<S::kCeil>,
        Samples{numbers, kUnary}, Names{"torch.ceil", "numpy.ceil", "Ceil"});
    add("round", "The nearest whole number, ties to even.", round_dtype,
        reference_unary<[](double x) { return std::nearbyint(x); }, kIdentity>, floats_only<S::kRound>,
        Samples{numbers, kUnary}, Names{"torch.round", "numpy.round", "Round"});
    add("trunc", "x without its fraction.", same_not_bool_in_torch,
        reference_unary<[](double x) { return std::trunc(x); }, kIdentity>, floats_only<S::kTrunc>,
        Samples{numbers, kUnary}, Names{"torch.trunc", "numpy.trunc", ""});
    add("isnan", "Whether x is not a number.", to_bool,
        reference_unary<[](double x) { return std::isnan(x) ? 1.0 : 0.0; }, [](I) { return I{0}; }>,
        float_test<S::kIsNan>, Samples{all, kUnary}, Names{"torch.isnan", "numpy.isnan", "IsNaN"});
    add("isinf", "Whether x is infinite.", to_bool,
        reference_unary<[](double x) { return std::isinf(x) ? 1.0 : 0.0; }, [](I) { return I{0}; }>,
        float_test<S::kIsInf>, Samples{all, kUnary}, Names{"torch.isinf", "numpy.isinf", "IsInf"});
    add("isfinite", "Whether x is a finite number.", to_bool,
        reference_unary<[](double x) { return std::isfinite(x) ? 1.0 : 0.0; }, [](I) { return I{1}; }>, lower_isfinite,
        Samples{all, kUnary}, Names{"torch.isfinite", "numpy.isfinite", ""});
    add("logical_not", "Whether x is zero.", logical,
        reference_unary<[](double x) { return x; }, [](I x) { return x == 0 ? I{1} : I{0}; }>, unary_direct<S::kNot>,
        Samples{all, kUnary}, Names{"torch.logical_not", "numpy.logical_not", "Not"});
    add("bitwise_not", "Every bit of x inverted; logical for bools.", same_bits, {[](ReferenceContext& c) {
            const bool logical_not = c.dtypes.operands[0] == DType::kBool;
            return map_elements(
                c, [&](Elements e) { return int_element(logical_not ? e[0].integer == 0 : ~e[0].integer); });
        }},
        unary_direct<S::kNot>, Samples{bits, kUnary}, Names{"torch.bitwise_not", "numpy.bitwise_not", "BitwiseNot"});
    add("cast", "x converted to another dtype: floats to integers truncate, to bool is x != 0.", by_attr,
        reference_cast, lower_cast,
        Samples{all,
                [] {
                    std::vector<Sample> out;
                    for (const DType d : samples::kAllDTypes) {
                        out.push_back(
                            samples::sample({samples::input({2, 17}, samples::Fill::kPositive)}, {{"dtype", d}}));
                    }
                    return out;
                }},
        Names{"torch.Tensor.to", "numpy.ndarray.astype", "Cast"},
        {attr({{"dtype", AttrKind::kDType, {}}}), {}, same_shape, Layout::kLikeFirst});
    return ops;
}

}  // namespace flexor::ops
