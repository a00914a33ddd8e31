#pragma once
// Tiles of matrix products: a table of what was measured, and a rule for the rest.
#include <cstdint>

#include "flexor/dtype.h"

namespace flexor::codegen::triton {

struct GemmTile {
    int m = 64, n = 64, k = 32;  // powers of two, each 16 at least but m of exact f32; see `more`
    int warps = 4, stages = 3;
    int split = 1;  // programs that share the sum over k
    int group = 8;  // tiles along m that run beside each other, for the sake of the cache
    int more = 0;   // columns beyond n, a power of two: tiles of 96 or 192
    friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

struct GemmSize {
    std::int64_t batch, m, n, k;
    DType dtype;
    bool prologue = false;  // the left operand is computed
};

// The table's entry of the smallest M class that holds `m`, or what the rule says.
GemmTile choose_gemm_tile(const GemmSize& size, int multiprocessors);
GemmTile rule_for_gemm_tile(const GemmSize& size, int multiprocessors);

}  // namespace flexor::codegen::triton
