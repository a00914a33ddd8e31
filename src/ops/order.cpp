// Running sums, products and extremes, and elements by their order.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/families.h"
#include "ops/ordering.h"
#include "ops/rules.h"
#include "ops/running.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;

// ---------------------------------------------------------------- rules

// Integers and bools are summed as i64.
Expected<DTypes> running_dtype(Args args, const Attrs& attrs, types::Promotion) {
    const DType d = args[0].type.dtype;
    const DType result = attrs.has("dtype") ? attrs.dtype("dtype") : is_floating(d) ? d : DType::kI64;
    return DTypes{{result}, {result}};
}
Expected<DTypes> sorted_dtype(Args args, const Attrs&, types::Promotion) {
    const DType d = args[0].type.dtype;
    return DTypes{{d}, {d, DType::kI64}};
}
Expected<DTypes> argsort_dtype(Args args, const Attrs&, types::Promotion) {
    return DTypes{{args[0].type.dtype}, {DType::kI64}};
}

// A tensor of rank 0 counts as one of rank 1 with one element.
int axis_of(const Attrs& attrs, int rank) { return rules::normal_axis(attrs.integer("axis"), std::max(rank, 1)); }

template <int results>
bool along_axis_shape(ShapeContext& context, Results& out) {
    if (axis_of(context.attrs(), context.type(0).rank()) < 0) return context.fail(1);
    for (int i = 0; i < results; ++i) out.push_back(rules::fresh_result(context.type(0).sizes));
    return true;
}
bool topk_shape(ShapeContext& context, Results& out) {
    const TensorType& x = context.type(0);
    const int axis = axis_of(context.attrs(), x.rank());
    if (axis < 0) return context.fail(1);
    const Dim k = context.attrs().integer("k");
    const Dim size = x.rank() == 0 ? Dim(1) : x.sizes[at(axis)];
    if (!context.require_le(0, k, 2) || !context.require_le(k, size, 2)) return false;
    std::vector<Dim> sizes = x.sizes;
    if (x.rank() > 0) sizes[at(axis)] = k;
    for (int i = 0; i < 2; ++i) out.push_back(rules::fresh_result(sizes));
    return true;
}

// ---------------------------------------------------------------- references

// Calls f(start) for every line of a tensor along an axis, with the index of its first element.
template <class F>
void for_each_line(const Tensor& x, int axis, F&& f) {
    std::vector<I> sizes(x.sizes().begin(), x.sizes().end());
    if (!sizes.empty()) sizes[at(axis)] = std::min<I>(sizes[at(axis)], 1);
    for_each_index(sizes, f);
}

template <class Combine>
Expected<void> reference_running(ReferenceContext& c, Combine combine) {
    const Tensor& x = c.inputs[0];
    const Tensor& out = c.outputs[0];
    const int axis = axis_of(c.attrs, x.rank());
    const I count = x.rank() == 0 ? 1 : x.size(axis);
    for_each_line(x, axis, [&](const Index& start) {
        const I from = offset_of(x, start);
        const I to = offset_of(out, start);
        Element running;
        for (I i = 0; i < count; ++i) {
            const I step = x.rank() == 0 ? 0 : i;
            const Element next = load_as(x, from + step * (x.rank() == 0 ? 0 : x.stride(axis)), c.dtypes.operands[0]);
            running = i == 0 ? next : combine(running, next);
            store(out, to + step * (x.rank() == 0 ? 0 : out.stride(axis)), running);
        }
    });
    return {};
}
I wrapped(I a, I b, bool product) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return static_cast<I>(product ? x * y : x + y);
}
Expected<void> reference_cumsum(ReferenceContext& c) {
    return reference_running(c, [](const Element& a, const Element& b) {
        return a.floating ? real_element(a.real + b.real) : int_element(wrapped(a.integer, b.integer, false));
    });
}
Expected<void> reference_cumprod(ReferenceContext& c) {
    return reference_running(c, [](const Element& a, const Element& b) {
        return a.floating ? real_element(a.real * b.real) : int_element(wrapped(a.integer, b.integer, true));
    });
}

Expected<void> reference_logcumsumexp(ReferenceContext& c) {
    return reference_running(c, [](const Element& a, const Element& b) {
        if (a.real == b.real && std::isinf(a.real)) return a;
        return real_element(std::fmax(a.real, b.real) + std::log1p(std::exp(-std::fabs(a.real - b.real))));
    });
}

// Running extremes: the place is that of the last element which equals the extreme; a NaN stays.
template <bool greatest>
Expected<void> reference_extremes(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const int axis = axis_of(c.attrs, x.rank());
    const I count = x.rank() == 0 ? 1 : x.size(axis);
    for_each_line(x, axis, [&](const Index& start) {
        I best = 0;
        Index place = start;
        for (I i = 0; i < count; ++i) {
            if (x.rank() > 0) place[at(axis)] = best;
            const Element extreme = load_as(x, offset_of(x, place), x.dtype());
            if (x.rank() > 0) place[at(axis)] = i;
            const Element next = load_as(x, offset_of(x, place), x.dtype());
            const double a = extreme.as_real(), b = next.as_real();
            const bool better = extreme.floating
                                    ? (greatest ? b >= a : b <= a)
                                    : (greatest ? next.integer >= extreme.integer : next.integer <= extreme.integer);
            if (b != b || (a == a && better)) best = i;
            Index from = place;
            if (x.rank() > 0) from[at(axis)] = best;
            copy_element(c.outputs[0], offset_of(c.outputs[0], place), x, offset_of(x, from));
            store_int(c.outputs[1], offset_of(c.outputs[1], place), best);
        }
    });
    return {};
}

// The places of a line's elements in order: equal ones keep theirs, NaN counts as the greatest.
std::vector<I> order_of_line(const Tensor& x, I start, I stride, I count, bool descending) {
    std::vector<I> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), I{0});
    const auto sort = [&](const auto& value) {
        std::ranges::stable_sort(order, [&](I a, I b) {
            const auto left = value(descending ? b : a);
            const auto right = value(descending ? a : b);
            return left < right || (right != right && left == left);
        });
    };
    if (is_floating(x.dtype())) {
        sort([&](I i) { return load_real(x, start + i * stride); });
    } else {
        sort([&](I i) { return load_int(x, start + i * stride); });
    }
    return order;
}

// Results: values (if `values`), then places, of the first elements of every line in order.
Expected<void> reference_ordered(ReferenceContext& c, bool values, bool descending, I count) {
    const Tensor& x = c.inputs[0];
    const Tensor& places = c.outputs[values ? 1 : 0];
    const int axis = axis_of(c.attrs, x.rank());
    const I stride = x.rank() == 0 ? 0 : x.stride(axis);
    for_each_line(x, axis, [&](const Index& start) {
        const I from = offset_of(x, start);
        const std::vector<I> order = order_of_line(x, from, stride, x.rank() == 0 ? 1 : x.size(axis), descending);
        for (I i = 0; i < count; ++i) {
            Index target = start;
            if (x.rank() > 0) target[at(axis)] = i;
            const I place = order[static_cast<std::size_t>(i)];
            if (values) copy_element(c.outputs[0], offset_of(c.outputs[0], target), x, from + place * stride);
            store_int(places, offset_of(places, target), place);
        }
    });
    return {};
}
I line_length(const ReferenceContext& c) {
    const int axis = axis_of(c.attrs, c.inputs[0].rank());
    return c.inputs[0].rank() == 0 ? 1 : c.inputs[0].size(axis);
}
Expected<void> reference_sort(ReferenceContext& c) {
    return reference_ordered(c, true, c.attrs.flag("descending"), line_length(c));
}
Expected<void> reference_argsort(ReferenceContext& c) {
    return reference_ordered(c, false, c.attrs.flag("descending"), line_length(c));
}
Expected<void> reference_topk(ReferenceContext& c) {
    return reference_ordered(c, true, c.attrs.flag("largest"), c.attrs.integer("k").constant());
}

// ---------------------------------------------------------------- native kernels

Expected<void> native_sort(ReferenceContext& c) {
    return order_lines(c, axis_of(c.attrs, c.inputs[0].rank()), c.attrs.flag("descending"), line_length(c), false);
}
Expected<void> native_argsort(ReferenceContext& c) {
    return order_lines(c, axis_of(c.attrs, c.inputs[0].rank()), c.attrs.flag("descending"), line_length(c), true);
}
Expected<void> native_topk(ReferenceContext& c) {
    return order_lines(c, axis_of(c.attrs, c.inputs[0].rank()), c.attrs.flag("largest"),
                       c.attrs.integer("k").constant(), false);
}

// ---------------------------------------------------------------- samples

using samples::input, samples::sample;
std::vector<Sample> along_axis_samples() {
    return {sample({input({5})}),     sample({input({4, 3})}, {{"axis", 0}}),
            sample({input({2, 33})}), sample({input({3, 1})}, {{"axis", -2}}),
            sample({input({0})}),     sample({input({2, 0})}, {{"axis", 1}}),
            sample({input({})})};
}
std::vector<Sample> topk_samples() {
    return {sample({input({5})}, {{"k", 2}}),
            sample({input({4, 3})}, {{"k", 4}, {"axis", 0}}),
            sample({input({2, 33})}, {{"k", 5}, {"largest", false}}),
            sample({input({3, 1})}, {{"k", 1}}),
            sample({input({3, 2})}, {{"k", 0}}),
            sample({input({0})}, {{"k", 0}})};
}

}  // namespace

std::vector<OpDef> order_ops() {
    std::vector<OpDef> ops;
    const std::span<const DType> all = samples::kAllDTypes;
    const std::span<const DType> numbers = samples::kNumberDTypes;
    const auto x = keep<OperandSpec>({{"x"}});
    const AttrSpec axis{"axis", AttrKind::kInt, -1};
    const AttrSpec descending{"descending", AttrKind::kBool, false};
    const Constraint in_rank{"axis lies in the rank of x", DiagnosticId::kAxisOutOfRange, 0};
    const auto one = keep<Constraint>({in_rank});
    const auto running = keep<AttrSpec>({axis, {"dtype", AttrKind::kOptionalDType, {}}});
    add_op(ops, "cumsum", "The sums of the first elements along an axis; integers are summed as i64.", x, running, one,
           running_dtype, along_axis_shape<1>, reference_cumsum, ExternLower{}, {numbers, along_axis_samples},
           {"torch.cumsum", "numpy.cumsum", "CumSum"}, {.native = native_cumsum});
    add_op(ops, "cumprod", "The products of the first elements along an axis; integers are multiplied as i64.", x,
           running, one, running_dtype, along_axis_shape<1>, reference_cumprod, ExternLower{},
           {numbers, along_axis_samples}, {"torch.cumprod", "numpy.cumprod", ""}, {.native = native_cumprod});
    const auto along = keep<AttrSpec>({axis});
    add_op(ops, "logcumsumexp", "The logarithms of the sums of the first elements' exponentials along an axis.", x,
           along, one, rules::same_float, along_axis_shape<1>, reference_logcumsumexp, ExternLower{},
           {samples::kFloatDTypes, along_axis_samples}, {"torch.logcumsumexp", "", ""});
    add_op(ops, "cummax", "The greatest of the first elements along an axis, and the last place it has; NaN stays.", x,
           along, one, sorted_dtype, along_axis_shape<2>, reference_extremes<true>, ExternLower{},
           {all, along_axis_samples}, {"torch.cummax", "", ""}, {.results = 2, .native = native_cummax});
    add_op(ops, "cummin", "The least of the first elements along an axis, and the last place it has; NaN stays.", x,
           along, one, sorted_dtype, along_axis_shape<2>, reference_extremes<false>, ExternLower{},
           {all, along_axis_samples}, {"torch.cummin", "", ""}, {.results = 2, .native = native_cummin});
    const auto ordered = keep<AttrSpec>({axis, descending});
    add_op(ops, "sort",
           "The elements along an axis in order, and the places they had. Equal ones keep theirs; NaN is the greatest.",
           x, ordered, one, sorted_dtype, along_axis_shape<2>, reference_sort, ExternLower{}, {all, along_axis_samples},
           {"torch.sort", "", ""}, {.results = 2, .native = native_sort});
    add_op(ops, "argsort", "The places of the elements along an axis in their order, as sort has them.", x, ordered,
           one, argsort_dtype, along_axis_shape<1>, reference_argsort, ExternLower{}, {all, along_axis_samples},
           {"torch.argsort", "numpy.argsort", ""}, {.native = native_argsort});
    add_op(ops, "topk", "The k greatest (or least) elements along an axis in order, and their places.", x,
           keep<AttrSpec>({{"k", AttrKind::kInt}, axis, {"largest", AttrKind::kBool, true}}),
           keep<Constraint>({in_rank, {"k lies in 0..size of the axis", DiagnosticId::kShapeMismatch, 0}}),
           sorted_dtype, topk_shape, reference_topk, ExternLower{}, {numbers, topk_samples}, {"torch.topk", "", "TopK"},
           {.results = 2, .native = native_topk});
    return ops;
}

}  // namespace flexor::ops
