#pragma once
// Every place of a program that names a register.
#include "specialised/program.h"

namespace flexor::transform {

template <class F>
void for_each_reg(specialised::LiveValue& value, F&& f) {
    if (value.kind == specialised::LiveValue::Kind::kReg) f(value.reg);
    for (specialised::LiveValue& e : value.elements) for_each_reg(e, f);
}

// Registers used by the terminator of `block` (jump arguments, condition, returned values, values of its exit).
template <class F>
void for_each_terminator_reg(specialised::Program& program, specialised::Block& block, F&& f) {
    specialised::Terminator& t = block.terminator;
    if (t.kind == specialised::Terminator::Kind::kBranch && t.condition.reg != specialised::kNoReg) f(t.condition.reg);
    for (specialised::Target& target : t.targets) {
        for (specialised::Reg& r : target.args) f(r);
    }
    for (specialised::LiveValue& v : t.values) for_each_reg(v, f);
    if (t.kind == specialised::Terminator::Kind::kExit) {
        for (specialised::LiveValue& v : program.exits[t.exit].locals) for_each_reg(v, f);
        for (specialised::LiveValue& v : program.exits[t.exit].stack) for_each_reg(v, f);
    }
}

}  // namespace flexor::transform
