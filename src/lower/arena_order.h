#pragma once
// The order in which buffers are laid into an arena when each starts where the highest of those laid before it, and
// live at some step with it, ends.
//
// What the arena then takes is the heaviest chain of buffers of which each meets the next. Where no chain holds two
// that never meet, a chain is a set that lives at once: no sizes make the arena larger than what lives at the worst
// step. Such an order is found where one exists; otherwise orders are compared by samples of sizes.
#include <cstddef>
#include <vector>

namespace flexor::lower {

struct Life {
    std::size_t first = 0, last = 0;  // steps in which the buffer is live, both included
};

inline bool meet(const Life& a, const Life& b) { return a.first <= b.last && b.first <= a.last; }

// For each buffer those that meet it, ascending.
std::vector<std::vector<std::size_t>> meetings(const std::vector<Life>& lives);

// `samples` holds sizes of all buffers, once for each choice of the symbols.
std::vector<std::size_t> arena_order(const std::vector<Life>& lives, const std::vector<std::vector<double>>& samples);

}  // namespace flexor::lower
