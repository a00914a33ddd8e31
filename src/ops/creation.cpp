// Tensors from sizes and scalars.
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using loopir::NodeId;
using S = loopir::ScalarOp;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;
using types::DimList;

// ---------------------------------------------------------------- dtype rules

// Attribute "dtype"; else that of the operand that the result is like, or of the value.
Expected<DTypes> full_dtype(Args args, const Attrs& attrs, types::Promotion promotion) {
    const DType d = attrs.has("dtype") ? attrs.dtype("dtype") : rules::common_dtype(args, promotion);
    DTypes dtypes{{d}, {d}};
    rules::bound_integers(args, promotion, dtypes);
    return dtypes;
}
Expected<DTypes> like_dtype(Args args, const Attrs& attrs, types::Promotion promotion) {
    const DType d = attrs.has("dtype") ? attrs.dtype("dtype") : args[0].type.dtype;
    DTypes dtypes{{args[0].type.dtype}, {d}};
    if (args.size() == 2) dtypes.operands.push_back(d);
    rules::bound_integers(args, promotion, dtypes);
    return dtypes;
}

// ---------------------------------------------------------------- shape rules

bool given_shape(ShapeContext& context, Results& results) {
    if (!context.args().empty() && context.type(0).rank() != 0) return context.fail(2);
    const DimList& shape = context.attrs().list("shape");
    for (const Dim& size : shape) {
        if (!context.require_le(0, size, 1)) return false;
    }
    results.push_back(rules::fresh_result(std::vector<Dim>(shape.begin(), shape.end())));
    return true;
}
bool like_shape(ShapeContext& context, Results& results) {
    if (context.args().size() == 2 && context.type(1).rank() != 0) return context.fail(1);
    return rules::same_shape(context, results);
}
// ceil((stop - start) / step), which Python calls the length of a range but torch lets not be negative.
bool arange_shape(ShapeContext& context, Results& results) {
    const Attrs& attrs = context.attrs();
    const Dim step = attrs.integer("step");
    if (!step.is_constant() || step.is_constant(0)) return context.fail(1);
    const bool forward = step.constant() > 0;
    const Dim start = attrs.integer("start");
    const Dim span = forward ? attrs.integer("stop") - start : start - attrs.integer("stop");
    const I magnitude = forward ? step.constant() : -step.constant();
    const Dim length = Dim::max(Dim::floor_div(span + (magnitude - 1), magnitude), 0);
    results.push_back(rules::fresh_result({context.env().simplify(length)}));
    return true;
}
bool eye_shape(ShapeContext& context, Results& results) {
    const Dim rows = context.attrs().integer("rows");
    const Dim columns = context.attrs().has("columns") ? context.attrs().integer("columns") : rows;
    if (!context.require_le(0, rows, 1) || !context.require_le(0, columns, 1)) return false;
    results.push_back(rules::fresh_result({rows, columns}));
    return true;
}

// ---------------------------------------------------------------- lowering

// Ones and zeros are exact in every dtype; the bool is converted to the result's.
template <int value>
NodeId lower_constant(loopir::BodyBuilder& b, std::span<const NodeId>, const Attrs&) {
    return b.constant_int(DType::kBool, value);
}
NodeId lower_arange(IndexBuilder& b, const Attrs& attrs) {
    loopir::BodyBuilder& body = b.body();
    const NodeId scaled = body.binary(S::kMul, b.axis_index(0), b.dim(attrs.integer("step")));
    return body.cast(body.binary(S::kAdd, scaled, b.dim(attrs.integer("start"))), b.result().dtype);
}
NodeId lower_eye(IndexBuilder& b, const Attrs&) {
    loopir::BodyBuilder& body = b.body();
    return body.cast(body.binary(S::kEq, b.axis_index(0), b.axis_index(1)), b.result().dtype);
}

// ---------------------------------------------------------------- references

template <class F>
Expected<void> fill(const Tensor& out, F&& f) {
    for_each_index(out.sizes(), [&](const Index& index) { f(offset_of(out, index), index); });
    return {};
}
template <std::size_t operand>
Expected<void> reference_full(ReferenceContext& c) {
    return fill(c.outputs[0],
                [&](I offset, const Index&) { copy_element(c.outputs[0], offset, c.inputs[operand], 0); });
}
template <int value>
Expected<void> reference_constant(ReferenceContext& c) {
    return fill(c.outputs[0], [&](I offset, const Index&) { store_int(c.outputs[0], offset, value); });
}
Expected<void> reference_arange(ReferenceContext& c) {
    const I start = c.attrs.integer("start").constant();
    const I step = c.attrs.integer("step").constant();
    return fill(c.outputs[0],
                [&](I offset, const Index& index) { store_int(c.outputs[0], offset, start + index[0] * step); });
}
Expected<void> reference_eye(ReferenceContext& c) {
    return fill(c.outputs[0],
                [&](I offset, const Index& index) { store_int(c.outputs[0], offset, index[0] == index[1]); });
}

// ---------------------------------------------------------------- samples

using samples::input, samples::sample, samples::scalar;
std::vector<Sample> given_samples() {
    std::vector<Sample> out;
    for (const DType d : samples::kAllDTypes) {
        out.push_back(sample({}, Attrs{{"shape", DimList{2, 17}}, {"dtype", d}}));
    }
    out.push_back(sample({}, Attrs{{"shape", DimList{}}}));
    out.push_back(sample({}, Attrs{{"shape", DimList{3, 0}}}));
    return out;
}
std::vector<Sample> full_samples() {
    std::vector<Sample> out = given_samples();
    for (Sample& s : out) s.inputs.push_back(scalar(3, DType::kI64));
    out.push_back(sample({scalar(0.5)}, Attrs{{"shape", DimList{1, 33}}}));
    return out;
}
std::vector<Sample> full_like_samples() {
    std::vector<Sample> out = samples::unary();
    for (Sample& s : out) s.inputs.push_back(scalar(1, DType::kI64));
    return out;
}
std::vector<Sample> arange_samples() {
    return {sample({}, Attrs{{"stop", 17}}), sample({}, Attrs{{"start", 3}, {"stop", -4}, {"step", -2}}),
            sample({}, Attrs{{"start", 3}, {"stop", 3}}), sample({}, Attrs{{"stop", 33}, {"dtype", DType::kF32}})};
}
std::vector<Sample> eye_samples() {
    return {sample({}, Attrs{{"rows", 3}}), sample({}, Attrs{{"rows", 2}, {"columns", 17}, {"dtype", DType::kI64}}),
            sample({}, Attrs{{"rows", 0}})};
}
// The dtypes of these samples are in their attributes.
constexpr std::array kAnyDType = {DType::kF32};

}  // namespace

std::vector<OpDef> creation_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> any = kAnyDType;
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr Constraint one_value{"the value has rank 0", DiagnosticId::kWrongRank};
    const AttrSpec shape{"shape", AttrKind::kIntList, {}};
    const AttrSpec f32{"dtype", AttrKind::kDType, DType::kF32};
    const AttrSpec maybe_dtype{"dtype", AttrKind::kOptionalDType, {}};
    const auto like = keep<AttrSpec>({maybe_dtype});
    std::vector<OpDef> ops;
    const MapLower value = [](loopir::BodyBuilder&, std::span<const NodeId> args, const Attrs&) { return args.back(); };
    const auto only_x = keep<OperandSpec>({{"x", tensor}});
    add_op(ops, "full", "A tensor of one value; dtype none is that of the value.",
           keep<OperandSpec>({{"value", tensor, true}}), keep<AttrSpec>({shape, maybe_dtype}),
           keep<Constraint>({rules::kSizesNotNegative, one_value}), full_dtype, given_shape, reference_full<0>, value,
           {any, full_samples}, {"torch.full", "numpy.full", "ConstantOfShape"});
    add_op(ops, "zeros", "A tensor of zeros.", {}, keep<AttrSpec>({shape, f32}),
           keep<Constraint>({rules::kSizesNotNegative}), rules::by_attr, given_shape, reference_constant<0>,
           MapLower(lower_constant<0>), {any, given_samples}, {"torch.zeros", "numpy.zeros", ""});
    add_op(ops, "ones", "A tensor of ones.", {}, keep<AttrSpec>({shape, f32}),
           keep<Constraint>({rules::kSizesNotNegative}), rules::by_attr, given_shape, reference_constant<1>,
           MapLower(lower_constant<1>), {any, given_samples}, {"torch.ones", "numpy.ones", ""});
    add_op(ops, "full_like", "A tensor of one value with the sizes and dtype of x.",
           keep<OperandSpec>({{"x", tensor}, {"value", tensor, true}}), like, keep<Constraint>({one_value}), like_dtype,
           like_shape, reference_full<1>, value, {all, full_like_samples}, {"torch.full_like", "numpy.full_like", ""},
           {.layout = Layout::kLikeFirst});
    add_op(ops, "zeros_like", "A tensor of zeros with the sizes and dtype of x.", only_x, like, {}, like_dtype,
           like_shape, reference_constant<0>, MapLower(lower_constant<0>), {all, samples::unary},
           {"torch.zeros_like", "numpy.zeros_like", ""}, {.layout = Layout::kLikeFirst});
    add_op(ops, "ones_like", "A tensor of ones with the sizes and dtype of x.", only_x, like, {}, like_dtype,
           like_shape, reference_constant<1>, MapLower(lower_constant<1>), {all, samples::unary},
           {"torch.ones_like", "numpy.ones_like", ""}, {.layout = Layout::kLikeFirst});
    add_op(ops, "arange", "start, start + step, ... as long as it is before stop.", {},
           keep<AttrSpec>({{"start", AttrKind::kInt, 0},
                           {"stop", AttrKind::kInt, {}},
                           {"step", AttrKind::kInt, 1},
                           {"dtype", AttrKind::kDType, DType::kI64}}),
           keep<Constraint>({{"step is a constant other than 0", DiagnosticId::kBadAttribute}}), rules::by_attr,
           arange_shape, reference_arange, IndexLower(lower_arange), {any, arange_samples},
           {"torch.arange", "numpy.arange", "Range"});
    add_op(ops, "eye", "A matrix with ones on its diagonal.", {},
           keep<AttrSpec>({{"rows", AttrKind::kInt, {}}, {"columns", AttrKind::kOptionalInt, {}}, f32}),
           keep<Constraint>({rules::kSizesNotNegative}), rules::by_attr, eye_shape, reference_eye,
           IndexLower(lower_eye), {any, eye_samples}, {"torch.eye", "numpy.eye", "EyeLike"});
    return ops;
}

}  // namespace flexor::ops
