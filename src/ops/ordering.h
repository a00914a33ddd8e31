#pragma once
// Native kernels of the ops that put the elements of lines in order: NaN is the greatest, equal ones keep their order.
#include <span>
#include <vector>

#include "ops/op_def.h"

namespace flexor::ops {

// Results: the values (unless `places_only`), then the places, of the first `count` elements of every line in order.
Expected<void> order_lines(ReferenceContext& c, int axis, bool descending, std::int64_t count, bool places_only);

}  // namespace flexor::ops
