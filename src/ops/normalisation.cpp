// Normalisations: composites that compute halves in f32 and round once at the end.
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
using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;
using Values = std::span<const GraphValue>;

// ---------------------------------------------------------------- rules

// x decides the dtype; the parameters may be of any floating dtype.
Expected<DTypes> float_params(Args args, const Attrs&, types::Promotion) {
    DTypes dtypes;
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i].present && !is_floating(args[i].type.dtype))
            return rules::refuse_dtype(args, i, "a floating dtype");
        dtypes.operands.push_back(args[i].type.dtype);
    }
    dtypes.results.push_back(args[0].type.dtype);
    return dtypes;
}

bool axis_shape(ShapeContext& context, Results& results) {
    const int rank = std::max(context.type(0).rank(), 1);
    if (rules::normal_axis(context.attrs().integer("axis"), rank) < 0) return context.fail(1);
    return rules::same_shape(context, results);
}
// The last normalized_ndim axes of x are those of the parameters.
bool layer_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const Dim count = context.attrs().integer("normalized_ndim");
    if (!count.is_constant() || count.constant() < 1 || count.constant() > x.rank()) return context.fail(1);
    const std::size_t first = x.sizes.size() - static_cast<std::size_t>(count.constant());
    for (std::size_t i = 1; i < context.args().size(); ++i) {
        if (!context.args()[i].present) continue;
        const TensorType& parameter = context.type(i);
        if (parameter.rank() != count.constant()) return context.fail(2);
        for (std::size_t axis = 0; axis < parameter.sizes.size(); ++axis) {
            if (!context.require_eq(parameter.sizes[axis], x.sizes[first + axis], 2)) return false;
        }
    }
    return rules::same_shape(context, results);
}
// Parameters are vectors along axis 1 of x.
bool channel_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    if (x.rank() < 2) return context.fail(1);
    for (std::size_t i = 1; i < context.args().size(); ++i) {
        if (!context.args()[i].present) continue;
        if (context.type(i).rank() != 1) return context.fail(2);
        if (!context.require_eq(context.type(i).sizes[0], x.sizes[1], 2)) return false;
    }
    return rules::same_shape(context, results);
}
bool group_shape(ShapeContext& context, Results& results) {
    if (!channel_shape(context, results)) return false;
    const Dim groups = context.attrs().integer("groups");
    if (!context.require_lt(0, groups, 3)) return false;
    return context.require_eq(Dim::mod(context.type(0).sizes[1], groups), 0, 3);
}

// ---------------------------------------------------------------- lowering

GraphValue reduce(GraphBuilder& g, std::string_view op, GraphValue x, DimList axes) {
    Attrs attrs{{"axes", std::move(axes)}, {"keepdim", true}};
    if (op == "reduce_max") attrs.set("allow_empty", true);
    return g.op(op, {x}, attrs);
}
DimList last_axes(int count) {
    DimList axes;
    for (int i = count; i >= 1; --i) axes.push_back(-i);
    return axes;
}
Dim size_of_axes(const TensorType& type, const DimList& axes) {
    Dim size = 1;
    for (const Dim& axis : axes) size = size * type.sizes[at(rules::normal_axis(axis, type.rank()))];
    return size;
}
GraphValue mean(GraphBuilder& g, GraphValue x, const DimList& axes) {
    return g.op("div", {reduce(g, "reduce_sum", x, axes), g.dim(size_of_axes(g.type(x).type, axes))});
}
GraphValue finish(GraphBuilder& g, GraphValue x) { return row_major(g, cast_to(g, x, g.result_dtype())); }
// (x - mean) / sqrt(variance + eps), both over axes, the variance from the deviations.
GraphValue standardise(GraphBuilder& g, GraphValue x, const DimList& axes, double eps) {
    const GraphValue deviation = g.op("sub", {x, mean(g, x, axes)});
    const GraphValue variance = mean(g, g.op("square", {deviation}), axes);
    const GraphValue scale = g.op("rsqrt", {g.op("add", {variance, g.scalar(eps)})});
    return g.op("mul", {deviation, scale});
}
// x * weight + bias, where given.
GraphValue scale_and_shift(GraphBuilder& g, GraphValue x, GraphValue weight, GraphValue bias) {
    const DType dtype = g.type(x).type.dtype;
    if (g.type(weight).present) x = g.op("mul", {x, cast_to(g, weight, dtype)});
    if (g.type(bias).present) x = g.op("add", {x, cast_to(g, bias, dtype)});
    return x;
}
// A vector along axis 1 of a tensor of the rank.
GraphValue along_channels(GraphBuilder& g, GraphValue vector, int rank) {
    if (!g.type(vector).present) return vector;
    for (int axis = 2; axis < rank; ++axis) vector = g.op("unsqueeze", {vector}, Attrs{{"axis", -1}});
    return vector;
}

std::vector<GraphValue> lower_softmax(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DimList axes = {attrs.integer("axis")};
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue e = g.op("exp", {g.op("sub", {x, reduce(g, "reduce_max", x, axes)})});
    // One division a row: the sum lies between 1 and the length, so its inverse loses nothing but a rounding.
    return {finish(g, g.op("mul", {e, g.op("reciprocal", {reduce(g, "reduce_sum", e, axes)})}))};
}
std::vector<GraphValue> lower_log_softmax(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DimList axes = {attrs.integer("axis")};
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue shifted = g.op("sub", {x, reduce(g, "reduce_max", x, axes)});
    const GraphValue sum = reduce(g, "reduce_sum", g.op("exp", {shifted}), axes);
    return {finish(g, g.op("sub", {shifted, g.op("log", {sum})}))};
}
std::vector<GraphValue> lower_layer_norm(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DimList axes = last_axes(static_cast<int>(attrs.integer("normalized_ndim").constant()));
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    return {finish(g, scale_and_shift(g, standardise(g, x, axes, attrs.real("eps")), args[1], args[2]))};
}
double rms_eps(const Attrs& attrs, DType dtype) {
    if (attrs.has("eps")) return attrs.real("eps");
    return dtype == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                : static_cast<double>(std::numeric_limits<float>::epsilon());
}
std::vector<GraphValue> lower_rms_norm(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DimList axes = last_axes(static_cast<int>(attrs.integer("normalized_ndim").constant()));
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue square = mean(g, g.op("square", {x}), axes);
    const GraphValue eps = g.scalar(rms_eps(attrs, g.result_dtype()));
    const GraphValue scaled = g.op("mul", {x, g.op("rsqrt", {g.op("add", {square, eps})})});
    return {finish(g, scale_and_shift(g, scaled, args[1], g.none()))};
}
std::vector<GraphValue> lower_batch_norm(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DType dtype = compute_dtype(g.result_dtype());
    const GraphValue x = cast_to(g, args[0], dtype);
    const int rank = g.type(x).type.rank();
    const GraphValue mean = cast_to(g, along_channels(g, args[1], rank), dtype);
    const GraphValue variance = cast_to(g, along_channels(g, args[2], rank), dtype);
    const GraphValue scale = g.op("rsqrt", {g.op("add", {variance, g.scalar(attrs.real("eps"))})});
    const GraphValue scaled = g.op("mul", {g.op("sub", {x, mean}), scale});
    return {finish(g, scale_and_shift(g, scaled, along_channels(g, args[3], rank), along_channels(g, args[4], rank)))};
}
std::vector<GraphValue> lower_group_norm(GraphBuilder& g, Values args, const Attrs& attrs) {
    const TensorType type = g.type(args[0]).type;
    const Dim groups = attrs.integer("groups");
    const DimList whole(type.sizes.begin(), type.sizes.end());
    const Dim rest = Dim::floor_div(product(std::span<const Dim>(type.sizes).subspan(1)), groups);
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue grouped = g.op("reshape", {x}, Attrs{{"shape", DimList{type.sizes[0], groups, rest}}});
    const GraphValue normal = standardise(g, grouped, {Dim(-1)}, attrs.real("eps"));
    const GraphValue back = g.op("reshape", {normal}, Attrs{{"shape", whole}});
    return {finish(
        g, scale_and_shift(g, back, along_channels(g, args[1], type.rank()), along_channels(g, args[2], type.rank())))};
}
std::vector<GraphValue> lower_normalize(GraphBuilder& g, Values args, const Attrs& attrs) {
    const DimList axes = {attrs.integer("axis")};
    const GraphValue x = cast_to(g, args[0], compute_dtype(g.result_dtype()));
    const GraphValue norm = g.op("sqrt", {reduce(g, "reduce_sum", g.op("square", {x}), axes)});
    const GraphValue divisor = g.op("maximum", {norm, g.scalar(attrs.real("eps"))});
    return {cast_to(g, g.op("div", {x, divisor}), g.result_dtype())};
}

// ---------------------------------------------------------------- references

// Calls f(values, targets) for every row: the values of x along the axes from `first` to `last`, and the offsets of the
// result elements in the same order; f changes the values in place.
template <class F>
void for_each_row(ReferenceContext& c, int first, int last, F&& f) {
    const Tensor& x = c.inputs[0];
    const Tensor& out = c.outputs[0];
    std::vector<I> outer(x.sizes().begin(), x.sizes().end());
    std::vector<I> inner(outer.size(), 1);
    for (int axis = first; axis <= last; ++axis) std::swap(outer[at(axis)], inner[at(axis)]);
    for_each_index(outer, [&](const Index& row) {
        std::vector<double> values;
        std::vector<I> targets;
        for_each_index(inner, [&](const Index& place) {
            Index index = row;
            for (std::size_t axis = 0; axis < index.size(); ++axis) index[axis] += place[axis];
            values.push_back(load_real(x, offset_of(x, index)));
            targets.push_back(offset_of(out, index));
        });
        f(row, values);
        for (std::size_t i = 0; i < values.size(); ++i) store_real(out, targets[i], values[i]);
    });
}
void standardise(std::vector<double>& values, double eps) {
    const double mean = mean_of(values);
    std::vector<double> squares;
    for (double& v : values) {
        v -= mean;
        squares.push_back(v * v);
    }
    const double deviation = std::sqrt(mean_of(squares) + eps);
    for (double& v : values) v /= deviation;
}
// Element i of a parameter in row-major order.
double parameter(const Tensor& tensor, std::size_t i) {
    I offset = 0;
    I rest = static_cast<I>(i);
    for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
        offset += rest % tensor.size(axis) * tensor.stride(axis);
        rest /= tensor.size(axis);
    }
    return load_real(tensor, offset);
}

template <bool logarithm>
Expected<void> reference_softmax(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(rank, 1));
    for_each_row(c, rank == 0 ? 0 : axis, rank == 0 ? -1 : axis, [](const Index&, std::vector<double>& values) {
        double largest = -std::numeric_limits<double>::infinity();
        for (const double v : values) largest = std::isnan(v) || v > largest ? v : largest;
        std::vector<double> exps;
        for (const double v : values) exps.push_back(std::exp(v - largest));
        const double sum = pairwise_sum(exps);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = logarithm ? values[i] - largest - std::log(sum) : exps[i] / sum;
        }
    });
    return {};
}
Expected<void> reference_layer_norm(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    const int first = rank - static_cast<int>(c.attrs.integer("normalized_ndim").constant());
    for_each_row(c, first, rank - 1, [&](const Index&, std::vector<double>& values) {
        standardise(values, c.attrs.real("eps"));
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (c.inputs[1].defined()) values[i] *= parameter(c.inputs[1], i);
            if (c.inputs[2].defined()) values[i] += parameter(c.inputs[2], i);
        }
    });
    return {};
}
Expected<void> reference_rms_norm(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    const int first = rank - static_cast<int>(c.attrs.integer("normalized_ndim").constant());
    const double eps = rms_eps(c.attrs, c.outputs[0].dtype());
    for_each_row(c, first, rank - 1, [&](const Index&, std::vector<double>& values) {
        std::vector<double> squares;
        for (const double v : values) squares.push_back(v * v);
        const double root = std::sqrt(mean_of(squares) + eps);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] /= root;
            if (c.inputs[1].defined()) values[i] *= parameter(c.inputs[1], i);
        }
    });
    return {};
}
Expected<void> reference_batch_norm(ReferenceContext& c) {
    for_each_row(c, 0, -1, [&](const Index& row, std::vector<double>& values) {
        const std::size_t channel = at(static_cast<int>(row[1]));
        double& v = values[0];
        v = (v - parameter(c.inputs[1], channel)) / std::sqrt(parameter(c.inputs[2], channel) + c.attrs.real("eps"));
        if (c.inputs[3].defined()) v *= parameter(c.inputs[3], channel);
        if (c.inputs[4].defined()) v += parameter(c.inputs[4], channel);
    });
    return {};
}
Expected<void> reference_group_norm(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const std::size_t groups = static_cast<std::size_t>(c.attrs.integer("groups").constant());
    const std::size_t channels = static_cast<std::size_t>(x.size(1));
    for_each_row(c, 1, x.rank() - 1, [&](const Index&, std::vector<double>& values) {
        if (values.empty()) return;
        const std::size_t group = values.size() / groups;
        const std::size_t channel = values.size() / channels;
        for (std::size_t begin = 0; begin < values.size(); begin += group) {
            std::vector<double> part(values.begin() + static_cast<I>(begin),
                                     values.begin() + static_cast<I>(begin + group));
            standardise(part, c.attrs.real("eps"));
            std::copy(part.begin(), part.end(), values.begin() + static_cast<I>(begin));
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (c.inputs[1].defined()) values[i] *= parameter(c.inputs[1], i / channel);
            if (c.inputs[2].defined()) values[i] += parameter(c.inputs[2], i / channel);
        }
    });
    return {};
}
Expected<void> reference_normalize(ReferenceContext& c) {
    const int rank = c.inputs[0].rank();
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(rank, 1));
    for_each_row(c, rank == 0 ? 0 : axis, rank == 0 ? -1 : axis, [&](const Index&, std::vector<double>& values) {
        std::vector<double> squares;
        for (const double v : values) squares.push_back(v * v);
        const double norm = std::max(std::sqrt(pairwise_sum(squares)), c.attrs.real("eps"));
        for (double& v : values) v /= norm;
    });
    return {};
}

// ---------------------------------------------------------------- samples

using samples::Fill, samples::input, samples::none, samples::sample, samples::typed;
std::vector<Sample> axis_samples() {
    return {sample({input({2, 3})}),
            sample({input({33, 17})}, Attrs{{"axis", 0}}),
            sample({input({2, 0})}),
            sample({input({0, 3})}),
            sample({input({2, 1, 16})}, Attrs{{"axis", 1}}),
            sample({input({})}, Attrs{{"axis", 0}})};
}
std::vector<Sample> layer_samples() {
    return {sample({input({2, 3, 16}), input({16}), input({16})}),
            sample({input({33, 17}), none(), none()}),
            sample({input({2, 3, 5}), input({3, 5}), none()}, Attrs{{"normalized_ndim", 2}, {"eps", 1e-3}}),
            sample({input({0, 4}), input({4}), input({4})}),
            sample({input({1, 1}), none(), input({1})}),
            sample({input({2, 15}), typed({15}, DType::kF32), typed({15}, DType::kF32)})};
}
std::vector<Sample> rms_samples() {
    return {sample({input({2, 3, 16}), input({16})}), sample({input({33, 17}), none()}, Attrs{{"eps", 1e-5}}),
            sample({input({2, 3, 5}), input({3, 5})}, Attrs{{"normalized_ndim", 2}}),
            sample({input({0, 4}), input({4})}), sample({input({1, 1}), none()})};
}
std::vector<Sample> batch_samples() {
    return {sample({input({2, 3, 5}), input({3}), input({3}, Fill::kPositive), input({3}), input({3})}),
            sample({input({17, 2}), input({2}), input({2}, Fill::kPositive), none(), none()}),
            sample({input({0, 3, 2, 2}), input({3}), input({3}, Fill::kPositive), input({3}), none()})};
}
std::vector<Sample> group_samples() {
    return {sample({input({2, 4, 3}), input({4}), input({4})}, Attrs{{"groups", 2}}),
            sample({input({1, 3, 5, 5}), none(), none()}, Attrs{{"groups", 3}}),
            sample({input({0, 2, 3}), input({2}), input({2})}, Attrs{{"groups", 1}})};
}

}  // namespace

std::vector<OpDef> normalisation_ops() {
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr OperandKind optional = OperandKind::kOptionalTensor;
    const auto only_x = keep<OperandSpec>({{"x", tensor}});
    const auto in_range = keep<Constraint>({rules::kAxisInRange});
    const auto axis = keep<AttrSpec>({{"axis", AttrKind::kInt, -1}});
    constexpr Constraint enough_axes{"normalized_ndim lies between 1 and the rank of x", DiagnosticId::kBadAttribute};
    constexpr Constraint parameters{"weight and bias have the sizes of the last normalized_ndim axes of x"};
    constexpr Constraint channel_rank{"x has rank 2 or more", DiagnosticId::kWrongRank, 0};
    constexpr Constraint channels{"the parameters are vectors as long as axis 1 of x"};
    std::vector<OpDef> ops;
    add_op(ops, "softmax", "exp(x) over its sum along an axis, without overflow.", only_x, axis, in_range, float_params,
           axis_shape, reference_softmax<false>, lower_softmax, {floats, axis_samples},
           {"torch.softmax", "", "Softmax"});
    add_op(ops, "log_softmax", "The logarithm of softmax, without its loss of digits.", only_x, axis, in_range,
           float_params, axis_shape, reference_softmax<true>, lower_log_softmax, {floats, axis_samples},
           {"torch.log_softmax", "", "LogSoftmax"});
    add_op(ops, "layer_norm",
           "x less its mean over its standard deviation along the last axes, times weight, plus bias.",
           keep<OperandSpec>({{"x", tensor}, {"weight", optional}, {"bias", optional}}),
           keep<AttrSpec>({{"normalized_ndim", AttrKind::kInt, 1}, {"eps", AttrKind::kFloat, 1e-5}}),
           keep<Constraint>({enough_axes, parameters}), float_params, layer_shape, reference_layer_norm,
           lower_layer_norm, {floats, layer_samples}, {"torch.nn.functional.layer_norm", "", "LayerNormalization"});
    add_op(ops, "rms_norm",
           "x over its root mean square along the last axes, times weight; eps none is that of f32 (of f64).",
           keep<OperandSpec>({{"x", tensor}, {"weight", optional}}),
           keep<AttrSpec>({{"normalized_ndim", AttrKind::kInt, 1}, {"eps", AttrKind::kOptionalFloat, {}}}),
           keep<Constraint>({enough_axes, parameters}), float_params, layer_shape, reference_rms_norm, lower_rms_norm,
           {floats, rms_samples}, {"torch.nn.functional.rms_norm", "", "RMSNormalization"});
    add_op(ops, "batch_norm",
           "x less a given mean over the root of a given variance along axis 1, times weight, plus bias.",
           keep<OperandSpec>(
               {{"x", tensor}, {"mean", tensor}, {"variance", tensor}, {"weight", optional}, {"bias", optional}}),
           keep<AttrSpec>({{"eps", AttrKind::kFloat, 1e-5}}), keep<Constraint>({channel_rank, channels}), float_params,
           channel_shape, reference_batch_norm, lower_batch_norm, {floats, batch_samples},
           {"torch.nn.functional.batch_norm", "", "BatchNormalization"});
    add_op(ops, "group_norm", "x standardised within groups of channels (axis 1), times weight, plus bias.",
           keep<OperandSpec>({{"x", tensor}, {"weight", optional}, {"bias", optional}}),
           keep<AttrSpec>({{"groups", AttrKind::kInt, {}}, {"eps", AttrKind::kFloat, 1e-5}}),
           keep<Constraint>({channel_rank, channels, {"groups divides the channels"}}), float_params, group_shape,
           reference_group_norm, lower_group_norm, {floats, group_samples},
           {"torch.nn.functional.group_norm", "", "GroupNormalization"});
    add_op(ops, "normalize", "x over its Euclidean norm along an axis, at least eps.", only_x,
           keep<AttrSpec>({{"axis", AttrKind::kInt, 1}, {"eps", AttrKind::kFloat, 1e-12}}), in_range, float_params,
           axis_shape, reference_normalize, lower_normalize,
           {floats,
            [] {
                return std::vector<Sample>{sample({input({2, 3})}), sample({input({33, 17})}, Attrs{{"axis", 0}}),
                                           sample({input({2, 0})}), sample({input({0, 3})}),
                                           sample({input({2, 1, 16})}, Attrs{{"axis", -1}})};
            }},
           {"torch.nn.functional.normalize", "", ""},
           {.layout = Layout::kElementwise});  // a division, unlike the others
    return ops;
}

}  // namespace flexor::ops
