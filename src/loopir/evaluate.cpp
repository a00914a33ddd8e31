#include <bit>
#include <cmath>

#include "loopir/index_fault.h"
#include "loopir/loopir.h"
#include "loopir/scalar_value.h"
#include "support/check.h"

namespace flexor::loopir {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t value_of(const IntRef& ref, const EvalArgs& args) {
    return ref.is_constant ? ref.value : args.params[ref.value];
}

std::vector<std::int64_t> values_of(const std::vector<IntRef>& refs, const EvalArgs& args) {
    std::vector<std::int64_t> out;
    for (const IntRef& ref : refs) out.push_back(value_of(ref, args));
    return out;
}

// Index tuples of a space in row-major order, one for a space without dims, until `visit` says true.
template <class Visit>
void visit_until(const std::vector<std::int64_t>& extents, Visit visit) {
    for (const std::int64_t extent : extents) {
        if (extent <= 0) return;
    }
    Index index(extents.size(), 0);
    while (!visit(index)) {
        std::size_t d = extents.size();
        while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
        if (d == 0) return;
    }
}

template <class Visit>
void for_each_index(const std::vector<std::int64_t>& extents, Visit visit) {
    visit_until(extents, [&](const Index& index) { return visit(index), false; });
}

ScalarValue reduce_tree(Combine combine, DType dtype, const ScalarValue* values, std::size_t count) {
    if (count == 0) return combine_identity(combine, dtype);
    if (count == 1) return values[0];
    const std::size_t half = count / 2;
    return combine_scalars(combine, dtype, reduce_tree(combine, dtype, values, half),
                           reduce_tree(combine, dtype, values + half, count - half));
}

std::int64_t first_extreme(Combine combine, DType dtype, const std::vector<ScalarValue>& values) {
    std::size_t best = 0;
    const bool is_max = combine == Combine::kArgMax;
    for (std::size_t i = 1; i < values.size(); ++i) {
        const ScalarValue a = values[best];
        const ScalarValue b = values[i];
        const bool wins = is_floating(dtype) ? !std::isnan(a.f) && (std::isnan(b.f) || (is_max ? b.f > a.f : b.f < a.f))
                                             : (is_max ? b.i > a.i : b.i < a.i);
        if (wins) best = i;
    }
    return static_cast<std::int64_t>(best);
}

class BodyEvaluator {
public:
    BodyEvaluator(const Kernel& kernel, const Body& body, EvalArgs& args)
        : kernel_(kernel), body_(body), args_(args), values_(body.nodes.size()), row_values_(body.stages.size()) {
        const auto extents = values_of(body.extents, args);
        parallel_.assign(extents.begin(), extents.begin() + body.parallel);
        row_.assign(extents.begin() + body.parallel, extents.end());
        for (const Stage& stage : body.stages) needed_.push_back(nodes_needed(stage));
    }

    void run() {
        for_each_index(parallel_, [&](const Index& at) { run_row(at); });
    }

    // The stages of one row. With `taken`, store stages hand over their values instead of writing.
    void run_row(const Index& parallel_index, std::vector<ScalarValue>* taken = nullptr) {
        for (std::size_t s = 0; s < body_.stages.size(); ++s) {
            const Stage& stage = body_.stages[s];
            if (stage.kind == StageKind::kStore) {
                run_store(s, parallel_index, taken);
                continue;
            }
            std::vector<ScalarValue> values;
            visit_row(s, parallel_index, [&] { values.push_back(values_[stage.value]); });
            const DType dtype = body_.nodes[stage.value].dtype;
            if (stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin) {
                row_values_[s] = scalar_from_int(DType::kI64, first_extreme(stage.combine, dtype, values));
            } else {
                row_values_[s] = reduce_tree(stage.combine, dtype, values.data(), values.size());
            }
        }
    }

    std::optional<IndexFault> find_index_fault() {
        for (const Access& access : body_.accesses) {
            if (const auto fault = find_index_fault(access)) return fault;
        }
        for (const Stage& stage : body_.stages) {
            if (stage.kind != StageKind::kStore) continue;
            if (const auto fault = find_index_fault(stage.target)) return fault;
        }
        return std::nullopt;
    }

    void set_accumulator(ScalarValue value) { accumulator_ = value; }

    ScalarValue value_without_dims(NodeId n) {
        Stage stage{};
        stage.value = n;
        for (const NodeId id : nodes_needed(stage)) values_[id] = compute(id);
        return values_[n];
    }

private:
    void mark(NodeId n, std::vector<bool>& marked) const {
        if (n == kNoNode || marked[n]) return;
        marked[n] = true;
        const Node& node = body_.nodes[n];
        for (int i = 0; i < scalar_arity(node.op); ++i) mark(node.operands[i], marked);
        if (node.op == ScalarOp::kLoad) mark(body_.accesses[node.index], marked);
    }

    void mark(const Access& access, std::vector<bool>& marked) const {
        for (const GatherTerm& g : access.gathers) mark(g.index, marked);
        mark(access.mask, marked);
    }

    static std::vector<NodeId> listed(const std::vector<bool>& marked) {
        std::vector<NodeId> out;
        for (NodeId n = 0; n < marked.size(); ++n) {
            if (marked[n]) out.push_back(n);
        }
        return out;
    }

    std::vector<NodeId> nodes_needed(const Stage& stage) const {
        std::vector<bool> marked(body_.nodes.size());
        mark(stage.value, marked);
        if (stage.kind == StageKind::kStore) mark(stage.target, marked);
        return listed(marked);
    }

    // The space that the nodes vary over: dims that none of them depends on are walked once.
    std::vector<std::int64_t> varying_extents(const std::vector<NodeId>& nodes) const {
        std::vector<std::int64_t> extents = parallel_;
        extents.insert(extents.end(), row_.begin(), row_.end());
        std::vector<bool> varies(extents.size());
        for (const NodeId n : nodes) {
            const Node& node = body_.nodes[n];
            if (node.op == ScalarOp::kIndex) varies[node.index] = true;
            if (node.op != ScalarOp::kLoad) continue;
            const std::vector<IntRef>& strides = body_.accesses[node.index].strides;
            for (std::size_t d = 0; d < strides.size(); ++d) {
                if (value_of(strides[d], args_) != 0) varies[d] = true;
            }
        }
        for (std::size_t d = 0; d < extents.size(); ++d) {
            if (!varies[d]) extents[d] = std::min<std::int64_t>(extents[d], 1);
        }
        return extents;
    }

    std::optional<IndexFault> find_index_fault(const Access& access) {
        constexpr std::int64_t kMostSteps = std::int64_t{1} << 24;
        if (access.gathers.empty()) return std::nullopt;
        std::vector<bool> marked(body_.nodes.size());
        mark(access, marked);
        const std::vector<NodeId> nodes = listed(marked);
        for (const NodeId n : nodes) {
            const ScalarOp op = body_.nodes[n].op;
            if (op == ScalarOp::kRowValue || op == ScalarOp::kAccumulator) return std::nullopt;
        }
        std::optional<IndexFault> fault;
        std::int64_t steps = 0;
        visit_until(varying_extents(nodes), [&](const Index& at) {
            index_ = at;
            for (const NodeId n : nodes) values_[n] = compute(n);
            if (access.mask == kNoNode || values_[access.mask].i != 0) {
                for (const GatherTerm& g : access.gathers) {
                    const std::int64_t extent = value_of(g.extent, args_);
                    if (!fault && !place_on_axis(g, extent)) fault = IndexFault{values_[g.index].i, extent};
                }
            }
            return fault.has_value() || ++steps == kMostSteps;
        });
        return fault;
    }

    // The place of a gathered index after wrapping; nothing if it is out of range.
    std::optional<std::int64_t> place_on_axis(const GatherTerm& g, std::int64_t extent) const {
        std::int64_t i = values_[g.index].i;
        if (g.wrap_negative && i < 0) i += extent;
        return i >= 0 && i < extent ? std::optional(i) : std::nullopt;
    }

    template <class Visit>
    void visit_row(std::size_t stage, const Index& parallel_index, Visit visit) {
        for_each_index(row_, [&](const Index& row_index) {
            index_ = parallel_index;
            index_.insert(index_.end(), row_index.begin(), row_index.end());
            for (const NodeId n : needed_[stage]) values_[n] = compute(n);
            visit();
        });
    }

    void run_store(std::size_t s, const Index& parallel_index, std::vector<ScalarValue>* taken) {
        const Stage& stage = body_.stages[s];
        const auto write = [&] {
            if (taken != nullptr) {
                taken->push_back(values_[stage.value]);
            } else if (const auto address = locate(stage.target)) {
                store_scalar(args_.buffers[stage.target.buffer], kernel_.buffers[stage.target.buffer].dtype, *address,
                             values_[stage.value]);
            }
        };
        if (!stage.per_row) {
            visit_row(s, parallel_index, write);
            return;
        }
        index_ = parallel_index;
        index_.resize(body_.rank(), 0);
        for (const NodeId n : needed_[s]) values_[n] = compute(n);
        write();
    }

    // The element an access means at the current index; nothing where its mask is false or an index is out of range.
    std::optional<std::int64_t> locate(const Access& access) {
        if (access.mask != kNoNode && values_[access.mask].i == 0) return std::nullopt;
        std::int64_t at = value_of(access.offset, args_);
        for (std::size_t d = 0; d < access.strides.size(); ++d) at += index_[d] * value_of(access.strides[d], args_);
        bool inside = true;
        for (const GatherTerm& g : access.gathers) {
            if (const auto i = place_on_axis(g, value_of(g.extent, args_))) {
                at += *i * value_of(g.stride, args_);
            } else {
                args_.fault = true;
                inside = false;
            }
        }
        return inside ? std::optional(at) : std::nullopt;
    }

    ScalarValue compute(NodeId n) {
        const Node& node = body_.nodes[n];
        switch (node.op) {
            case ScalarOp::kConst:
                return is_floating(node.dtype)
                           ? scalar_from_double(node.dtype, std::bit_cast<double>(node.constant_bits))
                           : scalar_from_int(node.dtype, node.constant_bits);
            case ScalarOp::kParam: {
                const std::int64_t slot = args_.params[node.index];
                return is_floating(node.dtype) ? scalar_from_double(node.dtype, std::bit_cast<double>(slot))
                                               : scalar_from_int(node.dtype, slot);
            }
            case ScalarOp::kIndex: return scalar_from_int(DType::kI64, index_[node.index]);
            case ScalarOp::kLoad: {
                const Access& access = body_.accesses[node.index];
                const auto address = locate(access);
                return address ? load_scalar(args_.buffers[access.buffer], node.dtype, *address) : ScalarValue{};
            }
            case ScalarOp::kRowValue: return row_values_[node.index];
            case ScalarOp::kAccumulator: return accumulator_;
            case ScalarOp::kCast:
                return cast_scalar(values_[node.operands[0]], body_.nodes[node.operands[0]].dtype, node.dtype);
            default: {
                ScalarValue operands[3];
                for (int i = 0; i < scalar_arity(node.op); ++i) operands[i] = values_[node.operands[i]];
                return apply_scalar(node.op, body_.nodes[node.operands[0]].dtype, operands, args_.fault);
            }
        }
    }

    const Kernel& kernel_;
    const Body& body_;
    EvalArgs& args_;
    std::vector<std::int64_t> parallel_;
    std::vector<std::int64_t> row_;
    std::vector<std::vector<NodeId>> needed_;  // per stage, operands first
    Index index_;
    std::vector<ScalarValue> values_;
    std::vector<ScalarValue> row_values_;
    ScalarValue accumulator_;
};

std::int64_t element_place(const IntRef& offset, const std::vector<IntRef>& strides,
                           std::span<const std::int64_t> index, const EvalArgs& args) {
    std::int64_t at = value_of(offset, args);
    for (std::size_t d = 0; d < strides.size(); ++d) at += index[d] * value_of(strides[d], args);
    return at;
}

void evaluate_contraction(const Kernel& kernel, EvalArgs& args) {
    const Contraction& c = *kernel.contraction;
    const std::int64_t m = value_of(c.m, args);
    const std::int64_t n = value_of(c.n, args);
    const std::int64_t k = value_of(c.k, args);
    const std::vector<IntRef> batch_refs(kernel.body.extents.begin(), kernel.body.extents.begin() + c.batch_dims);
    BodyEvaluator epilogue(kernel, kernel.body, args);
    std::optional<BodyEvaluator> prologue;
    if (c.prologue) prologue.emplace(kernel, *c.prologue, args);
    const std::int64_t a_col = value_of(c.a.col_stride, args);
    const std::int64_t b_row = value_of(c.b.row_stride, args);

    Index outer = values_of(batch_refs, args);
    outer.push_back(m);
    for_each_index(outer, [&](const Index& batch_and_m) {
        std::vector<ScalarValue> a_row;
        if (prologue) {
            prologue->run_row(batch_and_m, &a_row);
        } else {
            const std::int64_t at = element_place(c.a.offset, c.a.batch_strides, batch_and_m, args) +
                                    batch_and_m.back() * value_of(c.a.row_stride, args);
            for (std::int64_t i = 0; i < k; ++i) {
                a_row.push_back(load_scalar(args.buffers[c.a.buffer], c.a_dtype, at + i * a_col));
            }
        }
        const std::int64_t b_at = element_place(c.b.offset, c.b.batch_strides, batch_and_m, args);
        Index at = batch_and_m;
        at.push_back(0);
        for (std::int64_t j = 0; j < n; ++j) {
            std::vector<ScalarValue> products;
            for (std::int64_t i = 0; i < k; ++i) {
                const ScalarValue b = load_scalar(args.buffers[c.b.buffer], c.b_dtype,
                                                  b_at + i * b_row + j * value_of(c.b.col_stride, args));
                const ScalarValue factors[] = {
                    cast_scalar(a_row[static_cast<std::size_t>(i)], c.a_dtype, c.accumulator),
                    cast_scalar(b, c.b_dtype, c.accumulator)};
                products.push_back(apply_scalar(ScalarOp::kMul, c.accumulator, factors, args.fault));
            }
            epilogue.set_accumulator(reduce_tree(Combine::kSum, c.accumulator, products.data(), products.size()));
            at.back() = j;
            epilogue.run_row(at);
        }
    });
}

// Softmax in f32 (f64 for f64), over the keys that the query sees; scores are kept whole, not block by block.
void evaluate_attention(const Kernel& kernel, EvalArgs& args) {
    const Attention& a = *kernel.attention;
    const DType inner = a.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    const auto apply = [&](ScalarOp op, ScalarValue x, ScalarValue y = {}) {
        const ScalarValue operands[] = {x, y};
        return apply_scalar(op, inner, operands, args.fault);
    };
    const auto load = [&](const StridedOperand& o, std::initializer_list<std::int64_t> index) {
        const DType dtype = kernel.buffers[o.buffer].dtype;
        const std::int64_t at = element_place(o.offset, o.strides, {index.begin(), index.size()}, args);
        return cast_scalar(load_scalar(args.buffers[o.buffer], dtype, at), dtype, inner);
    };
    const auto sum = [&](const std::vector<ScalarValue>& values) {
        return reduce_tree(Combine::kSum, inner, values.data(), values.size());
    };
    const std::int64_t heads = value_of(a.heads, args);
    const std::int64_t kv_heads = value_of(a.kv_heads, args);
    const std::int64_t head_dim = value_of(a.head_dim, args);
    ScalarValue scale;
    if (a.scale == kNoNode) {
        scale.f = 1.0 / std::sqrt(static_cast<double>(head_dim));
        scale = cast_scalar(scale, DType::kF64, inner);
    } else {
        scale = cast_scalar(BodyEvaluator(kernel, kernel.body, args).value_without_dims(a.scale),
                            kernel.body.nodes[a.scale].dtype, inner);
    }
    const std::int64_t value_dim = value_of(a.value_dim, args);
    const Index rows{value_of(a.batch, args), heads, value_of(a.q_len, args)};
    for_each_index(rows, [&](const Index& row) {
        const std::int64_t b = row[0];
        const std::int64_t h = row[1];
        const std::int64_t i = row[2];
        FLEXOR_CHECK(kv_heads > 0 && heads % kv_heads == 0);
        const std::int64_t kv_head = h / (heads / kv_heads);
        std::int64_t keys = value_of(a.kv_len, args);
        if (a.lengths) {
            const std::int64_t at = element_place(a.lengths->offset, a.lengths->strides, {&b, 1}, args);
            keys = std::min(keys, load_scalar(args.buffers[a.lengths->buffer], DType::kI64, at).i);
        }
        std::vector<std::int64_t> seen;
        std::vector<ScalarValue> scores;
        for (std::int64_t j = 0; j < keys; ++j) {
            if (a.mask_kind == MaskKind::kCausal && j > i) continue;
            std::vector<ScalarValue> products;
            for (std::int64_t d = 0; d < head_dim; ++d) {
                products.push_back(apply(ScalarOp::kMul, load(a.q, {b, h, i, d}), load(a.k, {b, kv_head, j, d})));
            }
            ScalarValue score = apply(ScalarOp::kMul, sum(products), scale);
            if (a.mask) {
                ScalarValue added = load(*a.mask, {b, h, i, j});
                if (a.mask_kind == MaskKind::kBoolean) added.f = added.f != 0 ? 0 : -HUGE_VAL;
                score = apply(ScalarOp::kAdd, score, added);
            }
            seen.push_back(j);
            scores.push_back(score);
        }
        const ScalarValue highest = reduce_tree(Combine::kMax, inner, scores.data(), scores.size());
        const bool sees_nothing = highest.f == -HUGE_VAL;
        for (ScalarValue& score : scores) {
            score = sees_nothing ? ScalarValue{} : apply(ScalarOp::kExp, apply(ScalarOp::kSub, score, highest));
        }
        const ScalarValue total = sum(scores);
        for (std::int64_t d = 0; d < value_dim; ++d) {
            std::vector<ScalarValue> products;
            for (std::size_t s = 0; s < seen.size(); ++s) {
                products.push_back(apply(ScalarOp::kMul, scores[s], load(a.v, {b, kv_head, seen[s], d})));
            }
            ScalarValue out;
            if (sees_nothing && a.fully_masked == FullyMasked::kNan) out.f = std::nan("");
            if (!sees_nothing) out = apply(ScalarOp::kDiv, sum(products), total);
            const std::int64_t index[] = {b, h, i, d};
            store_scalar(args.buffers[a.out.buffer], a.dtype, element_place(a.out.offset, a.out.strides, index, args),
                         cast_scalar(out, inner, a.dtype));
        }
    });
}

}  // namespace

std::optional<IndexFault> find_index_fault(const Kernel& kernel, const EvalArgs& args) {
    EvalArgs scratch = args;
    if (kernel.contraction && kernel.contraction->prologue) {
        if (const auto fault = BodyEvaluator(kernel, *kernel.contraction->prologue, scratch).find_index_fault())
            return fault;
    }
    return BodyEvaluator(kernel, kernel.body, scratch).find_index_fault();
}

void evaluate(const Kernel& kernel, EvalArgs& args) {
    switch (kernel.kind) {
        case KernelKind::kRow: BodyEvaluator(kernel, kernel.body, args).run(); return;
        case KernelKind::kContraction: evaluate_contraction(kernel, args); return;
        case KernelKind::kAttention: evaluate_attention(kernel, args); return;
        case KernelKind::kExtern: {
            FLEXOR_CHECK(args.externs != nullptr);
            const auto implementation = args.externs->find(kernel.extern_name);
            FLEXOR_CHECK(implementation != args.externs->end());
            implementation->second(kernel, args);
            return;
        }
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace flexor::loopir
