#pragma once
// Shorthands for composites: how they cast, which dtype they compute in, and how they end.
#include "ops/op_def.h"

namespace flexor::ops {

// The dtype in which results of a dtype are computed: halves in f32, the rest in itself.
inline DType compute_dtype(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

inline GraphValue cast_to(GraphBuilder& g, GraphValue x, DType dtype) {
    if (g.type(x).type.dtype == dtype) return x;
    return g.op("cast", {x}, Attrs{{"dtype", dtype}});
}

// The value in row-major order, where the strides of the operands would have given another.
inline GraphValue row_major(GraphBuilder& g, GraphValue x) {
    const TensorType& type = g.type(x).type;
    return type.strides == types::contiguous_strides(type.sizes) ? x : g.op("contiguous", {x});
}

}  // namespace flexor::ops
