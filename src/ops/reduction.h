#pragma once
// How elements that meet in one place are combined, by the names that torch gives.
#include <cstdint>
#include <optional>
#include <string_view>

namespace flexor::ops {

enum class Reduction : std::uint8_t { kNone, kSum, kProd, kMean, kMax, kMin };

inline std::optional<Reduction> reduction_of(std::string_view name) {
    constexpr std::string_view kNames[] = {"none", "sum", "prod", "mean", "amax", "amin"};
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
        if (name == kNames[i]) return static_cast<Reduction>(i);
    }
    return std::nullopt;
}

// Towards minus infinity; the divisor is positive.
inline std::int64_t floor_divided(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace flexor::ops
