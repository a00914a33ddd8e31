#include "types/tensor_type.h"

#include "support/text.h"

namespace flexor::types {

TensorType contiguous_type(DType dtype, std::vector<Dim> sizes, Device device) {
    TensorType type;
    type.dtype = dtype;
    type.strides = contiguous_strides(sizes);
    type.sizes = std::move(sizes);
    type.device = device;
    return type;
}

std::string to_string(const TensorType& type, const std::function<std::string(SymbolId)>& name) {
    const auto list = [&](const std::vector<Dim>& dims) {
        return "[" + support::join(dims, ",", [&](const Dim& d) { return d.to_string(name); }) + "]";
    };
    std::string text(dtype_name(type.dtype));
    text += list(type.sizes);
    if (type.strides != contiguous_strides(type.sizes)) text += " strides " + list(type.strides);
    if (!type.offset.is_constant(0)) text += " offset " + type.offset.to_string(name);
    if (type.device.kind == DeviceKind::kCuda) text += " cuda:" + std::to_string(type.device.index);
    return text;
}

}  // namespace flexor::types
