// Where elements stand among others, how often they occur, and what overlaps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/families.h"
#include "ops/groups.h"
#include "ops/native.h"
#include "ops/reduction.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;

Expected<void> require_integers(Args args, std::size_t i) {
    const DType d = args[i].type.dtype;
    if (is_floating(d) || d == DType::kBool) return rules::refuse_dtype(args, i, "an integer dtype");
    return {};
}
Diagnostic negative(std::string_view what, I found) {
    return Diagnostic(DiagnosticId::kNegativeSize)
        .operand(std::string(what))
        .found(std::to_string(found))
        .expected("0 or more");
}
// Order of elements of one dtype; NaN is the greatest.
bool before(const Element& a, const Element& b) {
    if (!a.floating) return a.integer < b.integer;
    return a.real < b.real || (std::isnan(b.real) && !std::isnan(a.real));
}

// ---------------------------------------------------------------- searchsorted

Expected<DTypes> search_dtype(Args args, const Attrs&, types::Promotion promotion) {
    const DType d = rules::common_dtype(args, promotion);
    const bool scalar = args[1].strength == types::Strength::kScalar;
    if (promotion == types::Promotion::kTorch && !scalar && args[0].type.dtype != args[1].type.dtype)
        return rules::refuse_dtype(args, 1, std::string(dtype_name(args[0].type.dtype)) + ", the dtype of sorted");
    return DTypes{{d, d}, {DType::kI64}};
}
bool search_shape(ShapeContext& context, Results& results) {
    const TensorType& sorted = context.type(0);
    const TensorType& values = context.type(1);
    if (sorted.rank() == 0 || (sorted.rank() > 1 && sorted.rank() != values.rank())) return context.fail(1);
    for (int a = 0; sorted.rank() > 1 && a + 1 < sorted.rank(); ++a) {
        if (!context.require_eq(sorted.sizes[at(a)], values.sizes[at(a)], 2)) return false;
    }
    results.push_back(rules::fresh_result(values.sizes));
    return true;
}

// f(value, its place in the result, row of sorted elements as a start and a step)
template <class F>
void for_each_search(const ReferenceContext& c, F&& f) {
    const Tensor &sorted = c.inputs[0], &values = c.inputs[1], &out = c.outputs[0];
    for_each_index(out.sizes(), [&](const Index& index) {
        I row = 0;
        for (int a = 0; sorted.rank() > 1 && a + 1 < sorted.rank(); ++a) row += index[at(a)] * sorted.stride(a);
        f(values.rank() == 0 ? 0 : offset_of(values, index), offset_of(out, index), row);
    });
}
Expected<void> reference_search(ReferenceContext& c) {
    const Tensor &sorted = c.inputs[0], &values = c.inputs[1];
    const DType dtype = c.dtypes.operands[0];
    const bool right = c.attrs.flag("right");
    const I length = sorted.size(sorted.rank() - 1), step = sorted.stride(sorted.rank() - 1);
    for_each_search(c, [&](I value, I to, I row) {
        const Element wanted = load_as(values, value, dtype);
        I count = 0;
        while (count < length) {
            const Element next = load_as(sorted, row + count * step, dtype);
            if (right ? before(wanted, next) : !before(next, wanted)) break;
            ++count;
        }
        store_int(c.outputs[0], to, count);
    });
    return {};
}
Expected<void> native_search(ReferenceContext& c) {
    const Tensor &sorted = c.inputs[0], &values = c.inputs[1], &out = c.outputs[0];
    const DType dtype = c.dtypes.operands[0];
    const bool right = c.attrs.flag("right");
    const I length = sorted.size(sorted.rank() - 1), step = sorted.stride(sorted.rank() - 1);
    const auto search = [&](auto&& less_than_wanted) {
        I first = 0, count = length;
        while (count > 0) {
            const I half = count / 2;
            if (less_than_wanted(first + half)) {
                first += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        return first;
    };
    if (sorted.dtype() != dtype || values.dtype() != dtype) {
        for_each_search(c, [&](I value, I to, I row) {
            const Element wanted = load_as(values, value, dtype);
            store_int(out, to, search([&](I i) {
                          const Element next = load_as(sorted, row + i * step, dtype);
                          return right ? !before(wanted, next) : before(next, wanted);
                      }));
        });
        return {};
    }
    with_elements(dtype, [&](auto elements) {
        using E = decltype(elements);
        using Number = typename E::Number;
        const auto less = [](Number a, Number b) { return a < b || (b != b && a == a); };
        const auto find = [&](I value, I to, I row) {
            const Number wanted = E::load(values.data_as<const typename E::Stored>()[value]);
            const auto* line = sorted.data_as<const typename E::Stored>() + row;
            out.data_as<Unaligned<I>>()[to] = search([&](I i) {
                const Number next = E::load(line[i * step]);
                return right ? !less(wanted, next) : less(next, wanted);
            });
        };
        if (sorted.rank() == 1 && values.is_contiguous() && out.is_contiguous()) {
            parallel(c, values.numel(), 1 << 10, [&](I begin, I end) {
                for (I i = begin; i < end; ++i) find(i, i, 0);
            });
        } else {
            for_each_search(c, find);
        }
    });
    if (stopped(c)) return interrupted();
    return {};
}

// ---------------------------------------------------------------- bincount

Expected<DTypes> bincount_dtype(Args args, const Attrs&, types::Promotion promotion) {
    FLEXOR_TRY(require_integers(args, 0));
    DTypes dtypes{{args[0].type.dtype, DType::kF64}, {DType::kI64}};
    if (!args[1].present) return dtypes;
    const bool single = args[1].type.dtype == DType::kF32 && promotion == types::Promotion::kTorch;
    dtypes.operands[1] = dtypes.results[0] = single ? DType::kF32 : DType::kF64;
    return dtypes;
}
bool bincount_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() != 1) return context.fail(1);
    if (context.args()[1].present) {
        if (context.type(1).rank() != 1) return context.fail(1);
        if (!context.require_eq(context.type(1).sizes[0], context.type(0).sizes[0], 2)) return false;
    }
    const Dim least = context.attrs().integer("minlength");
    if (!context.require_le(0, least, 3)) return false;
    results.push_back(rules::fresh_result({context.fresh("bins", 0, types::kDimInfinity)}));
    return true;
}
Expected<std::vector<I>> bincount_sizes(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    I bins = c.attrs.integer("minlength").constant();
    for (I i = 0; i < x.size(0); ++i) {
        const I value = read_integer(x.dtype(), x.data(), i * x.stride(0));
        if (value < 0) return negative("x", value);
        if (value == std::numeric_limits<I>::max()) return Diagnostic(DiagnosticId::kSizeOverflow).operand("x");
        bins = std::max(bins, value + 1);
    }
    return std::vector<I>{bins};
}
Expected<void> reference_bincount(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &weights = c.inputs[1], &out = c.outputs[0];
    const bool counts = !weights.defined();
    const DType dtype = c.dtypes.operands[1];
    for (I bin = 0; bin < out.size(0); ++bin) store_int(out, bin * out.stride(0), 0);
    for (I i = 0; i < x.size(0); ++i) {
        const I bin = load_int(x, i * x.stride(0));
        if (bin < 0 || bin >= out.size(0)) continue;  // changed by another thread of the host
        const I to = bin * out.stride(0);
        if (counts) {
            store_int(out, to, load_int(out, to) + 1);
        } else {
            store_real(out, to, load_real(out, to) + load_as(weights, i * weights.stride(0), dtype).real);
        }
    }
    return {};
}

// ---------------------------------------------------------------- repeat_index

Expected<DTypes> repeat_dtype(Args args, const Attrs&, types::Promotion) {
    FLEXOR_TRY(require_integers(args, 0));
    return DTypes{{args[0].type.dtype}, {DType::kI64}};
}
bool repeat_interleave_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() != 1) return context.fail(1);
    results.push_back(rules::fresh_result({context.fresh("repeats", 0, types::kDimInfinity)}));
    return true;
}
Expected<std::vector<I>> repeat_sizes(ReferenceContext& c) {
    const Tensor& repeats = c.inputs[0];
    I sum = 0;
    for (I i = 0; i < repeats.size(0); ++i) {
        const I count = read_integer(repeats.dtype(), repeats.data(), i * repeats.stride(0));
        if (count < 0) return negative("repeats", count);
        if (__builtin_add_overflow(sum, count, &sum)) return Diagnostic(DiagnosticId::kSizeOverflow).operand("repeats");
    }
    return std::vector<I>{sum};
}
Expected<void> reference_repeat(ReferenceContext& c) {
    const Tensor& repeats = c.inputs[0];
    auto* to = c.outputs[0].data_as<Unaligned<I>>();
    I room = c.outputs[0].size(0);
    for (I i = 0; i < repeats.size(0); ++i) {
        const I count = std::min(room, read_integer(repeats.dtype(), repeats.data(), i * repeats.stride(0)));
        to = std::fill_n(to, count, Unaligned<I>{i});
        room -= count;
    }
    return {};
}

// ---------------------------------------------------------------- unique

Expected<DTypes> unique_dtype(Args args, const Attrs&, types::Promotion) {
    return DTypes{{args[0].type.dtype}, {args[0].type.dtype, DType::kI64, DType::kI64}};
}
bool unique_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const Dim groups = context.fresh("unique", 0, x.numel());
    results.push_back(rules::fresh_result({groups}));
    results.push_back(rules::fresh_result(x.sizes));
    results.push_back(rules::fresh_result({groups}));
    return true;
}
Expected<void> reference_unique(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const bool equal_nan = c.attrs.flag("equal_nan"), consecutive = c.attrs.flag("consecutive");
    struct Found {
        Element element;
        I place;
    };
    std::vector<Found> all;
    for_each_index(x.sizes(), [&](const Index& index) {
        all.push_back({load_as(x, offset_of(x, index), x.dtype()), static_cast<I>(all.size())});
    });
    if (!consecutive)
        std::ranges::stable_sort(all, [](const Found& a, const Found& b) { return before(a.element, b.element); });
    const auto same = [&](const Element& a, const Element& b) {
        if (!a.floating) return a.integer == b.integer;
        return a.real == b.real || (equal_nan && std::isnan(a.real) && std::isnan(b.real));
    };
    I group = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == 0 || !same(all[i - 1].element, all[i].element)) {
            ++group;
            store(c.outputs[0], group, all[i].element);
            store_int(c.outputs[2], group, 0);
        }
        store_int(c.outputs[2], group, load_int(c.outputs[2], group) + 1);
        store_int(c.outputs[1], all[i].place, group);
    }
    return {};
}

// ---------------------------------------------------------------- segment_reduce

Expected<DTypes> segment_dtype(Args args, const Attrs&, types::Promotion) {
    if (!is_floating(args[0].type.dtype)) return rules::refuse_dtype(args, 0, "a floating dtype");
    const DType lengths = args[1].type.dtype;
    if (lengths != DType::kI64 && lengths != DType::kI32) return rules::refuse_dtype(args, 1, "i64 or i32");
    return DTypes{{args[0].type.dtype, lengths}, {args[0].type.dtype}};
}
bool segment_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() < 1 || context.type(1).rank() != 1) return context.fail(1);
    const auto reduction = reduction_of(context.attrs().text("reduce"));
    if (!reduction || *reduction == Reduction::kNone) return context.fail(2);
    std::vector<Dim> sizes = context.type(0).sizes;
    sizes[0] = context.type(1).sizes[0];
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
Expected<void> reference_segments(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &lengths = c.inputs[1], &out = c.outputs[0];
    const Reduction reduction = *reduction_of(c.attrs.text("reduce"));
    const std::vector<I> columns(x.sizes().begin() + 1, x.sizes().end());
    constexpr double inf = std::numeric_limits<double>::infinity();
    const bool has_initial = c.attrs.has("initial");
    const double start = has_initial                     ? c.attrs.real("initial")
                         : reduction == Reduction::kProd ? 1
                         : reduction == Reduction::kMax  ? -inf
                         : reduction == Reduction::kMin  ? inf
                                                         : 0;
    I begin = 0;
    for (I segment = 0; segment < lengths.size(0); ++segment) {
        const I length = load_int(lengths, segment * lengths.stride(0));
        if (length < 0) return negative("lengths", length);
        if (length > x.size(0) - begin) return bad_index(begin + length, x.size(0) + 1);
        for_each_index(columns, [&](const Index& column) {
            I from = begin * x.stride(0), to = segment * out.stride(0);
            for (std::size_t a = 0; a < column.size(); ++a) {
                from += column[a] * x.stride(static_cast<int>(a) + 1);
                to += column[a] * out.stride(static_cast<int>(a) + 1);
            }
            double result = start;
            for (I i = 0; i < length; ++i) {
                const double next = load_real(x, from + i * x.stride(0));
                switch (reduction) {
                    case Reduction::kNone: break;
                    case Reduction::kSum:
                    case Reduction::kMean: result += next; break;
                    case Reduction::kProd: result *= next; break;
                    case Reduction::kMax: result = std::isnan(result) || result > next ? result : next; break;
                    case Reduction::kMin: result = std::isnan(result) || result < next ? result : next; break;
                }
            }
            if (reduction == Reduction::kMean) {
                // As torch: the mean of nothing is not a number unless it begins with one.
                if (length > 0) {
                    result /= static_cast<double>(length);
                } else if (!has_initial) {
                    result = std::numeric_limits<double>::quiet_NaN();
                }
            }
            store_real(out, to, result);
        });
        begin += length;
    }
    if (begin != x.size(0)) return bad_index(begin, x.size(0)).operand("lengths");
    return {};
}

// ---------------------------------------------------------------- nms

Expected<DTypes> nms_dtype(Args args, const Attrs&, types::Promotion) {
    for (std::size_t i = 0; i < 2; ++i) {
        const DType d = args[i].type.dtype;
        if (d != DType::kF32 && d != DType::kF64) return rules::refuse_dtype(args, i, "f32 or f64");
    }
    return DTypes{{args[0].type.dtype, args[1].type.dtype}, {DType::kI64}};
}
bool nms_shape(ShapeContext& context, Results& results) {
    const TensorType& boxes = context.type(0);
    const TensorType& scores = context.type(1);
    if (boxes.rank() != 2 || scores.rank() != 1) return context.fail(1);
    if (!context.require_eq(boxes.sizes[1], 4, 2) || !context.require_eq(scores.sizes[0], boxes.sizes[0], 3))
        return false;
    results.push_back(rules::fresh_result({context.fresh("kept", 0, boxes.sizes[0])}));
    return true;
}
Expected<void> reference_nms(ReferenceContext& c) {
    const Tensor &boxes = c.inputs[0], &scores = c.inputs[1];
    const bool single = boxes.dtype() == DType::kF32;
    const auto rounded = [&](double v) { return single ? static_cast<double>(static_cast<float>(v)) : v; };
    std::vector<I> order(at(boxes.size(0)));
    std::iota(order.begin(), order.end(), I{0});
    const auto score = [&](I i) { return real_element(load_real(scores, i * scores.stride(0))); };
    std::ranges::stable_sort(order, [&](I a, I b) { return before(score(b), score(a)); });
    const auto edge = [&](I box, I side) { return load_real(boxes, box * boxes.stride(0) + side * boxes.stride(1)); };
    const auto area = [&](I box) {
        return rounded(rounded(edge(box, 2) - edge(box, 0)) * rounded(edge(box, 3) - edge(box, 1)));
    };
    std::vector<I> kept;
    for (const I box : order) {
        const bool covered = std::ranges::any_of(kept, [&](I other) {
            const auto overlap = [&](I low, I high) {
                const double width =
                    rounded(std::min(edge(other, high), edge(box, high)) - std::max(edge(other, low), edge(box, low)));
                return std::max(0.0, width);
            };
            const double shared = rounded(overlap(0, 2) * overlap(1, 3));
            return rounded(shared / rounded(rounded(area(other) + area(box)) - shared)) > c.attrs.real("iou_threshold");
        });
        if (!covered) kept.push_back(box);
    }
    for (std::size_t i = 0; i < kept.size(); ++i) store_int(c.outputs[0], static_cast<I>(i), kept[i]);
    return {};
}

// ---------------------------------------------------------------- samples

using samples::Fill, samples::indices, samples::input, samples::none, samples::sample, samples::scalar, samples::typed;
std::vector<Sample> search_samples() {
    // What lies in order has one element a row.
    return {sample({input({1}), input({5})}),
            sample({input({1}), input({2, 17})}, {{"right", true}}),
            sample({input({3, 1}), input({3, 33})}),
            sample({input({0}), input({3})}),
            sample({input({1}), scalar(1, DType::kI64)}),
            sample({input({1}), input({0})})};
}
std::vector<Sample> bincount_samples() {
    return {sample({input({7}, Fill::kPositive), none()}),
            sample({input({33}, Fill::kPositive), input({33}, Fill::kPositive)}, {{"minlength", 9}}),
            sample({input({0}, Fill::kPositive), none()}, {{"minlength", 2}}),
            sample({input({1}, Fill::kPositive), none()})};
}
std::vector<Sample> repeat_interleave_samples() {
    return {sample({input({5}, Fill::kPositive)}), sample({input({0}, Fill::kPositive)}),
            sample({input({1}, Fill::kPositive)})};
}
std::vector<Sample> unique_samples() {
    return {sample({input({33})}),  sample({input({3, 5})}), sample({input({17})}, {{"consecutive", true}}),
            sample({input({0})}),   sample({input({1})}),    sample({input({})}),
            sample({input({2, 0})})};
}
std::vector<Sample> segment_samples() {
    std::vector<Sample> list;
    for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
        // Segments of no elements over no elements: lengths must sum up to the size of x.
        list.push_back(sample({input({0, 3}), indices({2}, 1)}, {{"reduce", reduce}, {"initial", 0.5}}));
        list.push_back(sample({input({0}), indices({0}, 1)}, {{"reduce", reduce}}));
    }
    return list;
}
std::vector<Sample> nms_samples() {
    return {sample({input({17, 4}), input({17})}), sample({input({0, 4}), input({0})}),
            sample({input({1, 4}), input({1})}, {{"iou_threshold", 0.1}})};
}

}  // namespace

std::vector<OpDef> search_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    constexpr std::span<const DType> integers = samples::kIntegerDTypes;
    static constexpr DType kBoxDTypes[] = {DType::kF32, DType::kF64};
    constexpr OperandKind tensor = OperandKind::kTensor;
    std::vector<OpDef> ops;
    add_op(
        ops, "searchsorted",
        "The places at which values can be put into rows that are in order: before equal ones, or with right behind "
        "them. NaN is the greatest.",
        keep<OperandSpec>({{"sorted", tensor}, {"values", tensor, true}}),
        keep<AttrSpec>({{"right", AttrKind::kBool, false}}),
        keep<Constraint>({{"sorted has rank 1, or that of values", DiagnosticId::kWrongRank, 0},
                          {"sorted and values have the same sizes but for the last", DiagnosticId::kShapeMismatch, 1}}),
        search_dtype, search_shape, reference_search, ExternLower{}, {all, search_samples},
        {"torch.searchsorted", "numpy.searchsorted", ""}, {.native = native_search});
    add_op(ops, "bincount", "How often each of 0, 1, ... occurs in x, or the sum of the weights where it does.",
           keep<OperandSpec>({{"x", tensor}, {"weights", OperandKind::kOptionalTensor}}),
           keep<AttrSpec>({{"minlength", AttrKind::kInt, 0}}),
           keep<Constraint>({{"x and weights have rank 1", DiagnosticId::kWrongRank},
                             {"weights have the size of x", DiagnosticId::kShapeMismatch, 1},
                             {"minlength is not negative", DiagnosticId::kNegativeSize}}),
           bincount_dtype, bincount_shape, reference_bincount, ExternLower{}, {integers, bincount_samples},
           {"torch.bincount", "numpy.bincount", ""}, {.data_sizes = bincount_sizes, .raises = true});
    add_op(ops, "repeat_index", "0 as often as the first element of repeats says, 1 as the second, and so on.",
           keep<OperandSpec>({{"repeats", tensor}}), {},
           keep<Constraint>({{"repeats has rank 1", DiagnosticId::kWrongRank, 0}}), repeat_dtype,
           repeat_interleave_shape, reference_repeat, ExternLower{}, {integers, repeat_interleave_samples},
           {"torch.repeat_interleave", "", ""}, {.data_sizes = repeat_sizes, .raises = true});
    add_op(
        ops, "unique",
        "The elements of x in order, each once; for each element of x its place among them; and how often each "
        "occurs. With consecutive, elements are in the order of x and only neighbours count as one. NaN are equal if "
        "equal_nan.",
        keep<OperandSpec>({{"x", tensor}}),
        keep<AttrSpec>({{"consecutive", AttrKind::kBool, false}, {"equal_nan", AttrKind::kBool, false}}), {},
        unique_dtype, unique_shape, reference_unique, ExternLower{}, {all, unique_samples},
        {"torch.unique", "numpy.unique", ""}, {.results = 3, .data_sizes = unique_sizes, .native = native_unique});
    add_op(ops, "segment_reduce",
           "The rows of x by segments of the given lengths, each reduced to one row: \"sum\", \"prod\", \"mean\", "
           "\"amax\" or \"amin\". initial is what a segment begins with.",
           keep<OperandSpec>({{"x", tensor}, {"lengths", tensor}}),
           keep<AttrSpec>({{"reduce", AttrKind::kString, {}}, {"initial", AttrKind::kOptionalFloat, {}}}),
           keep<Constraint>(
               {{"x has rank 1 or more, lengths rank 1", DiagnosticId::kWrongRank},
                {"reduce is \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\"", DiagnosticId::kBadAttribute}}),
           segment_dtype, segment_shape, reference_segments, ExternLower{}, {floats, segment_samples},
           {"torch.segment_reduce", "", ""}, {.raises = true});
    add_op(
        ops, "nms",
        "The boxes (x1, y1, x2, y2), by falling score, that no kept one before covers: their intersection over union "
        "is at most iou_threshold.",
        keep<OperandSpec>({{"boxes", tensor}, {"scores", tensor}}),
        keep<AttrSpec>({{"iou_threshold", AttrKind::kFloat, 0.5}}),
        keep<Constraint>({{"boxes have rank 2, scores rank 1", DiagnosticId::kWrongRank},
                          {"a box has four sides", DiagnosticId::kShapeMismatch, 0},
                          {"there is a score for each box", DiagnosticId::kShapeMismatch, 1}}),
        nms_dtype, nms_shape, reference_nms, ExternLower{}, {kBoxDTypes, nms_samples}, {"torchvision.ops.nms", "", ""},
        {.data_sizes = nms_sizes, .native = native_nms});
    return ops;
}

}  // namespace flexor::ops
