#include <algorithm>

#include "codegen/triton/address_range.h"
#include "codegen/triton/launch_plan.h"
#include "support/check.h"

namespace flexor::codegen::triton {

namespace {

// What a tile adds to an index along k goes beyond k.
void add_matrix(AddressRange& range, const loopir::MatrixOperand& matrix, const std::vector<std::int64_t>& extents,
                std::int64_t rows, std::int64_t columns, const std::int64_t* params) {
    range.begin();
    range.add(1, value_of(matrix.offset, params));
    for (std::size_t dim = 0; dim < matrix.batch_strides.size(); ++dim)
        range.add(extents[dim] - 1, value_of(matrix.batch_strides[dim], params));
    range.add(rows, value_of(matrix.row_stride, params));
    range.add(columns, value_of(matrix.col_stride, params));
}

}  // namespace

LaunchPlan plan_contraction(const loopir::Contraction& c, const RowLayout& layout, const PlanValues& values,
                            int multiprocessors, const GemmTile* tile) {
    LaunchPlan out;
    const std::int64_t* params = values.most;
    for (const loopir::IntRef& extent : layout.body.extents) out.extents.push_back(value_of(extent, params));
    const std::int64_t k = std::max<std::int64_t>(value_of(c.k, params), 0);
    const std::int64_t m = out.extents[layout.axis_dim[0]], n = out.extents[layout.axis_dim[1]];
    std::int64_t batch = 1;
    for (const std::uint32_t dim : layout.outer)
        batch = saturated_product(batch, std::max<std::int64_t>(out.extents[dim], 0));
    const bool empty = batch == 0 || m <= 0 || n <= 0;
    out.extents.push_back(k);
    GemmTile chosen = tile != nullptr
                          ? *tile
                          : choose_gemm_tile({batch, m, n, k, c.a_dtype, c.prologue.has_value()}, multiprocessors);
    if (chosen.m == 1) chosen.more = 0;
    if (!sums_in_blocks(c) && !(chosen.m == 1 && sums_row_by_row(c))) {
        chosen = {std::min(chosen.m, 32), std::min(chosen.n, 32), 1, 4, 1, 1, chosen.group};
    }
    chosen.split =
        static_cast<int>(std::clamp<std::int64_t>(chosen.split, 1, std::max<std::int64_t>(ceil_div(k, chosen.k), 1)));
    const loopir::IntRef& rows = layout.body.extents[layout.axis_dim[0]];
    const loopir::IntRef& columns = layout.body.extents[layout.axis_dim[1]];
    const auto even = [&](const loopir::IntRef& extent, int block) {
        const std::int64_t divisor = values.divisor_of(extent);
        return std::int64_t{divisor > 0 && divisor % block == 0};
    };
    out.constants = {{"BLOCK_0", chosen.m},
                     {"BLOCK_1", chosen.n},
                     {"BLOCK_K", chosen.k},
                     {"SPLIT", chosen.split},
                     {"GROUP", chosen.group},
                     {"EVEN_0", even(rows, chosen.m)},
                     {"EVEN_1", even(columns, chosen.n + chosen.more)},
                     {"EVEN_K", even(c.k, chosen.k)},
                     {"BLOCK_2", chosen.more},
                     {"EVEN_2", even(columns, chosen.n + chosen.more)}};
    out.warps = chosen.warps;
    out.stages = chosen.stages;
    if (empty) return out;
    const std::int64_t tiles =
        saturated_product(saturated_product(ceil_div(m, chosen.m), ceil_div(n, chosen.n + chosen.more)), batch);
    out.tiles = saturated_product(tiles, chosen.split);
    if (chosen.split > 1) {
        out.counters = tiles;
        out.scratch = {saturated_product(out.tiles, std::int64_t{chosen.m} * (chosen.n + chosen.more) *
                                                        static_cast<std::int64_t>(dtype_size(c.accumulator)))};
    } else {
        out.scratch = {0};
    }

    AddressRange range;
    range.count(saturated_product(out.tiles, chosen.group));
    for (const std::int64_t extent : out.extents) range.count(extent);
    add_accesses(range, layout.body, out.extents, params);
    if (c.prologue) {
        std::vector<std::int64_t> extents = out.extents;
        extents.erase(extents.end() - 2);  // n
        add_accesses(range, *c.prologue, extents, params);
    } else {
        add_matrix(range, c.a, out.extents, m, k + chosen.k, params);
    }
    add_matrix(range, c.b, out.extents, k + chosen.k, n, params);
    out.narrow = range.fits();
    return out;
}

}  // namespace flexor::codegen::triton
