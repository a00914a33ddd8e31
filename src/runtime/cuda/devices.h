#pragma once
// The devices of one driver, opened when they are first asked for.
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/device.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// Thread-safe. What is missing is looked for once.
class Devices {
public:
    explicit Devices(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;

    // NoDevice says what is missing.
    Expected<std::shared_ptr<const Device>> get(int index);

    static Devices& system();

private:
    std::string library_;
    std::mutex mutex_;
    std::unique_ptr<Expected<std::shared_ptr<const Driver>>> driver_;  // null: not looked for
    std::map<int, std::shared_ptr<const Device>> opened_;
};

}  // namespace flexor::runtime::cuda
