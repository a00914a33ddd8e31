#pragma once
// Times of single launches, by events of their stream; and what the device does at best.
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/floor.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// Of one thread. The stream is held back while launches are given to it, so that they run one right behind the other and
// a time is the device's alone; never for longer than kHold, whatever the host does meanwhile.
class DeviceTimer {
public:
    static constexpr double kHoldSeconds = 0.05;
    static constexpr std::size_t kMostPending = 128;  // launches that are held back: a stream takes only so many

    DeviceTimer(std::shared_ptr<const Device> device, CudaStream stream);
    ~DeviceTimer();
    DeviceTimer(const DeviceTimer&) = delete;
    DeviceTimer& operator=(const DeviceTimer&) = delete;

    // Around what is timed. `tell` gets the seconds.
    Expected<void> begin();
    Expected<void> end(std::function<void(double)> tell);
    // Lets the stream go, waits for it and tells what is pending. Before every wait for the stream.
    Expected<void> finish();

private:
    struct Gate;
    struct Timed {
        CudaEvent begin = nullptr, end = nullptr;
        std::function<void(double)> tell;
    };
    Expected<void> hold();
    void release();
    Expected<CudaEvent> record();

    std::shared_ptr<const Device> device_;
    CudaStream stream_;
    std::shared_ptr<Gate> gate_;  // null: nothing is held
    std::uint64_t held_ns_ = 0;   // since
    CudaEvent begun_ = nullptr;
    std::vector<Timed> pending_;
};

// The copy is measured, once a device, on that stream; operations are those of the processors' units at the clock that the
// driver states.
Floor device_floor(const std::shared_ptr<const Device>& device, CudaStream stream);

}  // namespace flexor::runtime::cuda
