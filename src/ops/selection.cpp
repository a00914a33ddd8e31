// Elements that their own values choose: results whose sizes only the run knows.
#include <cstring>

#include "ops/compaction.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;

// Places in row-major order of the elements that are not zero.
std::vector<I> set_places(const Tensor& x) {
    std::vector<I> places;
    I place = 0;
    for_each_index(x.sizes(), [&](const Index& index) {
        const I offset = offset_of(x, index);
        if (is_floating(x.dtype()) ? load_real(x, offset) != 0 : load_int(x, offset) != 0) places.push_back(place);
        ++place;
    });
    return places;
}

// ---------------------------------------------------------------- nonzero

Expected<DTypes> nonzero_dtype(Args args, const Attrs&, types::Promotion) {
    return DTypes{{args[0].type.dtype}, {DType::kI64}};
}
bool nonzero_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    results.push_back(rules::fresh_result({context.fresh("nonzero", 0, x.numel()), x.rank()}));
    return true;
}
Expected<void> reference_nonzero(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const Tensor& out = c.outputs[0];
    auto* row = out.data_as<I>();
    for (I place : set_places(x)) {
        for (int axis = x.rank(); axis-- > 0;) {
            row[axis] = place % x.size(axis);
            place /= x.size(axis);
        }
        row += x.rank();
    }
    return {};
}

// ---------------------------------------------------------------- mask_select

Expected<DTypes> mask_dtype(Args args, const Attrs&, types::Promotion) {
    if (args[1].type.dtype != DType::kBool) return rules::refuse_dtype(args, 1, "bool");
    return DTypes{{args[0].type.dtype, DType::kBool}, {args[0].type.dtype}};
}
bool mask_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& mask = context.type(1);
    if (mask.rank() > x.rank()) return context.fail(1);
    for (std::size_t axis = 0; axis < mask.sizes.size(); ++axis) {
        if (!context.require_eq(x.sizes[axis], mask.sizes[axis], 2)) return false;
    }
    std::vector<Dim> sizes = {context.fresh("selected", 0, mask.numel())};
    sizes.insert(sizes.end(), x.sizes.begin() + mask.rank(), x.sizes.end());
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
Expected<void> reference_mask_select(ReferenceContext& c) {
    const Tensor x = c.inputs[0].contiguous();
    if (!x.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("x");
    const Tensor& mask = c.inputs[1];
    I slice = static_cast<I>(dtype_size(x.dtype()));
    for (int axis = mask.rank(); axis < x.rank(); ++axis) slice *= x.size(axis);
    const auto* const from = static_cast<const std::byte*>(x.data());
    auto* to = static_cast<std::byte*>(c.outputs[0].data());
    for (const I place : set_places(mask)) {
        if (slice > 0) std::memcpy(to, from + place * slice, static_cast<std::size_t>(slice));
        to += slice;
    }
    return {};
}

// ---------------------------------------------------------------- samples

using samples::Fill, samples::input, samples::sample, samples::typed;
std::vector<Sample> nonzero_samples() {
    return {sample({input({7})}),       sample({input({3, 5})}), sample({input({0})}),
            sample({input({2, 0, 3})}), sample({input({1})}),    sample({input({})})};
}
std::vector<Sample> mask_samples() {
    const auto mask = [](std::vector<I> sizes) { return typed(std::move(sizes), DType::kBool, Fill::kBool); };
    return {sample({input({7}), mask({7})}),      sample({input({3, 5}), mask({3, 5})}),
            sample({input({3, 5}), mask({3})}),   sample({input({4, 1, 3}), mask({4, 1})}),
            sample({input({0}), mask({0})}),      sample({input({2, 0}), mask({2})}),
            sample({input({33, 2}), mask({33})}), sample({input({}), mask({})})};
}

}  // namespace

std::vector<OpDef> selection_ops() {
    std::vector<OpDef> ops;
    const std::span<const DType> all = samples::kAllDTypes;
    add_op(ops, "nonzero", "The indices of the elements that are not zero, a row each, in row-major order.",
           keep<OperandSpec>({{"x"}}), {}, {}, nonzero_dtype, nonzero_shape, reference_nonzero, ExternLower{},
           {all, nonzero_samples}, {"torch.nonzero", "numpy.argwhere", ""},
           {.data_sizes = count_nonzero<0>, .native = native_nonzero});
    add_op(ops, "mask_select", "The elements (or slices, of a mask of lower rank) of x where a mask is true, in order.",
           keep<OperandSpec>({{"x"}, {"mask"}}), {},
           keep<Constraint>({{"the rank of mask is at most that of x", DiagnosticId::kWrongRank, 1},
                             {"mask has the first sizes of x", DiagnosticId::kShapeMismatch, 1}}),
           mask_dtype, mask_shape, reference_mask_select, ExternLower{}, {all, mask_samples}, {"", "", "Compress"},
           {.data_sizes = count_nonzero<1>, .native = native_mask_select});
    return ops;
}

}  // namespace flexor::ops
