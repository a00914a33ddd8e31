#include "runtime/kernels/embedding_bag.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/thread_pool.h"
#include "types/half.h"

namespace flexor::runtime {

namespace {

struct F32 {
    using Stored = float;
    using Sum = float;
    static Sum load(Stored v) { return v; }
    static Stored store(Sum v) { return v; }
};
struct F64 {
    using Stored = double;
    using Sum = double;
    static Sum load(Stored v) { return v; }
    static Stored store(Sum v) { return v; }
};
struct F16 {
    using Stored = std::uint16_t;
    using Sum = float;
    static Sum load(Stored v) { return types::f32_from_f16(v); }
    static Stored store(Sum v) { return types::f16_from_f32(v); }
};
struct BF16 {
    using Stored = std::uint16_t;
    using Sum = float;
    static Sum load(Stored v) { return types::f32_from_bf16(v); }
    static Stored store(Sum v) { return types::bf16_from_f32(v); }
};

std::int64_t integer(const StridedMatrix& m, std::int64_t i) {
    const std::int64_t at = i * m.strides[0];
    return m.dtype == DType::kI32 ? static_cast<const std::int32_t*>(m.data)[at]
                                  : static_cast<const std::int64_t*>(m.data)[at];
}

template <class T>
bool run(const StridedMatrix& ids, const StridedMatrix& offsets, const StridedMatrix& table, const StridedMatrix& out,
         BagMode mode, bool wrap) {
    const std::int64_t bags = offsets.sizes[0];
    const std::int64_t width = table.sizes[1];
    std::atomic<bool> valid{true};
    const std::int64_t per_bag = bags > 0 ? (ids.sizes[0] / bags + 1) * (width + 1) : 1;
    parallel_for(bags, std::max<std::int64_t>(1, 32768 / per_bag), [&](std::int64_t first, std::int64_t last) {
        std::vector<typename T::Sum> sum(static_cast<std::size_t>(width));
        for (std::int64_t bag = first; bag < last; ++bag) {
            const std::int64_t begin = integer(offsets, bag);
            const std::int64_t end = bag + 1 < bags ? integer(offsets, bag + 1) : ids.sizes[0];
            const bool cuts = begin >= 0 && begin <= end && end <= ids.sizes[0] && (bag > 0 || begin == 0);
            if (!cuts) return valid.store(false, std::memory_order_relaxed);
            std::fill(sum.begin(), sum.end(), typename T::Sum{0});
            for (std::int64_t i = begin; i < end; ++i) {
                std::int64_t id = integer(ids, i);
                if (wrap && id < 0) id += table.sizes[0];
                if (id < 0 || id >= table.sizes[0]) return valid.store(false, std::memory_order_relaxed);
                const auto* row = static_cast<const typename T::Stored*>(table.data) + id * table.strides[0];
                for (std::int64_t j = 0; j < width; ++j) {
                    const typename T::Sum v = T::load(row[j * table.strides[1]]);
                    auto& s = sum[static_cast<std::size_t>(j)];
                    if (mode != BagMode::kMax) {
                        s += v;
                    } else if (i == begin || v > s || v != v) {
                        s = v;  // a NaN stays: nothing compares greater
                    }
                }
            }
            auto* target = static_cast<typename T::Stored*>(out.data) + bag * out.strides[0];
            const auto count = static_cast<typename T::Sum>(end - begin);
            for (std::int64_t j = 0; j < width; ++j) {
                typename T::Sum s = sum[static_cast<std::size_t>(j)];
                if (mode == BagMode::kMean && end > begin) s /= count;
                target[j * out.strides[1]] = T::store(s);
            }
        }
    });
    return valid.load(std::memory_order_relaxed);
}

}  // namespace

bool embedding_bag(const StridedMatrix& ids, const StridedMatrix& offsets, const StridedMatrix& table,
                   const StridedMatrix& out, BagMode mode, bool wrap) {
    switch (table.dtype) {
        case DType::kF32: return run<F32>(ids, offsets, table, out, mode, wrap);
        case DType::kF64: return run<F64>(ids, offsets, table, out, mode, wrap);
        case DType::kF16: return run<F16>(ids, offsets, table, out, mode, wrap);
        case DType::kBF16: return run<BF16>(ids, offsets, table, out, mode, wrap);
        default: return false;
    }
}

}  // namespace flexor::runtime
