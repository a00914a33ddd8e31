#include "support/fork_gate.h"

#include <pthread.h>

#include <chrono>
#include <shared_mutex>

namespace flexor::support {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

// Readers are the threads inside, and are not kept waiting by a fork that waits; the fork writes.
std::atomic<std::shared_timed_mutex*> gate{nullptr};
std::atomic<std::uint32_t> generation{0};
constinit thread_local int depth = 0;
constinit thread_local bool closed = false;  // by this thread, which is about to fork

void before_fork() { closed = depth == 0 && gate.load()->try_lock_for(kPatience); }

void after_fork() {
    if (closed) gate.load()->unlock();
    closed = false;
}

void in_child() {
    generation.fetch_add(1, std::memory_order_relaxed);
    // The old one knows of threads that are no more.
    auto* fresh = new std::shared_timed_mutex;
    if (depth > 0) fresh->lock_shared();
    gate.store(fresh);
    closed = false;
}

std::shared_timed_mutex& the_gate() {
    static const bool made = [] {
        gate.store(new std::shared_timed_mutex);
        pthread_atfork(before_fork, after_fork, in_child);
        return true;
    }();
    (void)made;
    return *gate.load(std::memory_order_acquire);
}

}  // namespace

ForkSection::ForkSection() {
    std::shared_timed_mutex& now = the_gate();
    if (depth++ == 0) now.lock_shared();
}

ForkSection::~ForkSection() {
    if (--depth == 0) the_gate().unlock_shared();
}

ForkPause::ForkPause() : depth_(depth) {
    if (depth_ > 0) the_gate().unlock_shared();
    depth = 0;
}

ForkPause::~ForkPause() {
    if (depth_ > 0) the_gate().lock_shared();
    depth = depth_;
}

std::uint32_t fork_generation() {
    the_gate();
    return generation.load(std::memory_order_relaxed);
}

void ForkMutex::lock() {
    for (;;) {
        Held* found = held_.load(std::memory_order_acquire);
        const std::uint32_t now = fork_generation();
        if (found == nullptr || found->generation != now) {
            // One that another thread may have held before the fork is left as it is.
            auto* fresh = new Held{{}, now};
            if (!held_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) {
                delete fresh;
                continue;
            }
            found = fresh;
        }
        found->mutex.lock();
        owned_ = found;
        return;
    }
}

void ForkMutex::unlock() { owned_->mutex.unlock(); }

ForkMutex::~ForkMutex() {
    Held* const found = held_.load(std::memory_order_acquire);
    if (found != nullptr && found->generation == fork_generation()) delete found;
}

}  // namespace flexor::support
