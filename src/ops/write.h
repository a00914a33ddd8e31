#pragma once
// What is to be known of ops that write.
#include "ops/op_def.h"

namespace flexor::ops {

// Whether the op writes its second operand as it is into its first: nothing happens where they are one view.
bool copies(const OpDef& op);

// Whether the op writes where index tensors say: torch wants what it reads to lie apart from what it writes.
bool writes_by_index(const OpDef& op);

}  // namespace flexor::ops
