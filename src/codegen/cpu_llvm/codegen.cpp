#include "codegen/codegen.h"

#include "codegen/cpu_llvm/kernel_compiler.h"

namespace flexor::codegen {

Expected<std::vector<runtime::KernelRef>> compile_kernels(std::span<const loopir::Kernel* const> kernels) {
    return cpu_llvm::compile_kernels(kernels);
}

}  // namespace flexor::codegen
