#pragma once
// Every place of a program that names a register, for programs that may be changed and for those that may not, and
// every dim.
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

template <class F>
void for_each_dim(const types::TensorType& type, F&& f) {
    for (const Dim& d : type.sizes) f(d);
    for (const Dim& d : type.strides) f(d);
    f(type.offset);
}

// Dims that an instruction needs: attributes, requirement, the geometry of operands and results.
template <class F>
void for_each_dim(const Program& program, const Inst& inst, F&& f) {
    f(inst.dim);
    if (inst.requirement) {
        f(inst.requirement->a);
        f(inst.requirement->b);
    }
    for (const auto& [name, value] : inst.attrs.items()) {
        if (const auto* dim = std::get_if<Dim>(&value)) f(*dim);
        if (const auto* list = std::get_if<types::DimList>(&value)) {
            for (const Dim& d : *list) f(d);
        }
    }
    // The sizes of an instruction's own results are no use of them.
    for (Reg r : inst.operands) {
        if (r != kNoReg) for_each_dim(program.registers[r].type.type, f);
    }
    if (!inst.sizes.empty()) return;
    for (Reg r : inst.results) for_each_dim(program.registers[r].type.type, f);
}

template <class F>
void for_each_dim(const Program& program, const LiveValue& value, F&& f) {
    f(value.integer);
    if (value.kind == LiveValue::Kind::kReg) for_each_dim(program.registers[value.reg].type.type, f);
    for (const LiveValue& e : value.elements) for_each_dim(program, e, f);
}

// Dims that the terminator of `block` needs.
template <class F>
void for_each_terminator_dim(const Program& program, const Block& block, F&& f) {
    const Terminator& t = block.terminator;
    if (t.condition.relation) {
        f(t.condition.relation->a);
        f(t.condition.relation->b);
    }
    if (t.kind == Terminator::Kind::kBranch && t.condition.reg != kNoReg)
        for_each_dim(program.registers[t.condition.reg].type.type, f);
    for (const Target& target : t.targets) {
        for (const Dim& d : target.symbols) f(d);
        for (Reg r : target.args) for_each_dim(program.registers[r].type.type, f);
    }
    for (const LiveValue& v : t.values) for_each_dim(program, v, f);
    if (t.kind == Terminator::Kind::kExit) {
        for (const LiveValue& v : program.exits[t.exit].locals) for_each_dim(program, v, f);
        for (const LiveValue& v : program.exits[t.exit].stack) for_each_dim(program, v, f);
    }
}

}  // namespace flexor::specialised
