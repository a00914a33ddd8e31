#pragma once
// The abstract type of a tensor: dtype and symbolic geometry. Offset is in elements from the data pointer of the alias
// root.
#include <vector>

#include "flexor/tensor.h"
#include "types/dim.h"
#include "types/dtype.h"

namespace flexor::types {

struct TensorType {
    DType dtype = DType::kF32;
    std::vector<Dim> sizes;
    std::vector<Dim> strides;  // elements
    Dim offset = 0;
    Device device = {};
    int rank() const { return static_cast<int>(sizes.size()); }
    Dim numel() const { return product(sizes); }
    friend bool operator==(const TensorType& a, const TensorType& b) {
        return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides && a.offset == b.offset &&
               a.device == b.device;
    }
};

TensorType contiguous_type(DType dtype, std::vector<Dim> sizes, Device device = {});
// "f32[B,S,768]"; strides are shown only when not contiguous.
std::string to_string(const TensorType& type, const std::function<std::string(SymbolId)>& name);

}  // namespace flexor::types
