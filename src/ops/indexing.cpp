// Elements chosen by index tensors or by position.
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

using I = std::int64_t;
using loopir::NodeId;
using S = loopir::ScalarOp;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;
using types::DimList;

// ---------------------------------------------------------------- dtype rules

Expected<void> check_index(Args args, std::size_t i) {
    const DType d = args[i].type.dtype;
    if (d != DType::kI64 && d != DType::kI32) return rules::refuse_dtype(args, i, "i64 or i32");
    return {};
}
template <std::size_t data, std::size_t index>
Expected<DTypes> taken_dtype(Args args, const Attrs&, types::Promotion) {
    FLEXOR_TRY(check_index(args, index));
    DTypes dtypes;
    for (const ArgType& arg : args) dtypes.operands.push_back(arg.type.dtype);
    dtypes.results.push_back(args[data].type.dtype);
    return dtypes;
}
Expected<DTypes> bag_dtype(Args args, const Attrs& attrs, types::Promotion promotion) {
    const std::size_t table = args.size() - 1;
    if (!is_floating(args[table].type.dtype)) return rules::refuse_dtype(args, table, "a floating dtype");
    for (std::size_t i = 1; i < table; ++i) FLEXOR_TRY(check_index(args, i));
    if (args.size() == 2) return taken_dtype<1, 0>(args, attrs, promotion);
    return taken_dtype<2, 0>(args, attrs, promotion);
}
Expected<DTypes> masked_dtype(Args args, const Attrs&, types::Promotion promotion) {
    const DType d = args[0].type.dtype;
    if (args[1].type.dtype != DType::kBool) return rules::refuse_dtype(args, 1, "bool");
    if (is_floating(args[2].type.dtype) && !is_floating(d)) {
        return rules::refuse_dtype(args, 2, "a value that " + std::string(dtype_name(d)) + " can hold");
    }
    DTypes dtypes{{d, DType::kBool, d}, {d}};
    rules::bound_integers(args, promotion, dtypes);
    return dtypes;
}

// ---------------------------------------------------------------- shape rules

bool gather_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& index = context.type(1);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), std::max(x.rank(), 1));
    if (axis < 0) return context.fail(1);
    // As in torch: a tensor of rank 0 counts as one of rank 1, and an index without elements has any shape.
    const bool same_rank = std::max(index.rank(), 1) == std::max(x.rank(), 1);
    if (!same_rank && !context.require_eq(index.numel(), 0, 2)) return false;
    const Dim any = Dim::min(index.numel(), 1);
    for (int a = 0; a < x.rank() && same_rank; ++a) {
        if (a == axis) continue;
        const Dim& size = index.sizes[at(a)];
        const bool fits = context.env().le(size, x.sizes[at(a)]) == types::Truth::kTrue;
        if (!fits && !context.require_le(context.env().simplify(any * size), x.sizes[at(a)], 3)) return false;
    }
    results.push_back(rules::fresh_result(index.sizes));
    return true;
}
bool index_select_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& index = context.type(1);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(1);
    if (index.rank() > 1) return context.fail(2);
    std::vector<Dim> sizes = x.sizes;
    sizes[at(axis)] = index.rank() == 0 ? Dim(1) : index.sizes[0];
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool take_shape(ShapeContext& context, Results& results) {
    const TensorType& x = context.type(0);
    const TensorType& index = context.type(1);
    const int axis = rules::normal_axis(context.attrs().integer("axis"), x.rank());
    if (axis < 0) return context.fail(1);
    std::vector<Dim> sizes(x.sizes.begin(), x.sizes.begin() + axis);
    sizes.insert(sizes.end(), index.sizes.begin(), index.sizes.end());
    sizes.insert(sizes.end(), x.sizes.begin() + axis + 1, x.sizes.end());
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool embedding_shape(ShapeContext& context, Results& results) {
    if (context.type(1).rank() != 2) return context.fail(1);
    std::vector<Dim> sizes = context.type(0).sizes;
    sizes.push_back(context.type(1).sizes[1]);
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}
bool known_mode(const Attrs& attrs) {
    const std::string& mode = attrs.text("mode");
    return mode == "sum" || mode == "mean" || mode == "max";
}
bool bag_shape(ShapeContext& context, Results& results) {
    const TensorType& ids = context.type(0);
    if (ids.rank() != 2 || context.type(1).rank() != 2) return context.fail(1);
    if (!known_mode(context.attrs())) return context.fail(2);
    if (context.attrs().text("mode") == "max" && !context.require_lt(0, ids.sizes[1], 3)) return false;
    results.push_back(rules::fresh_result({ids.sizes[0], context.type(1).sizes[1]}));
    return true;
}
bool offsets_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() != 1 || context.type(1).rank() != 1 || context.type(2).rank() != 2) {
        return context.fail(1);
    }
    if (!known_mode(context.attrs())) return context.fail(2);
    results.push_back(rules::fresh_result({context.type(1).sizes[0], context.type(2).sizes[1]}));
    return true;
}
bool triangle_shape(ShapeContext& context, Results& results) {
    if (context.type(0).rank() < 2) return context.fail(1);
    return rules::same_shape(context, results);
}
bool masked_shape(ShapeContext& context, Results& results) {
    if (context.type(2).rank() != 0) return context.fail(2);
    std::vector<Dim> sizes = context.type(0).sizes;
    if (!rules::broadcast_into(context, sizes, context.type(1).sizes, 1)) return false;
    results.push_back(rules::fresh_result(std::move(sizes)));
    return true;
}

// ---------------------------------------------------------------- lowering

IndexTerm along(int axis) { return {IndexTerm::Kind::kAxis, axis, 0, 0, false}; }
IndexTerm gathered(NodeId node, bool wrap) { return {IndexTerm::Kind::kNode, 0, 0, node, wrap}; }

NodeId lower_gather(IndexBuilder& b, const Attrs& attrs) {
    const int rank = b.type(0).rank();
    const int axis = rules::normal_axis(attrs.integer("axis"), std::max(rank, 1));
    std::vector<IndexTerm> place;
    for (int a = 0; a < b.type(1).rank(); ++a) place.push_back(along(a));
    const NodeId index = b.load(1, place);
    place.resize(at(std::max(rank, 1)), {IndexTerm::Kind::kConstant, 0, 0, 0, false});
    place[at(axis)] = gathered(index, attrs.flag("wrap"));
    return b.load(0, place);
}
NodeId lower_index_select(IndexBuilder& b, const Attrs& attrs) {
    const int rank = b.type(0).rank();
    const int axis = rules::normal_axis(attrs.integer("axis"), rank);
    std::vector<IndexTerm> place;
    if (b.type(1).rank() == 1) place.push_back(along(axis));
    const NodeId index = b.load(1, place);
    place.clear();
    for (int a = 0; a < rank; ++a) place.push_back(a == axis ? gathered(index, attrs.flag("wrap")) : along(a));
    return b.load(0, place);
}
NodeId lower_take(IndexBuilder& b, const Attrs& attrs) {
    const int rank = b.type(0).rank();
    const int axis = rules::normal_axis(attrs.integer("axis"), rank);
    const int depth = b.type(1).rank();
    std::vector<IndexTerm> place;
    for (int a = 0; a < depth; ++a) place.push_back(along(axis + a));
    const NodeId index = b.load(1, place);
    place.clear();
    for (int a = 0; a < rank; ++a) {
        place.push_back(a == axis ? gathered(index, attrs.flag("wrap")) : along(a < axis ? a : a + depth - 1));
    }
    return b.load(0, place);
}
NodeId lower_embedding(IndexBuilder& b, const Attrs& attrs) {
    const int depth = b.type(0).rank();
    std::vector<IndexTerm> place;
    for (int a = 0; a < depth; ++a) place.push_back(along(a));
    const NodeId index = b.load(0, place);
    const IndexTerm row[] = {gathered(index, attrs.flag("wrap")), along(depth)};
    return b.load(1, row);
}
template <bool upper>
NodeId lower_triangle(IndexBuilder& b, const Attrs& attrs) {
    const int rank = b.type(0).rank();
    loopir::BodyBuilder& body = b.body();
    const NodeId difference = body.binary(S::kSub, b.axis_index(rank - 1), b.axis_index(rank - 2));
    const NodeId inside = body.binary(upper ? S::kGe : S::kLe, difference, b.dim(attrs.integer("diagonal")));
    std::vector<IndexTerm> place;
    for (int a = 0; a < rank; ++a) place.push_back(along(a));
    return b.load(0, place, inside);
}
NodeId lower_masked_fill(loopir::BodyBuilder& b, std::span<const NodeId> args, const Attrs&) {
    return b.select(args[1], args[2], args[0]);
}
std::vector<GraphValue> lower_bag(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    const std::string& mode = attrs.text("mode");
    const GraphValue rows = g.op("embedding", {args[0], args[1]}, Attrs{{"wrap", attrs.flag("wrap")}});
    const Attrs axis{{"axes", DimList{1}}};
    if (mode == "max") return {g.op("reduce_max", {rows}, axis)};
    if (mode == "sum") return {g.op("reduce_sum", {rows}, axis)};
    // A bag without elements is 0, as in torch.
    const GraphValue sum = g.op("reduce_sum", {cast_to(g, rows, compute_dtype(g.result_dtype()))}, axis);
    const GraphValue count = g.dim(Dim::max(g.type(args[0]).type.sizes[1], 1));
    return {cast_to(g, g.op("div", {sum, count}), g.result_dtype())};
}

// ---------------------------------------------------------------- references

// Result[index] = data[source(index)]; `given` is the index tensor's element for it, which goes to axis `axis` of
// source.
template <class F>
Expected<void> reference_taken(ReferenceContext& c, const Tensor& data, int axis, F&& place) {
    const bool wrap = c.attrs.flag("wrap");
    std::optional<Diagnostic> error;
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        Index source;
        const I given = place(index, source);
        const I size = data.rank() == 0 ? 1 : data.size(axis);
        const I i = checked_index(given, size, wrap);
        if (i < 0) {
            if (!error) error = bad_index(given, size);
            return;
        }
        if (data.rank() > 0) source[at(axis)] = i;
        copy_element(c.outputs[0], offset_of(c.outputs[0], index), data, offset_of(data, source));
    });
    if (error) return *std::move(error);
    return {};
}
Expected<void> reference_gather(ReferenceContext& c) {
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(c.inputs[0].rank(), 1));
    return reference_taken(c, c.inputs[0], axis, [&](const Index& index, Index& source) {
        source = index;
        source.resize(at(std::max(c.inputs[0].rank(), 1)));
        return load_int(c.inputs[1], offset_of(c.inputs[1], index));
    });
}
Expected<void> reference_index_select(ReferenceContext& c) {
    const int axis = rules::normal_axis(c.attrs.integer("axis"), c.inputs[0].rank());
    return reference_taken(c, c.inputs[0], axis, [&](const Index& index, Index& source) {
        source = index;
        return load_int(c.inputs[1], c.inputs[1].rank() == 0 ? 0 : index[at(axis)] * c.inputs[1].stride(0));
    });
}
Expected<void> reference_take(ReferenceContext& c) {
    const int axis = rules::normal_axis(c.attrs.integer("axis"), c.inputs[0].rank());
    const int depth = c.inputs[1].rank();
    return reference_taken(c, c.inputs[0], axis, [&](const Index& index, Index& source) {
        const Index given(index.begin() + axis, index.begin() + axis + depth);
        source.assign(index.begin(), index.begin() + axis);
        source.push_back(0);
        source.insert(source.end(), index.begin() + axis + depth, index.end());
        return load_int(c.inputs[1], offset_of(c.inputs[1], given));
    });
}
Expected<void> reference_embedding(ReferenceContext& c) {
    return reference_taken(c, c.inputs[1], 0, [&](const Index& index, Index& source) {
        source = {0, index.back()};
        return load_int(c.inputs[0], offset_of(c.inputs[0], std::span<const I>(index).first(index.size() - 1)));
    });
}

// The bags one after the other: `ids(bag)` lists the rows of the table that a bag has.
template <class F>
Expected<void> reference_bags(ReferenceContext& c, const Tensor& table, F&& ids) {
    const std::string& mode = c.attrs.text("mode");
    const Tensor& out = c.outputs[0];
    for (I bag = 0; bag < out.size(0); ++bag) {
        std::vector<I> rows = ids(bag);
        for (I& row : rows) {
            const I checked = checked_index(row, table.size(0), c.attrs.flag("wrap"));
            if (checked < 0) return bad_index(row, table.size(0));
            row = checked;
        }
        for (I column = 0; column < out.size(1); ++column) {
            std::vector<double> values;
            for (const I row : rows)
                values.push_back(load_real(table, row * table.stride(0) + column * table.stride(1)));
            double result = 0;
            if (mode == "max") {
                if (!values.empty()) result = values[0];
                for (const double v : values) result = std::isnan(v) || v > result ? v : result;
            } else {
                result = pairwise_sum(values);
                if (mode == "mean" && !values.empty()) result /= static_cast<double>(values.size());
            }
            store_real(out, bag * out.stride(0) + column * out.stride(1), result);
        }
    }
    return {};
}
Expected<void> reference_bag(ReferenceContext& c) {
    const Tensor& ids = c.inputs[0];
    return reference_bags(c, c.inputs[1], [&](I bag) {
        std::vector<I> rows;
        for (I i = 0; i < ids.size(1); ++i) rows.push_back(load_int(ids, bag * ids.stride(0) + i * ids.stride(1)));
        return rows;
    });
}
Expected<void> reference_bag_offsets(ReferenceContext& c) {
    const Tensor& ids = c.inputs[0];
    const Tensor& offsets = c.inputs[1];
    const I bags = offsets.size(0);
    for (I bag = 0; bag < bags; ++bag) {
        const I begin = load_int(offsets, bag * offsets.stride(0));
        const I end = bag + 1 < bags ? load_int(offsets, (bag + 1) * offsets.stride(0)) : ids.size(0);
        if (begin < 0 || begin > end || end > ids.size(0)) return bad_index(begin, ids.size(0));
        if (bag == 0 && begin != 0) {
            return Diagnostic(DiagnosticId::kElementIndexOutOfRange)
                .operand("offsets")
                .found("offsets[0] = " + std::to_string(begin))
                .expected("0: the first bag begins with the first id");
        }
    }
    return reference_bags(c, c.inputs[2], [&](I bag) {
        const I begin = load_int(offsets, bag * offsets.stride(0));
        const I end = bag + 1 < bags ? load_int(offsets, (bag + 1) * offsets.stride(0)) : ids.size(0);
        std::vector<I> rows;
        for (I i = begin; i < end; ++i) rows.push_back(load_int(ids, i * ids.stride(0)));
        return rows;
    });
}
template <bool upper>
Expected<void> reference_triangle(ReferenceContext& c) {
    const I diagonal = c.attrs.integer("diagonal").constant();
    for_each_index(c.outputs[0].sizes(), [&](const Index& index) {
        const I difference = index[index.size() - 1] - index[index.size() - 2];
        const bool inside = upper ? difference >= diagonal : difference <= diagonal;
        const I target = offset_of(c.outputs[0], index);
        if (inside) {
            copy_element(c.outputs[0], target, c.inputs[0], offset_of(c.inputs[0], index));
        } else {
            store_int(c.outputs[0], target, 0);
        }
    });
    return {};
}
Expected<void> reference_masked_fill(ReferenceContext& c) {
    return map_elements(c, [](Elements e) { return e[1].integer != 0 ? e[2] : e[0]; });
}

// ---------------------------------------------------------------- samples

using samples::indices, samples::input, samples::sample, samples::scalar, samples::typed;
std::vector<Sample> gather_samples() {
    return {sample({input({3, 5}), indices({2, 4}, 3)}),
            sample({input({2, 3, 17}), indices({2, 3, 33}, 17)}, Attrs{{"axis", -1}}),
            sample({input({5}), indices({0}, 5)}),
            sample({input({3, 2}), indices({1, 1}, 2, DType::kI32)}, Attrs{{"axis", 1}}),
            sample({input({}), indices({}, 1)}),
            sample({input({}), indices({3}, 1)}),
            sample({input({5}), indices({}, 5)}),
            sample({input({2, 3}), indices({0, 5}, 2)}),
            sample({input({2, 3}), indices({0}, 2)})};
}
std::vector<Sample> select_samples() {
    return {sample({input({3, 5}), indices({7}, 3)}),
            sample({input({2, 17}), indices({33}, 17, DType::kI32)}, Attrs{{"axis", 1}}),
            sample({input({3, 2}), indices({0}, 3)}), sample({input({1}), indices({}, 1)})};
}
std::vector<Sample> take_samples() {
    return {sample({input({3, 5}), indices({2, 7}, 3)}),
            sample({input({2, 17, 3}), indices({33}, 17)}, Attrs{{"axis", 1}}),
            sample({input({3, 2}), indices({}, 2)}, Attrs{{"axis", -1}}), sample({input({3, 2}), indices({0, 2}, 3)})};
}
std::vector<Sample> embedding_samples() {
    return {sample({indices({2, 3}, 5), input({5, 4})}), sample({indices({17}, 33, DType::kI32), input({33, 16})}),
            sample({indices({}, 2), input({2, 1})}), sample({indices({0, 3}, 2), input({2, 3})}),
            sample({indices({1, 1}, 1), input({1, 15})})};
}
std::vector<Sample> bag_samples() {
    return {sample({indices({2, 3}, 5), input({5, 4})}),
            sample({indices({17, 2}, 33), input({33, 16})}, Attrs{{"mode", "sum"}}),
            sample({indices({3, 5}, 7), input({7, 15})}, Attrs{{"mode", "max"}}),
            sample({indices({2, 0}, 2), input({2, 3})}),
            sample({indices({0, 3}, 2), input({2, 3})}, Attrs{{"mode", "sum"}})};
}
std::vector<Sample> offsets_samples() {
    return {sample({indices({7}, 5), typed({1}, DType::kI64, samples::Fill::kIndex), input({5, 4})}),
            sample({indices({0}, 2), typed({0}, DType::kI64, samples::Fill::kIndex), input({2, 3})},
                   Attrs{{"mode", "sum"}}),
            sample({indices({17}, 33), typed({1}, DType::kI64, samples::Fill::kIndex), input({33, 16})},
                   Attrs{{"mode", "max"}})};
}
std::vector<Sample> triangle_samples() {
    return {sample({input({3, 3})}), sample({input({2, 17, 5})}, Attrs{{"diagonal", 1}}),
            sample({input({1, 33})}, Attrs{{"diagonal", -1}}), sample({input({0, 3})})};
}
std::vector<Sample> masked_samples() {
    constexpr DType b = DType::kBool;
    return {sample({input({2, 3}), typed({3}, b), scalar(1, DType::kI64)}),
            sample({input({17}), typed({2, 1}, b), scalar(0, DType::kI64)}),
            sample({input({0}), typed({1}, b), scalar(1, DType::kI64)})};
}

}  // namespace

std::vector<OpDef> indexing_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr std::span<const DType> floats = samples::kFloatDTypes;
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr Constraint known{"mode is \"sum\", \"mean\" or \"max\"", DiagnosticId::kBadAttribute};
    const AttrSpec axis{"axis", AttrKind::kInt, 0};
    const AttrSpec wrap{"wrap", AttrKind::kBool, false};
    const AttrSpec mode{"mode", AttrKind::kString, "mean"};
    const auto x_index = keep<OperandSpec>({{"x", tensor}, {"index", tensor}});
    const auto axis_wrap = keep<AttrSpec>({axis, wrap});
    const auto diagonal = keep<AttrSpec>({{"diagonal", AttrKind::kInt, 0}});
    std::vector<OpDef> ops;
    add_op(ops, "gather",
           "x at the index along an axis, for every place of index; with wrap, negative ones count from the end.",
           x_index, axis_wrap,
           keep<Constraint>({rules::kAxisInRange,
                             {"index has the rank of x (0 counts as 1), or no elements", DiagnosticId::kWrongRank, 1},
                             {"index is not larger than x along the other axes", DiagnosticId::kShapeMismatch, 1}}),
           taken_dtype<0, 1>, gather_shape, reference_gather, IndexLower(lower_gather), {all, gather_samples},
           {"torch.gather", "numpy.take_along_axis", "GatherElements"});
    add_op(ops, "index_select",
           "The slices of x that index names along an axis; with wrap, negative ones count from the end.", x_index,
           axis_wrap, keep<Constraint>({rules::kAxisInRange, {"index has rank 0 or 1", DiagnosticId::kWrongRank, 1}}),
           taken_dtype<0, 1>, index_select_shape, reference_index_select, IndexLower(lower_index_select),
           {all, select_samples}, {"torch.index_select", "", ""});
    add_op(ops, "take",
           "The slices of x that index names along an axis, in the shape of index; with wrap, negative ones count "
           "from the end.",
           x_index, axis_wrap, keep<Constraint>({rules::kAxisInRange}), taken_dtype<0, 1>, take_shape, reference_take,
           IndexLower(lower_take), {all, take_samples}, {"", "numpy.take", "Gather"});
    add_op(ops, "embedding", "The rows of a table that ids name.",
           keep<OperandSpec>({{"ids", tensor}, {"table", tensor}}), keep<AttrSpec>({wrap}),
           keep<Constraint>({{"table has rank 2", DiagnosticId::kWrongRank, 1}}), taken_dtype<1, 0>, embedding_shape,
           reference_embedding, IndexLower(lower_embedding), {all, embedding_samples},
           {"torch.nn.functional.embedding", "", ""});
    add_op(ops, "embedding_bag", "The sum, mean or maximum of the rows of a table that each row of ids names.",
           keep<OperandSpec>({{"ids", tensor}, {"table", tensor}}), keep<AttrSpec>({mode, wrap}),
           keep<Constraint>({{"ids and table have rank 2", DiagnosticId::kWrongRank},
                             known,
                             {"the bags of a maximum are not empty", DiagnosticId::kEmptyReduction, 0}}),
           bag_dtype, bag_shape, reference_bag, CompositeLower(lower_bag), {floats, bag_samples},
           {"torch.nn.functional.embedding_bag", "", ""});
    add_op(ops, "embedding_bag_offsets",
           "The sum, mean or maximum of table rows over the bags that offsets, from 0 on, cut ids into; an empty bag "
           "gives 0.",
           keep<OperandSpec>({{"ids", tensor}, {"offsets", tensor}, {"table", tensor}}), keep<AttrSpec>({mode, wrap}),
           keep<Constraint>({{"ids and offsets have rank 1, table rank 2", DiagnosticId::kWrongRank}, known}),
           bag_dtype, offsets_shape, reference_bag_offsets, ExternLower{"embedding_bag_offsets"},
           {floats, offsets_samples}, {"torch.nn.functional.embedding_bag", "", ""});
    const auto triangle = keep<Constraint>({{"x has rank 2 or more", DiagnosticId::kWrongRank, 0}});
    const auto only_x = keep<OperandSpec>({{"x", tensor}});
    add_op(ops, "tril", "x with 0 above a diagonal of its last two axes.", only_x, diagonal, triangle, rules::first,
           triangle_shape, reference_triangle<false>, IndexLower(lower_triangle<false>), {all, triangle_samples},
           {"torch.tril", "numpy.tril", "Trilu"});
    add_op(ops, "triu", "x with 0 below a diagonal of its last two axes.", only_x, diagonal, triangle, rules::first,
           triangle_shape, reference_triangle<true>, IndexLower(lower_triangle<true>), {all, triangle_samples},
           {"torch.triu", "numpy.triu", ""});
    add_op(ops, "masked_fill", "value where mask is true, else x; the dtype is that of x.",
           keep<OperandSpec>({{"x", tensor}, {"mask", tensor}, {"value", tensor, true}}), {},
           keep<Constraint>({{rules::kBroadcastText}, {"value has rank 0", DiagnosticId::kWrongRank, 2}}), masked_dtype,
           masked_shape, reference_masked_fill, MapLower(lower_masked_fill), {all, masked_samples},
           {"torch.masked_fill", "", ""});
    return ops;
}

}  // namespace flexor::ops
