#include "runtime/cuda/stream_memory.h"

namespace flexor::runtime::cuda {

StreamMemory::~StreamMemory() {
    for (const auto& [stream, piece] : pieces_) {
        if (piece->memory != 0) device_->release(piece->memory, stream);
    }
}

Expected<StreamMemory::Lease> StreamMemory::lend(std::size_t bytes, CudaStream stream) {
    Lease lease;
    if (bytes == 0) return lease;
    Piece* piece = nullptr;
    {
        const std::lock_guard lock(mutex_);
        std::unique_ptr<Piece>& known = pieces_[stream];
        if (known == nullptr) known = std::make_unique<Piece>();
        piece = known.get();
    }
    lease.lock_ = std::unique_lock(piece->mutex);
    if (bytes > piece->bytes) {
        FLEXOR_ASSIGN(const CudaPointer made, device_->allocate(bytes, stream));
        if (piece->memory != 0) device_->release(piece->memory, stream);
        piece->memory = made;
        piece->bytes = bytes;
    }
    lease.memory_ = piece->memory;
    return lease;
}

}  // namespace flexor::runtime::cuda
