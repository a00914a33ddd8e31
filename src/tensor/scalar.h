#pragma once
// A number as a tensor.
#include <new>

#include "flexor/tensor.h"

namespace flexor {

// A tensor without axes; std::bad_alloc, as of a container, where there is no memory for it.
template <class T>
Tensor scalar_tensor(DType dtype, T value) {
    Tensor tensor = Tensor::empty(dtype, {});
    if (!tensor.defined()) throw std::bad_alloc();
    *tensor.data_as<T>() = value;
    return tensor;
}

}  // namespace flexor
