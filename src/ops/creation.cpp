#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> creation_ops() { return {}; }

}  // namespace flexor::ops
