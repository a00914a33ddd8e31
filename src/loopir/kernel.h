#pragma once
// The loop IR: what one launch computes, without a schedule (no tiles, no vector width, no threads).
//
// A Body is a rectangular iteration space: `parallel` leading dims, then row dims. For each parallel index the stages
// run in order; every stage loops over the whole row space. A reduce stage leaves one value per row (kRowValue), a
// store stage writes.
//
// Laws
//  L1  A stage may use a kRowValue only of an earlier reduce stage.
//  L2  Rows are independent: no stage reads what another row wrote. A buffer that is both loaded and stored by a kernel
//      is either accessed by identical (access, index) pairs, or the two accesses do not overlap.
//  L3  dtypes are explicit. Arithmetic on f16 and bf16 does not exist: nodes compute in f32 between casts; a rounding
//      point is a cast.
//  L4  Reduce order is free (tree); the result of a sum over zero trips is 0, prod 1, max/min the identity
//      (-inf/lowest, +inf/highest), any 0, all 1.
//  L5  Contraction of mul and add to fma is allowed; no other reassociation outside reduce stages.
//  L6  Integers of a kernel (extents, strides, offsets) are constants or slots of the launch's int64 array: one
//      compilation serves all sizes.
//  L7  Extents may be 0. A gathered index is checked against its extent: out of range sets the fault flag of the launch
//      and reads element 0 of nothing (the load gives 0, the store is dropped).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flexor/dtype.h"
#include "types/attr.h"

namespace flexor::loopir {

// A constant, or slot `value` of the launch's parameter array.
struct IntRef {
    bool is_constant = true;
    std::int64_t value = 0;
    static IntRef constant(std::int64_t v) { return {true, v}; }
    static IntRef slot(std::int64_t s) { return {false, s}; }
    bool is(std::int64_t v) const { return is_constant && value == v; }
    friend bool operator==(const IntRef&, const IntRef&) = default;
};

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

enum class ScalarOp : std::uint8_t {
    kConst,        // constant_bits: int64 for integers and bool, double bits for floats
    kParam,        // slot `index` of the parameter array: int64, or double bits when dtype is floating
    kIndex,        // iteration index of dim `index`, i64
    kLoad,         // accesses[index]
    kRowValue,     // result of reduce stage `index`
    kAccumulator,  // contraction epilogue only: the dot product at (batch, m, n)
#define X(enumerator, text, arity, klass) enumerator,
#include "loopir/scalar_ops.def"
#undef X
};

enum class ScalarClass : std::uint8_t { kLeaf, kArith, kFloat, kCompare, kBits, kSelect, kCast };
int scalar_arity(ScalarOp op);  // 0 for leaves
ScalarClass scalar_class(ScalarOp op);
const char* scalar_name(ScalarOp op);

struct Node {
    ScalarOp op;
    DType dtype;  // of the result
    NodeId operands[3] = {kNoNode, kNoNode, kNoNode};
    std::uint32_t index = 0;  // leaves, see ScalarOp
    std::int64_t constant_bits = 0;
    friend bool operator==(const Node&, const Node&) = default;
};

// Adds index * stride elements to an address; index (i64 or i32 node) must lie in [0, extent), or in [-extent, extent)
// if wrap_negative.
struct GatherTerm {
    NodeId index;
    IntRef stride;
    IntRef extent;
    bool wrap_negative = false;
    friend bool operator==(const GatherTerm&, const GatherTerm&) = default;
};

// Element address in a buffer: offset + sum over dims of index[d] * strides[d] + gathered terms. All in elements of the
// buffer's dtype.
struct Access {
    std::uint32_t buffer = 0;
    IntRef offset;
    std::vector<IntRef> strides;  // one per dim of the body; constant 1 and 0 are facts codegen may use
    std::vector<GatherTerm> gathers;
    NodeId mask = kNoNode;  // bool node: where false, a load gives 0 without touching memory, a store does nothing
    friend bool operator==(const Access&, const Access&) = default;
};

enum class Combine : std::uint8_t {
    kSum,
    kProd,
    kMax,
    kMin,
    kAny,
    kAll,
    kArgMax,
    kArgMin
};  // max/min let NaN win; arg*: first position, NaN wins, result i64 position in the row space (row-major)

enum class StageKind : std::uint8_t { kReduce, kStore };
struct Stage {
    StageKind kind;
    NodeId value;
    Combine combine = Combine::kSum;  // kReduce; the accumulator has the dtype of `value` (bool for any/all)
    Access target;                    // kStore; the buffer's dtype equals the dtype of `value`
    bool per_row = false;  // kStore once per row: `value` does not vary along row dims and target strides of row dims
                           // are constant 0
    friend bool operator==(const Stage&, const Stage&) = default;
};

struct Body {
    std::vector<IntRef> extents;  // parallel dims first
    std::uint32_t parallel = 0;
    std::vector<Node> nodes;  // operands precede users
    std::vector<Access> accesses;
    std::vector<Stage> stages;
    std::uint32_t rank() const { return static_cast<std::uint32_t>(extents.size()); }
    friend bool operator==(const Body&, const Body&) = default;
};

struct BufferParam {
    std::string name;
    DType dtype;
    bool read = false;
    bool written = false;
};

// One operand of a contraction. Strides in elements, 0 broadcasts.
struct MatrixOperand {
    std::uint32_t buffer = 0;
    IntRef offset;
    std::vector<IntRef> batch_strides;
    IntRef row_stride;    // a: per m;  b: per k
    IntRef col_stride;    // a: per k;  b: per n
    bool packed = false;  // b only: the buffer is a packed weight (strides describe the matrix it was packed from)
    friend bool operator==(const MatrixOperand&, const MatrixOperand&) = default;
};

// acc[batch.., m, n] = sum over k of a[batch.., m, k] * b[batch.., k, n], accumulated in `accumulator`; then the
// kernel's body, whose dims are [batch.., m, n] (all parallel) and whose kAccumulator leaf is acc, runs as the epilogue
// and holds the stores. With a prologue, a's rows are computed: dims [batch.., m | k], exactly one store stage (not
// per_row) whose target is ignored; its value has dtype `a_dtype`.
struct Contraction {
    std::uint32_t batch_dims = 0;
    IntRef m, n, k;
    DType a_dtype, b_dtype, accumulator;
    MatrixOperand a, b;
    std::optional<Body> prologue;
    friend bool operator==(const Contraction&, const Contraction&) = default;
};

// kCausal: key j exists for query i if j <= i. kAdditive: added to the scaled score. kBoolean: -inf is added where
// false (so that NaN stays NaN).
enum class MaskKind : std::uint8_t { kNone, kCausal, kBoolean, kAdditive };

// What a query gives whose scores are all -inf, or that has no key.
enum class FullyMasked : std::uint8_t { kZero, kNan };

// out[b,h,i,:] = softmax(scale * q[b,h,i,:] . k[b,h/group,j,:] + mask) v ; dims q [B,H,Sq,D], k [B,Hk,Sk,D], v
// [B,Hk,Sk,Dv], all with strides per dim.
struct StridedOperand {
    std::uint32_t buffer = 0;
    IntRef offset;
    std::vector<IntRef> strides;
    friend bool operator==(const StridedOperand&, const StridedOperand&) = default;
};
struct Attention {
    IntRef batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim;
    StridedOperand q, k, v, out;
    MaskKind mask_kind = MaskKind::kNone;
    std::optional<StridedOperand> mask;     // 4 strides [B,H,Sq,Sk], 0 broadcasts
    std::optional<StridedOperand> lengths;  // i64[B] stride: keys at and after the length do not exist
    NodeId scale = kNoNode;  // node of the body (kConst or kParam), f32 or f64; kNoNode: 1 / sqrt(head_dim)
    FullyMasked fully_masked = FullyMasked::kZero;
    DType dtype;
    friend bool operator==(const Attention&, const Attention&) = default;
};

enum class KernelKind : std::uint8_t { kRow, kContraction, kAttention, kExtern };

struct Kernel {
    std::string name;  // function:line:kind, for people; not part of identity
    KernelKind kind = KernelKind::kRow;
    std::vector<BufferParam> buffers;
    std::uint32_t param_count = 0;  // slots of the int64 parameter array
    Body body;                      // kRow: the kernel; kContraction: the epilogue; kAttention: only the scale node
    std::optional<Contraction> contraction;
    std::optional<Attention> attention;
    std::string
        extern_name;  // kExtern: implementation in runtime/kernels, called with the buffers and params as they are
};

// Rounds of memory traffic: distinct buffers read, and distinct buffers written.
struct Traffic {
    int reads = 0;
    int writes = 0;
};
Traffic traffic(const Kernel& kernel);

std::size_t structural_hash(const Kernel& kernel);          // without names
bool structurally_equal(const Kernel& a, const Kernel& b);  // without names

// Whether a run of the body may set the fault flag: a gathered index out of range, an integer divided by what may be 0.
bool may_fault(const Body& body);

const char* combine_name(Combine combine);

// Appends nodes with local value numbering, and folds what changes no bit of any result: integer identities and
// constants, casts that undo a widening, selects that choose one value. Float arithmetic is never folded.
class BodyBuilder {
public:
    explicit BodyBuilder(Body& body) : body_(body) {}
    NodeId constant(DType dtype, double value);
    NodeId constant_int(DType dtype, std::int64_t value);
    NodeId param(DType dtype, std::uint32_t slot);
    NodeId index(std::uint32_t dim);
    NodeId load(DType dtype, Access access);
    NodeId row_value(DType dtype, std::uint32_t stage);
    NodeId accumulator(DType dtype);
    NodeId unary(ScalarOp op, NodeId a);  // result dtype derived: same, or bool for kCompare
    NodeId binary(ScalarOp op, NodeId a, NodeId b);
    NodeId fma(NodeId a, NodeId b, NodeId c);
    NodeId select(NodeId condition, NodeId a, NodeId b);
    NodeId cast(NodeId a, DType to);  // no node if the dtype is already `to`
    DType dtype(NodeId n) const { return body_.nodes[n].dtype; }
    std::uint32_t reduce(Combine combine, NodeId value);  // returns the stage index for row_value
    void store(NodeId value, Access target, bool per_row);
    Body& body() { return body_; }

private:
    NodeId append(Node node);
    Body& body_;
};

}  // namespace flexor::loopir
