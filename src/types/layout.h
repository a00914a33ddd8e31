#pragma once
// Layout classes: named bundles of stride facts, part of every signature. The strongest class that holds wins.
//
//  kContiguous       row-major compact
//  kPermuted         compact under a permutation of the axes (the permutation is part of the class)
//  kInnerContiguous  stride of the last axis is 1, the others are free but do not overlap
//  kBroadcast        some strides are 0 (the mask of those axes is part of the class), the others as kInnerContiguous
//                    or free
//  kSelfOverlapping  two index tuples may reach one address without a stride-0 axis
//  kGeneral          anything else without self-overlap (negative strides included)
//
// Strides of size-1 axes are ignored; a tensor without elements is contiguous.
#include <cstdint>
#include <span>
#include <string>

#include "types/dim.h"

namespace flexor::types {

enum class LayoutKind : std::uint8_t {
    kContiguous,
    kPermuted,
    kInnerContiguous,
    kBroadcast,
    kSelfOverlapping,
    kGeneral
};

struct LayoutClass {
    LayoutKind kind = LayoutKind::kContiguous;
    std::uint64_t detail = 0;  // kPermuted: 4 bits per position, outermost axis first; kBroadcast: mask of stride-0
                               // axes, bit 63 set if the last axis has stride 1
    friend bool operator==(const LayoutClass&, const LayoutClass&) = default;
    std::uint64_t bits() const { return (static_cast<std::uint64_t>(kind) << 60) ^ detail; }
};

LayoutClass classify_layout(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);
// Whether two elements share an address. Exact, but that what spans more than 64 bits is said to overlap.
bool overlaps_itself(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);
std::string to_string(LayoutClass layout);

}  // namespace flexor::types
