#pragma once

// bf16 blocks of up to 32 x 32 on the matrix unit (AMX), where the host has one.

#include "codegen/cpu_llvm/gemm_ir.h"
#include "codegen/cpu_llvm/jit.h"
#include "runtime/kernels/gemm_tiles.h"

namespace flexor::codegen::cpu_llvm {

// Adds the block functions to the module that holds the bf16 tiles.
void emit_matrix_unit(const TileIr& ir);

// Makes `tiles` (whose tile functions are set: they take the rest of K) use the blocks of `object`. One table a
// process.
void use_matrix_unit(const LoadedObject& object, runtime::GemmTiles& tiles);

}  // namespace flexor::codegen::cpu_llvm
