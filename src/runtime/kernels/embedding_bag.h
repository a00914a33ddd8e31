#pragma once
// Reduction of table rows over bags of ids that offsets cut out.
#include <cstdint>

#include "flexor/dtype.h"

namespace flexor::runtime {

// A vector or matrix in memory; strides in elements, any sign.
struct StridedMatrix {
    void* data = nullptr;
    DType dtype = DType::kF32;
    std::int64_t sizes[2] = {1, 1};
    std::int64_t strides[2] = {0, 0};
};

enum class BagMode : std::uint8_t { kSum, kMean, kMax };

// out[b, :] = sum, mean or maximum over i in [offsets[b], offsets[b+1]) of table[ids[i], :]; the last bag ends with
// ids. ids and offsets are i64[n] or i32[n], table and out f32, f64, f16 or bf16 (accumulated in f32, f64 for f64). An
// empty bag gives 0; NaN wins a maximum. With `wrap_negative` an id below 0 counts from the end. False, with `out`
// unspecified, if an id lies outside the table or offsets do not begin with 0, descend or leave ids. Runs on the thread
// pool.
bool embedding_bag(const StridedMatrix& ids, const StridedMatrix& offsets, const StridedMatrix& table,
                   const StridedMatrix& out, BagMode mode, bool wrap_negative);

}  // namespace flexor::runtime
