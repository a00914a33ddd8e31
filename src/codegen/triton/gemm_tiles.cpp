#include "codegen/triton/gemm_tiles.h"

#include <algorithm>

#include "codegen/triton/address_range.h"

namespace flexor::codegen::triton {

namespace {

constexpr std::int64_t kLeast = 16;  // of a side of a matrix product

struct Entry {
    std::int64_t most_m, n, k;
    int bytes;  // of an element
    GemmTile tile;
};

// One H200; tools/gpu/run.py --tune writes the rows.
constexpr Entry kMeasured[] = {
#define FLEXOR_GEMM_TILE(most_m, n, k, bytes, ...) {most_m, n, k, bytes, {__VA_ARGS__}},
#include "codegen/triton/gemm_tiles.def"
#undef FLEXOR_GEMM_TILE
};

}  // namespace

GemmTile rule_for_gemm_tile(const GemmSize& size, int multiprocessors) {
    GemmTile out;
    const bool halves = dtype_size(size.dtype) == 2;
    if (!halves) {
        out = {64, 64, 32, 4, 2, 1, 8};
    } else {
        // The largest tile that still gives most processors one.
        constexpr GemmTile kSizes[] = {
            {128, 128, 64, 8, 3, 1, 8}, {64, 128, 128, 4, 4, 1, 8}, {64, 64, 128, 4, 4, 1, 8}};
        for (const GemmTile& one : kSizes) {
            out = one;
            const std::int64_t count = ceil_div(size.m, one.m) * ceil_div(size.n, one.n);
            if (3 * saturated_product(count, size.batch) >= 2 * multiprocessors) break;
        }
    }
    // Few rows are bound by reading the right side: narrow tiles, each with much of k under way.
    if (halves && size.m <= 64 && !size.prologue) out = {64, 32, size.k >= 2048 ? 128 : 256, 4, 3, 1, 1};
    const bool few_exact = !halves && size.m <= 64 && !size.prologue;
    const bool one_row = size.m == 1 && !size.prologue;
    if (one_row) out = halves ? GemmTile{1, 4, 1024, 4, 3, 1, 1} : GemmTile{1, 8, 512, 4, 3, 1, 1};
    if (few_exact && size.m > 1) out = {64, 64, 32, 4, 3, 1, 1};
    if (few_exact && size.m > 16 && size.m <= 32) out = {32, 32, 64, 4, 3, 1, 1};
    if (size.prologue) out.stages = 2;
    // Only tensor cores want rows that there are not.
    out.m = static_cast<int>(std::max(power_of_two(size.m, out.m), halves && !one_row ? kLeast : 1));
    out.n = static_cast<int>(std::max(power_of_two(size.n, out.n), one_row ? 1 : kLeast));
    out.k = static_cast<int>(std::max(power_of_two(size.k, out.k), kLeast));
    if (out.m * out.n <= 64 * 64) out.warps = 4;
    // Programs share k where there are fewer than processors.
    const std::int64_t tiles = saturated_product(ceil_div(size.m, out.m) * ceil_div(size.n, out.n), size.batch);
    const std::int64_t steps = size.k / out.k;
    const std::int64_t least = few_exact ? 2 : 4;  // steps of a program
    if (tiles > 0 && 2 * tiles <= multiprocessors && steps >= 2 * least)
        out.split = static_cast<int>(std::min({multiprocessors / tiles, steps / least, std::int64_t{8}}));
    return out;
}

GemmTile choose_gemm_tile(const GemmSize& size, int multiprocessors) {
    if (size.batch == 1 && !size.prologue) {
        for (const Entry& entry : kMeasured) {
            if (size.m <= entry.most_m && size.n == entry.n && size.k == entry.k &&
                entry.bytes == static_cast<int>(dtype_size(size.dtype)))
                return entry.tile;
        }
    }
    return rule_for_gemm_tile(size, multiprocessors);
}

}  // namespace flexor::codegen::triton
