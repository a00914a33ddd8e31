#pragma once
// Element types of tensors. The enumerators, text names ("f32") and framework names ("float32") stand once, in
// FLEXOR_DTYPES.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flexor {

// X(enumerator, text name, framework name, bytes)
#define FLEXOR_DTYPES(X)            \
    X(kBool, "bool", "bool", 1)     \
    X(kU8, "u8", "uint8", 1)        \
    X(kI8, "i8", "int8", 1)         \
    X(kI32, "i32", "int32", 4)      \
    X(kI64, "i64", "int64", 8)      \
    X(kF16, "f16", "float16", 2)    \
    X(kBF16, "bf16", "bfloat16", 2) \
    X(kF32, "f32", "float32", 4)    \
    X(kF64, "f64", "float64", 8)

enum class DType : std::uint8_t {
#define X(enumerator, text, framework, bytes) enumerator,
    FLEXOR_DTYPES(X)
#undef X
};

inline constexpr int kDTypeCount = 0
#define X(enumerator, text, framework, bytes) +1
    FLEXOR_DTYPES(X)
#undef X
    ;

constexpr std::size_t dtype_size(DType dtype) {
    switch (dtype) {
#define X(enumerator, text, framework, bytes) \
    case DType::enumerator: return bytes;
        FLEXOR_DTYPES(X)
#undef X
    }
    return 0;
}

// Short name used in text and listings: "f32".
constexpr std::string_view dtype_name(DType dtype) {
    switch (dtype) {
#define X(enumerator, text, framework, bytes) \
    case DType::enumerator: return text;
        FLEXOR_DTYPES(X)
#undef X
    }
    return "?";
}

// Name used by NumPy and torch: "float32".
constexpr std::string_view dtype_framework_name(DType dtype) {
    switch (dtype) {
#define X(enumerator, text, framework, bytes) \
    case DType::enumerator: return framework;
        FLEXOR_DTYPES(X)
#undef X
    }
    return "?";
}

constexpr bool is_floating(DType d) {
    return d == DType::kF16 || d == DType::kBF16 || d == DType::kF32 || d == DType::kF64;
}
constexpr bool is_integer(DType d) {
    return d == DType::kU8 || d == DType::kI8 || d == DType::kI32 || d == DType::kI64;
}

}  // namespace flexor
