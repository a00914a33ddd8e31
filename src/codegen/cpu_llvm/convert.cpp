#include "codegen/cpu_llvm/convert.h"

namespace flexor::codegen::cpu_llvm {

namespace {

Value f32_from_bf16(Ir& ir, Value bits) {
    return ir.bitcast(ir.shl(ir.zext(bits, ir.i32()), 16), ir.with_element(Ir::type_of(bits), ir.f32()));
}

// The hardware instruction (vcvtneps2bf16) flushes denormals, so integers do the rounding.
Value bf16_from_f32(Ir& ir, Value x) {
    Value bits = ir.to_bits(x);
    Value high = ir.lshr(bits, 16);
    Value rounded = ir.lshr(ir.add(ir.add(bits, 0x7fff), ir.bit_and(high, 1)), 16);
    return ir.trunc(ir.select(ir.is_nan(x), ir.bit_or(high, 0x40), rounded), ir.i16());
}

Value f32_from_f16(Ir& ir, Value bits) {
    const Type f32 = ir.with_element(Ir::type_of(bits), ir.f32());
    if (Ir::target().has_f16c) {
        return ir.fpext(ir.bitcast(bits, ir.with_element(Ir::type_of(bits), ir.f16())), ir.f32());
    }
    // The exponent moves by a multiplication with a power of two, which also normalises denormals.
    Value wide = ir.zext(bits, ir.i32());
    Value magnitude = ir.shl(ir.bit_and(wide, 0x7fff), 13);
    Value scaled = ir.to_bits(ir.fmul(ir.bitcast(magnitude, f32), 0x1p112));
    Value special = ir.icmp(LLVMIntUGE, magnitude, 0x7c00 << 13);
    Value value = ir.select(special, ir.bit_or(magnitude, 0x7f800000), scaled);
    return ir.bitcast(ir.bit_or(value, ir.shl(ir.bit_and(wide, 0x8000), 16)), f32);
}

Value f16_from_f32(Ir& ir, Value x) {
    if (Ir::target().has_f16c) {
        Value half = ir.fptrunc(x, ir.f16());
        return ir.bitcast(half, ir.with_element(Ir::type_of(x), ir.i16()));
    }
    const Type f32 = Ir::type_of(x);
    Value bits = ir.to_bits(x);
    Value sign = ir.bit_and(ir.lshr(bits, 16), 0x8000);
    Value magnitude = ir.bit_and(bits, 0x7fffffff);
    const Type i32 = Ir::type_of(bits);
    // Denormal result: adding 0.5 makes the unit in the last place 2^-24, the addition rounds.
    Value denormal = ir.sub(ir.to_bits(ir.fadd(ir.bitcast(magnitude, f32), 0.5)), ir.to_bits(ir.fp(f32, 0.5)));
    Value odd = ir.bit_and(ir.lshr(magnitude, 13), 1);
    Value normal = ir.lshr(ir.add(ir.add(magnitude, 0xfff - (112 << 23)), odd), 13);
    Value result = ir.select(ir.icmp(LLVMIntULT, magnitude, 0x38800000), denormal, normal);
    result = ir.select(ir.icmp(LLVMIntUGE, magnitude, 0x477ff000), ir.integer(i32, 0x7c00), result);
    Value nan = ir.bit_or(ir.bit_and(ir.lshr(magnitude, 13), 0x3ff), 0x7e00);
    result = ir.select(ir.icmp(LLVMIntUGT, magnitude, 0x7f800000), nan, result);
    return ir.trunc(ir.bit_or(result, sign), ir.i16());
}

Value float_from_half(Ir& ir, Value v, DType from) {
    return from == DType::kF16 ? f32_from_f16(ir, v) : f32_from_bf16(ir, v);
}

Value half_from_float(Ir& ir, Value v, DType to) {
    return to == DType::kF16 ? f16_from_f32(ir, v) : bf16_from_f32(ir, v);
}

Value to_bool(Ir& ir, Value v, DType from) {
    if (from == DType::kBool) return v;
    if (is_half(from)) return ir.icmp(LLVMIntNE, ir.bit_and(v, 0x7fff), 0);
    if (is_floating(from)) return ir.fcmp(LLVMRealUNE, v, 0.0);
    return ir.icmp(LLVMIntNE, v, 0);
}

}  // namespace

Type register_type(const Ir& ir, DType dtype) {
    switch (dtype) {
        case DType::kBool: return ir.i1();
        case DType::kU8:
        case DType::kI8: return ir.i8();
        case DType::kF16:
        case DType::kBF16: return ir.i16();
        case DType::kI32: return ir.i32();
        case DType::kI64: return ir.i64();
        case DType::kF32: return ir.f32();
        case DType::kF64: return ir.f64();
    }
    return ir.i8();
}

Type memory_type(const Ir& ir, DType dtype) { return dtype == DType::kBool ? ir.i8() : register_type(ir, dtype); }

Value from_memory(Ir& ir, Value v, DType dtype) { return dtype == DType::kBool ? ir.icmp(LLVMIntNE, v, 0) : v; }

Value to_memory(Ir& ir, Value v, DType dtype) { return dtype == DType::kBool ? ir.zext(v, ir.i8()) : v; }

Value convert(Ir& ir, Value v, DType from, DType to) {
    if (from == to) return v;
    if (to == DType::kBool) return to_bool(ir, v, from);
    if (is_half(from)) {
        v = float_from_half(ir, v, from);
        from = DType::kF32;
        if (from == to) return v;
    }
    if (is_half(to)) return half_from_float(ir, convert(ir, v, from, DType::kF32), to);  // doubles too, as torch
    const Type target = register_type(ir, to);
    if (is_floating(from)) {
        if (to == DType::kF64) return ir.fpext(v, target);
        if (to == DType::kF32) return ir.fptrunc(v, target);
        if (to == DType::kI64) return ir.fptosi(v, target);
        Value i32 = ir.fptosi(v, ir.i32());
        return to == DType::kI32 ? i32 : ir.trunc(i32, target);
    }
    if (is_floating(to)) return is_signed_integer(from) ? ir.sitofp(v, target) : ir.uitofp(v, target);
    const size_t from_size = from == DType::kBool ? 0 : dtype_size(from);
    if (dtype_size(to) > from_size) return is_signed_integer(from) ? ir.sext(v, target) : ir.zext(v, target);
    return dtype_size(to) < from_size ? ir.trunc(v, target) : v;
}

}  // namespace flexor::codegen::cpu_llvm
