#pragma once
// Session: runs Modules. Holds compiled entries, the buffer pool, hooks and telemetry. Thread-safe: any number of
// threads may call any function at any time; calls share entries and never wait for each other, except for a
// compilation that both need.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flexor/call_options.h"
#include "flexor/error.h"
#include "flexor/export.h"
#include "flexor/module.h"
#include "flexor/telemetry.h"
#include "flexor/tensor.h"
#include "flexor/value.h"

namespace flexor {

// Where the pool of a session gets its memory; null: from the system. Called from any thread, one at a time, until the
// session and all tensors in its memory are gone; it must not call the library. `bytes` are those of the request.
struct PoolAllocator {
    void* (*allocate)(void* context, std::size_t bytes, std::size_t alignment) = nullptr;  // null: there is none left
    void (*release)(void* context, void* data, std::size_t bytes) = nullptr;
    void* context = nullptr;
};

struct SessionOptions {
    bool compile = true;          // false: interpreter only
    bool compile_behind = false;  // regions are interpreted while a thread compiles them: a call never waits for that
    bool exact_only = false;      // no symbols: one entry per exact shape (the "before" of the classic experiment)
    int threads = 0;              // threads of the process's kernels, up to 1024; 0: leave them as they are
    // bytes of pool memory kept and reused; 0: none. Not above the hard limit; the default gives way to a smaller one
    std::uint64_t soft_limit = std::uint64_t{256} << 20;
    std::uint64_t hard_limit = 0;         // bytes that pool memory never exceeds; 0: none
    std::uint32_t exact_capacity = 512;   // exact records per region and thread, least recently used go first
    std::uint32_t entry_capacity = 64;    // entries per region and signature (FROZEN versions), likewise
    std::uint32_t max_call_depth = 1000;  // nested function calls, 1 to 1000
    bool device_graphs = true;            // on a device the launches of a region run as one graph where they can
    PoolAllocator allocator = {};         // both functions or none
};
struct StressOptions;  // switches of the project's tests: flexor/stress.h, which is not installed

// Sizes that a symbol of a Module will take.
struct SizeRange {
    std::string symbol;
    std::int64_t lo = 0;
    std::int64_t hi = 0;
};

struct PrepareOptions {
    std::string_view function = "main";
    int other_threads = 0;
    CallOptions call = {};  // where the calls will run, and on which stream
};

// One kernel in a profiled run: all its launches together. Bytes and operations are those that the work needs at least;
// so is the floor, the time that the largest copy's bandwidth and the units' peak allow (0: not known). A call of an op on whole
// tensors has its time alone.
struct KernelTime {
    std::string kernel;  // function:line:kind
    std::uint64_t launches = 0;
    double bytes = 0, operations = 0;
    double seconds = 0;
    double floor_seconds = 0;
};

struct ExplainOptions {
    std::string_view function = "main";
    bool profile = false;  // times every kernel: the run takes longer, and waits for its device
    CallOptions call = {};
};

// What `explain` tells of one run.
struct Explanation {
    std::string text;
    std::vector<KernelTime> kernels;    // of a profiled run, in the order of their first launches
    std::optional<Diagnostic> refusal;  // why the run ended early; nothing: it did not
};

class FLEXOR_API Session {
public:
    // Options or environment variables that make no sense are refused: error() says which, and so does every run.
    explicit Session(SessionOptions options = {});
    Session(SessionOptions options, const StressOptions& stress);
    ~Session();
    const Diagnostic* error() const;  // BadOption, or null
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Runs "main", or the named function. Optional arguments at the end may be left out.
    Expected<std::vector<Value>> run(const Module& module, std::span<const Value> arguments,
                                     const CallOptions& call = {});
    Expected<std::vector<Value>> run(const Module& module, std::initializer_list<Value> arguments,
                                     const CallOptions& call = {});
    Expected<std::vector<Value>> run_function(const Module& module, std::string_view function,
                                              std::span<const Value> arguments, const CallOptions& call = {});
    // The call path without a name look-up: `function` is an index from function_index; `results` is cleared and
    // filled, and keeps its memory from call to call.
    Expected<void> run_into(const Module& module, std::int32_t function, std::span<const Value> arguments,
                            std::vector<Value>& results, const CallOptions& call = {});
    // Writes every output to memory of the caller: a tensor for each, of the output's dtype and sizes, in which no two
    // elements share memory. What would be written while it is read is refused: an output that shares memory with an
    // input, a weight or another output (E0515). Strides are free; where they are those of the result (row-major, mostly)
    // and the result is neither an input nor a view, nothing is copied and, after prepare, no memory is allocated. After
    // a refusal of the run, or of a buffer that does not fit the output (E0514), the contents of all are undefined.
    Expected<void> run_into(const Module& module, std::int32_t function, std::span<const Value> arguments,
                            std::span<const Tensor> outputs, const CallOptions& call = {});
    static std::int32_t function_index(const Module& module, std::string_view function);  // -1: none

    // Compiles, packs and touches ahead of time, so that later calls of the range on this thread, and on as many other
    // threads as are said, neither compile nor grow the pool: runs the function at the ends of the ranges and at sizes
    // in between (those of other symbols are picked as for example_arguments). Threads that begin later take over what
    // was made ready for them. Not for programs that call their host; NotPrepared (E0605) where sizes of the range need
    // more compilations than are kept, because they are FROZEN.
    Expected<void> prepare(const Module& module, std::span<const SizeRange> ranges, std::string_view function = "main",
                           int other_threads = 0);
    // On a device it also tries sizes all over the ranges and waits until every variant of a kernel that they want is
    // compiled.
    Expected<void> prepare(const Module& module, std::span<const SizeRange> ranges, const PrepareOptions& options);

    // Module::load for a program that is to run here: MissingHook (E0705) if it calls its host and a name is not bound.
    Expected<Module> load(const std::string& path) const;
    Expected<void> require_hooks(const Module& module) const;

    // Makes a host function (or a foreign value) reachable under a name. Binding a name again replaces it.
    // is_typed: the program is told what it gives before it runs (a promise of a tensor); its calls are counted apart, as
    // typed calls, and are no fallbacks.
    void bind(std::string name, ForeignFunction function, bool is_typed = false);
    void bind_value(std::string name, Value value);

    // Runs the program once and tells the five steps (load, symbolise, match guards, specialise, generate and register)
    // with the reason of each, then the specialised listing, the kernels and the executable of every region met.
    // A refusal in mid-run is part of what is told; an error says that nothing was run.
    Expected<Explanation> explain(const Module& module, std::span<const Value> arguments,
                                  std::string_view function = "main");
    Expected<Explanation> explain(const Module& module, std::span<const Value> arguments,
                                  const ExplainOptions& options);
    // The same with example arguments.
    Expected<Explanation> explain(const Module& module, std::string_view function = "main");
    // Arguments of a function with fixed contents. Sizes lie in the declared ranges and fit together, as far as that
    // can be told without a run.
    static Expected<std::vector<Value>> example_arguments(const Module& module, std::string_view function = "main");

    Stats stats() const;
    std::vector<Event> events(std::uint64_t after_sequence = 0) const;  // those still in the ring
    void reset_stats();
    // Told every event as it happens, from the thread that caused it; for logging. The library itself never writes to
    // stdout or stderr.
    void set_event_sink(std::function<void(const Event&)> sink);
    std::string dashboard() const { return to_text(stats()); }

    // Stops every run that is under way, at its next loop head, launch or piece of a long kernel, with Interrupted.
    // Async-signal-safe.
    void interrupt() noexcept;
    // Waits for what calls have given to the stream of that device. A kernel that stumbled, over an index that is out of
    // range say, is an error of this or of the next call there, whichever comes first.
    Expected<void> synchronize(Device device, void* stream = nullptr);

    // Waits until all that calls so far have left to other threads is done: regions that are compiled behind them, and a
    // device's variants of kernels and graphs.
    void settle();

    // Gives idle pool memory back to the system; returns the bytes.
    std::uint64_t trim();
    // Drops every compiled entry.
    void clear_cache();

    const SessionOptions& options() const;
    static bool has_code_generator();  // false in a build without one

    // The command that compiles kernels for devices: an interpreter of Python that has Triton, and the path of
    // flexor/_triton_worker.py. For the whole process, before the first run on a device; empty: none is started.
    static void set_device_compiler(std::vector<std::string> command);
    // What is there of what runs on devices need, and what is missing, for people.
    static std::string doctor();
    static Session& default_session();

    struct Impl;

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace flexor
