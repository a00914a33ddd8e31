#include "lower/contraction.h"

#include "support/diagnostic.h"

namespace flexor::lower {

using loopir::Contraction;
using loopir::MatrixOperand;
using loopir::ScalarOp;
using loopir::StridedOperand;

namespace {

// 8-bit integers wrap at the end as they would at each step.
DType accumulator_of(DType d) {
    if (d == DType::kF16 || d == DType::kBF16) return DType::kF32;
    return d == DType::kI8 || d == DType::kU8 ? DType::kI32 : d;
}

bool same(const Program& program, const Dim& a, const Dim& b) { return program.env.eq(a, b) == Truth::kTrue; }

// Batch strides of an operand against the result's batch dims; a size that may be 1 at run time gets stride 0 then.
std::vector<Dim> batch_strides(const Program& program, const types::TensorType& t, const std::vector<Dim>& result) {
    const std::size_t batch = result.size() - 2;
    std::vector<Dim> strides(batch, Dim(0));
    const std::size_t own = t.sizes.size() - 2;
    for (std::size_t a = 0; a < own; ++a) {
        const std::size_t d = batch - own + a;
        if (t.sizes[a].is_constant(1)) continue;
        strides[d] = t.strides[a];
        if (!same(program, t.sizes[a], result[d]))
            strides[d] = Dim::min(Dim::max(t.sizes[a] - Dim(1), 0), 1) * strides[d];
    }
    return strides;
}

// Whether every access of `body` steps over dims d and d+1 as over one dim, d+1 having `inner` points.
bool steps_as_one(const KernelBuilder& builder, const Program& program, const Body& body, std::uint32_t d,
                  const Dim& inner) {
    for (const auto& node : body.nodes) {
        if (node.op == ScalarOp::kIndex && (node.index == d || node.index == d + 1)) return false;
    }
    const auto fits = [&](const Access& a) {
        return same(program, builder.dim_of(a.strides[d]), builder.dim_of(a.strides[d + 1]) * inner);
    };
    for (const Access& a : body.accesses) {
        if (!fits(a)) return false;
    }
    for (const auto& stage : body.stages) {
        if (stage.kind == loopir::StageKind::kStore && !fits(stage.target)) return false;
    }
    return true;
}

// Removes dim d; its neighbour d+1 takes over with `extent`.
void merge_dim(Body& body, std::uint32_t d, IntRef extent) {
    body.extents[d + 1] = extent;
    body.extents.erase(body.extents.begin() + d);
    if (d < body.parallel) --body.parallel;
    for (Access& a : body.accesses) a.strides.erase(a.strides.begin() + d);
    for (auto& stage : body.stages) {
        if (stage.kind == loopir::StageKind::kStore) stage.target.strides.erase(stage.target.strides.begin() + d);
    }
    for (auto& node : body.nodes) {
        if (node.op == ScalarOp::kIndex && node.index > d) --node.index;
    }
}

}  // namespace

Expected<std::optional<executable::PackedWeight>> build_contraction(KernelBuilder& builder, const Program& program,
                                                                    const specialised::Block& block,
                                                                    const BlockUnits& units, const Unit& unit,
                                                                    const std::vector<const Inst*>& producers) {
    const Inst& inst = block.insts[unit.members[0].inst];
    const Reg left = inst.operands[0];
    const Reg right = inst.operands[1];
    const types::TensorType& a = program.registers[left].type.type;
    const types::TensorType& b = program.registers[right].type.type;
    const std::vector<Dim>& result = unit.space;
    if (a.rank() < 2 || b.rank() < 2) {
        return Diagnostic(DiagnosticId::kOpNotCompiled)
            .op(std::string(inst.op->name.value))
            .found("a contraction of vectors");
    }
    builder.kernel.kind = loopir::KernelKind::kContraction;
    builder.kernel.contraction.emplace();
    Contraction& c = *builder.kernel.contraction;
    c.a_dtype = a.dtype;
    c.b_dtype = b.dtype;
    c.accumulator = accumulator_of(inst.dtypes.results[0]);
    if (c.a_dtype != c.b_dtype) {
        return Diagnostic(DiagnosticId::kOpNotCompiled)
            .op(std::string(inst.op->name.value))
            .found("a contraction of two dtypes");
    }
    std::size_t batch = result.size() - 2;
    Dim m = result[batch];
    const Dim k = a.sizes.back();
    std::vector<Dim> a_batch = batch_strides(program, a, result);
    std::vector<Dim> b_batch = batch_strides(program, b, result);
    const Dim a_row = a.strides[a.strides.size() - 2];
    std::vector<Dim> batch_extents(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(batch));

    std::optional<Body> prologue;
    if (unit.prologue) prologue = builder.row_body(units.units[*unit.prologue], left);
    Body epilogue = builder.epilogue_body(unit);

    // Batch dims over which the right side does not move become rows.
    while (batch > 0) {
        const auto d = static_cast<std::uint32_t>(batch - 1);
        bool fits = b_batch[d].is_constant(0) && steps_as_one(builder, program, epilogue, d, m);
        fits =
            fits && (prologue ? steps_as_one(builder, program, *prologue, d, m) : same(program, a_batch[d], a_row * m));
        // A dim of one point steps in any way.
        if (!fits && !batch_extents[d].is_constant(1)) break;
        m = program.env.simplify(batch_extents[d] * m);
        const IntRef extent = builder.integer(m);
        merge_dim(epilogue, d, extent);
        if (prologue) merge_dim(*prologue, d, extent);
        batch_extents.pop_back();
        a_batch.pop_back();
        b_batch.pop_back();
        --batch;
    }
    c.batch_dims = static_cast<std::uint32_t>(batch);
    c.m = builder.integer(m);
    c.n = builder.integer(result.back());
    c.k = builder.integer(k);
    if (prologue) {
        c.prologue = std::move(prologue);
        c.a.buffer = 0;
        c.a.row_stride = c.k;
        c.a.col_stride = IntRef::constant(1);
        c.a.batch_strides.assign(batch, IntRef::constant(0));
    } else {
        c.a.buffer = builder.buffer(program.registers[left].root, false);
        c.a.offset = builder.integer(a.offset);
        c.a.row_stride = builder.integer(a_row);
        c.a.col_stride = builder.integer(a.strides.back());
        for (const Dim& s : a_batch) c.a.batch_strides.push_back(builder.integer(s));
    }
    for (const Dim& s : b_batch) c.b.batch_strides.push_back(builder.integer(s));
    const Dim b_row = b.strides[b.strides.size() - 2];
    c.b.row_stride = builder.integer(b_row);
    c.b.col_stride = builder.integer(b.strides.back());
    c.b.offset = builder.integer(b.offset);

    std::optional<executable::PackedWeight> packed;
    const Inst* source = producers[program.registers[right].root];
    bool constant = source != nullptr && source->kind == InstKind::kWeight && is_floating(b.dtype);
    for (const Dim& s : b_batch) constant = constant && s.is_constant(0);
    constant = constant && c.k.is_constant && c.n.is_constant && c.b.row_stride.is_constant &&
               c.b.col_stride.is_constant && c.b.offset.is_constant;
    if (constant) {
        packed.emplace();
        packed->weight = source->index;
        packed->k = c.k.value;
        packed->n = c.n.value;
        packed->row_stride = c.b.row_stride.value;
        packed->col_stride = c.b.col_stride.value;
        packed->offset = c.b.offset.value;
        packed->dtype = b.dtype;
        c.b.packed = true;
        c.b.buffer = static_cast<std::uint32_t>(builder.roots.size());
        builder.roots.push_back(kNoReg);
        builder.kernel.buffers.push_back({program.registers[right].name, b.dtype, true, false});
    } else {
        c.b.buffer = builder.buffer(program.registers[right].root, false);
    }
    builder.kernel.body = std::move(epilogue);
    return packed;
}

void build_attention(KernelBuilder& builder, const Program& program, const Inst& inst) {
    const auto type = [&](Reg r) -> const types::TensorType& { return program.registers[r].type.type; };
    const types::TensorType& q = type(inst.operands[0]);
    const types::TensorType& k = type(inst.operands[1]);
    const types::TensorType& v = type(inst.operands[2]);

    builder.kernel.kind = loopir::KernelKind::kAttention;
    builder.kernel.attention.emplace();
    loopir::Attention& attention = *builder.kernel.attention;
    const auto operand = [&](Reg reg, bool written) {
        const types::TensorType& t = type(reg);
        StridedOperand s;
        s.buffer = builder.buffer(program.registers[reg].root, written);
        s.offset = builder.integer(t.offset);
        for (const Dim& stride : t.strides) s.strides.push_back(builder.integer(stride));
        return s;
    };
    // The rules of the op hold here, by a guard or a check before it: equal dtypes and batches, at most one mask of rank 4.
    attention.batch = builder.integer(q.sizes[0]);
    attention.heads = builder.integer(q.sizes[1]);
    attention.kv_heads = builder.integer(k.sizes[1]);
    attention.q_len = builder.integer(q.sizes[2]);
    attention.kv_len = builder.integer(k.sizes[2]);
    attention.head_dim = builder.integer(q.sizes[3]);
    attention.value_dim = builder.integer(v.sizes[3]);
    attention.q = operand(inst.operands[0], false);
    attention.k = operand(inst.operands[1], false);
    attention.v = operand(inst.operands[2], false);
    attention.out = operand(inst.results[0], true);
    attention.dtype = q.dtype;
    if (inst.attrs.text("fully_masked") == "nan") attention.fully_masked = loopir::FullyMasked::kNan;
    if (inst.attrs.find("is_causal") != nullptr && inst.attrs.flag("is_causal"))
        attention.mask_kind = loopir::MaskKind::kCausal;
    if (inst.operands.size() > 3 && inst.operands[3] != kNoReg) {
        const types::TensorType& mask = type(inst.operands[3]);
        attention.mask_kind = mask.dtype == DType::kBool ? loopir::MaskKind::kBoolean : loopir::MaskKind::kAdditive;
        StridedOperand s;
        s.buffer = builder.buffer(program.registers[inst.operands[3]].root, false);
        s.offset = builder.integer(mask.offset);
        const std::size_t missing = 4 - mask.sizes.size();
        const Dim full[4] = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
        for (std::size_t d = 0; d < 4; ++d) {
            if (d < missing || mask.sizes[d - missing].is_constant(1)) {
                s.strides.push_back(IntRef::constant(0));
                continue;
            }
            const Dim& own = mask.sizes[d - missing];
            Dim stride = mask.strides[d - missing];
            if (!same(program, own, full[d])) stride = Dim::min(Dim::max(own - Dim(1), 0), 1) * stride;
            s.strides.push_back(builder.integer(stride));
        }
        attention.mask = std::move(s);
    }
    if (inst.operands.size() > 4 && inst.operands[4] != kNoReg) {
        const types::TensorType& lengths = type(inst.operands[4]);
        StridedOperand s;
        s.buffer = builder.buffer(program.registers[inst.operands[4]].root, false);
        s.offset = builder.integer(lengths.offset);
        s.strides = {builder.integer(lengths.sizes[0].is_constant(1) ? Dim(0) : lengths.strides[0])};
        attention.lengths = std::move(s);
    }
    if (inst.attrs.has("scale")) {
        BodyBuilder b(builder.kernel.body);
        attention.scale = b.constant(q.dtype == DType::kF64 ? DType::kF64 : DType::kF32, inst.attrs.real("scale"));
    }
}

}  // namespace flexor::lower
