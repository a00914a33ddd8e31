#include "codegen/cpu_llvm/row_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Access;
using loopir::Combine;
using loopir::kNoNode;
using loopir::Node;
using loopir::NodeId;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

namespace {
// A float sum adds up at most this many vectors one after the other before it starts a new partial sum: the rounding
// errors of a long sum grow with the length of such a run.
constexpr std::int64_t kSumBlock = 64;
}  // namespace

PlanOptions host_plan_options() {
    PlanOptions o;
    o.vector_bytes = host_target().vector_bits / 8;
    o.cheap_masks = host_target().has_avx512;
    return o;
}

PlanOptions epilogue_plan_options() {
    PlanOptions o = host_plan_options();
    o.keep_vector_last = true;
    return o;
}

PlanOptions prologue_plan_options(DType row_dtype) {
    PlanOptions o = epilogue_plan_options();
    o.scratch_rows_allowed = 1;
    o.scratch_bytes_allowed = static_cast<std::uint32_t>(dtype_size(row_dtype));
    return o;
}

int column_step(const RowPlan& plan) { return plan.lanes * 4; }

std::size_t scratch_bytes(const RowPlan& plan, const std::int64_t* extents) {
    if (plan.scratch_rows == 0) return 0;
    std::int64_t row = 1;
    for (std::uint32_t d = plan.body.parallel; d < plan.body.rank(); ++d) row *= extents[d];
    if (!plan.vector_is_row) row *= plan.block_vectors * plan.lanes;
    const std::size_t bytes = (static_cast<std::size_t>(row) * plan.scratch_element_bytes + 63) / 64 * 64 + 64;
    return bytes * plan.scratch_rows;
}

DType accumulator_dtype(DType value) { return is_half(value) ? DType::kF32 : value; }

// ---------------------------------------------------------------------------------------------- entry

Value RowEmitter::int_ref(const loopir::IntRef& ref) {
    return ref.is_constant ? ir_.index(ref.value) : slots_.at(ref.value);
}

// Every slot the body names, loaded once.
void RowEmitter::load_slots() {
    auto need = [&](const loopir::IntRef& ref) {
        if (ref.is_constant || slots_.contains(ref.value)) return;
        Value at = ir_.index(ref.value);
        Value address = LLVMBuildInBoundsGEP2(ir_.builder(), ir_.i64(), params_, &at, 1, "");
        slots_[ref.value] = LLVMBuildLoad2(ir_.builder(), ir_.i64(), address, "");
    };
    auto access = [&](const Access& a) {
        need(a.offset);
        for (const auto& s : a.strides) need(s);
        for (const auto& g : a.gathers) {
            need(g.stride);
            need(g.extent);
        }
    };
    for (const auto& e : body_.extents) need(e);
    for (const Node& n : body_.nodes) {
        if (n.op == ScalarOp::kLoad) access(body_.accesses[n.index]);
        if (n.op == ScalarOp::kParam) need(loopir::IntRef::slot(n.index));
    }
    for (const Stage& s : body_.stages)
        if (s.kind == StageKind::kStore && !output_row_) access(s.target);
}

void RowEmitter::begin(Value context, bool extents_given) {
    const size_t nodes = body_.nodes.size();
    scalars_.assign(nodes, nullptr);
    broadcasts_.assign(nodes, nullptr);
    vectors_.assign(nodes, Lanes{});
    row_values_.assign(body_.stages.size(), Lanes{});
    index_.assign(body_.rank(), ir_.index(0));
    slots_.clear();
    row_offsets_.clear();
    outer_offsets_.clear();
    outer_pointers_.clear();
    reciprocals_.clear();
    mask_ = {};
    auto field = [&](int i) {
        Value at = ir_.index(i);
        Value address = LLVMBuildInBoundsGEP2(ir_.builder(), ir_.ptr(), context, &at, 1, "");
        return LLVMBuildLoad2(ir_.builder(), ir_.ptr(), address, "");
    };
    buffers_ = field(0);
    params_ = field(1);
    Value extents = extents_given ? field(2) : nullptr;
    fault_ = field(3);
    sink_ = LLVMBuildAlloca(ir_.builder(), ir_.vec(ir_.i64(), 8), "");
    load_slots();
    extents_.clear();
    for (std::uint32_t d = 0; d < body_.rank(); ++d) {
        if (!extents) {
            extents_.push_back(int_ref(body_.extents[d]));
            continue;
        }
        Value at = ir_.index(d);
        Value address = LLVMBuildInBoundsGEP2(ir_.builder(), ir_.i64(), extents, &at, 1, "");
        extents_.push_back(LLVMBuildLoad2(ir_.builder(), ir_.i64(), address, ""));
    }
    buffer_pointers_.clear();
    auto need_buffer = [&](std::uint32_t b) {
        if (buffer_pointers_.size() <= b) buffer_pointers_.resize(b + 1, nullptr);
        if (buffer_pointers_[b]) return;
        Value at = ir_.index(b);
        Value address = LLVMBuildInBoundsGEP2(ir_.builder(), ir_.ptr(), buffers_, &at, 1, "");
        buffer_pointers_[b] = LLVMBuildLoad2(ir_.builder(), ir_.ptr(), address, "");
    };
    for (const Node& n : body_.nodes)
        if (n.op == ScalarOp::kLoad) need_buffer(body_.accesses[n.index].buffer);
    for (const Stage& s : body_.stages)
        if (s.kind == StageKind::kStore && !output_row_) need_buffer(s.target.buffer);
    if (plan_.scratch_rows > 0) {
        Value row = ir_.index(plan_.vector_is_row ? 1 : plan_.block_vectors * plan_.lanes);
        for (std::uint32_t d = body_.parallel; d < body_.rank(); ++d) row = ir_.mul(row, extent(d));
        Value bytes = ir_.add(ir_.mul(row, plan_.scratch_element_bytes), 63);
        scratch_row_bytes_ = ir_.add(ir_.bit_and(bytes, int64_t{-64}), 64);
    }
}

// Values that no loop changes. Loads among them are left to the row: they may need a launch with rows to be valid.
void RowEmitter::emit_kernel_level() {
    for (NodeId n = 0; n < body_.nodes.size(); ++n) {
        const Node& x = body_.nodes[n];
        if (plan_.level[n] != Level::kKernel || x.op == ScalarOp::kConst || x.op == ScalarOp::kLoad) continue;
        bool clean = true;
        std::vector<bool> seen(body_.nodes.size(), false);
        walk(n, seen, [&](NodeId m) {
            const ScalarOp op = body_.nodes[m].op;
            clean = clean && op != ScalarOp::kLoad && op != ScalarOp::kFloorDiv && op != ScalarOp::kFloorMod &&
                    op != ScalarOp::kTruncDiv && op != ScalarOp::kTruncMod;
            return clean;
        });
        if (clean) materialise(n);
    }
}

// ---------------------------------------------------------------------------------------------- nodes

void RowEmitter::walk(NodeId n, std::vector<bool>& seen, const std::function<bool(NodeId)>& enter) {
    if (n == kNoNode || seen[n]) return;
    seen[n] = true;
    if (!enter(n)) return;
    const Node& x = body_.nodes[n];
    for (NodeId o : x.operands) walk(o, seen, enter);
    if (x.op == ScalarOp::kLoad) walk_access(body_.accesses[x.index], seen, enter);
}

void RowEmitter::walk_access(const Access& a, std::vector<bool>& seen, const std::function<bool(NodeId)>& enter) {
    for (const auto& g : a.gathers) walk(g.index, seen, enter);
    walk(a.mask, seen, enter);
}

void RowEmitter::forget(Level from) {
    for (NodeId n = 0; n < body_.nodes.size(); ++n) {
        if (plan_.level[n] < from) continue;
        scalars_[n] = broadcasts_[n] = nullptr;
        vectors_[n] = {};
        reciprocals_.erase(n);
    }
    if (from > Level::kOuter) return;
    outer_offsets_.clear();
    outer_pointers_.clear();
}

Value RowEmitter::scalar(NodeId n) {
    FLEXOR_CHECK(!plan_.along_vector[n]);
    if (!scalars_[n]) scalars_[n] = compute(n, 0, false);
    return scalars_[n];
}

Value RowEmitter::broadcast(NodeId n) {
    const Node& x = body_.nodes[n];
    if (x.op == ScalarOp::kConst) return expr_.constant(x, plan_.lanes);
    if (!broadcasts_[n]) broadcasts_[n] = ir_.broadcast(scalar(n), plan_.lanes);
    return broadcasts_[n];
}

Value RowEmitter::vector(NodeId n, int u) {
    Value& known = vectors_[n][static_cast<size_t>(u)];
    if (known) return known;
    const BufferedNode* b = plan_.find_buffered(n);
    Value v;
    if (b && b->pass < pass_) {
        const DType d = body_.nodes[n].dtype;
        v = load_contiguous(scratch_address(b->slot, d, u), d, lane_mask(u));
    } else {
        v = compute(n, u, true);
    }
    return vectors_[n][static_cast<size_t>(u)] = v;
}

Value RowEmitter::index_node(std::uint32_t dim, int u, bool as_vector) {
    if (!as_vector) return index_[dim];
    const Type t = ir_.vec(ir_.i64(), plan_.lanes);
    Value first = ir_.add(index_[dim], u * plan_.lanes);
    return ir_.add(ir_.broadcast(first, plan_.lanes), ir_.iota(t));
}

Value RowEmitter::compute(NodeId n, int u, bool as_vector) {
    const Node& x = body_.nodes[n];
    const int lanes = as_vector ? plan_.lanes : 1;
    switch (x.op) {
        case ScalarOp::kConst: return expr_.constant(x, lanes);
        case ScalarOp::kParam: {
            Value slot = slots_.at(x.index);
            if (!is_floating(x.dtype)) return convert(ir_, slot, DType::kI64, x.dtype);
            return convert(ir_, ir_.bitcast(slot, ir_.f64()), DType::kF64, x.dtype);
        }
        case ScalarOp::kIndex: return index_node(x.index, u, as_vector);
        case ScalarOp::kLoad:
            return as_vector ? load_vector(body_.accesses[x.index], x.dtype, u)
                             : load_scalar(body_.accesses[x.index], x.dtype);
        case ScalarOp::kRowValue: return row_values_[x.index][static_cast<size_t>(as_vector ? u : 0)];
        case ScalarOp::kAccumulator: {
            Value at = ir_.add(ir_.sub(index_[plan_.vector_dim], sums_first_), u * plan_.lanes);
            return load_contiguous(element_pointer(sums_, sums_dtype_, at), sums_dtype_, lane_mask(u));
        }
        default: break;
    }
    std::array<Value, 3> operands{};
    size_t count = 0;
    for (NodeId o : x.operands)
        if (o != kNoNode) operands[count++] = as_vector ? lanes_of(o, u) : scalar(o);
    const DType operand_dtype = body_.nodes[x.operands[count - 1]].dtype;
    if (as_vector && x.op == ScalarOp::kDiv && x.dtype == DType::kF32 && !plan_.along_vector[x.operands[1]] &&
        plan_.vector_is_row) {
        return divide_by_invariant(operands[0], x.operands[1]);
    }
    auto zero_divisor = [&](Value bad) {
        report_fault(as_vector && lane_mask(u) ? ir_.bit_and(bad, lane_mask(u)) : bad);
    };
    return expr_.emit(x.op, x.dtype, operand_dtype, std::span(operands.data(), count), zero_divisor);
}

// a / d for a divisor known outside the loop: multiply by the reciprocal, then correct by the remainder, which gives
// the rounded quotient. The divisor is scaled to where its reciprocal is a normal number; a remainder that is not
// finite (zero, infinite or NaN operands) leaves the product, which is right then.
Value RowEmitter::divide_by_invariant(Value a, NodeId divisor) {
    const Type t = ir_.f32();
    auto& known = reciprocals_[divisor];
    if (!known[0]) {
        Value d = scalar(divisor);
        Value size = ir_.fabs(d);
        Value s = ir_.select(ir_.fcmp(LLVMRealOLT, size, 0x1p-60), ir_.fp(t, 0x1p64), ir_.fp(t, 1.0));
        s = ir_.select(ir_.fcmp(LLVMRealOGT, size, 0x1p60), ir_.fp(t, 0x1p-64), s);
        known[0] = ir_.broadcast(ir_.fmul(d, s), plan_.lanes);
        known[1] = ir_.broadcast(ir_.fdiv(ir_.fp(t, 1.0), ir_.fmul(d, s)), plan_.lanes);
        reciprocals_[divisor + static_cast<NodeId>(body_.nodes.size())][0] = ir_.broadcast(s, plan_.lanes);
    }
    Value scaled = ir_.fmul(a, reciprocals_[divisor + static_cast<NodeId>(body_.nodes.size())][0]);
    Value q = ir_.fmul(scaled, known[1]);
    Value rest = ir_.fnma(q, known[0], scaled);
    Value better = ir_.fma(rest, known[1], q);
    Value finite = ir_.fcmp(LLVMRealOLT, ir_.fabs(rest), ir_.infinity(Ir::type_of(a)));
    return ir_.select(finite, better, q);
}

void RowEmitter::materialise(NodeId n) {
    if (body_.nodes[n].op == ScalarOp::kConst) return;
    if (plan_.along_vector[n]) {
        for (int u = 0; u < plan_.block_vectors; ++u) vector(n, u);
    } else {
        broadcast(n);
    }
}

// Emits here what `pass` needs from the levels up to `at`, so that it dominates the loops inside.
void RowEmitter::prepare(std::uint32_t pass, Level at) {
    std::vector<bool> seen(body_.nodes.size(), false);
    auto enter = [&](NodeId n) {
        const Node& x = body_.nodes[n];
        if (plan_.level[n] <= at) {
            materialise(n);
            return false;
        }
        const BufferedNode* b = plan_.find_buffered(n);
        if (b && b->pass < pass) return false;
        if (x.op == ScalarOp::kLoad) prepare_access(body_.accesses[x.index], x.dtype, at);
        if (x.op == ScalarOp::kDiv && x.dtype == DType::kF32 && plan_.vector_is_row && plan_.along_vector[n]) {
            const NodeId d = x.operands[1];
            if (!plan_.along_vector[d] && plan_.level[d] <= at && !reciprocals_.contains(d))
                divide_by_invariant(broadcast(d), d);
        }
        return true;
    };
    const Pass& p = plan_.passes[pass];
    for (std::uint32_t s : p.loop) {
        const Stage& stage = body_.stages[s];
        walk(stage.value, seen, enter);
        if (stage.kind == StageKind::kStore && !output_row_) {
            walk_access(stage.target, seen, enter);
            prepare_access(stage.target, body_.nodes[stage.value].dtype, at);
        }
    }
}

void RowEmitter::prepare_access(const Access& a, DType dtype, Level at) {
    if (at == Level::kRow) row_offsets(a);
    if (at == Level::kOuter || plan_.outer_rows.empty()) outer_pointer(a, dtype);
}

// ---------------------------------------------------------------------------------------------- reductions

std::vector<RowEmitter::Reduction> RowEmitter::reductions(std::uint32_t pass) const {
    std::vector<Reduction> all;
    for (std::uint32_t s : plan_.passes[pass].loop) {
        const Stage& stage = body_.stages[s];
        if (stage.kind != StageKind::kReduce) continue;
        const bool logical = stage.combine == Combine::kAny || stage.combine == Combine::kAll;
        const DType d = logical ? DType::kBool : accumulator_dtype(body_.nodes[stage.value].dtype);
        const bool is_arg = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
        all.push_back({s, stage.combine, d, is_arg, stage.combine == Combine::kSum && is_floating(d)});
    }
    return all;
}

Value RowEmitter::identity(const Reduction& r, Type t) {
    const bool floating = is_floating(r.dtype);
    const int bits = r.dtype == DType::kBool ? 1 : static_cast<int>(8 * dtype_size(r.dtype));
    const bool is_signed = is_signed_integer(r.dtype);
    const std::uint64_t high = is_signed ? (~std::uint64_t{0} >> (65 - bits)) : (~std::uint64_t{0} >> (64 - bits));
    const std::uint64_t low = is_signed ? ~high : 0;
    switch (r.combine) {
        case Combine::kSum:
        case Combine::kAny: return floating ? ir_.fp(t, 0.0) : ir_.integer(t, 0);
        case Combine::kProd: return floating ? ir_.fp(t, 1.0) : ir_.integer(t, 1);
        case Combine::kAll: return floating ? ir_.fp(t, 1.0) : ir_.integer(t, 1);
        case Combine::kMax:
        case Combine::kArgMax: return floating ? ir_.infinity(t, true) : ir_.integer(t, static_cast<std::int64_t>(low));
        case Combine::kMin:
        case Combine::kArgMin: return floating ? ir_.infinity(t) : ir_.integer(t, static_cast<std::int64_t>(high));
    }
    return nullptr;
}

Value RowEmitter::combine(const Reduction& r, Value a, Value b) {
    const bool floating = is_floating(r.dtype);
    const bool is_signed = is_signed_integer(r.dtype);
    switch (r.combine) {
        case Combine::kSum:
            if (!floating) return r.dtype == DType::kBool ? ir_.bit_or(a, b) : ir_.add(a, b);
            // A product added to a running sum may contract to fma.
            {
                Value s = ir_.fadd(a, b);
                if (LLVMIsAInstruction(s)) LLVMSetFastMathFlags(s, LLVMFastMathAllowContract);
                return s;
            }
        case Combine::kProd: return floating ? ir_.fmul(a, b) : ir_.mul(a, b);
        case Combine::kMax:
            if (floating) return expr_.math().max(a, b);
            return ir_.select(ir_.icmp(is_signed ? LLVMIntSGT : LLVMIntUGT, a, b), a, b);
        case Combine::kMin:
            if (floating) return expr_.math().min(a, b);
            return ir_.select(ir_.icmp(is_signed ? LLVMIntSLT : LLVMIntULT, a, b), a, b);
        case Combine::kAny: return ir_.bit_or(a, b);
        case Combine::kAll: return ir_.bit_and(a, b);
        default: return nullptr;
    }
}

void RowEmitter::combine_arg(const Reduction& r, Value& value, Value& position, Value other, Value other_position) {
    const bool max = r.combine == Combine::kArgMax;
    Value better, equal;
    if (is_floating(r.dtype)) {
        better = ir_.fcmp(max ? LLVMRealOGT : LLVMRealOLT, other, value);
        equal = ir_.fcmp(LLVMRealOEQ, other, value);
        Value nan = ir_.is_nan(other), had_nan = ir_.is_nan(value);
        better = ir_.bit_or(better, ir_.bit_and(nan, ir_.bit_not(had_nan)));
        equal = ir_.bit_or(equal, ir_.bit_and(nan, had_nan));
    } else {
        const bool is_signed = is_signed_integer(r.dtype);
        better =
            ir_.icmp(max ? (is_signed ? LLVMIntSGT : LLVMIntUGT) : (is_signed ? LLVMIntSLT : LLVMIntULT), other, value);
        equal = ir_.icmp(LLVMIntEQ, other, value);
    }
    Value earlier = ir_.icmp(LLVMIntULT, other_position, position);
    Value take = ir_.bit_or(better, ir_.bit_and(equal, earlier));
    value = ir_.select(take, other, value);
    position = ir_.select(take, other_position, position);
}

// Row-major position of each lane in the row space.
Value RowEmitter::row_position(int u) {
    Value scale = ir_.index(1), sum = ir_.index(0), lane_scale = nullptr;
    for (std::uint32_t d = body_.rank(); d-- > body_.parallel;) {
        sum = ir_.add(sum, ir_.mul(index_[d], scale));
        if (d == plan_.vector_dim) lane_scale = scale;
        scale = ir_.mul(scale, extent(d));
    }
    Value all = ir_.broadcast(sum, plan_.lanes);
    if (!lane_scale) return all;
    const Type t = ir_.vec(ir_.i64(), plan_.lanes);
    Value lane = ir_.add(ir_.iota(t), u * plan_.lanes);
    return ir_.add(all, ir_.mul(lane, ir_.broadcast(lane_scale, plan_.lanes)));
}

// Accumulators in order: each reduction's copies, then its positions if it is an arg reduction.
std::vector<Value> RowEmitter::identities(const std::vector<Reduction>& all, int copies) {
    std::vector<Value> carried;
    for (const Reduction& r : all) {
        Value id = identity(r, ir_.vec(register_type(ir_, r.dtype), plan_.lanes));
        carried.insert(carried.end(), static_cast<size_t>(copies), id);
        if (r.is_arg)
            carried.insert(carried.end(), static_cast<size_t>(copies),
                           ir_.integer(ir_.vec(ir_.i64(), plan_.lanes), -1));
    }
    return carried;
}

// Turns accumulators into the row values: copies and lanes are combined as a tree; along a parallel vector dim every
// lane is a row of its own.
void RowEmitter::finish_reductions(const std::vector<Reduction>& all, std::vector<Value> carried, int copies) {
    size_t at = 0;
    const auto n = static_cast<size_t>(copies);
    for (const Reduction& r : all) {
        std::vector<Value> values(carried.begin() + static_cast<std::ptrdiff_t>(at),
                                  carried.begin() + static_cast<std::ptrdiff_t>(at + n));
        at += n;
        std::vector<Value> positions;
        if (r.is_arg) {
            positions.assign(carried.begin() + static_cast<std::ptrdiff_t>(at),
                             carried.begin() + static_cast<std::ptrdiff_t>(at + n));
            at += n;
        }
        Lanes& result = row_values_[r.stage];
        const DType value_dtype = body_.nodes[body_.stages[r.stage].value].dtype;
        const DType stage_dtype = r.dtype == DType::kBool ? DType::kBool : value_dtype;
        auto finish = [&](size_t i) {
            if (!r.is_arg) return convert(ir_, values[i], r.dtype, stage_dtype);
            Value none = ir_.icmp(LLVMIntEQ, positions[i], -1);
            return ir_.select(none, ir_.integer(Ir::type_of(positions[i]), 0), positions[i]);
        };
        if (!plan_.vector_is_row) {
            for (size_t i = 0; i < n; ++i) result[i] = finish(i);
            continue;
        }
        for (size_t width = n; width > 1; width /= 2) {
            for (size_t i = 0; i < width / 2; ++i) {
                if (r.is_arg)
                    combine_arg(r, values[i], positions[i], values[i + width / 2], positions[i + width / 2]);
                else
                    values[i] = combine(r, values[i], values[i + width / 2]);
            }
        }
        for (int width = plan_.lanes; width > 1; width /= 2) {
            Value low = ir_.slice(values[0], 0, width / 2), high = ir_.slice(values[0], width / 2, width / 2);
            if (r.is_arg) {
                Value p = ir_.slice(positions[0], 0, width / 2);
                combine_arg(r, low, p, high, ir_.slice(positions[0], width / 2, width / 2));
                positions[0] = p;
                values[0] = low;
            } else {
                values[0] = combine(r, low, high);
            }
        }
        result[0] = finish(0);
        if (plan_.form == RowForm::kSplit) {
            row_values_[r.stage] = {values[0], r.is_arg ? positions[0] : nullptr};
        }
    }
}

// ---------------------------------------------------------------------------------------------- loops

std::vector<Value> RowEmitter::loop(Value begin, Value end, std::int64_t step, std::vector<Value> carried,
                                    const std::function<void(Value, std::vector<Value>&)>& body) {
    Block before = ir_.block_here(), head = ir_.new_block("loop"), after = ir_.new_block("after");
    ir_.branch(ir_.icmp(LLVMIntSLT, begin, end), head, after);
    ir_.at_end_of(head);
    Value i = ir_.phi(ir_.i64());
    std::vector<Value> inside;
    for (Value c : carried) inside.push_back(ir_.phi(Ir::type_of(c)));
    std::vector<Value> updated = inside;
    body(i, updated);
    Value next = ir_.add(i, step);
    Block last = ir_.block_here();
    Ir::incoming(i, begin, before);
    Ir::incoming(i, next, last);
    for (size_t k = 0; k < carried.size(); ++k) {
        Ir::incoming(inside[k], carried[k], before);
        Ir::incoming(inside[k], updated[k], last);
    }
    ir_.branch(ir_.icmp(LLVMIntSLT, next, end), head, after);
    ir_.at_end_of(after);
    std::vector<Value> result;
    for (size_t k = 0; k < carried.size(); ++k) {
        Value merged = ir_.phi(Ir::type_of(carried[k]));
        Ir::incoming(merged, carried[k], before);
        Ir::incoming(merged, updated[k], last);
        result.push_back(merged);
    }
    return result;
}

// The lanes below `count` (any integer).
Value RowEmitter::mask_of_count(Value count) {
    const Type i32 = ir_.vec(ir_.i32(), plan_.lanes);
    Value limit = ir_.index(plan_.lanes);
    Value zero = ir_.index(0);
    count = ir_.select(ir_.icmp(LLVMIntSLT, count, limit), count, limit);
    count = ir_.select(ir_.icmp(LLVMIntSGT, count, zero), count, zero);
    return ir_.icmp(LLVMIntSLT, ir_.iota(i32), ir_.broadcast(ir_.trunc(count, ir_.i32()), plan_.lanes));
}

void RowEmitter::set_tail_masks(Value remaining, int copies) {
    for (int u = 0; u < copies; ++u) mask_[static_cast<size_t>(u)] = mask_of_count(ir_.sub(remaining, u * plan_.lanes));
}

void RowEmitter::loop_body(std::uint32_t pass, const std::vector<Reduction>& all, int copies,
                           std::vector<Value>& carried) {
    forget(Level::kInner);
    const Pass& p = plan_.passes[pass];
    const auto n = static_cast<size_t>(copies);
    for (int u = 0; u < copies; ++u) {
        size_t at = 0, next_reduction = 0;
        for (std::uint32_t s : p.loop) {
            const Stage& stage = body_.stages[s];
            Value v = lanes_of(stage.value, u);
            const DType d = body_.nodes[stage.value].dtype;
            if (stage.kind == StageKind::kStore) {
                store_vector(stage.target, d, v, u);
                continue;
            }
            const Reduction& r = all[next_reduction++];
            v = convert(ir_, v, d, r.dtype);
            const size_t slot = at + static_cast<size_t>(u);
            Value mask = lane_mask(u);
            if (mask) v = ir_.select(mask, v, identity(r, Ir::type_of(v)));
            if (r.is_arg) {
                Value position = row_position(u);
                if (mask) position = ir_.select(mask, position, ir_.integer(Ir::type_of(position), -1));
                combine_arg(r, carried[slot], carried[slot + n], v, position);
                at += 2 * n;
            } else {
                carried[slot] = combine(r, carried[slot], v);
                at += n;
            }
        }
        for (NodeId saved : p.save) {
            const DType d = body_.nodes[saved].dtype;
            store_contiguous(scratch_address(plan_.find_buffered(saved)->slot, d, u), d, vector(saved, u),
                             lane_mask(u));
        }
    }
}

// A loop whose float sums start afresh every kSumBlock steps and are then added to the total, unless the constant
// extent of the inner dim makes it a short one.
std::vector<Value> RowEmitter::summing_loop(const std::vector<Reduction>& all, Value begin, Value end,
                                            std::int64_t step, int copies, std::vector<Value> carried,
                                            const std::function<void(Value, std::vector<Value>&)>& body) {
    const bool sums = std::any_of(all.begin(), all.end(), [](const Reduction& r) { return r.is_float_sum; });
    const loopir::IntRef& extent = body_.extents[plan_.inner_dim];
    const bool is_short = extent.is_constant && extent.value <= step * kSumBlock && plan_.form == RowForm::kRows;
    if (!sums || is_short) return loop(begin, end, step, std::move(carried), body);
    auto each_sum = [&](const std::function<void(const Reduction&, size_t)>& f) {
        size_t at = 0;
        for (const Reduction& r : all) {
            for (int u = 0; u < copies; ++u)
                if (r.is_float_sum) f(r, at + static_cast<size_t>(u));
            at += static_cast<size_t>(copies) * (r.is_arg ? 2 : 1);
        }
    };
    // The totals are compensated: what each addition of a block rounds away is kept beside it. Contraction would spoil
    // that, hence plain additions.
    std::vector<size_t> sum_at;
    each_sum([&](const Reduction&, size_t k) { sum_at.push_back(k); });
    const size_t count = carried.size();
    for (size_t k : sum_at) carried.push_back(ir_.fp(Ir::type_of(carried[k]), 0.0));
    carried = loop(begin, end, step * kSumBlock, std::move(carried), [&](Value i, std::vector<Value>& total) {
        Value stop = ir_.add(i, step * kSumBlock);
        stop = ir_.select(ir_.icmp(LLVMIntSLT, stop, end), stop, end);
        std::vector<Value> block(total.begin(), total.begin() + static_cast<std::ptrdiff_t>(count));
        const std::vector<Value> zero = identities(all, copies);
        for (size_t k : sum_at) block[k] = zero[k];
        block = loop(i, stop, step, std::move(block), body);
        for (size_t j = 0; j < sum_at.size(); ++j) {
            const size_t k = sum_at[j];
            Value sum = ir_.fadd(total[k], block[k]);
            Value part = ir_.fsub(sum, total[k]);
            Value lost = ir_.fadd(ir_.fsub(total[k], ir_.fsub(sum, part)), ir_.fsub(block[k], part));
            total[count + j] = ir_.fadd(total[count + j], lost);
            block[k] = sum;
        }
        std::copy(block.begin(), block.end(), total.begin());
    });
    for (size_t j = 0; j < sum_at.size(); ++j) {
        Value& total = carried[sum_at[j]];
        Value lost = carried[count + j];
        Value usable = ir_.fcmp(LLVMRealORD, lost, lost);  // not so once the total is infinite
        total = ir_.select(usable, ir_.fadd(total, lost), total);
    }
    carried.resize(count);
    return carried;
}

std::vector<Value> RowEmitter::inner_loops(std::uint32_t pass, const std::vector<Reduction>& all,
                                           std::vector<Value> carried) {
    const Pass& p = plan_.passes[pass];
    Value begin = inner_begin_ ? inner_begin_ : ir_.index(0);
    Value end = inner_end_ ? inner_end_ : extent(plan_.inner_dim);
    const std::uint32_t dim = plan_.inner_dim;
    if (!plan_.vector_is_row) {
        return summing_loop(all, begin, end, 1, plan_.block_vectors, std::move(carried),
                            [&](Value i, std::vector<Value>& c) {
                                index_[dim] = i;
                                loop_body(pass, all, plan_.block_vectors, c);
                            });
    }
    auto masked_body = [&](Value i, std::vector<Value>& inside) {
        index_[dim] = i;
        set_tail_masks(ir_.sub(end, i), 1);
        loop_body(pass, all, 1, inside);
        mask_ = {};
    };
    const bool no_tail = plan_.exact_rows;
    if (p.masked_only && !no_tail) {
        return summing_loop(all, begin, end, plan_.lanes, 1, std::move(carried), masked_body);
    }
    const std::int64_t step = std::int64_t{plan_.lanes} * p.unroll;
    Value main_end = no_tail ? end : ir_.add(begin, ir_.bit_and(ir_.sub(end, begin), -step));
    carried = summing_loop(all, begin, main_end, step, p.unroll, std::move(carried),
                           [&](Value i, std::vector<Value>& inside) {
                               index_[dim] = i;
                               loop_body(pass, all, p.unroll, inside);
                           });
    if (no_tail) return carried;
    // The tail uses the first copy of each accumulator.
    const auto n = static_cast<size_t>(p.unroll);
    std::vector<Value> first;
    std::vector<size_t> where;
    size_t at = 0;
    for (const Reduction& r : all) {
        for (int part = 0; part < (r.is_arg ? 2 : 1); ++part, at += n) {
            first.push_back(carried[at]);
            where.push_back(at);
        }
    }
    first = loop(main_end, end, plan_.lanes, std::move(first), masked_body);
    for (size_t k = 0; k < where.size(); ++k) carried[where[k]] = first[k];
    return carried;
}

// Loops over the row dims outside the inner one. Accumulators live in memory here: `carried` are their addresses.
void RowEmitter::outer_loops(std::uint32_t pass, size_t depth, const std::vector<Reduction>& all, int copies,
                             std::vector<Value>& carried) {
    if (depth < plan_.outer_rows.size()) {
        const std::uint32_t dim = plan_.outer_rows[depth];
        Value begin = depth == 0 && outer_begin_ ? outer_begin_ : ir_.index(0);
        Value end = depth == 0 && outer_end_ ? outer_end_ : extent(dim);
        loop(begin, end, 1, {}, [&](Value i, std::vector<Value>&) {
            index_[dim] = i;
            outer_loops(pass, depth + 1, all, copies, carried);
        });
        return;
    }
    forget(Level::kOuter);
    outer_position_ = ir_.index(0);
    for (std::uint32_t d : plan_.outer_rows) outer_position_ = ir_.add(ir_.mul(outer_position_, extent(d)), index_[d]);
    prepare(pass, Level::kOuter);
    const std::vector<Value> types = identities(all, copies);
    std::vector<Value> values;
    for (size_t k = 0; k < carried.size(); ++k)
        values.push_back(LLVMBuildLoad2(ir_.builder(), Ir::type_of(types[k]), carried[k], ""));
    values = inner_loops(pass, all, std::move(values));
    for (size_t k = 0; k < carried.size(); ++k) LLVMBuildStore(ir_.builder(), values[k], carried[k]);
}

void RowEmitter::run_once_stages(std::uint32_t pass) {
    for (std::uint32_t s : plan_.passes[pass].once) {
        const Stage& stage = body_.stages[s];
        const DType d = body_.nodes[stage.value].dtype;
        if (plan_.vector_is_row) {
            store_scalar(stage.target, d, scalar(stage.value));
        } else {
            for (int u = 0; u < plan_.block_vectors; ++u) store_vector(stage.target, d, lanes_of(stage.value, u), u);
        }
    }
}

void RowEmitter::emit_pass(std::uint32_t pass) {
    pass_ = pass;
    forget(Level::kOuter);
    const Pass& p = plan_.passes[pass];
    run_once_stages(pass);
    if (p.loop.empty() && p.save.empty()) return;
    const std::vector<Reduction> all = reductions(pass);
    const bool masked = plan_.vector_is_row && p.masked_only && !plan_.exact_rows;
    const int copies = !plan_.vector_is_row ? plan_.block_vectors : masked ? 1 : p.unroll;
    prepare(pass, Level::kRow);
    std::vector<Value> carried = identities(all, copies);
    if (plan_.outer_rows.empty()) {
        outer_position_ = ir_.index(0);
        carried = inner_loops(pass, all, std::move(carried));
    } else {
        std::vector<Value> memory;
        for (Value v : carried) {
            // In the entry block: an alloca inside a loop would grow the stack.
            Block here = ir_.block_here();
            Block entry = LLVMGetEntryBasicBlock(ir_.function_here());
            LLVMPositionBuilderBefore(ir_.builder(), LLVMGetFirstInstruction(entry));
            memory.push_back(LLVMBuildAlloca(ir_.builder(), Ir::type_of(v), ""));
            ir_.at_end_of(here);
            LLVMBuildStore(ir_.builder(), v, memory.back());
        }
        outer_loops(pass, 0, all, copies, memory);
        for (size_t k = 0; k < carried.size(); ++k)
            carried[k] = LLVMBuildLoad2(ir_.builder(), Ir::type_of(carried[k]), memory[k], "");
    }
    finish_reductions(all, std::move(carried), copies);
}

void RowEmitter::emit_passes() {
    for (std::uint32_t p = 0; p < plan_.passes.size(); ++p) emit_pass(p);
}

Value RowEmitter::block_count(std::uint32_t dim) {
    if (dim != plan_.vector_dim) return extent(dim);
    const int block = plan_.block_vectors * plan_.lanes;
    return ir_.lshr(ir_.add(extent(dim), block - 1), std::countr_zero(static_cast<unsigned>(block)));
}

// Splits a flat index over `dims`, the last one fastest.
void RowEmitter::set_row_indices(Value flat, const std::vector<std::uint32_t>& dims) {
    for (size_t k = dims.size(); k-- > 0;) {
        if (k == 0) {
            index_[dims[k]] = flat;
            break;
        }
        Value e = block_count(dims[k]);
        index_[dims[k]] = LLVMBuildURem(ir_.builder(), flat, e, "");
        flat = LLVMBuildUDiv(ir_.builder(), flat, e, "");
    }
}

void RowEmitter::emit_rows(const std::string& name) {
    const Type i64 = ir_.i64(), ptr = ir_.ptr();
    Value f = ir_.begin_function(name.c_str(), ir_.void_type(), {ptr, i64, i64, i64, i64, ptr}, false);
    begin(Ir::param(f, 0), true);
    scratch_ = Ir::param(f, 5);
    if (plan_.form == RowForm::kElementwise) {
        inner_begin_ = Ir::param(f, 3);
        inner_end_ = Ir::param(f, 4);
    }
    emit_kernel_level();
    std::vector<std::uint32_t> dims;
    for (std::uint32_t d = 0; d < body_.parallel; ++d) dims.push_back(d);
    Value row_begin = Ir::param(f, 1), row_end = Ir::param(f, 2);
    // The first row's indices by division; the following ones by carrying.
    std::vector<Value> start;
    Block entry_tail = ir_.new_block("start"), done = ir_.new_block("done");
    ir_.branch(ir_.icmp(LLVMIntSLT, row_begin, row_end), entry_tail, done);
    ir_.at_end_of(entry_tail);
    set_row_indices(row_begin, dims);
    for (std::uint32_t d : dims) start.push_back(index_[d]);
    loop(row_begin, row_end, 1, start, [&](Value, std::vector<Value>& counters) {
        for (size_t k = 0; k < dims.size(); ++k) {
            index_[dims[k]] = counters[k];
            if (dims[k] != plan_.vector_dim) continue;
            const int block = plan_.block_vectors * plan_.lanes;
            index_[dims[k]] = ir_.mul(counters[k], block);
            set_tail_masks(ir_.sub(extent(dims[k]), index_[dims[k]]), plan_.block_vectors);
        }
        emit_passes();
        mask_ = {};
        Value carry = LLVMConstInt(ir_.i1(), 1, 0);
        for (size_t k = dims.size(); k-- > 0;) {
            Value stepped = ir_.add(counters[k], ir_.zext(carry, i64));
            if (k == 0) {
                counters[k] = stepped;
                break;
            }
            carry = ir_.icmp(LLVMIntEQ, stepped, block_count(dims[k]));
            counters[k] = ir_.select(carry, ir_.index(0), stepped);
        }
    });
    ir_.jump(done);
    ir_.at_end_of(done);
    ir_.ret();
    ir_.end_function();
    inner_begin_ = inner_end_ = nullptr;
}

void RowEmitter::emit_split(const std::string& name) {
    const Type i64 = ir_.i64(), ptr = ir_.ptr();
    for (std::uint32_t pass = 0; pass < plan_.passes.size(); ++pass) {
        Value f = ir_.begin_function((name + "." + std::to_string(pass)).c_str(), ir_.void_type(),
                                     {ptr, i64, i64, i64, i64, ptr, ptr, ptr}, false);
        begin(Ir::param(f, 0), true);
        outer_begin_ = Ir::param(f, 1);
        outer_end_ = Ir::param(f, 2);
        inner_begin_ = Ir::param(f, 3);
        inner_end_ = Ir::param(f, 4);
        scratch_ = Ir::param(f, 5);
        auto slot = [&](int which, std::uint32_t stage, int field) {
            Value at = ir_.index(2 * std::int64_t{stage} + field);
            return LLVMBuildInBoundsGEP2(ir_.builder(), i64, Ir::param(f, which), &at, 1, "");
        };
        for (std::uint32_t s = 0; s < body_.stages.size(); ++s) {
            if (body_.stages[s].kind != StageKind::kReduce || plan_.stage_pass[s] >= pass) continue;
            const Combine c = body_.stages[s].combine;
            const DType stage_dtype = body_.nodes[body_.stages[s].value].dtype;
            if (c == Combine::kArgMax || c == Combine::kArgMin) {
                Value position = LLVMBuildLoad2(ir_.builder(), i64, slot(6, s, 1), "");
                Value none = ir_.icmp(LLVMIntEQ, position, -1);
                row_values_[s][0] = ir_.select(none, ir_.index(0), position);
                continue;
            }
            const bool logical = c == Combine::kAny || c == Combine::kAll;
            const DType d = logical ? DType::kBool : accumulator_dtype(stage_dtype);
            Value v = LLVMBuildLoad2(ir_.builder(), memory_type(ir_, d), slot(6, s, 0), "");
            row_values_[s][0] = convert(ir_, from_memory(ir_, v, d), d, logical ? d : stage_dtype);
        }
        emit_kernel_level();
        emit_pass(pass);
        for (const Reduction& r : reductions(pass)) {
            LLVMBuildStore(ir_.builder(), to_memory(ir_, row_values_[r.stage][0], r.dtype), slot(7, r.stage, 0));
            if (r.is_arg) LLVMBuildStore(ir_.builder(), row_values_[r.stage][1], slot(7, r.stage, 1));
        }
        ir_.ret();
        ir_.end_function();
        inner_begin_ = inner_end_ = outer_begin_ = outer_end_ = nullptr;
    }
}

void RowEmitter::emit_epilogue(const std::string& name, DType accumulator) {
    const Type i64 = ir_.i64(), ptr = ir_.ptr();
    Value f = ir_.begin_function(name.c_str(), ir_.void_type(), {ptr, i64, i64, i64, i64, ptr}, false);
    begin(Ir::param(f, 0), false);
    sums_ = Ir::param(f, 5);
    sums_first_ = Ir::param(f, 3);
    sums_dtype_ = accumulator;
    std::vector<std::uint32_t> batch;
    for (std::uint32_t d = 0; d + 2 < body_.rank(); ++d) batch.push_back(d);
    set_row_indices(Ir::param(f, 1), batch);
    index_[body_.rank() - 2] = Ir::param(f, 2);
    inner_begin_ = Ir::param(f, 3);
    inner_end_ = ir_.add(Ir::param(f, 3), Ir::param(f, 4));
    emit_passes();
    ir_.ret();
    ir_.end_function();
    inner_begin_ = inner_end_ = sums_ = sums_first_ = nullptr;
}

void RowEmitter::emit_prologue(const std::string& name) {
    const Type i64 = ir_.i64(), ptr = ir_.ptr();
    Value f = ir_.begin_function(name.c_str(), ir_.void_type(), {ptr, i64, i64, i64, ptr}, false);
    output_row_ = Ir::param(f, 4);
    begin(Ir::param(f, 0), false);
    std::vector<std::uint32_t> batch;
    for (std::uint32_t d = 0; d + 2 < body_.rank(); ++d) batch.push_back(d);
    set_row_indices(Ir::param(f, 1), batch);
    const std::uint32_t m = body_.rank() - 2;
    DType dtype = DType::kF32;
    for (const Stage& s : body_.stages)
        if (s.kind == StageKind::kStore) dtype = body_.nodes[s.value].dtype;
    loop(Ir::param(f, 2), Ir::param(f, 3), 1, {}, [&](Value i, std::vector<Value>&) {
        index_[m] = i;
        Value row = ir_.sub(i, Ir::param(f, 2));
        output_row_ = element_pointer(Ir::param(f, 4), dtype, ir_.mul(row, extent(body_.rank() - 1)));
        scratch_ = output_row_;
        emit_passes();
    });
    ir_.ret();
    ir_.end_function();
    output_row_ = nullptr;
}

}  // namespace flexor::codegen::cpu_llvm
