#pragma once
// One OpDef entry says everything about an op; nothing else in the tree lists ops. A missing field does not compile.
//
// Adding an op touches one family file (unary.cpp, binary.cpp, reduce.cpp, movement.cpp, contraction.cpp,
// normalisation.cpp, attention.cpp, indexing.cpp, order.cpp, selection.cpp, creation.cpp, write.cpp): one entry in its
// table.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "flexor/tensor.h"
#include "loopir/kernel.h"
#include "ops/relation.h"
#include "support/diagnostic.h"
#include "support/expected.h"
#include "types/attr.h"
#include "types/shape_env.h"
#include "types/tensor_type.h"

namespace flexor::ops {

using types::AttrKind;
using types::Attrs;
using types::AttrValue;
using types::Dim;
using types::ShapeEnv;
using types::TensorType;

// A field without a default constructor, so that leaving it out of a designated initialiser is an error.
template <class T>
struct Required {
    T value;
    Required(T v) : value(std::move(v)) {}  // NOLINT: implicit on purpose
};

// ---------------------------------------------------------------- operands and attributes

enum class OperandKind : std::uint8_t {
    kTensor,          // a tensor, or a scalar where `scalar_ok`
    kOptionalTensor,  // as kTensor, or none
    kTensorList,      // one list (or the remaining operands) of tensors; last
};
struct OperandSpec {
    std::string_view name;
    OperandKind kind = OperandKind::kTensor;
    bool scalar_ok = false;
};
struct AttrSpec {
    std::string_view name;
    AttrKind kind;
    AttrValue fallback = {};  // used when absent; monostate with a non-optional kind means required
};

// One operand as the rules see it. Lists are flattened: the list's tensors stand one after the other, at the end.
struct ArgType {
    bool present = true;  // false: optional operand given as none
    TensorType type;      // scalars: rank 0 with dtype kBool, kI64 or kF64
    types::Strength strength = types::Strength::kTensor;
};

// A numbered constraint (its place in OpDef::constraints counts from 1: C1, C2, ...), with the id of the refusal and
// the operand to blame (-1: none in particular).
struct Constraint {
    std::string_view text;
    DiagnosticId id = DiagnosticId::kShapeMismatch;
    int operand = -1;
    operator std::string_view() const { return text; }  // NOLINT: implicit on purpose
};

// ---------------------------------------------------------------- type rules

// An integer of Python, or any element of an integer tensor, raises IntegerOutOfRange outside lo..hi.
struct IntegerBound {
    std::size_t operand;  // flattened index
    std::int64_t lo, hi;
};
struct DTypes {
    std::vector<DType> operands;  // what each operand is converted to before the scalar computation
    std::vector<DType> results;
    // Nothing: under NumPy's promotion, integers of Python lie in what their operand is converted to.
    std::optional<std::vector<IntegerBound>> bounds = {};
    bool zero_divisor_gives_zero = false;  // in integer divisions, as NumPy has it; else it raises
};
using DTypeRule = Expected<DTypes> (*)(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);

struct Requirement {
    enum class Kind : std::uint8_t {
        kCheck,  // eager raises when it fails: the program raises, in place
        kGuard,  // the specialisation is another one when it fails
    };
    Kind kind;
    Relation relation;
    Dim a, b;
    int constraint;       // number of the OpDef constraint (C1 is 1), 0 for guards and for checks of no constraint
    bool or_one = false;  // kCheck kEq of a broadcast: also satisfied when either side is 1
    DiagnosticId id = DiagnosticId::kShapeMismatch;  // what a check of no constraint raises
};

// What a shape rule works with. Symbolic and concrete run the same rule: on constants every question is answered at
// once.
//
//  require_*  states a constraint. Proven: nothing. Refuted: false, and failed_requirement() holds it. Unknown:
//             recorded as a check. A check holds only where it stands, so it is not assumed in the environment; the
//             caller may assume it for what it dominates.
//  decide_eq  asks a question whose answer changes the result (view or copy). Proven or refuted: that. Unknown:
//             answered by the hints of the call at hand, recorded as a guard and assumed in the environment; without a
//             hint, or when guards are not allowed, the answer is false and nothing is recorded, so false must be the
//             safe answer.
//  settle_eq  as decide_eq where no answer is safe (the rank of the result depends on it): the answer is recorded as a
//             guard in every case; without a hint it is false.
//  layout_*   asks what the strides of the result depend on, or whether it is a view: as settle_eq if the caller keeps
//             guards on layouts (settle_layout), for a copy in the place of a view loses writes; else as decide_eq.
class ShapeContext {
public:
    ShapeContext(std::span<const ArgType> args, const Attrs& attrs, ShapeEnv& env,
                 std::vector<Requirement>& requirements, bool allow_guards, bool settle_layout)
        : args_(args),
          attrs_(attrs),
          env_(env),
          requirements_(requirements),
          allow_guards_(allow_guards),
          settle_layout_(settle_layout) {}

    std::span<const ArgType> args() const { return args_; }
    const TensorType& type(std::size_t i) const { return args_[i].type; }
    const Attrs& attrs() const { return attrs_; }
    ShapeEnv& env() { return env_; }

    bool require_eq(const Dim& a, const Dim& b, int constraint);
    bool require_le(const Dim& a, const Dim& b, int constraint);
    bool require_lt(const Dim& a, const Dim& b, int constraint);
    bool fail(
        int constraint);  // refutes a constraint that is not a relation of dims (rank, attribute value); returns false
    bool decide_eq(const Dim& a, const Dim& b);
    bool settle_eq(const Dim& a, const Dim& b);
    bool layout_eq(const Dim& a, const Dim& b);
    bool layout_le(const Dim& a, const Dim& b);
    // Result dim of a broadcast pair; requires a == b or one of them 1. Equal by hint: proposes the guard a == b (one
    // family for the common case); when guards are not allowed (they failed before) the result is the broadcast
    // expression and strides become run-time values.
    bool broadcast(const Dim& a, const Dim& b, int constraint, Dim* out);
    Dim fresh(std::string name, const Dim& lo, const Dim& hi);  // a size made by data

    int failed_constraint() const { return failed_; }
    const Requirement& failed_requirement() const { return failure_; }

private:
    bool require(Relation relation, const Dim& a, const Dim& b, int constraint, bool or_one);
    bool decide(Relation relation, const Dim& a, const Dim& b, bool must);
    bool decide_layout(Relation relation, const Dim& a, const Dim& b);

    std::span<const ArgType> args_;
    const Attrs& attrs_;
    ShapeEnv& env_;
    std::vector<Requirement>& requirements_;
    bool allow_guards_;
    bool settle_layout_;
    int failed_ = 0;
    Requirement failure_{};
};

struct ShapeResult {
    std::vector<Dim> sizes;
    // Views: geometry relative to operand `view_of`, offset in elements added to the operand's offset. Fresh results
    // may give strides; else the layout rule does.
    int view_of = -1;
    bool is_operand = false;  // operand `view_of` itself, not another tensor over its memory
    std::vector<Dim> strides;
    Dim offset = 0;
};
// Sizes (and view geometry) of each result; false after a failed requirement. The symbolic shape rule = the checker =
// the source of guards.
using ShapeRule = bool (*)(ShapeContext& context, std::vector<ShapeResult>& results);

enum class Effects : std::uint8_t {
    kPure,
    kWritesFirst /* operand 0 is written, result 0 is a view of it */,
    kRandom,
    kOpaque
};
enum class Alias : std::uint8_t { kFresh, kView, kViewIfStridesAllow };
enum class Layout : std::uint8_t {
    kContiguous,
    kElementwise,  // as torch's TensorIterator: the common dense permutation of the operands, else contiguous
    kLikeFirst,    // dense in the order of operand 0's strides
    kView,         // given by the shape rule
};

// ---------------------------------------------------------------- lowering

// kMap: the scalar expression of one element. Operands arrive converted to DTypes::operands (f16/bf16 widened to f32);
// the result is converted back. An optional operand given as none is kNoNode.
using MapLower = loopir::NodeId (*)(loopir::BodyBuilder& body, std::span<const loopir::NodeId> args,
                                    const Attrs& attrs);

// kReduce over attrs axes, keepdim. `accumulate` is the dtype of the accumulator for a result dtype.
struct ReduceLower {
    loopir::Combine combine;
    DType (*accumulate)(DType operand, DType result);
};

// kIndex: result element at out[i0..] as loads at computed places.
struct IndexTerm {
    enum class Kind : std::uint8_t { kAxis, kConstant, kNode } kind;
    int axis = 0;             // kAxis: index of result axis `axis` plus `shift`
    Dim shift = 0;            // kAxis, kConstant
    loopir::NodeId node = 0;  // kNode: gathered index
    bool wrap_negative = false;
};
class IndexBuilder {
public:
    virtual ~IndexBuilder() = default;
    virtual loopir::BodyBuilder& body() = 0;
    virtual const TensorType& type(std::size_t operand) const = 0;
    virtual const TensorType& result() const = 0;
    virtual loopir::NodeId axis_index(int axis) = 0;  // i64
    virtual loopir::NodeId dim(const Dim& d) = 0;     // i64 value of a dim expression
    // operand[index...] (rank 0 counts as 1); where `mask` (bool) is false nothing is read and the value is 0.
    virtual loopir::NodeId load(std::size_t operand, std::span<const IndexTerm> index,
                                loopir::NodeId mask = loopir::kNoNode) = 0;
};
using IndexLower = loopir::NodeId (*)(IndexBuilder& builder, const Attrs& attrs);

// kComposite: a graph of other ops (softmax = max, sub, exp, sum, div). Dtypes are handled inside by explicit casts.
using GraphValue = std::uint32_t;
class GraphBuilder {
public:
    virtual ~GraphBuilder() = default;
    virtual GraphValue op(std::string_view name, std::span<const GraphValue> args, Attrs attrs) = 0;
    GraphValue op(std::string_view name, std::initializer_list<GraphValue> args, Attrs attrs = {}) {
        return op(name, std::span<const GraphValue>(args.begin(), args.size()), std::move(attrs));
    }
    virtual GraphValue scalar(double value) = 0;   // weak float
    virtual GraphValue dim(const Dim& value) = 0;  // weak integer scalar
    virtual GraphValue none() = 0;
    virtual const ArgType& type(GraphValue value) const = 0;
    virtual DType result_dtype() const = 0;  // dtype of the composite's result 0 by its own rule
};
using CompositeLower = std::vector<GraphValue> (*)(GraphBuilder& graph, std::span<const GraphValue> args,
                                                   const Attrs& attrs);

struct ViewLower {};         // no code: the type carries the geometry; a copy when the shape rule gave no view
struct ConcatLower {};       // each operand is stored into its slice of the result along attrs axis
struct ContractionLower {};  // matmul of operands of rank >= 2 (batch dims broadcast)
struct AttentionLower {};
struct WriteLower {};  // assign: operand 1, broadcast and converted, is stored into operand 0
// A kernel written by hand in runtime/kernels, found by "<kernel>" or, for an op with attribute mode,
// "<kernel>.<mode>".
struct ExternLower {
    std::string_view kernel;  // empty: none, the op runs on whole tensors
};
using LowerRule = std::variant<MapLower, ReduceLower, ViewLower, IndexLower, ConcatLower, CompositeLower,
                               ContractionLower, AttentionLower, WriteLower, ExternLower>;
// The alternative by name: "map", "reduce", "view", ...
std::string_view family(const LowerRule& lower);

// ---------------------------------------------------------------- reference, samples, names

// Naive loops over strided views; shares no code with lowering. Inputs as given by the caller (undefined tensor: none;
// scalars as rank-0 tensors of their dtype); outputs are allocated with the inferred types (views and written operands:
// already set). Attrs are concrete.
struct ReferenceContext {
    std::span<const Tensor> inputs;
    std::span<const types::Strength> strengths;
    std::span<Tensor> outputs;
    const Attrs& attrs;
    const DTypes& dtypes;
    // What the host lends native kernels. stop_requested is asked now and then: true is answered with Interrupted.
    // parallel runs body(context, begin, end) for the chunks of 0..count, `grain` long, on several threads (native.h).
    bool (*stop_requested)() = nullptr;
    void (*parallel)(void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context,
                     std::int64_t count, std::int64_t grain) = nullptr;
    // What data_sizes has found out, for the kernel that fills the results.
    std::shared_ptr<void> found = nullptr;
};
using Reference = Expected<void> (*)(ReferenceContext& context);
// What ShapeContext::fresh stands for, in the order of its calls, on real operands; the outputs are not there yet.
using DataSizes = Expected<std::vector<std::int64_t>> (*)(ReferenceContext& context);

struct SampleInput {
    std::vector<std::int64_t> sizes;
    // kNormal: both signs, integers in -5..5 (unsigned 0..10); kPositive: >= 0.25, integers 1..6; kUnit: [0, 1).
    enum class Fill : std::uint8_t { kNormal, kPositive, kUnit, kIndex, kBool, kNone, kScalar } fill = Fill::kNormal;
    double value = 0;            // kIndex: exclusive bound; kScalar: the value
    std::optional<DType> dtype;  // fixed dtype (indices, masks), else the dtype under test
};
struct Sample {
    std::vector<SampleInput> inputs;
    Attrs attrs;
};
struct Samples {
    std::span<const DType> dtypes;  // dtypes under test of operand 0
    std::vector<Sample> (*make)();  // sizes include 0, 1, odd, broadcast
};
struct Names {
    std::string_view torch;  // "torch.add" or "" with no spelling
    std::string_view numpy;
    std::string_view onnx;
};

struct OpDef {
    Required<std::string_view> name;
    Required<std::string_view> summary;
    Required<std::span<const Constraint>> constraints;  // C1, C2, ...
    Required<std::span<const OperandSpec>> operands;
    Required<std::span<const AttrSpec>> attrs;
    Required<DTypeRule> dtype;
    Required<ShapeRule> shape;
    Required<Effects> effects;
    Required<Alias> alias;
    Required<Layout> layout;
    Required<Reference> reference;
    Required<LowerRule> lower;
    Required<Samples> samples;
    Required<Names> names;
    int results = 1;  // number of results; -1: one per element of the integer list attribute "sizes" (split)
    DataSizes data_sizes = nullptr;  // of an op whose sizes only its operands' elements tell
    // The kernel on whole tensors that interpreter and tapes run where the reference would take long; differs from it
    // in the order of sums alone. Null: the reference.
    Reference native = nullptr;
    // Whether elements of the operands can make a kernel on whole tensors raise: it runs even if nobody wants its
    // results.
    bool raises = false;
};

// Results that a call pushes; -1 if the attribute that decides it is not a list.
inline int result_count(const OpDef& op, const Attrs& attrs) {
    if (op.results >= 0) return op.results;
    const AttrValue* sizes = attrs.find("sizes");
    const auto* list = sizes != nullptr ? std::get_if<types::DimList>(sizes) : nullptr;
    return list != nullptr ? static_cast<int>(list->size()) : -1;
}

// ---------------------------------------------------------------- registry

std::span<const OpDef* const> all_ops();                  // families in order
const OpDef* find_op(std::string_view name);              // null if unknown
std::string_view nearest_op_name(std::string_view name);  // for hints
const OpDef* register_op(OpDef op);  // a user's op; null if the name is taken; the entry is copied and lives for ever

// Fills defaults, checks kinds and names. An OperandRef stays where the kind allows it.
Expected<Attrs> check_attrs(const OpDef& op, const Attrs& given);

struct ResultType {
    TensorType type;
    int view_of = -1;         // flattened operand index
    bool is_operand = false;  // that operand itself
};
struct Inferred {
    DTypes dtypes;  // the caller, who has the values, checks the bounds
    std::vector<ResultType> results;
};
// Runs dtype and shape rule, then the layout rule (result strides). Attributes must be free of OperandRef. On failure
// the diagnostic names op, operand, constraint Cn, found against expected with symbolic and hinted shape.
Expected<Inferred> infer(const OpDef& op, std::span<const ArgType> args, const Attrs& attrs, ShapeEnv& env,
                         std::vector<Requirement>& requirements, types::Promotion promotion, bool allow_guards,
                         bool settle_layout = false);

// Puts the sizes that data makes into the results of an op inferred from constant types alone; nothing for other ops.
Expected<void> settle_data_sizes(const OpDef& op, ReferenceContext& context, Inferred& inferred);

// Fills the outputs by the native kernel of the op, else by its reference.
Expected<void> run_whole(const OpDef& op, ReferenceContext& context);

}  // namespace flexor::ops
