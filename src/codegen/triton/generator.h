#pragma once
// One kernel of the loop IR as what the compiler of device kernels and a launch take, whatever its kind.
#include <map>
#include <optional>

#include "codegen/triton/compile_request.h"
#include "codegen/triton/kernel_source.h"
#include "codegen/triton/launch_plan.h"
#include "loopir/kernel.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// Tiles in place of those that the plan would take: for tests and for tuning.
struct Forced {
    RowTuning row;
    const GemmTile* gemm = nullptr;
    const AttentionTile* attention = nullptr;
};

class Generator {
public:
    // Refused with NoCodeGenerator: extern kernels, and attention whose heads are known to be too wide.
    static Expected<Generator> create(loopir::Kernel kernel);

    const loopir::Kernel& kernel() const { return kernel_; }
    // None for kinds other than row kernels and contractions.
    const std::optional<RowLayout>& layout() const { return layout_; }

    // Refused with NoCodeGenerator: attention whose heads turn out to be too wide.
    Expected<LaunchPlan> plan(const PlanValues& params, int multiprocessors, const Forced& forced = {}) const;
    // A launch of these sizes, whose own plan is `wanted`, by the machine code that was compiled for `made`; none where that
    // assumes what does not hold, or where its tile cannot walk them.
    std::optional<LaunchPlan> plan_as(const LaunchPlan& made, const LaunchPlan& wanted, const std::int64_t* params,
                                      int multiprocessors) const;
    // A plan near `wanted` whose machine code serves other sizes too: any with indices of the same width.
    LaunchPlan general(const LaunchPlan& wanted, const std::int64_t* params, int multiprocessors) const;
    // What LaunchPlan::extents are before dims are merged.
    std::vector<loopir::IntRef> extents() const;
    // Whether machine code is better for knowing that an argument is a multiple of 16.
    bool alignment_matters(const Argument& argument) const;
    KernelSource write(Form form, int chunks = 1) const;
    // See make_request.
    CompileRequest request(const KernelSource& source, const LaunchPlan& plan, const std::vector<bool>& divisible,
                           const std::vector<bool>& indirect = {}, Successor successor = Successor::kWhenEnded) const;

private:
    explicit Generator(loopir::Kernel kernel) : kernel_(std::move(kernel)) {}
    loopir::Kernel kernel_;
    std::optional<RowLayout> layout_;
};

}  // namespace flexor::codegen::triton
