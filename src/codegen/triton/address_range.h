#pragma once
// Whether the numbers and addresses of a launch fit in 32 bits.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/triton/row_layout.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

inline std::int64_t value_of(const loopir::IntRef& ref, const std::int64_t* params) {
    return ref.is_constant ? ref.value : params[ref.value];
}

// The power of two at or above n, `most` at most.
inline std::int64_t power_of_two(std::int64_t n, std::int64_t most) {
    if (n >= most) return most;
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

inline std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

class AddressRange {
public:
    bool fits() const { return fits_; }
    void count(std::int64_t number) { fits_ = fits_ && number < kNarrowEnd; }
    void begin() { sum_ = 0; }
    // A part of the address since begin(): at most `steps` of `stride`.
    void add(std::int64_t steps, std::int64_t stride) {
        std::int64_t product = 0;
        fits_ = fits_ && !__builtin_mul_overflow(std::max<std::int64_t>(steps, 0), stride, &product) &&
                product > -kNarrowEnd && product < kNarrowEnd;
        if (fits_) sum_ += product < 0 ? -product : product;
        fits_ = fits_ && sum_ < kNarrowEnd;
    }

private:
    // Far enough below 2^31 for what a tile adds to an index.
    static constexpr std::int64_t kNarrowEnd = (std::int64_t{1} << 31) - (std::int64_t{1} << 17);
    bool fits_ = true;
    std::int64_t sum_ = 0;
};

inline void add_accesses(AddressRange& range, const loopir::Body& body, const std::vector<std::int64_t>& extents,
                         const std::int64_t* params) {
    for_each_access(body, [&](const loopir::Access& access) {
        range.begin();
        range.add(1, value_of(access.offset, params));
        for (std::uint32_t dim = 0; dim < body.rank(); ++dim)
            range.add(extents[dim] - 1, value_of(access.strides[dim], params));
        for (const loopir::GatherTerm& gather : access.gathers)
            range.add(value_of(gather.extent, params), value_of(gather.stride, params));
    });
}

}  // namespace flexor::codegen::triton
