// Ops that move elements, into fresh memory.
#include <algorithm>

#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using types::DimList;
using I = std::int64_t;
using loopir::NodeId;
using S = loopir::ScalarOp;
using Results = std::vector<ShapeResult>;

constexpr int kAxisInRangeOfPart = 1;

// ---------------------------------------------------------------- joins

bool concat_shape(ShapeContext& context, Results& results) {
    if (context.args().empty()) return context.fail(2);
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(kAxisInRangeOfPart);
    std::vector<Dim> sizes = x.sizes;
    for (std::size_t i = 1; i < context.args().size(); ++i) {
        const TensorType& other = context.type(i);
        if (other.rank() != x.rank()) return context.fail(3);
        for (std::size_t a = 0; a < sizes.size(); ++a) {
            if (a == at(axis)) {
                sizes[a] = sizes[a] + other.sizes[a];
            } else if (!context.require_eq(x.sizes[a], other.sizes[a], 4)) {
                return false;
            }
        }
    }
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool stack_shape(ShapeContext& context, Results& results) {
    if (context.args().empty()) return context.fail(2);
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank() + 1);
    if (axis < 0) return context.fail(kAxisInRangeOfPart);
    for (std::size_t i = 1; i < context.args().size(); ++i) {
        const TensorType& other = context.type(i);
        if (other.rank() != x.rank()) return context.fail(3);
        for (std::size_t a = 0; a < x.sizes.size(); ++a) {
            if (!context.require_eq(x.sizes[a], other.sizes[a], 4)) return false;
        }
    }
    std::vector<Dim> sizes = x.sizes;
    sizes.insert(sizes.begin() + axis, Dim(static_cast<I>(context.args().size())));
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
Expected<DTypes> join_dtype(std::span<const ArgType> args, const Attrs&, types::Promotion promotion) {
    if (args.empty()) {
        return Diagnostic(DiagnosticId::kWrongOperandCount).found("no operands").expected("at least one");
    }
    const DType d = rules::common_dtype(args, promotion);
    return DTypes{std::vector<DType>(args.size(), d), {d}};
}
std::vector<GraphValue> lower_stack(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    const int rank = g.type(args[0]).type.rank() + 1;
    const Dim axis = rules::normal_axis(attrs.integer("axis"), rank);
    std::vector<GraphValue> parts;
    for (const GraphValue arg : args) parts.push_back(g.op("unsqueeze", {arg}, Attrs{{"axis", axis}}));
    return {g.op("concat", std::span<const GraphValue>(parts), Attrs{{"axis", axis}})};
}

// ---------------------------------------------------------------- padded, flipped, rolled, repeated

bool pad_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const DimList& before = context.attrs().list("before");
    const DimList& after = context.attrs().list("after");
    if (before.size() != x.sizes.size() || after.size() != x.sizes.size()) return context.fail(1);
    std::vector<Dim> sizes;
    for (std::size_t axis = 0; axis < x.sizes.size(); ++axis) {
        sizes.push_back(before[axis] + x.sizes[axis] + after[axis]);
        if (!context.require_le(0, sizes.back(), 2)) return false;
    }
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
NodeId lower_pad(IndexBuilder& builder, const Attrs& attrs) {
    loopir::BodyBuilder& b = builder.body();
    const TensorType& x = builder.type(0);
    const DimList& before = attrs.list("before");
    const DimList& after = attrs.list("after");
    NodeId inside = loopir::kNoNode;
    const auto also = [&](NodeId condition) {
        inside = inside == loopir::kNoNode ? condition : b.binary(S::kAnd, inside, condition);
    };
    std::vector<IndexTerm> index;
    for (int axis = 0; axis < x.rank(); ++axis) {
        const NodeId i = builder.axis_index(axis);
        if (!before[at(axis)].is_constant(0)) also(b.binary(S::kGe, i, builder.dim(before[at(axis)])));
        if (!after[at(axis)].is_constant(0)) {
            also(b.binary(S::kLt, i, builder.dim(before[at(axis)] + x.sizes[at(axis)])));
        }
        index.push_back({IndexTerm::Kind::kAxis, axis, -before[at(axis)], 0, false});
    }
    NodeId value = builder.load(0, index, inside);
    const double fill = attrs.real("value");
    if (inside == loopir::kNoNode || (fill == 0 && !std::signbit(fill))) return value;
    if (x.dtype == DType::kF16 || x.dtype == DType::kBF16) value = b.cast(value, DType::kF32);
    return b.cast(b.select(inside, value, b.constant(b.dtype(value), fill)), x.dtype);
}
Expected<void> reference_pad(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const DimList& before = c.attrs.list("before");
    const double fill = c.attrs.real("value");
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        Index source = index;
        bool inside = true;
        for (int axis = 0; axis < x.rank(); ++axis) {
            source[at(axis)] -= before[at(axis)].constant();
            inside = inside && source[at(axis)] >= 0 && source[at(axis)] < x.size(axis);
        }
        const I target = offset_of(c.outputs[0], index);
        if (inside) {
            copy_element(c.outputs[0], target, x, offset_of(x, source));
        } else {
            store_real(c.outputs[0], target, fill);
        }
    });
    return {};
}

bool axes_shape(ShapeContext& context, Results& results) {
    const int rank = context.type(0).rank();
    std::vector<bool> used(at(rank), false);
    for (const Dim& axis : context.attrs().list("axes")) {
        const int a = rules::normal_axis(axis, rank);
        if (a < 0) return context.fail(kAxisInRangeOfPart);
        if (used[at(a)]) return context.fail(2);
        used[at(a)] = true;
    }
    return rules::same_shape(context, results);
}
bool roll_shape(ShapeContext& context, Results& results) {
    if (context.attrs().list("axes").size() != context.attrs().list("shifts").size()) return context.fail(3);
    return axes_shape(context, results);
}
// The index along each axis of a load of operand 0: `index(axis)` or kNoNode for the axis itself.
template <class F>
NodeId load_moved(IndexBuilder& builder, F&& index) {
    std::vector<IndexTerm> terms;
    for (int axis = 0; axis < builder.type(0).rank(); ++axis) {
        const NodeId node = index(axis);
        if (node == loopir::kNoNode) {
            terms.push_back({IndexTerm::Kind::kAxis, axis, 0, 0, false});
        } else {
            terms.push_back({IndexTerm::Kind::kNode, 0, 0, node, false});
        }
    }
    return builder.load(0, terms);
}
int position_of(const Attrs& attrs, int axis, int rank) {
    const DimList& axes = attrs.list("axes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (rules::normal_axis(axes[i], rank) == axis) return static_cast<int>(i);
    }
    return -1;
}
NodeId lower_flip(IndexBuilder& builder, const Attrs& attrs) {
    loopir::BodyBuilder& b = builder.body();
    const TensorType& x = builder.type(0);
    return load_moved(builder, [&](int axis) {
        if (position_of(attrs, axis, x.rank()) < 0) return loopir::kNoNode;
        return b.binary(S::kSub, builder.dim(x.sizes[at(axis)] - 1), builder.axis_index(axis));
    });
}
NodeId lower_roll(IndexBuilder& builder, const Attrs& attrs) {
    loopir::BodyBuilder& b = builder.body();
    const TensorType& x = builder.type(0);
    return load_moved(builder, [&](int axis) {
        const int position = position_of(attrs, axis, x.rank());
        if (position < 0) return loopir::kNoNode;
        const NodeId moved =
            b.binary(S::kSub, builder.axis_index(axis), builder.dim(attrs.list("shifts")[at(position)]));
        return b.binary(S::kFloorMod, moved, builder.dim(x.sizes[at(axis)]));
    });
}
// Result[index] = x[source(axis, index[axis], size of x's axis)...]
template <class F>
Expected<void> reference_moved(ReferenceContext& c, F&& source) {
    const Tensor& x = c.inputs[0];
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        const int skip = c.outputs[0].rank() - x.rank();
        I offset = 0;
        for (int axis = 0; axis < x.rank(); ++axis) {
            offset += source(axis, index[at(axis + skip)], x.size(axis)) * x.stride(axis);
        }
        copy_element(c.outputs[0], offset_of(c.outputs[0], index), x, offset);
    });
    return {};
}
Expected<void> reference_flip(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    return reference_moved(c, [&](int axis, I i, I n) { return position_of(c.attrs, axis, rank) < 0 ? i : n - 1 - i; });
}
Expected<void> reference_roll(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    return reference_moved(c, [&](int axis, I i, I n) {
        const int position = position_of(c.attrs, axis, rank);
        if (position < 0) return i;
        const I moved = (i - c.attrs.list("shifts")[at(position)].constant()) % n;
        return moved < 0 ? moved + n : moved;
    });
}

bool repeat_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const DimList& counts = context.attrs().list("counts");
    if (counts.size() < x.sizes.size()) return context.fail(1);
    const std::size_t skip = counts.size() - x.sizes.size();
    std::vector<Dim> sizes;
    for (std::size_t axis = 0; axis < counts.size(); ++axis) {
        if (!context.require_le(0, counts[axis], 2)) return false;
        sizes.push_back(axis < skip ? counts[axis] : counts[axis] * x.sizes[axis - skip]);
    }
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
NodeId lower_repeat(IndexBuilder& builder, const Attrs& attrs) {
    const TensorType& x = builder.type(0);
    const int skip = static_cast<int>(attrs.list("counts").size()) - x.rank();
    std::vector<IndexTerm> terms;
    for (int axis = 0; axis < x.rank(); ++axis) {
        if (attrs.list("counts")[at(axis + skip)].is_constant(1)) {
            terms.push_back({IndexTerm::Kind::kAxis, axis + skip, 0, 0, false});
        } else {
            const NodeId node =
                builder.body().binary(S::kFloorMod, builder.axis_index(axis + skip), builder.dim(x.sizes[at(axis)]));
            terms.push_back({IndexTerm::Kind::kNode, 0, 0, node, false});
        }
    }
    return builder.load(0, terms);
}

// ---------------------------------------------------------------- references

Expected<void> reference_copy(ReferenceContext& c) {
    copy_in_order(c.outputs[0], c.inputs[0]);
    return {};
}
template <bool stack>
Expected<void> reference_join(ReferenceContext& c) {
    const Tensor& out = c.outputs[0];
    const int axis = rules::normal_axis(c.attrs.integer("axis"), out.rank());
    I start = 0;
    for (const Tensor& part : c.inputs) {
        for_each_index(part.sizes(), [&](const Index& index) {
            Index target = index;
            if (stack) {
                target.insert(target.begin() + axis, start);
            } else {
                target[at(axis)] += start;
            }
            copy_element(out, offset_of(out, target), part, offset_of(part, index));
        });
        start += stack ? 1 : part.size(axis);
    }
    return {};
}

// ---------------------------------------------------------------- samples

using samples::dims, samples::input, samples::sample;
std::vector<Sample> clone_samples() { return samples::unary(); }
std::vector<Sample> concat_samples() {
    return {sample({input({2, 3}), input({5, 3})}),
            sample({input({2, 3}), input({2, 0}), input({2, 17})}, Attrs{{"axis", 1}}), sample({input({1})})};
}
std::vector<Sample> stack_samples() {
    return {sample({input({2, 3}), input({2, 3})}), sample({input({}), input({}), input({})}),
            sample({input({17}), input({17})}, Attrs{{"axis", -1}}), sample({input({0, 3})}, Attrs{{"axis", 1}})};
}
std::vector<Sample> pad_samples() {
    return {sample({input({2, 3})}, Attrs{{"before", dims({1, 0})}, {"after", dims({0, 2})}}),
            sample({input({17})}, Attrs{{"before", dims({2})}, {"after", dims({-3})}, {"value", 3.0}}),
            sample({input({0, 2})}, Attrs{{"before", dims({1, 1})}, {"after", dims({1, 1})}, {"value", 1.0}}),
            sample({input({})}, Attrs{{"before", dims({})}, {"after", dims({})}})};
}
std::vector<Sample> flip_samples() {
    return {sample({input({2, 17})}, Attrs{{"axes", dims({-1})}}),
            sample({input({3, 1, 2})}, Attrs{{"axes", dims({0, 2})}}),
            sample({input({0, 3})}, Attrs{{"axes", dims({0, 1})}})};
}
std::vector<Sample> roll_samples() {
    return {sample({input({2, 17})}, Attrs{{"axes", dims({-1})}, {"shifts", dims({3})}}),
            sample({input({3, 2})}, Attrs{{"axes", dims({0, 1})}, {"shifts", dims({-4, 1})}}),
            sample({input({0, 3})}, Attrs{{"axes", dims({0})}, {"shifts", dims({2})}})};
}
std::vector<Sample> repeat_samples() {
    return {sample({input({2, 3})}, Attrs{{"counts", dims({2, 1, 2})}}),
            sample({input({5})}, Attrs{{"counts", dims({0})}}), sample({input({})}, Attrs{{"counts", dims({3})}})};
}

}  // namespace

std::vector<OpDef> copying_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    const auto x = keep<OperandSpec>({{"x", OperandKind::kTensor}});
    const auto list = keep<OperandSpec>({{"parts", OperandKind::kTensorList}});
    const auto attr = [](std::initializer_list<AttrSpec> specs) { return keep<AttrSpec>(specs); };
    constexpr AttrKind integer = AttrKind::kInt;
    constexpr AttrKind integers = AttrKind::kIntList;
    constexpr DiagnosticId bad_attr = DiagnosticId::kBadAttribute;

    std::vector<OpDef> ops;
    const auto index = [&](std::string_view name, std::string_view summary, std::span<const AttrSpec> attrs,
                           std::span<const Constraint> constraints, ShapeRule shape, Layout layout, Reference reference,
                           IndexLower lower, std::vector<Sample> (*make)(), Names names) {
        add_op(ops, name, summary, x, attrs, constraints, rules::first, shape, reference, lower, {all, make}, names,
               {.layout = layout});
    };

    add_op(ops, "clone", "A copy of x in fresh memory, its axes in the order of x's strides.", x, {}, {}, rules::same,
           rules::same_shape, reference_copy,
           MapLower([](loopir::BodyBuilder&, std::span<const NodeId> a, const Attrs&) { return a[0]; }),
           {all, clone_samples}, {"torch.clone", "numpy.copy", "Identity"}, {.layout = Layout::kLikeFirst});
    const auto joins = keep<Constraint>({{"the axis lies within the rank", DiagnosticId::kAxisOutOfRange},
                                         {"there is at least one part", DiagnosticId::kWrongOperandCount},
                                         {"all parts have one rank", DiagnosticId::kWrongRank},
                                         {"the parts agree in the sizes that are not joined"}});
    add_op(ops, "concat", "The parts one after the other along an axis.", list, attr({{"axis", integer, 0}}), joins,
           join_dtype, concat_shape, reference_join<false>, ConcatLower{}, {all, concat_samples},
           {"torch.cat", "numpy.concatenate", "Concat"});
    add_op(ops, "stack", "The parts side by side along a new axis.", list, attr({{"axis", integer, 0}}), joins,
           join_dtype, stack_shape, reference_join<true>, lower_stack, {all, stack_samples},
           {"torch.stack", "numpy.stack", ""});
    index("pad", "x with `before` and `after` elements of a value added at the ends of each axis; negative counts cut.",
          attr({{"before", integers, {}}, {"after", integers, {}}, {"value", AttrKind::kFloat, 0.0}}),
          keep<Constraint>(
              {{"before and after name every axis of x", DiagnosticId::kWrongRank, 0}, rules::kSizesNotNegative}),
          pad_shape, Layout::kContiguous, reference_pad, lower_pad, pad_samples,
          {"torch.nn.functional.pad", "numpy.pad", "Pad"});
    index("flip", "x with the order of elements reversed along axes.", attr({{"axes", integers, {}}}),
          keep<Constraint>({rules::kAxisInRange, rules::kDistinctAxes}), axes_shape, Layout::kLikeFirst, reference_flip,
          lower_flip, flip_samples, {"torch.flip", "", ""});
    index("roll", "x with its elements shifted along axes, the last ones coming in at the front.",
          attr({{"shifts", integers, {}}, {"axes", integers, {}}}),
          keep<Constraint>({rules::kAxisInRange, rules::kDistinctAxes, {"there is one shift for each axis", bad_attr}}),
          roll_shape, Layout::kContiguous, reference_roll, lower_roll, roll_samples, {"torch.roll", "numpy.roll", ""});
    index("repeat", "x repeated along each axis.", attr({{"counts", integers, {}}}),
          keep<Constraint>({{"there is a count for every axis of x", DiagnosticId::kWrongRank, 0},
                            {"counts are not negative", DiagnosticId::kNegativeSize}}),
          repeat_shape, Layout::kContiguous,
          [](ReferenceContext& c) { return reference_moved(c, [](int, I i, I n) { return i % n; }); }, lower_repeat,
          repeat_samples, {"torch.Tensor.repeat", "numpy.tile", "Tile"});
    return ops;
}

}  // namespace flexor::ops
