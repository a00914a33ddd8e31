#include "ops/ordering.h"

#include <array>
#include <atomic>
#include <bit>
#include <numeric>

#include "ops/native.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

// ---------------------------------------------------------------- keys

// Unsigned numbers in the order of the elements; equal elements have equal keys.
std::uint32_t key_of(float v) {
    if (v != v) return ~std::uint32_t{0};
    const auto bits = std::bit_cast<std::uint32_t>(v + 0.0f);  // one zero
    return bits ^ ((bits >> 31) != 0 ? ~std::uint32_t{0} : std::uint32_t{1} << 31);
}
std::uint64_t key_of(double v) {
    if (v != v) return ~std::uint64_t{0};
    const auto bits = std::bit_cast<std::uint64_t>(v + 0.0);
    return bits ^ ((bits >> 63) != 0 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}
std::uint64_t key_of(std::int64_t v) { return static_cast<std::uint64_t>(v) ^ (std::uint64_t{1} << 63); }
std::uint32_t key_of(std::int32_t v) { return static_cast<std::uint32_t>(v) ^ (std::uint32_t{1} << 31); }
std::uint32_t key_of(std::int8_t v) { return static_cast<std::uint32_t>(v + 128); }
std::uint32_t key_of(std::uint8_t v) { return v; }

// A key and the place of its element: no two are equal.
struct WideItem {
    std::uint64_t key;
    I place;
    friend auto operator<=>(const WideItem&, const WideItem&) = default;
};
using NarrowItem = std::uint64_t;  // the key in the upper half, the place in the lower
I item_place(const WideItem& item) { return item.place; }
I item_place(NarrowItem item) { return static_cast<I>(item & 0xFFFFFFFFu); }

// ---------------------------------------------------------------- sorting

constexpr I kRadixFrom = 1 << 10;  // shorter lines are compared

// By digits of the key from the least on; the order of equal digits is kept, so places stay in order. Returns where the
// sorted items are: `items` or `spare`.
NarrowItem* radix_sort(NarrowItem* items, NarrowItem* spare, I count) {
    constexpr int kBits = 11, kDigits = 3;
    constexpr std::size_t kBuckets = std::size_t{1} << kBits;
    std::vector<std::array<I, kBuckets>> starts(kDigits);
    const auto digit = [](NarrowItem item, int d) { return (item >> (32 + d * kBits)) & (kBuckets - 1); };
    for (I i = 0; i < count; ++i) {
        for (int d = 0; d < kDigits; ++d) ++starts[static_cast<std::size_t>(d)][digit(items[i], d)];
    }
    for (int d = 0; d < kDigits; ++d) {
        auto& start = starts[static_cast<std::size_t>(d)];
        if (start[digit(items[0], d)] == count) continue;  // one digit for all
        std::exclusive_scan(start.begin(), start.end(), start.begin(), I{0});
        for (I i = 0; i < count; ++i) spare[start[digit(items[i], d)]++] = items[i];
        std::swap(items, spare);
    }
    return items;
}

NarrowItem* sort_items(NarrowItem* items, NarrowItem* spare, I count) {
    if (count >= kRadixFrom) return radix_sort(items, spare, count);
    std::sort(items, items + count);
    return items;
}
WideItem* sort_items(WideItem* items, WideItem*, I count) {
    std::sort(items, items + count);
    return items;
}

// ---------------------------------------------------------------- lines

// The first `wanted` items of a line in order; make(i) is its item i.
template <class Item, class Make>
const Item* first_items(Item* items, I count, I wanted, Make make) {
    const I room = std::max<I>(4 * wanted, 1 << 10);
    if (room >= count) {
        for (I i = 0; i < count; ++i) items[i] = make(i);
        return sort_items(items, items + count, count);
    }
    // Of a few of many, those are kept that come before the last of the best so far.
    I kept = 0;
    Item last{};
    for (I i = 0; i < count; ++i) {
        const Item item = make(i);
        if (i >= room && !(item < last)) continue;
        items[kept++] = item;
        if (kept < room) continue;
        std::nth_element(items, items + wanted - 1, items + kept);
        kept = wanted;
        last = items[wanted - 1];
    }
    if (kept > wanted) std::nth_element(items, items + wanted - 1, items + kept);
    return sort_items(items, items + wanted, wanted);
}

struct Order {
    ReferenceContext& c;
    const Lines& lines;
    bool descending;
    I wanted;
    bool places_only;
};

template <class E, class Item, class MakeItem>
Expected<void> order_as(const Order& order, MakeItem make_item) {
    ReferenceContext& c = order.c;
    const Tensor& x = c.inputs[0];
    const Tensor& places = c.outputs[order.places_only ? 0 : 1];
    const I length = order.lines.length(), step = order.lines.step(x);
    const I place_step = places.rank() == 0 ? 0 : order.lines.step(places);
    std::atomic<bool> full{true};
    parallel(c, order.lines.count(), grain_of(length * 8), [&](I begin, I end) {
        const Tensor scratch = Tensor::empty(DType::kU8, {2 * length * static_cast<I>(sizeof(Item))});
        if (!scratch.defined()) return full.store(false, std::memory_order_relaxed);
        auto* const items = scratch.data_as<Item>();
        for (I line = begin; line < end; ++line) {
            const auto* from = x.data_as<const typename E::Stored>() + order.lines.start(x, line);
            const Item* sorted =
                first_items(items, length, order.wanted, [&](I i) { return make_item(E::load(from[i * step]), i); });
            I* to = places.data_as<I>() + order.lines.start(places, line);
            for (I i = 0; i < order.wanted; ++i) to[i * place_step] = item_place(sorted[i]);
            if (order.places_only) continue;
            const Tensor& values = c.outputs[0];
            auto* out = values.data_as<typename E::Stored>() + order.lines.start(values, line);
            const I value_step = order.lines.step(values);
            for (I i = 0; i < order.wanted; ++i) out[i * value_step] = from[item_place(sorted[i]) * step];
        }
    });
    if (!full) return no_memory("the keys of a line");
    if (stopped(c)) return interrupted();
    return {};
}

}  // namespace

Expected<void> order_lines(ReferenceContext& c, int axis, bool descending, std::int64_t count, bool places_only) {
    const Tensor& x = c.inputs[0];
    const Lines lines(x, axis);
    if (x.numel() == 0 || count == 0) return {};
    const Order order{c, lines, descending, count, places_only};
    const bool narrow = lines.length() <= I{0xFFFFFFFF};
    return with_elements(x.dtype(), [&](auto elements) -> Expected<void> {
        using E = decltype(elements);
        const auto wide = [descending](auto v, I i) {
            const std::uint64_t key = key_of(v);
            return WideItem{descending ? ~key : key, i};
        };
        if constexpr (sizeof(key_of(typename E::Number{})) == 4) {
            if (narrow) {
                return order_as<E, NarrowItem>(order, [descending](auto v, I i) {
                    const std::uint32_t key = key_of(v);
                    return std::uint64_t{descending ? ~key : key} << 32 | static_cast<std::uint64_t>(i);
                });
            }
            return order_as<E, WideItem>(order, [wide](auto v, I i) { return wide(static_cast<I>(key_of(v)), i); });
        } else {
            return order_as<E, WideItem>(order, wide);
        }
    });
}

}  // namespace flexor::ops
