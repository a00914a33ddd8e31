#include "loopir/slots.h"

namespace flexor::loopir {

namespace {

template <class Visit>
void visit_access(const Access& access, Visit& visit) {
    visit(access.offset);
    for (const IntRef& stride : access.strides) visit(stride);
    for (const GatherTerm& gather : access.gathers) {
        visit(gather.stride);
        visit(gather.extent);
    }
}

template <class Visit>
void visit_body(const Body& body, Visit& visit) {
    for (const IntRef& extent : body.extents) visit(extent);
    for (const Access& access : body.accesses) visit_access(access, visit);
    for (const Stage& stage : body.stages) {
        if (stage.kind == StageKind::kStore) visit_access(stage.target, visit);
    }
}

template <class Operand, class Visit>
void visit_operand(const Operand& operand, Visit& visit) {
    visit(operand.offset);
    if constexpr (requires { operand.batch_strides; }) {
        for (const IntRef& stride : operand.batch_strides) visit(stride);
        visit(operand.row_stride);
        visit(operand.col_stride);
    } else {
        for (const IntRef& stride : operand.strides) visit(stride);
    }
}

}  // namespace

std::vector<IntRef> walked_extents(const Kernel& kernel) {
    std::vector<IntRef> out = kernel.body.extents;
    if (kernel.contraction) out.push_back(kernel.contraction->k);
    if (kernel.attention) {
        const Attention& a = *kernel.attention;
        for (const IntRef& extent : {a.batch, a.heads, a.kv_heads, a.q_len, a.kv_len, a.head_dim, a.value_dim})
            out.push_back(extent);
    }
    return out;
}

std::vector<bool> place_slots(const Kernel& kernel) {
    std::vector<bool> out(kernel.param_count, false);
    auto visit = [&](const IntRef& ref) {
        if (!ref.is_constant) out[static_cast<std::size_t>(ref.value)] = true;
    };
    visit_body(kernel.body, visit);
    if (kernel.contraction) {
        const Contraction& c = *kernel.contraction;
        for (const IntRef& extent : {c.m, c.n, c.k}) visit(extent);
        visit_operand(c.a, visit);
        visit_operand(c.b, visit);
        if (c.prologue) visit_body(*c.prologue, visit);
    }
    if (kernel.attention) {
        const Attention& a = *kernel.attention;
        for (const IntRef& extent : walked_extents(kernel)) visit(extent);
        for (const StridedOperand* operand : {&a.q, &a.k, &a.v, &a.out}) visit_operand(*operand, visit);
        if (a.mask) visit_operand(*a.mask, visit);
        if (a.lengths) visit_operand(*a.lengths, visit);
    }
    return out;
}

}  // namespace flexor::loopir
