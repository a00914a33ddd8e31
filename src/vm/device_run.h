#pragma once
// The device side of a run: memory, launches and copies on the stream of the call.
//
// Laws
//  D1  Nothing waits for the device but read() and what is built on it, and every wait is counted.
//  D2  What a device cannot do is done on the host, on copies, and recorded with a reason by who asks for it.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bytecode/module.h"
#include "executable/executable.h"
#include "flexor/tensor.h"
#include "runtime/cuda/device_pool.h"
#include "runtime/cuda/device_timer.h"
#include "runtime/cuda/fault_log.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/named_ranges.h"
#include "runtime/telemetry.h"
#include "support/expected.h"
#include "vm/profile.h"

namespace flexor::vm {

class GraphBuilder;

// What an engine keeps of a device. Thread-safe.
struct DeviceState {
    std::shared_ptr<const runtime::cuda::Device> device;
    std::shared_ptr<runtime::cuda::DevicePool> pool;
    std::shared_ptr<runtime::cuda::FaultLog> faults;
    std::shared_ptr<GraphBuilder> graphs;  // null: launches run one by one
    const runtime::cuda::NamedRanges* ranges = runtime::cuda::NamedRanges::of_environment();
};

// A weight of the module on the device, read-only: one copy for all that ask while anybody holds it.
Expected<Tensor> device_weight(const std::shared_ptr<const runtime::cuda::Device>& device,
                               const bytecode::Module& module, std::uint32_t weight);

class DeviceRun {
public:
    // With a profile, launches are timed.
    DeviceRun(const DeviceState& state, Device place, void* stream, runtime::Shard& shard, Profile* profile = nullptr);
    ~DeviceRun();
    DeviceRun(const DeviceRun&) = delete;
    DeviceRun& operator=(const DeviceRun&) = delete;

    Device place() const { return place_; }
    const DeviceState& state() const { return state_; }
    runtime::cuda::CudaStream stream() const { return stream_; }
    bool is_profiled() const { return profile_ != nullptr; }
    bool holds(const Tensor& tensor) const { return tensor.device() == place_; }

    Expected<Tensor> empty(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
        return with_room([&] { return state_.pool->empty(dtype, sizes, strides, stream_); });
    }
    Expected<Tensor> bytes(std::int64_t count) {
        return with_room([&] { return state_.pool->bytes(count, stream_); });
    }

    // `ir` is the launcher's. The refusal of a variant that another one stands in for, if there is one to be told.
    Expected<std::shared_ptr<const Diagnostic>> launch(runtime::cuda::Launcher& launcher, const loopir::Kernel& ir,
                                                       void* const* buffers, std::size_t count,
                                                       const std::int64_t* params, std::uint32_t fault_word);
    // Begins to compile what such a launch needs.
    void prefetch(runtime::cuda::Launcher& launcher, void* const* buffers, std::size_t count,
                  const std::int64_t* params);

    // False: the call is not the graph's, and nothing has happened.
    Expected<bool> launch(runtime::cuda::Graph& graph, const std::int64_t* frame, void* const* buffers);

    // Waits until `bytes` are there. Afterwards a fault of what has run so far is known.
    Expected<void> read(void* to, const void* from, std::size_t bytes);
    Expected<void> write(void* to, const void* from, std::size_t bytes);
    // Waits for what is timed, and tells the profile.
    Expected<void> finish_profile();
    std::optional<Diagnostic> take_fault() { return state_.faults->take(); }

    // ---- whole tensors

    // The same view of a copy in host memory; a tensor that is there already is itself.
    Expected<Tensor> to_host(const Tensor& tensor);
    // The elements of a host tensor in fresh memory of the device, with the same dense geometry.
    Expected<Tensor> to_device(const Tensor& tensor);
    // What to_host gave goes back to where it was copied from.
    Expected<void> put_back(const Tensor& host, const Tensor& tensor);
    // The elements of another tensor of these sizes and this dtype; by way of the host where strides differ.
    Expected<void> assign(const Tensor& to, const Tensor& from);
    Expected<Tensor> weight(const bytecode::Module& module, std::uint32_t index) {
        return device_weight(state_.device, module, index);
    }

    // ---- calls of a tape, on host memory in the place of the buffers

    // The table of buffers in which those of the call are host copies; valid until end_call.
    Expected<void* const*> begin_call(const executable::Call& call, const std::int64_t* frame, void* const* buffers,
                                      bool with_operands);
    // Results go to the device.
    Expected<void> end_call(const executable::Call& call, const std::int64_t* frame, void* const* buffers);

private:
    // Graphs give their memory back before a run is refused.
    bool reclaim(const Diagnostic& refusal);
    template <class Allocate>
    Expected<Tensor> with_room(Allocate&& allocate) {
        Expected<Tensor> made = allocate();
        if (!made && reclaim(made.error())) return allocate();
        return made;
    }

    struct Mirror {
        executable::BufferSlot buffer = 0;
        std::int64_t low = 0, high = 0;  // bytes of the buffer
        std::unique_ptr<char[]> memory;
    };
    Expected<void> mirror(const executable::TensorRef& ref, const std::int64_t* frame, void* const* buffers,
                          bool filled);

    const DeviceState& state_;
    Device place_;
    runtime::cuda::CudaStream stream_;
    runtime::Shard& shard_;
    Profile* profile_;
    std::optional<runtime::cuda::DeviceTimer> timer_;
    std::vector<Mirror> mirrors_;
    std::vector<void*> table_;
};

}  // namespace flexor::vm
