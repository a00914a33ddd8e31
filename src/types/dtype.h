#pragma once
// Promotion rules over flexor::DType.
#include <optional>
#include <span>
#include <string_view>

#include "flexor/dtype.h"

namespace flexor::types {

using flexor::DType;

std::optional<DType> dtype_from_name(std::string_view name);  // text or framework name

// How operand dtypes combine. kTorch: category of scalars is weaker than that of tensors, f16+bf16 -> f32.
// kNumpy: NumPy 2 (weak Python scalars, i32+f32 -> f64, i64+f32 -> f64, ...).
enum class Promotion : std::uint8_t { kTorch, kNumpy };

// A dtype with its strength in promotion: tensors of rank >= 1, rank-0 tensors (torch: weaker within a category),
// Python scalars (weakest).
enum class Strength : std::uint8_t { kTensor, kZeroDim, kScalar };
struct PromotionOperand {
    DType dtype;  // of a scalar: kBool, kI64 or kF64
    Strength strength;
};
DType promote(std::span<const PromotionOperand> operands, Promotion rule);
DType default_float();  // kF32, what torch gives for int -> float functions

// The integers that an integer dtype holds; nothing for floating dtypes and bool.
struct IntegerRange {
    std::int64_t lo, hi;
};
std::optional<IntegerRange> integer_range(DType dtype);

}  // namespace flexor::types
