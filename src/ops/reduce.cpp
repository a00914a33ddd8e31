// Reductions over axes: one kernel each, or composites of such.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/composite.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using types::DimList;
using types::Promotion;
using I = std::int64_t;
using loopir::Combine;
using Args = std::span<const ArgType>;

// ---------------------------------------------------------------- shape rules

constexpr int kReducedAxisInRange = 1;
constexpr int kAxisOnce = 2;
constexpr int kNotEmpty = 3;
constexpr int kOneAxis = 4;

// Which axes go; false after a failed constraint.
bool removed_axes(ShapeContext& context, std::vector<bool>& removed) {
    const int rank = context.type(0).rank();
    removed.assign(static_cast<std::size_t>(rank), !context.attrs().has("axes"));
    if (!context.attrs().has("axes")) return true;
    for (const Dim& axis : context.attrs().list("axes")) {
        // torch lets a rank-0 tensor be reduced over its axis 0 or -1.
        if (rank == 0 && (axis.is_constant(0) || axis.is_constant(-1))) continue;
        const int a = rules::normal_axis(axis, rank);
        if (a < 0) return context.fail(kReducedAxisInRange);
        if (removed[static_cast<std::size_t>(a)]) return context.fail(kAxisOnce);
        removed[static_cast<std::size_t>(a)] = true;
    }
    return true;
}

bool reduce_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    std::vector<bool> removed;
    if (!removed_axes(context, removed)) return false;
    const bool keepdim = context.attrs().flag("keepdim");
    std::vector<Dim> sizes;
    for (std::size_t axis = 0; axis < removed.size(); ++axis) {
        if (!removed[axis]) sizes.push_back(context.type(0).sizes[axis]);
        if (removed[axis] && keepdim) sizes.push_back(1);
    }
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
// Without elements there is no largest one. A result without elements needs none.
bool nonempty_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    std::vector<bool> removed;
    if (!removed_axes(context, removed)) return false;
    if (context.attrs().find("allow_empty") != nullptr && context.attrs().flag("allow_empty")) {
        return reduce_shape(context, results);
    }
    for (std::size_t axis = 0; axis < removed.size(); ++axis) {
        if (removed[axis] && !context.require_lt(0, context.type(0).sizes[axis], kNotEmpty)) return false;
    }
    return reduce_shape(context, results);
}
bool one_axis_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    if (context.attrs().has("axes") && context.attrs().list("axes").size() != 1) return context.fail(kOneAxis);
    return nonempty_shape(context, results);
}

// ---------------------------------------------------------------- dtype rules

Expected<DTypes> sum_dtype(Args args, const Attrs& attrs, Promotion) {
    DType d = args[0].type.dtype;
    if (attrs.has("dtype")) {
        d = attrs.dtype("dtype");
    } else if (!is_floating(d)) {
        d = DType::kI64;
    }
    return DTypes{{d}, {d}};
}
Expected<DTypes> any_dtype(Args args, const Attrs&, Promotion promotion) {
    // torch keeps uint8 here, from the time before it had bool.
    const bool u8 = args[0].type.dtype == DType::kU8 && promotion == Promotion::kTorch;
    return DTypes{{DType::kBool}, {u8 ? DType::kU8 : DType::kBool}};
}
// Bools are ordered as integers.
Expected<DTypes> extreme_dtype(Args args, const Attrs&, Promotion) {
    const DType d = args[0].type.dtype;
    return DTypes{{d == DType::kBool ? DType::kU8 : d}, {d}};
}
Expected<DTypes> arg_dtype(Args args, const Attrs&, Promotion promotion) {
    const DType d = args[0].type.dtype;
    if (d == DType::kBool && promotion == Promotion::kTorch) {
        return rules::refuse_dtype(args, 0, "a dtype other than bool");
    }
    return DTypes{{d == DType::kBool ? DType::kU8 : d}, {DType::kI64}};
}
Expected<DTypes> mean_dtype(Args args, const Attrs& attrs, Promotion promotion) {
    DType d = args[0].type.dtype;
    if (attrs.has("dtype")) {
        d = attrs.dtype("dtype");
        if (!is_floating(d)) {
            return Diagnostic(DiagnosticId::kDTypeMismatch)
                .operand("dtype")
                .found(std::string(dtype_name(d)))
                .expected("a floating dtype");
        }
    } else if (!is_floating(d)) {
        if (promotion == Promotion::kTorch) return rules::refuse_dtype(args, 0, "a floating dtype");
        d = DType::kF64;
    }
    return DTypes{{d}, {d}};
}
Expected<DTypes> logsumexp_dtype(Args args, const Attrs&, Promotion promotion) {
    const DType d = rules::float_of(args[0].type.dtype, promotion);
    return DTypes{{d}, {d}};
}

DType accumulate_wide(DType operand, DType) {
    return operand == DType::kF16 || operand == DType::kBF16 ? DType::kF32 : operand;
}
DType accumulate_bool(DType, DType) { return DType::kBool; }

// ---------------------------------------------------------------- composites

// The number of elements that go into one result.
Dim reduced_count(const TensorType& type, const Attrs& attrs) {
    Dim count = 1;
    for (const int axis : rules::reduced_axes(attrs, type.rank()))
        count = count * type.sizes[static_cast<std::size_t>(axis)];
    return count;
}
Attrs axes_of(const Attrs& attrs, bool keepdim) {
    Attrs out{{"keepdim", keepdim}};
    if (attrs.has("axes")) out.set("axes", attrs.list("axes"));
    return out;
}
std::vector<GraphValue> lower_mean(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue sum = g.op("reduce_sum", {x}, axes_of(attrs, attrs.flag("keepdim")));
    const GraphValue mean = g.op("div", {sum, g.dim(reduced_count(g.type(args[0]).type, attrs))});
    return {cast_to(g, mean, g.result_dtype())};
}

// Two passes: the mean, then the squares of the deviations.
GraphValue variance(GraphBuilder& g, GraphValue given, const Attrs& attrs) {
    const GraphValue x = cast_to(g, given, compute_dtype(g.result_dtype()));
    const Dim count = reduced_count(g.type(given).type, attrs);
    const GraphValue mean = g.op("div", {g.op("reduce_sum", {x}, axes_of(attrs, true)), g.dim(count)});
    const GraphValue square = g.op("square", {g.op("sub", {x, mean})});
    GraphValue sum = g.op("reduce_sum", {square}, axes_of(attrs, attrs.flag("keepdim")));
    const Dim correction = attrs.integer("correction");
    // One element deviates by nothing, whatever a contraction of its product with the difference leaves: 0 / 0, not inf.
    if (!correction.is_constant(0)) sum = g.op("mul", {sum, g.dim(Dim::min(count - 1, 1))});
    return g.op("div", {sum, g.dim(Dim::max(count - correction, 0))});
}
std::vector<GraphValue> lower_var(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    return {cast_to(g, variance(g, args[0], attrs), g.result_dtype())};
}
std::vector<GraphValue> lower_std(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    return {cast_to(g, g.op("sqrt", {variance(g, args[0], attrs)}), g.result_dtype())};
}
// The largest element is taken out first, unless it is infinite.
std::vector<GraphValue> lower_logsumexp(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    Attrs largest_of = axes_of(attrs, true);
    largest_of.set("allow_empty", true);
    const GraphValue largest = g.op("reduce_max", {x}, largest_of);
    const GraphValue finite = g.op("isfinite", {largest});
    const GraphValue shift = g.op("where", {finite, largest, g.scalar(0)});
    const GraphValue sum = g.op("reduce_sum", {g.op("exp", {g.op("sub", {x, shift})})}, axes_of(attrs, true));
    GraphValue result = g.op("add", {g.op("log", {sum}), shift});
    if (!attrs.flag("keepdim")) {
        DimList axes;
        for (const int axis : rules::reduced_axes(attrs, g.type(args[0]).type.rank())) axes.push_back(axis);
        result = g.op("squeeze", {result}, Attrs{{"axes", axes}});
    }
    return {cast_to(g, result, g.result_dtype())};
}

// ---------------------------------------------------------------- references

// Calls f(result offset, elements in row-major order of the reduced axes) for every result.
template <class F>
void for_each_group(ReferenceContext& c, DType dtype, F&& f) {
    const Tensor& in = c.inputs[0];
    const Tensor& out = c.outputs[0];
    const std::vector<int> axes = rules::reduced_axes(c.attrs, in.rank());
    std::vector<I> kept_sizes, reduced_sizes;
    std::vector<int> kept;
    for (int axis = 0; axis < in.rank(); ++axis) {
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
            reduced_sizes.push_back(in.size(axis));
        } else {
            kept.push_back(axis);
            kept_sizes.push_back(in.size(axis));
        }
    }
    std::vector<Element> group;
    for_each_index(kept_sizes, [&](const Index& outer) {
        I base = 0;
        I target = 0;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            base += outer[i] * in.stride(kept[i]);
            target += outer[i] * out.stride(out.rank() == in.rank() ? kept[i] : static_cast<int>(i));
        }
        group.clear();
        for_each_index(reduced_sizes, [&](const Index& inner) {
            I offset = base;
            for (std::size_t i = 0; i < axes.size(); ++i) offset += inner[i] * in.stride(axes[i]);
            group.push_back(load_as(in, offset, dtype));
        });
        f(target, group);
    });
}

std::vector<double> reals(std::span<const Element> group) {
    std::vector<double> values;
    for (const Element& e : group) values.push_back(e.as_real());
    return values;
}

Expected<void> reference_sum(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        if (is_floating(c.dtypes.operands[0])) {
            store_real(c.outputs[0], target, pairwise_sum(reals(group)));
        } else {
            I sum = 0;
            for (const Element& e : group) sum = wrap_add(sum, e.integer);
            store_int(c.outputs[0], target, sum);
        }
    });
    return {};
}
Expected<void> reference_prod(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        Element product{is_floating(c.dtypes.operands[0]), 1, 1};
        for (const Element& e : group) {
            product.real *= e.real;
            product.integer = wrap_mul(product.integer, e.integer);
        }
        store(c.outputs[0], target, product);
    });
    return {};
}
// The least or the greatest integer of a dtype: the extreme of no elements.
I identity_of(DType dtype, bool least) {
    if (dtype == DType::kBool) return least ? 0 : 1;
    if (dtype == DType::kU8) return least ? 0 : 255;
    const int bits = static_cast<int>(dtype_size(dtype)) * 8;
    const I greatest = static_cast<I>(~std::uint64_t{0} >> (65 - bits));
    return least ? -greatest - 1 : greatest;
}
// Position of the extreme element: the first NaN, else the first extreme.
template <bool largest>
std::size_t extreme(std::span<const Element> group) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
        const Element& a = group[i];
        const Element& b = group[best];
        if (a.floating && std::isnan(b.real)) break;
        if (a.floating && std::isnan(a.real)) return i;
        const bool better = a.floating ? (largest ? a.real > b.real : a.real < b.real)
                                       : (largest ? a.integer > b.integer : a.integer < b.integer);
        if (better) best = i;
    }
    return best;
}
template <bool largest>
Expected<void> reference_extreme(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        if (!group.empty()) {
            store(c.outputs[0], target, group[extreme<largest>(group)]);
        } else if (is_floating(c.outputs[0].dtype())) {
            store_real(c.outputs[0], target, largest ? -INFINITY : INFINITY);
        } else {
            store_int(c.outputs[0], target, identity_of(c.outputs[0].dtype(), largest));
        }
    });
    return {};
}
template <bool largest>
Expected<void> reference_position(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        store_int(c.outputs[0], target, static_cast<I>(extreme<largest>(group)));
    });
    return {};
}
template <bool all>
Expected<void> reference_any(ReferenceContext& c) {
    for_each_group(c, DType::kBool, [&](I target, std::span<const Element> group) {
        bool result = all;
        for (const Element& e : group) result = all ? result && e.integer != 0 : result || e.integer != 0;
        store_int(c.outputs[0], target, result);
    });
    return {};
}
Expected<void> reference_mean(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        store_real(c.outputs[0], target, mean_of(reals(group)));
    });
    return {};
}
template <bool root>
Expected<void> reference_var(ReferenceContext& c) {
    const I correction = c.attrs.integer("correction").constant();
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        std::vector<double> values = reals(group);
        const double mean = mean_of(values);
        for (double& v : values) v = (v - mean) * (v - mean);
        const double divisor = static_cast<double>(std::max(static_cast<I>(values.size()) - correction, I{0}));
        const double var = pairwise_sum(values) / divisor;
        store_real(c.outputs[0], target, root ? std::sqrt(var) : var);
    });
    return {};
}
Expected<void> reference_logsumexp(ReferenceContext& c) {
    for_each_group(c, c.dtypes.operands[0], [&](I target, std::span<const Element> group) {
        std::vector<double> values = reals(group);
        double shift = -std::numeric_limits<double>::infinity();
        for (const double v : values) shift = std::isnan(v) ? v : std::max(shift, v);
        if (!std::isfinite(shift)) shift = 0;
        for (double& v : values) v = std::exp(v - shift);
        store_real(c.outputs[0], target, std::log(pairwise_sum(values)) + shift);
    });
    return {};
}

// ---------------------------------------------------------------- samples

std::vector<Sample> one_axis_samples() {
    using samples::input, samples::sample;
    return {sample({input({2, 3})}),
            sample({input({33})}, Attrs{{"keepdim", true}}),
            sample({input({})}),
            sample({input({2, 3, 17})}, Attrs{{"axes", DimList{-1}}}),
            sample({input({2, 16, 3})}, Attrs{{"axes", DimList{1}}, {"keepdim", true}}),
            sample({input({0, 5})}, Attrs{{"axes", DimList{1}}})};
}
std::vector<Sample> var_samples() {
    std::vector<Sample> out = samples::reduce();
    out.push_back(samples::sample({samples::input({3, 17})}, Attrs{{"axes", DimList{1}}, {"correction", 0}}));
    return out;
}

}  // namespace

std::vector<OpDef> reduce_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> numbers = samples::kNumberDTypes;
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    const auto operands = keep<OperandSpec>({{"x", OperandKind::kTensor}});
    const AttrSpec axes{"axes", AttrKind::kOptionalIntList, {}};
    const AttrSpec keepdim{"keepdim", AttrKind::kBool, false};
    const AttrSpec dtype{"dtype", AttrKind::kOptionalDType, {}};
    const AttrSpec correction{"correction", AttrKind::kInt, 1};
    const auto plain = keep<AttrSpec>({axes, keepdim});
    const auto extreme = keep<AttrSpec>({axes, keepdim, AttrSpec{"allow_empty", AttrKind::kBool, false}});
    const auto with_dtype = keep<AttrSpec>({axes, keepdim, dtype});
    const auto with_correction = keep<AttrSpec>({axes, keepdim, correction});
    const auto constraints =
        keep<Constraint>({{"every axis lies within the rank of x", DiagnosticId::kAxisOutOfRange, 0},
                          rules::kDistinctAxes,
                          {"the reduced axes are not empty", DiagnosticId::kEmptyReduction, 0},
                          {"axes is none or names one axis", DiagnosticId::kBadAttribute, 0}});

    std::vector<OpDef> ops;
    add_op(ops, "reduce_sum", "The sum over axes (none: all); integers and bools sum in i64.", operands, with_dtype,
           constraints, sum_dtype, reduce_shape, reference_sum, ReduceLower{Combine::kSum, accumulate_wide},
           {all, samples::reduce_or_empty}, {"torch.sum", "numpy.sum", "ReduceSum"});
    add_op(ops, "reduce_mean", "The mean over axes (none: all); NaN over no elements.", operands, with_dtype,
           constraints, mean_dtype, reduce_shape, reference_mean, lower_mean, {floats, samples::reduce_or_empty},
           {"torch.mean", "numpy.mean", "ReduceMean"});
    add_op(ops, "reduce_max",
           "The largest element over axes (none: all); NaN if there is one. With allow_empty, "
           "the identity over no elements, else that raises.",
           operands, extreme, constraints, extreme_dtype, nonempty_shape, reference_extreme<true>,
           ReduceLower{Combine::kMax, accumulate_wide}, {all, samples::reduce},
           {"torch.amax", "numpy.max", "ReduceMax"});
    add_op(ops, "reduce_min",
           "The smallest element over axes (none: all); NaN if there is one. With allow_empty, "
           "the identity over no elements, else that raises.",
           operands, extreme, constraints, extreme_dtype, nonempty_shape, reference_extreme<false>,
           ReduceLower{Combine::kMin, accumulate_wide}, {all, samples::reduce},
           {"torch.amin", "numpy.min", "ReduceMin"});
    add_op(ops, "reduce_prod", "The product over axes (none: all); integers and bools multiply in i64.", operands,
           with_dtype, constraints, sum_dtype, reduce_shape, reference_prod,
           ReduceLower{Combine::kProd, accumulate_wide}, {all, samples::reduce_or_empty},
           {"torch.prod", "numpy.prod", "ReduceProd"});
    add_op(ops, "reduce_any", "Whether any element over axes (none: all) is not zero.", operands, plain, constraints,
           any_dtype, reduce_shape, reference_any<false>, ReduceLower{Combine::kAny, accumulate_bool},
           {all, samples::reduce_or_empty}, {"torch.any", "numpy.any", ""});
    add_op(ops, "reduce_all", "Whether every element over axes (none: all) is not zero.", operands, plain, constraints,
           any_dtype, reduce_shape, reference_any<true>, ReduceLower{Combine::kAll, accumulate_bool},
           {all, samples::reduce_or_empty}, {"torch.all", "numpy.all", ""});
    add_op(ops, "argmax",
           "The position of the first largest element along one axis (none: in row-major order); NaN wins.", operands,
           plain, constraints, arg_dtype, one_axis_shape, reference_position<true>,
           ReduceLower{Combine::kArgMax, accumulate_wide}, {numbers, one_axis_samples},
           {"torch.argmax", "numpy.argmax", "ArgMax"});
    add_op(ops, "argmin",
           "The position of the first smallest element along one axis (none: in row-major order); NaN wins.", operands,
           plain, constraints, arg_dtype, one_axis_shape, reference_position<false>,
           ReduceLower{Combine::kArgMin, accumulate_wide}, {numbers, one_axis_samples},
           {"torch.argmin", "numpy.argmin", "ArgMin"});
    add_op(ops, "var", "The variance over axes (none: all), divided by the count less the correction.", operands,
           with_correction, constraints, mean_dtype, reduce_shape, reference_var<false>, lower_var,
           {floats, var_samples}, {"torch.var", "numpy.var", ""});
    add_op(ops, "std", "The standard deviation over axes (none: all), divided by the count less the correction.",
           operands, with_correction, constraints, mean_dtype, reduce_shape, reference_var<true>, lower_std,
           {floats, var_samples}, {"torch.std", "numpy.std", ""});
    add_op(ops, "logsumexp", "The logarithm of the sum of exp(x) over axes (none: all), without overflow.", operands,
           plain, constraints, logsumexp_dtype, reduce_shape, reference_logsumexp, lower_logsumexp,
           {all, samples::reduce_or_empty}, {"torch.logsumexp", "", "ReduceLogSumExp"});
    return ops;
}

}  // namespace flexor::ops
