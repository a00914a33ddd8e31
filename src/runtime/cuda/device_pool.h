#pragma once
// The memory of a session on one device.
//
// Laws
//  V1  Memory is ordered with the stream it was asked for on: it is used by what follows there, and reused there alone.
//      Another stream that uses it waits for that one, and that one for it before the last view is dropped.
//  V2  reserved <= hard limit, always (0: no limit). A request beyond it, or one that the driver refuses, first gives idle
//      memory back, then fails; the next request may succeed.
//  V3  While reserved <= soft limit, released memory is kept for its stream; beyond it, it goes back to the driver.
//  V4  Memory may be released by any thread, and after the session is gone.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "flexor/tensor.h"
#include "runtime/cuda/device.h"
#include "runtime/pool.h"

namespace flexor::runtime::cuda {

class DevicePool : public std::enable_shared_from_this<DevicePool> {
public:
    // Without a soft limit an eighth of the device's memory is kept.
    static std::shared_ptr<DevicePool> create(std::shared_ptr<const Device> device, const PoolOptions& options);
    ~DevicePool();
    DevicePool(const DevicePool&) = delete;
    DevicePool& operator=(const DevicePool&) = delete;

    // A tensor on the device; strides are dense. Refusals: HardMemoryLimit, OutOfMemory.
    Expected<Tensor> empty(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                           CudaStream stream);
    Expected<Tensor> bytes(std::int64_t count, CudaStream stream);

    std::uint64_t trim();
    PoolGauges gauges() const;
    void reset_peaks();
    const Device& device() const { return *device_; }
    const PoolOptions& options() const { return options_; }

private:
    struct Holder;
    DevicePool(std::shared_ptr<const Device> device, const PoolOptions& options)
        : device_(std::move(device)), options_(options) {}
    struct Block {
        CudaPointer address = 0;
        std::size_t capacity = 0;
    };
    Expected<Block> allocate(std::size_t bytes, CudaStream stream);
    void release(Block block, CudaStream stream);
    std::uint64_t free_idle(std::uint64_t bytes);  // at least, if there is as much
    static void drop(void* context, void* data);

    std::shared_ptr<const Device> device_;
    PoolOptions options_;
    mutable std::mutex mutex_;
    std::map<CudaStream, std::multimap<std::size_t, CudaPointer>> idle_;  // by capacity
    PoolGauges gauges_;
};

}  // namespace flexor::runtime::cuda
