#pragma once

// Fused scaled dot-product attention: out[b, h, i, :] = softmax_j(scale * q[b, h, i, :] . k[b, h / group, j, :] + mask)
// . v without the matrix of scores in memory.
//
// Laws
//  A1  Sizes may be 0. Strides are in elements and arbitrary; `out` may be laid out as [B, Sq, H, Dv].
//  A2  heads is a multiple of kv_heads; query head h reads key head h / (heads / kv_heads).
//  A3  kCausal lets query i see keys 0 .. i (aligned at the top left, as torch's is_causal).
//  A4  A boolean mask adds -inf where false, so that NaN scores stay NaN there, as torch does.
//  A5  With lengths, keys at and after lengths[b] do not exist: they are neither read nor computed.
//  A6  A row that sees no key gives zeros (as torch since 2.5), or NaN by choice. NaN among the scores a row sees makes
//      the row NaN.
//  A7  Scores, weights and outputs are f32 (f64 for f64) between the products; where the tiles multiply bf16, weights
//      are rounded to bf16 before the second product, as torch does.
//  A8  Results do not depend on the number of threads.
//  A9  Operands need not lie at multiples of their element size.

#include <cstddef>
#include <cstdint>

#include "flexor/dtype.h"
#include "runtime/kernels/attention_rows.h"
#include "runtime/kernels/gemm_tiles.h"

namespace flexor::runtime {

enum class AttentionMask : std::uint8_t { kNone, kCausal, kBoolean, kAdditive };
enum class FullyMasked : std::uint8_t { kZero, kNan };

struct AttentionOperand {
    const void* data = nullptr;
    std::int64_t strides[4] = {};  // [batch, head, row, column]
};

struct AttentionCall {
    DType dtype = DType::kF32;  // f32, f64, f16, bf16: of q, k, v and out
    std::int64_t batch = 0, heads = 0, kv_heads = 0, q_len = 0, kv_len = 0, head_dim = 0, value_dim = 0;
    AttentionOperand q, k, v;
    void* out = nullptr;
    std::int64_t out_strides[4] = {};
    double scale = 1.0;
    AttentionMask mask_kind = AttentionMask::kNone;
    AttentionOperand mask;                  // [B, H, Sq, Sk], stride 0 broadcasts
    DType mask_dtype = DType::kF32;         // kAdditive: `dtype`, or f32
    const std::int64_t* lengths = nullptr;  // [B], null: all keys; clamped to [0, kv_len]
    std::int64_t lengths_stride = 1;
    FullyMasked fully_masked = FullyMasked::kZero;
    const GemmTiles* tiles = nullptr;     // null: gemm_tiles(dtype)
    const AttentionRows* rows = nullptr;  // null: attention_rows(dtype, ...)
};

// Bytes that attention() wants for this call under the present thread count. Follows no pointer.
std::size_t attention_workspace_bytes(const AttentionCall& call);

// `workspace` is 64-byte aligned. If it is null or too small, the call allocates its own: false, with nothing written,
// if the system gives none.
[[nodiscard]] bool attention(const AttentionCall& call, void* workspace, std::size_t workspace_bytes);

}  // namespace flexor::runtime
