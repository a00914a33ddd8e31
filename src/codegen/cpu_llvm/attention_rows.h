#pragma once

// Row kernels of fused attention for the host, generated once per process and dtype.

#include "runtime/kernels/attention_rows.h"
#include "support/expected.h"

namespace flexor::codegen::cpu_llvm {

// f32, f64, f16, bf16; compiles at the first call for a dtype, thread-safe. `narrow_weights` is for bf16 on a host with
// bf16 dot products.
Expected<const runtime::AttentionRows*> host_attention_rows(DType dtype, bool narrow_weights);

// Makes host_attention_rows the provider of runtime::attention_rows; what fails to compile stays portable.
void install_host_attention_rows();

}  // namespace flexor::codegen::cpu_llvm
