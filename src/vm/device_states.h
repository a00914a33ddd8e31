#pragma once
// The devices that runs of an engine were on. Thread-safe.
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "flexor/call_options.h"
#include "flexor/value.h"
#include "runtime/cuda/devices.h"
#include "support/expected.h"
#include "vm/device_run.h"

namespace flexor::vm {

class DeviceStates {
public:
    // Launches run as graphs where they can; with `at_once` a call waits for its graph (a stress switch).
    DeviceStates(bool graphs, bool at_once) : graphs_(graphs), at_once_(at_once) {}

    // Devices that runs may be on, which outlive this, and the limits of their pools; before, every device is refused. Not while
    // others use this.
    void open(runtime::cuda::Devices* devices, const runtime::PoolOptions& limits) {
        devices_ = devices;
        limits_ = limits;
    }

    // What is kept of a device, made at the first use; it lives as long as this.
    Expected<const DeviceState*> get(Device device);
    std::vector<std::shared_ptr<runtime::cuda::DevicePool>> pools();

    // Waits for what the stream of a device has to do, and tells what it has stumbled over.
    Expected<void> synchronize(Device device, void* stream, runtime::Shard& shard);
    // A value of the host with its tensors on the call's device.
    Expected<Value> to_device(const Value& value, const CallOptions& call, runtime::Shard& shard);

    void settle_graphs();  // waits until graphs that are being made are there
    void drop_graphs();    // gives their memory back

private:
    std::vector<std::shared_ptr<GraphBuilder>> graph_builders();

    const bool graphs_, at_once_;
    runtime::cuda::Devices* devices_ = nullptr;
    runtime::PoolOptions limits_;
    std::mutex mutex_;
    std::map<int, std::unique_ptr<DeviceState>> states_;  // by number; never dropped
};

}  // namespace flexor::vm
