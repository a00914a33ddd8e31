#pragma once
// The virtual machine: interprets to a safe point, asks the ladder, runs the tape it gives, goes on at the exit's pc.
//
// Laws
//  E1  Nothing is executed twice: a region either runs from its safe point or leaves no trace (tape law T2).
//  E2  What runs outside regions is recorded with its reason.
//  E3  A region that cannot be compiled costs one interpreted instruction; the next pc is tried as a safe point.
//  E4  No lock is held while a host function runs.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "flexor/call_options.h"
#include "vm/arguments.h"
#include "vm/behind.h"
#include "vm/compile_interface.h"
#include "vm/context.h"
#include "vm/device_states.h"
#include "vm/hooks.h"

namespace flexor::vm {

struct EngineOptions {
    bool exact_only = false;
    std::uint32_t exact_capacity = 512;
    std::uint32_t entry_capacity = 64;
    std::uint32_t max_call_depth = 1000;
    bool fail_guards = false;  // every look-up misses (a stress switch)
    // A region that no entry serves is compiled by a thread of the engine's, and interpreted until that is done. Calls
    // on devices, and those that are traced, compile themselves.
    bool behind = false;
    bool device_graphs = true;    // launches on devices run as graphs where they can
    bool graphs_at_once = false;  // and a call waits for its graph (a stress switch)
};

// What happened in one call, for `explain`: one line per event, in order, and the regions met.
struct Trace {
    struct Line {
        std::string phase;  // "load", "symbolise", "match guards", "specialise", "generate", "register", "run"
        std::string text;
    };
    std::vector<Line> lines;
    std::vector<std::shared_ptr<const executable::Executable>> executables;
    Profile* profile = nullptr;  // gets the times of kernels, where they are wanted
    void add(std::string phase, std::string text) { lines.push_back({std::move(phase), std::move(text)}); }
};

// What the engine tells the compiler's owner about a compilation, to be completed by it.
using DescribeEntry = void (*)(void* context, const executable::Executable& executable, EntryStats& stats);

class Engine {
public:
    // `compiler` may be null: everything is interpreted. It, `telemetry` and `hooks` outlive the engine.
    Engine(const EngineOptions& options, Compiler* compiler, std::shared_ptr<runtime::Pool> pool,
           runtime::Telemetry* telemetry, const Hooks* hooks);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Results are appended to `results`. A tensor result that the function's own region makes is written to its place of
    // `outputs` if that has the result's dtype, sizes and strides; the results say which (destinations.h).
    Expected<void> run(const bytecode::ModuleRef& module, std::int32_t function, std::span<const Value> arguments,
                       std::vector<Value>& results, const CallOptions& call, Trace* trace = nullptr,
                       std::span<const Tensor> outputs = {});
    // The same, with every result in its place of `outputs` in the end.
    Expected<void> run_into(const bytecode::ModuleRef& module, std::int32_t function, std::span<const Value> arguments,
                            std::span<const Tensor> outputs, const CallOptions& call);
    // Takes the memory that this thread needs to remember further shapes of the module.
    void settle_thread(const bytecode::ModuleRef& module);

    DeviceStates& devices() { return devices_; }
    Expected<void> synchronize(Device device, void* stream);
    // A value of the host with its tensors on the call's device.
    Expected<Value> to_device(const Value& value, const CallOptions& call);

    void interrupt() noexcept { interrupts_.fetch_add(1, std::memory_order_relaxed); }
    void clear();   // drops all entries
    void settle();  // until everything that was to be compiled beside the calls so far is
    // Completes the record of a new entry (times, kernels built).
    void set_describe(DescribeEntry describe, void* context) {
        describe_ = describe;
        describe_context_ = context;
    }

private:
    friend class Interpreter;
    struct ThreadSlots;
    struct Run {
        const bytecode::ModuleRef& module;
        ThreadModule* thread_module;
        ThreadContext& context;
        const CallOptions& call;
        runtime::StopCheck* stop;
        Trace* trace;
        bool one_op;  // a function made for one op: its results are pool memory, its ops are counted by the caller
        std::span<const Tensor> outputs = {};  // of the outermost function
        DeviceRun* device = nullptr;           // null: on the host
        Journal* journal = nullptr;            // null: what a run overwrites stays so
        Profile* profile() const { return trace == nullptr ? nullptr : trace->profile; }
    };
    struct Found {
        Entry* entry = nullptr;  // null with `error` empty: interpret
        EntryRef hold;           // keeps an entry alive that no table of this thread holds
        std::unique_ptr<Diagnostic> error;
        bool waits = false;  // it is being compiled: interpret
    };
    // What a compilation needs of the call that missed.
    struct Job {
        bytecode::ModuleRef module;
        EntryPoint* point;
        executable::Signature signature;
        std::vector<std::uint64_t> words;  // of the signature
        std::uint64_t hash;
        std::vector<std::int64_t> frame;
        bool generalise;
        std::string why;
    };

    ThreadContext& context();
    ThreadModule* thread_module(ThreadContext& context, const bytecode::ModuleRef& module);
    std::shared_ptr<ModuleState> module_state(const bytecode::ModuleRef& module);

    Expected<void> run_on_device(Run& run, std::int32_t function, std::span<const Value> arguments,
                                 std::vector<Value>& results);

    // Runs one function: by its entry region if there is one, interpreting what is left.
    Expected<void> call_function(Run& run, std::int32_t function, std::span<const Value> arguments,
                                 std::vector<Value>& results);

    void look_up(Run& run, std::int32_t function, std::int32_t pc, const LiveValues& live, Scratch& scratch,
                 Found& found);
    // ---- misses.cpp

    void miss(Run& run, ThreadEntryPoint& point, const LiveValues& live, Scratch& scratch, Found& found);
    // Whether this thread is to compile the signature, once no other does. If not, `found` says what becomes of the call.
    // `failed`: the entries of the signature whose guards do not hold; none: the signature is new.
    bool claim(Run& run, ThreadEntryPoint& point, const std::vector<std::uint64_t>& words, bool is_behind,
               Scratch& scratch, Found& found, std::optional<std::uint32_t>& failed);
    // Records a miss, and says why something is compiled.
    std::string tell_miss(Run& run, const EntryPoint& point, std::optional<std::uint32_t> failed, bool generalise);
    void compile(Run& run, ThreadEntryPoint& point, const Job& job, Scratch& scratch, Found& found);
    void compile_behind(std::shared_ptr<ModuleState> state, Job job);
    // The entry of a region, with code or without, told to its point; an error: the run was stopped.
    Expected<EntryRef> make_entry(const Job& job, runtime::StopCheck* stop, DeviceRun* device, Trace* trace);
    EntryRef blank_entry(const Job& job);
    EntryRef add_refusal(const Job& job, const Diagnostic& error, double seconds, Trace* trace);
    void describe_entry(const Job& job, Entry& entry, double seconds, const DeviceRun* device, Trace* trace);
    // "yes", or why the launches of the entry run one by one.
    std::string offer_graphs(Entry& entry, const DeviceState& state, const std::string& name);
    void register_entry(const Job& job, const EntryRef& entry, Trace* trace);

    EngineOptions options_;
    Compiler* compiler_;
    std::shared_ptr<runtime::Pool> pool_;
    runtime::Telemetry* telemetry_;
    const Hooks* hooks_;
    DescribeEntry describe_ = nullptr;
    void* describe_context_ = nullptr;
    std::uint64_t id_;
    std::atomic<std::uint64_t> interrupts_{0};
    std::atomic<std::uint64_t> generation_{0};
    alignas(64) std::atomic<std::uint64_t> clock_{0};  // of Entry::last_used; every thread writes it
    alignas(64) std::mutex mutex_;
    std::vector<std::shared_ptr<ThreadContext>> contexts_;
    std::unordered_map<std::uint64_t, std::shared_ptr<ModuleState>> modules_;
    DeviceStates devices_;
    Behind behind_;  // ends before what its jobs use
};

}  // namespace flexor::vm
