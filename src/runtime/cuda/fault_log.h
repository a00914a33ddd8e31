#pragma once
// Words that kernels set where they stumble over an element: host memory that the device writes to, so that the host looks
// at them without waiting. Kernels run behind the host: a fault is found by a later call, or when the host waits.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/cuda/device.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// Thread-safe.
class FaultLog {
public:
    static constexpr std::uint32_t kWords = 4096;

    static Expected<std::shared_ptr<FaultLog>> create(std::shared_ptr<const Device> device);
    ~FaultLog();
    FaultLog(const FaultLog&) = delete;
    FaultLog& operator=(const FaultLog&) = delete;

    // A word for a launch that may stumble, and what is raised then. When there are no more, the last one serves.
    std::uint32_t add(Diagnostic what);
    CudaPointer address(std::uint32_t word) const { return reinterpret_cast<CudaPointer>(words_ + word); }

    // What a kernel that has run stumbled over; every word is clear afterwards.
    std::optional<Diagnostic> take();

private:
    explicit FaultLog(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
    std::shared_ptr<const Device> device_;
    std::int32_t* words_ = nullptr;
    std::mutex mutex_;
    std::vector<Diagnostic> what_;
    std::atomic<std::uint32_t> used_{0};
};

}  // namespace flexor::runtime::cuda
