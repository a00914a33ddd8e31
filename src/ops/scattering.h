#pragma once
// Native kernels of the ops that write where index tensors say.
#include <optional>
#include <span>

#include "ops/op_def.h"

namespace flexor::ops {

Expected<void> native_scatter(ReferenceContext& c);
Expected<void> native_index_put(ReferenceContext& c);

// Into operand 0 itself. All indices are looked at before anything is written, and what shares memory with operand 0 is
// read before.
Expected<void> native_scatter_in_place(ReferenceContext& c);
Expected<void> native_index_put_in_place(ReferenceContext& c);

// A view of operand 0 that has all elements which such an op writes to; operand 0 itself of any other op.
Tensor written_part(const OpDef& op, const types::Attrs& attrs, std::span<const Tensor> inputs);

}  // namespace flexor::ops
