#pragma once
// Memory that launches on a stream use one after the other.
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/cuda/device.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// Thread-safe. Work on a stream must have ended before the stream is destroyed.
class StreamMemory {
    struct Piece {
        std::mutex mutex;
        CudaPointer memory = 0;
        std::size_t bytes = 0;
    };

public:
    explicit StreamMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
    ~StreamMemory();
    StreamMemory(const StreamMemory&) = delete;
    StreamMemory& operator=(const StreamMemory&) = delete;

    // Nobody else hands work over with this memory while the lease lives: all that uses it is given to the stream before.
    class Lease {
    public:
        CudaPointer memory() const { return memory_; }  // 256-byte aligned; 0 for no bytes

    private:
        friend class StreamMemory;
        std::unique_lock<std::mutex> lock_;
        CudaPointer memory_ = 0;
    };
    Expected<Lease> lend(std::size_t bytes, CudaStream stream);

private:
    std::shared_ptr<const Device> device_;
    std::mutex mutex_;
    std::map<CudaStream, std::unique_ptr<Piece>> pieces_;
};

}  // namespace flexor::runtime::cuda
