#pragma once
// A thread of an engine's own, for what callers do not wait for.
#include <functional>
#include <memory>

namespace flexor::vm {

class Behind {
public:
    Behind();
    ~Behind();  // waits for the job under way; those behind it are dropped
    Behind(const Behind&) = delete;
    Behind& operator=(const Behind&) = delete;

    // Jobs are done one at a time, in order. The thread starts with the first one; a forked child starts its own.
    void add(std::function<void()> job);
    // Until all that was added so far is done.
    void wait();

private:
    struct State;
    State& state();
    std::unique_ptr<State> state_;
};

}  // namespace flexor::vm
