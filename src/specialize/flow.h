#pragma once
// Control flow of a bytecode function as the specialiser walks it: leaders in reverse post-order, loop heads and what
// their loops store.
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "bytecode/module.h"

namespace flexor::specialize {

struct Flow {
    std::vector<std::int32_t> order;                       // leaders reachable from the start, reverse post-order
    std::map<std::int32_t, std::size_t> position;          // leader -> index in `order`
    std::map<std::int32_t, std::set<std::int32_t>> loops;  // loop head -> locals stored inside the loop
    bool is_leader(std::int32_t pc) const { return position.count(pc) != 0; }
};

bool is_branch(bytecode::Opcode op);  // conditional
Flow analyse_flow(const bytecode::Function& function, std::int32_t start);

}  // namespace flexor::specialize
