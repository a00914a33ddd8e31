#include <algorithm>
#include <bit>

#include "codegen/triton/address_range.h"
#include "codegen/triton/launch_plan.h"

namespace flexor::codegen::triton {

namespace {

// Of a side of a matrix product.
constexpr std::int64_t kLeastSide = 16;
constexpr std::int64_t kMostHead = 256;

AttentionTile choose_tile(const loopir::Attention& a, std::int64_t q_len, std::int64_t kv_len, std::int64_t head,
                          std::int64_t heads, int multiprocessors) {
    AttentionTile out;
    // Doubles are multiplied one by one.
    if (a.dtype == DType::kF64) return {16, 16, 4, 1, 1};
    const bool wide = dtype_size(a.dtype) > 2;
    std::int64_t queries = wide ? 32 : head <= 64 && kv_len >= 1024 ? 128 : 64;
    // Small blocks of queries where large ones would leave processors idle.
    while (queries > 32 && saturated_product(ceil_div(q_len, queries), heads) < multiprocessors / 2) queries /= 2;
    out.queries = static_cast<int>(std::max(power_of_two(q_len, queries), kLeastSide));
    out.keys = static_cast<int>(std::max(power_of_two(kv_len, wide ? 32 : 64), kLeastSide));
    out.warps = out.queries >= 128 ? 8 : 4;
    out.stages = wide ? 1 : head > 128 ? 2 : 3;
    const std::int64_t tiles = saturated_product(ceil_div(q_len, out.queries), heads);
    const std::int64_t wanted = std::min(multiprocessors / std::max<std::int64_t>(tiles, 1), kv_len / (2 * out.keys));
    if (wanted >= 2) out.split = static_cast<int>(std::bit_floor(std::min<std::uint64_t>(wanted, 16)));
    return out;
}

}  // namespace

bool head_fits(std::int64_t head_dim, std::int64_t value_dim, DType dtype) {
    const std::int64_t most = dtype == DType::kF64 ? kMostHead / 2 : kMostHead;
    return head_dim <= most && value_dim <= most;
}

LaunchPlan plan_attention(const loopir::Attention& a, const PlanValues& values, int multiprocessors,
                          const AttentionTile* tile) {
    LaunchPlan out;
    const std::int64_t* params = values.most;
    for (const loopir::IntRef& ref : {a.batch, a.heads, a.kv_heads, a.q_len, a.kv_len, a.head_dim, a.value_dim})
        out.extents.push_back(std::max<std::int64_t>(value_of(ref, params), 0));
    const std::int64_t batch = out.extents[0], heads = out.extents[1], q_len = out.extents[3], kv_len = out.extents[4];
    const std::int64_t head = std::max(power_of_two(out.extents[5], kMostHead), kLeastSide);
    const std::int64_t value = std::max(power_of_two(out.extents[6], kMostHead), kLeastSide);
    const AttentionTile chosen = tile != nullptr ? *tile
                                                 : choose_tile(a, q_len, kv_len, std::max(head, value),
                                                               saturated_product(batch, heads), multiprocessors);
    // A head that is as wide as the block is.
    const auto even = [&](const loopir::IntRef& ref, std::int64_t block) {
        return std::int64_t{values.most_of(ref) == block && values.divisor_of(ref) == block};
    };
    out.constants = {{"BLOCK_0", chosen.queries},
                     {"BLOCK_1", chosen.keys},
                     {"HEAD", head},
                     {"VALUE", value},
                     {"EVEN_HEAD", even(a.head_dim, head)},
                     {"EVEN_VALUE", even(a.value_dim, value)},
                     {"SPLIT", chosen.split}};
    out.warps = chosen.warps;
    out.stages = chosen.stages;
    if (out.extents[6] == 0) return out;
    const std::int64_t tiles = saturated_product(saturated_product(batch, heads), ceil_div(q_len, chosen.queries));
    out.tiles = saturated_product(tiles, chosen.split);
    out.scratch = {0, 0};
    if (chosen.split > 1 && tiles > 0) {
        out.counters = tiles;
        const std::int64_t rows = saturated_product(out.tiles, chosen.queries * (a.dtype == DType::kF64 ? 8 : 4));
        out.scratch = {saturated_product(rows, value), saturated_product(rows, 2)};
    }

    AddressRange range;
    range.count(out.tiles);
    for (const std::int64_t extent : out.extents) range.count(extent);
    const auto add = [&](const loopir::StridedOperand& operand, std::initializer_list<std::int64_t> sizes) {
        range.begin();
        range.add(1, value_of(operand.offset, params));
        std::size_t dim = 0;
        for (const std::int64_t size : sizes) range.add(size, value_of(operand.strides[dim++], params));
    };
    add(a.q, {batch, heads, q_len, head});
    add(a.k, {batch, heads, kv_len + chosen.keys, head});
    add(a.v, {batch, heads, kv_len + chosen.keys, value});
    add(a.out, {batch, heads, q_len, value});
    if (a.mask) add(*a.mask, {batch, heads, q_len, kv_len + chosen.keys});
    if (a.lengths) add(*a.lengths, {batch});
    out.narrow = range.fits();
    return out;
}

}  // namespace flexor::codegen::triton
