#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> contraction_ops() { return {}; }

}  // namespace flexor::ops
