#pragma once
// Several processes that compile device kernels, and the requests that wait for one of them: kernels are compiled beside
// each other, and beside the calls that will want them.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/triton/compile_request.h"
#include "runtime/cuda/device_code.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// What is compiled first; within one urgency what was asked for first.
enum class Urgency : std::uint8_t {
    kWaited,  // a call waits for it
    kTuned,   // a call was served by something slower
    kSpare,   // what may be wanted later
};

// Thread-safe. A process is started when a request finds none idle, up to as many as half the processors (two at
// least, eight at most), and ends when it has been idle for a minute, but for one. After a fork the child has processes of its own, and nothing
// is done there for the parent's requests.
class CompilerPool {
public:
    using Answer = Expected<runtime::cuda::DeviceCode>;  // refusals: see CompilerProcess::compile
    using Then = std::function<void(Answer)>;            // in a thread of the pool
    class Job;
    using Ticket = std::shared_ptr<Job>;

    // `processes`: at most so many; 0: as above. A request may take `limit_seconds`.
    explicit CompilerPool(std::vector<std::string> command, double limit_seconds = 120, std::size_t processes = 0);
    ~CompilerPool();
    CompilerPool(const CompilerPool&) = delete;
    CompilerPool& operator=(const CompilerPool&) = delete;

    // `then` is called once, by close() too; never where null is returned: after close(), or without a thread.
    Ticket submit(CompileRequest request, Urgency urgency, Then then);
    // If nobody has begun with it, it is done before what is less urgent.
    void hurry(const Ticket& job, Urgency urgency);
    // So many requests will come soon: their processes start now.
    void expect(std::size_t requests);
    Answer compile(const CompileRequest& request);  // and waits

    // Ends every process and thread; what was asked for is refused.
    void close();

private:
    struct State;
    State& state();

    std::vector<std::string> command_;
    double limit_seconds_;
    std::size_t most_;
    std::atomic<State*> state_{nullptr};
};

}  // namespace flexor::codegen::triton
