#pragma once
// Values written out on the command line.
#include <optional>
#include <string_view>

#include "element.h"
#include "flexor/error.h"
#include "flexor/tensor.h"

namespace flexor::cli {

// "true", "-3", "1.5", "inf"; nothing for any other text.
std::optional<Number> parse_number(std::string_view text);
// "[[1, 2], [3, 4]]". Without a dtype: bool, i64 or f32, whichever holds all numbers.
Expected<Tensor> parse_tensor(std::string_view text, std::optional<DType> dtype);
// "f32[8,128]": fixed contents, floats in [-1, 1), integers in 0..9, bools. Nothing if the text has another form.
std::optional<Expected<Tensor>> parse_shape(std::string_view text);

Expected<Tensor> tensor_of_number(const Number& number, DType dtype);

}  // namespace flexor::cli
