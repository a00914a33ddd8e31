#include "codegen/cpu_llvm/kernel_compiler.h"

#include <mutex>

#include "codegen/cpu_llvm/attention_rows.h"
#include "codegen/cpu_llvm/gemm_tiles.h"
#include "codegen/cpu_llvm/row_kernel.h"
#include "codegen/cpu_llvm/row_kernel_launch.h"
#include "support/diagnostic.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Kernel;
using loopir::KernelKind;

namespace {

// The emitters fold as they go; what is left are repeated address terms.
constexpr const char* kPasses = "function(early-cse)";

Diagnostic not_generated(const std::string& what) {
    return Diagnostic(DiagnosticId::kCodeGenerationFailed).found(what);
}

class PendingRow final : public PendingKernel {
public:
    PendingRow(RowPlan plan, std::string name) : plan_(std::move(plan)), name_(std::move(name)) {}

    Expected<runtime::KernelRef> finish(const LoadedObject& object, std::size_t code_bytes) override {
        auto kernel = std::make_shared<RowKernel>(std::move(plan_), object, code_bytes);
        if (!kernel->bind(name_)) return not_generated("object without the function " + name_);
        return runtime::KernelRef(std::move(kernel));
    }

private:
    RowPlan plan_;
    std::string name_;
};

Expected<std::unique_ptr<PendingKernel>> emit(Ir& ir, const Kernel& kernel, const std::string& name) {
    if (kernel.body.rank() >= RowKernel::kMaxRank)
        return not_generated(kernel.name + ": more dims than a row kernel has");
    switch (kernel.kind) {
        case KernelKind::kRow: return emit_row_kernel(ir, kernel, name);
        case KernelKind::kContraction: return emit_contraction_kernel(ir, kernel, name);
        case KernelKind::kAttention: return emit_attention_kernel(kernel);
        case KernelKind::kExtern:
            return not_generated(kernel.name + ": an extern kernel has an implementation already");
    }
    return not_generated(kernel.name);
}

bool needs_code(const Kernel& kernel) {
    return kernel.kind == KernelKind::kRow ||
           (kernel.kind == KernelKind::kContraction && contraction_needs_code(kernel));
}

// Index of the first kernel structurally equal to each.
std::vector<std::size_t> first_equal(std::span<const Kernel* const> kernels) {
    std::vector<std::size_t> first(kernels.size()), hash(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        first[i] = i;
        hash[i] = loopir::structural_hash(*kernels[i]);
        for (std::size_t j = 0; j < i; ++j) {
            if (first[j] != j || hash[j] != hash[i] || !loopir::structurally_equal(*kernels[j], *kernels[i])) continue;
            first[i] = j;
            break;
        }
    }
    return first;
}

}  // namespace

std::unique_ptr<PendingKernel> emit_row_kernel(Ir& ir, const Kernel& kernel, const std::string& name) {
    RowPlan plan = plan_rows(kernel.body, host_plan_options());
    RowEmitter emitter(ir, plan);
    if (plan.form == RowForm::kSplit)
        emitter.emit_split(name);
    else
        emitter.emit_rows(name);
    return std::make_unique<PendingRow>(std::move(plan), name);
}

void install_host_kernels() {
    static std::once_flag once;
    std::call_once(once, [] {
        install_host_gemm_tiles();
        install_host_attention_rows();
    });
}

Expected<std::vector<runtime::KernelRef>> compile_kernels(std::span<const Kernel* const> kernels) {
    install_host_kernels();
    const std::vector<std::size_t> first = first_equal(kernels);
    ModuleBuilder owner("kernels");
    Ir ir(owner.context(), owner.module(), owner.builder());
    std::vector<std::unique_ptr<PendingKernel>> pending(kernels.size());
    bool code = false;
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (first[i] != i) continue;
        ++distinct;
        code = code || needs_code(*kernels[i]);
        FLEXOR_ASSIGN(pending[i], emit(ir, *kernels[i], "k" + std::to_string(i)));
    }
    std::vector<char> object;
    LoadedObject loaded;
    if (code) {
        FLEXOR_ASSIGN(object, emit_object(ir.module(), kPasses));
        FLEXOR_ASSIGN(loaded, load_object(object));
    }
    std::vector<runtime::KernelRef> handles(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (first[i] != i) {
            handles[i] = handles[first[i]];
            continue;
        }
        FLEXOR_ASSIGN(handles[i], pending[i]->finish(loaded, object.size() / distinct));
    }
    return handles;
}

}  // namespace flexor::codegen::cpu_llvm
