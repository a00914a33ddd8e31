#include "vm/behind.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace flexor::vm {

struct Behind::State {
    std::mutex mutex;
    std::condition_variable wake, idle;
    std::deque<std::function<void()>> jobs;
    std::size_t open = 0;  // jobs that are not done
    bool ends = false;
    pid_t process = getpid();
    std::thread thread;

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [&] { return ends || !jobs.empty(); });
            if (ends) return;
            const std::function<void()> job = std::move(jobs.front());
            jobs.pop_front();
            lock.unlock();
            job();
            lock.lock();
            if (--open == 0) idle.notify_all();
        }
    }
};

Behind::Behind() = default;

Behind::~Behind() {
    if (state_ == nullptr) return;
    if (state_->process != getpid()) {
        static_cast<void>(state_.release());  // of the parent, whose thread is not here
        return;
    }
    {
        std::lock_guard lock(state_->mutex);
        state_->ends = true;
    }
    state_->wake.notify_all();
    if (state_->thread.joinable()) state_->thread.join();
}

Behind::State& Behind::state() {
    static std::mutex making;
    std::lock_guard lock(making);
    if (state_ != nullptr && state_->process != getpid()) static_cast<void>(state_.release());
    if (state_ == nullptr) state_ = std::make_unique<State>();
    return *state_;
}

void Behind::add(std::function<void()> job) {
    State& s = state();
    {
        std::lock_guard lock(s.mutex);
        s.jobs.push_back(std::move(job));
        ++s.open;
        if (!s.thread.joinable()) s.thread = std::thread([&s] { s.work(); });
    }
    s.wake.notify_one();
}

void Behind::wait() {
    State& s = state();
    std::unique_lock lock(s.mutex);
    s.idle.wait(lock, [&] { return s.open == 0; });
}

}  // namespace flexor::vm
