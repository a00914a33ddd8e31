#include "runtime/cuda/device_timer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "runtime/telemetry.h"

namespace flexor::runtime::cuda {

namespace {

constexpr int kClockRate = 13;  // CUdevice_attribute, in kHz

}  // namespace

struct DeviceTimer::Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;

    // In a thread of the driver's, while the stream waits.
    static void wait(void* context) {
        const std::unique_ptr<std::shared_ptr<Gate>> held(static_cast<std::shared_ptr<Gate>*>(context));
        Gate& gate = **held;
        std::unique_lock lock(gate.mutex);
        gate.changed.wait_for(lock, std::chrono::duration<double>(kHoldSeconds), [&] { return gate.open; });
    }
};

DeviceTimer::DeviceTimer(std::shared_ptr<const Device> device, CudaStream stream)
    : device_(std::move(device)), stream_(stream) {}

DeviceTimer::~DeviceTimer() {
    release();
    const Device::Current current(*device_);
    if (!current.ok()) return;
    if (begun_ != nullptr) device_->driver().destroy_event(begun_);
    for (const Timed& one : pending_) {
        device_->driver().destroy_event(one.begin);
        device_->driver().destroy_event(one.end);
    }
}

Expected<void> DeviceTimer::hold() {
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    auto gate = std::make_shared<Gate>();
    auto context = std::make_unique<std::shared_ptr<Gate>>(gate);
    const Driver& driver = device_->driver();
    FLEXOR_TRY(driver.check(driver.launch_host_function(stream_, &Gate::wait, context.get()), "cuLaunchHostFunc"));
    std::ignore = context.release();
    gate_ = std::move(gate);
    held_ns_ = now_ns();
    return {};
}

void DeviceTimer::release() {
    if (gate_ == nullptr) return;
    {
        const std::lock_guard lock(gate_->mutex);
        gate_->open = true;
    }
    gate_->changed.notify_all();
    gate_ = nullptr;
}

Expected<CudaEvent> DeviceTimer::record() {
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const Driver& driver = device_->driver();
    CudaEvent event = nullptr;
    FLEXOR_TRY(driver.check(driver.create_event(&event, 0), "cuEventCreate"));
    const auto recorded = driver.check(driver.record_event(event, stream_), "cuEventRecord");
    if (!recorded) {
        driver.destroy_event(event);
        return recorded.error();
    }
    return event;
}

Expected<void> DeviceTimer::begin() {
    const bool long_held = gate_ != nullptr && static_cast<double>(now_ns() - held_ns_) * 1e-9 > kHoldSeconds / 2;
    if (pending_.size() >= kMostPending || long_held) FLEXOR_TRY(finish());
    if (gate_ == nullptr) FLEXOR_TRY(hold());
    if (begun_ != nullptr) {  // of what failed before its end
        const Device::Current current(*device_);
        if (current.ok()) device_->driver().destroy_event(std::exchange(begun_, nullptr));
    }
    FLEXOR_ASSIGN(begun_, record());
    return {};
}

Expected<void> DeviceTimer::end(std::function<void(double)> tell) {
    FLEXOR_ASSIGN(const CudaEvent ended, record());
    pending_.push_back({std::exchange(begun_, nullptr), ended, std::move(tell)});
    return {};
}

Expected<void> DeviceTimer::finish() {
    release();
    FLEXOR_TRY(device_->synchronize(stream_));
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const Driver& driver = device_->driver();
    std::vector<Timed> done = std::exchange(pending_, {});
    Expected<void> out;
    for (const Timed& one : done) {
        float milliseconds = 0;
        if (out) out = driver.check(driver.elapsed_time(&milliseconds, one.begin, one.end), "cuEventElapsedTime");
        if (out) one.tell(static_cast<double>(milliseconds) * 1e-3);
        driver.destroy_event(one.begin);
        driver.destroy_event(one.end);
    }
    return out;
}

namespace {

double copy_bandwidth(const std::shared_ptr<const Device>& device, CudaStream stream) {
    constexpr int kRounds = 5;
    const std::size_t bytes = std::min<std::size_t>(std::size_t{256} << 20, device->memory_bytes() / 64);
    const auto memory = device->allocate(2 * bytes, stream);
    if (!memory) return 0;
    double best = 0;
    {
        DeviceTimer timer(device, stream);
        bool fine = true;
        for (int round = 0; fine && round < kRounds; ++round) {
            fine = timer.begin() && device->copy_on_device(*memory + bytes, *memory, bytes, stream) &&
                   timer.end([&](double seconds) {
                       if (seconds > 0) best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds);
                   });
        }
        if (!timer.finish()) best = 0;
    }
    device->release(*memory, stream);
    return best;
}

// Operations that a multiprocessor ends in a cycle: plain ones of 32 bits, products of 16 bits and of 64.
struct Units {
    int capability;
    int plain, products_16, products_64;
};
constexpr Units kUnits[] = {
    {80, 128, 2048, 128}, {86, 256, 1024, 4}, {87, 256, 1024, 4}, {89, 256, 1024, 4}, {90, 256, 4096, 256}};

}  // namespace

Floor device_floor(const std::shared_ptr<const Device>& device, CudaStream stream) {
    static std::mutex mutex;
    static auto* known = new std::map<const Device*, std::pair<std::weak_ptr<const Device>, Floor>>();
    const std::lock_guard lock(mutex);
    auto& [owner, floor] = (*known)[device.get()];
    if (owner.lock() == device) return floor;
    owner = device;
    floor = Floor{};
    floor.bytes_per_second = copy_bandwidth(device, stream);
    const auto kilohertz = device->attribute(kClockRate);
    for (const Units& units : kUnits) {
        if (!kilohertz || units.capability != device->capability()) continue;
        const double cycles = 1e3 * *kilohertz * device->multiprocessors();
        floor.operations_per_second = floor.products_32_per_second = units.plain * cycles;
        floor.products_16_per_second = units.products_16 * cycles;
        floor.products_64_per_second = units.products_64 * cycles;
    }
    return floor;
}

}  // namespace flexor::runtime::cuda
