#include <algorithm>

#include "specialised/program.h"

namespace flexor::specialised {

namespace {

const Inst* constant_behind(const Program& program, Reg reg) {
    for (const Block& block : program.blocks) {
        for (const Inst& inst : block.insts) {
            if (inst.kind == InstKind::kConst && inst.results[0] == reg) return &inst;
        }
    }
    return nullptr;
}

loopir::NodeId constant_node(loopir::BodyBuilder& builder, const ConstScalar& constant, DType dtype) {
    if (const auto* real = std::get_if<double>(&constant.value)) return builder.constant(dtype, *real);
    if (const auto* integer = std::get_if<std::int64_t>(&constant.value))
        return is_floating(dtype) ? builder.constant(dtype, static_cast<double>(*integer))
                                  : builder.constant_int(dtype, *integer);
    return builder.constant(dtype, std::get<bool>(constant.value) ? 1 : 0);
}

}  // namespace

bool may_raise(const Program& program, const Inst& inst) {
    if (inst.kind != InstKind::kOp) return false;
    if (inst.op->raises || (inst.dtypes.bounds && !inst.dtypes.bounds->empty() && inst.whole)) return true;
    if (std::holds_alternative<ops::CompositeLower>(inst.op->lower.value)) return true;
    if (std::holds_alternative<ops::IndexLower>(inst.op->lower.value)) return inst.operands.size() > 1;
    const auto* map = std::get_if<ops::MapLower>(&inst.op->lower.value);
    const std::vector<DType>& dtypes = inst.dtypes.operands;
    if (map == nullptr || std::all_of(dtypes.begin(), dtypes.end(), [](DType d) { return is_floating(d); }))
        return false;
    // What the op computes says whether it divides.
    loopir::Body body;
    loopir::BodyBuilder builder(body);
    std::vector<loopir::NodeId> args;
    for (std::size_t o = 0; o < inst.operands.size(); ++o) {
        const Reg reg = inst.operands[o];
        if (reg == kNoReg) {
            args.push_back(loopir::kNoNode);
            continue;
        }
        DType dtype = o < dtypes.size() ? dtypes[o] : program.registers[reg].type.type.dtype;
        if (dtype == DType::kF16 || dtype == DType::kBF16) dtype = DType::kF32;
        const bool scalar = program.registers[reg].type.strength == types::Strength::kScalar;
        const Inst* constant = scalar ? constant_behind(program, reg) : nullptr;
        args.push_back(constant != nullptr ? constant_node(builder, *constant->constant, dtype)
                                           : builder.param(dtype, static_cast<std::uint32_t>(o)));
    }
    (*map)(builder, args, inst.attrs);
    return loopir::may_fault(body);
}

}  // namespace flexor::specialised
