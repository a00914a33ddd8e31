// Loads and stores of row kernels: address arithmetic by level, gathered terms, masks, lanes far apart.
#include "codegen/cpu_llvm/row_kernel.h"
#include "support/check.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Access;
using loopir::GatherTerm;
using loopir::kNoNode;
using loopir::NodeId;

Value RowEmitter::element_pointer(Value base, DType dtype, Value elements) {
    if (Ir::is_zero(elements)) return base;
    return LLVMBuildGEP2(ir_.builder(), memory_type(ir_, dtype), base, &elements, 1, "");
}

// Eight zero bytes: where a load that must not happen reads.
Value RowEmitter::zero_location() {
    const char* name = "flexor.zero";
    if (Value known = LLVMGetNamedGlobal(ir_.module(), name)) return known;
    Value zero = LLVMAddGlobal(ir_.module(), ir_.i64(), name);
    LLVMSetInitializer(zero, ir_.index(0));
    LLVMSetGlobalConstant(zero, 1);
    LLVMSetLinkage(zero, LLVMInternalLinkage);
    return zero;
}

Value RowEmitter::and_masks(Value a, Value b) { return !a ? b : !b ? a : ir_.bit_and(a, b); }

void RowEmitter::report_fault(Value bad) {
    Block raise = ir_.new_block("fault"), join = ir_.new_block("join");
    ir_.branch(ir_.any(bad), raise, join);
    ir_.at_end_of(raise);
    LLVMBuildStore(ir_.builder(), ir_.integer(ir_.i32(), 1), fault_);
    ir_.jump(join);
    ir_.at_end_of(join);
}

// The element offset that an index adds, with indices out of range replaced by 0 and reported; `*in_range` is null or
// collects the lanes in range. Lanes outside `active` do not report.
Value RowEmitter::gather_index(const GatherTerm& g, Value index, Value active, Value* in_range) {
    const DType d = body_.nodes[g.index].dtype;
    index = convert(ir_, index, d, DType::kI64);
    const int lanes = Ir::lanes(index);
    Value extent = ir_.broadcast(int_ref(g.extent), lanes);
    if (g.wrap_negative) {
        index = ir_.select(ir_.icmp(LLVMIntSLT, index, 0), ir_.add(index, extent), index);
    }
    Value inside = ir_.icmp(LLVMIntULT, index, extent);
    Value bad = ir_.bit_not(inside);
    report_fault(active ? ir_.bit_and(bad, active) : bad);
    index = ir_.select(inside, index, ir_.integer(Ir::type_of(index), 0));
    *in_range = and_masks(*in_range, inside);
    return ir_.mul(index, ir_.broadcast(int_ref(g.stride), lanes));
}

// Whether a lane of vector `u` (of any vector of the block if u is -1) passes the access's mask; null: always.
Value RowEmitter::mask_allows(const Access& a, int u) {
    if (a.mask == kNoNode) return nullptr;
    if (!plan_.along_vector[a.mask]) return scalar(a.mask);
    Value allowed = nullptr;
    for (int i = u < 0 ? 0 : u; i < (u < 0 ? plan_.block_vectors : u + 1); ++i) {
        Value here = ir_.any(and_masks(vector(a.mask, i), lane_mask(i)));
        allowed = allowed ? ir_.bit_or(allowed, here) : here;
    }
    return allowed;
}

// Adds the gathered terms with a scalar index whose check belongs to this level: where index and mask are both known.
RowEmitter::Offsets RowEmitter::gather_scalars(const Access& a, Level level, Offsets so_far, int u) {
    for (const GatherTerm& g : a.gathers) {
        if (plan_.along_vector[g.index]) continue;
        Level at = std::max(plan_.level[g.index], Level::kRow);
        if (a.mask != kNoNode) at = std::max(at, plan_.level[a.mask]);
        if (at != level) continue;
        so_far.elements =
            ir_.add(so_far.elements, gather_index(g, scalar(g.index), mask_allows(a, u), &so_far.in_range));
    }
    return so_far;
}

RowEmitter::Offsets RowEmitter::row_offsets(const Access& a) {
    auto known = row_offsets_.find(&a);
    if (known != row_offsets_.end()) return known->second;
    Offsets o{int_ref(a.offset), nullptr};
    for (std::uint32_t d = 0; d < body_.parallel; ++d)
        if (!a.strides[d].is(0)) o.elements = ir_.add(o.elements, ir_.mul(index_[d], int_ref(a.strides[d])));
    o = gather_scalars(a, Level::kRow, o, -1);
    return row_offsets_[&a] = o;
}

RowEmitter::Offsets RowEmitter::outer_offsets(const Access& a) {
    auto known = outer_offsets_.find(&a);
    if (known != outer_offsets_.end()) return known->second;
    Offsets o = row_offsets(a);
    for (std::uint32_t d : plan_.outer_rows)
        if (!a.strides[d].is(0)) o.elements = ir_.add(o.elements, ir_.mul(index_[d], int_ref(a.strides[d])));
    o = gather_scalars(a, Level::kOuter, o, -1);
    if (!plan_.outer_rows.empty()) outer_offsets_[&a] = o;
    return o;
}

// The address without the terms of the inner loop.
Value RowEmitter::outer_pointer(const Access& a, DType dtype) {
    auto known = outer_pointers_.find(&a);
    if (known != outer_pointers_.end()) return known->second;
    return outer_pointers_[&a] = element_pointer(buffer_pointers_[a.buffer], dtype, outer_offsets(a).elements);
}

// The scalar terms that belong to the inner loop.
RowEmitter::Offsets RowEmitter::inner_terms(const Access& a, int u) {
    Offsets o{ir_.index(0), nullptr};
    const std::uint32_t d = plan_.inner_dim;
    if (!a.strides[d].is(0)) o.elements = ir_.mul(index_[d], int_ref(a.strides[d]));
    o = gather_scalars(a, Level::kInner, o, u);
    o.in_range = and_masks(o.in_range, outer_offsets(a).in_range);
    return o;
}

RowEmitter::Place RowEmitter::place(const Access& a, DType dtype, int u) {
    // A row-level vector (parallel vector dim) has no inner terms: its strides there are 0 and its indices are outside.
    Offsets o = inner_terms(a, u);
    Place p;
    p.mask = lane_mask(u);
    if (a.mask != kNoNode) p.mask = and_masks(p.mask, lanes_of(a.mask, u));
    const auto& stride = a.strides[plan_.vector_dim];
    const Type t = ir_.vec(ir_.i64(), plan_.lanes);
    Value first = ir_.index(u * plan_.lanes);
    Value gathered = nullptr, in_range = nullptr;
    for (const GatherTerm& g : a.gathers) {
        if (!plan_.along_vector[g.index]) continue;
        Value term = gather_index(g, vector(g.index, u), p.mask, &in_range);
        gathered = gathered ? ir_.add(gathered, term) : term;
    }
    if (o.in_range) in_range = and_masks(in_range, ir_.broadcast(o.in_range, plan_.lanes));
    p.mask = and_masks(p.mask, in_range);
    p.pointer = element_pointer(outer_pointer(a, dtype), dtype, o.elements);
    if (stride.is(1) && !gathered) {
        p.pointer = element_pointer(p.pointer, dtype, first);
        return p;
    }
    Value step = int_ref(stride);
    Value lane = ir_.add(ir_.iota(t), ir_.broadcast(first, plan_.lanes));
    p.lane_offsets = stride.is(0) ? ir_.integer(t, 0) : ir_.mul(lane, ir_.broadcast(step, plan_.lanes));
    if (gathered) {
        p.lane_offsets = ir_.add(p.lane_offsets, gathered);
    } else if (!stride.is_constant) {
        p.contiguous = ir_.icmp(LLVMIntEQ, step, 1);
    }
    return p;
}

Value RowEmitter::load_contiguous(Value pointer, DType dtype, Value mask) {
    const Type t = ir_.vec(memory_type(ir_, dtype), plan_.lanes);
    Value v;
    if (!mask || plan_.lanes == 1) {
        if (mask) pointer = ir_.select(mask, pointer, zero_location());
        v = LLVMBuildLoad2(ir_.builder(), t, pointer, "");
        LLVMSetAlignment(v, kAnyAlignment);
    } else {
        v = ir_.intrinsic("llvm.masked.load", {t, ir_.ptr()},
                          {pointer, ir_.integer(ir_.i32(), kAnyAlignment), mask, LLVMConstNull(t)});
    }
    return from_memory(ir_, v, dtype);
}

void RowEmitter::store_contiguous(Value pointer, DType dtype, Value v, Value mask) {
    v = to_memory(ir_, v, dtype);
    if (!mask || plan_.lanes == 1) {
        if (mask) pointer = ir_.select(mask, pointer, sink_);
        LLVMSetAlignment(LLVMBuildStore(ir_.builder(), v, pointer), kAnyAlignment);
    } else {
        ir_.intrinsic("llvm.masked.store", {Ir::type_of(v), ir_.ptr()},
                      {v, pointer, ir_.integer(ir_.i32(), kAnyAlignment), mask});
    }
}

// Lanes at their own addresses. Elements of four and eight bytes have instructions for it; others go one by one, lanes
// that are off reading zeros.
Value RowEmitter::load_lanes(Value pointer, Value offsets, DType dtype, Value mask) {
    const Type e = memory_type(ir_, dtype), t = ir_.vec(e, plan_.lanes);
    Value addresses = LLVMBuildGEP2(ir_.builder(), e, pointer, &offsets, 1, "");
    if (plan_.lanes == 1) return load_contiguous(addresses, dtype, mask);
    Value v;
    if (dtype_size(dtype) >= 4) {
        Value all = LLVMConstAllOnes(ir_.vec(ir_.i1(), plan_.lanes));
        v = ir_.intrinsic("llvm.masked.gather", {t, Ir::type_of(addresses)},
                          {addresses, ir_.integer(ir_.i32(), kAnyAlignment), mask ? mask : all, LLVMConstNull(t)});
    } else {
        if (mask) {
            Value nowhere = ir_.broadcast(zero_location(), plan_.lanes);
            addresses = ir_.select(mask, addresses, nowhere);
        }
        v = LLVMGetPoison(t);
        for (int lane = 0; lane < plan_.lanes; ++lane) {
            Value one = LLVMBuildLoad2(ir_.builder(), e, ir_.extract(addresses, lane), "");
            LLVMSetAlignment(one, kAnyAlignment);
            v = ir_.insert(v, one, ir_.index(lane));
        }
    }
    return from_memory(ir_, v, dtype);
}

void RowEmitter::store_lanes(Value pointer, Value offsets, DType dtype, Value v, Value mask) {
    const Type e = memory_type(ir_, dtype);
    Value addresses = LLVMBuildGEP2(ir_.builder(), e, pointer, &offsets, 1, "");
    if (plan_.lanes == 1) return store_contiguous(addresses, dtype, v, mask);
    v = to_memory(ir_, v, dtype);
    if (dtype_size(dtype) >= 4 && Ir::target().has_avx512) {
        Value all = LLVMConstAllOnes(ir_.vec(ir_.i1(), plan_.lanes));
        ir_.intrinsic("llvm.masked.scatter", {Ir::type_of(v), Ir::type_of(addresses)},
                      {v, addresses, ir_.integer(ir_.i32(), kAnyAlignment), mask ? mask : all});
        return;
    }
    if (mask) addresses = ir_.select(mask, addresses, ir_.broadcast(sink_, plan_.lanes));
    for (int lane = 0; lane < plan_.lanes; ++lane) {
        Value store = LLVMBuildStore(ir_.builder(), ir_.extract(v, lane), ir_.extract(addresses, lane));
        LLVMSetAlignment(store, kAnyAlignment);
    }
}

Value RowEmitter::load_vector(const Access& a, DType dtype, int u) {
    Place p = place(a, dtype, u);
    Value pointer = p.pointer;
    if (!p.lane_offsets) return load_contiguous(pointer, dtype, p.mask);
    if (!p.contiguous) return load_lanes(pointer, p.lane_offsets, dtype, p.mask);
    Block near = ir_.new_block("near"), far = ir_.new_block("far"), join = ir_.new_block("join");
    ir_.branch(p.contiguous, near, far);
    ir_.at_end_of(near);
    Value shifted = element_pointer(pointer, dtype, ir_.index(u * plan_.lanes));
    Value close = load_contiguous(shifted, dtype, p.mask);
    Block near_end = ir_.block_here();
    ir_.jump(join);
    ir_.at_end_of(far);
    Value wide = load_lanes(pointer, p.lane_offsets, dtype, p.mask);
    Block far_end = ir_.block_here();
    ir_.jump(join);
    ir_.at_end_of(join);
    Value v = ir_.phi(Ir::type_of(close));
    Ir::incoming(v, close, near_end);
    Ir::incoming(v, wide, far_end);
    return v;
}

void RowEmitter::store_vector(const Access& a, DType dtype, Value v, int u) {
    if (output_row_) {
        Value at = ir_.add(index_[plan_.vector_dim], u * plan_.lanes);
        store_contiguous(element_pointer(output_row_, dtype, at), dtype, v, lane_mask(u));
        return;
    }
    Place p = place(a, dtype, u);
    Value pointer = p.pointer;
    if (!p.lane_offsets) return store_contiguous(pointer, dtype, v, p.mask);
    if (!p.contiguous) return store_lanes(pointer, p.lane_offsets, dtype, v, p.mask);
    Block near = ir_.new_block("near"), far = ir_.new_block("far"), join = ir_.new_block("join");
    ir_.branch(p.contiguous, near, far);
    ir_.at_end_of(near);
    store_contiguous(element_pointer(pointer, dtype, ir_.index(u * plan_.lanes)), dtype, v, p.mask);
    ir_.jump(join);
    ir_.at_end_of(far);
    store_lanes(pointer, p.lane_offsets, dtype, v, p.mask);
    ir_.jump(join);
    ir_.at_end_of(join);
}

// A scalar access belongs to the level at which it is called: its terms of inner levels are constant 0.
Value RowEmitter::load_scalar(const Access& a, DType dtype) {
    Offsets o = inner_terms(a, 0);
    Value allowed = o.in_range;
    if (a.mask != kNoNode) allowed = and_masks(allowed, scalar(a.mask));
    Value elements = ir_.add(outer_offsets(a).elements, o.elements);
    Value pointer = element_pointer(buffer_pointers_[a.buffer], dtype, elements);
    if (allowed) pointer = ir_.select(allowed, pointer, zero_location());
    Value v = LLVMBuildLoad2(ir_.builder(), memory_type(ir_, dtype), pointer, "");
    LLVMSetAlignment(v, kAnyAlignment);
    return from_memory(ir_, v, dtype);
}

void RowEmitter::store_scalar(const Access& a, DType dtype, Value v) {
    Offsets o = row_offsets(a);
    Value allowed = o.in_range;
    if (a.mask != kNoNode) allowed = and_masks(allowed, scalar(a.mask));
    Value pointer = element_pointer(buffer_pointers_[a.buffer], dtype, o.elements);
    if (allowed) pointer = ir_.select(allowed, pointer, sink_);
    LLVMSetAlignment(LLVMBuildStore(ir_.builder(), to_memory(ir_, v, dtype), pointer), kAnyAlignment);
}

// Scratch rows follow each other; a parallel vector dim keeps one block of lanes a row element.
Value RowEmitter::scratch_address(std::uint32_t slot, DType dtype, int u) {
    Value bytes = ir_.mul(scratch_row_bytes_, slot);
    Value row = LLVMBuildGEP2(ir_.builder(), ir_.i8(), scratch_, &bytes, 1, "");
    Value inner = index_[plan_.inner_dim];
    Value at = ir_.add(ir_.mul(outer_position_, extent(plan_.inner_dim)), inner);
    if (!plan_.vector_is_row) at = ir_.mul(at, plan_.block_vectors * plan_.lanes);
    return element_pointer(row, dtype, ir_.add(at, u * plan_.lanes));
}

}  // namespace flexor::codegen::cpu_llvm
