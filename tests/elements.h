#pragma once
// What tensors hold, for comparisons.
#include <cstdint>
#include <vector>

#include "flexor/tensor.h"
#include "tensor/element.h"

namespace flexor {

// The elements of a tensor in host memory, of any strides, in row-major order; integers beyond 2^53 are rounded.
inline std::vector<double> elements(const Tensor& tensor) {
    std::vector<double> out;
    std::vector<std::int64_t> at(tensor.sizes().size(), 0);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * tensor.strides()[d];
        out.push_back(is_floating(tensor.dtype())
                          ? read_real(tensor.dtype(), tensor.data(), place)
                          : static_cast<double>(read_integer(tensor.dtype(), tensor.data(), place)));
        for (std::size_t d = at.size(); d-- > 0;) {
            if (++at[d] < tensor.sizes()[d]) break;
            at[d] = 0;
        }
    }
    return out;
}

}  // namespace flexor
