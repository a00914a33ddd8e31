#include "codegen/cpu_llvm/vector_math.h"

#include <array>
#include <string>

namespace flexor::codegen::cpu_llvm {

namespace {

// What distinguishes float from double in the shared skeletons.
struct Format {
    int mantissa_bits;
    int64_t bias;
    double shifter;  // adding it rounds to an integer and leaves that integer in the low bits
    double ln2_hi, ln2_lo;
    double log2e;
    double exp_low, exp_high;  // exp is 0 and infinite outside
    double min_normal;
};

constexpr Format kFloat = {23, 127, 12582912.0, 0x1.62e43p-1, -0x1.05c61p-29, 0x1.715476p+0, -104.0, 88.8, 0x1p-126};
constexpr Format kDouble = {
    52,     1023,  6755399441055744.0, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.71547652b82fep+0,
    -745.2, 709.8, 0x1p-1022};

const Format& format_of(Value x) { return Ir::is_double(x) ? kDouble : kFloat; }

// (e^r - 1 - r) / r^2 on |r| <= ln(2)/2: least relative error of e^r (float) and e^r - 1 (double).
constexpr std::array kExpFloat = {0.49999994, 0.166665211, 0.041668389, 0.00836873613, 0.00138145639};
constexpr std::array kExpm1Float = {0.5, 0.166666657, 0.0416662954, 0.00833349768, 0.00139446883, 0.000197903311};
constexpr std::array kExpDouble = {0.50000000000000009,   0.16666666666666671,   0.041666666666652259,
                                   0.0083333333333261385, 0.0013888888895607756, 0.00019841269874818136,
                                   2.4801574524619523e-5, 2.7557255394539038e-6, 2.756793277397668e-7,
                                   2.5105222223064829e-8, 1.7687741029379262e-9};
// (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2)-1, sqrt(2)-1].
constexpr std::array kLogFloat = {0.333333313, -0.250008225, 0.200012326, -0.166232988,
                                  0.142015547, -0.131605804, 0.127633139, -0.0763564408};
// (2 atanh(s)/s - 2) / s^2 in powers of s^2.
constexpr std::array kLogDouble = {0.66666666666667347, 0.39999999999412222, 0.28571428743029641, 0.22222198498022097,
                                   0.18183568690785362, 0.15313927688041765, 0.14797286370211802};
// (erf(x)/x) in u = x^2 * kErfScale - 1 on |x| <= kErfLimit.
constexpr double kErfLimit = 3.85, kErfScale = 0.13493000500589948;
constexpr std::array kErfFloat = {0.367284805,   -0.183301419,   0.136213228,   -0.11038807,
                                  0.0907884091,  -0.0731556863,  0.0566113107,  -0.0412254483,
                                  0.0276838057,  -0.0180468783,  0.0121087395,  -0.00641057128,
                                  0.00183211337, -0.00119093619, 0.00153727818, -0.000600440428};
// erf(x)/x in x^2 on |x| <= 1.5, and -log(1 - erf(x)) in v = (|x| - 3.72) / 2.23 on [1.49, 5.95].
constexpr std::array kErfSmall = {
    1.1283791670955126,     -0.37612638903183749,    0.11283791670954992,    -0.026866170645111798,
    0.0052239776252929156,  -0.00085483270164997288, 0.00012055332768595436, -1.4925645825064732e-5,
    1.6462045305869924e-6,  -1.6365075701053554e-7,  1.4800869934033218e-8,  -1.2252116670752207e-9,
    9.2513497057517206e-11, -6.1612175303155936e-12, 3.2344596634646009e-13, -9.7398671173168006e-15};
constexpr std::array kErfLarge = {15.757823828847549,     17.15359293030286,      4.8235296953441236,
                                  0.05016047861302004,    -0.018003804290059167,  0.0065456912176594776,
                                  -0.002356364045554685,  0.00082171737180659007, -0.00023093986811936523,
                                  0.00020514317795919078, 0.00017602662467658353, 0.0002151724995463412,
                                  0.00014204273332987066, 5.7876007843630416e-5,  1.1843527234059964e-5};
// erf around k/8, k = 0..31, in powers of |x| - k/8: one row a power. From 3.8125 on it is 1, so that 1 - erf(x) is 0 as it
// is for the library's erf.
constexpr std::array<std::array<double, 32>, 5> kErfTable = {{
    {0,           0.140316203, 0.276326388, 0.404116899, 0.520499885, 0.623240888, 0.711155653, 0.784075081,
     0.842700779, 0.888388216, 0.92290014,  0.948170066, 0.966105163, 0.978443742, 0.986671686, 0.99199003,
     0.995322287, 0.997345984, 0.998537302, 0.999217033, 0.999593019, 0.999794602, 0.999899387, 0.999952137,
     0.999977887, 0.999990106, 0.999995708, 0.999998212, 0.999999285, 0.999999702, 0.999999881, 1},
    {1.12837911,     1.11088479,     1.06001377,     0.980352581,
     0.87878257,     0.763499677,    0.642931342,    0.524745345,
     0.415107816,    0.31827426,     0.236521348,    0.170359924,
     0.118930362,    0.0804722682,   0.0527749658,   0.0335457735,
     0.0206669234,   0.0123407608,   0.00714226812,  0.00400643796,
     0.002178255,    0.00114785496,  0.000586264068, 0.000290220109,
     0.000139248194, 6.47559282e-05, 2.9187524e-05,  1.27509575e-05,
     5.39903385e-06, 2.21573077e-06, 8.81344192e-07, 0},
    {6.87494139e-06,  -0.138853624,    -0.265000641,    -0.367630839,
     -0.43939057,     -0.477186948,    -0.482198328,    -0.459152132,
     -0.415107816,    -0.358058572,    -0.295651764,    -0.234245002,
     -0.178395689,    -0.130767599,    -0.092356354,    -0.0628984794,
     -0.0413339734,   -0.0262242202,   -0.0160701815,   -0.00951534603,
     -0.00544567592,  -0.00301314425,  -0.00161224185,  -0.000834392151,
     -0.00041774998,  -0.000202365263, -9.48610614e-05, -4.30353066e-05,
     -1.88970262e-05, -8.03221883e-06, -3.3051308e-06,  0},
    {-0.376676291,   -0.358222485,   -0.308781534,   -0.23465471,
     -0.146428347,   -0.0558054484,  0.0265291296,   0.0925957039,
     0.138031587,    0.16215305,     0.16730547,     0.157788232,
     0.13867934,     0.114830151,    0.0901894942,   0.0674969628,
     0.0482868105,   0.033098381,    0.0217765812,   0.0137713449,
     0.00837997161,  0.00491103623,  0.00277385884,  0.0015109129,
     0.000794072403, 0.000402842445, 0.000197345376, 9.33846895e-05,
     4.2697633e-05,  1.8867695e-05,  8.05964191e-06, 0},
    {0.0140846036,    0.066822879,     0.126093537,     0.166023389,
     0.182714909,     0.176242888,     0.150597274,     0.112413466,
     0.0692825392,    0.0281222649,    -0.00599030452,  -0.0303384773,
     -0.0444632508,   -0.0496204868,   -0.0480416492,   -0.0422325283,
     -0.0344423167,   -0.0263735373,   -0.0191033538,   -0.0131545477,
     -0.00864152331,  -0.00542966183,  -0.00326944957,  -0.00188955956,
     -0.00104944827,  -0.000560669985, -0.000288373703, -0.0001428908,
     -6.82504688e-05, -3.14395147e-05, -1.39733756e-05, 0},
}};
// tanh on the quarter octaves from 1/16 to 10, in powers of |x| - left end; the entry of 1.75/32 serves [0, 1/16) with
// left end 0. Indexed by the five low bits of bits(|x|) >> 21.
constexpr std::array<std::array<double, 32>, 6> kTanhTable = {{
    {0.964027584, 0.986614287, 0.995054781, 0.998177886, 0.999329329,  0.999909222,  0.999987721,  0.999998331,
     0.999999762, 0,           0,           0,           0.0624187477, 0.0779664442, 0.0934763029, 0.108940929,
     0.124352999, 0.154990733, 0.185333207, 0.215326339, 0.244918659,  0.302709728,  0.3583574,    0.411570042,
     0.462117165, 0.554599702, 0.635148942, 0.703905582, 0.761594176,  0.848283648,  0.905148268,  0.941375554},
    {0.070650056,
     0.0265916195,
     0.0098657636,
     0.0036407772,
     0.00134011474,
     0.00018146915,
     2.456109e-05,
     3.32401714e-06,
     4.46178831e-07,
     0,
     0,
     1,
     0.996103883,
     0.99392122,
     0.991262197,
     0.988131881,
     0.98453635,
     0.975977898,
     0.965651631,
     0.95363456,
     0.940014839,
     0.908366799,
     0.871579945,
     0.830610096,
     0.786447704,
     0.692419112,
     0.59658581,
     0.5045169,
     0.419974953,
     0.280415237,
     0.180706784,
     0.113812119},
    {-0.0680917501,
     -0.026221849,
     -0.00981071778,
     -0.00363167515,
     -0.00132976298,
     -0.000180162155,
     -2.43859304e-05,
     -3.30034345e-06,
     -4.24314806e-07,
     0,
     0,
     1.40857042e-08,
     -0.062175557,
     -0.0774924979,
     -0.0926595256,
     -0.107648008,
     -0.122430034,
     -0.151267499,
     -0.178967282,
     -0.205342621,
     -0.230226755,
     -0.274971038,
     -0.312336743,
     -0.341853887,
     -0.363427281,
     -0.384014219,
     -0.378921479,
     -0.355133921,
     -0.319879115,
     -0.23788932,
     -0.163573265,
     -0.107141137},
    {0.0419632308,
     0.0168952141,
     0.00642259978,
     0.00239129527,
     0.000845158531,
     0.000114600494,
     1.55135367e-05,
     2.09960285e-06,
     2.36470626e-07,
     0,
     0,
     -0.333334982,
     -0.328153878,
     -0.325265467,
     -0.321759492,
     -0.317650288,
     -0.312956691,
     -0.301883787,
     -0.288718522,
     -0.273666024,
     -0.256980866,
     -0.219582349,
     -0.178626284,
     -0.136197105,
     -0.0943328589,
     -0.0178770721,
     0.0418292992,
     0.0818628445,
     0.104108617,
     0.108626701,
     0.0879403055,
     0.0629444048},
    {-0.0173604935,
     -0.00754707772,
     -0.00294389599,
     -0.00110620656,
     -0.00034430853,
     -4.67344653e-05,
     -6.327341e-06,
     -8.56358611e-07,
     -7.37188159e-08,
     0,
     0,
     6.49006179e-05,
     0.0412284546,
     0.0512154028,
     0.060992457,
     0.07052093,
     0.0798786953,
     0.0973901153,
     0.113365382,
     0.127592415,
     0.140595198,
     0.159053564,
     0.168989077,
     0.170750737,
     0.166793793,
     0.138665453,
     0.0994808078,
     0.0599487498,
     0.0237697903,
     -0.0151233515,
     -0.0259828456,
     -0.0237213504},
    {0.00397614436,
     0.00191675755,
     0.000771516934,
     0.000293066609,
     6.87027932e-05,
     9.33436513e-06,
     1.26393729e-06,
     1.71067555e-07,
     9.7995505e-09,
     0,
     0,
     0.132452652,
     0.127802297,
     0.125117242,
     0.121937104,
     0.118283994,
     0.111990027,
     0.102179177,
     0.0910125673,
     0.0787785575,
     0.0591725372,
     0.0320508927,
     0.00600452069,
     -0.0171012096,
     -0.0433416627,
     -0.0615179501,
     -0.0626643449,
     -0.0530744679,
     -0.0321106687,
     -0.00955487788,
     0.00137857767,
     0.00459587388},
}};
// (tanh(x) - x) / x^3 in x^2 on |x| <= 0.625.
constexpr std::array kTanhSmall = {-0.333332807, 0.133314207, -0.0537378043, 0.0206325557, -0.00569739006};
// (atan(t) - t) / t^3 in t^2 on [0, 1].
constexpr std::array kAtanFloat = {-0.333332986, 0.199985489,   -0.142642438, 0.109521925,   -0.0840346739,
                                   0.0579578541, -0.0311780814, 0.0109147206, -0.00179364532};
constexpr std::array kAtanDouble = {
    -0.33333333333333068,  0.19999999999951441,    -0.14285714282573928,    0.11111111006990392,
    -0.09090907002352429,  0.076922798318318784,   -0.066664039968737802,   0.058805274555927625,
    -0.052535169642185759, 0.04722316853723704,    -0.042191649695115004,   0.036641627264176878,
    -0.02990341053536696,  0.021984304831690504,   -0.013900044955504738,   0.0071961394017502168,
    -0.002884731636776977, 0.00083125601861508864, -0.00015214663698070767, 1.322365357603783e-5};
// 2^r - 1 - r ln 2 over r^2, and 2 atanh(s) / (s ln 2) in s^2: float's pow, computed in double.
constexpr std::array kExp2InDouble = {1.0,
                                      0.69314718055994531,
                                      0.24022651020901222,
                                      0.055504106010250908,
                                      0.009618043335497024,
                                      0.0013333819976360339,
                                      0.00015465370944795709,
                                      1.5213606029273456e-5};
constexpr std::array kLog2InDouble = {2.8853900817901518, 0.96179667325250579, 0.57708360314700238, 0.41167156662121144,
                                      0.34075246591313113};
// 2 atanh(s)/s - 2 - 2/3 s^2 over s^4 in s^2: double's pow.
constexpr std::array kPowDouble = {0.39999999999999977, 0.28571428571445195, 0.22222222217515292, 0.18181818872999571,
                                   0.15384556682626899, 0.13336324843237091, 0.11674664590348522, 0.11990319086886594};

}  // namespace

// ---------------------------------------------------------------------------------------------- exact arithmetic

VectorMath::Sum VectorMath::two_sum(Value a, Value b) {
    Value s = ir_.fadd(a, b);
    Value bb = ir_.fsub(s, a);
    return {s, ir_.fadd(ir_.fsub(a, ir_.fsub(s, bb)), ir_.fsub(b, bb))};
}

VectorMath::Sum VectorMath::fast_two_sum(Value a, Value b) {
    Value s = ir_.fadd(a, b);
    return {s, ir_.fsub(b, ir_.fsub(s, a))};
}

VectorMath::Sum VectorMath::two_prod(Value a, Value b) {
    Value p = ir_.fmul(a, b);
    return {p, ir_.fma(a, b, ir_.fneg(p))};
}

void VectorMath::where_rare(Value mask, std::span<Value> fast, const std::function<void(std::span<Value>)>& slow) {
    Value needed = ir_.any(mask);
    Block here = ir_.block_here();
    Block rare = ir_.new_block("rare");
    Block join = ir_.new_block("join");
    ir_.branch(needed, rare, join);
    ir_.at_end_of(rare);
    std::vector<Value> values(fast.begin(), fast.end());
    slow(values);
    for (size_t i = 0; i < values.size(); ++i) values[i] = ir_.select(mask, values[i], fast[i]);
    Block rare_end = ir_.block_here();
    ir_.jump(join);
    ir_.at_end_of(join);
    for (size_t i = 0; i < values.size(); ++i) {
        Value merged = ir_.phi(Ir::type_of(fast[i]));
        Ir::incoming(merged, fast[i], here);
        Ir::incoming(merged, values[i], rare_end);
        fast[i] = merged;
    }
}

// ---------------------------------------------------------------------------------------------- exponentials

Value VectorMath::power_of_two(Value n) {
    const bool wide = Ir::int_bits(n) == 64;
    const Format& f = wide ? kDouble : kFloat;
    Value bits = ir_.shl(ir_.add(n, f.bias), f.mantissa_bits);
    return ir_.bitcast(bits, ir_.with_element(Ir::type_of(n), wide ? ir_.f64() : ir_.f32()));
}

Value VectorMath::scale(Value p, Value n, Value shifted, Value x) {
    const int lanes = Ir::lanes(p);
    const int native = Ir::is_double(p) ? 8 : 16;
    if (Ir::target().has_avx512 && lanes % native == 0) {
        std::vector<Value> parts;
        const Type t = ir_.vec(Ir::element(p), native);
        Value all = LLVMConstAllOnes(ir_.int_type(native));
        for (int i = 0; i < lanes; i += native) {
            Value part = ir_.slice(p, i, native), n_part = ir_.slice(n, i, native);
            parts.push_back(
                ir_.intrinsic(native == 8 ? "llvm.x86.avx512.mask.scalef.pd.512" : "llvm.x86.avx512.mask.scalef.ps.512",
                              {}, {part, n_part, LLVMConstNull(t), all, ir_.integer(ir_.i32(), 4)}));
        }
        if (parts.size() == 1 || (parts.size() & (parts.size() - 1)) == 0) return ir_.concat(parts);
    }
    // Two factors, so that the only rounding is the last one even where the result is denormal: one is 2^(bias/2) or
    // its inverse, by the sign of x, and the other holds what remains of n. The low bits of `shifted` are n.
    const Format& f = format_of(p);
    Value bits = ir_.to_bits(shifted);
    auto exponent = [&](int64_t e) { return ir_.integer(Ir::type_of(bits), e << f.mantissa_bits); };
    Value towards = ir_.select(ir_.icmp(LLVMIntSLT, ir_.to_bits(x), 0), exponent(f.bias + f.bias / 2),
                               exponent(f.bias - f.bias / 2));
    Value rest = ir_.add(ir_.shl(bits, f.mantissa_bits), towards);
    Value half = ir_.sub(exponent(2 * f.bias), towards);
    return ir_.fmul(ir_.fmul(p, ir_.bitcast(rest, Ir::type_of(p))), ir_.bitcast(half, Ir::type_of(p)));
}

Value VectorMath::exp_polynomial(Value r) {
    Value q = Ir::is_double(r) ? ir_.polynomial(r, kExpDouble) : ir_.polynomial(r, kExpFloat);
    return ir_.fma(ir_.fma(q, r, 1.0), r, 1.0);
}

Value VectorMath::exp_of_reduced(Value hi, Value lo, Value shifted) {
    const Format& f = format_of(hi);
    Value n = ir_.fsub(shifted, f.shifter);
    Value r = ir_.fma(n, -f.ln2_hi, hi);
    r = ir_.fma(n, -f.ln2_lo, r);
    if (lo) r = ir_.fadd(r, lo);
    return scale(exp_polynomial(r), n, shifted, hi);
}

Value VectorMath::exp(Value x) {
    const Format& f = format_of(x);
    x = ir_.clamp(x, f.exp_low, f.exp_high);
    return exp_of_reduced(x, nullptr, ir_.fma(x, f.log2e, f.shifter));
}

Value VectorMath::exp2(Value x) {
    const Format& f = format_of(x);
    const bool wide = Ir::is_double(x);
    x = ir_.clamp(x, wide ? -1080.0 : -152.0, wide ? 1025.0 : 129.0);
    Value shifted = ir_.fadd(x, f.shifter);
    Value n = ir_.fsub(shifted, f.shifter);
    Value r = ir_.fmul(ir_.fsub(x, n), f.ln2_hi);
    return scale(exp_polynomial(r), n, shifted, x);
}

Value VectorMath::expm1(Value x) {
    const Format& f = format_of(x);
    const bool wide = Ir::is_double(x);
    Value in = x;
    x = ir_.clamp(x, wide ? -60.0 : -30.0, f.exp_high);
    Value shifted = ir_.fma(x, f.log2e, f.shifter);
    Value n = ir_.fsub(shifted, f.shifter);
    Value n_bits = ir_.sub(ir_.to_bits(shifted), ir_.to_bits(ir_.fp(Ir::type_of(x), f.shifter)));
    Value r = ir_.fma(n, -f.ln2_hi, x);
    r = ir_.fma(n, -f.ln2_lo, r);
    Value q = wide ? ir_.polynomial(r, kExpDouble) : ir_.polynomial(r, kExpm1Float);
    Value e = ir_.fma(ir_.fmul(r, r), q, r);
    // 2 (s e + (s - 1/2)) with s = 2^(n-1): no overflow before the result overflows.
    Value s = power_of_two(ir_.sub(n_bits, 1));
    Value half = ir_.fma(s, e, ir_.fsub(s, 0.5));
    Value result = ir_.fadd(half, half);
    Value tiny = ir_.fcmp(LLVMRealOLT, ir_.fabs(in), wide ? 0x1p-60 : 0x1p-30);
    return ir_.select(tiny, in, result);
}

Value VectorMath::sigmoid(Value x) {
    Value e = exp(ir_.fneg(ir_.fabs(x)));
    Value one = ir_.fp(Ir::type_of(x), 1.0);
    Value numerator = ir_.select(ir_.fcmp(LLVMRealOLT, x, 0.0), e, one);
    return quotient(numerator, ir_.fadd(e, one));
}

Value VectorMath::tanh(Value x) {
    if (Ir::is_double(x)) {
        Value e = expm1(ir_.fmul(ir_.clamp(ir_.fabs(x), 0.0, 22.0), 2.0));
        Value t = ir_.fdiv(e, ir_.fadd(e, 2.0));
        // Where 2|x| is below the smallest normal or e loses bits, tanh(x) is x.
        Value tiny = ir_.fcmp(LLVMRealOLT, ir_.fabs(x), 0x1p-60);
        return ir_.select(tiny, x, ir_.copysign(t, x));
    }
    if (has_tables(x)) return tanh_by_table(x);
    Value a = ir_.clamp(ir_.fabs(x), 0.0, 10.0);
    Value e = exp(ir_.fmul(a, -2.0));
    Value one = ir_.fp(Ir::type_of(x), 1.0);
    Value large = ir_.fdiv(ir_.fsub(one, e), ir_.fadd(one, e));
    Value z = ir_.fmul(a, a);
    Value small = ir_.fma(ir_.fmul(z, a), ir_.polynomial(z, kTanhSmall), a);
    return ir_.copysign(ir_.select(ir_.fcmp(LLVMRealOLT, a, 0.625), small, large), x);
}

// ---------------------------------------------------------------------------------------------- logarithms

VectorMath::LogParts VectorMath::log_parts(Value x, Value correction) {
    const Format& f = format_of(x);
    const bool wide = Ir::is_double(x);
    const Type t = Ir::type_of(x);
    Value adjust = nullptr;
    if (!correction) {  // 1 + x is never denormal
        Value small = ir_.fcmp(LLVMRealOLT, x, f.min_normal);
        const double lift = wide ? 0x1p52 : 0x1p23;
        x = ir_.select(small, ir_.fmul(x, lift), x);
        adjust = ir_.select(small, ir_.fp(t, wide ? -52.0 : -23.0), ir_.fp(t, 0.0));
    }
    Value bits = ir_.to_bits(x);
    const int64_t root_half = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
    Value k = ir_.ashr(ir_.sub(bits, root_half), f.mantissa_bits);
    Value m = ir_.bitcast(ir_.sub(bits, ir_.shl(k, f.mantissa_bits)), t);
    Value exponent;
    if (wide && !Ir::target().has_avx512) {
        // No vector conversion from int64: the low bits of the shifter hold small integers.
        Value biased = ir_.add(k, ir_.to_bits(ir_.fp(Ir::type_of(x), f.shifter)));
        exponent = ir_.fsub(ir_.bitcast(biased, t), f.shifter);
    } else {
        exponent = ir_.sitofp(k, Ir::element(x));
    }
    Value fraction = ir_.fsub(m, 1.0);
    if (correction) {
        const int64_t cap = f.bias - 1;
        Value capped = ir_.select(ir_.icmp(LLVMIntSGT, k, cap), ir_.integer(Ir::type_of(k), cap), k);
        fraction = ir_.fma(correction, power_of_two(ir_.sub(ir_.integer(Ir::type_of(k), 0), capped)), fraction);
    } else {
        exponent = ir_.fadd(exponent, adjust);
    }
    return {exponent, fraction, log_series(fraction)};
}

// log(1+f) - f.
Value VectorMath::log_series(Value f) {
    Value f2 = ir_.fmul(f, f);
    if (!Ir::is_double(f)) return ir_.fmul(f2, ir_.fma(ir_.polynomial(f, kLogFloat), f, -0.5));
    Value s = ir_.fdiv(f, ir_.fadd(f, 2.0));
    Value z = ir_.fmul(s, s);
    Value half_square = ir_.fmul(f2, 0.5);
    Value series = ir_.fmul(z, ir_.polynomial(z, kLogDouble));
    return ir_.fsub(ir_.fmul(s, ir_.fadd(half_square, series)), half_square);
}

Value VectorMath::log_special(Value x, Value result) {
    const Type t = Ir::type_of(x);
    Value pole = ir_.select(ir_.fcmp(LLVMRealOEQ, x, 0.0), ir_.infinity(t, true), ir_.nan(t));
    result = ir_.select(ir_.fcmp(LLVMRealOGT, x, 0.0), result, pole);
    return ir_.select(ir_.fcmp(LLVMRealOEQ, x, ir_.infinity(t)), x, result);
}

Value VectorMath::log(Value x) {
    const Format& f = format_of(x);
    LogParts p = log_parts(x, nullptr);
    Value low = ir_.fma(p.k, f.ln2_lo, p.y);
    return log_special(x, ir_.fma(p.k, f.ln2_hi, ir_.fadd(p.f, low)));
}

Value VectorMath::log1p(Value x) {
    const Format& f = format_of(x);
    Sum u = two_sum(ir_.fp(Ir::type_of(x), 1.0), x);
    LogParts p = log_parts(u.hi, u.lo);
    Value low = ir_.fma(p.k, f.ln2_lo, p.y);
    Value result = log_special(u.hi, ir_.fma(p.k, f.ln2_hi, ir_.fadd(p.f, low)));
    return ir_.select(ir_.fcmp(LLVMRealOEQ, x, 0.0), x, result);
}

Value VectorMath::log_in_base(Value x, double base_hi, double base_lo, double k_hi, double k_lo) {
    const Type t = Ir::type_of(x);
    LogParts p = log_parts(x, nullptr);
    Sum m = fast_two_sum(p.f, p.y);
    Sum scaled = two_prod(m.hi, ir_.fp(t, base_hi));
    Value low = ir_.fadd(scaled.lo, ir_.fma(m.lo, base_hi, ir_.fmul(m.hi, base_lo)));
    Value k = p.k;
    if (k_hi != 1.0) {
        Sum whole = two_prod(k, ir_.fp(t, k_hi));
        low = ir_.fadd(low, ir_.fma(k, k_lo, whole.lo));
        k = whole.hi;
    }
    Sum total = two_sum(k, scaled.hi);
    return log_special(x, ir_.fadd(total.hi, ir_.fadd(total.lo, low)));
}

Value VectorMath::log2(Value x) {
    if (Ir::is_double(x)) return log_in_base(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0);
    return log_in_base(x, 0x1.715476p+0, 0x1.4ae0cp-26, 1.0, 0.0);
}

Value VectorMath::log10(Value x) {
    if (Ir::is_double(x)) {
        return log_in_base(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f79ffp-2,
                           -0x1.9dc1da994fd21p-59);
    }
    return log_in_base(x, 0x1.bcb7b2p-2, -0x1.5b235ep-27, 0x1.344136p-2, -0x1.ec10cp-27);
}

// ---------------------------------------------------------------------------------------------- erf, quotient

bool VectorMath::has_tables(Value x) { return Ir::target().has_avx512 && Ir::is_float(x) && Ir::lanes(x) == 16; }

// Lane by lane entries[index mod 32].
Value VectorMath::look_up(std::span<const double> entries, Value index) {
    std::array<Value, 32> c;
    for (size_t i = 0; i < 32; ++i) c[i] = LLVMConstReal(ir_.f32(), entries[i]);
    Value low = LLVMConstVector(c.data(), 16), high = LLVMConstVector(c.data() + 16, 16);
    return ir_.intrinsic("llvm.x86.avx512.vpermi2var.ps.512", {}, {low, index, high});
}

Value VectorMath::erf_by_table(Value x) {
    const Type t = Ir::type_of(x);
    Value a = ir_.min_second(ir_.fp(t, 3.93), ir_.fabs(x));  // NaN stays: d is NaN whatever the table gives
    Value shifted = ir_.fadd(a, 0x1p20);                     // ulp 1/8: the low bits count eighths
    Value d = ir_.fsub(a, ir_.fsub(shifted, 0x1p20));
    Value index = ir_.to_bits(shifted);
    Value p = look_up(kErfTable.back(), index);
    for (size_t power = kErfTable.size() - 1; power-- > 0;) p = ir_.fma(p, d, look_up(kErfTable[power], index));
    return ir_.copysign(p, x);
}

Value VectorMath::tanh_by_table(Value x) {
    const Type t = Ir::type_of(x);
    Value a = ir_.min_second(ir_.fp(t, 9.99), ir_.fabs(x));
    Value bits = ir_.to_bits(ir_.max_second(ir_.fp(t, 1.75 / 32), a));
    Value index = ir_.lshr(bits, 21);
    Value left = ir_.bitcast(ir_.bit_and(bits, ~int64_t{0x1fffff}), t);
    left = ir_.select(ir_.fcmp(LLVMRealOGE, a, 1.0 / 16), left, ir_.fp(t, 0.0));
    Value d = ir_.fsub(a, left);
    Value p = look_up(kTanhTable.back(), index);
    for (size_t power = kTanhTable.size() - 1; power-- > 0;) p = ir_.fma(p, d, look_up(kTanhTable[power], index));
    return ir_.copysign(p, x);
}

Value VectorMath::erf(Value x) {
    const Type t = Ir::type_of(x);
    if (!Ir::is_double(x)) {
        if (has_tables(x)) return erf_by_table(x);
        Value c = ir_.clamp(x, -kErfLimit, kErfLimit);
        Value u = ir_.fma(ir_.fmul(c, c), kErfScale, -1.0);
        Value p = ir_.clamp(ir_.fmul(c, ir_.polynomial(u, kErfFloat)), -1.0, 1.0);
        return ir_.select(ir_.fcmp(LLVMRealOGE, ir_.fabs(x), kErfLimit), ir_.copysign(ir_.fp(t, 1.0), x), p);
    }
    Value a = ir_.fabs(x);
    Value z = ir_.fmul(x, x);
    Value inner = ir_.fmul(x, ir_.polynomial(z, kErfSmall));
    Value c = ir_.clamp(a, 1.0, 5.95);
    Value v = ir_.fmul(ir_.fsub(c, 3.72), 1.0 / 2.23);
    Value tail = exp(ir_.fneg(ir_.polynomial(v, kErfLarge)));
    Value outer = ir_.copysign(ir_.fsub(ir_.fp(t, 1.0), tail), x);
    return ir_.select(ir_.fcmp(LLVMRealOLE, a, 1.5), inner, outer);
}

Value VectorMath::quotient(Value a, Value b) {
    if (!has_tables(a)) return ir_.fdiv(a, b);
    const Type t = Ir::type_of(a);
    Value r = ir_.intrinsic("llvm.x86.avx512.rcp14.ps.512", {}, {b, LLVMConstNull(t), LLVMConstAllOnes(ir_.i16())});
    r = ir_.fma(r, ir_.fnma(b, r, ir_.fp(t, 1.0)), r);
    Value q = ir_.fmul(a, r);
    return ir_.fma(r, ir_.fnma(q, b, a), q);
}

Value VectorMath::rsqrt(Value x) { return ir_.fdiv(ir_.fp(Ir::type_of(x), 1.0), ir_.sqrt(x)); }

// ---------------------------------------------------------------------------------------------- power

// |x|^y by double arithmetic; x neither 0 nor infinite matters here, those are settled by the caller's sign of log.
Value VectorMath::pow_core_f32(Value ax, Value y) {
    Value x = ir_.fpext(ax, ir_.f64());
    const Type t = Ir::type_of(x);
    Value bits = ir_.to_bits(x);
    Value k = ir_.ashr(ir_.sub(bits, 0x3fe6a09e667f3bcd), 52);
    Value m = ir_.bitcast(ir_.sub(bits, ir_.shl(k, 52)), t);
    Value biased = ir_.add(k, ir_.to_bits(ir_.fp(t, kDouble.shifter)));
    Value exponent = ir_.fsub(ir_.bitcast(biased, t), kDouble.shifter);
    Value s = ir_.fdiv(ir_.fsub(m, 1.0), ir_.fadd(m, 1.0));
    Value log2 = ir_.fma(s, ir_.polynomial(ir_.fmul(s, s), kLog2InDouble), exponent);
    log2 = ir_.select(ir_.fcmp(LLVMRealOEQ, x, 0.0), ir_.infinity(t, true), log2);
    log2 = ir_.select(ir_.fcmp(LLVMRealOEQ, x, ir_.infinity(t)), x, log2);
    Value z = ir_.clamp(ir_.fmul(ir_.fpext(y, ir_.f64()), log2), -200.0, 200.0);
    Value shifted = ir_.fadd(z, kDouble.shifter);
    Value n_bits = ir_.sub(ir_.to_bits(shifted), ir_.to_bits(ir_.fp(t, kDouble.shifter)));
    Value r = ir_.fsub(z, ir_.fsub(shifted, kDouble.shifter));
    Value p = ir_.fmul(ir_.polynomial(r, kExp2InDouble), power_of_two(n_bits));
    return ir_.fptrunc(p, ir_.f32());
}

// The logarithm is kept as an unevaluated sum of two doubles, about 100 bits.
Value VectorMath::pow_core_f64(Value ax, Value y) {
    const Type t = Ir::type_of(ax);
    Value small = ir_.fcmp(LLVMRealOLT, ax, kDouble.min_normal);
    Value x = ir_.select(small, ir_.fmul(ax, 0x1p52), ax);
    Value bits = ir_.to_bits(x);
    Value k = ir_.ashr(ir_.sub(bits, 0x3fe6a09e667f3bcd), 52);
    Value m = ir_.bitcast(ir_.sub(bits, ir_.shl(k, 52)), t);
    Value biased = ir_.add(k, ir_.to_bits(ir_.fp(t, kDouble.shifter)));
    Value exponent = ir_.fsub(ir_.bitcast(biased, t), kDouble.shifter);
    exponent = ir_.fadd(exponent, ir_.select(small, ir_.fp(t, -52.0), ir_.fp(t, 0.0)));
    // s = (m - 1) / (m + 1) as a sum.
    Value numerator = ir_.fsub(m, 1.0);
    Sum denominator = two_sum(m, ir_.fp(t, 1.0));
    Value s_hi = ir_.fdiv(numerator, denominator.hi);
    Value rest = ir_.fnma(s_hi, denominator.lo, ir_.fnma(s_hi, denominator.hi, numerator));
    Value s_lo = ir_.fdiv(rest, denominator.hi);
    // z = s^2, s^3.
    Sum z = two_prod(s_hi, s_hi);
    z.lo = ir_.fma(ir_.fmul(s_hi, 2.0), s_lo, z.lo);
    Sum cube = two_prod(z.hi, s_hi);
    cube.lo = ir_.fadd(cube.lo, ir_.fma(z.hi, s_lo, ir_.fmul(z.lo, s_hi)));
    // 2/3 + z * (0.4 + ...) as a sum, times s^3.
    Value tail = ir_.polynomial(z.hi, kPowDouble);
    Sum product = two_prod(z.hi, tail);
    product.lo = ir_.fma(z.lo, tail, product.lo);
    Sum factor = fast_two_sum(ir_.fp(t, 0x1.5555555555555p-1), product.hi);
    factor.lo = ir_.fadd(factor.lo, ir_.fadd(product.lo, ir_.fp(t, 0x1.5555555555555p-55)));
    Sum series = two_prod(cube.hi, factor.hi);
    series.lo = ir_.fadd(series.lo, ir_.fma(cube.hi, factor.lo, ir_.fmul(cube.lo, factor.hi)));
    // k ln 2 + 2 s + series.
    Sum whole = two_prod(exponent, ir_.fp(t, kDouble.ln2_hi));
    whole.lo = ir_.fma(exponent, kDouble.ln2_lo, whole.lo);
    Sum sum = two_sum(whole.hi, ir_.fmul(s_hi, 2.0));
    Value low = ir_.fadd(sum.lo, ir_.fma(s_lo, 2.0, whole.lo));
    Sum log = two_sum(sum.hi, series.hi);
    low = ir_.fadd(low, ir_.fadd(log.lo, series.lo));
    log = fast_two_sum(log.hi, low);
    Value zero = ir_.fcmp(LLVMRealOEQ, ax, 0.0), infinite = ir_.fcmp(LLVMRealOEQ, ax, ir_.infinity(t));
    log.hi = ir_.select(zero, ir_.infinity(t, true), ir_.select(infinite, ax, log.hi));
    // exp(y * log).
    Sum e = two_prod(y, log.hi);
    Value e_hi = ir_.clamp(e.hi, kDouble.exp_low, kDouble.exp_high);
    Value e_lo = ir_.fma(y, log.lo, e.lo);
    Value inside = ir_.fcmp(LLVMRealOEQ, e_hi, e.hi);
    e_lo = ir_.select(inside, e_lo, ir_.fp(t, 0.0));
    return exp_of_reduced(e_hi, e_lo, ir_.fma(e_hi, kDouble.log2e, kDouble.shifter));
}

Value VectorMath::pow(Value x, Value y) {
    const Type t = Ir::type_of(x);
    Value ax = ir_.fabs(x);
    Value magnitude = Ir::is_double(x) ? pow_core_f64(ax, y) : pow_core_f32(ax, y);
    Value one = ir_.fp(t, 1.0);
    Value whole = ir_.fcmp(LLVMRealOEQ, trunc(y), y);
    Value half = ir_.fmul(y, 0.5);
    Value odd = ir_.bit_and(whole, ir_.fcmp(LLVMRealONE, trunc(half), half));
    Value negative = ir_.fcmp(LLVMRealOLT, x, 0.0);
    Value undefined =
        ir_.bit_and(ir_.bit_and(negative, ir_.bit_not(whole)), ir_.fcmp(LLVMRealONE, ax, ir_.infinity(t)));
    Value result = ir_.select(odd, ir_.copysign(magnitude, x), magnitude);
    result = ir_.select(undefined, ir_.nan(t), result);
    result = ir_.select(ir_.fcmp(LLVMRealUNO, x, y), ir_.nan(t), result);
    // 1^y and x^0 are 1 even for NaN; (-1)^(+-inf) is 1.
    Value unit = ir_.bit_and(ir_.fcmp(LLVMRealOEQ, ax, 1.0), ir_.fcmp(LLVMRealOEQ, ir_.fabs(y), ir_.infinity(t)));
    Value trivial = ir_.bit_or(ir_.fcmp(LLVMRealOEQ, y, 0.0), ir_.fcmp(LLVMRealOEQ, x, 1.0));
    return ir_.select(ir_.bit_or(trivial, unit), one, result);
}

// ---------------------------------------------------------------------------------------------- trigonometry

Value VectorMath::sine_series(const Angle& a) {
    Value z = ir_.fmul(a.hi, a.hi);
    Value cube = ir_.fmul(z, a.hi);
    if (!a.lo) {
        constexpr std::array c = {-0.166666672, 0.00833332911, -0.000198393114, 2.71811223e-06};
        return ir_.fma(cube, ir_.polynomial(z, c), a.hi);
    }
    constexpr std::array c = {-0.16666666666666631,  0.0083333333333221045, -0.00019841269829577824,
                              2.7557313617168233e-6, -2.505074707978471e-8, 1.5896189309946409e-10};
    Value tail = ir_.fma(ir_.fmul(z, -0.5), a.lo, a.lo);
    return ir_.fadd(a.hi, ir_.fma(cube, ir_.polynomial(z, c), tail));
}

Value VectorMath::cosine_series(const Angle& a) {
    Value z = ir_.fmul(a.hi, a.hi);
    if (!a.lo) {
        constexpr std::array c = {-0.5, 0.0416666679, -0.00138888834, 2.47994594e-05, -2.72056667e-07};
        return ir_.fma(z, ir_.polynomial(z, c), 1.0);
    }
    constexpr std::array c = {0.041666666666666593,   -0.0013888888888873036, 2.4801587288838848e-5,
                              -2.7557314175472016e-7, 2.0875700307861314e-9,  -1.135850816396531e-11};
    Value half = ir_.fmul(z, 0.5);
    Value one = ir_.fp(Ir::type_of(z), 1.0);
    Value w = ir_.fsub(one, half);
    Value low = ir_.fsub(ir_.fsub(one, w), half);
    Value tail = ir_.fma(ir_.fmul(z, z), ir_.polynomial(z, c), ir_.fneg(ir_.fmul(a.hi, a.lo)));
    return ir_.fadd(w, ir_.fadd(low, tail));
}

VectorMath::Angle VectorMath::reduce_angle(Value x) {
    const Format& f = format_of(x);
    const bool wide = Ir::is_double(x);
    const Type t = Ir::type_of(x);
    Value shifted = ir_.fma(x, wide ? 0x1.45f306dc9c883p-1 : 0x1.45f306p-1, f.shifter);
    Value n = ir_.fsub(shifted, f.shifter);
    std::array<Value, 3> parts;
    parts[2] = ir_.sub(ir_.to_bits(shifted), ir_.to_bits(ir_.fp(t, f.shifter)));
    if (wide) {
        Value r = ir_.fma(n, -0x1.921fb54442d18p+0, x);  // exact
        Sum p = two_prod(n, ir_.fp(t, -0x1.1a62633145c07p-54));
        Sum s = two_sum(r, p.hi);
        parts[0] = s.hi;
        parts[1] = ir_.fma(n, 0x1.f1976b7ed8fbcp-110, ir_.fadd(s.lo, p.lo));
    } else {
        Value r = ir_.fma(n, -0x1.921fb6p+0, x);  // exact
        r = ir_.fma(n, 0x1.777a5cp-25, r);
        parts[0] = ir_.fma(n, 0x1.ee59dap-50, r);
        parts[1] = parts[0];
    }
    Value far = ir_.fcmp(LLVMRealOGT, ir_.fabs(x), wide ? 1e9 : 1e5);
    where_rare(far, parts, [&](std::span<Value> values) {
        Value all = ir_.call(slow_angle_function(t), {x});
        for (int i = 0; i < 3; ++i) values[static_cast<size_t>(i)] = ir_.field(all, i);
    });
    return {parts[0], wide ? parts[1] : nullptr, parts[2]};
}

Value VectorMath::trigonometric(Value x, int quadrant_shift) {
    Angle a = reduce_angle(x);
    Value quadrant = ir_.add(a.quadrant, quadrant_shift);
    Value odd = ir_.icmp(LLVMIntNE, ir_.bit_and(quadrant, 1), 0);
    Value value = ir_.select(odd, cosine_series(a), sine_series(a));
    const int shift = Ir::int_bits(quadrant) - 2;
    Value sign = ir_.shl(ir_.bit_and(quadrant, 2), shift);
    Value result = ir_.bitcast(ir_.bit_xor(ir_.to_bits(value), sign), Ir::type_of(x));
    if (quadrant_shift != 0) return result;
    return ir_.select(ir_.fcmp(LLVMRealOEQ, x, 0.0), x, result);
}

Value VectorMath::sin(Value x) { return trigonometric(x, 0); }
Value VectorMath::cos(Value x) { return trigonometric(x, 1); }

Value VectorMath::tan(Value x) {
    Angle a = reduce_angle(x);
    Value odd = ir_.icmp(LLVMIntNE, ir_.bit_and(a.quadrant, 1), 0);
    Value result;
    if (a.lo) {
        Value s = sine_series(a), c = cosine_series(a);
        result = ir_.fdiv(ir_.select(odd, ir_.fneg(c), s), ir_.select(odd, s, c));
    } else {
        constexpr std::array c = {0.333333492,  0.13332662,     0.0540600643, 0.0212813932,
                                  0.0108379312, 8.67794442e-05, 0.00437766826};
        Value z = ir_.fmul(a.hi, a.hi);
        Value value = ir_.fma(ir_.fmul(z, a.hi), ir_.polynomial(z, c), a.hi);
        result = ir_.select(odd, ir_.fdiv(ir_.fp(Ir::type_of(x), -1.0), value), value);
    }
    return ir_.select(ir_.fcmp(LLVMRealOEQ, x, 0.0), x, result);
}

Value VectorMath::atan2(Value y, Value x) {
    const bool wide = Ir::is_double(x);
    const Type t = Ir::type_of(x);
    Value ax = ir_.fabs(x), ay = ir_.fabs(y);
    Value steep = ir_.fcmp(LLVMRealOGT, ay, ax);
    Value large = ir_.select(steep, ay, ax), small = ir_.select(steep, ax, ay);
    Value q = ir_.fdiv(small, large);
    Value equal = ir_.fcmp(LLVMRealOEQ, small, large);  // covers 0/0 and inf/inf
    Value degenerate = ir_.select(ir_.fcmp(LLVMRealOEQ, large, 0.0), ir_.fp(t, 0.0), ir_.fp(t, 1.0));
    q = ir_.select(equal, degenerate, q);
    Value z = ir_.fmul(q, q);
    Value p = wide ? ir_.polynomial(z, kAtanDouble) : ir_.polynomial(z, kAtanFloat);
    Value a = ir_.fma(ir_.fmul(z, q), p, q);
    const double half_hi = wide ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0;
    const double half_lo = wide ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25;
    // pi/2 - a and pi - a with the low part of pi.
    Value turned = ir_.fadd(ir_.fsub(ir_.fp(t, half_hi), a), half_lo);
    a = ir_.select(steep, turned, a);
    Value left = ir_.icmp(LLVMIntSLT, ir_.to_bits(x), 0);
    Value mirrored = ir_.fadd(ir_.fsub(ir_.fp(t, 2 * half_hi), a), 2 * half_lo);
    a = ir_.copysign(ir_.select(left, mirrored, a), y);
    return ir_.select(ir_.fcmp(LLVMRealUNO, x, y), ir_.nan(t), a);
}

// ---------------------------------------------------------------------------------------------- small ones

Value VectorMath::sign(Value x) {
    const Type t = Ir::type_of(x);
    Value negative = ir_.select(ir_.fcmp(LLVMRealOLT, x, 0.0), ir_.fp(t, -1.0), x);
    return ir_.select(ir_.fcmp(LLVMRealOGT, x, 0.0), ir_.fp(t, 1.0), negative);
}

// With a constant that is a number the other operand is the only one to carry NaN: one instruction.
Value VectorMath::max(Value a, Value b) {
    if (Ir::is_number(b)) return ir_.max_second(b, a);
    if (Ir::is_number(a)) return ir_.max_second(a, b);
    return ir_.select(ir_.is_nan(a), a, ir_.max_second(a, b));
}
Value VectorMath::min(Value a, Value b) {
    if (Ir::is_number(b)) return ir_.min_second(b, a);
    if (Ir::is_number(a)) return ir_.min_second(a, b);
    return ir_.select(ir_.is_nan(a), a, ir_.min_second(a, b));
}
Value VectorMath::max_num(Value a, Value b) { return ir_.select(ir_.is_nan(b), a, ir_.max_second(a, b)); }
Value VectorMath::min_num(Value a, Value b) { return ir_.select(ir_.is_nan(b), a, ir_.min_second(a, b)); }

Value VectorMath::is_inf(Value x) { return ir_.fcmp(LLVMRealOEQ, ir_.fabs(x), ir_.infinity(Ir::type_of(x))); }

}  // namespace flexor::codegen::cpu_llvm
