#include "runtime/stop_check.h"

#include "runtime/telemetry.h"
#include "support/fork_gate.h"

namespace flexor::runtime {
namespace {

constexpr std::uint64_t kFirstAskNs = 1'000'000;
constexpr std::uint64_t kAskEveryNs = 50'000'000;

struct Current {
    StopCheck* check = nullptr;
    StopScope::Role role = StopScope::Role::kOwner;
};
constinit thread_local Current current;

}  // namespace

bool StopCheck::poll_host() {
    const std::uint64_t now = now_ns();
    if (next_ns_ == 0) next_ns_ = now + kFirstAskNs;
    return now >= next_ns_ && ask();
}

bool StopCheck::ask() {
    if (stopped()) return true;
    if (call_.should_stop == nullptr) return false;
    const bool stop = [&] {
        const support::ForkPause pause;  // the thread that forks may hold what the host waits for
        return call_.should_stop(call_.stop_context);
    }();
    next_ns_ = now_ns() + kAskEveryNs;
    if (stop) stopped_.store(true, std::memory_order_relaxed);
    return stop;
}

StopScope::StopScope(StopCheck* check, Role role) : before_(current.check), role_before_(current.role) {
    current = {check, role};
}

StopScope::~StopScope() { current = {before_, role_before_}; }

bool stop_requested() {
    StopCheck* const check = current.check;
    if (check == nullptr) return false;
    return current.role == StopScope::Role::kOwner ? check->poll() : check->stopped();
}

StopCheck* current_stop_check() { return current.check; }

}  // namespace flexor::runtime
