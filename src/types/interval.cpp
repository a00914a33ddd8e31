#include "types/interval.h"

#include <algorithm>

namespace flexor::types {
namespace {

__extension__ using Wide = __int128;

std::int64_t clamp_lo(Wide v) {
    return static_cast<std::int64_t>(std::clamp<Wide>(v, -static_cast<Wide>(kDimInfinity), kDimInfinity - 1));
}
std::int64_t clamp_hi(Wide v) {
    return static_cast<std::int64_t>(std::clamp<Wide>(v, -static_cast<Wide>(kDimInfinity) + 1, kDimInfinity));
}

// Quotient of a range by a range of positive divisors, for a rounding that is monotonic in the exact quotient.
template <class Quotient>
Range divide_positive(Range a, Range b, Quotient quotient) {
    Range out = kEverything;
    if (is_lower_bounded(a)) out.lo = quotient(a.lo, a.lo >= 0 ? b.hi : b.lo);
    if (is_upper_bounded(a)) out.hi = quotient(a.hi, a.hi >= 0 ? b.lo : b.hi);
    return out;
}

template <class Quotient>
Range divide(Range a, Range b, Quotient quotient) {
    const Range positive = intersect(b, {1, kDimInfinity});
    const Range negative = intersect(b, {-kDimInfinity, -1});
    if (is_empty(positive) && is_empty(negative)) return kEverything;
    if (is_empty(negative)) return divide_positive(a, positive, quotient);
    const Range mirrored = divide_positive(negate(a), negate(negative), quotient);
    return is_empty(positive) ? mirrored : unite(mirrored, divide_positive(a, positive, quotient));
}

Range modulo_positive(Range a, Range b) {
    if (a.lo >= 0 && is_upper_bounded(a) && a.hi < b.lo) return a;
    Range out{0, is_upper_bounded(b) ? b.hi - 1 : kDimInfinity};
    if (a.lo >= 0) out.hi = std::min(out.hi, a.hi);
    return out;
}

}  // namespace

Range point(std::int64_t value) { return {clamp_lo(value), clamp_hi(value)}; }

Range intersect(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Range unite(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Range negate(Range a) { return {-a.hi, -a.lo}; }

Range add(Range a, Range b) {
    Range out = kEverything;
    if (is_lower_bounded(a) && is_lower_bounded(b)) out.lo = clamp_lo(static_cast<Wide>(a.lo) + b.lo);
    if (is_upper_bounded(a) && is_upper_bounded(b)) out.hi = clamp_hi(static_cast<Wide>(a.hi) + b.hi);
    return out;
}

Range multiply(Range a, Range b) {
    // An unbounded end counts as kDimInfinity: times 0 it is 0, times anything else at least kDimInfinity.
    const Wide corners[] = {static_cast<Wide>(a.lo) * b.lo, static_cast<Wide>(a.lo) * b.hi,
                            static_cast<Wide>(a.hi) * b.lo, static_cast<Wide>(a.hi) * b.hi};
    return {clamp_lo(*std::min_element(std::begin(corners), std::end(corners))),
            clamp_hi(*std::max_element(std::begin(corners), std::end(corners)))};
}

Range floor_divide(Range a, Range b) { return divide(a, b, floor_quotient); }

Range trunc_divide(Range a, Range b) {
    return divide(a, b, [](std::int64_t x, std::int64_t y) { return x / y; });
}

Range modulo(Range a, Range b) {
    const Range positive = intersect(b, {1, kDimInfinity});
    const Range negative = intersect(b, {-kDimInfinity, -1});
    if (is_empty(positive) && is_empty(negative)) return kEverything;
    if (is_empty(negative)) return modulo_positive(a, positive);
    const Range mirrored = negate(modulo_positive(negate(a), negate(negative)));
    return is_empty(positive) ? mirrored : unite(mirrored, modulo_positive(a, positive));
}

Range minimum(Range a, Range b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Range maximum(Range a, Range b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Range broadcast(Range a, Range b) {
    if (!contains(a, 1)) return a;
    if (a.lo == 1 && a.hi == 1) return b;
    if (a.lo == 1) a.lo = 2;
    if (a.hi == 1) a.hi = 0;
    return unite(a, b);
}

}  // namespace flexor::types
