#pragma once

// Register tiles for the host, generated once per process and dtype. Sizes are parameters of the functions.

#include "runtime/kernels/gemm_tiles.h"
#include "support/expected.h"

namespace flexor::codegen::cpu_llvm {

// f32, f64, f16, bf16; compiles at the first call for a dtype (about 0.1 s of processor time, on all
// threads), thread-safe.
Expected<const runtime::GemmTiles*> host_gemm_tiles(DType dtype);

// Makes host_gemm_tiles the provider of runtime::gemm_tiles. A dtype whose compilation fails falls back to the portable
// table.
void install_host_gemm_tiles();

}  // namespace flexor::codegen::cpu_llvm
