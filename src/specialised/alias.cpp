#include "specialised/alias.h"

#include <algorithm>

namespace flexor::specialised {

namespace {

int argument_index(const Program& program, Reg root) {
    const auto found = std::find(program.arguments.begin(), program.arguments.end(), root);
    return found == program.arguments.end() ? -1 : static_cast<int>(found - program.arguments.begin());
}

template <class F>
bool any_inst(const Program& program, F&& f) {
    return std::any_of(program.blocks.begin(), program.blocks.end(),
                       [&](const Block& block) { return std::any_of(block.insts.begin(), block.insts.end(), f); });
}

bool is_element(const Program& program, Reg root) {
    return program.has_lists && any_inst(program, [&](const Inst& inst) {
               return inst.kind == InstKind::kListGet && inst.results[0] == root;
           });
}

bool is_in_a_list(const Program& program, Reg root) {
    return program.has_lists && any_inst(program, [&](const Inst& inst) {
               if (inst.kind != InstKind::kListOf && inst.kind != InstKind::kListAppend) return false;
               return std::any_of(inst.operands.begin(), inst.operands.end(),
                                  [&](Reg r) { return program.registers[r].root == root; });
           });
}

bool is_parameter(const Program& program, Reg root) {
    if (is_element(program, root)) return true;
    return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
        return std::find(block.params.begin(), block.params.end(), root) != block.params.end();
    });
}

bool is_passed_on(const Program& program, Reg root) {
    if (is_in_a_list(program, root)) return true;
    return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
        return std::any_of(block.terminator.targets.begin(), block.terminator.targets.end(), [&](const Target& target) {
            return std::any_of(target.args.begin(), target.args.end(),
                               [&](Reg r) { return program.registers[r].root == root; });
        });
    });
}

}  // namespace

bool may_overlap(const Program& program, Reg a, Reg b) {
    if (a == b) return true;
    const int x = argument_index(program, a);
    const int y = argument_index(program, b);
    if (x >= 0 && y >= 0) {
        return program
            .may_overlap[static_cast<std::size_t>(x) * program.arguments.size() + static_cast<std::size_t>(y)];
    }
    const bool px = is_parameter(program, a);
    const bool py = is_parameter(program, b);
    // A block parameter is whatever jumps pass on: an argument, another parameter, a value made earlier. An element of
    // a list is whatever was put into one.
    return (px && (py || y >= 0 || is_passed_on(program, b))) || (py && (x >= 0 || is_passed_on(program, a)));
}

}  // namespace flexor::specialised
