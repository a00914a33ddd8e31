#include <algorithm>

#include "loopir/loopir.h"
#include "support/diagnostic.h"

namespace flexor::loopir {
namespace {

bool is_half(DType d) { return d == DType::kF16 || d == DType::kBF16; }

Diagnostic broken(const char* promise, std::string found, std::string expected) {
    return Diagnostic(DiagnosticId::kInternalError)
        .operand("loop IR kernel")
        .constraint(promise)
        .found(std::move(found))
        .expected(std::move(expected));
}

#define FLEXOR_PROMISE(promise, condition, found, expected)        \
    do {                                                           \
        if (!(condition)) return broken(promise, found, expected); \
    } while (false)

struct Use {
    std::vector<bool> read;
    std::vector<bool> written;
};

enum class Role : std::uint8_t { kRow, kPrologue, kEpilogue, kAttention };

class BodyVerifier {
public:
    BodyVerifier(const Kernel& kernel, const Body& body, Role role, Use& use)
        : kernel_(kernel), body_(body), role_(role), use_(use) {}

    Status verify() {
        FLEXOR_PROMISE("V1", body_.parallel <= body_.rank(), std::to_string(body_.parallel) + " parallel dims",
                       "at most the rank, " + std::to_string(body_.rank()));
        for (const IntRef& extent : body_.extents) FLEXOR_TRY(check(extent));
        for (std::size_t i = 0; i < body_.nodes.size(); ++i) FLEXOR_TRY(check_node(static_cast<NodeId>(i)));
        for (std::size_t i = 0; i < body_.stages.size(); ++i) FLEXOR_TRY(check_stage(i));
        return {};
    }

    Status check(const IntRef& ref) const {
        FLEXOR_PROMISE("V1", ref.is_constant || (ref.value >= 0 && ref.value < kernel_.param_count),
                       "slot p" + std::to_string(ref.value), std::to_string(kernel_.param_count) + " slots");
        return {};
    }

private:
    // What the value of a node depends on.
    struct Fact {
        std::int64_t last_stage = -1;  // the latest stage whose row value it uses
        bool varies_in_row = false;
    };

    std::string name(NodeId n) const { return "v" + std::to_string(n); }
    DType dtype(NodeId n) const { return body_.nodes[n].dtype; }

    Status check_operand(NodeId n, NodeId user) const {
        FLEXOR_PROMISE("V1", n < body_.nodes.size(), n == kNoNode ? "an absent operand of " + name(user) : name(n),
                       std::to_string(body_.nodes.size()) + " nodes");
        FLEXOR_PROMISE("V2", n < user, name(user) + " uses " + name(n), "operands before users");
        return {};
    }

    void depend(Fact& fact, NodeId n) const {
        fact.last_stage = std::max(fact.last_stage, facts_[n].last_stage);
        fact.varies_in_row |= facts_[n].varies_in_row;
    }

    // An access by `user` (the number of nodes for a stage: all of them precede it).
    Status check_access(const Access& access, NodeId user, DType element, Fact& fact) {
        FLEXOR_PROMISE("V1", access.buffer < kernel_.buffers.size(), "buffer %" + std::to_string(access.buffer),
                       std::to_string(kernel_.buffers.size()) + " buffers");
        FLEXOR_PROMISE("V1", access.strides.size() == body_.rank(), std::to_string(access.strides.size()) + " strides",
                       "one for each of " + std::to_string(body_.rank()) + " dims");
        FLEXOR_TRY(check(access.offset));
        for (std::size_t d = 0; d < access.strides.size(); ++d) {
            FLEXOR_TRY(check(access.strides[d]));
            if (d >= body_.parallel && !access.strides[d].is(0)) fact.varies_in_row = true;
        }
        const DType held = kernel_.buffers[access.buffer].dtype;
        FLEXOR_PROMISE("V3", held == element,
                       std::string(dtype_name(element)) + " for a buffer of " + std::string(dtype_name(held)),
                       "the dtype of the buffer");
        for (const GatherTerm& g : access.gathers) {
            FLEXOR_TRY(check_operand(g.index, user));
            FLEXOR_TRY(check(g.stride));
            FLEXOR_TRY(check(g.extent));
            FLEXOR_PROMISE("V3", dtype(g.index) == DType::kI64 || dtype(g.index) == DType::kI32,
                           "gather index " + name(g.index) + " of dtype " + std::string(dtype_name(dtype(g.index))),
                           "i64 or i32");
            depend(fact, g.index);
        }
        if (access.mask != kNoNode) {
            FLEXOR_TRY(check_operand(access.mask, user));
            FLEXOR_PROMISE("V3", dtype(access.mask) == DType::kBool, "mask " + name(access.mask), "a bool node");
            depend(fact, access.mask);
        }
        return {};
    }

    Status check_node(NodeId n) {
        const Node& node = body_.nodes[n];
        Fact fact;
        for (int i = 0; i < scalar_arity(node.op); ++i) {
            FLEXOR_TRY(check_operand(node.operands[i], n));
            depend(fact, node.operands[i]);
        }
        switch (node.op) {
            case ScalarOp::kConst: break;
            case ScalarOp::kParam:
                FLEXOR_TRY(check(IntRef::slot(node.index)));
                FLEXOR_PROMISE("V3", !is_half(node.dtype),
                               name(n) + " is a param of dtype " + std::string(dtype_name(node.dtype)),
                               "a param of a dtype that computes (L3)");
                break;
            case ScalarOp::kIndex:
                FLEXOR_PROMISE("V1", node.index < body_.rank(), "dim d" + std::to_string(node.index),
                               std::to_string(body_.rank()) + " dims");
                FLEXOR_PROMISE("V3", node.dtype == DType::kI64, name(n) + " is an index of another dtype", "i64");
                fact.varies_in_row |= node.index >= body_.parallel;
                break;
            case ScalarOp::kLoad: {
                FLEXOR_PROMISE("V1", node.index < body_.accesses.size(), "access " + std::to_string(node.index),
                               std::to_string(body_.accesses.size()) + " accesses");
                const Access& access = body_.accesses[node.index];
                FLEXOR_TRY(check_access(access, n, node.dtype, fact));
                use_.read[access.buffer] = true;
                break;
            }
            case ScalarOp::kRowValue: {
                FLEXOR_PROMISE("V1", node.index < body_.stages.size(), "stage s" + std::to_string(node.index),
                               std::to_string(body_.stages.size()) + " stages");
                const Stage& stage = body_.stages[node.index];
                FLEXOR_PROMISE("V4", stage.kind == StageKind::kReduce, name(n) + " is the row value of a store",
                               "a reduce stage");
                FLEXOR_PROMISE("V1", stage.value < body_.nodes.size(), "the value of s" + std::to_string(node.index),
                               std::to_string(body_.nodes.size()) + " nodes");
                const bool is_position = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
                const bool fits = node.dtype == (is_position ? DType::kI64 : dtype(stage.value));
                FLEXOR_PROMISE("V3", fits, name(n) + " has another dtype than s" + std::to_string(node.index),
                               "the dtype of the accumulator");
                fact.last_stage = std::max<std::int64_t>(fact.last_stage, node.index);
                break;
            }
            case ScalarOp::kAccumulator:
                FLEXOR_PROMISE("V7", role_ == Role::kEpilogue, name(n) + " is an accumulator", "an epilogue");
                FLEXOR_PROMISE("V3", node.dtype == kernel_.contraction->accumulator, name(n) + " has another dtype",
                               "the accumulator's dtype");
                break;
            default: FLEXOR_TRY(check_operator(n));
        }
        facts_.push_back(fact);
        return {};
    }

    Status check_operator(NodeId n) const {
        const Node& node = body_.nodes[n];
        const int arity = scalar_arity(node.op);
        const auto same = [&](int first) {
            for (int i = first + 1; i < arity; ++i) {
                if (dtype(node.operands[i]) != dtype(node.operands[first])) return false;
            }
            return true;
        };
        const std::string found = name(n) + " = " + scalar_name(node.op) + " : " + std::string(dtype_name(node.dtype)) +
                                  " of " + std::string(dtype_name(dtype(node.operands[0])));
        const DType operand = dtype(node.operands[0]);
        const bool keeps = same(0) && operand == node.dtype;
        switch (scalar_class(node.op)) {
            case ScalarClass::kLeaf: break;
            case ScalarClass::kArith:
                FLEXOR_PROMISE("V3", keeps && !is_half(operand) && operand != DType::kBool, found,
                               "one dtype of operands and result, neither half nor bool");
                break;
            case ScalarClass::kFloat:
                FLEXOR_PROMISE("V3", keeps && (operand == DType::kF32 || operand == DType::kF64), found,
                               "f32 or f64 operands and result");
                break;
            case ScalarClass::kCompare:
                FLEXOR_PROMISE("V3", same(0) && node.dtype == DType::kBool && !is_half(operand), found,
                               "operands of one dtype that computes, result bool");
                break;
            case ScalarClass::kBits: {
                const bool shifts = node.op == ScalarOp::kShl || node.op == ScalarOp::kShr;
                FLEXOR_PROMISE("V3", keeps && (is_integer(operand) || (operand == DType::kBool && !shifts)), found,
                               "integers, or bool where it is no shift");
                break;
            }
            case ScalarClass::kSelect:
                FLEXOR_PROMISE("V3", operand == DType::kBool && same(1) && dtype(node.operands[1]) == node.dtype, found,
                               "(bool, T, T) -> T");
                break;
            case ScalarClass::kCast: break;
        }
        return {};
    }

    Status check_stage(std::size_t s) {
        const Stage& stage = body_.stages[s];
        const auto end = static_cast<NodeId>(body_.nodes.size());
        const std::string label = "s" + std::to_string(s);
        FLEXOR_TRY(check_operand(stage.value, end));
        const DType value = dtype(stage.value);
        Fact used = facts_[stage.value];
        if (stage.kind == StageKind::kReduce) {
            const bool logical = stage.combine == Combine::kAny || stage.combine == Combine::kAll;
            FLEXOR_PROMISE("V3", logical ? value == DType::kBool : value != DType::kBool && !is_half(value),
                           label + " = reduce " + combine_name(stage.combine) + " of " + std::string(dtype_name(value)),
                           logical ? "bool" : "a dtype that computes");
        } else if (role_ == Role::kPrologue) {
            FLEXOR_PROMISE("V7", !stage.per_row, label + " stores once per row",
                           "the prologue's store in every step of k");
        } else {
            Fact target;
            FLEXOR_TRY(check_access(stage.target, end, value, target));
            use_.written[stage.target.buffer] = true;
            FLEXOR_PROMISE("V5", !stage.per_row || (!target.varies_in_row && !used.varies_in_row),
                           label + " stores once per row what varies within the row",
                           "a value and a place that do not depend on row dims");
            used.last_stage = std::max(used.last_stage, target.last_stage);
        }
        FLEXOR_PROMISE("V4", used.last_stage < static_cast<std::int64_t>(s),
                       label + " uses the row value of s" + std::to_string(used.last_stage), "an earlier stage");
        return {};
    }

    const Kernel& kernel_;
    const Body& body_;
    Role role_;
    Use& use_;
    std::vector<Fact> facts_;
};

class KernelVerifier {
public:
    explicit KernelVerifier(const Kernel& kernel) : kernel_(kernel) {
        use_.read.resize(kernel.buffers.size());
        use_.written.resize(kernel.buffers.size());
    }

    Status verify() {
        const bool is_contraction = kernel_.kind == KernelKind::kContraction;
        const bool is_attention = kernel_.kind == KernelKind::kAttention;
        FLEXOR_PROMISE("V7", kernel_.contraction.has_value() == is_contraction, "a contraction part",
                       "one exactly in a contraction kernel");
        FLEXOR_PROMISE("V7", kernel_.attention.has_value() == is_attention, "an attention part",
                       "one exactly in an attention kernel");
        FLEXOR_PROMISE("V7", kernel_.extern_name.empty() == (kernel_.kind != KernelKind::kExtern),
                       "extern name '" + kernel_.extern_name + "'", "a name exactly in an extern kernel");
        switch (kernel_.kind) {
            case KernelKind::kRow:
                FLEXOR_PROMISE("V7", !kernel_.body.stages.empty(), "a row kernel without a stage", "at least one");
                FLEXOR_TRY(BodyVerifier(kernel_, kernel_.body, Role::kRow, use_).verify());
                break;
            case KernelKind::kContraction: FLEXOR_TRY(check_contraction(*kernel_.contraction)); break;
            case KernelKind::kAttention: FLEXOR_TRY(check_attention(*kernel_.attention)); break;
            case KernelKind::kExtern: return {};  // what it reads and writes is told, not shown
        }
        return check_flags();
    }

private:
    Status check(const IntRef& ref) { return BodyVerifier(kernel_, kernel_.body, Role::kRow, use_).check(ref); }

    Status check_buffer(std::uint32_t buffer, const char* operand) const {
        FLEXOR_PROMISE("V1", buffer < kernel_.buffers.size(),
                       std::string(operand) + " in buffer %" + std::to_string(buffer),
                       std::to_string(kernel_.buffers.size()) + " buffers");
        return {};
    }

    Status check_matrix(const MatrixOperand& m, DType dtype, std::uint32_t batch_dims, const char* name) {
        FLEXOR_TRY(check_buffer(m.buffer, name));
        FLEXOR_PROMISE("V1", m.batch_strides.size() == batch_dims,
                       std::string(name) + " has " + std::to_string(m.batch_strides.size()) + " batch strides",
                       std::to_string(batch_dims));
        for (const IntRef& stride : m.batch_strides) FLEXOR_TRY(check(stride));
        for (const IntRef& ref : {m.offset, m.row_stride, m.col_stride}) FLEXOR_TRY(check(ref));
        FLEXOR_PROMISE("V3", kernel_.buffers[m.buffer].dtype == dtype,
                       std::string(name) + " of dtype " + std::string(dtype_name(dtype)), "the dtype of its buffer");
        use_.read[m.buffer] = true;
        return {};
    }

    Status check_contraction(const Contraction& c) {
        for (const IntRef& ref : {c.m, c.n, c.k}) FLEXOR_TRY(check(ref));
        FLEXOR_PROMISE("V3", !is_half(c.accumulator) && c.accumulator != DType::kBool,
                       "an accumulator of dtype " + std::string(dtype_name(c.accumulator)), "a dtype that computes");
        FLEXOR_TRY(check_matrix(c.b, c.b_dtype, c.batch_dims, "b"));
        FLEXOR_PROMISE("V7", !c.a.packed, "a packed operand a", "b alone may be packed");
        if (c.prologue) {
            const Body& p = *c.prologue;
            FLEXOR_TRY(BodyVerifier(kernel_, p, Role::kPrologue, use_).verify());
            FLEXOR_PROMISE("V7",
                           p.parallel == c.batch_dims + 1 && p.rank() == p.parallel + 1 &&
                               p.extents[c.batch_dims] == c.m && p.extents.back() == c.k,
                           "a prologue over other dims", "[batch.., m | k]");
            const auto stores = std::count_if(p.stages.begin(), p.stages.end(),
                                              [](const Stage& s) { return s.kind == StageKind::kStore; });
            FLEXOR_PROMISE("V7", stores == 1, std::to_string(stores) + " stores in the prologue", "one");
            for (const Stage& stage : p.stages) {
                if (stage.kind != StageKind::kStore) continue;
                FLEXOR_PROMISE("V3", p.nodes[stage.value].dtype == c.a_dtype, "the prologue's value", "a's dtype");
            }
        } else {
            FLEXOR_TRY(check_matrix(c.a, c.a_dtype, c.batch_dims, "a"));
        }
        const Body& e = kernel_.body;
        FLEXOR_TRY(BodyVerifier(kernel_, e, Role::kEpilogue, use_).verify());
        FLEXOR_PROMISE("V7",
                       e.rank() == c.batch_dims + 2 && e.parallel == e.rank() && e.extents[c.batch_dims] == c.m &&
                           e.extents[c.batch_dims + 1] == c.n,
                       "an epilogue over other dims", "[batch.., m, n |]");
        if (c.prologue) {
            FLEXOR_PROMISE("V7",
                           std::equal(e.extents.begin(), e.extents.begin() + c.batch_dims, c.prologue->extents.begin()),
                           "a prologue over other batch dims", "those of the epilogue");
        }
        FLEXOR_PROMISE(
            "V7",
            std::any_of(e.stages.begin(), e.stages.end(), [](const Stage& s) { return s.kind == StageKind::kStore; }),
            "an epilogue without a store", "at least one");
        return {};
    }

    Status check_strided(const StridedOperand& o, const char* name, std::size_t rank, DType dtype,
                         bool any_dtype = false) {
        FLEXOR_TRY(check_buffer(o.buffer, name));
        FLEXOR_TRY(check(o.offset));
        FLEXOR_PROMISE("V1", o.strides.size() == rank,
                       std::string(name) + " has " + std::to_string(o.strides.size()) + " strides",
                       std::to_string(rank));
        for (const IntRef& stride : o.strides) FLEXOR_TRY(check(stride));
        FLEXOR_PROMISE(
            "V3", any_dtype || kernel_.buffers[o.buffer].dtype == dtype,
            std::string(name) + " in a buffer of " + std::string(dtype_name(kernel_.buffers[o.buffer].dtype)),
            std::string(dtype_name(dtype)));
        return {};
    }

    Status check_attention(const Attention& a) {
        FLEXOR_TRY(BodyVerifier(kernel_, kernel_.body, Role::kAttention, use_).verify());
        FLEXOR_PROMISE("V7", kernel_.body.stages.empty() && kernel_.body.extents.empty(),
                       "stages or dims beside attention", "none");
        for (const IntRef& ref : {a.batch, a.heads, a.kv_heads, a.q_len, a.kv_len, a.head_dim, a.value_dim}) {
            FLEXOR_TRY(check(ref));
        }
        FLEXOR_PROMISE("V3", is_floating(a.dtype), "attention in " + std::string(dtype_name(a.dtype)),
                       "a floating dtype");
        const std::pair<const char*, const StridedOperand*> reads[] = {{"q", &a.q}, {"k", &a.k}, {"v", &a.v}};
        for (const auto& [name, operand] : reads) {
            FLEXOR_TRY(check_strided(*operand, name, 4, a.dtype));
            use_.read[operand->buffer] = true;
        }
        FLEXOR_TRY(check_strided(a.out, "out", 4, a.dtype));
        use_.written[a.out.buffer] = true;
        const bool wants_mask = a.mask_kind == MaskKind::kBoolean || a.mask_kind == MaskKind::kAdditive;
        FLEXOR_PROMISE("V7", a.mask.has_value() == wants_mask, "a mask operand",
                       "one exactly for boolean and additive masks");
        if (a.mask) {
            FLEXOR_TRY(check_strided(*a.mask, "mask", 4, DType::kBool, a.mask_kind == MaskKind::kAdditive));
            FLEXOR_PROMISE("V3",
                           a.mask_kind == MaskKind::kBoolean || is_floating(kernel_.buffers[a.mask->buffer].dtype),
                           "an additive mask of integers", "a floating dtype");
            use_.read[a.mask->buffer] = true;
        }
        if (a.lengths) {
            FLEXOR_TRY(check_strided(*a.lengths, "lengths", 1, DType::kI64));
            use_.read[a.lengths->buffer] = true;
        }
        if (a.scale == kNoNode) return {};
        FLEXOR_PROMISE("V1", a.scale < kernel_.body.nodes.size(), "the scale", "a node of the body");
        const Node& scale = kernel_.body.nodes[a.scale];
        FLEXOR_PROMISE("V7", scale.op == ScalarOp::kConst || scale.op == ScalarOp::kParam,
                       std::string("scale = ") + scalar_name(scale.op), "const or param");
        FLEXOR_PROMISE("V3", scale.dtype == DType::kF32 || scale.dtype == DType::kF64, "scale of another dtype",
                       "f32 or f64");
        return {};
    }

    Status check_flags() const {
        for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
            const BufferParam& b = kernel_.buffers[i];
            const auto flags = [](bool read, bool written) {
                return std::string(read ? "read" : "not read") + ", " + (written ? "written" : "not written");
            };
            FLEXOR_PROMISE("V6", b.read == use_.read[i] && b.written == use_.written[i],
                           "buffer %" + std::to_string(i) + " is marked " + flags(b.read, b.written),
                           flags(use_.read[i], use_.written[i]));
        }
        return {};
    }

    const Kernel& kernel_;
    Use use_;
};

#undef FLEXOR_PROMISE

}  // namespace

Expected<void> verify(const Kernel& kernel) { return KernelVerifier(kernel).verify(); }

}  // namespace flexor::loopir
