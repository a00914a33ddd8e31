#pragma once
// Every place of a program that names a register, for programs that may be changed and for those that may not.
#include "specialised/program.h"

namespace flexor::specialised {

template <class Value, class F>
void for_each_reg(Value& value, F&& f) {
    if (value.kind == LiveValue::Kind::kReg || value.kind == LiveValue::Kind::kRunList) f(value.reg);
    for (auto& e : value.elements) for_each_reg(e, f);
}

// Registers used by the terminator of `block` (jump arguments, condition, returned values, values of its exit).
template <class AnyProgram, class AnyBlock, class F>
void for_each_terminator_reg(AnyProgram& program, AnyBlock& block, F&& f) {
    auto& t = block.terminator;
    if (t.kind == Terminator::Kind::kBranch && t.condition.reg != kNoReg) f(t.condition.reg);
    for (auto& target : t.targets) {
        for (auto& r : target.args) f(r);
    }
    for (auto& v : t.values) for_each_reg(v, f);
    if (t.kind == Terminator::Kind::kExit) {
        for (auto& v : program.exits[t.exit].locals) for_each_reg(v, f);
        for (auto& v : program.exits[t.exit].stack) for_each_reg(v, f);
    }
}

}  // namespace flexor::specialised
