#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> write_ops() { return {}; }

}  // namespace flexor::ops
