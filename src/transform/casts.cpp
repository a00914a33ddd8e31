// Widening casts, done where their values are read.
#include <algorithm>
#include <variant>

#include "specialised/visit.h"
#include "transform/transform.h"

namespace flexor::transform {

using specialised::Block;
using specialised::Inst;
using specialised::InstKind;
using specialised::kNoReg;
using specialised::Program;
using specialised::Reg;

namespace {

// Whether a conversion to `to` by way of `over` gives what the conversion at once gives.
bool widens(DType from, DType over) {
    if (is_floating(from)) return is_floating(over) && dtype_size(over) > dtype_size(from);
    return false;
}

bool is_cast(const Inst& inst) {
    return inst.kind == InstKind::kOp && !inst.whole && inst.op->name.value == "cast" && inst.operands.size() == 1 &&
           inst.operands[0] != kNoReg;
}

// Converts its operands to the dtypes that it states, whatever theirs are.
bool converts(const Inst& inst) {
    if (inst.kind != InstKind::kOp || inst.whole || inst.op->effects.value != ops::Effects::kPure) return false;
    return std::holds_alternative<ops::MapLower>(inst.op->lower.value) ||
           std::holds_alternative<ops::ReduceLower>(inst.op->lower.value);
}

}  // namespace

void read_before_widening(Program& program) {
    for (const Block& block : program.blocks) {
        for (const Inst& inst : block.insts) {
            // Memory may change between the cast and its readers.
            if (inst.kind == InstKind::kOp && inst.op->effects.value != ops::Effects::kPure) return;
        }
    }
    constexpr Reg kOther = kNoReg;
    std::vector<Reg> source(program.registers.size(), kOther);  // of a cast that widens
    for (const Block& block : program.blocks) {
        for (const Inst& inst : block.insts) {
            if (!is_cast(inst)) continue;
            const auto& from = program.registers[inst.operands[0]];
            const auto& to = program.registers[inst.results[0]];
            if (from.type.strength == to.type.strength && widens(from.type.type.dtype, to.type.type.dtype))
                source[inst.results[0]] = inst.operands[0];
        }
    }
    // Values that are read in another way keep their memory.
    for (const specialised::Register& reg : program.registers) {
        const auto self = static_cast<std::size_t>(&reg - program.registers.data());
        if (reg.root != self) source[reg.root] = kOther;
    }
    for (Block& block : program.blocks) {
        specialised::for_each_terminator_reg(program, block, [&](Reg& r) { source[r] = kOther; });
        for (const Inst& inst : block.insts) {
            if (converts(inst)) continue;
            for (const Reg r : inst.operands) {
                if (r != kNoReg) source[r] = kOther;
            }
        }
    }
    for (Block& block : program.blocks) {
        for (Inst& inst : block.insts) {
            if (!converts(inst)) continue;
            for (Reg& r : inst.operands) {
                while (r != kNoReg && source[r] != kOther) r = source[r];
            }
        }
    }
}

}  // namespace flexor::transform
