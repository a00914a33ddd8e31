#pragma once
// Specialised program to specialised program.
//
// Laws
//  T1  Every pass keeps the values, the effects and their order, and the geometry of every register that leaves the
//      region.
//  T2  After expand() no instruction is a composite; what an exit or a return hands out keeps its declared strides.
#include "specialised/program.h"
#include "support/expected.h"

namespace flexor::transform {

// Replaces composite ops by the graphs their entries state, and shares equal pure instructions within a block. On
// failure `refused` gets the op that has no graph here.
Expected<void> expand(specialised::Program& program, types::Promotion promotion, std::vector<types::OpSite>* refused);

// Selections by a mask without an array of places, and sums of what is selected without selecting it.
void simplify_selections(specialised::Program& program, types::Promotion promotion);

// Ops that convert their operands read what a cast that widens floats has read, where that leaves the cast without a reader: its
// result takes twice the memory and more, and small ones would be kernels of their own.
void read_before_widening(specialised::Program& program);

// Removes pure instructions whose results nobody uses, unless they may raise.
void remove_dead_code(specialised::Program& program);

}  // namespace flexor::transform
