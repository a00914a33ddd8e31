// Elementary functions as inline vector IR, for scalars and vectors of float and double of any lane count.
//
// Promises
//  M1  No library call. Rare hard cases (huge trigonometric arguments, far-apart fmod operands, integer powers) go to
//      private functions of the module that this class writes on first use; the common path is free of branches in the
//      data.
//  M2  Largest error in units in the last place, denormal results included: float 1.5 for all but tanh and tan (2.5),
//      sigmoid and erf (2.3; erf 4 without AVX-512); double 2 for all but tan, tanh, erf (2.5); pow 1 for float, 2 for
//      double.
//  M3  NaN in gives NaN out; infinities, signed zeros and poles as C's math library, except where a function says
//      otherwise.
//  M4  A function may add blocks: the builder then stands in another block than before.
#pragma once

#include <functional>

#include "codegen/cpu_llvm/ir.h"

namespace flexor::codegen::cpu_llvm {

class VectorMath {
public:
    explicit VectorMath(Ir& ir) : ir_(ir) {}

    Value exp(Value x);
    Value exp2(Value x);
    Value expm1(Value x);
    Value log(Value x);
    Value log2(Value x);
    Value log10(Value x);
    Value log1p(Value x);
    Value sin(Value x);
    Value cos(Value x);
    Value tan(Value x);
    Value tanh(Value x);
    Value erf(Value x);
    Value sigmoid(Value x);  // 1 / (1 + exp(-x)), accurate for very negative x as well
    Value pow(Value x, Value y);
    Value atan2(Value y, Value x);

    Value sqrt(Value x) { return ir_.sqrt(x); }
    Value rsqrt(Value x);  // 1 / sqrt(x), two roundings
    Value floor(Value x) { return ir_.unary("llvm.floor", x); }
    Value ceil(Value x) { return ir_.unary("llvm.ceil", x); }
    Value trunc(Value x) { return ir_.unary("llvm.trunc", x); }
    Value round_even(Value x) { return ir_.unary("llvm.roundeven", x); }
    Value sign(Value x);          // -1, 0 (of x's sign), 1; NaN stays
    Value max(Value a, Value b);  // NaN if either is NaN
    Value min(Value a, Value b);
    Value max_num(Value a, Value b);  // the other operand if one is NaN
    Value min_num(Value a, Value b);
    Value is_inf(Value x);

    Value fmod(Value a, Value b);       // exact, sign of a
    Value floor_mod(Value a, Value b);  // sign of b, as Python and torch.remainder
    Value floor_div(Value a, Value b);  // as torch's floor division
    Value trunc_div(Value a, Value b) { return trunc(ir_.fdiv(a, b)); }

    // a / b for b in [1, 2^60): no division instruction where the reciprocal estimate is good enough. At most 1 ulp.
    Value quotient(Value a, Value b);

    // Integers of any width. A zero divisor gives 0; the most negative value divided by -1 wraps.
    Value int_trunc_div(Value a, Value b, bool is_signed);
    Value int_trunc_mod(Value a, Value b, bool is_signed);
    Value int_floor_div(Value a, Value b, bool is_signed);
    Value int_floor_mod(Value a, Value b, bool is_signed);
    // Wrapping; a negative exponent gives 0 except for base 1 and -1.
    Value int_pow(Value base, Value exponent, bool is_signed);

private:
    struct Sum {  // an unevaluated sum hi + lo, |lo| <= ulp(hi) / 2
        Value hi, lo;
    };
    struct LogParts {  // log(x) = k ln 2 + f + y, f exact, |y| small beside f
        Value k, f, y;
    };
    struct Angle {  // x = quadrant * pi/2 + hi + lo; lo is null for float
        Value hi, lo, quadrant;
    };

    // Runs `slow` only if a lane of `mask` is set; its values replace the fast ones in those lanes.
    void where_rare(Value mask, std::span<Value> fast, const std::function<void(std::span<Value>)>& slow);

    Sum two_sum(Value a, Value b);
    Sum fast_two_sum(Value a, Value b);  // |a| >= |b|
    Sum two_prod(Value a, Value b);

    Value power_of_two(Value n);  // 2^n for an integer vector of float width, n in the normal range
    // p * 2^n, correct down to denormals and up to infinity. shifted = n + Format::shifter; x has n's sign where
    // n != 0.
    Value scale(Value p, Value n, Value shifted, Value x);
    Value exp_of_reduced(Value hi, Value lo, Value shifted);
    Value exp_polynomial(Value r);
    LogParts log_parts(Value x, Value correction);
    Value log_series(Value f);
    Value log_special(Value x, Value result);
    Value log_in_base(Value x, double base_hi, double base_lo, double k_hi, double k_lo);
    Angle reduce_angle(Value x);
    Value sine_series(const Angle& a);
    Value cosine_series(const Angle& a);
    Value trigonometric(Value x, int quadrant_shift);
    static bool has_tables(Value x);  // one instruction selects from 32 entries
    Value look_up(std::span<const double> entries, Value index);
    Value erf_by_table(Value x);
    Value tanh_by_table(Value x);
    Value pow_core_f32(Value ax, Value y);
    Value pow_core_f64(Value ax, Value y);
    Value divide_guarded(Value a, Value b, bool is_signed, bool want_remainder);

    Value rem_pio2_function();
    Value slow_angle_function(Type t);
    Value slow_fmod_function(Type t);
    Value int_pow_function(Type t, bool is_signed);
    void slow_fmod_body(Value a, Value b, Type result);

    Ir& ir_;
};

}  // namespace flexor::codegen::cpu_llvm
