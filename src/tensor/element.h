#pragma once
// Elements of raw tensor memory, which need not lie at multiples of their size.
#include <cstdint>
#include <cstring>

#include "flexor/dtype.h"
#include "support/check.h"
#include "types/half.h"

namespace flexor {

// An element where it lies: what a pointer to caller memory points to.
template <class T>
struct [[gnu::packed]] Unaligned {
    T value;
    operator T() const { return value; }  // NOLINT: implicit on purpose
    Unaligned& operator=(T v) { return value = v, *this; }
};

template <class T>
T load_element(const void* data, std::int64_t index) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}

// Integers and bool.
inline std::int64_t read_integer(DType dtype, const void* data, std::int64_t index) {
    switch (dtype) {
        case DType::kBool: return load_element<std::uint8_t>(data, index) != 0;
        case DType::kU8: return load_element<std::uint8_t>(data, index);
        case DType::kI8: return load_element<std::int8_t>(data, index);
        case DType::kI32: return load_element<std::int32_t>(data, index);
        case DType::kI64: return load_element<std::int64_t>(data, index);
        case DType::kF16:
        case DType::kBF16:
        case DType::kF32:
        case DType::kF64: break;
    }
    FLEXOR_UNREACHABLE();
}

// Floating dtypes.
inline double read_real(DType dtype, const void* data, std::int64_t index) {
    switch (dtype) {
        case DType::kF16: return types::f32_from_f16(load_element<std::uint16_t>(data, index));
        case DType::kBF16: return types::f32_from_bf16(load_element<std::uint16_t>(data, index));
        case DType::kF32: return load_element<float>(data, index);
        case DType::kF64: return load_element<double>(data, index);
        case DType::kBool:
        case DType::kU8:
        case DType::kI8:
        case DType::kI32:
        case DType::kI64: break;
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace flexor
