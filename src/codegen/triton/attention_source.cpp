// Attention as the text of a Triton function: softmax over keys block by block, with a running maximum and sum.
//
// A program has BLOCK_0 queries of one head. Blocks of keys that all its queries see whole come first, without a test a
// score; then those that end behind the last key or, with a causal mask, at the diagonal. Blocks that nobody sees are not
// read. Where there are few queries, SPLIT programs share the keys, and the last one to end joins what they leave. Extents: 0 batch, 1 heads, 2 kv_heads, 3 q_len, 4 kv_len, 5 head_dim, 6 value_dim.
#include <bit>
#include <cmath>

#include "codegen/triton/body_writer.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::codegen::triton {

using loopir::Attention;
using loopir::FullyMasked;
using loopir::IntRef;
using loopir::Kernel;
using loopir::kNoNode;
using loopir::MaskKind;
using loopir::StridedOperand;

namespace {

enum : std::uint32_t { kBatch, kHeads, kKvHeads, kQLen, kKvLen, kHeadDim, kValueDim };

class AttentionWriter {
public:
    explicit AttentionWriter(const Kernel& kernel)
        : kernel_(kernel),
          a_(*kernel.attention),
          text_(kernel),
          inner_(a_.dtype == DType::kF64 ? DType::kF64 : DType::kF32),
          short_(dtype_size(a_.dtype) == 2) {}

    KernelSource write() {
        for (const char* name : {"BLOCK_0", "BLOCK_1", "HEAD", "VALUE", "EVEN_HEAD", "EVEN_VALUE", "SPLIT"})
            text_.constant(name);
        line("blocks = tl.cdiv(" + extent(kQLen) + ", BLOCK_0)");
        line("part = tl.program_id(0) % SPLIT");
        line("tile = tl.program_id(0) // SPLIT");
        text_.open("if tile < blocks * " + extent(kHeads) + " * " + extent(kBatch) + ":");
        write_place();
        write_scale();
        line("q = " +
             load(a_.q, "q", {"i[:, None]", "d[None, :]"}, "(i < " + extent(kQLen) + ")[:, None] & dm[None, :]"));
        line("acc = tl.zeros((BLOCK_0, VALUE), " + dtype() + ")");
        line("highest = tl.full((BLOCK_0,), float(\"-inf\"), " + dtype() + ")");
        line("total = tl.zeros((BLOCK_0,), " + dtype() + ")");
        write_bounds();
        text_.open("for start in tl.range(begin, tl.minimum(whole, keys), BLOCK_1):");
        write_block(false);
        text_.close();
        text_.open("for start in tl.range(tl.maximum(whole, begin), keys, BLOCK_1):");
        write_block(true);
        text_.close();
        write_partial();
        text_.open("if mine == 1:");
        write_join();
        write_result();
        text_.close();
        text_.close();
        return text_.finish();
    }

private:
    void line(const std::string& text) { text_.line(text); }
    std::string extent(std::uint32_t which) { return text_.use(ArgumentKind::kExtent, which); }
    std::string dtype() const { return std::string(dtype_text(inner_)); }

    void write_place() {
        // The blocks of a causal mask that see most keys come first.
        const bool causal = a_.mask_kind == MaskKind::kCausal;
        line(std::string("block = ") + (causal ? "blocks - 1 - tile % blocks" : "tile % blocks"));
        line("h = tile // blocks % " + extent(kHeads));
        line("b = tile // blocks // " + extent(kHeads));
        line("g = h // (" + extent(kHeads) + " // " + extent(kKvHeads) + ")");
        line("i = block * BLOCK_0 + tl.arange(0, BLOCK_0)");
        line("d = tl.arange(0, HEAD)");
        line("e = tl.arange(0, VALUE)");
        line("dm = tl.full((HEAD,), 1, tl.int1) if EVEN_HEAD else d < " + extent(kHeadDim));
        line("em = tl.full((VALUE,), 1, tl.int1) if EVEN_VALUE else e < " + extent(kValueDim));
    }

    // Short floats are exponentiated to base 2: the scale takes the factor.
    void write_scale() {
        Expressions& expressions = text_.expressions();
        std::string scale;
        if (a_.scale == kNoNode) {
            const std::string size = "tl.cast(tl.cast(" + extent(kHeadDim) + ", tl.int64), tl.float64)";
            scale = expressions.cast("libdevice.div_rn(tl.full((), 1, tl.float64), libdevice.sqrt_rn(" + size + "))",
                                     DType::kF64, inner_);
            if (a_.head_dim.is_constant && a_.head_dim.value > 0) {
                const double value = 1 / std::sqrt(static_cast<double>(a_.head_dim.value));
                scale = expressions.cast("tl.full((), " + support::text_from_double(value) + ", tl.float64)",
                                         DType::kF64, inner_);
            }
        } else {
            const loopir::Node& node = kernel_.body.nodes[a_.scale];
            FLEXOR_CHECK(node.op == loopir::ScalarOp::kConst || node.op == loopir::ScalarOp::kParam);
            if (node.op == loopir::ScalarOp::kConst) {
                scale = expressions.cast(constant_text(node), node.dtype, inner_);
            } else {
                const std::string bits = "tl.cast(" + text_.use(ArgumentKind::kNumber, node.index) + ", tl.int64)";
                scale = expressions.cast("tl.cast(" + bits + ", tl.float64, bitcast=True)", DType::kF64, inner_);
            }
        }
        line("scale = " + scale + (short_ ? " * 1.4426950408889634" : ""));
    }

    // keys: where the last block ends that any query sees; whole: where the last one ends that all see whole.
    void write_bounds() {
        std::string keys = extent(kKvLen);
        if (a_.lengths) {
            const StridedOperand& lengths = *a_.lengths;
            std::vector<std::string> terms;
            if (!lengths.offset.is(0)) terms.push_back(text_.place(lengths.offset));
            if (!lengths.strides[0].is(0)) terms.push_back("b" + step(lengths.strides[0]));
            std::string at = text_.use(ArgumentKind::kBuffer, lengths.buffer);
            if (!terms.empty()) at += " + (" + sum_text(terms) + ")";
            line("length = tl.load(" + at + ")");
            // It may be any number.
            line("length = tl.cast(tl.maximum(tl.minimum(length, " + keys + "), 0), tl.int32)");
            keys = "length";
        }
        line("bound = " + keys);
        if (a_.mask_kind != MaskKind::kCausal) {
            line("keys = bound");
            line("whole = bound // BLOCK_1 * BLOCK_1");
        } else {
            line("keys = tl.minimum(bound, (block + 1) * BLOCK_0)");
            line("whole = tl.minimum(bound, block * BLOCK_0 + 1) // BLOCK_1 * BLOCK_1");
        }
        line("share = tl.cdiv(tl.cdiv(keys, BLOCK_1), SPLIT) * BLOCK_1");
        line("begin = part * share");
        line("keys = tl.minimum(keys, begin + share)");
    }

    // Where SPLIT is 1 these lines vanish.
    void write_partial() {
        sums_ = text_.scratch(inner_);
        rows_ = text_.scratch(inner_);
        line("mine = 1");
        text_.open("if SPLIT > 1:");
        line("lanes = tl.arange(0, BLOCK_0)");
        line("places = tl.cast(tile, tl.int64) * SPLIT * BLOCK_0 + lanes");
        line("own = places + part * BLOCK_0");
        line("tl.store(" + sums_ + " + (own[:, None] * VALUE + e[None, :]), acc)");
        line("tl.store(" + rows_ + " + own * 2, highest)");
        line("tl.store(" + rows_ + " + (own * 2 + 1), total)");
        line("tl.debug_barrier()");
        line("mine = tl.atomic_add(" + counters() + " + tile, 1, sem=\"acq_rel\", scope=\"gpu\") - (SPLIT - 2)");
        text_.close();
    }

    // The last part to end joins all in their order.
    void write_join() {
        const std::string join = text_.expressions().combine(loopir::Combine::kMax, inner_);
        text_.open("if SPLIT > 1:");
        line("tl.debug_barrier()");
        line("acc = tl.zeros((BLOCK_0, VALUE), " + dtype() + ")");
        line("highest = tl.full((BLOCK_0,), float(\"-inf\"), " + dtype() + ")");
        line("total = tl.zeros((BLOCK_0,), " + dtype() + ")");
        text_.open("for other in tl.range(0, SPLIT):");
        line("at = places + other * BLOCK_0");
        line("peak = tl.load(" + rows_ + " + at * 2, cache_modifier=\".cg\")");
        line("top = " + join + "(highest, peak)");
        line("base = tl.where(top == float(\"-inf\"), 0, top)");
        line("fade = " + power("highest - base"));
        line("gain = " + power("peak - base"));
        line("total = total * fade + gain * tl.load(" + rows_ + " + (at * 2 + 1), cache_modifier=\".cg\")");
        line("more = tl.load(" + sums_ + " + (at[:, None] * VALUE + e[None, :]), cache_modifier=\".cg\")");
        line("acc = acc * fade[:, None] + more * gain[:, None]");
        line("highest = top");
        text_.close();
        line("tl.store(" + counters() + " + tile, 0)");
        text_.close();
    }

    std::string counters() { return text_.use(ArgumentKind::kCounters, 0); }

    void write_block(bool tested) {
        const bool causal = a_.mask_kind == MaskKind::kCausal;
        line("j = start + tl.arange(0, BLOCK_1)");
        const std::string inside = tested ? "(j < bound)" : "";
        line("k = " + load(a_.k, "k", {"j[None, :]", "d[:, None]"},
                           "dm[:, None]" + (tested ? " & " + inside + "[None, :]" : "")));
        if (inner_ == DType::kF64)
            line("s = tl.sum(q[:, :, None] * k[None, :, :], 1)");
        else
            line("s = tl.dot(q, k, input_precision=\"ieee\")");
        if (!late_scale()) line("s = s * scale");
        if (a_.mask) write_mask(tested);
        if (tested) {
            line("seen = " + inside + "[None, :] & (i[:, None] >= 0)");
            if (causal) line("seen = seen & (j[None, :] <= i[:, None])");
            line("s = tl.where(seen, s, float(\"-inf\"))");
        }
        const std::string join = text_.expressions().combine(loopir::Combine::kMax, inner_);
        const std::string late = late_scale() ? " * scale" : "";
        line("top = " + join + "(highest, tl.reduce(s, 1, " + join + ")" + late + ")");
        // Nothing is subtracted where nothing was seen yet.
        line("base = tl.where(top == float(\"-inf\"), 0, top)");
        line("p = " + power("s" + late + " - base[:, None]"));
        line("fade = " + power("highest - base"));
        line("total = total * fade + tl.sum(p, 1)");
        line("v = " + load(a_.v, "v", {"j[:, None]", "e[None, :]"},
                           "em[None, :]" + (tested ? " & " + inside + "[:, None]" : "")));
        line("acc = acc * fade[:, None]");
        const std::string cast = "tl.cast(p, " + std::string(dtype_text(a_.dtype)) + ")";
        if (tested && causal) {
            // A value that is not finite reaches those queries alone that see its key.
            line("strange = tl.max(tl.cast(v - v != 0, tl.int32))");
            text_.open("if strange != 0:");
            text_.open("for key in tl.range(0, BLOCK_1):");
            line("here = (tl.arange(0, BLOCK_1) == key)");
            line("weight = tl.sum(tl.where(here[None, :], p, 0), 1)");
            line("row = tl.sum(tl.where(here[:, None], tl.cast(v, " + dtype() + "), 0), 0)");
            line("sees = (start + key <= i) & (start + key < bound)");
            line("acc = tl.where(sees[:, None], acc + weight[:, None] * row[None, :], acc)");
            text_.close();
            text_.close();
            text_.open("else:");
            write_products(cast);
            text_.close();
        } else {
            write_products(cast);
        }
        line("highest = top");
    }

    // A factor above 0 leaves the order of scores alone: it is taken in where they are exponentiated.
    bool late_scale() const {
        if (!short_ || a_.mask) return false;
        if (a_.scale == kNoNode) return true;
        const loopir::Node& node = kernel_.body.nodes[a_.scale];
        return node.op == loopir::ScalarOp::kConst && std::bit_cast<double>(node.constant_bits) > 0;
    }

    void write_products(const std::string& weights) {
        if (inner_ == DType::kF64)
            line("acc += tl.sum(p[:, :, None] * v[None, :, :], 1)");
        else
            line("acc = tl.dot(" + weights + ", v, acc, input_precision=\"ieee\")");
    }

    std::string power(const std::string& of) {
        return short_ ? text_.expressions().call("_quick_exp2", of) : "libdevice.exp(" + of + ")";
    }

    void write_mask(bool tested) {
        const bool boolean = a_.mask_kind == MaskKind::kBoolean;
        // Lanes of queries and keys that do not exist are not read.
        const std::string there = "(i < " + extent(kQLen) + ")[:, None]" + (tested ? " & (j < bound)[None, :]" : "");
        line("m = " + load(*a_.mask, "m", {"i[:, None]", "j[None, :]"}, there));
        if (boolean) {
            line("s = s + tl.where(m != 0, 0.0, float(\"-inf\"))");
        } else {
            const std::string added = text_.expressions().cast("m", a_.dtype, inner_);
            line("s = s + " + added + (short_ ? " * 1.4426950408889634" : ""));
        }
    }

    void write_result() {
        line("nothing = highest == float(\"-inf\")");
        const std::string empty = a_.fully_masked == FullyMasked::kNan ? "float(\"nan\")" : "0.0";
        line("total = tl.where(nothing, 1.0, total)");
        if (short_)
            line("out = acc * (1.0 / total)[:, None]");
        else
            line("out = libdevice.div_rn(acc, total[:, None] + tl.zeros((BLOCK_0, VALUE), " + dtype() + "))");
        line("out = tl.where(nothing[:, None], " + empty + ", out)");
        line("tl.store(" + address(a_.out, {"i[:, None]", "e[None, :]"}, "h") + ", " +
             text_.expressions().cast("out", inner_, a_.dtype) + ", mask=(i < " + extent(kQLen) +
             ")[:, None] & em[None, :])");
    }

    std::string step(const IntRef& stride) { return stride.is(1) ? "" : " * " + text_.place(stride); }

    std::string address(const StridedOperand& operand, const std::pair<std::string, std::string>& inner,
                        const std::string& head) {
        std::vector<std::string> terms;
        if (!operand.offset.is(0)) terms.push_back(text_.place(operand.offset));
        if (!operand.strides[0].is(0)) terms.push_back("b" + step(operand.strides[0]));
        if (!operand.strides[1].is(0)) terms.push_back(head + step(operand.strides[1]));
        terms.push_back(inner.first + step(operand.strides[2]));
        terms.push_back(inner.second + step(operand.strides[3]));
        return text_.use(ArgumentKind::kBuffer, operand.buffer) + " + (" + sum_text(terms) + ")";
    }

    std::string load(const StridedOperand& operand, const std::string& what,
                     const std::pair<std::string, std::string>& inner, const std::string& mask) {
        const bool of_queries = what == "q" || what == "m";
        return "tl.load(" + address(operand, inner, of_queries ? "h" : "g") + ", mask=" + mask + ", other=0)";
    }

    const Kernel& kernel_;
    const Attention& a_;
    SourceText text_;
    DType inner_;
    bool short_;
    std::string sums_, rows_;  // scratch of programs that share the keys
};

}  // namespace

KernelSource write_attention(const Kernel& kernel) {
    FLEXOR_CHECK(kernel.kind == loopir::KernelKind::kAttention);
    return AttentionWriter(kernel).write();
}

}  // namespace flexor::codegen::triton
