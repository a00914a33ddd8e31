#pragma once
// Sample inputs that more than one op uses. Sizes include 0, 1 and odd ones.
#include <array>
#include <vector>

#include "ops/op_def.h"

namespace flexor::ops::samples {

using Fill = SampleInput::Fill;

inline constexpr std::array kAllDTypes = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64,
                                          DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};
inline constexpr std::array kNumberDTypes = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                                             DType::kI64, DType::kI32, DType::kI8,  DType::kU8};
inline constexpr std::array kFloatDTypes = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
inline constexpr std::array kBitsDTypes = {DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool};
inline constexpr std::array kIntegerDTypes = {DType::kI64, DType::kI32, DType::kI8, DType::kU8};

SampleInput input(std::vector<std::int64_t> sizes, Fill fill = Fill::kNormal);
SampleInput typed(std::vector<std::int64_t> sizes, DType dtype, Fill fill = Fill::kNormal);
SampleInput scalar(double value, DType dtype = DType::kF64);
SampleInput indices(std::vector<std::int64_t> sizes, std::int64_t bound, DType dtype = DType::kI64);
SampleInput none();
Sample sample(std::vector<SampleInput> inputs, Attrs attrs = {});
types::DimList dims(std::initializer_list<std::int64_t> values);  // for attributes

std::vector<Sample> unary();           // both signs
std::vector<Sample> unary_positive();  // logarithms, roots
std::vector<Sample> unary_unit();      // functions that grow fast
std::vector<Sample> binary();
std::vector<Sample> binary_positive();  // divisors, exponents
std::vector<Sample> reduce();           // not empty
std::vector<Sample> reduce_or_empty();

}  // namespace flexor::ops::samples
