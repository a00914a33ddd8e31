#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> indexing_ops() { return {}; }

}  // namespace flexor::ops
