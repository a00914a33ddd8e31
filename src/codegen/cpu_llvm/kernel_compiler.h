// From kernels of the loop IR to callable handles: one module, one object for all kernels given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/cpu_llvm/ir.h"
#include "codegen/cpu_llvm/jit.h"
#include "loopir/kernel.h"
#include "runtime/kernel_handle.h"
#include "support/expected.h"

namespace flexor::codegen::cpu_llvm {

// A kernel whose code is in a module that is not machine code yet.
class PendingKernel {
public:
    virtual ~PendingKernel() = default;
    // `code_bytes` is this kernel's share of the object.
    virtual Expected<runtime::KernelRef> finish(const LoadedObject& object, std::size_t code_bytes) = 0;
};

// Each writes functions whose names begin with `name`.
std::unique_ptr<PendingKernel> emit_row_kernel(Ir& ir, const loopir::Kernel& kernel, const std::string& name);
Expected<std::unique_ptr<PendingKernel>> emit_contraction_kernel(Ir& ir, const loopir::Kernel& kernel,
                                                                 const std::string& name);
Expected<std::unique_ptr<PendingKernel>> emit_attention_kernel(const loopir::Kernel& kernel);
bool contraction_needs_code(const loopir::Kernel& kernel);  // a prologue, or an epilogue that computes

// Makes the host's GEMM tiles and attention rows the ones runtime/ uses. Weights must be packed after this; compiling
// does it too.
void install_host_kernels();

// One handle per kernel; structurally equal kernels share theirs. Extern kernels are refused: they have an implementation
// already.
Expected<std::vector<runtime::KernelRef>> compile_kernels(std::span<const loopir::Kernel* const> kernels);

}  // namespace flexor::codegen::cpu_llvm
