#include "codegen/cpu_llvm/library_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Access;
using loopir::IntRef;
using loopir::Kernel;
using loopir::kNoNode;
using loopir::Node;
using loopir::ScalarOp;
using loopir::Stage;

namespace {

std::int64_t number(const IntRef& r, const std::int64_t* params) { return r.is_constant ? r.value : params[r.value]; }

void* element(void* base, DType dtype, std::int64_t offset) {
    return static_cast<char*>(base) + offset * static_cast<std::int64_t>(dtype_size(dtype));
}

// The only store of an epilogue that does nothing but round the sums and put them at affine places.
std::optional<Access> plain_store(const Kernel& kernel) {
    const loopir::Body& body = kernel.body;
    if (body.stages.size() != 1 || body.stages[0].kind != loopir::StageKind::kStore || body.stages[0].per_row)
        return {};
    const Stage& stage = body.stages[0];
    if (!stage.target.gathers.empty() || stage.target.mask != kNoNode) return {};
    const Node* value = &body.nodes[stage.value];
    if (value->dtype == DType::kBool) return {};
    if (value->op == ScalarOp::kCast) value = &body.nodes[value->operands[0]];
    if (value->op != ScalarOp::kAccumulator) return {};
    return stage.target;
}

DType tiles_accumulator(DType operand) {
    switch (operand) {
        case DType::kF64: return DType::kF64;
        case DType::kI64: return DType::kI64;
        case DType::kF32:
        case DType::kF16:
        case DType::kBF16: return DType::kF32;
        default: return DType::kI32;
    }
}

Diagnostic refused(const Kernel& kernel, const char* why) {
    return Diagnostic(DiagnosticId::kCodeGenerationFailed).found(kernel.name + ": " + why);
}

class PendingContraction final : public PendingKernel {
public:
    PendingContraction(const Kernel& kernel, std::string name) : kernel_(kernel), name_(std::move(name)) {}

    Expected<runtime::KernelRef> finish(const LoadedObject& object, std::size_t code_bytes) override {
        auto handle = std::make_shared<ContractionKernel>(kernel_, object, code_bytes);
        if (!handle->bind(name_)) return refused(kernel_, "the object lacks a function of it");
        return runtime::KernelRef(std::move(handle));
    }

private:
    const Kernel& kernel_;
    std::string name_;
};

class PendingAttention final : public PendingKernel {
public:
    explicit PendingAttention(const Kernel& kernel) : kernel_(kernel) {}
    Expected<runtime::KernelRef> finish(const LoadedObject&, std::size_t) override {
        return runtime::KernelRef(std::make_shared<AttentionKernel>(kernel_));
    }

private:
    const Kernel& kernel_;
};

}  // namespace

Expected<std::unique_ptr<PendingKernel>> emit_contraction_kernel(Ir& ir, const Kernel& kernel,
                                                                 const std::string& name) {
    const loopir::Contraction& c = *kernel.contraction;
    if (c.a_dtype != c.b_dtype) return refused(kernel, "operands of two dtypes");
    if (c.accumulator != tiles_accumulator(c.a_dtype)) return refused(kernel, "an accumulator the tiles do not have");
    if (c.batch_dims > static_cast<std::uint32_t>(runtime::kMaxBatchRank))
        return refused(kernel, "too many batch dims");
    if (c.prologue) {
        RowPlan plan = plan_rows(*c.prologue, prologue_plan_options(c.a_dtype));
        RowEmitter(ir, plan).emit_prologue(name + ".prologue");
    }
    if (!plain_store(kernel)) {
        RowPlan plan = plan_rows(kernel.body, epilogue_plan_options());
        RowEmitter(ir, plan).emit_epilogue(name + ".epilogue", c.accumulator);
    }
    return std::unique_ptr<PendingKernel>(std::make_unique<PendingContraction>(kernel, name));
}

Expected<std::unique_ptr<PendingKernel>> emit_attention_kernel(const Kernel& kernel) {
    const loopir::Attention& a = *kernel.attention;
    if (!is_floating(a.dtype)) return refused(kernel, "attention of this dtype");
    if (a.scale != kNoNode) {
        const ScalarOp op = kernel.body.nodes[a.scale].op;
        if (op != ScalarOp::kConst && op != ScalarOp::kParam) return refused(kernel, "a scale that is computed");
    }
    if (a.mask && a.mask_kind == loopir::MaskKind::kAdditive) {
        const DType d = kernel.buffers[a.mask->buffer].dtype;
        if (d != a.dtype && d != DType::kF32) return refused(kernel, "a mask of this dtype");
    }
    return std::unique_ptr<PendingKernel>(std::make_unique<PendingAttention>(kernel));
}

bool contraction_needs_code(const Kernel& kernel) { return kernel.contraction->prologue || !plain_store(kernel); }

// ---------------------------------------------------------------------------------------------- contraction

ContractionKernel::ContractionKernel(const Kernel& kernel, LoadedObject object, std::size_t code_bytes)
    : contraction_(*kernel.contraction),
      batch_(kernel.body.extents.begin(), kernel.body.extents.begin() + kernel.contraction->batch_dims),
      plain_store_(plain_store(kernel)),
      object_(std::move(object)),
      code_bytes_(code_bytes) {
    if (plain_store_) plain_dtype_ = kernel.buffers[plain_store_->buffer].dtype;
}

bool ContractionKernel::bind(const std::string& name) {
    if (contraction_.prologue) {
        prologue_ = object_.function<std::remove_pointer_t<runtime::GemmPrologue>>(name + ".prologue");
        if (!prologue_) return false;
    }
    if (!plain_store_) {
        epilogue_ = object_.function<std::remove_pointer_t<runtime::GemmEpilogue>>(name + ".epilogue");
        if (!epilogue_) return false;
    }
    return true;
}

runtime::GemmCall ContractionKernel::call(const std::int64_t* params) const {
    const loopir::Contraction& c = contraction_;
    runtime::GemmCall g;
    g.dtype = c.a_dtype;
    g.m = number(c.m, params);
    g.n = number(c.n, params);
    g.k = number(c.k, params);
    g.batch_rank = static_cast<int>(c.batch_dims);
    auto operand = [&](runtime::GemmOperand& o, const loopir::MatrixOperand& from) {
        o.row_stride = number(from.row_stride, params);
        o.col_stride = number(from.col_stride, params);
        for (std::size_t d = 0; d < from.batch_strides.size(); ++d)
            o.batch_strides[d] = number(from.batch_strides[d], params);
    };
    for (std::size_t d = 0; d < batch_.size(); ++d) g.batch[d] = number(batch_[d], params);
    if (!c.prologue) operand(g.a, c.a);
    operand(g.b, c.b);
    g.b_packed = c.b.packed;
    if (g.b_packed) std::fill(std::begin(g.b.batch_strides), std::end(g.b.batch_strides), 0);
    if (plain_store_) {
        const auto& s = plain_store_->strides;
        g.c.dtype = plain_dtype_;
        for (std::size_t d = 0; d < batch_.size(); ++d) g.c.batch_strides[d] = number(s[d], params);
        g.c.row_stride = number(s[batch_.size()], params);
        g.c.col_stride = number(s[batch_.size() + 1], params);
    }
    g.prologue = prologue_;
    g.epilogue = epilogue_;
    return g;
}

void ContractionKernel::launch(const runtime::LaunchArgs& args) const {
    runtime::GemmCall g = call(args.params);
    RowContext context{args.buffers, args.params, nullptr, args.fault};
    const loopir::Contraction& c = contraction_;
    if (!c.prologue) g.a.data = element(args.buffers[c.a.buffer], c.a_dtype, number(c.a.offset, args.params));
    // The offset of a packed weight was applied when it was packed.
    const std::int64_t b_offset = c.b.packed ? 0 : number(c.b.offset, args.params);
    g.b.data = element(args.buffers[c.b.buffer], c.b_dtype, b_offset);
    if (args.packed_right != nullptr) {
        g.b.data = args.packed_right;
        g.b_packed = true;
        std::fill(std::begin(g.b.batch_strides), std::end(g.b.batch_strides), 0);
    }
    if (plain_store_) {
        g.c.data = element(args.buffers[plain_store_->buffer], plain_dtype_, number(plain_store_->offset, args.params));
    }
    g.prologue_context = &context;
    g.epilogue_context = &context;
    if (!runtime::gemm(g, args.workspace, args.workspace_size)) *args.fault = runtime::kOutOfMemory;
}

std::size_t ContractionKernel::workspace_bytes(const std::int64_t* params) const {
    return runtime::gemm_workspace_bytes(call(params));
}

// ---------------------------------------------------------------------------------------------- attention

AttentionKernel::AttentionKernel(const Kernel& kernel) : attention_(*kernel.attention) {
    for (const loopir::BufferParam& b : kernel.buffers) dtypes_.push_back(b.dtype);
    if (attention_.scale != kNoNode) scale_ = kernel.body.nodes[attention_.scale];
}

runtime::AttentionCall AttentionKernel::call(const std::int64_t* params, void* const* buffers) const {
    const loopir::Attention& a = attention_;
    runtime::AttentionCall call;
    call.dtype = a.dtype;
    call.batch = number(a.batch, params);
    call.heads = number(a.heads, params);
    call.kv_heads = number(a.kv_heads, params);
    call.q_len = number(a.q_len, params);
    call.kv_len = number(a.kv_len, params);
    call.head_dim = number(a.head_dim, params);
    call.value_dim = number(a.value_dim, params);
    auto address = [&](const loopir::StridedOperand& o) -> void* {
        if (!buffers) return nullptr;
        return element(buffers[o.buffer], dtypes_[o.buffer], number(o.offset, params));
    };
    auto operand = [&](runtime::AttentionOperand& out, const loopir::StridedOperand& o) {
        out.data = address(o);
        for (std::size_t d = 0; d < 4; ++d) out.strides[d] = number(o.strides[d], params);
    };
    operand(call.q, a.q);
    operand(call.k, a.k);
    operand(call.v, a.v);
    call.out = address(a.out);
    for (std::size_t d = 0; d < 4; ++d) call.out_strides[d] = number(a.out.strides[d], params);
    if (!scale_) {
        call.scale = 1 / std::sqrt(static_cast<double>(call.head_dim));
    } else if (scale_->op == ScalarOp::kConst) {
        call.scale = std::bit_cast<double>(scale_->constant_bits);
    } else {
        call.scale = std::bit_cast<double>(params[scale_->index]);
    }
    switch (a.mask_kind) {
        case loopir::MaskKind::kNone: call.mask_kind = runtime::AttentionMask::kNone; break;
        case loopir::MaskKind::kCausal: call.mask_kind = runtime::AttentionMask::kCausal; break;
        case loopir::MaskKind::kBoolean: call.mask_kind = runtime::AttentionMask::kBoolean; break;
        case loopir::MaskKind::kAdditive: call.mask_kind = runtime::AttentionMask::kAdditive; break;
    }
    if (a.mask) {
        operand(call.mask, *a.mask);
        call.mask_dtype = dtypes_[a.mask->buffer];
    }
    if (a.lengths) {
        call.lengths = static_cast<const std::int64_t*>(address(*a.lengths));
        call.lengths_stride = number(a.lengths->strides[0], params);
    }
    if (a.fully_masked == loopir::FullyMasked::kNan) call.fully_masked = runtime::FullyMasked::kNan;
    return call;
}

void AttentionKernel::launch(const runtime::LaunchArgs& args) const {
    const runtime::AttentionCall c = call(args.params, args.buffers);
    if (!runtime::attention(c, args.workspace, args.workspace_size)) *args.fault = runtime::kOutOfMemory;
}

std::size_t AttentionKernel::workspace_bytes(const std::int64_t* params) const {
    return runtime::attention_workspace_bytes(call(params, nullptr));
}

}  // namespace flexor::codegen::cpu_llvm
