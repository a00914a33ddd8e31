#pragma once
// Native kernels of the ops that go along lines with what they have seen so far.
#include "ops/op_def.h"

namespace flexor::ops {

// Floats are added and multiplied as double and rounded where they are stored; integers wrap at 64 bits.
Expected<void> native_cumsum(ReferenceContext& c);
Expected<void> native_cumprod(ReferenceContext& c);
// Results: the extreme of the first elements, and the place of the last one that equals it. A NaN stays.
Expected<void> native_cummax(ReferenceContext& c);
Expected<void> native_cummin(ReferenceContext& c);

}  // namespace flexor::ops
