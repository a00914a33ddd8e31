#include "vm/engine.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "vm/destinations.h"
#include "vm/interpreter.h"

namespace flexor::vm {

namespace {

// What two readings of the clock cost, to be taken off the sampled times.
std::uint64_t clock_overhead() {
    static const std::uint64_t overhead = [] {
        std::uint64_t best = ~std::uint64_t{0};
        for (int i = 0; i < 32; ++i) {
            const std::uint64_t start = runtime::now_ns();
            best = std::min(best, runtime::now_ns() - start);
        }
        return best;
    }();
    return overhead;
}

// A look-up takes well under a microsecond; a sample beyond 5 us tells of an interrupt, not of the rung.
void add_sample(runtime::RungCounters& rung, std::uint64_t start) {
    const std::uint64_t taken = runtime::now_ns() - start;
    if (taken > 5'000) return;
    rung.samples.add();
    rung.sampled_ns.add(taken > clock_overhead() ? taken - clock_overhead() : 0);
}

constexpr const char* kWaits = "being_compiled";  // why a region is interpreted that a thread compiles

Device device_of(const DeviceRun* run) { return run == nullptr ? Device{} : run->place(); }

}  // namespace

// ---------------------------------------------------------------- threads

// The contexts that this thread uses; they go back to their engines when it ends.
struct Engine::ThreadSlots {
    struct Slot {
        std::uint64_t engine;
        std::shared_ptr<ThreadContext> context;
    };
    std::vector<Slot> slots;
    ~ThreadSlots() {
        for (Slot& slot : slots) slot.context->taken.store(false, std::memory_order_release);
    }
};

namespace {
thread_local std::uint64_t last_engine = 0;
thread_local ThreadContext* last_context = nullptr;
}  // namespace

Engine::Engine(const EngineOptions& options, Compiler* compiler, std::shared_ptr<runtime::Pool> pool,
               runtime::Telemetry* telemetry, const Hooks* hooks)
    : options_(options),
      compiler_(compiler),
      pool_(std::move(pool)),
      telemetry_(telemetry),
      hooks_(hooks),
      devices_(options.device_graphs, options.graphs_at_once) {
    static std::atomic<std::uint64_t> next_id{1};
    id_ = next_id.fetch_add(1, std::memory_order_relaxed);
    clock_overhead();
}

Engine::~Engine() {
    // No run is under way. Threads may keep the husks until they end.
    std::lock_guard lock(mutex_);
    for (const auto& context : contexts_) {
        context->modules.clear();
        context->last = nullptr;
        context->cache.flush();
    }
    pool_->trim();  // the arenas of the husks too
}

ThreadContext& Engine::context() {
    if (last_engine == id_) return *last_context;
    thread_local ThreadSlots slots;
    ThreadContext* found = nullptr;
    for (const ThreadSlots::Slot& slot : slots.slots) {
        if (slot.engine == id_) found = slot.context.get();
    }
    if (found == nullptr) {
        std::lock_guard lock(mutex_);
        std::shared_ptr<ThreadContext> context;
        for (const auto& candidate : contexts_) {
            bool taken = false;
            if (candidate->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) {
                context = candidate;
                break;
            }
        }
        if (context == nullptr) {
            context = std::make_shared<ThreadContext>(pool_, telemetry_->make_shard());
            contexts_.push_back(context);
        }
        // Contexts of engines that are gone are held by nobody else.
        std::erase_if(slots.slots, [](const ThreadSlots::Slot& slot) { return slot.context.use_count() == 1; });
        slots.slots.push_back({id_, context});
        found = context.get();
    }
    last_engine = id_;
    last_context = found;
    return *found;
}

std::shared_ptr<ModuleState> Engine::module_state(const bytecode::ModuleRef& module) {
    std::lock_guard lock(mutex_);
    if (const auto known = modules_.find(module->id); known != modules_.end()) return known->second;
    auto made = std::make_shared<ModuleState>(module);
    modules_.emplace(module->id, made);
    std::erase_if(modules_, [](const auto& item) { return item.second->module.expired(); });
    return made;
}

ThreadModule* Engine::thread_module(ThreadContext& context, const bytecode::ModuleRef& module) {
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    if (context.generation != generation && context.run_depth == 0) {
        context.modules.clear();
        context.last = nullptr;
        context.generation = generation;
    }
    if (context.last != nullptr && context.last->state->id == module->id) return context.last;
    auto at = context.modules.find(module->id);
    if (at == context.modules.end()) {
        at = context.modules.emplace(module->id, std::make_unique<ThreadModule>(module_state(module))).first;
        if (context.run_depth == 0) {
            std::erase_if(context.modules, [](const auto& item) { return item.second->state->module.expired(); });
        }
    }
    context.last = at->second.get();
    return context.last;
}

void Engine::settle_thread(const bytecode::ModuleRef& module) {
    ThreadContext& context = this->context();
    for (const bytecode::Function& function : module->functions)
        context.results.reserve(static_cast<std::size_t>(function.result_count));
    ThreadModule& mine = *thread_module(context, module);
    for (auto& function : mine.points) {
        for (auto& point : function) {
            if (point != nullptr) point->exact.reserve(options_.exact_capacity);
        }
    }
}

void Engine::clear() {
    std::lock_guard lock(mutex_);
    modules_.clear();
    telemetry_->forget_entries();
    generation_.fetch_add(1, std::memory_order_release);
}

// ---------------------------------------------------------------- run

Expected<void> Engine::run(const bytecode::ModuleRef& module, std::int32_t function, std::span<const Value> arguments,
                           std::vector<Value>& results, const CallOptions& call, Trace* trace,
                           std::span<const Tensor> outputs) {
    if (function < 0 || static_cast<std::size_t>(function) >= module->functions.size()) {
        return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(std::to_string(function));
    }
    ThreadContext& context = this->context();
    const bytecode::Function& entry = module->functions[static_cast<std::size_t>(function)];
    std::vector<Value> completed;
    if (arguments.size() != entry.params.size()) {
        auto whole = complete_arguments(entry, arguments);
        if (!whole) {
            context.shard->failed_calls.add();
            return std::move(whole).error();
        }
        completed = *std::move(whole);
        arguments = completed;
    }
    context.shard->calls.add();
    runtime::StopCheck stop(interrupts_, call);
    Run run{module, thread_module(context, module), context, call, &stop, trace, false, outputs, nullptr};
    struct Depth {
        std::uint32_t& depth;
        explicit Depth(std::uint32_t& d) : depth(d) { ++depth; }
        ~Depth() { --depth; }
    } depth(context.run_depth);
    std::optional<Journal> journal;
    if (call.restores) run.journal = &journal.emplace();
    auto done = call.device.kind == DeviceKind::kCpu ? call_function(run, function, arguments, results)
                                                     : run_on_device(run, function, arguments, results);
    if (!done) context.shard->failed_calls.add();
    if (done && journal) journal->done();
    return done;
}

Expected<void> Engine::run_into(const bytecode::ModuleRef& module, std::int32_t function,
                                std::span<const Value> arguments, std::span<const Tensor> outputs,
                                const CallOptions& call) {
    if (function < 0 || static_cast<std::size_t>(function) >= module->functions.size())
        return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(std::to_string(function));
    const bytecode::Function& entry = module->functions[static_cast<std::size_t>(function)];
    FLEXOR_TRY(check_outputs(*module, entry, arguments, outputs, call.device));
    ThreadContext& context = this->context();
    // A run inside the run gets a table of its own.
    std::vector<Value> results = std::exchange(context.results, {});
    const std::span<const Tensor> early = may_reach_host(*module, arguments) ? std::span<const Tensor>() : outputs;
    auto done = run(module, function, arguments, results, call, nullptr, early);
    if (done && call.device.kind == DeviceKind::kCpu) done = write_outputs(entry, results, outputs);
    if (done && call.device.kind != DeviceKind::kCpu) {
        FLEXOR_ASSIGN(const DeviceState* state, devices_.get(call.device));
        DeviceRun device(*state, call.device, call.stream, *context.shard);
        done = write_outputs(entry, results, outputs, &device);
    }
    results.clear();
    context.results = std::move(results);
    return done;
}

Expected<void> Engine::synchronize(Device device, void* stream) {
    return devices_.synchronize(device, stream, *context().shard);
}

Expected<Value> Engine::to_device(const Value& value, const CallOptions& call) {
    return devices_.to_device(value, call, *context().shard);
}

Expected<void> Engine::run_on_device(Run& run, std::int32_t function, std::span<const Value> arguments,
                                     std::vector<Value>& results) {
    if (run.call.restores)
        return Diagnostic(DiagnosticId::kBadOption)
            .operand("restores")
            .found("a run on a device")
            .expected("one on the host");
    FLEXOR_ASSIGN(const DeviceState* state, devices_.get(run.call.device));
    FLEXOR_ASSIGN(const bool captured,
                  state->device->is_captured(static_cast<runtime::cuda::CudaStream>(run.call.stream)));
    if (captured) {
        // The graph would be run again when the memory that it works on serves others.
        return Diagnostic(DiagnosticId::kDeviceCallFailed)
            .found("a stream that is being captured into a graph")
            .hint("call it outside of the capture");
    }
    DeviceRun device(*state, run.call.device, run.call.stream, *run.context.shard, run.profile());
    if (std::optional<Diagnostic> fault = device.take_fault())
        return std::move(*fault).hint("an earlier call has met it: kernels run behind their host");
    run.device = &device;
    auto done = call_function(run, function, arguments, results);
    if (auto timed = device.finish_profile(); done && !timed) return timed;
    return done;
}

Expected<void> Engine::call_function(Run& run, std::int32_t function, std::span<const Value> given,
                                     std::vector<Value>& results) {
    const bytecode::Function& f = run.module->functions[static_cast<std::size_t>(function)];
    const FunctionFacts& facts = run.thread_module->state->facts[static_cast<std::size_t>(function)];
    std::vector<Value> converted;
    const std::span<const Value> arguments = as_declared(f, facts.numbers, given, converted);
    if (compiler_ == nullptr) {
        auto checked = check_arguments(*run.module, f, arguments, device_of(run.device));
        if (!checked) return std::move(checked).error();
        Interpreter interpreter(*this, run, function);
        interpreter.begin(arguments, "compile_off");
        interpreter.bind(std::move(*checked));
        return interpreter.run(results);
    }
    TapeResult tape;
    std::string reason;
    bool ran = false;
    const std::span<const Tensor> outputs = std::exchange(run.outputs, {});
    {
        ScratchLease scratch(run.context);
        LiveValues live{arguments, {}, static_cast<std::uint32_t>(f.locals.size()), {}, facts.writes};
        live.device = device_of(run.device);
        Found found;
        look_up(run, function, 0, live, *scratch, found);
        if (found.error != nullptr) return std::move(*found.error);
        if (found.entry != nullptr && found.entry->executable != nullptr) {
            ran = true;
            TapeContext tape_context{&run.context.cache,
                                     &run.context.arena,
                                     &run.context.workspace,
                                     run.context.shard.get(),
                                     run.one_op ? nullptr : telemetry_,
                                     run.module.get(),
                                     function,
                                     &run.call,
                                     run.stop,
                                     run.one_op ? pool_.get() : nullptr,
                                     outputs,
                                     run.device,
                                     run.profile(),
                                     run.journal};
            run_tape(*found.entry, live, *scratch, tape_context, results, tape);
            if (tape.end != TapeEnd::kRefused && !run.one_op)
                run.context.shard->compiled_ops.add(found.entry->executable->op_count);
            if (tape.end == TapeEnd::kReturned) return {};
            if (tape.end == TapeEnd::kFailed) return std::move(*tape.error);
            if (tape.end == TapeEnd::kExited) {
                run.context.shard->region_exits.add();
                reason = *tape.reason;
            }
        } else if (found.entry != nullptr) {
            reason = found.entry->reason;
        } else if (found.waits) {
            reason = kWaits;
        }
    }
    Interpreter interpreter(*this, run, function);
    interpreter.begin(arguments, reason);
    if (reason == kWaits) interpreter.wait();
    if (!ran) {
        // No guard has looked at the arguments.
        auto checked = check_arguments(*run.module, f, arguments, device_of(run.device));
        if (!checked) return std::move(checked).error();
        interpreter.bind(std::move(*checked));
    }
    if (tape.end == TapeEnd::kExited)
        interpreter.resume(std::move(tape), 0);
    else if (tape.end == TapeEnd::kRefused)
        interpreter.suspend(tape.refused_bytes, tape.refusal);
    else
        interpreter.skip_first_look_up();
    return interpreter.run(results);
}

// ---------------------------------------------------------------- ladder

void Engine::look_up(Run& run, std::int32_t function, std::int32_t pc, const LiveValues& live, Scratch& scratch,
                     Found& found) {
    runtime::Shard& shard = *run.context.shard;
    ThreadEntryPoint& point = run.thread_module->point(function, pc);
    const bool sampled = shard.sample();
    const std::uint64_t start = sampled ? runtime::now_ns() : 0;
    if (!build_key(live, scratch.key)) {
        found.error = std::make_unique<Diagnostic>(located(
            Diagnostic(DiagnosticId::kMissingArgument).found("a tensor without memory"), *run.module, function, pc));
        return;
    }
    if (run.trace != nullptr) {
        run.trace->add("symbolise", run.module->functions[static_cast<std::size_t>(function)].name + "@" +
                                        std::to_string(pc) + ": " + executable::to_string(make_signature(live)));
    }
    const EntryRef* record = options_.fail_guards ? nullptr : point.exact.repeated(scratch.key);
    if (record == nullptr) {
        hash_key(scratch.key);
        if (options_.fail_guards) return miss(run, point, live, scratch, found);
        record = point.exact.find(scratch.key);
    }
    if (record != nullptr) {
        Entry* entry = record->get();
        found.entry = entry;
        // What the host is asked in a run may run anything on this thread, a call that changes the table included.
        if (run.call.allocator.allocate != nullptr || run.call.should_stop != nullptr) found.hold = *record;
        if (entry->executable == nullptr) return;
        shard.exact.hits.add();
        entry->record->hits.add();
        if (sampled) {
            add_sample(shard.exact, start);
            entry->last_used.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
        }
        if (run.trace != nullptr) {
            run.trace->add("match guards", entry->executable->function + "@" + std::to_string(pc) + ": exact hit");
            run.trace->executables.push_back(entry->executable);
        }
        return;
    }
    const Snapshot& snapshot = point.current();
    if (const SignatureGroup* group = snapshot.find(scratch.key)) {
        std::uint32_t failed = 0;
        if (const EntryRef* match = match_symbolic(*group, scratch.key, run.context.guard_frame, &failed)) {
            found.hold = *match;
            Entry* entry = found.hold.get();
            found.entry = entry;
            point.exact.insert(scratch.key, point.own(found.hold), options_.exact_capacity);
            entry->last_used.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
            if (entry->executable == nullptr) return;
            entry->record->hits.add();
            if (options_.exact_only) {  // another thread compiled this very shape
                shard.exact.hits.add();
                return;
            }
            shard.exact.misses.add();
            shard.symbolic.hits.add();
            if (sampled) {
                add_sample(shard.symbolic, start);
            }
            if (run.trace != nullptr) {
                run.trace->add("match guards", entry->executable->function + "@" + std::to_string(pc) +
                                                   ": exact miss, symbolic hit, guards " + entry->record->stats.guards);
                run.trace->executables.push_back(entry->executable);
            }
            return;
        }
    }
    miss(run, point, live, scratch, found);
}

}  // namespace flexor::vm
