#pragma once
// Interval arithmetic over the mathematical integers. A bound at or beyond +-kDimInfinity means unbounded; bounds only
// ever widen when they are clamped, so every result contains every possible value.
#include "types/shape_env.h"

namespace flexor::types {

inline constexpr Range kEverything{-kDimInfinity, kDimInfinity};

inline bool is_lower_bounded(Range r) { return r.lo > -kDimInfinity; }
inline bool is_upper_bounded(Range r) { return r.hi < kDimInfinity; }
inline bool is_empty(Range r) { return r.lo > r.hi; }
inline bool is_point(Range r) { return r.lo == r.hi && is_lower_bounded(r) && is_upper_bounded(r); }
inline bool contains(Range r, std::int64_t v) { return r.lo <= v && (v <= r.hi || !is_upper_bounded(r)); }

// Rounded towards minus infinity; b is not 0.
inline std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    const std::int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

Range point(std::int64_t value);
Range intersect(Range a, Range b);  // may be empty
Range unite(Range a, Range b);
Range negate(Range a);
Range add(Range a, Range b);
Range multiply(Range a, Range b);
// A divisor 0 has no value and is left out; kEverything if there is no other.
Range floor_divide(Range a, Range b);
Range trunc_divide(Range a, Range b);
Range modulo(Range a, Range b);
Range minimum(Range a, Range b);
Range maximum(Range a, Range b);
Range broadcast(Range a, Range b);

}  // namespace flexor::types
