#include "loopir/kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/check.h"
#include "support/hash.h"
#include "types/half.h"

namespace flexor::loopir {
namespace {

struct ScalarRow {
    ScalarOp op;
    const char* name;
    int arity;
    ScalarClass klass;
};

constexpr ScalarRow kScalarRows[] = {
    {ScalarOp::kConst, "const", 0, ScalarClass::kLeaf},
    {ScalarOp::kParam, "param", 0, ScalarClass::kLeaf},
    {ScalarOp::kIndex, "index", 0, ScalarClass::kLeaf},
    {ScalarOp::kLoad, "load", 0, ScalarClass::kLeaf},
    {ScalarOp::kRowValue, "row_value", 0, ScalarClass::kLeaf},
    {ScalarOp::kAccumulator, "accumulator", 0, ScalarClass::kLeaf},
#define X(enumerator, text, arity, klass) {ScalarOp::enumerator, text, arity, ScalarClass::klass},
#include "loopir/scalar_ops.def"
#undef X
};

const ScalarRow& row(ScalarOp op) {
    const auto index = static_cast<std::size_t>(op);
    FLEXOR_CHECK(index < std::size(kScalarRows) && kScalarRows[index].op == op);
    return kScalarRows[index];
}

// An integer as the dtype holds it.
std::int64_t wrapped(DType dtype, std::int64_t value) {
    switch (dtype) {
        case DType::kBool: return value != 0;
        case DType::kU8: return static_cast<std::uint8_t>(value);
        case DType::kI8: return static_cast<std::int8_t>(value);
        case DType::kI32: return static_cast<std::int32_t>(value);
        default: return value;
    }
}

double rounded(DType dtype, double value) {
    switch (dtype) {
        case DType::kF16: return types::f32_from_f16(types::f16_from_f64(value));
        case DType::kBF16: return types::f32_from_bf16(types::bf16_from_f64(value));
        case DType::kF32: return static_cast<float>(value);
        default: return value;
    }
}

std::int64_t float_bits(DType dtype, double value) {
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // one NaN, so that NaNs are one value
    return std::bit_cast<std::int64_t>(rounded(dtype, value));
}

// Every value of `from` is a value of `to`.
bool is_lossless(DType from, DType to) {
    if (from == to || from == DType::kBool) return true;
    switch (from) {
        case DType::kU8:
        case DType::kI8: return to == DType::kI32 || to == DType::kI64 || is_floating(to);
        case DType::kI32: return to == DType::kI64 || to == DType::kF64;
        case DType::kF16:
        case DType::kBF16: return to == DType::kF32 || to == DType::kF64;
        case DType::kF32: return to == DType::kF64;
        default: return false;
    }
}

bool is_commutative(ScalarOp op) {
    switch (op) {
        case ScalarOp::kAdd:
        case ScalarOp::kMul:
        case ScalarOp::kEq:
        case ScalarOp::kNe:
        case ScalarOp::kAnd:
        case ScalarOp::kOr:
        case ScalarOp::kXor: return true;
        default: return false;
    }
}

}  // namespace

int scalar_arity(ScalarOp op) { return row(op).arity; }
ScalarClass scalar_class(ScalarOp op) { return row(op).klass; }
const char* scalar_name(ScalarOp op) { return row(op).name; }

const char* combine_name(Combine combine) {
    switch (combine) {
        case Combine::kSum: return "sum";
        case Combine::kProd: return "prod";
        case Combine::kMax: return "max";
        case Combine::kMin: return "min";
        case Combine::kAny: return "any";
        case Combine::kAll: return "all";
        case Combine::kArgMax: return "argmax";
        case Combine::kArgMin: return "argmin";
    }
    FLEXOR_UNREACHABLE();
}

bool may_fault(const Body& body) {
    const auto divides = [&](const Node& node) {
        switch (node.op) {
            case ScalarOp::kFloorDiv:
            case ScalarOp::kTruncDiv:
            case ScalarOp::kFloorMod:
            case ScalarOp::kTruncMod: break;
            default: return false;
        }
        const Node& divisor = body.nodes[node.operands[1]];
        return !is_floating(node.dtype) && (divisor.op != ScalarOp::kConst || divisor.constant_bits == 0);
    };
    return std::any_of(body.nodes.begin(), body.nodes.end(), divides) ||
           std::any_of(body.accesses.begin(), body.accesses.end(),
                       [](const Access& a) { return !a.gathers.empty(); }) ||
           std::any_of(body.stages.begin(), body.stages.end(), [](const Stage& stage) {
               return stage.kind == StageKind::kStore && !stage.target.gathers.empty();
           });
}

Traffic traffic(const Kernel& kernel) {
    Traffic out;
    for (const BufferParam& buffer : kernel.buffers) {
        out.reads += buffer.read;
        out.writes += buffer.written;
    }
    return out;
}

// ---------------------------------------------------------------- identity

namespace {

class KernelHasher {
public:
    std::size_t operator()(const Kernel& kernel) {
        add(kernel.kind);
        add(kernel.param_count);
        add(kernel.buffers.size());
        for (const BufferParam& buffer : kernel.buffers) {
            add(buffer.dtype);
            add(buffer.read);
            add(buffer.written);
        }
        add(kernel.body);
        add(kernel.contraction.has_value());
        if (kernel.contraction) add(*kernel.contraction);
        add(kernel.attention.has_value());
        if (kernel.attention) add(*kernel.attention);
        add(support::hash_bytes(std::string_view(kernel.extern_name)));
        return hash_;
    }

private:
    template <class T>
        requires(std::is_integral_v<T> || std::is_enum_v<T>)
    void add(T value) {
        hash_ = support::hash_combine(hash_, static_cast<std::uint64_t>(value));
    }
    template <class T>
    void add(const std::vector<T>& items) {
        add(items.size());
        for (const T& item : items) add(item);
    }
    void add(const IntRef& ref) {
        add(ref.is_constant);
        add(ref.value);
    }
    void add(const Node& node) {
        add(node.op);
        add(node.dtype);
        for (const NodeId operand : node.operands) add(operand);
        add(node.index);
        add(node.constant_bits);
    }
    void add(const GatherTerm& gather) {
        add(gather.index);
        add(gather.stride);
        add(gather.extent);
        add(gather.wrap_negative);
    }
    void add(const Access& access) {
        add(access.buffer);
        add(access.offset);
        add(access.strides);
        add(access.gathers);
        add(access.mask);
    }
    void add(const Stage& stage) {
        add(stage.kind);
        add(stage.value);
        add(stage.combine);
        add(stage.target);
        add(stage.per_row);
    }
    void add(const Body& body) {
        add(body.extents);
        add(body.parallel);
        add(body.nodes);
        add(body.accesses);
        add(body.stages);
    }
    void add(const MatrixOperand& m) {
        add(m.buffer);
        add(m.offset);
        add(m.batch_strides);
        add(m.row_stride);
        add(m.col_stride);
        add(m.packed);
    }
    void add(const Contraction& c) {
        add(c.batch_dims);
        for (const IntRef& extent : {c.m, c.n, c.k}) add(extent);
        for (const DType dtype : {c.a_dtype, c.b_dtype, c.accumulator}) add(dtype);
        add(c.a);
        add(c.b);
        add(c.prologue.has_value());
        if (c.prologue) add(*c.prologue);
    }
    void add(const StridedOperand& operand) {
        add(operand.buffer);
        add(operand.offset);
        add(operand.strides);
    }
    void add(const Attention& a) {
        for (const IntRef& e : {a.batch, a.heads, a.kv_heads, a.q_len, a.kv_len, a.head_dim, a.value_dim}) add(e);
        for (const StridedOperand* o : {&a.q, &a.k, &a.v, &a.out}) add(*o);
        add(a.mask_kind);
        add(a.mask.has_value());
        if (a.mask) add(*a.mask);
        add(a.lengths.has_value());
        if (a.lengths) add(*a.lengths);
        add(a.scale);
        add(a.fully_masked);
        add(a.dtype);
    }

    std::uint64_t hash_ = 0;
};

}  // namespace

std::size_t structural_hash(const Kernel& kernel) { return KernelHasher()(kernel); }

bool structurally_equal(const Kernel& a, const Kernel& b) {
    const auto same_buffer = [](const BufferParam& x, const BufferParam& y) {
        return x.dtype == y.dtype && x.read == y.read && x.written == y.written;
    };
    return a.kind == b.kind && a.param_count == b.param_count && a.extern_name == b.extern_name &&
           std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), same_buffer) &&
           a.body == b.body && a.contraction == b.contraction && a.attention == b.attention;
}

// ---------------------------------------------------------------- BodyBuilder

NodeId BodyBuilder::append(Node node) {
    Node swapped = node;
    std::swap(swapped.operands[0], swapped.operands[1]);
    const bool commutes = is_commutative(node.op);
    for (std::size_t i = body_.nodes.size(); i-- > 0;) {
        if (body_.nodes[i] == node || (commutes && body_.nodes[i] == swapped)) return static_cast<NodeId>(i);
    }
    body_.nodes.push_back(node);
    return static_cast<NodeId>(body_.nodes.size() - 1);
}

NodeId BodyBuilder::constant(DType dtype, double value) {
    Node node{ScalarOp::kConst, dtype};
    if (is_floating(dtype)) {
        node.constant_bits = float_bits(dtype, value);
    } else {
        node.constant_bits = dtype == DType::kBool ? value != 0 : wrapped(dtype, static_cast<std::int64_t>(value));
    }
    return append(node);
}

NodeId BodyBuilder::constant_int(DType dtype, std::int64_t value) {
    if (is_floating(dtype)) return constant(dtype, static_cast<double>(value));
    Node node{ScalarOp::kConst, dtype};
    node.constant_bits = wrapped(dtype, value);
    return append(node);
}

NodeId BodyBuilder::param(DType dtype, std::uint32_t slot) {
    Node node{ScalarOp::kParam, dtype};
    node.index = slot;
    return append(node);
}

NodeId BodyBuilder::index(std::uint32_t dim) {
    Node node{ScalarOp::kIndex, DType::kI64};
    node.index = dim;
    return append(node);
}

NodeId BodyBuilder::load(DType dtype, Access access) {
    Node node{ScalarOp::kLoad, dtype};
    const auto known = std::find(body_.accesses.begin(), body_.accesses.end(), access);
    node.index = static_cast<std::uint32_t>(known - body_.accesses.begin());
    if (known == body_.accesses.end()) body_.accesses.push_back(std::move(access));
    return append(node);
}

NodeId BodyBuilder::row_value(DType dtype, std::uint32_t stage) {
    Node node{ScalarOp::kRowValue, dtype};
    node.index = stage;
    return append(node);
}

NodeId BodyBuilder::accumulator(DType dtype) { return append({ScalarOp::kAccumulator, dtype}); }

NodeId BodyBuilder::unary(ScalarOp op, NodeId a) {
    FLEXOR_DCHECK(scalar_arity(op) == 1 && op != ScalarOp::kCast);
    const DType result = scalar_class(op) == ScalarClass::kCompare ? DType::kBool : dtype(a);
    return append({op, result, {a, kNoNode, kNoNode}});
}

NodeId BodyBuilder::binary(ScalarOp op, NodeId a, NodeId b) {
    FLEXOR_DCHECK(scalar_arity(op) == 2 && dtype(a) == dtype(b));
    const DType type = dtype(a);
    if (scalar_class(op) == ScalarClass::kCompare) return append({op, DType::kBool, {a, b, kNoNode}});
    if (is_integer(type)) {
        const auto value = [&](NodeId n) -> std::optional<std::int64_t> {
            const Node& node = body_.nodes[n];
            return node.op == ScalarOp::kConst ? std::optional(node.constant_bits) : std::nullopt;
        };
        const auto x = value(a);
        const auto y = value(b);
        const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
        switch (op) {
            case ScalarOp::kAdd:
                if (x && y) return constant_int(type, static_cast<std::int64_t>(u(*x) + u(*y)));
                if (x == 0) return b;
                if (y == 0) return a;
                break;
            case ScalarOp::kSub:
                if (x && y) return constant_int(type, static_cast<std::int64_t>(u(*x) - u(*y)));
                if (y == 0) return a;
                break;
            case ScalarOp::kMul:
                if (x && y) return constant_int(type, static_cast<std::int64_t>(u(*x) * u(*y)));
                if (x == 1) return b;
                if (y == 1) return a;
                break;
            case ScalarOp::kFloorDiv:
            case ScalarOp::kTruncDiv:
                if (y == 1) return a;
                break;
            case ScalarOp::kMax:
            case ScalarOp::kMin:
            case ScalarOp::kMaxNum:
            case ScalarOp::kMinNum:
                if (a == b) return a;
                break;
            default: break;
        }
    }
    if ((op == ScalarOp::kAnd || op == ScalarOp::kOr) && a == b) return a;
    return append({op, type, {a, b, kNoNode}});
}

NodeId BodyBuilder::fma(NodeId a, NodeId b, NodeId c) { return append({ScalarOp::kFma, dtype(a), {a, b, c}}); }

NodeId BodyBuilder::select(NodeId condition, NodeId a, NodeId b) {
    FLEXOR_DCHECK(dtype(condition) == DType::kBool && dtype(a) == dtype(b));
    if (a == b) return a;
    const Node& node = body_.nodes[condition];
    if (node.op == ScalarOp::kConst) return node.constant_bits != 0 ? a : b;
    return append({ScalarOp::kSelect, dtype(a), {condition, a, b}});
}

NodeId BodyBuilder::cast(NodeId a, DType to) {
    const Node node = body_.nodes[a];
    if (node.dtype == to) return a;
    if (node.op == ScalarOp::kConst) {
        if (is_floating(node.dtype) && is_floating(to)) {
            return constant(to, std::bit_cast<double>(node.constant_bits));
        }
        if (!is_floating(node.dtype) && !is_floating(to)) return constant_int(to, node.constant_bits);
        const std::int64_t exact = std::int64_t{1} << 24;  // integers that every rounding on the way keeps as f32 does
        if (!is_floating(node.dtype) && -exact <= node.constant_bits && node.constant_bits <= exact) {
            return constant(to, static_cast<double>(node.constant_bits));
        }
    }
    if (node.op == ScalarOp::kCast) {
        // A widening loses nothing, so what follows it may start from its operand.
        const DType source = dtype(node.operands[0]);
        if (source == to && is_lossless(source, node.dtype)) return node.operands[0];
    }
    return append({ScalarOp::kCast, to, {a, kNoNode, kNoNode}});
}

std::uint32_t BodyBuilder::reduce(Combine combine, NodeId value) {
    Stage stage{};
    stage.kind = StageKind::kReduce;
    stage.value = value;
    stage.combine = combine;
    body_.stages.push_back(std::move(stage));
    return static_cast<std::uint32_t>(body_.stages.size() - 1);
}

void BodyBuilder::store(NodeId value, Access target, bool per_row) {
    Stage stage{};
    stage.kind = StageKind::kStore;
    stage.value = value;
    stage.target = std::move(target);
    stage.per_row = per_row;
    body_.stages.push_back(std::move(stage));
}

}  // namespace flexor::loopir
