#include "runtime/kernels/strided_copy.h"

#include <cstring>

#include "flexor/tensor.h"

namespace flexor::runtime {
namespace {

struct Dim {
    std::int64_t size, to, from;  // strides
};

template <class Element>
void copy_line(char* to, const char* from, const Dim& dim) {
    auto* target = reinterpret_cast<Element*>(to);
    const auto* source = reinterpret_cast<const Element*>(from);
    for (std::int64_t i = 0; i < dim.size; ++i)
        std::memcpy(target + i * dim.to, source + i * dim.from, sizeof(Element));
}

void copy_dims(char* to, const char* from, const Dim* dims, int count, std::size_t bytes) {
    if (count > 1) {
        for (std::int64_t i = 0; i < dims->size; ++i) {
            copy_dims(to, from, dims + 1, count - 1, bytes);
            to += dims->to * static_cast<std::int64_t>(bytes);
            from += dims->from * static_cast<std::int64_t>(bytes);
        }
        return;
    }
    if (dims->to == 1 && dims->from == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(dims->size) * bytes);
        return;
    }
    switch (bytes) {
        case 1: return copy_line<std::uint8_t>(to, from, *dims);
        case 2: return copy_line<std::uint16_t>(to, from, *dims);
        case 4: return copy_line<std::uint32_t>(to, from, *dims);
        default: return copy_line<std::uint64_t>(to, from, *dims);
    }
}

}  // namespace

void copy_strided(void* target, std::span<const std::int64_t> target_strides, const void* source,
                  std::span<const std::int64_t> source_strides, std::span<const std::int64_t> sizes,
                  std::size_t element_bytes) {
    Dim dims[kMaxRank + 1];
    int count = 0;
    for (std::size_t a = 0; a < sizes.size(); ++a) {
        if (sizes[a] == 0) return;
        if (sizes[a] == 1) continue;
        const Dim next{sizes[a], target_strides[a], source_strides[a]};
        // Dims that both sides step through as one are one.
        if (count > 0 && dims[count - 1].to == next.size * next.to && dims[count - 1].from == next.size * next.from) {
            dims[count - 1] = {dims[count - 1].size * next.size, next.to, next.from};
        } else {
            dims[count++] = next;
        }
    }
    if (count == 0) dims[count++] = {1, 1, 1};
    copy_dims(static_cast<char*>(target), static_cast<const char*>(source), dims, count, element_bytes);
}

}  // namespace flexor::runtime
