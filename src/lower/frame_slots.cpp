#include "lower/frame_slots.h"

namespace flexor::lower {

using executable::FrameOp;
using executable::FrameProgram;
using types::DimOp;

Slot FrameSlots::symbol(types::SymbolId symbol) {
    const auto [it, inserted] = symbols_.try_emplace(symbol, next_);
    if (inserted) ++next_;
    return it->second;
}

Slot FrameSlots::emit(FrameOp op, Slot a, Slot b, std::int64_t immediate, FrameProgram& program) {
    const Slot dst = fresh();
    program.insts.push_back({op, dst, a, b, immediate});
    return dst;
}

Slot FrameSlots::value_of_sum(const Dim& sum, const Dim& a, const Dim& b, FrameProgram& program) {
    if (sum.op() != DimOp::kAdd || computed_.contains(sum)) return value(sum, program);
    const Slot left = value(a, program);
    return computed_[sum] = emit(FrameOp::kAdd, left, value(b, program), 0, program);
}

Slot FrameSlots::value(const Dim& d, FrameProgram& program) {
    if (d.is_symbol()) return symbol(d.symbol_id());
    const auto found = computed_.find(d);
    if (found != computed_.end()) return found->second;
    Slot slot = 0;
    if (d.is_constant()) {
        slot = emit(FrameOp::kConst, 0, 0, d.constant(), program);
    } else {
        FrameOp op = FrameOp::kAdd;
        switch (d.op()) {
            case DimOp::kAdd: op = FrameOp::kAdd; break;
            case DimOp::kMul: op = FrameOp::kMul; break;
            case DimOp::kFloorDiv: op = FrameOp::kFloorDiv; break;
            case DimOp::kTruncDiv: op = FrameOp::kTruncDiv; break;
            case DimOp::kMod: op = FrameOp::kMod; break;
            case DimOp::kMin: op = FrameOp::kMin; break;
            case DimOp::kMax: op = FrameOp::kMax; break;
            case DimOp::kBroadcast: op = FrameOp::kBroadcast; break;
            case DimOp::kConstant:
            case DimOp::kSymbol: break;
        }
        const auto operands = d.operands();
        slot = value(operands[0], program);
        for (std::size_t i = 1; i < operands.size(); ++i)
            slot = emit(op, slot, value(operands[i], program), 0, program);
    }
    computed_[d] = slot;
    return slot;
}

}  // namespace flexor::lower
