#pragma once
// Single elements of a tensor as numbers and as text.
#include <cstdint>
#include <string>

#include "flexor/tensor.h"

namespace flexor::cli {

// A number as a user wrote it or as an element holds it: integers keep all their bits.
struct Number {
    enum class Kind : std::uint8_t { kBool, kInt, kReal } kind = Kind::kReal;
    std::int64_t integer = 0;  // bool and int
    double real = 0;
    double as_real() const { return kind == Kind::kReal ? real : static_cast<double>(integer); }
};

Number load_element(DType dtype, const void* element);
// False if the dtype cannot hold the number (out of an integer's range, a fraction, no 0 or 1 for bool).
bool store_element(DType dtype, void* element, const Number& number);
// The shortest text that reads back as the same element: "0.1" for the float32 nearest to 0.1.
std::string spell_element(DType dtype, const void* element);

// Row-major walk over any strided tensor: the addresses of elements number 0, 1, 2, ...
const void* element_at(const Tensor& tensor, std::int64_t index);

}  // namespace flexor::cli
