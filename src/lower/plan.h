#pragma once
// Memory plan: places buffers with known lifetimes and symbolic sizes in one arena.
//
// Sizes are split into a constant times a primitive expression. Buffers of one primitive expression are packed by their
// constants, which is exact for every value of the symbols; different primitives lie one after the other.
#include <vector>

#include "types/dim.h"

namespace flexor::lower {

struct PlanItem {
    types::Dim bytes;
    std::size_t first = 0;  // steps in which the buffer is live, both included
    std::size_t last = 0;
};

struct Plan {
    std::vector<types::Dim> offsets;  // one per item, multiples of 64
    types::Dim total = 0;
};

Plan plan_arena(const std::vector<PlanItem>& items);

}  // namespace flexor::lower
