#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> movement_ops() { return {}; }

}  // namespace flexor::ops
