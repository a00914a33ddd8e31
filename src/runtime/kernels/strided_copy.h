#pragma once

// Copies a tensor to a place of the same sizes, whatever the strides of both.

#include <cstddef>
#include <cstdint>
#include <span>

namespace flexor::runtime {

// Strides in elements of `element_bytes` (1, 2, 4 or 8). The two do not overlap. At most kMaxRank dims.
void copy_strided(void* target, std::span<const std::int64_t> target_strides, const void* source,
                  std::span<const std::int64_t> source_strides, std::span<const std::int64_t> sizes,
                  std::size_t element_bytes);

}  // namespace flexor::runtime
