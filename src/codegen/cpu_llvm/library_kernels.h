// Handles of contraction and attention kernels: the library kernels of runtime/, fed from the loop IR, with prologue
// and epilogue generated from the kernel's bodies.
#pragma once

#include <string>

#include "codegen/cpu_llvm/kernel_compiler.h"
#include "codegen/cpu_llvm/row_kernel.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"

namespace flexor::codegen::cpu_llvm {

class ContractionKernel final : public runtime::KernelHandle {
public:
    ContractionKernel(const loopir::Kernel& kernel, LoadedObject object, std::size_t code_bytes);
    bool bind(const std::string& name);

    void launch(const runtime::LaunchArgs& args) const override;
    std::size_t workspace_bytes(const std::int64_t* params) const override;
    std::size_t code_bytes() const override { return code_bytes_; }

private:
    runtime::GemmCall call(const std::int64_t* params) const;

    loopir::Contraction contraction_;
    std::vector<loopir::IntRef> batch_;
    std::optional<loopir::Access> plain_store_;  // the epilogue only stores the sums, rounded to plain_dtype_
    DType plain_dtype_ = DType::kF32;
    LoadedObject object_;
    std::size_t code_bytes_;
    runtime::GemmPrologue prologue_ = nullptr;
    runtime::GemmEpilogue epilogue_ = nullptr;
};

class AttentionKernel final : public runtime::KernelHandle {
public:
    explicit AttentionKernel(const loopir::Kernel& kernel);

    void launch(const runtime::LaunchArgs& args) const override;
    std::size_t workspace_bytes(const std::int64_t* params) const override;
    std::size_t code_bytes() const override { return 0; }

private:
    // `buffers` may be null: sizes only.
    runtime::AttentionCall call(const std::int64_t* params, void* const* buffers) const;

    loopir::Attention attention_;
    std::vector<DType> dtypes_;  // of the buffers
    std::optional<loopir::Node> scale_;
};

}  // namespace flexor::codegen::cpu_llvm
