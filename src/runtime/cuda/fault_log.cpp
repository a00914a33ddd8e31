#include "runtime/cuda/fault_log.h"

#include <cstring>

namespace flexor::runtime::cuda {

Expected<std::shared_ptr<FaultLog>> FaultLog::create(std::shared_ptr<const Device> device) {
    std::shared_ptr<FaultLog> log(new FaultLog(std::move(device)));
    FLEXOR_ASSIGN(void* memory, log->device_->allocate_host(kWords * sizeof(std::int32_t)));
    log->words_ = static_cast<std::int32_t*>(memory);
    std::memset(memory, 0, kWords * sizeof(std::int32_t));
    return log;
}

FaultLog::~FaultLog() {
    if (words_ != nullptr) device_->release_host(words_);
}

std::uint32_t FaultLog::add(Diagnostic what) {
    const std::lock_guard lock(mutex_);
    if (what_.size() < kWords) what_.push_back(std::move(what));
    used_.store(static_cast<std::uint32_t>(what_.size()), std::memory_order_release);
    return static_cast<std::uint32_t>(what_.size() - 1);
}

std::optional<Diagnostic> FaultLog::take() {
    std::optional<Diagnostic> found;
    const std::uint32_t used = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
        std::atomic_ref word(words_[i]);
        if (word.load(std::memory_order_relaxed) == 0 || word.exchange(0, std::memory_order_acq_rel) == 0) continue;
        const std::lock_guard lock(mutex_);
        if (!found) found = what_[i];
    }
    return found;
}

}  // namespace flexor::runtime::cuda
