#pragma once
// What may share memory in a specialised program.
#include "specialised/program.h"

namespace flexor::specialised {

// Whether the memory of two root registers may overlap: arguments as the signature's alias groups say, block parameters
// with arguments and each other; fresh memory overlaps nothing else.
bool may_overlap(const Program& program, Reg root_a, Reg root_b);

}  // namespace flexor::specialised
