#include "specialize/flow.h"

#include <algorithm>
#include <functional>

namespace flexor::specialize {

using bytecode::Instruction;
using bytecode::Opcode;

bool is_branch(Opcode op) {
    return op == Opcode::kBranchIfTrue || op == Opcode::kBranchIfFalse || op == Opcode::kBranchIfNull ||
           op == Opcode::kBranchIfNotNull;
}

namespace {

std::vector<std::int32_t> successors(const bytecode::Function& function, std::int32_t pc) {
    const Instruction& instruction = function.code[static_cast<std::size_t>(pc)];
    if (instruction.op == Opcode::kReturn) return {};
    if (instruction.op == Opcode::kJump) return {instruction.a};
    if (is_branch(instruction.op)) return {pc + 1, instruction.a};
    return {pc + 1};
}

}  // namespace

Flow analyse_flow(const bytecode::Function& function, std::int32_t start) {
    std::set<std::int32_t> leaders{start};
    for (std::size_t i = 0; i < function.code.size(); ++i) {
        const Instruction& instruction = function.code[i];
        const auto pc = static_cast<std::int32_t>(i);
        if (instruction.op == Opcode::kLoopHead) leaders.insert(pc);
        if (instruction.op == Opcode::kJump || is_branch(instruction.op)) {
            leaders.insert(instruction.a);
            leaders.insert(pc + 1);
        }
    }

    // Depth-first walk over leaders; a walk's finish order reversed is the order wanted.
    std::set<std::int32_t> seen;
    std::vector<std::int32_t> finished;
    std::vector<std::pair<std::int32_t, std::int32_t>> back_edges;  // (pc of the jump, loop head)
    std::set<std::int32_t> open;
    std::function<void(std::int32_t)> visit = [&](std::int32_t leader) {
        seen.insert(leader);
        open.insert(leader);
        std::int32_t pc = leader;
        while (true) {
            std::vector<std::int32_t> next = successors(function, pc);
            const bool ends = next.size() != 1 || function.code[static_cast<std::size_t>(pc)].op == Opcode::kJump ||
                              leaders.count(next[0]) != 0;
            if (!ends) {
                pc = next[0];
                continue;
            }
            // The fall-through side is visited last so that it comes first in the order.
            std::reverse(next.begin(), next.end());
            for (std::int32_t to : next) {
                if (open.count(to) != 0) back_edges.emplace_back(pc, to);
                if (seen.count(to) == 0) visit(to);
            }
            break;
        }
        open.erase(leader);
        finished.push_back(leader);
    };
    visit(start);

    Flow flow;
    flow.order.assign(finished.rbegin(), finished.rend());
    for (std::size_t i = 0; i < flow.order.size(); ++i) flow.position[flow.order[i]] = i;

    // Natural loops: everything that reaches the back edge without passing the head.
    for (const auto& [from, head] : back_edges) {
        std::set<std::int32_t> body{head};
        std::vector<std::int32_t> work{from};
        std::map<std::int32_t, std::vector<std::int32_t>> predecessors;
        for (std::size_t i = 0; i < function.code.size(); ++i) {
            for (std::int32_t to : successors(function, static_cast<std::int32_t>(i))) {
                predecessors[to].push_back(static_cast<std::int32_t>(i));
            }
        }
        while (!work.empty()) {
            const std::int32_t pc = work.back();
            work.pop_back();
            if (!body.insert(pc).second) continue;
            for (std::int32_t p : predecessors[pc]) work.push_back(p);
        }
        auto& stored = flow.loops[head];
        for (std::int32_t pc : body) {
            const Instruction& instruction = function.code[static_cast<std::size_t>(pc)];
            if (instruction.op == Opcode::kStoreLocal || instruction.op == Opcode::kDeleteLocal) {
                stored.insert(instruction.a);
            }
        }
    }
    return flow;
}

}  // namespace flexor::specialize
