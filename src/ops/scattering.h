#pragma once
// Native kernels of the ops that write where index tensors say.
#include "ops/op_def.h"

namespace flexor::ops {

Expected<void> native_scatter(ReferenceContext& c);
Expected<void> native_index_put(ReferenceContext& c);

}  // namespace flexor::ops
