#pragma once
// Native kernels of the ops that keep the elements which are not zero: one pass counts, another writes, in chunks.
#include "ops/op_def.h"

namespace flexor::ops {

// DataSizes: how many elements of an operand are not zero.
template <std::size_t operand>
Expected<std::vector<std::int64_t>> count_nonzero(ReferenceContext& c);
extern template Expected<std::vector<std::int64_t>> count_nonzero<0>(ReferenceContext& c);
extern template Expected<std::vector<std::int64_t>> count_nonzero<1>(ReferenceContext& c);

// The operand whose elements that are not zero are counted by data_sizes; -1: the op counts none.
inline int counted_operand(const OpDef& op) {
    return op.data_sizes == count_nonzero<0> ? 0 : op.data_sizes == count_nonzero<1> ? 1 : -1;
}

Expected<void> native_nonzero(ReferenceContext& c);      // behind count_nonzero<0>
Expected<void> native_mask_select(ReferenceContext& c);  // behind count_nonzero<1>

}  // namespace flexor::ops
