// Matrix products.
#include <algorithm>
#include <functional>

#include "ops/blocked_product.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using types::Promotion;
using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;

// ---------------------------------------------------------------- dtype rules

// One dtype for all: torch refuses a mixture and bools, NumPy promotes. The result has the attribute "dtype" if given.
Expected<DTypes> matmul_dtype(Args args, const Attrs& attrs, Promotion promotion) {
    const DType d = rules::common_dtype(args, promotion);
    for (std::size_t i = 0; i < args.size() && promotion == Promotion::kTorch; ++i) {
        if (!args[i].present) continue;
        if (args[i].type.dtype == DType::kBool) return rules::refuse_dtype(args, i, "a dtype other than bool");
        if (args[i].type.dtype != args[0].type.dtype) {
            return rules::refuse_dtype(args, i, std::string(dtype_name(args[0].type.dtype)));
        }
    }
    DTypes dtypes{std::vector<DType>(args.size(), d), {d}};
    if (attrs.find("dtype") != nullptr && attrs.has("dtype")) {
        const DType result = attrs.dtype("dtype");
        if (result != d && !(is_floating(d) && result == compute_dtype(d))) {
            return Diagnostic(DiagnosticId::kDTypeMismatch)
                .operand("dtype")
                .found(std::string(dtype_name(result)))
                .expected("the operands' dtype, or f32 for f16 and bf16");
        }
        dtypes.results[0] = result;
    }
    return dtypes;
}
// The products that torch alone has take no bools.
Expected<DTypes> product_dtype(Args args, const Attrs& attrs, Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, matmul_dtype(args, attrs, promotion));
    if (dtypes.operands[0] == DType::kBool) return rules::refuse_dtype(args, 0, "a dtype other than bool");
    return dtypes;
}

// ---------------------------------------------------------------- shape rules

constexpr int kRank = 1;
constexpr int kInner = 2;
constexpr int kBatch = 3;

bool product_shape(ShapeContext& context, Results& results, int least_rank) {
    const TensorType& x = context.type(0);
    const TensorType& y = context.type(1);
    if (x.rank() < least_rank || y.rank() < least_rank) return context.fail(kRank);
    const std::size_t xr = x.sizes.size();
    const std::size_t yr = y.sizes.size();
    if (!context.require_eq(x.sizes[xr - 1], yr == 1 ? y.sizes[0] : y.sizes[yr - 2], kInner)) return false;
    std::vector<Dim> sizes;
    if (xr > 2) sizes.assign(x.sizes.begin(), x.sizes.end() - 2);
    if (yr > 2) {
        const std::span<const Dim> batch(y.sizes.data(), yr - 2);
        if (!rules::broadcast_into(context, sizes, batch, kBatch)) return false;
    }
    if (xr > 1) sizes.push_back(x.sizes[xr - 2]);
    if (yr > 1) sizes.push_back(y.sizes[yr - 1]);
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool matmul_shape(ShapeContext& context, Results& results) { return product_shape(context, results, 1); }
bool batch_matmul_shape(ShapeContext& context, Results& results) { return product_shape(context, results, 2); }
bool linear_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& weight = context.type(1);
    if (x.rank() < 1 || weight.rank() != 2) return context.fail(kRank);
    if (!context.require_eq(x.sizes.back(), weight.sizes[1], kInner)) return false;
    if (context.args()[2].present) {
        const TensorType& bias = context.type(2);
        if (bias.rank() != 1) return context.fail(3);
        if (!context.require_eq(bias.sizes[0], weight.sizes[0], 3)) return false;
    }
    std::vector<Dim> sizes(x.sizes.begin(), x.sizes.end() - 1);
    sizes.push_back(weight.sizes[0]);
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool addmm_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(1);
    const TensorType& y = context.type(2);
    if (x.rank() != 2 || y.rank() != 2) return context.fail(kRank);
    if (!context.require_eq(x.sizes[1], y.sizes[0], kInner)) return false;
    std::vector<Dim> sizes = {x.sizes[0], y.sizes[1]};
    const TensorType& c = context.type(0);
    if (c.rank() > 2) return context.fail(kBatch);
    for (int axis = 1; axis <= c.rank(); ++axis) {
        const Dim& size = c.sizes[static_cast<std::size_t>(c.rank() - axis)];
        Dim out;
        if (!context.broadcast(sizes[static_cast<std::size_t>(2 - axis)], size, kBatch, &out)) return false;
        if (!context.require_eq(out, sizes[static_cast<std::size_t>(2 - axis)], kBatch)) return false;
    }
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool outer_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() != 1 || context.type(1).rank() != 1) return context.fail(kRank);
    results.push_back(rules::fresh_result({context.type(0).sizes[0], context.type(1).sizes[0]}));
    return true;
}

// ---------------------------------------------------------------- composites

Attrs wide_product(GraphBuilder& g, GraphValue x) { return {{"dtype", compute_dtype(g.type(x).type.dtype)}}; }

// Of bools the logical or of ands: whether a sum of ands is not zero.
std::vector<GraphValue> lower_matmul(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    GraphValue x = args[0];
    GraphValue y = args[1];
    const bool bools = g.type(x).type.dtype == DType::kBool && g.type(y).type.dtype == DType::kBool;
    if (bools) {
        x = cast_to(g, x, DType::kI64);
        y = cast_to(g, y, DType::kI64);
    }
    const bool x_vector = g.type(x).type.rank() == 1;
    const bool y_vector = g.type(y).type.rank() == 1;
    if (x_vector) x = g.op("unsqueeze", {x}, Attrs{{"axis", 0}});
    if (y_vector) y = g.op("unsqueeze", {y}, Attrs{{"axis", 1}});
    Attrs product;
    if (attrs.has("dtype") && !bools) product.set("dtype", attrs.dtype("dtype"));
    GraphValue result = g.op("batch_matmul", {x, y}, product);
    types::DimList axes;
    if (x_vector) axes.push_back(-2);
    if (y_vector) axes.push_back(-1);
    if (!axes.empty()) result = g.op("squeeze", {result}, Attrs{{"axes", axes}});
    return {cast_to(g, result, g.result_dtype())};
}
// The bias joins before the one rounding.
std::vector<GraphValue> lower_linear(GraphBuilder& g, std::span<const GraphValue> args, const Attrs&) {
    const GraphValue weight = g.op("transpose", {args[1]}, Attrs{{"a", 0}, {"b", 1}});
    if (!g.type(args[2]).present) return {g.op("matmul", {args[0], weight})};
    const GraphValue product = g.op("matmul", {args[0], weight}, wide_product(g, args[0]));
    return {cast_to(g, g.op("add", {product, args[2]}), g.result_dtype())};
}
std::vector<GraphValue> lower_addmm(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    GraphValue product = g.op("batch_matmul", {args[1], args[2]}, wide_product(g, args[1]));
    if (attrs.real("alpha") != 1) product = g.op("mul", {product, g.scalar(attrs.real("alpha"))});
    if (attrs.real("beta") == 0) return {cast_to(g, product, g.result_dtype())};
    GraphValue c = cast_to(g, args[0], g.type(product).type.dtype);
    if (attrs.real("beta") != 1) c = g.op("mul", {c, g.scalar(attrs.real("beta"))});
    return {row_major(g, cast_to(g, g.op("add", {product, c}), g.result_dtype()))};
}
std::vector<GraphValue> lower_outer(GraphBuilder& g, std::span<const GraphValue> args, const Attrs&) {
    const GraphValue column = g.op("unsqueeze", {args[0]}, Attrs{{"axis", 1}});
    const GraphValue row = g.op("unsqueeze", {args[1]}, Attrs{{"axis", 0}});
    return {g.op("mul", {column, row})};
}

// ---------------------------------------------------------------- references

// Sum over k of x[x_at + k * x_step] * y[y_at + k * y_step].
Dot dot(const Tensor& x, I x_at, I x_step, const Tensor& y, I y_at, I y_step, I length, DType dtype) {
    Dot sum;
    std::vector<double> products;
    for (I k = 0; k < length; ++k) {
        const Element a = load_as(x, x_at + k * x_step, dtype);
        const Element b = load_as(y, y_at + k * y_step, dtype);
        products.push_back(a.real * b.real);
        sum.integer = wrap_add(sum.integer, wrap_mul(a.integer, b.integer));
    }
    sum.real = pairwise_sum(products);
    return sum;
}
void store_dot(const Tensor& out, I offset, const Dot& value, DType dtype) {
    if (is_floating(dtype)) {
        store_real(out, offset, value.real);
    } else {
        store_int(out, offset, value.integer);
    }
}

Expected<void> reference_matmul(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const Tensor& y = c.inputs[1];
    const Tensor& out = c.outputs[0];
    const DType dtype = c.dtypes.operands[0];
    const bool x_vector = x.rank() == 1;
    const bool y_vector = y.rank() == 1;
    const int x_k = x.rank() - 1;
    const int y_k = y_vector ? 0 : y.rank() - 2;
    const int batch = out.rank() - (x_vector ? 0 : 1) - (y_vector ? 0 : 1);
    for_each_index(out.sizes(), [&](const Index& index) {
        I x_at = 0;
        I y_at = 0;
        for (int axis = 0; axis < x.rank() - 2; ++axis) {
            const I i = index[static_cast<std::size_t>(batch - (x.rank() - 2) + axis)];
            if (x.size(axis) != 1) x_at += i * x.stride(axis);
        }
        for (int axis = 0; axis < y.rank() - 2; ++axis) {
            const I i = index[static_cast<std::size_t>(batch - (y.rank() - 2) + axis)];
            if (y.size(axis) != 1) y_at += i * y.stride(axis);
        }
        if (!x_vector) x_at += index[static_cast<std::size_t>(batch)] * x.stride(x.rank() - 2);
        if (!y_vector) y_at += index.back() * y.stride(y.rank() - 1);
        const Dot value = dot(x, x_at, x.stride(x_k), y, y_at, y.stride(y_k), x.size(x_k), dtype);
        store_dot(out, offset_of(out, index), value, dtype);
    });
    return {};
}
void add_bias(Dot& value, const Tensor& bias, I offset, DType dtype) {
    const Element b = load_as(bias, offset, dtype);
    value.real += b.real;
    value.integer = wrap_add(value.integer, b.integer);
}
Expected<void> reference_linear(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const Tensor& weight = c.inputs[1];
    const Tensor& bias = c.inputs[2];
    const DType dtype = c.dtypes.operands[0];
    const int last = x.rank() - 1;
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        I x_at = 0;
        for (int axis = 0; axis < last; ++axis) x_at += index[static_cast<std::size_t>(axis)] * x.stride(axis);
        const I n = index.back();
        Dot value = dot(x, x_at, x.stride(last), weight, n * weight.stride(0), weight.stride(1), x.size(last), dtype);
        if (bias.defined()) add_bias(value, bias, n * bias.stride(0), dtype);
        store_dot(c.outputs[0], offset_of(c.outputs[0], index), value, dtype);
    });
    return {};
}
void store_addmm(ReferenceContext& c, const Index& index, Dot value) {
    const DType dtype = c.dtypes.operands[0];
    const double alpha = c.attrs.real("alpha");
    const double beta = c.attrs.real("beta");
    const Element add = load_as(c.inputs[0], broadcast_offset(c.inputs[0], index), dtype);
    value.real = alpha * value.real + (beta == 0 ? 0 : beta * add.real);
    value.integer =
        wrap_add(wrap_mul(static_cast<I>(alpha), value.integer), wrap_mul(static_cast<I>(beta), add.integer));
    store_dot(c.outputs[0], offset_of(c.outputs[0], index), value, dtype);
}
Expected<void> reference_addmm(ReferenceContext& c) {
    const Tensor& x = c.inputs[1];
    const Tensor& y = c.inputs[2];
    const DType dtype = c.dtypes.operands[0];
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        store_addmm(
            c, index,
            dot(x, index[0] * x.stride(0), x.stride(1), y, index[1] * y.stride(1), y.stride(0), x.size(1), dtype));
    });
    return {};
}
// ---------------------------------------------------------------- blocked forms

// Offset of the matrix of a batch index, whose axes end where the last two of the tensor begin; axes of size 1 repeat.
I matrix_offset(const Tensor& tensor, const Index& batch) {
    I offset = 0;
    const int axes = tensor.rank() - 2;
    for (int axis = 0; axis < axes; ++axis) {
        const I i = batch[batch.size() - static_cast<std::size_t>(axes - axis)];
        if (tensor.size(axis) != 1) offset += i * tensor.stride(axis);
    }
    return offset;
}

// Runs `product` for every batch index until one fails.
Expected<void> for_each_matrix(std::span<const I> batch, const std::function<Expected<void>(const Index&)>& product) {
    Expected<void> done;
    for_each_index(batch, [&](const Index& index) {
        if (done) done = product(index);
    });
    return done;
}

Expected<void> blocked_matmul(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const Tensor& y = c.inputs[1];
    const Tensor& out = c.outputs[0];
    const DType dtype = c.dtypes.operands[0];
    const bool x_vector = x.rank() == 1;
    const bool y_vector = y.rank() == 1;
    const int row_axis = x.rank() - 2, depth_axis = y_vector ? 0 : y.rank() - 2;
    const ProductSizes sizes{x_vector ? 1 : x.size(row_axis), y_vector ? 1 : y.size(y.rank() - 1),
                             x.size(x.rank() - 1)};
    const int batch = out.rank() - (x_vector ? 0 : 1) - (y_vector ? 0 : 1);
    const I out_row = x_vector ? 0 : out.stride(batch);
    const I out_column = y_vector ? 0 : out.stride(out.rank() - 1);
    BlockedProduct product(dtype, c.stop_requested);
    return for_each_matrix(out.sizes().first(static_cast<std::size_t>(batch)), [&](const Index& index) {
        I target = 0;
        for (int axis = 0; axis < batch; ++axis) target += index[static_cast<std::size_t>(axis)] * out.stride(axis);
        return product.run({x, matrix_offset(x, index), x_vector ? 0 : x.stride(row_axis), x.stride(x.rank() - 1)},
                           {y, matrix_offset(y, index), y.stride(depth_axis), y_vector ? 0 : y.stride(y.rank() - 1)},
                           sizes, [&](I row, I column, Dot sum) {
                               store_dot(out, target + row * out_row + column * out_column, sum, dtype);
                           });
    });
}

Expected<void> blocked_linear(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const Tensor& weight = c.inputs[1];
    const Tensor& bias = c.inputs[2];
    const Tensor& out = c.outputs[0];
    const DType dtype = c.dtypes.operands[0];
    const int last = x.rank() - 1, batch = std::max(x.rank() - 2, 0);
    const bool vector = x.rank() == 1;
    const ProductSizes sizes{vector ? 1 : x.size(last - 1), weight.size(0), x.size(last)};
    BlockedProduct product(dtype, c.stop_requested);
    return for_each_matrix(out.sizes().first(static_cast<std::size_t>(batch)), [&](const Index& index) {
        I source = 0, target = 0;
        for (int axis = 0; axis < batch; ++axis) {
            source += index[static_cast<std::size_t>(axis)] * x.stride(axis);
            target += index[static_cast<std::size_t>(axis)] * out.stride(axis);
        }
        return product.run({x, source, vector ? 0 : x.stride(last - 1), x.stride(last)},
                           {weight, 0, weight.stride(1), weight.stride(0)}, sizes, [&](I row, I column, Dot sum) {
                               if (bias.defined()) add_bias(sum, bias, column * bias.stride(0), dtype);
                               const I line = vector ? 0 : row * out.stride(last - 1);
                               store_dot(out, target + line + column * out.stride(last), sum, dtype);
                           });
    });
}

Expected<void> blocked_addmm(ReferenceContext& c) {
    const Tensor& x = c.inputs[1];
    const Tensor& y = c.inputs[2];
    BlockedProduct product(c.dtypes.operands[0], c.stop_requested);
    return product.run({x, 0, x.stride(0), x.stride(1)}, {y, 0, y.stride(0), y.stride(1)},
                       {x.size(0), y.size(1), x.size(1)},
                       [&](I row, I column, Dot sum) { store_addmm(c, {row, column}, sum); });
}

// ---------------------------------------------------------------- an outer product sums nothing

Expected<void> reference_outer(ReferenceContext& c) {
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        const Element a = load_as(c.inputs[0], index[0] * c.inputs[0].stride(0), c.dtypes.operands[0]);
        const Element b = load_as(c.inputs[1], index[1] * c.inputs[1].stride(0), c.dtypes.operands[1]);
        store(c.outputs[0], offset_of(c.outputs[0], index),
              {a.floating, a.real * b.real, wrap_mul(a.integer, b.integer)});
    });
    return {};
}

// ---------------------------------------------------------------- samples

using samples::input, samples::none, samples::sample;
std::vector<Sample> batch_matmul_samples() {
    return {sample({input({2, 3}), input({3, 5})}),       sample({input({17, 16}), input({16, 33})}),
            sample({input({4, 2, 3}), input({4, 3, 2})}), sample({input({2, 1, 3, 5}), input({4, 5, 1})}),
            sample({input({2, 3}), input({2, 3, 4})}),    sample({input({0, 3}), input({3, 2})}),
            sample({input({2, 0}), input({0, 3})}),       sample({input({1, 1}), input({1, 1})})};
}
std::vector<Sample> matmul_samples() {
    std::vector<Sample> out = batch_matmul_samples();
    out.push_back(sample({input({15}), input({15})}));
    out.push_back(sample({input({3}), input({3, 2})}));
    out.push_back(sample({input({2, 4, 3}), input({3})}));
    out.push_back(sample({input({3}), input({2, 3, 4})}));
    return out;
}
std::vector<Sample> linear_samples() {
    return {sample({input({2, 3}), input({5, 3}), input({5})}), sample({input({2, 17, 16}), input({33, 16}), none()}),
            sample({input({3}), input({1, 3}), input({1})}), sample({input({0, 3}), input({2, 3}), input({2})})};
}
std::vector<Sample> addmm_samples() {
    return {sample({input({5}), input({2, 3}), input({3, 5})}),
            sample({input({2, 1}), input({2, 0}), input({0, 5})}, Attrs{{"alpha", 2.0}, {"beta", 3.0}}),
            sample({input({}), input({1, 17}), input({17, 1})})};
}
std::vector<Sample> outer_samples() {
    return {sample({input({3}), input({17})}), sample({input({0}), input({2})}), sample({input({1}), input({1})})};
}

}  // namespace

std::vector<OpDef> contraction_ops() {
    constexpr std::span<const DType> numbers = samples::kNumberDTypes;
    constexpr OperandKind tensor = OperandKind::kTensor;
    const auto two = keep<OperandSpec>({{"x", tensor}, {"y", tensor}});
    const auto dtype = keep<AttrSpec>({{"dtype", AttrKind::kOptionalDType, {}}});
    constexpr Constraint inner{"the last size of x equals the size of y that it is summed with"};
    constexpr Constraint batch{"batch sizes are equal or one of them is 1"};
    std::vector<OpDef> ops;
    add_op(ops, "matmul",
           "The matrix product over the last axes, vectors where the rank is 1, batches broadcast; beside NumPy, of "
           "bools the logical or of ands.",
           two, dtype, keep<Constraint>({{"x and y have rank 1 or more", DiagnosticId::kWrongRank}, inner, batch}),
           matmul_dtype, matmul_shape, reference_matmul, lower_matmul, {numbers, matmul_samples},
           {"torch.matmul", "numpy.matmul", "MatMul"}, {.native = blocked_matmul});
    add_op(ops, "batch_matmul",
           "The matrix product over the last two axes, batches broadcast; dtype f32 keeps the sums of f16 and bf16.",
           two, dtype, keep<Constraint>({{"x and y have rank 2 or more", DiagnosticId::kWrongRank}, inner, batch}),
           product_dtype, batch_matmul_shape, reference_matmul, ContractionLower{}, {numbers, batch_matmul_samples},
           {"torch.bmm", "", ""}, {.native = blocked_matmul});
    add_op(ops, "linear", "x times the transposed weight [N, K], plus bias.",
           keep<OperandSpec>({{"x", tensor}, {"weight", tensor}, {"bias", OperandKind::kOptionalTensor}}), {},
           keep<Constraint>({{"x has rank 1 or more, weight rank 2", DiagnosticId::kWrongRank},
                             {"the last size of x equals the last size of weight"},
                             {"bias is a vector as long as weight has rows", DiagnosticId::kShapeMismatch, 2}}),
           product_dtype, linear_shape, reference_linear, lower_linear, {numbers, linear_samples},
           {"torch.nn.functional.linear", "", ""}, {.native = blocked_linear});
    add_op(ops, "addmm", "beta c + alpha x @ y for matrices.",
           keep<OperandSpec>({{"c", tensor}, {"x", tensor}, {"y", tensor}}),
           keep<AttrSpec>({{"beta", AttrKind::kFloat, 1.0}, {"alpha", AttrKind::kFloat, 1.0}}),
           keep<Constraint>({{"x and y have rank 2", DiagnosticId::kWrongRank},
                             inner,
                             {"c broadcasts to the product", DiagnosticId::kShapeMismatch, 0}}),
           product_dtype, addmm_shape, reference_addmm, lower_addmm, {numbers, addmm_samples},
           {"torch.addmm", "", "Gemm"}, {.native = blocked_addmm});
    add_op(ops, "outer", "Every product of an element of x with one of y.", two, {},
           keep<Constraint>({{"x and y have rank 1", DiagnosticId::kWrongRank}}), rules::promote, outer_shape,
           reference_outer, lower_outer, {numbers, outer_samples}, {"torch.outer", "numpy.outer", ""});
    return ops;
}

}  // namespace flexor::ops
