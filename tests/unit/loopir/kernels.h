#pragma once
// Kernels of their texts.
#include <gtest/gtest.h>

#include <string>

#include "kernel_texts.h"
#include "loopir/loopir.h"

namespace flexor::loopir::testing {

inline Kernel kernel_from(const std::string& text) {
    auto kernel = parse(text);
    if (!kernel) {
        ADD_FAILURE() << kernel.error().to_string() << "\n" << text;
        return {};
    }
    return std::move(kernel).value();
}

inline Kernel verified(const std::string& text) {
    Kernel kernel = kernel_from(text);
    if (const auto status = verify(kernel); !status) ADD_FAILURE() << status.error().to_string() << "\n" << text;
    return kernel;
}

}  // namespace flexor::loopir::testing
