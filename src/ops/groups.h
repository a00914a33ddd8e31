#pragma once
// Native kernels of the ops that order elements to see which belong together.
#include "ops/op_def.h"

namespace flexor::ops {

Expected<std::vector<std::int64_t>> unique_sizes(ReferenceContext& c);
Expected<void> native_unique(ReferenceContext& c);  // behind unique_sizes

Expected<std::vector<std::int64_t>> nms_sizes(ReferenceContext& c);
Expected<void> native_nms(ReferenceContext& c);  // behind nms_sizes

}  // namespace flexor::ops
