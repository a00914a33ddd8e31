// Ops that rename elements: views where strides allow it. Their types carry the geometry, and nothing runs.
#include <algorithm>

#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using types::DimList;
using types::Truth;
using I = std::int64_t;
using Results = std::vector<ShapeResult>;

ShapeResult view_result(std::vector<Dim> sizes, std::vector<Dim> strides, Dim offset = 0) {
    ShapeResult result;
    result.sizes = std::move(sizes);
    result.view_of = 0;
    result.strides = std::move(strides);
    result.offset = std::move(offset);
    return result;
}
// An index that may count from the end, as one in [0, n) or out of range as it was. Its sign may be unknown.
Dim from_end(const ShapeEnv& env, const Dim& index, const Dim& n) {
    if (env.le(0, index) == Truth::kTrue) return index;
    if (env.lt(index, 0) == Truth::kTrue) return index + n;
    return index - n * Dim::min(Dim::max(index, -1), 0);
}

// ---------------------------------------------------------------- reshape

constexpr int kSameCount = 1;
constexpr int kOneInferred = 2;
constexpr int kInferable = 3;
constexpr int kNotNegative = 4;
constexpr int kViewPossible = 5;

std::span<const Constraint> reshape_constraints() {
    static const auto constraints =
        keep<Constraint>({{"the new shape holds as many elements as x", DiagnosticId::kReshapeSizeMismatch, 0},
                          {"at most one size is -1", DiagnosticId::kBadAttribute},
                          {"x has elements or the sizes beside a -1 are not 0", DiagnosticId::kAmbiguousSize, 0},
                          rules::kSizesNotNegative,
                          {"the strides of x allow the view", DiagnosticId::kViewNotPossible, 0}});
    return constraints;
}

bool resolve_sizes(ShapeContext& context, const DimList& given, std::vector<Dim>& sizes) {
    const TensorType& x = context.type(0);
    int inferred = -1;
    Dim others = 1;
    for (std::size_t axis = 0; axis < given.size(); ++axis) {
        if (given[axis].is_constant(-1)) {
            if (inferred >= 0) return context.fail(kOneInferred);
            inferred = static_cast<int>(axis);
            continue;
        }
        if (!context.require_le(0, given[axis], kNotNegative)) return false;
        others = others * given[axis];
    }
    sizes.assign(given.begin(), given.end());
    if (inferred < 0) return context.require_eq(others, x.numel(), kSameCount);
    if (!context.require_lt(0, others + x.numel(), kInferable)) return false;
    if (!context.require_lt(0, others, kSameCount)) return false;
    sizes[at(inferred)] = context.env().simplify(Dim::floor_div(x.numel(), others));
    return context.require_eq(others * sizes[at(inferred)], x.numel(), kSameCount);
}

// torch's computeStride: the strides of a view of x with the new sizes, or false if there is none.
bool view_strides(ShapeContext& context, const TensorType& x, const std::vector<Dim>& sizes,
                  std::vector<Dim>& strides) {
    ShapeEnv& env = context.env();
    if (rules::is_row_major(env, x)) {
        strides = types::contiguous_strides(sizes);
        return true;
    }
    if (env.eq(x.numel(), 1) == Truth::kTrue) {
        strides = types::contiguous_strides(sizes);
        return true;
    }
    strides.assign(sizes.size(), Dim(1));
    int view = static_cast<int>(sizes.size()) - 1;
    Dim base = x.strides.back();
    Dim chunk = 1;       // elements of x since the last jump
    Dim view_chunk = 1;  // elements of the view since then
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
        chunk = chunk * x.sizes[at(axis)];
        if (axis > 0) {
            // The axis outside continues this chunk if its stride says so, or if it is no axis at all.
            const Dim& outer_stride = x.strides[at(axis - 1)];
            const Dim& outer_size = x.sizes[at(axis - 1)];
            if (env.eq(outer_size, 1) == Truth::kTrue || context.layout_eq(outer_stride, chunk * base) ||
                context.layout_eq(outer_size, 1)) {
                continue;
            }
        }
        while (view >= 0) {
            const bool full = env.eq(view_chunk, chunk) == Truth::kTrue || context.layout_le(chunk, view_chunk);
            if (full && env.eq(sizes[at(view)], 1) != Truth::kTrue) {
                if (!context.layout_eq(sizes[at(view)], 1)) break;
            }
            strides[at(view)] = view_chunk * base;
            view_chunk = view_chunk * sizes[at(view)];
            --view;
        }
        if (env.eq(view_chunk, chunk) != Truth::kTrue && !context.layout_eq(view_chunk, chunk)) return false;
        if (axis > 0) {
            base = x.strides[at(axis - 1)];
            chunk = 1;
            view_chunk = 1;
        }
    }
    return view < 0;
}

bool reshape_to(ShapeContext& context, const DimList& given, bool must_view, Results& results) {
    std::vector<Dim> sizes, strides;
    if (!resolve_sizes(context, given, sizes)) return false;
    if (view_strides(context, context.type(0), sizes, strides)) {
        results.push_back(view_result(std::move(sizes), std::move(strides)));
        return true;
    }
    if (must_view) return context.fail(kViewPossible);
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool reshape_shape(ShapeContext& context, Results& results) {
    return reshape_to(context, context.attrs().list("shape"), false, results);
}
bool view_shape(ShapeContext& context, Results& results) {
    return reshape_to(context, context.attrs().list("shape"), true, results);
}
constexpr int kFlattenAxes = 6;
bool flatten_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    if (x.rank() == 0) return reshape_to(context, {Dim(1)}, false, results);
    const int first = rules::normal_axis(context.attrs().integer("start_axis"), x.rank());
    const int last = rules::normal_axis(context.attrs().integer("end_axis"), x.rank());
    if (first < 0 || last < 0 || first > last) return context.fail(kFlattenAxes);
    DimList sizes(x.sizes.begin(), x.sizes.begin() + first);
    Dim merged = 1;
    for (int axis = first; axis <= last; ++axis) merged = merged * x.sizes[at(axis)];
    sizes.push_back(merged);
    sizes.insert(sizes.end(), x.sizes.begin() + last + 1, x.sizes.end());
    if (!reshape_to(context, sizes, false, results)) return false;
    results[0].is_operand = first == last && results[0].view_of >= 0;
    return true;
}
bool contiguous_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    Dim expected = 1;
    const bool proven = rules::is_row_major(context.env(), x);
    bool row_major = true;
    for (int axis = x.rank() - 1; axis >= 0 && row_major && !proven; --axis) {
        const Dim& size = x.sizes[at(axis)];
        if (context.env().eq(size, 1) == Truth::kTrue) continue;
        row_major = context.layout_eq(x.strides[at(axis)], expected) || context.layout_eq(size, 1);
        expected = expected * size;
    }
    results.push_back(row_major ? view_result(x.sizes, x.strides) : rules::fresh_result(x.sizes));
    results[0].is_operand = row_major;
    return true;
}

// ---------------------------------------------------------------- views of axes

constexpr int kMovedAxisInRange = 1;

bool permute_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const DimList& axes = context.attrs().list("axes");
    if (static_cast<int>(axes.size()) != x.rank()) return context.fail(2);
    std::vector<Dim> sizes, strides;
    std::vector<bool> used(axes.size(), false);
    for (const Dim& axis : axes) {
        const int a = rules::normal_axis(axis, x.rank());
        if (a < 0) return context.fail(kMovedAxisInRange);
        if (used[at(a)]) return context.fail(3);
        used[at(a)] = true;
        sizes.push_back(x.sizes[at(a)]);
        strides.push_back(x.strides[at(a)]);
    }
    results.push_back(view_result(std::move(sizes), std::move(strides)));
    return true;
}
bool transpose_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    std::vector<Dim> sizes = x.sizes, strides = x.strides;
    if (x.rank() > 0) {
        const int a = rules::normal_axis(context.attrs().integer("a"), x.rank());
        const int b = rules::normal_axis(context.attrs().integer("b"), x.rank());
        if (a < 0 || b < 0) return context.fail(kMovedAxisInRange);
        std::swap(sizes[at(a)], sizes[at(b)]);
        std::swap(strides[at(a)], strides[at(b)]);
    }
    results.push_back(view_result(std::move(sizes), std::move(strides)));
    return true;
}
bool expand_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const DimList& shape = context.attrs().list("shape");
    if (static_cast<int>(shape.size()) < x.rank()) return context.fail(2);
    ShapeEnv& env = context.env();
    const std::size_t skip = shape.size() - x.sizes.size();
    std::vector<Dim> sizes(shape.begin(), shape.end());
    std::vector<Dim> strides(shape.size(), Dim(0));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis < skip) {
            if (!context.require_le(0, shape[axis], 3)) return false;
            continue;
        }
        const Dim& size = x.sizes[axis - skip];
        const Dim& stride = x.strides[axis - skip];
        if (shape[axis].is_constant(-1) || env.eq(size, shape[axis]) == Truth::kTrue) {
            sizes[axis] = size;
            strides[axis] = stride;
        } else if (env.eq(size, 1) == Truth::kTrue) {
            if (!context.require_le(0, shape[axis], 3)) return false;
        } else if (env.eq(size, 1) == Truth::kFalse) {
            if (!context.require_eq(size, shape[axis], 1)) return false;
            strides[axis] = stride;
        } else if (context.decide_eq(size, shape[axis])) {
            strides[axis] = stride;
        } else if (!context.decide_eq(size, 1)) {
            // Either may come: the stride is 0 where the size is 1 (broadcast(size, 2) - size is 1 there, else 0).
            const Dim is_one = Dim::broadcast(size, 2) - size;
            if (!context.require_eq((size - shape[axis]) * (Dim(1) - is_one), 0, 1)) return false;
            strides[axis] = stride * (Dim(1) - is_one);
        }
    }
    results.push_back(view_result(std::move(sizes), std::move(strides)));
    return true;
}
bool squeeze_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    std::vector<bool> named(x.sizes.size(), !context.attrs().has("axes"));
    if (context.attrs().has("axes")) {
        for (const Dim& axis : context.attrs().list("axes")) {
            if (x.rank() == 0 && (axis.is_constant(0) || axis.is_constant(-1))) continue;
            const int a = rules::normal_axis(axis, x.rank());
            if (a < 0) return context.fail(kMovedAxisInRange);
            named[at(a)] = true;
        }
    }
    const bool strict = context.attrs().flag("strict");
    std::vector<Dim> sizes, strides;
    for (std::size_t axis = 0; axis < named.size(); ++axis) {
        if (named[axis]) {
            if (strict && context.attrs().has("axes")) {
                if (!context.require_eq(x.sizes[axis], 1, 2)) return false;
                continue;
            }
            if (context.settle_eq(x.sizes[axis], 1)) continue;
        }
        sizes.push_back(x.sizes[axis]);
        strides.push_back(x.strides[axis]);
    }
    results.push_back(view_result(std::move(sizes), std::move(strides)));
    return true;
}
bool unsqueeze_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank() + 1);
    if (axis < 0) return context.fail(kMovedAxisInRange);
    std::vector<Dim> sizes = x.sizes, strides = x.strides;
    const Dim stride = axis == x.rank() ? Dim(1) : x.sizes[at(axis)] * x.strides[at(axis)];
    sizes.insert(sizes.begin() + axis, Dim(1));
    strides.insert(strides.begin() + axis, stride);
    results.push_back(view_result(std::move(sizes), std::move(strides)));
    return true;
}

// ---------------------------------------------------------------- parts

bool slice_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const Attrs& attrs = context.attrs();
    const int axis = rules::normal_axis(attrs.integer("axis"), x.rank());
    if (axis < 0) return context.fail(kMovedAxisInRange);
    const Dim step = attrs.integer("step");
    if (!step.is_constant() || step.is_constant(0)) return context.fail(2);
    ShapeEnv& env = context.env();
    const Dim& n = x.sizes[at(axis)];
    const bool forward = step.constant() > 0;
    // Python's clamping: forwards to [0, n], backwards to [-1, n - 1].
    const Dim lo = forward ? Dim(0) : Dim(-1);
    const Dim hi = forward ? n : n - 1;
    const auto bound = [&](std::string_view name, const Dim& absent) {
        if (!attrs.has(name)) return absent;
        return env.simplify(Dim::max(Dim::min(from_end(env, attrs.integer(name), n), hi), lo));
    };
    const Dim start = bound("start", forward ? lo : hi);
    const Dim stop = bound("stop", forward ? hi : lo);
    const I stride = step.constant();
    Dim span = forward ? stop - start : start - stop;
    // n - min(n, c) in the form that x[:-c] has too.
    if (forward && stop == n && attrs.has("start")) {
        const Dim from = attrs.integer("start");
        if (from.is_constant() && from.constant() >= 0) span = Dim::max(n - from, 0);
    }
    const I magnitude = forward ? stride : -stride;
    const Dim length = Dim::max(Dim::floor_div(span + (magnitude - 1), magnitude), 0);
    std::vector<Dim> sizes = x.sizes, strides = x.strides;
    sizes[at(axis)] = env.simplify(length);
    strides[at(axis)] = strides[at(axis)] * step;
    // Backwards over nothing, start is -1: no element is read, but the pointer must stay inside.
    const Dim first = forward ? start : Dim::max(start, 0);
    results.push_back(view_result(std::move(sizes), std::move(strides), env.simplify(first * x.strides[at(axis)])));
    return true;
}
bool select_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(kMovedAxisInRange);
    const Dim index = context.attrs().integer("index");
    const Dim& n = x.sizes[at(axis)];
    if (!context.require_lt(index, n, 2) || !context.require_le(-n, index, 2)) return false;
    std::vector<Dim> sizes = x.sizes, strides = x.strides;
    const Dim offset = from_end(context.env(), index, n) * strides[at(axis)];
    sizes.erase(sizes.begin() + axis);
    strides.erase(strides.begin() + axis);
    results.push_back(view_result(std::move(sizes), std::move(strides), offset));
    return true;
}
// The axes a and b become one axis at the end, along both of them at once.
bool diagonal_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int a = rules::normal_axis(context.attrs().integer("a"), x.rank());
    const int b = rules::normal_axis(context.attrs().integer("b"), x.rank());
    if (a < 0 || b < 0) return context.fail(kMovedAxisInRange);
    if (a == b) return context.fail(2);
    const Dim offset = context.attrs().integer("offset");
    const Dim first_a = Dim::max(-offset, 0), first_b = Dim::max(offset, 0);
    const Dim length = Dim::max(Dim::min(x.sizes[at(a)] - first_a, x.sizes[at(b)] - first_b), 0);
    // Of nothing no element is read, but the pointer must stay inside.
    const Dim first = (first_a * x.strides[at(a)] + first_b * x.strides[at(b)]) * Dim::min(length, 1);
    std::vector<Dim> sizes = x.sizes, strides = x.strides;
    for (const int axis : {std::max(a, b), std::min(a, b)}) {
        sizes.erase(sizes.begin() + axis);
        strides.erase(strides.begin() + axis);
    }
    const ShapeEnv& env = context.env();
    sizes.push_back(env.simplify(length));
    strides.push_back(x.strides[at(a)] + x.strides[at(b)]);
    results.push_back(view_result(std::move(sizes), std::move(strides), env.simplify(first)));
    return true;
}
bool narrow_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(kMovedAxisInRange);
    const Dim length = context.attrs().integer("length");
    const Dim& n = x.sizes[at(axis)];
    const Dim start = from_end(context.env(), context.attrs().integer("start"), n);
    if (!context.require_le(0, length, 2) || !context.require_le(0, start, 3) ||
        !context.require_le(start + length, n, 3)) {
        return false;
    }
    std::vector<Dim> sizes = x.sizes;
    sizes[at(axis)] = length;
    results.push_back(view_result(std::move(sizes), x.strides, start * x.strides[at(axis)]));
    return true;
}
bool split_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(kMovedAxisInRange);
    Dim start = 0;
    for (const Dim& length : context.attrs().list("sizes")) {
        if (!context.require_le(0, length, 2)) return false;
        std::vector<Dim> sizes = x.sizes;
        sizes[at(axis)] = length;
        results.push_back(view_result(std::move(sizes), x.strides, start * x.strides[at(axis)]));
        start = start + length;
    }
    return context.require_eq(start, x.sizes[at(axis)], 3);
}

// ---------------------------------------------------------------- references

bool is_view(const ReferenceContext& c) { return c.outputs[0].storage() == c.inputs[0].storage(); }
Expected<void> reference_view(ReferenceContext& c) {
    if (!is_view(c)) copy_in_order(c.outputs[0], c.inputs[0]);
    return {};
}
// ---------------------------------------------------------------- samples

using samples::dims, samples::input, samples::sample;
std::vector<Sample> shape_samples() {
    return {sample({input({2, 3, 4})}, Attrs{{"shape", dims({6, 4})}}),
            sample({input({2, 3, 4})}, Attrs{{"shape", dims({2, -1})}}),
            sample({input({})}, Attrs{{"shape", dims({1, 1})}}),
            sample({input({33})}, Attrs{{"shape", dims({3, 11, 1})}}),
            sample({input({0, 3})}, Attrs{{"shape", dims({3, 0, 2})}}),
            sample({input({1})}, Attrs{{"shape", dims({})}})};
}
std::vector<Sample> flatten_samples() {
    return {sample({input({2, 3, 5})}), sample({input({})}), sample({input({0, 3})}),
            sample({input({2, 3, 17, 1})}, Attrs{{"start_axis", 1}, {"end_axis", 2}})};
}
std::vector<Sample> plain_samples() { return samples::unary(); }
std::vector<Sample> permute_samples() {
    return {sample({input({2, 3, 5})}, Attrs{{"axes", dims({2, 0, 1})}}),
            sample({input({1, 0})}, Attrs{{"axes", dims({-1, 0})}}), sample({input({})}, Attrs{{"axes", dims({})}})};
}
std::vector<Sample> transpose_samples() {
    return {sample({input({2, 3, 5})}, Attrs{{"a", 0}, {"b", -1}}),
            sample({input({17, 1})}, Attrs{{"a", 0}, {"b", 1}})};
}
std::vector<Sample> expand_samples() {
    return {sample({input({3, 1})}, Attrs{{"shape", dims({2, 3, 4})}}),
            sample({input({1})}, Attrs{{"shape", dims({0})}}),
            sample({input({1, 5})}, Attrs{{"shape", dims({33, -1})}})};
}
std::vector<Sample> squeeze_samples() {
    return {sample({input({1, 3, 1})}), sample({input({1, 3, 1})}, Attrs{{"axes", dims({0})}}),
            sample({input({2, 0, 1})}, Attrs{{"axes", dims({-1, 1})}})};
}
std::vector<Sample> unsqueeze_samples() {
    return {sample({input({2, 3})}, Attrs{{"axis", 0}}), sample({input({2, 3})}, Attrs{{"axis", -1}}),
            sample({input({})}, Attrs{{"axis", 0}}), sample({input({0, 17})}, Attrs{{"axis", 1}})};
}
std::vector<Sample> slice_samples() {
    return {sample({input({17, 3})}, Attrs{{"start", 2}, {"stop", 15}, {"step", 3}}),
            sample({input({2, 16})}, Attrs{{"axis", 1}, {"start", -5}}),
            sample({input({2, 16})}, Attrs{{"axis", -1}, {"stop", 100}}),
            sample({input({5})}, Attrs{{"start", 4}, {"stop", 2}}),
            sample({input({5})}, Attrs{{"step", -2}}),
            sample({input({33})}, Attrs{{"start", 30}, {"stop", -40}, {"step", -1}}),
            sample({input({0, 2})}, Attrs{{"start", 1}})};
}
std::vector<Sample> select_one_samples() {
    return {sample({input({3, 5})}, Attrs{{"axis", 0}, {"index", 2}}),
            sample({input({3, 5})}, Attrs{{"axis", -1}, {"index", -5}}),
            sample({input({1})}, Attrs{{"axis", 0}, {"index", 0}})};
}
std::vector<Sample> diagonal_samples() {
    return {sample({input({3, 5})}), sample({input({17, 2, 3})}, Attrs{{"offset", 1}, {"a", 0}, {"b", -1}}),
            sample({input({3, 2, 5})}, Attrs{{"offset", -1}, {"a", 2}, {"b", 0}}),
            sample({input({1, 3})}, Attrs{{"offset", 5}}), sample({input({0, 3})}, Attrs{{"offset", -1}})};
}
std::vector<Sample> narrow_samples() {
    return {sample({input({17, 2})}, Attrs{{"axis", 0}, {"start", 3}, {"length", 13}}),
            sample({input({5})}, Attrs{{"axis", 0}, {"start", 5}, {"length", 0}}),
            sample({input({2, 5})}, Attrs{{"axis", 1}, {"start", -2}, {"length", 2}})};
}
std::vector<Sample> split_samples() {
    return {sample({input({17, 2})}, Attrs{{"sizes", dims({3, 0, 14})}}),
            sample({input({2, 6})}, Attrs{{"sizes", dims({2, 2, 2})}, {"axis", -1}}),
            sample({input({0})}, Attrs{{"sizes", dims({0})}})};
}
}  // namespace

std::vector<OpDef> movement_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    const auto x = keep<OperandSpec>({{"x", OperandKind::kTensor}});
    const auto attr = [](std::initializer_list<AttrSpec> specs) { return keep<AttrSpec>(specs); };
    constexpr AttrKind integer = AttrKind::kInt;
    constexpr AttrKind maybe = AttrKind::kOptionalInt;
    constexpr AttrKind integers = AttrKind::kIntList;
    constexpr DiagnosticId bad_attr = DiagnosticId::kBadAttribute;

    std::vector<OpDef> ops;
    const auto view = [&](std::string_view name, std::string_view summary, std::span<const AttrSpec> attrs,
                          std::span<const Constraint> constraints, ShapeRule shape, std::vector<Sample> (*make)(),
                          Names names, Alias alias = Alias::kView, int results = 1) {
        add_op(ops, name, summary, x, attrs, constraints, rules::first, shape, reference_view, ViewLower{}, {all, make},
               names,
               {.alias = alias,
                .layout = alias == Alias::kView ? Layout::kView : Layout::kContiguous,
                .results = results});
    };
    view("reshape", "x with another shape, in row-major order; one size may be -1. A view if the strides allow it.",
         attr({{"shape", integers, {}}}), reshape_constraints(), reshape_shape, shape_samples,
         {"torch.reshape", "numpy.reshape", "Reshape"}, Alias::kViewIfStridesAllow);
    view("view", "x with another shape, in row-major order; one size may be -1. Raises if that is no view.",
         attr({{"shape", integers, {}}}), reshape_constraints(), view_shape, shape_samples,
         {"torch.Tensor.view", "", ""});
    {
        std::vector<Constraint> constraints(reshape_constraints().begin(), reshape_constraints().end());
        constraints.push_back(
            {"start_axis and end_axis lie within the rank of x, in this order", DiagnosticId::kAxisOutOfRange, 0});
        view("flatten", "The axes start_axis..end_axis of x merged into one.",
             attr({{"start_axis", integer, 0}, {"end_axis", integer, -1}}), keep(std::move(constraints)), flatten_shape,
             flatten_samples, {"torch.flatten", "", "Flatten"}, Alias::kViewIfStridesAllow);
    }
    view("contiguous", "x in row-major order: itself if it is, else a copy.", {}, {}, contiguous_shape, plain_samples,
         {"torch.Tensor.contiguous", "numpy.ascontiguousarray", ""}, Alias::kViewIfStridesAllow);
    view("permute", "x with its axes in another order.", attr({{"axes", integers, {}}}),
         keep<Constraint>(
             {rules::kAxisInRange, {"axes names every axis of x", DiagnosticId::kWrongRank, 0}, rules::kDistinctAxes}),
         permute_shape, permute_samples, {"torch.permute", "numpy.transpose", "Transpose"});
    view("transpose", "x with the axes a and b exchanged.", attr({{"a", integer, {}}, {"b", integer, {}}}),
         keep<Constraint>({rules::kAxisInRange}), transpose_shape, transpose_samples,
         {"torch.transpose", "numpy.swapaxes", ""});
    view("expand", "x with axes of size 1 repeated and axes added in front; -1 keeps a size.",
         attr({{"shape", integers, {}}}),
         keep<Constraint>({{"a size of x is 1 or equal to the new one", DiagnosticId::kShapeMismatch, 0},
                           {"the new shape has at least the rank of x", DiagnosticId::kWrongRank, 0},
                           rules::kSizesNotNegative}),
         expand_shape, expand_samples, {"torch.Tensor.expand", "numpy.broadcast_to", "Expand"});
    view("squeeze", "x without the named axes (none: all) whose size is 1; with strict, the others raise.",
         attr({{"axes", AttrKind::kOptionalIntList, {}}, {"strict", AttrKind::kBool, false}}),
         keep<Constraint>({rules::kAxisInRange, {"the axis has size 1", DiagnosticId::kShapeMismatch, 0}}),
         squeeze_shape, squeeze_samples, {"torch.squeeze", "numpy.squeeze", "Squeeze"});
    view("unsqueeze", "x with an axis of size 1 inserted.", attr({{"axis", integer, {}}}),
         keep<Constraint>({rules::kAxisInRange}), unsqueeze_shape, unsqueeze_samples,
         {"torch.unsqueeze", "numpy.expand_dims", "Unsqueeze"});
    view("slice", "x[start:stop:step] along an axis, with Python's clamping; a negative step runs backwards.",
         attr({{"axis", integer, 0}, {"start", maybe, {}}, {"stop", maybe, {}}, {"step", integer, 1}}),
         keep<Constraint>({rules::kAxisInRange, {"step is a constant other than 0", bad_attr}}), slice_shape,
         slice_samples, {"", "", "Slice"});
    view("select", "x[index] along an axis, which goes; a negative index counts from the end.",
         attr({{"axis", integer, 0}, {"index", integer, {}}}),
         keep<Constraint>(
             {rules::kAxisInRange, {"the index lies within the axis", DiagnosticId::kElementIndexOutOfRange, 0}}),
         select_shape, select_one_samples, {"torch.select", "", ""});
    view("diagonal", "The elements of x whose index along b is offset more than along a, as the last axis.",
         attr({{"offset", integer, 0}, {"a", integer, 0}, {"b", integer, 1}}),
         keep<Constraint>({rules::kAxisInRange, {"a and b are two axes", DiagnosticId::kDuplicateAxis, 0}}),
         diagonal_shape, diagonal_samples, {"torch.diagonal", "numpy.diagonal", ""});
    view("narrow", "length elements of x from start along an axis.",
         attr({{"axis", integer, {}}, {"start", integer, {}}, {"length", integer, {}}}),
         keep<Constraint>({rules::kAxisInRange,
                           {"length is not negative", DiagnosticId::kNegativeSize},
                           {"start and start + length lie within the axis", DiagnosticId::kElementIndexOutOfRange, 0}}),
         narrow_shape, narrow_samples, {"torch.narrow", "", ""});
    view("split", "x cut along an axis into pieces of the given sizes.",
         attr({{"sizes", integers, {}}, {"axis", integer, 0}}),
         keep<Constraint>({rules::kAxisInRange,
                           rules::kSizesNotNegative,
                           {"the sizes sum to the size of the axis", DiagnosticId::kShapeMismatch, 0}}),
         split_shape, split_samples, {"torch.split", "", "Split"}, Alias::kView, -1);

    return ops;
}

}  // namespace flexor::ops
