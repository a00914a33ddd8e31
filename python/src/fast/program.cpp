#include "fast/program.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fast/foreign.h"
#include "interpreter.h"

namespace flexor::python {

namespace {

constexpr double kReleaseAbove = 20e-6;  // runs predicted to take longer let other threads hold the interpreter

// The interpreter lock for the length of a run: kept through short ones, let go in those that are predicted to be long
// or turn out to be.
class InterpreterLock {
public:
    explicit InterpreterLock(bool release) {
        if (release) let_go();
    }
    ~InterpreterLock() { take(); }
    InterpreterLock(const InterpreterLock&) = delete;
    InterpreterLock& operator=(const InterpreterLock&) = delete;

    // CallOptions::should_stop: a run that asks is long.
    static bool signalled(void* context) {
        auto& lock = *static_cast<InterpreterLock*>(context);
        lock.take();
        const bool stop = PyErr_CheckSignals() != 0;
        lock.let_go();
        return stop;
    }

private:
    void take() {
        if (state_ != nullptr) take_interpreter(std::exchange(state_, nullptr));
    }
    void let_go() {
        if (state_ == nullptr) state_ = PyEval_SaveThread();
    }
    PyThreadState* state_ = nullptr;
};

}  // namespace

bool read_argument(const Program& program, ParameterKind kind, PyObject* object, Value& out, Framework& framework) {
    return value_from_argument(kind, object, out, framework) && (!program.writes || protect(out));
}

namespace {

// run(options) is a run of the session.
template <class Run>
bool run_with(Program& program, std::span<const Value> arguments, std::span<const Value> outputs, Framework framework,
              Run&& run) {
    Device device;
    void* stream = nullptr;
    if (!place_of(arguments, device, stream)) return false;
    if (device.kind == DeviceKind::kCpu && !place_of(outputs, device, stream)) return false;
    const Framework outer = current_framework;
    if (framework != Framework::kNone) current_framework = framework;
    const Prediction::Foreseen foreseen = program.prediction.foresee(arguments);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = foreseen.timed ? Clock::now() : Clock::time_point();
    const Expected<void> done = [&] {
        InterpreterLock lock(foreseen.seconds > kReleaseAbove);
        CallOptions options;
        options.should_stop = InterpreterLock::signalled;
        options.stop_context = &lock;
        options.device = device;
        options.allocator = torch_results(device);
        options.stream = stream;
        options.restores = program.restores;
        return run(options);
    }();
    current_framework = outer;
    if (foreseen.timed) {
        const std::chrono::duration<double> took = Clock::now() - begin;
        program.prediction.learn(arguments, foreseen, took.count());
    }
    if (program.writes || !outputs.empty()) {
        // An exception of a hook or of a signal handler is set already, and stays.
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if (program.writes) std::ranges::for_each(arguments, note_writes);
        std::ranges::for_each(outputs, note_writes);
        PyErr_Restore(type, value, trace);
    }
    if (!done && !PyErr_Occurred()) raise_diagnostic(done.error());
    return PyErr_Occurred() == nullptr;
}

}  // namespace

bool run_program(Session& session, Program& program, std::span<const Value> arguments, Framework framework,
                 std::vector<Value>& results) {
    return run_with(program, arguments, {}, framework, [&](const CallOptions& options) {
        return session.run_into(*program.module, program.function, arguments, results, options);
    });
}

bool run_program_into(Session& session, Program& program, std::span<const Value> arguments, Framework framework,
                      std::span<const Value> outputs) {
    std::vector<Tensor> tensors;
    tensors.reserve(outputs.size());
    for (const Value& output : outputs) tensors.push_back(output.tensor());
    return run_with(program, arguments, outputs, framework, [&](const CallOptions& options) {
        return session.run_into(*program.module, program.function, arguments, std::span<const Tensor>(tensors),
                                options);
    });
}

}  // namespace flexor::python
