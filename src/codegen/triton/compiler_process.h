#pragma once
// The compiler of device kernels: a process of its own that runs Triton (python/flexor/_triton_worker.py), so that a crash
// or a hang of the compiler is a refusal here, and so that a machine without a GPU compiles as well as one with.
#include <memory>
#include <string>
#include <vector>

#include "codegen/triton/compile_request.h"
#include "runtime/cuda/device_code.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// One process, started at the first request and again at the one after a crash or a hang. Thread-safe: requests wait for
// each other. After a fork the child starts one of its own.
class CompilerProcess {
public:
    // `command` is the interpreter and the worker's file. A request may take `limit_seconds`, the start included.
    explicit CompilerProcess(std::vector<std::string> command, double limit_seconds = 120);
    ~CompilerProcess();
    CompilerProcess(const CompilerProcess&) = delete;
    CompilerProcess& operator=(const CompilerProcess&) = delete;

    // Refusals: E0707 the process does not start, or has no Triton of a version that was checked (every later request is
    // refused at once); E0708 it ended, took too long, or does not take the source.
    Expected<runtime::cuda::DeviceCode> compile(const CompileRequest& request);

    // Starts the process, if it does not run, so that the first request finds it.
    void start();
    // Ends the process, in the middle of a request too, which then is refused as is every later one. From any thread.
    void end();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace flexor::codegen::triton
