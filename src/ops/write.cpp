// Ops that write into their first operand. The result is a view of it.
#include "ops/write.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "ops/composite.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/scattering.h"
#include "ops/strided.h"
#include "support/check.h"
#include "types/layout.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;
using Args = std::span<const ArgType>;
using Results = std::vector<ShapeResult>;
using types::Truth;

ShapeResult itself(const TensorType& type) {
    ShapeResult result;
    result.sizes = type.sizes;
    result.view_of = 0;
    result.is_operand = true;
    result.strides = type.strides;
    return result;
}

// Which elements of a target may share memory.
enum class Sharing : std::uint8_t {
    kNone,
    kRepeated,  // those along an axis of stride 0, for ops that write the same wherever they write
};

// Nothing: the sizes or the strides are not known.
std::optional<bool> known_overlap(const TensorType& type, Sharing allowed) {
    std::vector<I> sizes, strides;
    for (std::size_t axis = 0; axis < type.sizes.size(); ++axis) {
        const Dim& size = type.sizes[axis];
        const Dim& stride = type.strides[axis];
        if (!size.is_constant() || !stride.is_constant()) return std::nullopt;
        if (allowed == Sharing::kRepeated && stride.is_constant(0) && !size.is_constant(0)) continue;
        sizes.push_back(size.constant());
        strides.push_back(stride.constant());
    }
    return types::overlaps_itself(sizes, strides);
}

// Of symbolic strides the rule asks which are 0; a caller that specialises leaves targets of the class
// "self-overlapping" to a run with constants.
bool require_no_overlap(ShapeContext& context, const TensorType& type, int constraint, Sharing allowed) {
    const ShapeEnv& env = context.env();
    if (rules::is_row_major(env, type)) return true;
    if (const auto overlap = known_overlap(type, allowed)) return !*overlap || context.fail(constraint);
    const Dim any = Dim::min(type.numel(), 1);  // 0 without elements: nothing is shared then
    for (std::size_t axis = 0; axis < type.sizes.size(); ++axis) {
        const Dim& stride = type.strides[axis];
        const Truth zero = env.eq(stride, 0);
        if (zero == Truth::kFalse || (stride.is_constant(0) && allowed == Sharing::kRepeated)) continue;
        // 1 - min(|stride|, 1) is 1 where the stride is 0, else 0.
        const Dim is_zero = zero == Truth::kTrue ? Dim(1) : Dim(1) - Dim::min(Dim::max(stride, -stride), 1);
        const Dim repeats = env.simplify(is_zero * (type.sizes[axis] - 1) * any);
        if (allowed == Sharing::kRepeated && env.hint(repeats)) {
            // Lowering must see which axes repeat elements: where their strides are not written so, a run with
            // constants decides.
            if (!context.settle_eq(repeats, 0)) return context.fail(constraint);
        } else if (!context.require_le(repeats, 0, constraint)) {
            return false;
        }
    }
    return true;
}
bool require_sizes(ShapeContext& context, const std::vector<Dim>& found, const std::vector<Dim>& wanted,
                   int constraint) {
    if (found.size() != wanted.size()) return context.fail(constraint);
    for (std::size_t axis = 0; axis < found.size(); ++axis) {
        if (!context.require_eq(found[axis], wanted[axis], constraint)) return false;
    }
    return true;
}

// ---------------------------------------------------------------- assign

constexpr std::string_view kAssign = "assign";

Expected<DTypes> assign_dtype(Args args, const Attrs&, types::Promotion promotion) {
    const DType d = args[0].type.dtype;
    DTypes dtypes{{d, d}, {d}};
    rules::bound_integers(args, promotion, dtypes);
    return dtypes;
}
bool assign_shape(ShapeContext& context, Results& results) {
    const TensorType& target = context.type(0);
    const TensorType& source = context.type(1);
    if (source.rank() > target.rank()) return context.fail(1);
    const std::size_t skip = target.sizes.size() - source.sizes.size();
    for (std::size_t axis = 0; axis < source.sizes.size(); ++axis) {
        const Dim& size = target.sizes[skip + axis];
        Dim out;
        if (!context.broadcast(size, source.sizes[axis], 1, &out)) return false;
        if (!context.require_eq(out, size, 1)) return false;
    }
    if (!require_no_overlap(context, target, 2, Sharing::kNone)) return false;
    results.push_back(itself(target));
    return true;
}
// All of the source is read before anything is written: the two may share memory.
void write_elements(const Tensor& target, const Tensor& source) {
    std::vector<Element> elements;
    for_each_index(target.sizes(), [&](const Index& index) {
        elements.push_back(load_as(source, broadcast_offset(source, index), target.dtype()));
    });
    std::size_t next = 0;
    for_each_index(target.sizes(),
                   [&](const Index& index) { store(target, offset_of(target, index), elements[next++]); });
}
Expected<void> reference_assign(ReferenceContext& c) {
    write_elements(c.inputs[0], c.inputs[1]);
    return {};
}
Expected<DTypes> fill_dtype(Args args, const Attrs& attrs, types::Promotion promotion) {
    return assign_dtype(args, attrs, promotion);
}
bool fill_shape(ShapeContext& context, Results& results) {
    if (context.type(1).rank() != 0) return context.fail(1);
    if (context.args()[1].strength != types::Strength::kScalar) return assign_shape(context, results);
    // Elements that share memory all become the one number; torch takes that as well.
    results.push_back(itself(context.type(0)));
    return true;
}

// ---------------------------------------------------------------- the in-place forms of other ops

// Each gets a form with "_" behind its name. Their result has the dtype that they compute in.
constexpr std::array kInPlace = std::to_array<std::string_view>(
    {"add",         "sub",      "mul",       "div",         "floor_divide", "remainder",  "fmod",        "pow",
     "lerp",        "addcmul",  "clamp",     "masked_fill", "bitwise_and",  "bitwise_or", "bitwise_xor", "shift_left",
     "shift_right", "neg",      "abs",       "sqrt",        "rsqrt",        "reciprocal", "square",      "exp",
     "exp2",        "expm1",    "log",       "log2",        "log10",        "log1p",      "sin",         "cos",
     "tan",         "tanh",     "erf",       "sigmoid",     "relu",         "relu6",      "silu",        "elu",
     "leaky_relu",  "hardtanh", "hardswish", "hardsigmoid", "floor",        "ceil",       "round",       "trunc",
     "bitwise_not", "tril",     "triu",      "acos",        "asin",         "atan",       "acosh",       "asinh",
     "atanh",       "cosh",     "sinh",      "erfc",        "erfinv",       "lgamma",     "digamma",     "i0",
     "copysign",    "hypot",    "scatter",   "index_put"});

// Those that write where index tensors say run on whole tensors, into the first one.
constexpr bool is_placement(std::string_view name) { return name == "scatter" || name == "index_put"; }

const OpDef& base(std::size_t i) {
    static const auto ops = [] {
        std::array<const OpDef*, kInPlace.size()> found{};
        std::ranges::transform(kInPlace, found.begin(), find_op);
        return found;
    }();
    FLEXOR_CHECK(ops[i] != nullptr);
    return *ops[i];
}

// Those that write one value into some elements and leave the others alone: as torch has it, elements that an axis of
// stride 0 repeats get the value if it is meant for any of them.
constexpr Sharing sharing_of(std::string_view name) {
    const bool selects = name == "masked_fill" || name == "tril" || name == "triu";
    return selects ? Sharing::kRepeated : Sharing::kNone;
}

// Whether torch and NumPy ("same kind") store a result of `from` in place of `to`.
bool can_store(DType from, DType to) {
    if (is_floating(from) && !is_floating(to)) return false;
    return to != DType::kBool || from == DType::kBool;
}
Expected<DTypes> in_place_dtype(std::size_t i, Args args, const Attrs& attrs, types::Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, base(i).dtype.value(args, attrs, promotion));
    const DType target = args[0].type.dtype;
    if (!can_store(dtypes.results[0], target)) {
        return Diagnostic(DiagnosticId::kCastNotAllowed)
            .operand("#0")
            .found("a result of " + std::string(dtype_name(dtypes.results[0])) + " for a target of " +
                   std::string(dtype_name(target)))
            .expected("a dtype of the target's kind or of a lesser one");
    }
    dtypes.results[0] = target;
    return dtypes;
}
bool in_place_shape(std::size_t i, ShapeContext& context, Results& results) {
    const int own = static_cast<int>(base(i).constraints.value.size());
    Results fresh;
    if (!base(i).shape.value(context, fresh)) return false;
    if (!require_sizes(context, fresh[0].sizes, context.type(0).sizes, own + 1)) return false;
    if (!require_no_overlap(context, context.type(0), own + 2, sharing_of(kInPlace[i]))) return false;
    results.push_back(itself(context.type(0)));
    return true;
}
std::vector<GraphValue> in_place_lower(std::size_t i, GraphBuilder& g, std::span<const GraphValue> args,
                                       const Attrs& attrs) {
    const GraphValue value = g.op(kInPlace[i], args, attrs);
    return {g.op("assign", {args[0], value})};
}
Expected<void> in_place_reference(std::size_t i, ReferenceContext& c) {
    const DType dtype = c.dtypes.operands[0];
    std::array<Tensor, 1> outputs = {Tensor::empty(dtype, c.inputs[0].sizes())};
    if (!outputs[0].defined()) return Diagnostic(DiagnosticId::kOutOfMemory);
    DTypes dtypes = c.dtypes;
    dtypes.results = {dtype};
    ReferenceContext inner{c.inputs, c.strengths, outputs, c.attrs, dtypes};
    FLEXOR_TRY(base(i).reference.value(inner));
    write_elements(c.inputs[0], outputs[0]);
    return {};
}

constexpr std::size_t in_place_index(std::string_view name) {
    return static_cast<std::size_t>(std::find(kInPlace.begin(), kInPlace.end(), name) - kInPlace.begin());
}

// The axes of stride 0 that have more than one element, as far as is proven.
types::DimList repeated_axes(const TensorType& type) {
    types::DimList axes;
    for (std::size_t axis = 0; axis < type.sizes.size(); ++axis) {
        const bool one = type.sizes[axis].is_constant(1) || type.sizes[axis].is_constant(0);
        if (type.strides[axis].is_constant(0) && !one) axes.push_back(static_cast<I>(axis));
    }
    return axes;
}
// Into one element of each that repeats, where the mask says so of any.
std::vector<GraphValue> lower_masked_fill_in_place(GraphBuilder& g, std::span<const GraphValue> args,
                                                   const Attrs& attrs) {
    const TensorType type = g.type(args[0]).type;
    const types::DimList axes = repeated_axes(type);
    if (axes.empty()) return in_place_lower(in_place_index("masked_fill"), g, args, attrs);
    const GraphValue mask = g.op("expand", {args[1]}, Attrs{{"shape", types::DimList(type.sizes)}});
    const GraphValue any = g.op("reduce_any", {mask}, Attrs{{"axes", axes}, {"keepdim", true}});
    GraphValue target = args[0];
    for (const Dim& axis : axes) {
        const Dim length = Dim::min(type.sizes[static_cast<std::size_t>(axis.constant())], 1);
        target = g.op("narrow", {target}, Attrs{{"axis", axis}, {"start", 0}, {"length", length}});
    }
    g.op("assign", {target, g.op("masked_fill", {target, any, args[2]})});
    return {args[0]};
}
// As masked_fill_ with what lies on the other side of the diagonal.
template <bool upper>
std::vector<GraphValue> lower_triangle_in_place(GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
    const TensorType type = g.type(args[0]).type;
    if (repeated_axes(type).empty()) return in_place_lower(in_place_index(upper ? "triu" : "tril"), g, args, attrs);
    const types::DimList plane(type.sizes.end() - 2, type.sizes.end());
    const GraphValue all = g.op("ones", {}, Attrs{{"shape", plane}, {"dtype", DType::kBool}});
    const Dim diagonal = attrs.integer("diagonal") + (upper ? -1 : 1);
    const GraphValue outside = g.op(upper ? "tril" : "triu", {all}, Attrs{{"diagonal", diagonal}});
    g.op("masked_fill_", {args[0], outside, g.dim(0)});
    return {args[0]};
}

// Writes `value` where `selects(index)`; all of it is asked before anything is written.
template <class Selects>
void write_where(const Tensor& target, const Element& value, Selects&& selects) {
    std::vector<I> places;
    for_each_index(target.sizes(), [&](const Index& index) {
        if (selects(index)) places.push_back(offset_of(target, index));
    });
    for (const I place : places) store(target, place, value);
}
Expected<void> reference_masked_fill_in_place(ReferenceContext& c) {
    const Tensor& mask = c.inputs[1];
    write_where(c.inputs[0], load_as(c.inputs[2], 0, c.inputs[0].dtype()),
                [&](const Index& index) { return load_int(mask, broadcast_offset(mask, index)) != 0; });
    return {};
}
template <bool upper>
Expected<void> reference_triangle_in_place(ReferenceContext& c) {
    const I diagonal = c.attrs.integer("diagonal").constant();
    write_where(c.inputs[0], int_element(0), [&](const Index& index) {
        const I difference = index[index.size() - 1] - index[index.size() - 2];
        return upper ? difference < diagonal : difference > diagonal;
    });
    return {};
}

struct InPlaceForm {
    DTypeRule dtype;
    ShapeRule shape;
    CompositeLower lower;
    Reference reference;
};
template <std::size_t i>
constexpr InPlaceForm in_place_form() {
    InPlaceForm form{
        [](Args args, const Attrs& attrs, types::Promotion p) { return in_place_dtype(i, args, attrs, p); },
        [](ShapeContext& context, Results& results) { return in_place_shape(i, context, results); },
        [](GraphBuilder& g, std::span<const GraphValue> args, const Attrs& attrs) {
            return in_place_lower(i, g, args, attrs);
        },
        [](ReferenceContext& c) { return in_place_reference(i, c); }};
    if (kInPlace[i] == "masked_fill")
        form.lower = lower_masked_fill_in_place, form.reference = reference_masked_fill_in_place;
    if (kInPlace[i] == "tril")
        form.lower = lower_triangle_in_place<false>, form.reference = reference_triangle_in_place<false>;
    if (kInPlace[i] == "triu")
        form.lower = lower_triangle_in_place<true>, form.reference = reference_triangle_in_place<true>;
    return form;
}
template <std::size_t... i>
constexpr std::array<InPlaceForm, sizeof...(i)> in_place_forms(std::index_sequence<i...>) {
    return {in_place_form<i>()...};
}

// ---------------------------------------------------------------- samples

using samples::input, samples::sample, samples::scalar, samples::typed;
std::vector<Sample> assign_samples() {
    return {sample({input({2, 3}), input({3})}),
            sample({input({17}), scalar(2, DType::kI64)}),
            sample({input({2, 1}), input({2, 1})}),
            sample({input({0, 3}), input({1})}),
            sample({input({}), input({})}),
            sample({input({2, 15}), typed({2, 1}, DType::kF32, samples::Fill::kPositive)})};
}
std::vector<Sample> fill_samples() {
    std::vector<Sample> out = samples::unary();
    for (Sample& s : out) s.inputs.push_back(scalar(1, DType::kI64));
    return out;
}
constexpr auto kForms = in_place_forms(std::make_index_sequence<kInPlace.size()>());
// Those samples of the base op whose result has the sizes of operand 0.
std::vector<Sample> in_place_samples(std::size_t i) {
    std::vector<Sample> out;
    for (Sample& s : base(i).samples.value.make()) {
        const auto& target = s.inputs[0].sizes;
        bool fits = s.inputs[0].fill != SampleInput::Fill::kScalar;
        if (fits && is_placement(kInPlace[i])) out.push_back(s);
        fits = fits && !is_placement(kInPlace[i]);
        for (const SampleInput& other : s.inputs) {
            fits = fits && other.sizes.size() <= target.size();
            for (std::size_t a = 0; fits && a < other.sizes.size(); ++a) {
                const std::int64_t size = other.sizes[other.sizes.size() - 1 - a];
                fits = size == 1 || size == target[target.size() - 1 - a];
            }
            // A float scalar makes a float of an integer, which then cannot be stored.
            fits = fits && !(other.fill == SampleInput::Fill::kScalar && other.dtype == DType::kF64);
        }
        if (fits) out.push_back(std::move(s));
    }
    return out;
}
template <std::size_t... i>
constexpr std::array<std::vector<Sample> (*)(), sizeof...(i)> sample_makers(std::index_sequence<i...>) {
    return {[] { return in_place_samples(i); }...};
}
constexpr auto kSampleMakers = sample_makers(std::make_index_sequence<kInPlace.size()>());

OpDef in_place(std::size_t i, const OpDef& op) {
    std::vector<Constraint> constraints(op.constraints.value.begin(), op.constraints.value.end());
    constraints.push_back({"the result has the sizes of the first operand", DiagnosticId::kShapeMismatch, 0});
    constraints.push_back({sharing_of(op.name.value) == Sharing::kNone
                               ? "no two elements of the first operand share memory"
                               : "no two elements of the first operand share memory, unless an axis repeats them",
                           DiagnosticId::kOverlappingWrite, 0});
    std::vector<OperandSpec> operands(op.operands.value.begin(), op.operands.value.end());
    operands[0].scalar_ok = false;
    const std::string name(op.name.value);
    const std::string torch(op.names.value.torch);
    // torch.add -> torch.Tensor.add_; what lives elsewhere has no in-place method.
    const bool method = torch.starts_with("torch.") && torch.find('.', 6) == std::string::npos;
    // The float functions give floats, which integers do not take back.
    const bool floats_only = op.dtype.value == DTypeRule(rules::to_float) ||
                             op.dtype.value == DTypeRule(rules::promote_to_float) ||
                             op.dtype.value == DTypeRule(rules::quotient) || name == "reciprocal";
    // A bool promoted by a scalar is not stored back either.
    const bool numbers_only =
        op.dtype.value == DTypeRule(rules::promote) || op.dtype.value == DTypeRule(rules::product) || name == "square";
    const bool bits_only = op.dtype.value == DTypeRule(rules::promote_bits);
    const std::span<const DType> dtypes = floats_only    ? std::span<const DType>(samples::kFloatDTypes)
                                          : bits_only    ? std::span<const DType>(samples::kIntegerDTypes)
                                          : numbers_only ? std::span<const DType>(samples::kNumberDTypes)
                                                         : op.samples.value.dtypes;
    return {.name = {keep_text(name + "_")},
            .summary = {keep_text("As " + name + ", written into the first operand.")},
            .constraints = {keep(std::move(constraints))},
            .operands = {keep(std::move(operands))},
            .attrs = {op.attrs.value},
            .dtype = {kForms[i].dtype},
            .shape = {kForms[i].shape},
            .effects = {Effects::kWritesFirst},
            .alias = {Alias::kView},
            .layout = {Layout::kView},
            .reference = {kForms[i].reference},
            .lower = {is_placement(op.name.value) ? LowerRule(ExternLower{}) : LowerRule(kForms[i].lower)},
            .samples = {Samples{dtypes, kSampleMakers[i]}},
            .names = {Names{method ? keep_text("torch.Tensor." + torch.substr(6) + "_") : "", "", ""}},
            .native = op.name.value == "scatter"     ? native_scatter_in_place
                      : op.name.value == "index_put" ? native_index_put_in_place
                                                     : nullptr,
            .raises = is_placement(op.name.value)};
}

}  // namespace

bool copies(const OpDef& op) { return op.name.value == kAssign; }

bool writes_by_index(const OpDef& op) {
    return op.effects.value == Effects::kWritesFirst && std::holds_alternative<ExternLower>(op.lower.value);
}

std::vector<OpDef> write_ops() {
    constexpr std::span<const DType> all = samples::kAllDTypes;
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr Constraint no_overlap{"no two elements of the target share memory, unless the source is the target",
                                    DiagnosticId::kOverlappingWrite, 0};
    constexpr Constraint tensor_overlap{"no two elements of the target share memory, unless a number is written",
                                        DiagnosticId::kOverlappingWrite, 0};
    std::vector<OpDef> ops;
    constexpr Traits writes{.effects = Effects::kWritesFirst, .alias = Alias::kView, .layout = Layout::kView};
    add_op(ops, kAssign, "Writes the source, broadcast and converted, into the target.",
           keep<OperandSpec>({{"target", tensor}, {"source", tensor, true}}), {},
           keep<Constraint>({{"the source broadcasts to the target", DiagnosticId::kShapeMismatch, 1}, no_overlap}),
           assign_dtype, assign_shape, reference_assign, WriteLower{}, {all, assign_samples},
           {"torch.Tensor.copy_", "numpy.copyto", ""}, writes);
    add_op(ops, "fill_", "Writes one value into every element of the target.",
           keep<OperandSpec>({{"target", tensor}, {"value", tensor, true}}), {},
           keep<Constraint>({{"the value has rank 0", DiagnosticId::kWrongRank, 1}, tensor_overlap}), fill_dtype,
           fill_shape, reference_assign, WriteLower{}, {all, fill_samples},
           {"torch.Tensor.fill_", "numpy.ndarray.fill", ""}, writes);

    // What the entries point to must stay reachable, so the families stay too.
    static const auto& families =
        *new std::vector<std::vector<OpDef>>{binary_ops(), unary_ops(), special_ops(), indexing_ops(), scatter_ops()};
    for (const auto& family : families) {
        for (const OpDef& op : family) {
            for (std::size_t i = 0; i < kInPlace.size(); ++i) {
                if (kInPlace[i] == op.name.value) ops.push_back(in_place(i, op));
            }
        }
    }
    FLEXOR_CHECK(ops.size() == kInPlace.size() + 2);
    return ops;
}

}  // namespace flexor::ops
