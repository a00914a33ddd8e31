#pragma once

// The inner kernels of matrix multiplication: a table of functions over one register tile of C.
//
// codegen makes a table for the host; without it the portable table of this folder is used. A table never changes once
// published, and lives until the process ends.
//
// Layout of a packed B (K x N): panels of `vectors * lanes` columns, the last one narrower, rounded up to a multiple of
// `lanes` and filled with zeros. Panels follow each other; inside a panel rows of K are contiguous: element (k, j) of a
// panel of width w stands at k*w + j, or with `pairs` at ((k/2)*w + j)*2 + k%2, K being rounded up to an even number.

#include <cstddef>
#include <cstdint>

#include "flexor/dtype.h"

namespace flexor::runtime {

inline constexpr int kMaxTileRows = 32;
inline constexpr int kMaxTileVectors = 4;
inline constexpr int kDotColumns = 4;
inline constexpr int kMaxDotRows = 4;
inline constexpr int kMaxPanelColumns = 64;
inline constexpr int kMaxWideRows = 4;

// c[rows, width] (+)= a[rows, k] . b[k, width]. a: elements of `a_type`, row stride lda, columns contiguous. b: row
// stride ldb elements (the panel's width when packed). c: elements of `accumulator`. With accumulate = 0 c is only
// written.
using TileFunction = void (*)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c,
                              std::int64_t ldc, std::int64_t k, std::int64_t accumulate);

// The same with the number of rows and of vectors as arguments, for hosts whose matrix unit takes them at run time.
using BlockFunction = void (*)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c,
                               std::int64_t ldc, std::int64_t k, std::int64_t accumulate, int rows, int vectors);

// c[rows, columns] = a[rows, k] . b[columns, k]^T: both contiguous along k.
using DotFunction = void (*)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c,
                             std::int64_t ldc, std::int64_t k);

// Packs a panel of `columns` <= width columns from a matrix that is contiguous along k: source element (k, j) at
// j*ld + k. Writes width * k elements (k even with `pairs`: an odd rest is the caller's).
using PackColumnsFunction = void (*)(const void* source, std::int64_t ld, void* panel, std::int64_t width,
                                     std::int64_t columns, std::int64_t k);

// The same from a matrix whose rows are contiguous: source element (k, j) at k*ld + j. k even.
using PackRowsFunction = void (*)(const void* source, std::int64_t ld, void* panel, std::int64_t width,
                                  std::int64_t columns, std::int64_t k);

// Converts n contiguous elements.
using ConvertFunction = void (*)(const void* source, void* target, std::int64_t n);

struct GemmTiles {
    DType dtype = DType::kF32;        // of A and B in memory
    DType a_type = DType::kF32;       // what the tiles read as A: dtype, or f32 where they compute in f32
    DType accumulator = DType::kF32;  // f32, f64, i32, i64
    bool pairs = false;
    int max_rows = 0;
    int lanes = 0;
    int vectors = 0;
    TileFunction tile[kMaxTileRows][kMaxTileVectors] = {};  // [rows - 1][vectors - 1]
    BlockFunction block = nullptr;                          // used instead of `tile` if it is there

    // Optional parts, null where absent.
    DotFunction dot[kMaxDotRows] = {};         // kDotColumns columns, [rows - 1]
    DotFunction dot_single[kMaxDotRows] = {};  // one column
    // Tiles over several panels of a B that is read in place: long runs of each row, for few rows of A.
    TileFunction wide[kMaxWideRows] = {};  // [rows - 1], wide_panels[rows - 1] * panel_columns() columns
    int wide_panels[kMaxWideRows] = {};
    PackColumnsFunction pack_columns = nullptr;
    PackRowsFunction pack_row_pairs = nullptr;   // with `pairs`
    ConvertFunction to_a_type = nullptr;         // dtype to a_type
    ConvertFunction from_accumulator = nullptr;  // accumulator to dtype, round to nearest even

    int panel_columns() const { return lanes * vectors; }
    void multiply(const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                  std::int64_t k, std::int64_t accumulate, std::int64_t rows, std::int64_t width) const {
        auto count = static_cast<int>(width / lanes);
        if (block) return block(a, lda, b, ldb, c, ldc, k, accumulate, static_cast<int>(rows), count);
        tile[rows - 1][count - 1](a, lda, b, ldb, c, ldc, k, accumulate);
    }
};

// The table for a dtype: of the installed provider if it has one, else the portable one. Null for bool.
const GemmTiles* gemm_tiles(DType dtype);
const GemmTiles* portable_gemm_tiles(DType dtype);

// codegen's entry. The provider may compile at its first call for a dtype; it returns null for what it does not make.
using GemmTilesProvider = const GemmTiles* (*)(DType dtype);
void install_gemm_tiles(GemmTilesProvider provider);

}  // namespace flexor::runtime
