#pragma once
// Values on the device of the fake driver, and back.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "flexor/value.h"
#include "runtime/cuda/devices.h"

namespace flexor::tests {

inline constexpr Device kFakeDevice{DeviceKind::kCuda, 0};

class DeviceValues {
public:
    explicit DeviceValues(const std::string& driver);

    // Tensors as copies of the bytes that they span, one a tensor; everything else as it is.
    Value to_device(const Value& value) const;
    Value to_host(const Value& value) const;
    // What of the value is not on the device.
    static bool all_on_device(const Value& value);

private:
    std::shared_ptr<const runtime::cuda::Device> device_;
};

namespace device_values {

using runtime::cuda::CudaPointer;

struct Bytes {
    std::int64_t low = 0, high = 0;
};

inline Bytes spanned(const Tensor& tensor) {
    const auto item = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    Bytes out{0, tensor.numel() > 0 ? item : 0};
    for (int axis = 0; axis < tensor.rank() && tensor.numel() > 0; ++axis) {
        const std::int64_t reach = (tensor.size(axis) - 1) * tensor.stride(axis) * item;
        (reach < 0 ? out.low : out.high) += reach;
    }
    return out;
}

inline void require(bool ok) {
    if (!ok) throw std::runtime_error("the fake driver failed");
}

// The value with every tensor replaced.
template <class F>
Value mapped(const Value& value, F&& f) {
    if (value.is_tensor()) return Value(f(value.tensor()));
    if (value.is_list()) {
        ValueList elements;
        for (const Value& element : value.elements()) elements.push_back(mapped(element, f));
        return Value::list(std::move(elements));
    }
    if (value.is_dict()) {
        ValueDict items;
        for (const auto& [key, item] : value.items()) items.emplace_back(key, mapped(item, f));
        return Value::dict(std::move(items));
    }
    return value;
}

}  // namespace device_values

inline DeviceValues::DeviceValues(const std::string& driver) {
    auto device = runtime::cuda::Devices(driver).get(0);
    device_values::require(device.has_value());
    device_ = *device;
}

inline Value DeviceValues::to_device(const Value& value) const {
    return device_values::mapped(value, [&](const Tensor& tensor) {
        struct Owner {
            std::shared_ptr<const runtime::cuda::Device> device;
            runtime::cuda::CudaPointer memory;
        };
        const device_values::Bytes bytes = device_values::spanned(tensor);
        const auto size = static_cast<std::size_t>(bytes.high - bytes.low);
        const auto memory = device_->allocate(std::max<std::size_t>(size, 1), nullptr);
        device_values::require(memory.has_value());
        device_values::require(
            device_->copy_to_device(*memory, tensor.data_as<char>() + bytes.low, size, nullptr).has_value());
        return Tensor::from_blob(
            reinterpret_cast<void*>(*memory - static_cast<runtime::cuda::CudaPointer>(bytes.low)), tensor.dtype(),
            tensor.sizes(), tensor.strides(),
            [](void* context, void*) {
                const std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
                owner->device->release(owner->memory, nullptr);
            },
            new Owner{device_, *memory}, kFakeDevice);
    });
}

inline Value DeviceValues::to_host(const Value& value) const {
    return device_values::mapped(value, [&](const Tensor& tensor) {
        if (tensor.device().kind == DeviceKind::kCpu) return tensor;
        const device_values::Bytes bytes = device_values::spanned(tensor);
        const auto size = static_cast<std::size_t>(bytes.high - bytes.low);
        const Tensor memory = Tensor::empty(DType::kU8, {static_cast<std::int64_t>(size)});
        device_values::require(
            device_
                ->copy_to_host(memory.data(),
                               reinterpret_cast<runtime::cuda::CudaPointer>(tensor.data_as<char>() + bytes.low), size,
                               nullptr)
                .has_value());
        return memory.view(memory.data_as<char>() - bytes.low, tensor.dtype(), tensor.sizes(), tensor.strides());
    });
}

inline bool DeviceValues::all_on_device(const Value& value) {
    if (value.is_tensor()) return value.tensor().device() == kFakeDevice;
    if (value.is_list()) return std::ranges::all_of(value.elements(), all_on_device);
    if (value.is_dict())
        return std::ranges::all_of(value.items(), [](const auto& item) { return all_on_device(item.second); });
    return true;
}

}  // namespace flexor::tests
