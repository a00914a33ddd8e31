#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> reduce_ops() { return {}; }

}  // namespace flexor::ops
