// What ops lower to, put into the simplest kernel and run by the loop IR's evaluator, against the references.
#include "loopir/loopir.h"
#include "ops/rules.h"
#include "run_op.h"

namespace flexor::ops::test {
namespace {

using loopir::Access;
using loopir::IntRef;
using loopir::NodeId;

DType widened(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

// One kernel over the result's axes (behind an axis of size 1, so that there is always one).
class KernelMaker : public IndexBuilder {
public:
    KernelMaker(const OpDef& op, const std::vector<Value>& inputs, const Attrs& attrs, const Outcome& outcome)
        : op_(op), inputs_(inputs), attrs_(attrs), outcome_(outcome), builder_(kernel_.body) {
        kernel_.name = std::string(op.name.value);
        for (const Value& v : inputs) {
            types_.push_back(arg_type(v).type);
            buffer_of_.push_back(static_cast<std::uint32_t>(kernel_.buffers.size()));
            if (!v.tensor.defined()) continue;
            kernel_.buffers.push_back({"in" + std::to_string(buffers_.size()), v.tensor.dtype(), false, false});
            buffers_.push_back(v.tensor.data());
        }
        // A fresh result for the kernel; the reference's is compared with it.
        result_ = materialise(outcome.inferred.results[0], inputs);
        kernel_.buffers.push_back({"out", result_.dtype(), false, true});
        buffers_.push_back(result_.data());
    }

    loopir::BodyBuilder& body() override { return builder_; }
    const TensorType& type(std::size_t operand) const override { return types_[operand]; }
    const TensorType& result() const override { return outcome_.inferred.results[0].type; }
    NodeId axis_index(int axis) override { return builder_.index(static_cast<std::uint32_t>(axis) + 1); }
    NodeId dim(const Dim& d) override { return builder_.constant_int(DType::kI64, d.constant()); }
    NodeId load(std::size_t operand, std::span<const IndexTerm> index, NodeId mask) override {
        Access access = blank(operand);
        access.mask = mask;
        const Tensor& t = inputs_[operand].tensor;
        EXPECT_TRUE(index.size() == static_cast<std::size_t>(t.rank()) || (t.rank() == 0 && index.size() == 1));
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis < index.size(); ++axis) {
            const std::int64_t stride = t.rank() == 0 ? 0 : t.stride(static_cast<int>(axis));
            const std::int64_t size = t.rank() == 0 ? 1 : t.size(static_cast<int>(axis));
            const IndexTerm& term = index[axis];
            if (term.kind == IndexTerm::Kind::kNode) {
                access.gathers.push_back(
                    {term.node, IntRef::constant(stride), IntRef::constant(size), term.wrap_negative});
                continue;
            }
            offset += term.shift.constant() * stride;
            if (term.kind == IndexTerm::Kind::kAxis) {
                IntRef& along = access.strides[static_cast<std::size_t>(term.axis) + 1];
                along = IntRef::constant(along.value + stride);
            }
        }
        access.offset = IntRef::constant(offset);
        return builder_.load(t.dtype(), access);
    }

    // The loop IR of the op; false if it has none of its own.
    bool make() {
        const LowerRule& lower = op_.lower.value;
        kernel_.body.extents.push_back(IntRef::constant(1));
        if (const auto* reduce = std::get_if<ReduceLower>(&lower)) {
            make_reduce(*reduce);
            return true;
        }
        for (const std::int64_t size : result_.sizes()) kernel_.body.extents.push_back(IntRef::constant(size));
        kernel_.body.parallel = kernel_.body.rank();
        NodeId value = loopir::kNoNode;
        if (const auto* map = std::get_if<MapLower>(&lower)) {
            std::vector<NodeId> args;
            for (std::size_t i = 0; i < inputs_.size(); ++i) {
                args.push_back(inputs_[i].tensor.defined() ? operand(i) : loopir::kNoNode);
            }
            value = (*map)(builder_, args, attrs_);
        } else if (const auto* index = std::get_if<IndexLower>(&lower)) {
            value = (*index)(*this, attrs_);
            EXPECT_EQ(builder_.dtype(value), result_.dtype()) << op_.name.value;
        } else {
            return false;
        }
        Access target = blank_result();
        for (int axis = 0; axis < result_.rank(); ++axis) {
            target.strides[static_cast<std::size_t>(axis) + 1] = IntRef::constant(result_.stride(axis));
        }
        builder_.store(builder_.cast(value, result_.dtype()), target, false);
        return true;
    }

    void run_and_compare(const std::string& what) {
        for (const loopir::Access& access : kernel_.body.accesses) kernel_.buffers[access.buffer].read = true;
        const auto verified = loopir::verify(kernel_);
        ASSERT_TRUE(verified) << what << "\n" << verified.error().to_string() << "\n" << loopir::print(kernel_);
        loopir::EvalArgs args{buffers_.data(), nullptr, false};
        loopir::evaluate(kernel_, args);
        EXPECT_FALSE(args.fault) << what;
        expect_close(result_, outcome_.outputs[0], 8, what);
    }

private:
    Access blank(std::size_t operand) { return blank_of(buffer_of_[operand]); }
    Access blank_of(std::uint32_t buffer) {
        Access access;
        access.buffer = buffer;
        access.offset = IntRef::constant(0);
        access.strides.assign(kernel_.body.extents.size(), IntRef::constant(0));
        return access;
    }
    Access blank_result() { return blank_of(static_cast<std::uint32_t>(kernel_.buffers.size() - 1)); }
    NodeId convert(NodeId loaded, DType operand) {
        return builder_.cast(builder_.cast(loaded, operand), widened(operand));
    }
    NodeId operand(std::size_t i) {
        const Tensor& t = inputs_[i].tensor;
        Access access = blank(i);
        const int skip = result_.rank() - t.rank() + 1;
        for (int axis = 0; axis < t.rank(); ++axis) {
            if (t.size(axis) != 1)
                access.strides[static_cast<std::size_t>(axis + skip)] = IntRef::constant(t.stride(axis));
        }
        return convert(builder_.load(t.dtype(), access), outcome_.inferred.dtypes.operands[i]);
    }
    void make_reduce(const ReduceLower& reduce) {
        const Tensor& t = inputs_[0].tensor;
        const std::vector<int> reduced = rules::reduced_axes(attrs_, t.rank());
        const bool keepdim = attrs_.flag("keepdim");
        std::vector<int> order;
        std::vector<std::int64_t> target_strides = {0};
        int out_axis = 0;
        for (int axis = 0; axis < t.rank(); ++axis) {
            const bool gone = std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
            if (!gone) {
                order.push_back(axis);
                target_strides.push_back(result_.stride(out_axis));
            }
            if (!gone || keepdim) ++out_axis;
        }
        kernel_.body.parallel = static_cast<std::uint32_t>(order.size()) + 1;
        order.insert(order.end(), reduced.begin(), reduced.end());
        for (const int axis : order) kernel_.body.extents.push_back(IntRef::constant(t.size(axis)));
        kernel_.body.extents.push_back(IntRef::constant(1));  // a row of its own where no axis is reduced
        Access access = blank(0);
        for (std::size_t i = 0; i < order.size(); ++i) access.strides[i + 1] = IntRef::constant(t.stride(order[i]));
        const DType accumulator = reduce.accumulate(outcome_.inferred.dtypes.operands[0], result_.dtype());
        const NodeId value = convert(builder_.load(t.dtype(), access), outcome_.inferred.dtypes.operands[0]);
        const std::uint32_t stage = builder_.reduce(reduce.combine, builder_.cast(value, accumulator));
        const bool position = reduce.combine == loopir::Combine::kArgMax || reduce.combine == loopir::Combine::kArgMin;
        const NodeId row = builder_.row_value(position ? DType::kI64 : accumulator, stage);
        Access target = blank_result();
        for (std::size_t i = 0; i < target_strides.size(); ++i) target.strides[i] = IntRef::constant(target_strides[i]);
        builder_.store(builder_.cast(row, result_.dtype()), target, true);
    }

    const OpDef& op_;
    const std::vector<Value>& inputs_;
    Attrs attrs_;
    const Outcome& outcome_;
    loopir::Kernel kernel_;
    loopir::BodyBuilder builder_;
    std::vector<TensorType> types_;
    std::vector<std::uint32_t> buffer_of_;
    std::vector<void*> buffers_;
    Tensor result_;
};

TEST(Lowering, EvaluatesToTheReference) {
    std::mt19937 random(11);
    int kernels = 0;
    for (const OpDef* op : all_ops()) {
        const auto samples = op->samples.value.make();
        for (const DType dtype : op->samples.value.dtypes) {
            for (std::size_t i = 0; i < samples.size(); ++i) {
                const auto inputs = make_inputs(samples[i], dtype, random);
                const auto outcome = run(*op, inputs, samples[i].attrs);
                ASSERT_TRUE(outcome) << op->name.value;
                if (outcome->inferred.results[0].view_of >= 0) continue;
                KernelMaker maker(*op, inputs, *check_attrs(*op, samples[i].attrs), *outcome);
                if (!maker.make()) continue;
                ++kernels;
                maker.run_and_compare(std::string(op->name.value) + " sample " + std::to_string(i) + " " +
                                      std::string(dtype_name(dtype)));
                if (HasFatalFailure()) return;
            }
        }
    }
    EXPECT_GE(kernels, 3000);
}

}  // namespace
}  // namespace flexor::ops::test
