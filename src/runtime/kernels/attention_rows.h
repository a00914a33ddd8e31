#pragma once

// The row kernels of fused attention: what happens to a block of scores between the two matrix products. codegen makes
// them for the host; without it the portable ones of this folder are used.

#include <cstdint>

#include "flexor/dtype.h"

namespace flexor::runtime {

// A block of `rows` x `n` scores, elements of the accumulator dtype (f32, or f64 for f64). The layout of this struct is
// known to generated code: eight bytes a field.
struct SoftmaxBlock {
    void* scores;  // row stride `ld`, ld a multiple of 16 and >= n; overwritten
    std::int64_t ld;
    std::int64_t rows;
    std::int64_t n;      // keys of the block
    std::int64_t valid;  // the first row sees `valid` keys, each further row `valid_step` more, clamped to [0, n]
    std::int64_t valid_step;
    double scale;
    const void* mask;          // unit column stride
    std::int64_t mask_stride;  // elements between rows
    void* weights;             // exp(score - maximum), 0 where unseen; elements of the tiles' a_type; may be `scores`
    std::int64_t weights_ld;
    void* maximum;     // one a row: the running maximum; -inf before the first block
    void* sum;         // one a row: the running sum of weights; 0 before the first block
    void* correction;  // one a row, written: what earlier sums and outputs must be multiplied by
};
using SoftmaxFunction = void (*)(const SoftmaxBlock* block);

// target[r, c] = source[r, c] * factors[r], accumulator elements.
using ScaleRowsFunction = void (*)(const void* source, std::int64_t source_ld, void* target, std::int64_t target_ld,
                                   std::int64_t rows, std::int64_t columns, const void* factors);

struct AttentionRows {
    SoftmaxFunction plain = nullptr;
    SoftmaxFunction boolean = nullptr;          // mask bytes: 0 adds -inf
    SoftmaxFunction additive = nullptr;         // mask elements of the accumulator dtype
    SoftmaxFunction additive_narrow = nullptr;  // mask elements of the dtype (16-bit floats)
    ScaleRowsFunction scale_rows = nullptr;
};

// The rows for a dtype and for weights stored as bf16 pairs or as accumulators (`narrow_weights`). Null for integers.
const AttentionRows* attention_rows(DType dtype, bool narrow_weights);
const AttentionRows* portable_attention_rows(DType dtype, bool narrow_weights);

using AttentionRowsProvider = const AttentionRows* (*)(DType dtype, bool narrow_weights);
void install_attention_rows(AttentionRowsProvider provider);

}  // namespace flexor::runtime
