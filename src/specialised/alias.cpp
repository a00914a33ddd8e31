#include "specialised/alias.h"

#include <algorithm>

namespace flexor::specialised {

namespace {

int argument_index(const Program& program, Reg root) {
    const auto found = std::find(program.arguments.begin(), program.arguments.end(), root);
    return found == program.arguments.end() ? -1 : static_cast<int>(found - program.arguments.begin());
}

bool is_parameter(const Program& program, Reg root) {
    return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
        return std::find(block.params.begin(), block.params.end(), root) != block.params.end();
    });
}

bool is_passed_on(const Program& program, Reg root) {
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
    // A block parameter is whatever jumps pass on: an argument, another parameter, a value made earlier.
    return (px && (py || y >= 0 || is_passed_on(program, b))) || (py && (x >= 0 || is_passed_on(program, a)));
}

}  // namespace flexor::specialised
