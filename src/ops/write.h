#pragma once
// What is to be known of ops that write.
#include "ops/op_def.h"

namespace flexor::ops {

// Whether the op writes its second operand as it is into its first: nothing happens where they are one view.
bool copies(const OpDef& op);

}  // namespace flexor::ops
