// How element types live in registers and in memory, and every cast between them.
//
// Promises
//  C1  In registers: bool is i1, f16 and bf16 are their 16 bits as i16, the others are themselves. In memory bool is
//      one byte, written 0 or 1, read as true for any non-zero byte.
//  C2  A cast to a floating type rounds once, to nearest even; NaN stays NaN, denormals are kept. Integer to f16 and
//      bf16 goes through f32, as the frameworks do.
//  C3  Float to integer truncates. Out of range is what x86 frameworks give: int32 and narrower take the low bits of
//      the int32 conversion (0x80000000 where that overflows), int64 gives 1 << 63.
//  C4  No library call.
#pragma once

#include "codegen/cpu_llvm/ir.h"
#include "flexor/dtype.h"

namespace flexor::codegen::cpu_llvm {

Type register_type(const Ir& ir, DType dtype);
Type memory_type(const Ir& ir, DType dtype);

// Between the two forms, for scalars and vectors.
Value from_memory(Ir& ir, Value v, DType dtype);
Value to_memory(Ir& ir, Value v, DType dtype);

// Operand and result in register form.
Value convert(Ir& ir, Value v, DType from, DType to);

inline bool is_half(DType d) { return d == DType::kF16 || d == DType::kBF16; }
inline bool is_signed_integer(DType d) { return is_integer(d) && d != DType::kU8; }

}  // namespace flexor::codegen::cpu_llvm
