// Elements that go where index tensors say, and are combined where several go to one place.
#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/reduction.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/scattering.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;
using types::Truth;

// ---------------------------------------------------------------- rules

// Operands: what is written to, its index tensors from `first_index` on, and what is written.
Expected<DTypes> written_dtype(Args args, std::size_t source, std::size_t first_index, std::size_t last_index) {
    const DType d = args[0].type.dtype;
    DTypes dtypes;
    for (const ArgType& arg : args) dtypes.operands.push_back(arg.type.dtype);
    for (std::size_t i = first_index; i < last_index; ++i) {
        const DType index = args[i].type.dtype;
        if (index != DType::kI64 && index != DType::kI32) return rules::refuse_dtype(args, i, "i64 or i32");
    }
    const bool fits = args[source].strength == types::Strength::kScalar
                          ? is_floating(d) || !is_floating(args[source].type.dtype)
                          : args[source].type.dtype == d;
    if (!fits) return rules::refuse_dtype(args, source, std::string(dtype_name(d)) + ", the dtype of x");
    dtypes.operands[source] = d;
    dtypes.results = {d};
    return dtypes;
}
Expected<DTypes> scatter_dtype(Args args, const Attrs&, types::Promotion) { return written_dtype(args, 2, 1, 2); }
Expected<DTypes> put_dtype(Args args, const Attrs&, types::Promotion) { return written_dtype(args, 1, 2, args.size()); }

int scatter_axis(const Attrs& attrs, const TensorType& x) {
    return rules::normal_axis(attrs.integer("axis"), std::max(x.rank(), 1));
}

bool scatter_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& index = context.type(1);
    const int axis = scatter_axis(context.attrs(), x);
    if (axis < 0) return context.fail(1);
    if (!reduction_of(context.attrs().text("reduce"))) return context.fail(4);
    const bool scalar = context.args()[2].strength == types::Strength::kScalar;
    results.push_back(rules::fresh_result(x.sizes));
    // As in torch: a tensor of rank 0 counts as one of rank 1, and an index without elements has any shape.
    const int rank = std::max(x.rank(), 1);
    const bool same_rank = std::max(index.rank(), 1) == rank && (scalar || std::max(context.type(2).rank(), 1) == rank);
    if (!same_rank) return context.require_eq(index.numel(), 0, 2);
    const Dim any = Dim::min(index.numel(), 1);
    const auto require_within = [&](const Dim& size, const Dim& bound) {
        if (context.env().le(size, bound) == Truth::kTrue) return true;
        return context.require_le(context.env().simplify(any * size), bound, 3);
    };
    for (int a = 0; a < index.rank(); ++a) {
        const Dim& size = index.sizes[at(a)];
        if (a != axis && !require_within(size, x.sizes[at(a)])) return false;
        const TensorType& source = context.type(2);
        if (!scalar && !require_within(size, source.rank() == 0 ? Dim(1) : source.sizes[at(a)])) return false;
    }
    return true;
}

// The shape of the index tensors together.
bool broadcast_indices(ShapeContext& context, std::vector<Dim>& sizes) {
    for (std::size_t i = 2; i < context.args().size(); ++i) {
        if (!rules::broadcast_into(context, sizes, context.type(i).sizes, 2)) return false;
    }
    return true;
}
bool put_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int axis = scatter_axis(context.attrs(), x);
    const int count = static_cast<int>(context.args().size()) - 2;
    if (axis < 0 || count < 1 || axis + count > x.rank()) return context.fail(1);
    std::vector<Dim> chosen;
    if (!broadcast_indices(context, chosen)) return false;
    std::vector<Dim> slots(x.sizes.begin(), x.sizes.begin() + axis);
    slots.insert(slots.end(), chosen.begin(), chosen.end());
    slots.insert(slots.end(), x.sizes.begin() + axis + count, x.sizes.end());
    const TensorType& values = context.type(1);
    if (values.rank() > static_cast<int>(slots.size())) return context.fail(3);
    const std::size_t shift = slots.size() - values.sizes.size();
    for (std::size_t a = 0; a < values.sizes.size(); ++a) {
        const Dim& size = values.sizes[a];
        if (size.is_constant(1) || context.env().eq(size, slots[a + shift]) == Truth::kTrue) continue;
        // It may be 1 in the run.
        Dim out;
        if (!context.broadcast(size, slots[a + shift], 3, &out)) return false;
        if (context.env().eq(out, slots[a + shift]) != Truth::kTrue && !context.require_eq(out, slots[a + shift], 3))
            return false;
    }
    results.push_back(rules::fresh_result(x.sizes));
    return true;
}

// ---------------------------------------------------------------- references

Element combined_element(Reduction reduction, const Element& a, const Element& b) {
    if (!a.floating) {
        switch (reduction) {
            case Reduction::kNone: return b;
            case Reduction::kSum:
            case Reduction::kMean: return int_element(wrap_add(a.integer, b.integer));
            case Reduction::kProd: return int_element(wrap_mul(a.integer, b.integer));
            case Reduction::kMax: return int_element(std::max(a.integer, b.integer));
            case Reduction::kMin: return int_element(std::min(a.integer, b.integer));
        }
    }
    switch (reduction) {
        case Reduction::kNone: break;
        case Reduction::kSum:
        case Reduction::kMean: return real_element(a.real + b.real);
        case Reduction::kProd: return real_element(a.real * b.real);
        case Reduction::kMax: return std::isnan(a.real) || a.real > b.real ? a : b;
        case Reduction::kMin: return std::isnan(a.real) || a.real < b.real ? a : b;
    }
    return b;
}

Expected<void> reference_scatter(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &index = c.inputs[1], &source = c.inputs[2], &out = c.outputs[0];
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(x.rank(), 1));
    const Reduction reduction = *reduction_of(c.attrs.text("reduce"));
    const bool own = c.attrs.flag("include_self");
    const bool scalar = c.strengths[2] == types::Strength::kScalar;
    const I size = x.rank() == 0 ? 1 : x.size(axis);
    copy_in_order(out, x);
    std::vector<I> counts(static_cast<std::size_t>(std::max<I>(out.numel(), 1)), 0);
    std::optional<Diagnostic> error;
    for_each_index(index.sizes(), [&](const Index& place) {
        const I given = load_int(index, offset_of(index, place));
        const I checked = checked_index(given, size, false);
        if (checked < 0) {
            if (!error) error = bad_index(given, size);
            return;
        }
        Index target(place.begin(), place.begin() + std::min<std::ptrdiff_t>(x.rank(), index.rank()));
        if (x.rank() > 0) {
            target.resize(at(x.rank()));
            target[at(axis)] = checked;
        }
        Index from = place;
        from.resize(at(source.rank()));
        const Element next = load_as(source, scalar ? 0 : offset_of(source, from), out.dtype());
        const I to = offset_of(out, target);
        const bool first = counts[static_cast<std::size_t>(to)]++ == 0;
        store(out, to, first && !own ? next : combined_element(reduction, load_as(out, to, out.dtype()), next));
    });
    if (error) return *std::move(error);
    if (reduction != Reduction::kMean) return {};
    for_each_index(out.sizes(), [&](const Index& place) {
        const I to = offset_of(out, place);
        const I count = counts[static_cast<std::size_t>(to)] + (own ? 1 : 0);
        if (count < 2) return;
        const Element sum = load_as(out, to, out.dtype());
        store(out, to,
              sum.floating ? real_element(sum.real / static_cast<double>(count))
                           : int_element(floor_divided(sum.integer, count)));
    });
    return {};
}

Expected<void> reference_put(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &values = c.inputs[1], &out = c.outputs[0];
    const std::span<const Tensor> indices = c.inputs.subspan(2);
    const int axis = rules::normal_axis(c.attrs.integer("axis"), x.rank());
    const bool add = c.attrs.flag("accumulate"), wrap = c.attrs.flag("wrap");
    copy_in_order(out, x);
    std::vector<I> chosen;
    for (const Tensor& index : indices) {
        const int more = index.rank() - static_cast<int>(chosen.size());
        if (more > 0) chosen.insert(chosen.begin(), at(more), 1);
        for (int a = 0; a < index.rank(); ++a) {
            I& size = chosen[chosen.size() - at(index.rank() - a)];
            if (size == 1) size = index.size(a);
        }
    }
    const int depth = static_cast<int>(chosen.size());
    const int count = static_cast<int>(indices.size());
    std::vector<I> slots(x.sizes().begin(), x.sizes().begin() + axis);
    slots.insert(slots.end(), chosen.begin(), chosen.end());
    slots.insert(slots.end(), x.sizes().begin() + axis + count, x.sizes().end());
    std::optional<Diagnostic> error;
    for_each_index(slots, [&](const Index& slot) {
        Index target(slot.begin(), slot.begin() + axis);
        const std::span<const I> point(slot.data() + axis, at(depth));
        for (int i = 0; i < count; ++i) {
            const I size = x.size(axis + i);
            const I given = load_int(indices[at(i)], broadcast_offset(indices[at(i)], point));
            const I checked = checked_index(given, size, wrap);
            if (checked < 0 && !error) error = bad_index(given, size);
            target.push_back(std::max<I>(checked, 0));
        }
        if (error) return;
        target.insert(target.end(), slot.begin() + axis + depth, slot.end());
        const Element next = load_as(values, broadcast_offset(values, slot), out.dtype());
        const I to = offset_of(out, target);
        store(out, to, add ? combined_element(Reduction::kSum, load_as(out, to, out.dtype()), next) : next);
    });
    if (error) return *std::move(error);
    return {};
}

// ---------------------------------------------------------------- samples

using samples::indices, samples::input, samples::sample, samples::scalar;
std::vector<Sample> scatter_samples() {
    std::vector<Sample> list = {
        sample({input({5}), indices({3}, 5), input({3})}, {{"reduce", "sum"}}),
        sample({input({4, 3}), indices({7, 2}, 4), input({7, 3})}, {{"reduce", "sum"}}),
        sample({input({2, 33}), indices({2, 40}, 33), input({2, 40})}, {{"axis", -1}, {"reduce", "sum"}}),
        sample({input({2, 1, 3}), indices({1, 5, 3}, 1), input({2, 6, 3})}, {{"axis", 1}}),
        sample({input({0}), indices({0}, 1), input({0})}),
        sample({input({3}), indices({0}, 1), input({2})}),
        sample({input({}), indices({1}, 1), input({1})}, {{"reduce", "sum"}}),
        sample({input({3, 2}), indices({2, 2}, 3), scalar(1, DType::kI64)})};
    for (const char* reduce : {"prod", "mean", "amax", "amin"}) {
        list.push_back(sample({input({3, 4}), indices({9, 4}, 3), input({9, 4})}, {{"reduce", reduce}}));
        list.push_back(
            sample({input({3}), indices({5}, 3), input({5})}, {{"reduce", reduce}, {"include_self", false}}));
    }
    return list;
}
std::vector<Sample> put_samples() {
    return {sample({input({5}), input({3}), indices({3}, 5)}, {{"accumulate", true}}),
            sample({input({4, 3}), input({3}), indices({6}, 4)}, {{"accumulate", true}}),
            sample({input({4, 3}), input({1}), indices({2, 1}, 4), indices({17}, 3)}, {{"accumulate", true}}),
            sample({input({2, 5, 3}), input({2, 33, 3}), indices({33}, 5)}, {{"axis", 1}, {"accumulate", true}}),
            sample({input({3, 2}), input({0, 2}), indices({0}, 1)}),
            sample({input({3, 2}), scalar(1, DType::kI64), indices({}, 3)})};
}

}  // namespace

std::vector<OpDef> scatter_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr OperandKind tensor = OperandKind::kTensor;
    const AttrSpec axis{"axis", AttrKind::kInt, 0};
    std::vector<OpDef> ops;
    add_op(
        ops, "scatter",
        "x with the elements of source put at the index along an axis, for every place of index. reduce says how what "
        "goes to one place is combined, with the element of x too if include_self: \"none\" (the last one stays), "
        "\"sum\", \"prod\", \"mean\", \"amax\" or \"amin\".",
        keep<OperandSpec>({{"x", tensor}, {"index", tensor}, {"source", tensor, true}}),
        keep<AttrSpec>({axis, {"reduce", AttrKind::kString, "none"}, {"include_self", AttrKind::kBool, true}}),
        keep<Constraint>(
            {rules::kAxisInRange,
             {"index and source have the rank of x (0 counts as 1), or index no elements", DiagnosticId::kWrongRank, 1},
             {"index is not larger than source, nor than x along the other axes", DiagnosticId::kShapeMismatch, 1},
             {"reduce is \"none\", \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\"", DiagnosticId::kBadAttribute}}),
        scatter_dtype, scatter_shape, reference_scatter, ExternLower{}, {all, scatter_samples},
        {"torch.scatter", "", "ScatterElements"}, {.native = native_scatter, .raises = true});
    add_op(
        ops, "index_put",
        "x with values, broadcast, put at the places that the index tensors name together, one for each axis from "
        "axis on; or added there. With wrap, negative ones count from the end.",
        keep<OperandSpec>({{"x", tensor}, {"values", tensor, true}, {"indices", OperandKind::kTensorList}}),
        keep<AttrSpec>({axis, {"accumulate", AttrKind::kBool, false}, {"wrap", AttrKind::kBool, true}}),
        keep<Constraint>({{"the axes of the index tensors lie within the rank of x", DiagnosticId::kAxisOutOfRange, 0},
                          {rules::kBroadcastText, DiagnosticId::kShapeMismatch, 2},
                          {"values are broadcast to what is chosen", DiagnosticId::kShapeMismatch, 1}}),
        put_dtype, put_shape, reference_put, ExternLower{}, {all, put_samples}, {"torch.index_put", "", ""},
        {.native = native_index_put, .raises = true});
    return ops;
}

}  // namespace flexor::ops
