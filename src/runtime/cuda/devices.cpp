#include "runtime/cuda/devices.h"

namespace flexor::runtime::cuda {

Expected<std::shared_ptr<const Device>> Devices::get(int index) {
    const std::lock_guard lock(mutex_);
    if (const auto known = opened_.find(index); known != opened_.end()) return known->second;
    if (driver_ == nullptr) driver_ = std::make_unique<Expected<std::shared_ptr<const Driver>>>(Driver::open(library_));
    if (!*driver_) return Diagnostic(driver_->error());
    FLEXOR_ASSIGN(std::shared_ptr<const Device> device, Device::open(**driver_, index));
    opened_.emplace(index, device);
    return device;
}

Devices& Devices::system() {
    static auto* devices = new Devices();  // never destroyed: memory may be given back while the process ends
    return *devices;
}

}  // namespace flexor::runtime::cuda
