#pragma once
// On which processor a worker that sleeps will wake.
//
// Linux may put a woken thread on the processor of the thread that wakes it, although others are idle, and leave it there
// for milliseconds: two threads then take longer than one.
#include <pthread.h>
#include <sched.h>

namespace flexor::runtime {

// One worker, as its pool sees it. Everything but `handle` is guarded by the pool's mutex.
class WorkerPlace {
public:
    explicit WorkerPlace(pthread_t handle) : handle_(handle) {}

    bool asleep = false;

    // From the thread that is about to wake it: it shall wake elsewhere, if it may run elsewhere at all.
    void keep_off_this_processor() {
        const int here = sched_getcpu();
        if (moved_ || here < 0 || pthread_getaffinity_np(handle_, sizeof home_, &home_) != 0) return;
        if (!CPU_ISSET(static_cast<unsigned>(here), &home_) || CPU_COUNT(&home_) < 2) return;
        cpu_set_t elsewhere = home_;
        CPU_CLR(static_cast<unsigned>(here), &elsewhere);
        moved_ = pthread_setaffinity_np(handle_, sizeof elsewhere, &elsewhere) == 0;
    }

    // From the worker, once awake: it may run wherever it might before.
    void settle() {
        if (moved_) pthread_setaffinity_np(handle_, sizeof home_, &home_);
        moved_ = false;
    }

private:
    pthread_t handle_;
    cpu_set_t home_{};
    bool moved_ = false;  // `home_` is to be set again
};

}  // namespace flexor::runtime
