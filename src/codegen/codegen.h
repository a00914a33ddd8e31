#pragma once
// Loop IR to machine code, without the code generator's own headers. Only in builds with one (FLEXOR_WITH_LLVM).
#include <span>
#include <vector>

#include "loopir/kernel.h"
#include "runtime/kernel_handle.h"
#include "support/expected.h"

namespace flexor::codegen {

// One handle per kernel, all in one object; structurally equal kernels share one.
Expected<std::vector<runtime::KernelRef>> compile_kernels(std::span<const loopir::Kernel* const> kernels);

}  // namespace flexor::codegen
