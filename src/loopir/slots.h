#pragma once
// Which parameters of a kernel are sizes, and which are part of an address.
#include <cstdint>
#include <vector>

#include "loopir/kernel.h"

namespace flexor::loopir {

// Sizes that a launch walks: of the body, of a product's sum, of attention.
std::vector<IntRef> walked_extents(const Kernel& kernel);

// By parameter: whether it is part of a size, a stride, an offset or a bound, and not a value alone.
std::vector<bool> place_slots(const Kernel& kernel);

}  // namespace flexor::loopir
