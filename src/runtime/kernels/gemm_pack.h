#pragma once

// Copies between arbitrary strides and the layouts the tiles read.

#include <cstdint>

#include "runtime/kernels/gemm_tiles.h"

namespace flexor::runtime {

// Of panels and workspaces, in bytes.
inline constexpr std::int64_t kAlignment = 64;

// Of numbers that are not negative.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t up(std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; }

// Rows of a panel in memory: K, rounded up to even with pairs.
inline std::int64_t packed_rows(const GemmTiles& tiles, std::int64_t k) { return tiles.pairs ? k + (k & 1) : k; }

// The width of the panel that starts at column n0: full, or the rest rounded up to whole vectors.
inline std::int64_t panel_width(const GemmTiles& tiles, std::int64_t n, std::int64_t n0) {
    std::int64_t rest = n - n0;
    if (rest >= tiles.panel_columns()) return tiles.panel_columns();
    return (rest + tiles.lanes - 1) / tiles.lanes * tiles.lanes;
}

// Packs `columns` columns of K rows into a panel of `width` columns; source element (k, j) at k*row_stride +
// j*col_stride.
void pack_panel(const GemmTiles& tiles, const void* source, std::int64_t row_stride, std::int64_t col_stride,
                std::int64_t k, std::int64_t columns, std::int64_t width, void* panel);

// Copies rows x k elements of the dtype to compact elements of a_type.
void pack_a_rows(const GemmTiles& tiles, const void* source, std::int64_t row_stride, std::int64_t col_stride,
                 std::int64_t rows, std::int64_t k, void* target);

// Stores n accumulator elements as `dtype` at a stride.
void store_row(const GemmTiles& tiles, const void* sums, std::int64_t n, void* target, std::int64_t stride,
               DType dtype);

}  // namespace flexor::runtime
