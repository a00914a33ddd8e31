#pragma once
// Compilation of one kernel, for the tests that run it.
#include <gtest/gtest.h>

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

}  // namespace flexor::codegen::cpu_llvm::testing
