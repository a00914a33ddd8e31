// What the machine that runs the generated code can do, and how a function says so to LLVM.
//
// The vector width is a property of the host, fixed for the life of the process. FLEXOR_VECTOR_BITS (128, 256 or 512)
// caps it, so that a wide machine can run the code of a narrow one in tests.
#pragma once

#include <llvm-c/Core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace flexor::codegen::cpu_llvm {

struct HostTarget {
    std::string triple;
    std::string cpu;
    std::string features;   // LLVM feature string, "+avx2,-avx512f,...": part of every cache key
    int vector_bits = 128;  // 512 with avx512f (and dq, bw, vl), 256 with avx2 and fma, else 128
    bool is_x86 = false;
    bool has_fma = false;
    bool has_avx512 = false;      // false as well when the width is capped below 512
    bool has_avx512bf16 = false;  // dpbf16ps and hardware float to bfloat16 conversion
    bool has_amx_bf16 = false;    // and the system lets this process use the matrix unit
    bool has_f16c = false;        // hardware float to half conversion

    // Lanes of one vector of elements of `bytes` bytes.
    int lanes(int bytes) const { return vector_bits / (8 * bytes); }
    bool has(std::string_view feature) const;
};

const HostTarget& host_target();

// What loads and stores of caller memory promise: nothing. Where they lie as they should, they cost what aligned ones
// do.
inline constexpr unsigned kAnyAlignment = 1;

// Sets target-cpu, target-features, prefer-vector-width, min-legal-vector-width and nounwind. Every generated function
// needs them: without the width attributes LLVM splits 512-bit vectors on several machines.
void add_function_attributes(LLVMValueRef function);

}  // namespace flexor::codegen::cpu_llvm
