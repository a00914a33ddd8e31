// The parts of VectorMath that loop: huge angles, far-apart remainders, integer division and powers.
#include <array>
#include <string>

#include "codegen/cpu_llvm/vector_math.h"

namespace flexor::codegen::cpu_llvm {

namespace {

// 64 zero bits, then 2/pi to 1216 binary places.
constexpr std::array<uint64_t, 21> kTwoOverPi = {0,
                                                 0xa2f9836e4e441529,
                                                 0xfc2757d1f534ddc0,
                                                 0xdb6295993c439041,
                                                 0xfe5163abdebbc561,
                                                 0xb7246e3a424dd2e0,
                                                 0x06492eea09d1921c,
                                                 0xfe1deb1cb129a73e,
                                                 0xe88235f52ebb4484,
                                                 0xe99c7026b45f7e41,
                                                 0x3991d639835339f4,
                                                 0x9c845f8bbdf9283b,
                                                 0x1ff897ffde05980f,
                                                 0xef2f118b5a0a6d1f,
                                                 0x6d367ecf27cb09b7,
                                                 0x4f463f669e5fea2d,
                                                 0x7527bac7ebe5f17b,
                                                 0x3d0739f78a5292ea,
                                                 0x6bfb5fb11f8d5d08,
                                                 0x56033046fc7b6bab,
                                                 0xf0cfbc209af4361d};

// A name that tells the type apart: "f32x16".
std::string type_suffix(Type t) {
    Type e = Ir::element(t);
    std::string text;
    switch (LLVMGetTypeKind(e)) {
        case LLVMFloatTypeKind: text = "f32"; break;
        case LLVMDoubleTypeKind: text = "f64"; break;
        default: text = "i" + std::to_string(LLVMGetIntTypeWidth(e));
    }
    return text + "x" + std::to_string(Ir::lanes(t));
}

}  // namespace

// double -> {double hi, double lo, i64 quadrant} for finite |x| >= 2^16, by Payne and Hanek's method: only the bits of
// 2/pi that matter for x mod 2 pi are multiplied, 192 of them, which leaves more than 120 bits of the fraction even for
// the double nearest to a multiple of pi/2.
Value VectorMath::rem_pio2_function() {
    const char* name = "flexor.rem_pio2";
    if (Value known = ir_.find_function(name)) return known;
    std::array<Type, 3> fields = {ir_.f64(), ir_.f64(), ir_.i64()};
    const Type result = LLVMStructTypeInContext(ir_.context(), fields.data(), 3, 0);
    Value function = ir_.begin_function(name, result, {ir_.f64()}, true);
    const Type i64 = ir_.i64(), i192 = ir_.int_type(192), i256 = ir_.int_type(256);
    std::array<Value, kTwoOverPi.size()> words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = LLVMConstInt(i64, kTwoOverPi[i], 0);
    Value table_data = LLVMConstArray2(i64, words.data(), words.size());
    Value table = LLVMAddGlobal(ir_.module(), Ir::type_of(table_data), "flexor.two_over_pi");
    LLVMSetInitializer(table, table_data);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMInternalLinkage);

    Value x = Ir::param(function, 0);
    Value bits = ir_.to_bits(x);
    Value exponent = ir_.bit_and(ir_.lshr(bits, 52), 0x7ff);
    Value mantissa = ir_.bit_or(ir_.bit_and(bits, (int64_t{1} << 52) - 1), int64_t{1} << 52);
    // x = mantissa * 2^(exponent - 1075). Bits of 2/pi of weight 2^2 and more give multiples of 4 quadrants.
    Value position = ir_.add(exponent, 64 - 1075 - 2);
    Value word = ir_.lshr(position, 6);
    Value shift = ir_.bit_and(position, 63);
    Value window = LLVMConstNull(i256);
    for (int i = 0; i < 4; ++i) {
        Value at = ir_.add(word, i);
        Value address = LLVMBuildInBoundsGEP2(ir_.builder(), i64, table, &at, 1, "");
        Value piece = LLVMBuildLoad2(ir_.builder(), i64, address, "");
        window = ir_.bit_or(ir_.shl(window, 64), ir_.zext(piece, i256));
    }
    window = ir_.lshr(ir_.shl(window, ir_.zext(shift, i256)), 64);
    Value product = ir_.mul(ir_.trunc(window, i192), ir_.zext(mantissa, i192));  // units of 2^-190 quadrants, mod 4
    Value half = ir_.shl(LLVMConstInt(i192, 1, 0), 189);
    Value quadrant = ir_.trunc(ir_.lshr(ir_.add(product, half), 190), i64);
    Value fraction = ir_.shl(product, 2);  // signed, units of 2^-192
    Value negative = ir_.icmp(LLVMIntSLT, fraction, LLVMConstNull(i192));
    Value magnitude = ir_.select(negative, ir_.sub(LLVMConstNull(i192), fraction), fraction);
    Value zeros = ir_.intrinsic("llvm.ctlz", {i192}, {magnitude, LLVMConstInt(ir_.i1(), 1, 0)});
    Value top = ir_.trunc(ir_.lshr(ir_.shl(magnitude, zeros), 128), i64);
    Value lead = ir_.sitofp(ir_.lshr(top, 11), ir_.f64());
    Value rest = ir_.sitofp(ir_.bit_and(top, 0x7ff), ir_.f64());
    Value unit = power_of_two(ir_.sub(ir_.index(11 - 64), ir_.trunc(zeros, i64)));
    Value hi = ir_.fmul(lead, unit);
    Value lo = ir_.fmul(ir_.fmul(rest, unit), 0x1p-11);
    Value pi_half = ir_.fp(ir_.f64(), 0x1.921fb54442d18p+0);
    Sum p = two_prod(hi, pi_half);
    p.lo = ir_.fadd(p.lo, ir_.fma(hi, 0x1.1a62633145c07p-54, ir_.fmul(lo, pi_half)));
    Sum r = fast_two_sum(p.hi, p.lo);
    Value backwards = ir_.icmp(LLVMIntSLT, bits, 0);
    Value flip = ir_.bit_xor(negative, backwards);
    Value all = LLVMGetPoison(result);
    all = ir_.with_field(all, ir_.select(flip, ir_.fneg(r.hi), r.hi), 0);
    all = ir_.with_field(all, ir_.select(flip, ir_.fneg(r.lo), r.lo), 1);
    all = ir_.with_field(all, ir_.select(backwards, ir_.sub(ir_.index(0), quadrant), quadrant), 2);
    ir_.ret(all);
    ir_.end_function();
    return function;
}

// <n x T> -> {<n x T> hi, <n x T> lo, <n x iT> quadrant}, lane by lane; lanes that are small or not finite get NaN.
Value VectorMath::slow_angle_function(Type t) {
    const std::string name = "flexor.slow_angle." + type_suffix(t);
    if (Value known = ir_.find_function(name.c_str())) return known;
    const Type bits = ir_.bits_type(t);
    const int lanes = Ir::lanes(t);
    std::array<Type, 3> fields = {t, t, bits};
    const Type result = LLVMStructTypeInContext(ir_.context(), fields.data(), 3, 0);
    Value one = rem_pio2_function();
    Value function = ir_.begin_function(name.c_str(), result, {t}, true);
    ir_.add_attribute(function, "noinline");
    Value x = Ir::param(function, 0);
    Block entry = ir_.block_here(), loop = ir_.new_block("loop"), body = ir_.new_block("body"),
          next = ir_.new_block("next"), done = ir_.new_block("done");
    Value unknown = LLVMGetPoison(result);
    unknown = ir_.with_field(unknown, ir_.nan(t), 0);
    unknown = ir_.with_field(unknown, ir_.nan(t), 1);
    unknown = ir_.with_field(unknown, ir_.integer(bits, 0), 2);
    ir_.jump(loop);
    ir_.at_end_of(loop);
    Value i = ir_.phi(ir_.i64()), so_far = ir_.phi(result);
    Ir::incoming(i, ir_.index(0), entry);
    Ir::incoming(so_far, unknown, entry);
    Value lane = lanes == 1 ? x : ir_.extract(x, i);
    Value wide = LLVMGetTypeKind(Ir::element(t)) == LLVMDoubleTypeKind ? lane : ir_.fpext(lane, ir_.f64());
    Value size = ir_.fabs(wide);
    Value sensible =
        ir_.bit_and(ir_.fcmp(LLVMRealOGE, size, 65536.0), ir_.fcmp(LLVMRealOLT, size, ir_.infinity(ir_.f64())));
    ir_.branch(sensible, body, next);
    ir_.at_end_of(body);
    Value r = ir_.call(one, {wide});
    Value updated = so_far;
    for (int k = 0; k < 3; ++k) {
        Value v = ir_.field(r, k);
        if (Ir::element(t) != ir_.f64()) v = k == 2 ? ir_.trunc(v, ir_.i32()) : ir_.fptrunc(v, ir_.f32());
        Value whole = ir_.field(so_far, k);
        updated = ir_.with_field(updated, lanes == 1 ? v : ir_.insert(whole, v, i), k);
    }
    ir_.jump(next);
    ir_.at_end_of(next);
    Value merged = ir_.phi(result);
    Ir::incoming(merged, so_far, loop);
    Ir::incoming(merged, updated, body);
    Value i_next = ir_.add(i, 1);
    Ir::incoming(i, i_next, next);
    Ir::incoming(so_far, merged, next);
    ir_.branch(ir_.icmp(LLVMIntSLT, i_next, lanes), loop, done);
    ir_.at_end_of(done);
    ir_.ret(merged);
    ir_.end_function();
    return function;
}

// ---------------------------------------------------------------------------------------------- remainders

// |a|, |b| with a finite and b positive -> a mod b. Every step subtracts a rounded quotient times b, which one fma does
// without error; the remainder may become negative on the way.
void VectorMath::slow_fmod_body(Value a, Value b, Type result) {
    const Type t = Ir::type_of(a);
    const bool from_double = Ir::element(result) == ir_.f64();
    Block entry = ir_.block_here(), loop = ir_.new_block("loop"), body = ir_.new_block("body"),
          done = ir_.new_block("done");
    ir_.jump(loop);
    ir_.at_end_of(loop);
    Value r = ir_.phi(t);
    Ir::incoming(r, a, entry);
    Value far = ir_.fcmp(LLVMRealOGE, ir_.fabs(r), b);
    ir_.branch(ir_.any(far), body, done);
    ir_.at_end_of(body);
    Value step = b;
    if (from_double) {
        // The quotient of doubles can overflow: first remove multiples of b * 2^600 or b * 2^1200.
        for (int i = 0; i < 2; ++i) {
            Value huge = ir_.fcmp(LLVMRealOGT, ir_.fmul(ir_.fabs(r), 0x1p-600), step);
            step = ir_.select(huge, ir_.fmul(step, 0x1p600), step);
        }
    }
    Value q = trunc(ir_.fdiv(r, step));
    Value reduced = ir_.select(far, ir_.fnma(q, step, r), r);
    Ir::incoming(r, reduced, ir_.block_here());
    ir_.jump(loop);
    ir_.at_end_of(done);
    Value positive = ir_.select(ir_.fcmp(LLVMRealOLT, r, 0.0), ir_.fadd(r, b), r);
    ir_.ret(from_double ? positive : ir_.fptrunc(positive, ir_.f32()));
}

Value VectorMath::slow_fmod_function(Type t) {
    const std::string name = "flexor.slow_fmod." + type_suffix(t);
    if (Value known = ir_.find_function(name.c_str())) return known;
    Value function = ir_.begin_function(name.c_str(), t, {t, t}, true);
    ir_.add_attribute(function, "noinline");
    Value a = Ir::param(function, 0), b = Ir::param(function, 1);
    if (Ir::element(t) != ir_.f64()) {
        a = ir_.fpext(a, ir_.f64());
        b = ir_.fpext(b, ir_.f64());
    }
    slow_fmod_body(a, b, t);
    ir_.end_function();
    return function;
}

Value VectorMath::fmod(Value a, Value b) {
    const Type t = Ir::type_of(a);
    Value x = ir_.fabs(a), y = ir_.fabs(b);
    Value ratio = ir_.fdiv(x, y);
    Value r = ir_.fnma(trunc(ratio), y, x);
    r = ir_.select(ir_.fcmp(LLVMRealOLT, r, 0.0), ir_.fadd(r, y), r);
    Value infinity = ir_.infinity(t);
    r = ir_.select(ir_.bit_and(ir_.fcmp(LLVMRealOEQ, y, infinity), ir_.fcmp(LLVMRealOLT, x, infinity)), x, r);
    Value far = ir_.fcmp(LLVMRealOGE, ratio, Ir::is_double(a) ? 0x1p52 : 0x1p23);
    far = ir_.bit_and(far, ir_.bit_and(ir_.fcmp(LLVMRealOGT, y, 0.0), ir_.fcmp(LLVMRealOLT, x, infinity)));
    std::array<Value, 1> value = {r};
    where_rare(far, value, [&](std::span<Value> values) {
        Value safe_x = ir_.select(far, x, ir_.fp(t, 0.0)), safe_y = ir_.select(far, y, ir_.fp(t, 1.0));
        values[0] = ir_.call(slow_fmod_function(t), {safe_x, safe_y});
    });
    return ir_.copysign(value[0], a);
}

Value VectorMath::floor_mod(Value a, Value b) {
    Value m = fmod(a, b);
    Value nonzero = ir_.fcmp(LLVMRealUNE, m, 0.0);
    Value differ = ir_.bit_xor(ir_.fcmp(LLVMRealOLT, m, 0.0), ir_.fcmp(LLVMRealOLT, b, 0.0));
    return ir_.select(ir_.bit_and(nonzero, differ), ir_.fadd(m, b), m);
}

Value VectorMath::floor_div(Value a, Value b) {
    const Type t = Ir::type_of(a);
    Value m = fmod(a, b);
    Value ratio = ir_.fdiv(a, b);
    Value d = ir_.fdiv(ir_.fsub(a, m), b);
    Value nonzero = ir_.fcmp(LLVMRealUNE, m, 0.0);
    Value differ = ir_.bit_xor(ir_.fcmp(LLVMRealOLT, m, 0.0), ir_.fcmp(LLVMRealOLT, b, 0.0));
    d = ir_.select(ir_.bit_and(nonzero, differ), ir_.fsub(d, 1.0), d);
    Value down = floor(d);
    Value rounded = ir_.select(ir_.fcmp(LLVMRealOGT, ir_.fsub(d, down), 0.5), ir_.fadd(down, 1.0), down);
    Value result = ir_.select(ir_.fcmp(LLVMRealUNE, d, 0.0), rounded, ir_.copysign(ir_.fp(t, 0.0), ratio));
    return ir_.select(ir_.fcmp(LLVMRealOEQ, b, 0.0), ratio, result);
}

// ---------------------------------------------------------------------------------------------- integers

// Truncating division and remainder that cannot trap. Up to 32 bits the quotient is exact in double.
Value VectorMath::divide_guarded(Value a, Value b, bool is_signed, bool want_remainder) {
    const Type t = Ir::type_of(a);
    Value zero = ir_.icmp(LLVMIntEQ, b, 0);
    Value result;
    if (Ir::int_bits(a) <= 32) {
        Value safe = ir_.select(zero, ir_.integer(t, 1), b);
        auto wide = [&](Value v) { return is_signed ? ir_.sitofp(v, ir_.f64()) : ir_.uitofp(v, ir_.f64()); };
        Value q = trunc(ir_.fdiv(wide(a), wide(safe)));
        // Through int64: the most negative number over -1 fits there and wraps afterwards, and so do unsigned values.
        const bool narrow = is_signed && Ir::int_bits(a) < 32;
        Value quotient = ir_.trunc(ir_.fptosi(q, narrow ? ir_.i32() : ir_.i64()), Ir::element(a));
        result = want_remainder ? ir_.sub(a, ir_.mul(quotient, b)) : quotient;
    } else {
        Value minus_one = is_signed ? ir_.icmp(LLVMIntEQ, b, -1) : nullptr;
        Value unsafe = minus_one ? ir_.bit_or(zero, minus_one) : zero;
        Value safe = ir_.select(unsafe, ir_.integer(t, 1), b);
        Value q = is_signed ? LLVMBuildSDiv(ir_.builder(), a, safe, "") : LLVMBuildUDiv(ir_.builder(), a, safe, "");
        if (minus_one) q = ir_.select(minus_one, ir_.sub(ir_.integer(t, 0), a), q);
        result = want_remainder ? ir_.sub(a, ir_.mul(q, b)) : q;
    }
    return ir_.select(zero, ir_.integer(t, 0), result);
}

Value VectorMath::int_trunc_div(Value a, Value b, bool is_signed) { return divide_guarded(a, b, is_signed, false); }
Value VectorMath::int_trunc_mod(Value a, Value b, bool is_signed) { return divide_guarded(a, b, is_signed, true); }

Value VectorMath::int_floor_mod(Value a, Value b, bool is_signed) {
    Value m = int_trunc_mod(a, b, is_signed);
    if (!is_signed) return m;
    Value differ = ir_.icmp(LLVMIntSLT, ir_.bit_xor(m, b), 0);
    return ir_.select(ir_.bit_and(ir_.icmp(LLVMIntNE, m, 0), differ), ir_.add(m, b), m);
}

Value VectorMath::int_floor_div(Value a, Value b, bool is_signed) {
    Value q = int_trunc_div(a, b, is_signed);
    if (!is_signed) return q;
    Value m = ir_.sub(a, ir_.mul(q, b));
    Value differ = ir_.icmp(LLVMIntSLT, ir_.bit_xor(m, b), 0);
    Value inexact = ir_.bit_and(ir_.icmp(LLVMIntNE, m, 0), ir_.icmp(LLVMIntNE, b, 0));
    return ir_.select(ir_.bit_and(inexact, differ), ir_.sub(q, 1), q);
}

Value VectorMath::int_pow_function(Type t, bool is_signed) {
    const std::string name = std::string("flexor.int_pow.") + (is_signed ? "s" : "u") + type_suffix(t);
    if (Value known = ir_.find_function(name.c_str())) return known;
    Value function = ir_.begin_function(name.c_str(), t, {t, t}, true);
    ir_.add_attribute(function, "noinline");
    Value base = Ir::param(function, 0), exponent = Ir::param(function, 1);
    Value one = ir_.integer(t, 1), zero = ir_.integer(t, 0);
    Block entry = ir_.block_here(), loop = ir_.new_block("loop"), body = ir_.new_block("body"),
          done = ir_.new_block("done");
    ir_.jump(loop);
    ir_.at_end_of(loop);
    Value b = ir_.phi(t), e = ir_.phi(t), r = ir_.phi(t);
    Ir::incoming(b, base, entry);
    Ir::incoming(e, exponent, entry);
    Ir::incoming(r, one, entry);
    Value more = ir_.icmp(is_signed ? LLVMIntSGT : LLVMIntUGT, e, 0);
    ir_.branch(ir_.any(more), body, done);
    ir_.at_end_of(body);
    Value odd = ir_.bit_and(more, ir_.icmp(LLVMIntNE, ir_.bit_and(e, 1), 0));
    Ir::incoming(r, ir_.select(odd, ir_.mul(r, b), r), body);
    Ir::incoming(b, ir_.mul(b, b), body);
    Ir::incoming(e, is_signed ? ir_.ashr(e, 1) : ir_.lshr(e, 1), body);
    ir_.jump(loop);
    ir_.at_end_of(done);
    Value result = r;
    if (is_signed) {
        Value odd_exponent = ir_.icmp(LLVMIntNE, ir_.bit_and(exponent, 1), 0);
        Value minus_one = ir_.integer(t, -1);
        Value reciprocal =
            ir_.select(ir_.icmp(LLVMIntEQ, base, 1), one,
                       ir_.select(ir_.icmp(LLVMIntEQ, base, -1), ir_.select(odd_exponent, minus_one, one), zero));
        result = ir_.select(ir_.icmp(LLVMIntSLT, exponent, 0), reciprocal, r);
    }
    ir_.ret(result);
    ir_.end_function();
    return function;
}

Value VectorMath::int_pow(Value base, Value exponent, bool is_signed) {
    return ir_.call(int_pow_function(Ir::type_of(base), is_signed), {base, exponent});
}

}  // namespace flexor::codegen::cpu_llvm
