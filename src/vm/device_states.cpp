#include "vm/device_states.h"

#include "support/diagnostic.h"
#include "vm/device_graphs.h"

namespace flexor::vm {

Expected<const DeviceState*> DeviceStates::get(Device device) {
    if (devices_ == nullptr) return Diagnostic(DiagnosticId::kNoDevice).found("a session without devices");
    std::lock_guard lock(mutex_);
    std::unique_ptr<DeviceState>& state = states_[device.index];
    if (state == nullptr) {
        auto made = std::make_unique<DeviceState>();
        FLEXOR_ASSIGN(made->device, devices_->get(device.index));
        FLEXOR_ASSIGN(made->faults, runtime::cuda::FaultLog::create(made->device));
        made->pool = runtime::cuda::DevicePool::create(made->device, limits_);
        if (graphs_) made->graphs = std::make_shared<GraphBuilder>(made->device, at_once_);
        state = std::move(made);
    }
    return static_cast<const DeviceState*>(state.get());
}

Expected<void> DeviceStates::synchronize(Device device, void* stream, runtime::Shard& shard) {
    if (device.kind == DeviceKind::kCpu) return {};
    FLEXOR_ASSIGN(const DeviceState* state, get(device));
    shard.device_syncs.add();
    FLEXOR_TRY(state->device->synchronize(static_cast<runtime::cuda::CudaStream>(stream)));
    if (std::optional<Diagnostic> fault = state->faults->take()) return *std::move(fault);
    return {};
}

std::vector<std::shared_ptr<GraphBuilder>> DeviceStates::graph_builders() {
    std::vector<std::shared_ptr<GraphBuilder>> builders;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [index, state] : states_) {
            if (state != nullptr && state->graphs != nullptr) builders.push_back(state->graphs);
        }
    }
    return builders;
}

void DeviceStates::settle_graphs() {
    for (const auto& builder : graph_builders()) builder->settle();
}

void DeviceStates::drop_graphs() {
    for (const auto& builder : graph_builders()) builder->reclaim(true);
}

Expected<Value> DeviceStates::to_device(const Value& value, const CallOptions& call, runtime::Shard& shard) {
    if (value.is_list()) {
        ValueList elements;
        for (const Value& element : value.elements()) {
            FLEXOR_ASSIGN(Value placed, to_device(element, call, shard));
            elements.push_back(std::move(placed));
        }
        return Value::list(std::move(elements));
    }
    if (value.is_dict()) {
        ValueDict items;
        for (const auto& [key, item] : value.items()) {
            FLEXOR_ASSIGN(Value placed, to_device(item, call, shard));
            items.emplace_back(key, std::move(placed));
        }
        return Value::dict(std::move(items));
    }
    if (!value.is_tensor()) return value;
    FLEXOR_ASSIGN(const DeviceState* state, get(call.device));
    DeviceRun device(*state, call.device, call.stream, shard);
    FLEXOR_ASSIGN(Tensor placed, device.to_device(value.tensor().contiguous()));
    // The host's memory may go before the copy has been made.
    FLEXOR_TRY(state->device->synchronize(static_cast<runtime::cuda::CudaStream>(call.stream)));
    return Value(std::move(placed));
}

std::vector<std::shared_ptr<runtime::cuda::DevicePool>> DeviceStates::pools() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<runtime::cuda::DevicePool>> pools;
    for (const auto& [index, state] : states_) {
        if (state != nullptr) pools.push_back(state->pool);
    }
    return pools;
}

}  // namespace flexor::vm
