#pragma once

// Matrix multiplication over run-time sizes: C[b, m, n] = epilogue(sum over k of prologue(A)[b, m, k] * B[b, k, n]).
//
// Laws
//  G1  Sizes may be 0. K = 0 gives sums of 0, which still go through the epilogue.
//  G2  All strides are in elements and may be anything, 0 included; C must not overlap A, B or itself.
//  G3  A result does not depend on the number of threads, nor on where its row stands.
//  G4  Sums are formed in `accumulator` of the dtype's tiles: f32 (f32, f16, bf16), f64, i32 (u8, i8, i32), i64.
//      Integers wrap.
//  G5  The call allocates nothing if the workspace it is given is large enough.
//  G6  A, B and C need not lie at multiples of their element size.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "flexor/dtype.h"
#include "runtime/kernels/gemm_tiles.h"

namespace flexor::runtime {

inline constexpr int kMaxBatchRank = 6;

struct GemmOperand {
    const void* data = nullptr;
    std::int64_t row_stride = 0;  // A: per m; B: per k
    std::int64_t col_stride = 0;  // A: per k; B: per n
    std::int64_t batch_strides[kMaxBatchRank] = {};
};

struct GemmOutput {
    void* data = nullptr;
    DType dtype = DType::kF32;  // any but bool; converted from the accumulator, rounding to nearest even
    std::int64_t row_stride = 0;
    std::int64_t col_stride = 0;
    std::int64_t batch_strides[kMaxBatchRank] = {};
};

// Computes rows [m0, m1) of A of the flat batch index `batch` into `rows`, compact [m1 - m0, K], elements of the call's
// dtype. Called from several threads, each with memory of its own.
using GemmPrologue = void (*)(void* context, std::int64_t batch, std::int64_t m0, std::int64_t m1, void* rows);

// Takes the finished sums of C[batch, m, n0 .. n0 + n_count), elements of the accumulator, and writes the result.
// Called once for every element, from several threads.
using GemmEpilogue = void (*)(void* context, std::int64_t batch, std::int64_t m, std::int64_t n0, std::int64_t n_count,
                              const void* sums);

struct GemmCall {
    DType dtype = DType::kF32;  // of A and B
    std::int64_t m = 0, n = 0, k = 0;
    int batch_rank = 0;
    std::int64_t batch[kMaxBatchRank] = {};
    GemmOperand a;  // unused with a prologue
    GemmOperand b;
    // B was packed by pack_b: data points to packed matrices that follow each other, batch_strides count whole
    // matrices.
    bool b_packed = false;
    GemmOutput c;  // unused with an epilogue
    GemmPrologue prologue = nullptr;
    void* prologue_context = nullptr;
    GemmEpilogue epilogue = nullptr;
    void* epilogue_context = nullptr;
    const GemmTiles* tiles = nullptr;  // null: gemm_tiles(dtype)
};

// Bytes that gemm() wants for this call under the present thread count. Reads sizes, strides and which hooks are set;
// no pointer is followed.
std::size_t gemm_workspace_bytes(const GemmCall& call);

// `workspace` is 64-byte aligned. If it is null or too small, the call allocates its own: false, with nothing written,
// if the system gives none.
[[nodiscard]] bool gemm(const GemmCall& call, void* workspace, std::size_t workspace_bytes);

// Packed weights. The layout is that of gemm_tiles.h; it belongs to the table, so pack and multiply with the same one.
std::size_t packed_b_bytes(DType dtype, std::int64_t k, std::int64_t n, const GemmTiles* tiles = nullptr);
// Packs one matrix, element (k, n) at k*row_stride + n*col_stride, on all threads. `target` is 64-byte aligned.
void pack_b(DType dtype, std::int64_t k, std::int64_t n, const void* source, std::int64_t row_stride,
            std::int64_t col_stride, void* target, const GemmTiles* tiles = nullptr);

// Whether a right side that several products read is worth packing, for products of `m` rows.
bool gains_from_packing(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t row_stride,
                        std::int64_t col_stride);

// A packed matrix that owns its memory; without data if the system gives none.
class PackedMatrix {
public:
    PackedMatrix(DType dtype, std::int64_t k, std::int64_t n, const void* source, std::int64_t row_stride,
                 std::int64_t col_stride, const GemmTiles* tiles = nullptr);

    DType dtype() const { return dtype_; }
    std::int64_t k() const { return k_; }
    std::int64_t n() const { return n_; }
    const void* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

private:
    struct Free {
        void operator()(void* memory) const;
    };
    DType dtype_;
    std::int64_t k_, n_;
    std::size_t bytes_;
    std::unique_ptr<void, Free> data_;
};

}  // namespace flexor::runtime
