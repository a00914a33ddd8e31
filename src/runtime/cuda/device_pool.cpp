#include "runtime/cuda/device_pool.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::runtime::cuda {

namespace {

constexpr std::size_t kGrain = 512;
constexpr std::size_t kLargeGrain = std::size_t{64} << 10;

std::size_t rounded(std::size_t bytes) {
    const std::size_t grain = bytes > 16 * kLargeGrain ? kLargeGrain : kGrain;
    return std::max(bytes + grain - 1, grain) / grain * grain;
}

// An idle block serves a smaller request, but not a much smaller one.
bool serves(std::size_t capacity, std::size_t bytes) { return capacity - bytes <= bytes / 2 + kLargeGrain; }

}  // namespace

// What a tensor's storage knows of its memory.
struct DevicePool::Holder {
    std::shared_ptr<DevicePool> pool;
    Block block;
    CudaStream stream;
};

std::shared_ptr<DevicePool> DevicePool::create(std::shared_ptr<const Device> device, const PoolOptions& options) {
    PoolOptions settled = options;
    if (settled.soft_limit == 0) settled.soft_limit = device->memory_bytes() / 8;
    if (settled.hard_limit != 0) settled.soft_limit = std::min(settled.soft_limit, settled.hard_limit);
    return std::shared_ptr<DevicePool>(new DevicePool(std::move(device), settled));
}

DevicePool::~DevicePool() { free_idle(gauges_.reserved_bytes); }

Expected<Tensor> DevicePool::bytes(std::int64_t count, CudaStream stream) {
    const std::int64_t strides[1] = {1};
    return empty(DType::kU8, {&count, 1}, strides, stream);
}

Expected<Tensor> DevicePool::empty(DType dtype, std::span<const std::int64_t> sizes,
                                   std::span<const std::int64_t> strides, CudaStream stream) {
    std::int64_t count = 1;
    bool overflow = false;
    for (const std::int64_t size : sizes) overflow |= __builtin_mul_overflow(count, size, &count);
    overflow |= __builtin_mul_overflow(count, static_cast<std::int64_t>(dtype_size(dtype)), &count);
    if (overflow || count < 0) return Diagnostic(DiagnosticId::kSizeOverflow).operand("memory of a device");
    FLEXOR_ASSIGN(const Block block, allocate(static_cast<std::size_t>(count), stream));
    auto* holder = new Holder{shared_from_this(), block, stream};
    return Tensor::from_blob(reinterpret_cast<void*>(block.address), dtype, sizes, strides, drop, holder,
                             {DeviceKind::kCuda, static_cast<std::int8_t>(device_->index())});
}

void DevicePool::drop(void* context, void*) {
    const std::unique_ptr<Holder> holder(static_cast<Holder*>(context));
    holder->pool->release(holder->block, holder->stream);
}

Expected<DevicePool::Block> DevicePool::allocate(std::size_t bytes, CudaStream stream) {
    const std::size_t capacity = rounded(bytes);
    Block block;
    std::unique_ptr<Diagnostic> refusal;
    {
        const std::lock_guard lock(mutex_);
        std::multimap<std::size_t, CudaPointer>& idle = idle_[stream];
        const auto found = idle.lower_bound(capacity);
        if (found != idle.end() && serves(found->first, capacity)) {
            block = {found->second, found->first};
            idle.erase(found);
            ++gauges_.reuses;
        } else {
            const auto beyond = [&](std::uint64_t limit) {
                const std::uint64_t wanted = gauges_.reserved_bytes + capacity;
                return limit != 0 && wanted > limit ? wanted - limit : 0;
            };
            if (const std::uint64_t more = beyond(options_.soft_limit)) gauges_.shrunk_bytes += free_idle(more);
            if (beyond(options_.hard_limit) > 0) {
                ++gauges_.hard_limit_events;
                refusal = std::make_unique<Diagnostic>(DiagnosticId::kHardMemoryLimit);
                refusal->found(support::text_from_bytes(capacity) + " more on device " +
                               std::to_string(device_->index()) + " beside " +
                               support::text_from_bytes(gauges_.live_bytes) + " in use");
                refusal->expected("hard limit " + support::text_from_bytes(options_.hard_limit));
            } else {
                auto memory = device_->allocate(capacity, stream);
                if (!memory && memory.error().id() == DiagnosticId::kOutOfMemory) {
                    // Idle memory of other streams goes back to the driver when they have come so far.
                    gauges_.shrunk_bytes += free_idle(gauges_.reserved_bytes);
                    device_->release_unused();
                    memory = device_->allocate(capacity, stream);
                }
                if (!memory) {
                    refusal = std::make_unique<Diagnostic>(std::move(memory).error());
                } else {
                    block = {*memory, capacity};
                    gauges_.reserved_bytes += capacity;
                    gauges_.peak_reserved_bytes = std::max(gauges_.peak_reserved_bytes, gauges_.reserved_bytes);
                    ++gauges_.growth_events;
                    if (options_.soft_limit != 0 && gauges_.reserved_bytes > options_.soft_limit)
                        ++gauges_.over_soft_events;
                }
            }
        }
        if (refusal == nullptr) {
            gauges_.live_bytes += block.capacity;
            gauges_.peak_live_bytes = std::max(gauges_.peak_live_bytes, gauges_.live_bytes);
        }
    }
    if (refusal != nullptr) return std::move(*refusal);
    return block;
}

void DevicePool::release(Block block, CudaStream stream) {
    const std::lock_guard lock(mutex_);
    gauges_.live_bytes -= block.capacity;
    if (options_.soft_limit != 0 && gauges_.reserved_bytes > options_.soft_limit) {
        device_->release(block.address, stream);
        gauges_.reserved_bytes -= block.capacity;
        gauges_.shrunk_bytes += block.capacity;
        return;
    }
    idle_[stream].emplace(block.capacity, block.address);
}

// The largest blocks first.
std::uint64_t DevicePool::free_idle(std::uint64_t bytes) {
    std::uint64_t freed = 0;
    for (auto& [stream, blocks] : idle_) {
        while (freed < bytes && !blocks.empty()) {
            const auto largest = std::prev(blocks.end());
            device_->release(largest->second, stream);
            freed += largest->first;
            gauges_.reserved_bytes -= largest->first;
            blocks.erase(largest);
        }
    }
    return freed;
}

std::uint64_t DevicePool::trim() {
    const std::lock_guard lock(mutex_);
    return free_idle(gauges_.reserved_bytes);
}

PoolGauges DevicePool::gauges() const {
    const std::lock_guard lock(mutex_);
    return gauges_;
}

void DevicePool::reset_peaks() {
    const std::lock_guard lock(mutex_);
    gauges_.peak_live_bytes = gauges_.live_bytes;
    gauges_.peak_reserved_bytes = gauges_.reserved_bytes;
}

}  // namespace flexor::runtime::cuda
