// Functions of floats beyond arithmetic: inverse and hyperbolic ones, the error function's kin and the gamma function's.
// A formula that loses digits is computed in f64 whatever the dtype.
#include <array>
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

// ---------------------------------------------------------------- formulas as nodes

// A node as an operand of C++'s operators; numbers take its dtype.
class Expr {
public:
    Expr(BodyBuilder& body, NodeId node) : body_(&body), node_(node) {}
    BodyBuilder& body() const { return *body_; }
    NodeId node() const { return node_; }
    Expr number(double value) const { return {*body_, body_->constant(body_->dtype(node_), value)}; }
    Expr as(DType dtype) const { return {*body_, body_->cast(node_, dtype)}; }

private:
    BodyBuilder* body_;
    NodeId node_;
};

Expr apply(S op, Expr x) { return {x.body(), x.body().unary(op, x.node())}; }
Expr apply(S op, Expr x, Expr y) { return {x.body(), x.body().binary(op, x.node(), y.node())}; }
Expr select(Expr condition, Expr x, Expr y) {
    return {x.body(), x.body().select(condition.node(), x.node(), y.node())};
}
Expr operator-(Expr x) { return apply(S::kNeg, x); }
Expr operator+(Expr x, Expr y) { return apply(S::kAdd, x, y); }
Expr operator-(Expr x, Expr y) { return apply(S::kSub, x, y); }
Expr operator*(Expr x, Expr y) { return apply(S::kMul, x, y); }
Expr operator/(Expr x, Expr y) { return apply(S::kDiv, x, y); }
Expr operator+(Expr x, double y) { return x + x.number(y); }
Expr operator-(Expr x, double y) { return x - x.number(y); }
Expr operator*(Expr x, double y) { return x * x.number(y); }
Expr operator+(double x, Expr y) { return y.number(x) + y; }
Expr operator-(double x, Expr y) { return y.number(x) - y; }
Expr operator*(double x, Expr y) { return y.number(x) * y; }
Expr operator/(double x, Expr y) { return y.number(x) / y; }
Expr less(Expr x, double y) { return apply(S::kLt, x, x.number(y)); }
Expr greater(Expr x, double y) { return apply(S::kGt, x, x.number(y)); }
Expr equal(Expr x, double y) { return apply(S::kEq, x, x.number(y)); }
Expr sqrt(Expr x) { return apply(S::kSqrt, x); }
Expr exp(Expr x) { return apply(S::kExp, x); }
Expr log(Expr x) { return apply(S::kLog, x); }
Expr log1p(Expr x) { return apply(S::kLog1p, x); }
Expr magnitude(Expr x) { return apply(S::kAbs, x); }
Expr fraction(Expr x) { return x - apply(S::kFloor, x); }
// c0 + c1 x + c2 x^2 + ...
Expr polynomial(Expr x, std::span<const double> c) {
    Expr sum = x.number(c.back());
    for (std::size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
    return sum;
}
// An odd function of x from its value at |x|; a zero keeps its sign.
Expr odd(Expr x, Expr at_magnitude) { return select(less(x, 0), -at_magnitude, select(equal(x, 0), x, at_magnitude)); }

template <Expr (*formula)(Expr)>
NodeId lower_unary(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return formula({b, a[0]}).node();
}
template <Expr (*formula)(Expr)>
NodeId lower_in_f64(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return formula(Expr(b, a[0]).as(DType::kF64)).as(b.dtype(a[0])).node();
}
template <Expr (*formula)(Expr, Expr)>
NodeId lower_binary(BodyBuilder& b, NodeArgs a, const Attrs&) {
    return formula({b, a[0]}, {b, a[1]}).node();
}

// ---------------------------------------------------------------- inverse and hyperbolic functions

Expr cathetus(Expr x) { return sqrt((1 - x) * (1 + x)); }  // NaN beyond -1..1
Expr acos_of(Expr x) { return apply(S::kAtan2, cathetus(x), x); }
Expr asin_of(Expr x) { return apply(S::kAtan2, x, cathetus(x)); }
Expr atan_of(Expr x) { return apply(S::kAtan2, x, x.number(1)); }
// Beyond this the square of x may not be a number, and 1 has no part in the sum of the two.
constexpr double kSquareIsAll = 1e9;
Expr acosh_of(Expr x) {
    const Expr above = x - 1;
    return select(greater(x, kSquareIsAll), log(x) + M_LN2, log1p(above + sqrt(above) * sqrt(above + 2)));
}
Expr asinh_of(Expr x) {
    const Expr m = magnitude(x);
    const Expr square = m * m;
    const Expr near = log1p(m + square / (1 + sqrt(1 + square)));
    return odd(x, select(greater(m, kSquareIsAll), log(m) + M_LN2, near));
}
Expr atanh_of(Expr x) {
    const Expr m = magnitude(x);
    return odd(x, 0.5 * log1p(2 * m / (1 - m)));
}
// exp(x) / 2 in two factors, neither of which overflows before the product does.
Expr half_exp(Expr x) {
    const Expr root = exp(0.5 * x);
    return (0.5 * root) * root;
}
Expr cosh_of(Expr x) {
    const Expr m = magnitude(x);
    return half_exp(m) + half_exp(-m);
}
Expr sinh_of(Expr x) {
    const Expr m = magnitude(x);
    const Expr e = apply(S::kExpm1, m);
    return odd(x, select(greater(m, 20), half_exp(m), 0.5 * (e + e / (e + 1))));
}

// ---------------------------------------------------------------- the error function's kin

// exp(-x^2) / sqrt(pi) times the continued fraction 1 / (x + 1/2 / (x + 2/2 / (x + 3/2 / ...))); right from x = 2 on.
Expr erfc_tail(Expr x) {
    const Expr bounded = apply(S::kMin, x, x.number(30));  // the tail is 0 there, and powers of x are finite
    Expr a_before = x.number(0), a = x.number(1), b_before = x.number(1), b = bounded;
    for (int n = 1; n <= 40; ++n) {
        const Expr a_next = bounded * a + a_before * (0.5 * n);
        const Expr b_next = bounded * b + b_before * (0.5 * n);
        a_before = a, a = a_next, b_before = b, b = b_next;
    }
    return exp(-(bounded * bounded)) * (0.5 * M_2_SQRTPI) * (a / b);
}
Expr erfc_of(Expr x) {
    const Expr m = magnitude(x);
    const Expr tail = erfc_tail(m);
    return select(less(m, 2), 1 - apply(S::kErf, x), select(less(x, 0), 2 - tail, tail));
}
// A rational approximation, made exact by two steps of Newton's method. Infinite at -1 and 1, NaN beyond.
Expr erfinv_of(Expr y) {
    constexpr std::array a = {0.886226899, -1.645349621, 0.914624893, -0.140543331};
    constexpr std::array b = {1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801};
    constexpr std::array c = {-1.970840454, -1.624906493, 3.429567803, 1.641345311};
    constexpr std::array d = {1.0, 3.543889200, 1.637067800};
    const Expr m = magnitude(y);
    const Expr square = y * y;
    const Expr central = m * polynomial(square, a) / polynomial(square, b);
    const Expr z = sqrt(-log(0.5 * (1 - m)));
    Expr x = select(greater(m, 0.7), polynomial(z, c) / polynomial(z, d), central);
    for (int step = 0; step < 2; ++step) {
        // Against 1 - m where that has no rounding error.
        const Expr missing = select(less(m, 0.5), m - apply(S::kErf, x), erfc_of(x) - (1 - m));
        x = x + missing / (M_2_SQRTPI * exp(-(x * x)));
    }
    return odd(y, select(equal(m, 1), m / (1 - m), x));
}

// ---------------------------------------------------------------- the gamma function's kin

// log |gamma(x)| by Lanczos's series, and below 1/2 by reflection.
Expr lgamma_of(Expr x) {
    constexpr std::array c = {676.5203681218851,  -1259.1392167224028,  771.32342877765313,    -176.61502916214059,
                              12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
    const Expr reflected = less(x, 0.5);
    const Expr z = select(reflected, -x, x - 1);
    Expr series = x.number(0.99999999999980993);
    for (std::size_t i = 0; i < c.size(); ++i) series = series + c[i] / (z + static_cast<double>(i + 1));
    const Expr t = z + 7.5;
    const Expr direct = 0.5 * std::log(2 * M_PI) + ((z + 0.5) * log(t) - t + log(series));
    const Expr part = fraction(x);
    const Expr sine = apply(S::kSin, M_PI * apply(S::kMin, part, 1 - part));
    const Expr infinite = apply(S::kIsInf, x);
    return select(infinite, magnitude(x), select(reflected, log(M_PI / sine) - direct, direct));
}
// The asymptotic series behind ten steps of the recurrence, and below 0 by reflection. NaN at negative whole numbers.
Expr digamma_of(Expr x) {
    constexpr std::array c = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    const Expr negative = less(x, 0);
    const Expr z = select(negative, 1 - x, x);
    Expr steps = 1 / z;
    for (int i = 1; i < 10; ++i) steps = steps + 1 / (z + static_cast<double>(i));
    const Expr far = z + 10;
    const Expr inverse_square = 1 / (far * far);
    const Expr direct = log(far) - 0.5 / far - inverse_square * polynomial(inverse_square, c) - steps;
    const Expr part = fraction(x);
    const Expr nearest = select(greater(part, 0.5), part - 1, part);
    const Expr reflection = direct - M_PI / apply(S::kTan, M_PI * nearest);
    const Expr pole = select(negative, x.number(std::nan("")), -1 / x);
    return select(equal(part, 0), select(greater(x, 0), direct, pole), select(negative, reflection, direct));
}
// The modified Bessel function of order 0: its power series, and from 20 on the asymptotic one.
Expr i0_of(Expr x) {
    const Expr m = magnitude(x);
    const Expr quarter = 0.25 * (m * m);
    Expr near = x.number(1);
    for (double k = 40; k >= 1; --k) near = 1 + near * quarter * (1 / (k * k));
    const Expr inverse = 1 / m;
    Expr far = x.number(1);
    for (double k = 20; k >= 1; --k) far = 1 + far * inverse * ((2 * k - 1) * (2 * k - 1) / (8 * k));
    const Expr root = exp(0.5 * m);
    return select(greater(m, 20), root * (far / sqrt(2 * M_PI * m)) * root, near);
}

// ---------------------------------------------------------------- functions of two floats

Expr copysign_of(Expr x, Expr y) {
    const Expr negative_zero = apply(S::kAnd, equal(y, 0), less(1 / y, 0));
    const Expr m = magnitude(x);
    return select(apply(S::kOr, less(y, 0), negative_zero), -m, m);
}
// Scaled by the larger of the two, so that no square overflows; infinite if one is, whatever the other is.
Expr hypot_of(Expr x, Expr y) {
    const Expr a = magnitude(x), b = magnitude(y);
    const Expr large = apply(S::kMax, a, b);
    const Expr ratio = apply(S::kMin, a, b) / large;
    const Expr finite = select(equal(large, 0), large, large * sqrt(1 + ratio * ratio));
    const Expr infinite = apply(S::kOr, apply(S::kIsInf, x), apply(S::kIsInf, y));
    return select(infinite, x.number(INFINITY), finite);
}

// ---------------------------------------------------------------- references

double erfinv(double y) {
    const double m = std::fabs(y);
    if (!(m < 1)) return m == 1 ? std::copysign(INFINITY, y) : std::nan("");
    double low = 0, high = 7;
    for (int step = 0; step < 100; ++step) {
        const double middle = 0.5 * (low + high);
        const bool below = m < 0.5 ? std::erf(middle) < m : std::erfc(middle) > 1 - m;
        (below ? low : high) = middle;
    }
    return std::copysign(high, y);
}
// Beyond this the value is larger than any number, and the library's function throws where it is far larger. NaN at infinity, as
// in torch.
constexpr double kLargestOfBessel = 720;
double bessel_i0(double x) {
    const double magnitude = std::fabs(x);
    if (std::isinf(x)) return std::nan("");
    return magnitude > kLargestOfBessel ? INFINITY : std::cyl_bessel_i(0.0, magnitude);
}
double digamma(double x) {
    if (x == 0) return std::copysign(INFINITY, -x);
    if (x < 0) return x == std::floor(x) ? std::nan("") : digamma(1 - x) - M_PI / std::tan(M_PI * std::fmod(x, 1.0));
    double sum = 0;
    for (; x < 30; ++x) sum -= 1 / x;
    const double z = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z / 240)));
}
template <auto F>
Expected<void> reference_two(ReferenceContext& c) {
    return map_elements(c, [](Elements e) { return real_element(F(e[0].as_real(), e[1].as_real())); });
}

}  // namespace

std::vector<OpDef> special_ops() {
    using SampleMaker = std::vector<Sample> (*)();
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr SampleMaker any = samples::unary;
    constexpr SampleMaker positive = samples::unary_positive;
    constexpr SampleMaker unit = samples::unary_unit;
    const auto one = keep<OperandSpec>({{"x", OperandKind::kTensor, true}});
    const auto two = keep<OperandSpec>({{"x", OperandKind::kTensor, true}, {"y", OperandKind::kTensor, true}});
    const auto broadcast = keep<Constraint>({{rules::kBroadcastText}});
    const Traits elementwise{.layout = Layout::kElementwise};

    std::vector<OpDef> ops;
    const auto unary = [&](std::string_view name, std::string_view summary, Reference reference, MapLower lower,
                           SampleMaker make, Names names) {
        add_op(ops, name, summary, one, {}, {}, rules::to_float, rules::same_shape, reference, lower, {all, make},
               names, elementwise);
    };
    const auto binary = [&](std::string_view name, std::string_view summary, Reference reference, MapLower lower,
                            Names names) {
        add_op(ops, name, summary, two, {}, broadcast, rules::promote_to_float, rules::broadcast_shape, reference,
               lower, {all, samples::binary}, names, elementwise);
    };

    unary("acos", "The angle whose cosine is x.", reference_real<[](double x) { return std::acos(x); }>,
          lower_unary<acos_of>, unit, {"torch.acos", "numpy.arccos", "Acos"});
    unary("asin", "The angle whose sine is x.", reference_real<[](double x) { return std::asin(x); }>,
          lower_unary<asin_of>, unit, {"torch.asin", "numpy.arcsin", "Asin"});
    unary("atan", "The angle whose tangent is x.", reference_real<[](double x) { return std::atan(x); }>,
          lower_unary<atan_of>, any, {"torch.atan", "numpy.arctan", "Atan"});
    unary("acosh", "The inverse of cosh at x.", reference_real<[](double x) { return std::acosh(x); }>,
          lower_unary<acosh_of>, positive, {"torch.acosh", "numpy.arccosh", "Acosh"});
    unary("asinh", "The inverse of sinh at x.", reference_real<[](double x) { return std::asinh(x); }>,
          lower_unary<asinh_of>, any, {"torch.asinh", "numpy.arcsinh", "Asinh"});
    unary("atanh", "The inverse of tanh at x.", reference_real<[](double x) { return std::atanh(x); }>,
          lower_unary<atanh_of>, unit, {"torch.atanh", "numpy.arctanh", "Atanh"});
    unary("cosh", "The hyperbolic cosine of x.", reference_real<[](double x) { return std::cosh(x); }>,
          lower_unary<cosh_of>, any, {"torch.cosh", "numpy.cosh", "Cosh"});
    unary("sinh", "The hyperbolic sine of x.", reference_real<[](double x) { return std::sinh(x); }>,
          lower_unary<sinh_of>, any, {"torch.sinh", "numpy.sinh", "Sinh"});
    unary("erfc", "1 - erf(x), exact where erf is near 1.", reference_real<[](double x) { return std::erfc(x); }>,
          lower_in_f64<erfc_of>, any, {"torch.erfc", "", ""});
    unary("erfinv", "The inverse of erf at x.", reference_real<erfinv>, lower_in_f64<erfinv_of>, unit,
          {"torch.erfinv", "", ""});
    unary("lgamma", "The logarithm of the magnitude of the gamma function at x.",
          reference_real<[](double x) { return std::lgamma(x); }>, lower_in_f64<lgamma_of>, any,
          {"torch.lgamma", "", ""});
    unary("digamma", "The derivative of the logarithm of the gamma function at x.", reference_real<digamma>,
          lower_in_f64<digamma_of>, any, {"torch.digamma", "", ""});
    unary("i0", "The modified Bessel function of the first kind of order 0 at x.", reference_real<bessel_i0>,
          lower_in_f64<i0_of>, any, {"torch.i0", "", ""});
    binary("copysign", "The magnitude of x with the sign of y; the sign of NaN is positive.",
           reference_two<[](double x, double y) { return std::isnan(y) ? std::fabs(x) : std::copysign(x, y); }>,
           lower_binary<copysign_of>, {"torch.copysign", "numpy.copysign", ""});
    binary("hypot", "The length of the hypotenuse over x and y, without overflow between.",
           reference_two<[](double x, double y) { return std::hypot(x, y); }>, lower_binary<hypot_of>,
           {"torch.hypot", "numpy.hypot", ""});
    return ops;
}

}  // namespace flexor::ops
