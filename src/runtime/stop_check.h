#pragma once
// Stopping a run from outside: by Session::interrupt, or by the host when it is asked.
//
// Laws
//  C1  Only the thread that runs the program asks the host; every thread sees the answer.
//  C2  A stop is final for its run: once a check has said so, every later one does.
//  C3  A kernel that finds stop_requested() leaves out the rest of its work, on all threads; its run fails with
//      Interrupted and hands out nothing that the kernel has made.
//  C4  Between two checks a kernel works for well under 50 ms, but for one row that is not cut.
#include <atomic>
#include <cstdint>

#include "flexor/call_options.h"

namespace flexor::runtime {

class StopCheck {
public:
    // Interrupts counted from now on stop the run. Both references outlive it.
    StopCheck(const std::atomic<std::uint64_t>& interrupts, const CallOptions& call)
        : interrupts_(interrupts), seen_(interrupts.load(std::memory_order_relaxed)), call_(call) {}
    StopCheck(const StopCheck&) = delete;
    StopCheck& operator=(const StopCheck&) = delete;

    // From any thread; does not ask the host.
    bool stopped() const {
        return interrupts_.load(std::memory_order_relaxed) != seen_ || stopped_.load(std::memory_order_relaxed);
    }
    // From the thread of the run: asks the host when it is time, as CallOptions says.
    bool poll() { return stopped() || (call_.should_stop != nullptr && poll_host()); }
    // From the thread of the run: asks the host at once.
    bool ask();

private:
    bool poll_host();

    const std::atomic<std::uint64_t>& interrupts_;
    const std::uint64_t seen_;
    const CallOptions& call_;
    std::uint64_t next_ns_ = 0;  // when the host is asked again; 0: no clock was read yet
    std::atomic<bool> stopped_{false};
};

// What stop_requested() on this thread looks at, for the length of the scope.
class StopScope {
public:
    enum class Role : std::uint8_t { kOwner, kHelper };  // the thread of the run; another one
    StopScope(StopCheck* check, Role role);              // null: nothing stops
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

private:
    StopCheck* before_;
    Role role_before_;
};

// Whether the work of this thread is to be left. Kernels ask between pieces of some 5 us to 5 ms.
bool stop_requested();
StopCheck* current_stop_check();  // to be handed on to helping threads; null: none

}  // namespace flexor::runtime
