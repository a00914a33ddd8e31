#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> attention_ops() { return {}; }

}  // namespace flexor::ops
