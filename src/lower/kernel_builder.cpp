#include "lower/kernel_builder.h"

namespace flexor::lower {

using loopir::kNoNode;
using loopir::ScalarOp;

namespace {

DType computed_in(DType d) { return d == DType::kF16 || d == DType::kBF16 ? DType::kF32 : d; }

}  // namespace

IntRef KernelBuilder::integer(const Dim& d) {
    const Dim value = program_.env.simplify(d);
    if (value.is_constant()) return IntRef::constant(value.constant());
    const auto [it, inserted] = dims_.try_emplace(value, static_cast<std::uint32_t>(params.size()));
    if (inserted) params.push_back({value, kNoReg});
    return IntRef::slot(it->second);
}

std::uint32_t KernelBuilder::scalar_param(Reg reg) {
    for (std::size_t i = 0; i < params.size(); ++i) {
        if (params[i].scalar == reg) return static_cast<std::uint32_t>(i);
    }
    params.push_back({std::nullopt, reg});
    return static_cast<std::uint32_t>(params.size() - 1);
}

std::uint32_t KernelBuilder::buffer(Reg root, bool written) {
    const auto [it, inserted] = buffers_.try_emplace(root, static_cast<std::uint32_t>(roots.size()));
    if (inserted) {
        roots.push_back(root);
        loopir::BufferParam param;
        param.name = program_.registers[root].name;
        param.dtype = type(root).dtype;
        kernel.buffers.push_back(std::move(param));
    }
    (written ? kernel.buffers[it->second].written : kernel.buffers[it->second].read) = true;
    return it->second;
}

// Element address of a value whose axis a runs along body dim dims[a] (-1: index 0).
Access KernelBuilder::access(Scope& scope, const std::vector<int>& dims, const types::TensorType& t, Reg root,
                             bool written) {
    Access out;
    out.buffer = buffer(root, written);
    out.offset = integer(t.offset);
    std::vector<Dim> strides(scope.body->extents.size(), Dim(0));
    for (std::size_t a = 0; a < dims.size(); ++a) {
        if (dims[a] >= 0)
            strides[static_cast<std::size_t>(dims[a])] = strides[static_cast<std::size_t>(dims[a])] + t.strides[a];
    }
    for (const Dim& s : strides) out.strides.push_back(integer(s));
    return out;
}

NodeId KernelBuilder::scalar_value(BodyBuilder& b, Reg reg, DType wanted) {
    const DType to = computed_in(wanted);
    const Inst* source = producers_[reg];
    if (source != nullptr && source->kind == InstKind::kConst) {
        const auto& value = source->constant->value;
        NodeId node = kNoNode;
        if (const auto* d = std::get_if<double>(&value)) {
            node = is_floating(to) ? b.constant(to, *d) : b.cast(b.constant(DType::kF64, *d), to);
        } else {
            const std::int64_t i =
                std::holds_alternative<bool>(value) ? (std::get<bool>(value) ? 1 : 0) : std::get<std::int64_t>(value);
            node =
                is_floating(to) ? b.constant(to, static_cast<double>(i)) : b.cast(b.constant_int(DType::kI64, i), to);
        }
        // A scalar is rounded to the operand's dtype before use.
        return to == wanted ? node : b.cast(b.cast(node, wanted), to);
    }
    if (source != nullptr && source->kind == InstKind::kDimScalar) {
        const IntRef ref = integer(source->dim);
        const NodeId node = ref.is_constant ? b.constant_int(DType::kI64, ref.value)
                                            : b.param(DType::kI64, static_cast<std::uint32_t>(ref.value));
        return widened(b, b.cast(node, wanted), wanted);
    }
    return widened(b, b.cast(b.param(DType::kF64, scalar_param(reg)), wanted), wanted);
}

NodeId KernelBuilder::widened(BodyBuilder& b, NodeId value, DType to) {
    return b.cast(b.cast(value, to), computed_in(to));
}

// The value of `reg` at the current point, in its own dtype; scalars keep f64/i64/bool.
NodeId KernelBuilder::read(Scope& scope, Form form, const std::vector<Dim>& shape, Reg reg) {
    const Reg root = program_.registers[reg].root;
    const auto made = scope.values.find(root);
    if (made != scope.values.end()) return made->second;
    const types::TensorType& t = type(reg);
    const std::vector<int> form_dims = grouper_.form_dims(*scope.unit, form);
    const std::size_t shift = shape.size() - t.sizes.size();
    Access out;
    out.buffer = buffer(root, false);
    out.offset = integer(t.offset);
    std::vector<Dim> strides(scope.body->extents.size(), Dim(0));
    for (std::size_t a = 0; a < t.sizes.size(); ++a) {
        if (t.sizes[a].is_constant(1)) continue;
        const int space = form_dims[a + shift];
        if (space < 0) continue;
        const std::size_t d = static_cast<std::size_t>(scope.body_dim[static_cast<std::size_t>(space)]);
        Dim stride = t.strides[a];
        if (program_.env.eq(t.sizes[a], shape[a + shift]) != Truth::kTrue) {
            // A size that may be 1 at run time: stride 0 then.
            stride = Dim::min(Dim::max(t.sizes[a] - Dim(1), 0), 1) * stride;
        }
        strides[d] = strides[d] + stride;
    }
    for (const Dim& s : strides) out.strides.push_back(integer(s));
    return BodyBuilder(*scope.body).load(t.dtype, std::move(out));
}

// Result elements of an index op as loads at computed places.
class ElementIndexer final : public ops::IndexBuilder {
public:
    ElementIndexer(KernelBuilder& builder, KernelBuilder::Scope& scope, const Inst& inst, Form form)
        : builder_(builder),
          scope_(scope),
          inst_(inst),
          body_(*scope.body),
          dims_(builder.grouper_.form_dims(*scope.unit, form)) {}

    BodyBuilder& body() override { return body_; }
    const types::TensorType& type(std::size_t operand) const override { return builder_.type(inst_.operands[operand]); }
    const types::TensorType& result() const override { return builder_.type(inst_.results[0]); }
    NodeId axis_index(int axis) override {
        const int d = dims_[static_cast<std::size_t>(axis)];
        if (d < 0) return body_.constant_int(DType::kI64, 0);
        return body_.index(static_cast<std::uint32_t>(scope_.body_dim[static_cast<std::size_t>(d)]));
    }
    NodeId dim(const Dim& d) override {
        const IntRef ref = builder_.integer(d);
        return ref.is_constant ? body_.constant_int(DType::kI64, ref.value)
                               : body_.param(DType::kI64, static_cast<std::uint32_t>(ref.value));
    }
    NodeId load(std::size_t operand, std::span<const ops::IndexTerm> index, NodeId mask) override {
        const Reg reg = inst_.operands[operand];
        const types::TensorType& t = builder_.type(reg);
        Access out;
        out.buffer = builder_.buffer(builder_.program_.registers[reg].root, false);
        Dim offset = t.offset;
        std::vector<Dim> strides(scope_.body->extents.size(), Dim(0));
        // A tensor of rank 0 has one element along the axis that indices name.
        static const Dim kZero = 0, kOne = 1;
        for (std::size_t a = 0; a < index.size(); ++a) {
            const ops::IndexTerm& term = index[a];
            const Dim& axis_stride = t.sizes.empty() ? kZero : t.strides[a];
            const Dim& axis_size = t.sizes.empty() ? kOne : t.sizes[a];
            switch (term.kind) {
                case ops::IndexTerm::Kind::kAxis: {
                    const int d = dims_[static_cast<std::size_t>(term.axis)];
                    offset = offset + term.shift * axis_stride;
                    if (d < 0) break;
                    auto& stride = strides[static_cast<std::size_t>(scope_.body_dim[static_cast<std::size_t>(d)])];
                    stride = stride + axis_stride;
                    break;
                }
                case ops::IndexTerm::Kind::kConstant: offset = offset + term.shift * axis_stride; break;
                case ops::IndexTerm::Kind::kNode:
                    out.gathers.push_back(
                        {term.node, builder_.integer(axis_stride), builder_.integer(axis_size), term.wrap_negative});
                    break;
            }
        }
        out.offset = builder_.integer(offset);
        for (const Dim& s : strides) out.strides.push_back(builder_.integer(s));
        out.mask = mask;
        return body_.load(t.dtype, std::move(out));
    }

private:
    KernelBuilder& builder_;
    KernelBuilder::Scope& scope_;
    const Inst& inst_;
    BodyBuilder body_;
    std::vector<int> dims_;
};

NodeId KernelBuilder::member_value(Scope& scope, const Member& member) {
    const Inst& inst = block_.insts[member.inst];
    BodyBuilder b(*scope.body);
    const std::vector<Dim>& shape = walked_shape(program_, inst);
    const auto scalar = [&](Reg r) { return program_.registers[r].type.strength == types::Strength::kScalar; };
    const auto operand = [&](std::size_t o, Form form) -> NodeId {
        const Reg reg = inst.operands[o];
        if (reg == kNoReg) return kNoNode;
        const DType wanted = o < inst.dtypes.operands.size() ? inst.dtypes.operands[o] : type(reg).dtype;
        if (scalar(reg)) return scalar_value(b, reg, wanted);
        return widened(b, read(scope, form, shape, reg), wanted);
    };
    const ops::LowerRule& rule = inst.op->lower.value;
    if (const auto* map = std::get_if<ops::MapLower>(&rule)) {
        std::vector<NodeId> args;
        for (std::size_t o = 0; o < inst.operands.size(); ++o) args.push_back(operand(o, member.form));
        NodeId divides = kNoNode;
        if (inst.dtypes.zero_divisor_gives_zero && !is_floating(b.dtype(args[1]))) {
            divides = b.binary(ScalarOp::kNe, args[1], b.constant_int(b.dtype(args[1]), 0));
            args[1] = b.select(divides, args[1], b.constant_int(b.dtype(args[1]), 1));
        }
        NodeId value = (*map)(b, args, inst.attrs);
        if (divides != kNoNode) value = b.select(divides, value, b.constant_int(b.dtype(value), 0));
        return b.cast(value, inst.dtypes.results[0]);
    }
    if (const auto* reduce = std::get_if<ops::ReduceLower>(&rule)) {
        const DType accumulate = reduce->accumulate(inst.dtypes.operands[0], inst.dtypes.results[0]);
        NodeId value = operand(0, Form::kFull);
        value = b.cast(value, accumulate);
        const std::uint32_t stage = b.reduce(reduce->combine, value);
        const bool positions =
            reduce->combine == loopir::Combine::kArgMax || reduce->combine == loopir::Combine::kArgMin;
        return b.cast(b.row_value(positions ? DType::kI64 : accumulate, stage), inst.dtypes.results[0]);
    }
    if (const auto* index = std::get_if<ops::IndexLower>(&rule)) {
        ElementIndexer indexer(*this, scope, inst, member.form);
        return b.cast((*index)(indexer, inst.attrs), inst.dtypes.results[0]);
    }
    if (is_write(inst)) {
        const Reg source = inst.operands[1];
        const DType to = type(inst.operands[0]).dtype;
        if (scalar(source)) return b.cast(scalar_value(b, source, to), to);
        return b.cast(read(scope, member.form, shape, source), to);
    }
    // A movement op that copies.
    return b.cast(read(scope, member.form, shape, inst.operands[0]), inst.dtypes.results[0]);
}

void KernelBuilder::store_member(Scope& scope, const Member& member) {
    const Inst& inst = block_.insts[member.inst];
    const Reg result = inst.results[0];
    const std::vector<int> space = grouper_.form_dims(*scope.unit, member.form);
    std::vector<int> dims;
    for (int d : space) dims.push_back(d < 0 ? -1 : scope.body_dim[static_cast<std::size_t>(d)]);
    types::TensorType target = type(result);
    Reg root = program_.registers[result].root;
    if (is_copy(program_, inst)) {
        // The result's elements in row-major order are the operand's elements in row-major order.
        target.sizes = type(inst.operands[0]).sizes;
        if (target.sizes.size() != type(result).sizes.size() || target.sizes != type(result).sizes) {
            target.strides = types::contiguous_strides(target.sizes);
        }
    }
    if (is_write(inst)) {
        target = type(inst.operands[0]);
        root = program_.registers[inst.operands[0]].root;
    }
    Access to = access(scope, dims, target, root, true);
    const bool per_row = member.form != Form::kFull && !scope.unit->reduced.empty();
    BodyBuilder(*scope.body).store(scope.values.at(is_write(inst) ? kNoReg : result), std::move(to), per_row);
}

Body KernelBuilder::row_body(const Unit& unit, Reg sink) {
    Body body;
    Scope scope;
    scope.unit = &unit;
    scope.body = &body;
    scope.body_dim.assign(unit.space.size(), 0);
    std::vector<bool> row = unit.reduced;
    if (sink != kNoReg && row.empty()) {
        row.assign(unit.space.size(), false);
        row.back() = true;  // the operand of a contraction is made row by row
    }
    if (row.empty()) row.assign(unit.space.size(), false);
    for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t d = 0; d < unit.space.size(); ++d) {
            if (row[d] != (pass == 1)) continue;
            scope.body_dim[d] = static_cast<int>(body.extents.size());
            body.extents.push_back(integer(unit.space[d]));
        }
        if (pass == 0) body.parallel = static_cast<std::uint32_t>(body.extents.size());
    }
    const Member* write = nullptr;
    for (const Member& member : unit.members) {
        const Inst& inst = block_.insts[member.inst];
        const NodeId value = member_value(scope, member);
        scope.values[is_write(inst) ? kNoReg : inst.results[0]] = value;
        if (sink != kNoReg) {
            if (inst.results[0] != sink) continue;
            Access to;
            to.strides.assign(body.extents.size(), IntRef::constant(0));
            BodyBuilder(body).store(value, std::move(to), false);
        } else if (is_write(inst)) {
            write = &member;
        } else if (is_copy(program_, inst) || is_stored(inst.results[0])) {
            store_member(scope, member);
        }
    }
    // Every other stage computes from what the memory held before.
    if (write != nullptr) store_member(scope, *write);
    return body;
}

Body KernelBuilder::epilogue_body(const Unit& unit) {
    Body body;
    Scope scope;
    scope.unit = &unit;
    scope.body = &body;
    for (std::size_t d = 0; d < unit.space.size(); ++d) {
        scope.body_dim.push_back(static_cast<int>(d));
        body.extents.push_back(integer(unit.space[d]));
    }
    body.parallel = static_cast<std::uint32_t>(body.extents.size());
    BodyBuilder b(body);
    for (std::size_t m = 0; m < unit.members.size(); ++m) {
        const Inst& inst = block_.insts[unit.members[m].inst];
        const Reg result = inst.results[0];
        scope.values[result] = m == 0 ? b.cast(b.accumulator(kernel.contraction->accumulator), inst.dtypes.results[0])
                                      : member_value(scope, unit.members[m]);
        if (is_stored(result)) store_member(scope, unit.members[m]);
    }
    return body;
}

Body KernelBuilder::copy_body(Reg from, Reg to_root, const types::TensorType& to) {
    Body body;
    const types::TensorType& source = type(from);
    std::vector<int> dims;
    for (std::size_t d = 0; d < source.sizes.size(); ++d) {
        dims.push_back(static_cast<int>(d));
        body.extents.push_back(integer(source.sizes[d]));
    }
    body.parallel = static_cast<std::uint32_t>(body.extents.size());
    Scope scope;
    scope.body = &body;
    Access load = access(scope, dims, source, program_.registers[from].root, false);
    Access store = access(scope, dims, to, to_root, true);
    BodyBuilder b(body);
    const NodeId value = b.load(source.dtype, std::move(load));
    b.store(b.cast(value, to.dtype), std::move(store), false);
    return body;
}

void KernelBuilder::collapse(Body& body) {
    const auto uses_index = [&](std::uint32_t d) {
        for (const auto& node : body.nodes) {
            if (node.op == ScalarOp::kIndex && node.index == d) return true;
        }
        return false;
    };
    const auto for_each_access = [&](auto&& f) {
        for (Access& a : body.accesses) f(a);
        for (auto& stage : body.stages) {
            if (stage.kind == loopir::StageKind::kStore) f(stage.target);
        }
    };
    for (std::uint32_t d = 0; d + 1 < body.rank();) {
        const bool same_side = (d < body.parallel) == (d + 1 < body.parallel);
        bool fits = same_side && !uses_index(d) && !uses_index(d + 1);
        const Dim inner = dim_of(body.extents[d + 1]);
        if (fits) {
            for_each_access([&](Access& a) {
                const Dim outer_stride = dim_of(a.strides[d]);
                const Dim inner_stride = dim_of(a.strides[d + 1]);
                fits = fits && program_.env.eq(outer_stride, inner_stride * inner) == Truth::kTrue;
            });
        }
        if (!fits) {
            ++d;
            continue;
        }
        body.extents[d + 1] = integer(dim_of(body.extents[d]) * inner);
        body.extents.erase(body.extents.begin() + d);
        for_each_access([&](Access& a) { a.strides.erase(a.strides.begin() + d); });
        for (auto& node : body.nodes) {
            if (node.op == ScalarOp::kIndex && node.index > d) --node.index;
        }
        if (d < body.parallel) --body.parallel;
        if (d > 0) --d;
    }
    // Dims of extent 1 carry nothing.
    for (std::uint32_t d = 0; d < body.rank();) {
        const bool last_row = d >= body.parallel && body.rank() == body.parallel + 1;
        if (!body.extents[d].is(1) || uses_index(d) || last_row) {
            ++d;
            continue;
        }
        body.extents.erase(body.extents.begin() + d);
        for_each_access([&](Access& a) { a.strides.erase(a.strides.begin() + d); });
        for (auto& node : body.nodes) {
            if (node.op == ScalarOp::kIndex && node.index > d) --node.index;
        }
        if (d < body.parallel) --body.parallel;
    }
}

namespace {

// Calls f for every IntRef of the kernel and for the slot of every parameter node.
template <class F, class G>
void for_each_slot(loopir::Kernel& kernel, F&& on_ref, G&& on_slot) {
    const auto access = [&](Access& a) {
        on_ref(a.offset);
        for (IntRef& s : a.strides) on_ref(s);
        for (loopir::GatherTerm& g : a.gathers) on_ref(g.stride), on_ref(g.extent);
    };
    const auto body = [&](Body& b) {
        for (IntRef& e : b.extents) on_ref(e);
        for (Access& a : b.accesses) access(a);
        for (loopir::Stage& s : b.stages) access(s.target);
        for (loopir::Node& n : b.nodes) {
            if (n.op == ScalarOp::kParam) on_slot(n.index);
        }
    };
    const auto strided = [&](loopir::StridedOperand& o) {
        on_ref(o.offset);
        for (IntRef& s : o.strides) on_ref(s);
    };
    const auto matrix = [&](loopir::MatrixOperand& o) {
        on_ref(o.offset), on_ref(o.row_stride), on_ref(o.col_stride);
        for (IntRef& s : o.batch_strides) on_ref(s);
    };
    body(kernel.body);
    if (kernel.contraction) {
        loopir::Contraction& c = *kernel.contraction;
        on_ref(c.m), on_ref(c.n), on_ref(c.k);
        matrix(c.a), matrix(c.b);
        if (c.prologue) body(*c.prologue);
    }
    if (kernel.attention) {
        loopir::Attention& a = *kernel.attention;
        for (IntRef* r : {&a.batch, &a.heads, &a.kv_heads, &a.q_len, &a.kv_len, &a.head_dim, &a.value_dim}) on_ref(*r);
        strided(a.q), strided(a.k), strided(a.v), strided(a.out);
        if (a.mask) strided(*a.mask);
        if (a.lengths) strided(*a.lengths);
    }
}

}  // namespace

void KernelBuilder::finish() {
    std::vector<bool> used(params.size(), false);
    for_each_slot(
        kernel,
        [&](IntRef& r) {
            if (!r.is_constant) used[static_cast<std::size_t>(r.value)] = true;
        },
        [&](std::uint32_t& slot) { used[slot] = true; });
    std::vector<std::uint32_t> renumbered(params.size(), 0);
    std::vector<Param> kept;
    for (std::size_t i = 0; i < params.size(); ++i) {
        renumbered[i] = static_cast<std::uint32_t>(kept.size());
        if (used[i]) kept.push_back(params[i]);
    }
    for_each_slot(
        kernel,
        [&](IntRef& r) {
            if (!r.is_constant) r.value = renumbered[static_cast<std::size_t>(r.value)];
        },
        [&](std::uint32_t& slot) { slot = renumbered[slot]; });
    params = std::move(kept);
    dims_.clear();
    kernel.param_count = static_cast<std::uint32_t>(params.size());
}

}  // namespace flexor::lower
