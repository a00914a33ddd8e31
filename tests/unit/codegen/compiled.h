#pragma once
// Compilation of one kernel, for the tests that run it.
#include <gtest/gtest.h>

#include <vector>

#include "codegen/cpu_llvm/kernel_compiler.h"

namespace flexor::codegen::cpu_llvm::testing {

inline runtime::KernelRef compiled(const loopir::Kernel& kernel) {
    const loopir::Kernel* list[] = {&kernel};
    auto result = compile_kernels(list);
    if (!result) {
        ADD_FAILURE() << kernel.name << ": " << result.error().to_string();
        return nullptr;
    }
    return (*result)[0];
}

// Runs a kernel with the workspace that it wants; the fault that it reports.
inline std::int32_t launch(const runtime::KernelHandle& handle, void* const* buffers, const std::int64_t* params) {
    const std::size_t bytes = handle.workspace_bytes(params);
    std::vector<char> workspace(bytes + 64);
    auto* aligned = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
    std::int32_t fault = runtime::kNoFault;
    handle.launch({buffers, params, aligned, &fault, bytes});
    return fault;
}

}  // namespace flexor::codegen::cpu_llvm::testing
