#pragma once
// Programs from their text, and tensors that are given to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "flexor/module.h"
#include "flexor/tensor.h"
#include "flexor/value.h"

namespace flexor {

inline Module module_from(std::string_view text) {
    auto module = Module::from_text(text, "test.fasm");
    if (!module) ADD_FAILURE() << module.error().to_string();
    return std::move(*module);
}

// Of f32: first, first + 1, ...
inline Tensor counting(const std::vector<std::int64_t>& sizes, float first = 1) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<float>()[i] = first + static_cast<float>(i);
    return tensor;
}

inline Tensor integers(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& values) {
    Tensor tensor = Tensor::empty(DType::kI64, sizes);
    std::copy(values.begin(), values.end(), tensor.data_as<std::int64_t>());
    return tensor;
}

inline std::vector<float> values_of(const Value& value) {
    const Tensor tensor = value.tensor().contiguous();
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
}

}  // namespace flexor
