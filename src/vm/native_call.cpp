#include "vm/native_call.h"

#include <bit>
#include <optional>

#include "ops/scattering.h"
#include "ops/strided.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "tensor/scalar.h"

namespace flexor::vm {

using executable::Call;
using executable::CallDim;
using executable::CallOperand;
using executable::kNoSlot;
using executable::TensorRef;

namespace {

Tensor tensor_at(const TensorRef& ref, const std::int64_t* frame, void* const* buffers) {
    std::int64_t sizes[kMaxRank], strides[kMaxRank];
    const std::size_t rank = ref.sizes.size();
    for (std::size_t i = 0; i < rank; ++i) {
        sizes[i] = frame[ref.sizes[i]];
        strides[i] = frame[ref.strides[i]];
    }
    const std::int64_t offset = ref.offset == kNoSlot ? 0 : frame[ref.offset];
    auto* data = static_cast<char*>(buffers[ref.buffer]) + offset * static_cast<std::int64_t>(dtype_size(ref.dtype));
    return Tensor::from_blob(data, ref.dtype, {sizes, rank}, {strides, rank});
}

Tensor operand_at(const CallOperand& operand, const std::int64_t* frame, void* const* buffers) {
    switch (operand.kind) {
        case CallOperand::Kind::kNone: return {};
        case CallOperand::Kind::kTensor: return tensor_at(operand.tensor, frame, buffers);
        case CallOperand::Kind::kBool:
            return scalar_tensor<std::uint8_t>(DType::kBool, frame[operand.slot] != 0 ? 1 : 0);
        case CallOperand::Kind::kInt: return scalar_tensor<std::int64_t>(DType::kI64, frame[operand.slot]);
        case CallOperand::Kind::kFloat:
            return scalar_tensor<double>(DType::kF64, std::bit_cast<double>(frame[operand.slot]));
    }
    FLEXOR_UNREACHABLE();
}

void put(types::Attrs& attrs, const CallDim& dim, std::int64_t value) {
    if (dim.position < 0) return attrs.set(dim.attribute, types::Dim(value));
    types::DimList list = std::get<types::DimList>(*attrs.find(dim.attribute));
    list[static_cast<std::size_t>(dim.position)] = value;
    attrs.set(dim.attribute, std::move(list));
}

}  // namespace

Expected<void> refuse_out_of_range(const ops::OpDef& op, const ops::DTypes& dtypes, std::span<const Tensor> inputs) {
    if (!dtypes.bounds) return {};
    for (const ops::IntegerBound& bound : *dtypes.bounds) {
        std::optional<std::int64_t> outside;
        const Tensor& operand = inputs[bound.operand];
        ops::for_each_index(operand.sizes(), [&](const ops::Index& index) {
            const std::int64_t value = ops::load_int(operand, ops::offset_of(operand, index));
            if (value < bound.lo || value > bound.hi) outside = value;
        });
        if (!outside) continue;
        return Diagnostic(DiagnosticId::kIntegerOutOfRange)
            .operand(std::string(op.operands.value[bound.operand].name))
            .found(std::to_string(*outside))
            .expected(std::to_string(bound.lo) + ".." + std::to_string(bound.hi) + ": the op computes in " +
                      std::string(dtype_name(dtypes.operands[bound.operand])));
    }
    return {};
}

Expected<void> NativeCall::prepare(const Call& call, const std::int64_t* frame, void* const* buffers) {
    forget();
    for (const CallOperand& operand : call.operands) {
        inputs_.push_back(operand_at(operand, frame, buffers));
        if (operand.kind != CallOperand::Kind::kNone && !inputs_.back().defined())
            return Diagnostic(DiagnosticId::kOutOfMemory);
    }
    if (!call.dims.empty()) {
        attrs_ = call.attrs;
        for (const CallDim& dim : call.dims) put(attrs_, dim, frame[dim.slot]);
    }
    return refuse_out_of_range(*call.op, call.dtypes, inputs_);
}

ops::ReferenceContext NativeCall::context(const Call& call) {
    return {inputs_,
            call.strengths,
            outputs_,
            call.dims.empty() ? call.attrs : attrs_,
            call.dtypes,
            runtime::stop_requested,
            runtime::parallel_for,
            found_};
}

Expected<void> NativeCall::settle(const Call& call, std::int64_t* frame, void* const* buffers) {
    FLEXOR_TRY(prepare(call, frame, buffers));
    ops::ReferenceContext context = this->context(call);
    FLEXOR_ASSIGN(const std::vector<std::int64_t> sizes, call.op->data_sizes(context));
    found_ = std::move(context.found);
    FLEXOR_CHECK(sizes.size() == call.sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) frame[call.sizes[i]] = sizes[i];
    return {};
}

Expected<void> NativeCall::run(const Call& call, const std::int64_t* frame, void* const* buffers) {
    if (call.sizes.empty()) FLEXOR_TRY(prepare(call, frame, buffers));
    for (const TensorRef& result : call.results) {
        outputs_.push_back(tensor_at(result, frame, buffers));
        if (!outputs_.back().defined()) return Diagnostic(DiagnosticId::kOutOfMemory);
    }
    ops::ReferenceContext context = this->context(call);
    auto done = ops::run_whole(*call.op, context);
    forget();
    return done;
}

Expected<Tensor> NativeCall::written(const Call& call, const std::int64_t* frame, void* const* buffers) {
    FLEXOR_TRY(prepare(call, frame, buffers));
    return ops::written_part(*call.op, call.dims.empty() ? call.attrs : attrs_, inputs_);
}

void NativeCall::forget() {
    inputs_.clear();
    outputs_.clear();
    found_.reset();
}

}  // namespace flexor::vm
