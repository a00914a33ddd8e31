// Runs the code of a row kernel: sizes, grain, threads, and the combination of partial reductions.
#pragma once

#include "codegen/cpu_llvm/jit.h"
#include "codegen/cpu_llvm/row_kernel.h"
#include "runtime/kernel_handle.h"

namespace flexor::codegen::cpu_llvm {

class RowKernel final : public runtime::KernelHandle {
public:
    RowKernel(RowPlan plan, LoadedObject object, std::size_t code_bytes);
    // Finds the functions under `name`; false if the object has them not.
    bool bind(const std::string& name);

    void launch(const runtime::LaunchArgs& args) const override;
    std::size_t workspace_bytes(const std::int64_t* params) const override;
    std::size_t code_bytes() const override { return code_bytes_; }

    static constexpr std::uint32_t kMaxRank = 16;  // of the plan's body, which may have a dim more than the kernel's

private:
    using Extents = std::int64_t[kMaxRank];

    void read_extents(const std::int64_t* params, Extents& extents) const;
    void merge_dims(const std::int64_t* params, Extents& extents, std::uint32_t first) const;
    void run_elementwise(const RowContext& context, const Extents& extents) const;
    void run_rows(const RowContext& context, const Extents& extents, char* workspace, std::size_t workspace_size) const;
    void run_split(const RowContext& context, const Extents& extents, char* workspace) const;
    struct Parts {
        bool cut_outer = false;
        std::int64_t size = 0, count = 0;
    };
    Parts parts(const Extents& extents) const;
    std::size_t partial_count(const Parts& cut) const;
    std::size_t split_scratch_bytes(const Extents& extents) const;
    double element_ns() const;

    RowPlan plan_;
    LoadedObject object_;
    std::size_t code_bytes_;
    RowFunction* rows_ = nullptr;
    std::vector<SplitFunction*> passes_;
    std::vector<std::vector<loopir::IntRef>> strides_;  // per access that the code uses
    std::vector<bool> mergeable_;                       // per dim: no index of it is read
};

// The value of `all` combined in the order of a fixed tree; all[stage_count * part + stage].
PartialValue combine_partials(const PartialValue* all, std::size_t stage, std::size_t stage_count, std::size_t first,
                              std::size_t count, loopir::Combine combine, DType dtype);

}  // namespace flexor::codegen::cpu_llvm
