#include <bit>

#include "loopir/loopir.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::loopir {
namespace {

std::string text(const IntRef& ref) { return (ref.is_constant ? "" : "p") + std::to_string(ref.value); }

std::string list(const std::vector<IntRef>& refs) {
    return "[" + support::join(refs, ", ", [](const IntRef& r) { return text(r); }) + "]";
}

std::string node_name(NodeId n) { return n == kNoNode ? "none" : "v" + std::to_string(n); }
std::string buffer_name(std::uint32_t b) { return "%" + std::to_string(b); }

// Kernel and buffer names are free text; plain ones stand without quotes.
std::string name_text(const std::string& name) {
    bool plain = !name.empty();
    for (const char c : name) {
        plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                 c == ':' || c == '-';
    }
    // A colon ends the name of a buffer.
    return plain && name.back() != ':' ? name : support::quote(name);
}

std::string place_text(std::uint32_t buffer, const IntRef& offset, const std::vector<IntRef>& strides) {
    std::string out = buffer_name(buffer);
    if (!offset.is(0)) out += " + " + text(offset);
    return out + " " + list(strides);
}

std::string text(const Access& access) {
    std::string out = place_text(access.buffer, access.offset, access.strides);
    for (const GatherTerm& g : access.gathers) {
        out += " gather " + node_name(g.index) + " * " + text(g.stride) + " of " + text(g.extent);
        if (g.wrap_negative) out += " wrap";
    }
    if (access.mask != kNoNode) out += " mask " + node_name(access.mask);
    return out;
}

std::string text(const Body& body, const Node& node) {
    std::string out = scalar_name(node.op);
    switch (node.op) {
        case ScalarOp::kConst:
            out += " " + (is_floating(node.dtype) ? support::text_from_double(std::bit_cast<double>(node.constant_bits))
                                                  : std::to_string(node.constant_bits));
            break;
        case ScalarOp::kParam: out += " p" + std::to_string(node.index); break;
        case ScalarOp::kIndex: out += " d" + std::to_string(node.index); break;
        case ScalarOp::kLoad:
            out += node.index < body.accesses.size() ? " " + text(body.accesses[node.index]) : " none";
            break;
        case ScalarOp::kRowValue: out += " s" + std::to_string(node.index); break;
        default:
            for (int i = 0; i < scalar_arity(node.op); ++i) {
                out += (i == 0 ? " " : ", ") + node_name(node.operands[i]);
            }
    }
    return out + " : " + std::string(dtype_name(node.dtype));
}

std::string text(const Stage& stage) {
    if (stage.kind == StageKind::kReduce) {
        return std::string("reduce ") + combine_name(stage.combine) + " " + node_name(stage.value);
    }
    return std::string("store ") + (stage.per_row ? "per_row " : "") + text(stage.target) + " " +
           node_name(stage.value);
}

std::string dims(const Body& body) {
    const auto at = body.extents.begin() + std::min<std::ptrdiff_t>(body.parallel, body.rank());
    return "parallel " + list({body.extents.begin(), at}) + " row " + list({at, body.extents.end()});
}

// Nodes and stages; a row value follows the stage that makes it.
std::string lines(const Body& body, const std::string& indent) {
    std::string out;
    std::size_t next_stage = 0;
    const auto print_stage = [&] {
        out += indent + "s" + std::to_string(next_stage) + " = " + text(body.stages[next_stage]) + "\n";
        ++next_stage;
    };
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
        const Node& node = body.nodes[i];
        const auto is_printable = [&] {
            const Stage& stage = body.stages[next_stage];
            if (stage.value >= i && stage.value != kNoNode) return false;
            for (const GatherTerm& g : stage.target.gathers) {
                if (g.index >= i && g.index != kNoNode) return false;
            }
            return stage.target.mask == kNoNode || stage.target.mask < i;
        };
        if (node.op == ScalarOp::kRowValue) {
            while (next_stage <= node.index && next_stage < body.stages.size() && is_printable()) print_stage();
        }
        out += indent + "v" + std::to_string(i) + " = " + text(body, node) + "\n";
    }
    while (next_stage < body.stages.size()) print_stage();
    return out;
}

std::string_view mask_name(MaskKind kind) {
    switch (kind) {
        case MaskKind::kNone: return "none";
        case MaskKind::kCausal: return "causal";
        case MaskKind::kBoolean: return "boolean";
        case MaskKind::kAdditive: return "additive";
    }
    FLEXOR_UNREACHABLE();
}

std::string text(const MatrixOperand& m, DType dtype) {
    std::string out = buffer_name(m.buffer);
    if (m.packed) out += " packed";
    out += " : " + std::string(dtype_name(dtype));
    if (!m.offset.is(0)) out += " + " + text(m.offset);
    return out + " " + list(m.batch_strides) + " row " + text(m.row_stride) + " col " + text(m.col_stride) + "\n";
}

std::string text(const Contraction& c, const Body& epilogue) {
    std::string out = "contraction batch " + std::to_string(c.batch_dims) + " m " + text(c.m) + " n " + text(c.n) +
                      " k " + text(c.k) + " accumulate " + std::string(dtype_name(c.accumulator)) + "\n";
    out += "  a " + text(c.a, c.a_dtype);
    out += "  b " + text(c.b, c.b_dtype);
    if (c.prologue) out += "  prologue " + dims(*c.prologue) + "\n" + lines(*c.prologue, "    ") + "  end\n";
    return out + "  epilogue " + dims(epilogue) + "\n" + lines(epilogue, "    ");
}

std::string text(const Attention& a, const Body& body) {
    std::string out = "attention " + std::string(dtype_name(a.dtype));
    const std::pair<const char*, const IntRef*> extents[] = {
        {"batch", &a.batch},   {"heads", &a.heads},       {"kv_heads", &a.kv_heads},  {"q_len", &a.q_len},
        {"kv_len", &a.kv_len}, {"head_dim", &a.head_dim}, {"value_dim", &a.value_dim}};
    for (const auto& [name, extent] : extents) out += std::string(" ") + name + " " + text(*extent);
    out += " scale " + (a.scale == kNoNode ? std::string("default") : node_name(a.scale)) + "\n";
    const auto operand = [&](const char* name, const StridedOperand& o) {
        out += std::string("  ") + name + " " + place_text(o.buffer, o.offset, o.strides) + "\n";
    };
    operand("q", a.q);
    operand("k", a.k);
    operand("v", a.v);
    operand("out", a.out);
    out += "  mask " + std::string(mask_name(a.mask_kind));
    if (a.mask) out += " " + place_text(a.mask->buffer, a.mask->offset, a.mask->strides);
    out += "\n";
    if (a.lengths) operand("lengths", *a.lengths);
    if (a.fully_masked == FullyMasked::kNan) out += "  fully_masked nan\n";
    return out + lines(body, "  ");
}

std::string text(const BufferParam& buffer, std::size_t index) {
    std::string out = "%" + std::to_string(index);
    if (!buffer.name.empty()) out += " " + name_text(buffer.name);
    const char* use = buffer.read ? (buffer.written ? "inout" : "in") : (buffer.written ? "out" : "unused");
    return out + ": " + use + " " + std::string(dtype_name(buffer.dtype));
}

}  // namespace

std::string print(const Kernel& kernel) {
    std::string out = "kernel " + name_text(kernel.name) + "(";
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
        out += (i == 0 ? "" : ", ") + text(kernel.buffers[i], i);
    }
    out += ") params " + std::to_string(kernel.param_count) + "\n";
    switch (kernel.kind) {
        case KernelKind::kRow: return out + "row " + dims(kernel.body) + "\n" + lines(kernel.body, "  ");
        case KernelKind::kContraction:
            return out + (kernel.contraction ? text(*kernel.contraction, kernel.body) : "contraction none\n");
        case KernelKind::kAttention:
            return out + (kernel.attention ? text(*kernel.attention, kernel.body) : "attention none\n");
        case KernelKind::kExtern: return out + "extern " + name_text(kernel.extern_name) + "\n";
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace flexor::loopir
