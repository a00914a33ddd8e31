#pragma once
// Memory plan: places buffers with known lifetimes and symbolic sizes in one arena.
//
// A buffer starts where the highest ends of those that were placed before it and are live with it; `arena_order` says
// which come first. Which of them is the highest is decided here where the sizes have an order for every value of the
// symbols, and by the frame program at call time where they have none.
//
// Laws
//  P1  Two buffers that are live at one step share no byte, whatever the symbols are: also where a size is not one yet
//      (negative, because the check that refuses it stands later).
//  P2  Offsets are multiples of 64.
#include <vector>

#include "lower/arena_order.h"
#include "types/dim.h"
#include "types/shape_env.h"

namespace flexor::lower {

struct PlanItem {
    types::Dim bytes;
    Life life;
};

// The value of a symbol that the plan adds to those of the environment.
struct PlanStep {
    enum class Kind : std::uint8_t {
        kMax,      // the largest of `of`
        kAlignUp,  // of[0], raised to a multiple of kArenaAlignment
    } kind;
    std::vector<types::Dim> of;
};

inline constexpr std::int64_t kArenaAlignment = 64;

struct Plan {
    // Step i makes symbol env.symbol_count() + i from the symbols before it.
    std::vector<PlanStep> steps;
    std::vector<types::Dim> offsets;  // one per item
    types::Dim total = 0;
};

Plan plan_arena(const std::vector<PlanItem>& items, const types::ShapeEnv& env);

}  // namespace flexor::lower
