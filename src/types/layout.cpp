#include "types/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "flexor/tensor.h"

namespace flexor::types {
namespace {

struct Axis {
    int position;
    std::int64_t size;
    std::int64_t stride;
};

// Whether two index tuples over axes of size >= 2 and stride != 0 can reach one address. Sorted by |stride|, an axis
// that steps over everything the smaller axes span adds no overlap; this is exact for nested layouts and says "overlap"
// for the rare interleaved ones, which is the safe side: self-overlap forbids more.
bool may_overlap(std::span<const Axis> axes) {
    std::array<std::pair<std::uint64_t, std::uint64_t>, kMaxRank> steps;
    std::size_t n = 0;
    for (const Axis& axis : axes) {
        const auto stride = static_cast<std::uint64_t>(axis.stride);
        steps[n++] = {axis.stride < 0 ? 0 - stride : stride, static_cast<std::uint64_t>(axis.size)};
    }
    std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n));
    __extension__ using Wide = unsigned __int128;
    Wide span = 0;  // largest distance within the smaller axes
    for (std::size_t i = 0; i < n; ++i) {
        if (steps[i].first <= span) return true;
        span += static_cast<Wide>(steps[i].first) * (steps[i].second - 1);
    }
    return false;
}

bool is_compact(std::span<const Axis> outermost_first) {
    std::int64_t expected = 1;
    for (std::size_t i = outermost_first.size(); i-- > 0;) {
        if (outermost_first[i].stride != expected) return false;
        if (__builtin_mul_overflow(expected, outermost_first[i].size, &expected)) return i == 0;
    }
    return true;
}

}  // namespace

LayoutClass classify_layout(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
    const int rank = static_cast<int>(sizes.size());
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return {};
    std::array<Axis, kMaxRank> storage;
    std::size_t n = 0;  // axes of size >= 2
    std::uint64_t zero_mask = 0;
    for (int i = 0; i < rank; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (sizes[at] == 1) continue;
        if (strides[at] == 0) {
            zero_mask |= std::uint64_t{1} << i;
        } else {
            storage[n++] = {i, sizes[at], strides[at]};
        }
    }
    const std::span<Axis> axes(storage.data(), n);
    const bool inner_unit = rank > 0 && (sizes[static_cast<std::size_t>(rank - 1)] == 1 ||
                                         strides[static_cast<std::size_t>(rank - 1)] == 1);
    if (zero_mask == 0) {
        if (is_compact(axes)) return {};
        std::array<Axis, kMaxRank> sorted_storage = storage;
        const std::span<Axis> sorted(sorted_storage.data(), n);
        // By insertion: short, stable, and without memory (std::stable_sort takes a buffer).
        for (std::size_t i = 1; i < n; ++i) {
            for (std::size_t j = i; j > 0 && sorted[j - 1].stride < sorted[j].stride; --j) {
                std::swap(sorted[j - 1], sorted[j]);
            }
        }
        if (is_compact(sorted)) {
            // Axes of size 1 have no place of their own; they stand where they stood before the axis that follows them.
            std::array<int, kMaxRank> order{};
            std::size_t next = 0;
            std::size_t out = 0;
            for (int i = 0; i < rank; ++i) {
                order[out++] = sizes[static_cast<std::size_t>(i)] == 1 ? i : sorted[next++].position;
            }
            std::uint64_t detail = 0;
            for (int i = 0; i < rank; ++i) {
                detail |= static_cast<std::uint64_t>(order[static_cast<std::size_t>(i)]) << (4 * i);
            }
            return {LayoutKind::kPermuted, detail};
        }
    }
    if (may_overlap(axes)) return {LayoutKind::kSelfOverlapping, 0};
    if (zero_mask != 0) {
        return {LayoutKind::kBroadcast, zero_mask | (inner_unit ? std::uint64_t{1} << 63 : 0)};
    }
    return {inner_unit ? LayoutKind::kInnerContiguous : LayoutKind::kGeneral, 0};
}

namespace {

struct Steps {
    std::int64_t stride, most;  // the distance between neighbours, and how many of them
    std::int64_t rest;          // the largest distance within the axes behind
};

// Whether distances of axes from `axis` on can be chosen that make up for `distance`. `apart`: one before is not 0.
bool meet(std::span<const Steps> axes, std::size_t axis, std::int64_t distance, bool apart) {
    if (axis == axes.size()) return apart && distance == 0;
    const Steps& a = axes[axis];
    // |distance + n * stride| must not exceed what the axes behind can make up for.
    const auto floor_div = [](std::int64_t x, std::int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
    const std::int64_t first = std::max(apart ? -a.most : 0, -floor_div(a.rest + distance, a.stride));
    const std::int64_t last = std::min(a.most, floor_div(a.rest - distance, a.stride));
    for (std::int64_t n = first; n <= last; ++n) {
        if (meet(axes, axis + 1, distance + n * a.stride, apart || n != 0)) return true;
    }
    return false;
}

}  // namespace

bool overlaps_itself(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
    if (std::ranges::find(sizes, 0) != sizes.end()) return false;
    std::array<Steps, kMaxRank> storage;
    std::size_t n = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 1) continue;
        if (strides[i] == 0 || strides[i] == std::numeric_limits<std::int64_t>::min()) return true;
        storage[n++] = {std::abs(strides[i]), sizes[i] - 1, 0};
    }
    const std::span<Steps> axes(storage.data(), n);
    std::ranges::sort(axes, std::ranges::greater{}, &Steps::stride);
    std::int64_t span = 0;
    for (std::size_t i = n; i-- > 0;) {
        axes[i].rest = span;
        std::int64_t reach = 0;
        // Distances are kept below a half of 64 bits, so that two of them add up.
        const bool wide = __builtin_mul_overflow(axes[i].stride, axes[i].most, &reach) ||
                          __builtin_add_overflow(span, reach, &span) ||
                          span > std::numeric_limits<std::int64_t>::max() / 4;
        if (wide) return true;
    }
    return meet(axes, 0, 0, false);
}

std::string to_string(LayoutClass layout) {
    switch (layout.kind) {
        case LayoutKind::kContiguous: return "contiguous";
        case LayoutKind::kPermuted: {
            // The largest axis named tells the rank.
            int last = 0;
            for (int i = 0; i < kMaxRank; ++i) {
                const int axis = static_cast<int>((layout.detail >> (4 * i)) & 0xF);
                if (axis != 0) last = std::max(last, std::max(i, axis));
            }
            std::string text = "permuted(";
            for (int i = 0; i <= last; ++i) {
                text += (i == 0 ? "" : ",") + std::to_string((layout.detail >> (4 * i)) & 0xF);
            }
            return text + ")";
        }
        case LayoutKind::kInnerContiguous: return "inner-contiguous";
        case LayoutKind::kBroadcast: {
            std::string text = "broadcast(";
            bool first = true;
            for (int i = 0; i < kMaxRank; ++i) {
                if (((layout.detail >> i) & 1) == 0) continue;
                text += (first ? "" : ",") + std::to_string(i);
                first = false;
            }
            return text + ((layout.detail >> 63) != 0 ? "; inner)" : ")");
        }
        case LayoutKind::kSelfOverlapping: return "self-overlapping";
        case LayoutKind::kGeneral: return "general";
    }
    return "?";
}

}  // namespace flexor::types
