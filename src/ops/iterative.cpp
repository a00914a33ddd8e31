// Functions of elements that loop until they are done, or that take numbers apart: no kernel expresses them.
#include <cmath>
#include <numeric>

#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using U = std::uint64_t;
using Args = std::span<const ArgType>;

// ---------------------------------------------------------------- whole numbers

U unsigned_magnitude(I x) { return x < 0 ? U{0} - static_cast<U>(x) : static_cast<U>(x); }

Expected<void> reference_gcd(ReferenceContext& c) {
    return map_elements(c, [](Elements e) {
        return int_element(
            static_cast<I>(std::gcd(unsigned_magnitude(e[0].integer), unsigned_magnitude(e[1].integer))));
    });
}
Expected<void> reference_lcm(ReferenceContext& c) {
    return map_elements(c, [](Elements e) {
        const U x = unsigned_magnitude(e[0].integer), y = unsigned_magnitude(e[1].integer);
        return int_element(x == 0 || y == 0 ? 0 : static_cast<I>(x / std::gcd(x, y) * y));
    });
}

// ---------------------------------------------------------------- the incomplete gamma functions

// x^a exp(-x) / gamma(a + 1)
double gamma_power(double a, double x) {
    if (a < 20) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
    // By Stirling's series, in which the large parts of the exponent have cancelled already.
    const double away = (x - a) / a;
    const double z = 1 / (a * a);
    const double rest = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
    return std::exp(a * (std::log1p(away) - away) - rest) / std::sqrt(2 * M_PI * a);
}
constexpr int kMostTerms = 100000;
constexpr double kSmall = 1e-17;

// The lower one as a power series, for x up to about a.
double lower_series(double a, double x) {
    double term = 1, sum = 1;
    for (int n = 1; n < kMostTerms && term > kSmall * sum; ++n) {
        term *= x / (a + n);
        sum += term;
    }
    return gamma_power(a, x) * sum;
}
// The upper one as a continued fraction (modified Lentz), for x beyond that.
double upper_fraction(double a, double x) {
    constexpr double kTiny = 1e-300;
    double b = x + 1 - a;
    double numerator = 1 / kTiny, denominator = 1 / (b == 0 ? kTiny : b);
    double product = denominator;
    for (int n = 1; n < kMostTerms; ++n) {
        const double step = -n * (n - a);
        b += 2;
        denominator = step * denominator + b;
        numerator = b + step / numerator;
        denominator = 1 / (denominator == 0 ? kTiny : denominator);
        if (numerator == 0) numerator = kTiny;
        const double factor = numerator * denominator;
        product *= factor;
        if (std::fabs(factor - 1) < 1e-16) break;
    }
    return gamma_power(a, x) * a * product;
}
template <bool upper>
double incomplete_gamma(double a, double x) {
    constexpr double at_zero = upper ? 1 : 0;
    if (!(a >= 0) || !(x >= 0)) return std::nan("");
    if (a == 0) return x > 0 ? 1 - at_zero : std::nan("");
    if (x == 0) return at_zero;
    if (std::isinf(a)) return std::isinf(x) ? std::nan("") : at_zero;
    if (std::isinf(x)) return 1 - at_zero;
    if (x <= a + 1) return upper ? 1 - lower_series(a, x) : lower_series(a, x);
    return upper ? upper_fraction(a, x) : 1 - upper_fraction(a, x);
}
template <bool upper>
Expected<void> reference_incomplete_gamma(ReferenceContext& c) {
    return map_elements(
        c, [](Elements e) { return real_element(incomplete_gamma<upper>(e[0].as_real(), e[1].as_real())); });
}

// ---------------------------------------------------------------- mantissa and exponent

Expected<DTypes> frexp_dtype(Args args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, rules::same_float(args, attrs, promotion));
    dtypes.results.push_back(DType::kI32);
    return dtypes;
}
bool frexp_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    return rules::same_shape(context, results) && rules::same_shape(context, results);
}
Expected<void> reference_frexp(ReferenceContext& c) {
    for_each_index(c.inputs[0].sizes(), [&](const Index& index) {
        const double x = load_real(c.inputs[0], offset_of(c.inputs[0], index));
        int exponent = 0;
        store_real(c.outputs[0], offset_of(c.outputs[0], index), std::frexp(x, &exponent));
        store_int(c.outputs[1], offset_of(c.outputs[1], index), std::isfinite(x) ? exponent : 0);
    });
    return {};
}

}  // namespace

std::vector<OpDef> iterative_ops() {
    const auto two = keep<OperandSpec>({{"x", OperandKind::kTensor, true}, {"y", OperandKind::kTensor, true}});
    const auto broadcast = keep<Constraint>({{rules::kBroadcastText}});
    std::vector<OpDef> ops;
    const auto binary = [&](std::string_view name, std::string_view summary, DTypeRule dtype, Reference reference,
                            Samples samples, Names names) {
        add_op(ops, name, summary, two, {}, broadcast, dtype, rules::broadcast_shape, reference, ExternLower{}, samples,
               names, {.layout = Layout::kElementwise});
    };
    const Samples integers{samples::kIntegerDTypes, samples::binary};
    const Samples positive{samples::kFloatDTypes, samples::binary_positive};
    binary("gcd", "The greatest common divisor of x and y.", rules::promote_shift, reference_gcd, integers,
           {"torch.gcd", "numpy.gcd", ""});
    binary("lcm", "The least common multiple of x and y; 0 if one of them is.", rules::promote_shift, reference_lcm,
           integers, {"torch.lcm", "numpy.lcm", ""});
    binary("igamma", "The regularised lower incomplete gamma function of order x at y.", rules::promote_to_float,
           reference_incomplete_gamma<false>, positive, {"torch.igamma", "", ""});
    binary("igammac", "The regularised upper incomplete gamma function of order x at y.", rules::promote_to_float,
           reference_incomplete_gamma<true>, positive, {"torch.igammac", "", ""});
    add_op(ops, "frexp", "x as a mantissa of magnitude 0.5 up to 1, and the power of two (i32) that it is times.",
           keep<OperandSpec>({{"x"}}), {}, {}, frexp_dtype, frexp_shape, reference_frexp, ExternLower{},
           {samples::kFloatDTypes, samples::unary}, {"torch.frexp", "numpy.frexp", ""},
           {.layout = Layout::kElementwise, .results = 2});
    return ops;
}

}  // namespace flexor::ops
