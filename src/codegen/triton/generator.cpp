#include "codegen/triton/generator.h"

#include "support/diagnostic.h"

namespace flexor::codegen::triton {

using loopir::KernelKind;

namespace {

Diagnostic refused(const loopir::Kernel& kernel, const char* what) {
    return Diagnostic(DiagnosticId::kNoCodeGenerator).found(kernel.name + ": " + what);
}

}  // namespace

Expected<Generator> Generator::create(loopir::Kernel kernel) {
    Generator out(std::move(kernel));
    switch (out.kernel_.kind) {
        case KernelKind::kRow: out.layout_ = lay_out(out.kernel_.body); break;
        case KernelKind::kContraction: out.layout_ = lay_out_epilogue(out.kernel_); break;
        case KernelKind::kAttention: {
            const loopir::Attention& a = *out.kernel_.attention;
            const auto known = [](const loopir::IntRef& ref) { return ref.is_constant ? ref.value : 0; };
            if (!head_fits(known(a.head_dim), known(a.value_dim), a.dtype))
                return refused(out.kernel_, "attention with heads so wide");
            break;
        }
        case KernelKind::kExtern: return refused(out.kernel_, "an extern kernel");
    }
    return out;
}

Expected<LaunchPlan> Generator::plan(const PlanValues& params, int multiprocessors, const Forced& forced) const {
    switch (kernel_.kind) {
        case KernelKind::kRow: return plan_row(*layout_, params, multiprocessors, forced.row);
        case KernelKind::kContraction:
            return plan_contraction(*kernel_.contraction, *layout_, params, multiprocessors, forced.gemm);
        default: break;
    }
    LaunchPlan out = plan_attention(*kernel_.attention, params, multiprocessors, forced.attention);
    if (!head_fits(out.extents[5], out.extents[6], kernel_.attention->dtype))
        return refused(kernel_, "attention with heads so wide");
    return out;
}

std::vector<loopir::IntRef> Generator::extents() const {
    if (kernel_.kind == KernelKind::kAttention) {
        const loopir::Attention& a = *kernel_.attention;
        return {a.batch, a.heads, a.kv_heads, a.q_len, a.kv_len, a.head_dim, a.value_dim};
    }
    std::vector<loopir::IntRef> out = layout_->body.extents;
    if (kernel_.kind == KernelKind::kContraction) out.push_back(kernel_.contraction->k);
    return out;
}

KernelSource Generator::write(Form form, int chunks) const {
    switch (kernel_.kind) {
        case KernelKind::kRow: return write_row_kernel(kernel_, *layout_, form, chunks);
        case KernelKind::kContraction: return write_contraction(kernel_, *layout_);
        default: return write_attention(kernel_);
    }
}

CompileRequest Generator::request(const KernelSource& source, const LaunchPlan& plan,
                                  const std::vector<bool>& divisible, const std::vector<bool>& indirect,
                                  Successor successor) const {
    return make_request(kernel_, source, plan, divisible, indirect, successor);
}

}  // namespace flexor::codegen::triton
