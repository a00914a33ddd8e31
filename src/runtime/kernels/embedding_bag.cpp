#include "runtime/kernels/embedding_bag.h"

#include <algorithm>
#include <atomic>

#include "runtime/thread_pool.h"
#include "tensor/element.h"
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

std::int64_t integer(const StridedMatrix& m, std::int64_t i) { return read_integer(m.dtype, m.data, i * m.strides[0]); }

// Columns that are summed at a time, in registers and the first cache.
constexpr std::int64_t kColumns = 256;

template <class T>
class Bags {
public:
    Bags(const StridedMatrix& ids, const StridedMatrix& offsets, const StridedMatrix& table, const StridedMatrix& out,
         BagMode mode, bool wrap)
        : ids_(ids), offsets_(offsets), table_(table), out_(out), mode_(mode), wrap_(wrap) {}

    bool run() {
        const std::int64_t bags = offsets_.sizes[0];
        const std::int64_t width = table_.sizes[1];
        std::atomic<bool> valid{true};
        const std::int64_t per_bag = bags > 0 ? (ids_.sizes[0] / bags + 1) * (width + 1) : 1;
        parallel_for(bags, std::max<std::int64_t>(1, 32768 / per_bag), [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t bag = first; bag < last; ++bag) {
                const std::int64_t begin = integer(offsets_, bag);
                const std::int64_t end = bag + 1 < bags ? integer(offsets_, bag + 1) : ids_.sizes[0];
                bool good = begin >= 0 && begin <= end && end <= ids_.sizes[0] && (bag > 0 || begin == 0);
                // Once even for rows without columns: their ids are checked too.
                for (std::int64_t column = 0; good && (column == 0 || column < width); column += kColumns)
                    good = reduce(bag, begin, end, column, std::min(kColumns, width - column));
                if (!good) return valid.store(false, std::memory_order_relaxed);
            }
        });
        return valid.load(std::memory_order_relaxed);
    }

private:
    using Stored = Unaligned<typename T::Stored>;

    // Columns [column, column + count) of one bag; false for an id outside the table.
    bool reduce(std::int64_t bag, std::int64_t begin, std::int64_t end, std::int64_t column, std::int64_t count) const {
        typename T::Sum sums[kColumns] = {};
        for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t id = integer(ids_, i);
            if (wrap_ && id < 0) id += table_.sizes[0];
            if (id < 0 || id >= table_.sizes[0]) return false;
            const auto* row =
                static_cast<const Stored*>(table_.data) + id * table_.strides[0] + column * table_.strides[1];
            for (std::int64_t j = 0; j < count; ++j) {
                const typename T::Sum v = T::load(row[j * table_.strides[1]]);
                if (mode_ != BagMode::kMax) {
                    sums[j] += v;
                } else if (i == begin || v > sums[j] || v != v) {
                    sums[j] = v;  // a NaN stays: nothing compares greater
                }
            }
        }
        auto* target = static_cast<Stored*>(out_.data) + bag * out_.strides[0] + column * out_.strides[1];
        const auto members = static_cast<typename T::Sum>(end - begin);
        for (std::int64_t j = 0; j < count; ++j) {
            const bool divide = mode_ == BagMode::kMean && end > begin;
            target[j * out_.strides[1]] = T::store(divide ? sums[j] / members : sums[j]);
        }
        return true;
    }

    const StridedMatrix &ids_, &offsets_, &table_, &out_;
    BagMode mode_;
    bool wrap_;
};

}  // namespace

bool embedding_bag(const StridedMatrix& ids, const StridedMatrix& offsets, const StridedMatrix& table,
                   const StridedMatrix& out, BagMode mode, bool wrap) {
    switch (table.dtype) {
        case DType::kF32: return Bags<F32>(ids, offsets, table, out, mode, wrap).run();
        case DType::kF64: return Bags<F64>(ids, offsets, table, out, mode, wrap).run();
        case DType::kF16: return Bags<F16>(ids, offsets, table, out, mode, wrap).run();
        case DType::kBF16: return Bags<BF16>(ids, offsets, table, out, mode, wrap).run();
        default: return false;
    }
}

}  // namespace flexor::runtime
