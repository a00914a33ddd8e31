#include "ops/families.h"

namespace flexor::ops {

std::vector<OpDef> normalisation_ops() { return {}; }

}  // namespace flexor::ops
