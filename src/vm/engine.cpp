#include "vm/engine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bytecode/verify.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/fork_gate.h"
#include "support/text.h"
#include "vm/destinations.h"
#include "vm/device_graphs.h"
#include "vm/interpreter.h"

namespace flexor::vm {

using bytecode::Opcode;

// ---------------------------------------------------------------- modules

EntryPoint* ModuleState::point(std::int32_t function, std::int32_t pc) {
    std::lock_guard lock(mutex);
    auto& at = points[static_cast<std::size_t>(function)][static_cast<std::size_t>(pc)];
    if (at == nullptr) {
        at = std::make_unique<EntryPoint>();
        at->function = function;
        at->pc = pc;
    }
    return at.get();
}

namespace {

// Appends the symbols that the attribute names, without duplicates.
void collect_symbols(const types::AttrValue& value, std::vector<types::SymbolId>& out) {
    if (const auto* dim = std::get_if<types::Dim>(&value)) dim->collect_symbols(out);
    if (const auto* list = std::get_if<types::DimList>(&value)) {
        for (const types::Dim& dim : *list) dim.collect_symbols(out);
    }
}

// main(p0, ...) = the op of `site`.
Expected<bytecode::ModuleRef> make_one_op(const bytecode::Module& owner, const bytecode::CallSite& site, int results) {
    bytecode::Module module;
    module.promotion = owner.promotion;
    bytecode::Function function;
    function.name = "main";
    function.result_count = results;
    function.sites.push_back(site);
    for (std::int32_t i = 0; i < site.operand_count; ++i) {
        bytecode::ParamDecl param;
        param.name = "p" + std::to_string(i);
        function.locals.push_back(param.name);
        function.params.push_back(std::move(param));
        function.code.push_back({Opcode::kLoadLocal, i, 0});
    }
    function.code.push_back({Opcode::kCallOp, 0, 0});
    function.code.push_back({Opcode::kReturn, results, 0});
    module.functions.push_back(std::move(function));
    return bytecode::verify(std::move(module));
}

std::vector<FunctionFacts> find_facts(const bytecode::Module& module) {
    std::vector<FunctionFacts> facts(module.functions.size());
    for (std::size_t i = 0; i < facts.size(); ++i) {
        facts[i].numbers = number_parameters(module.functions[i]);
        const auto has = [&](Opcode op) {
            return std::ranges::any_of(module.functions[i].code, [&](const auto& inst) { return inst.op == op; });
        };
        facts[i].grows_lists = has(Opcode::kLoopHead) && has(Opcode::kListAppend);
        for (const bytecode::CallSite& site : module.functions[i].sites) {
            if (site.definition != nullptr && site.definition->effects.value == ops::Effects::kWritesFirst)
                facts[i].writes = true;
            for (const auto& [name, value] : site.attrs.items()) collect_symbols(value, facts[i].symbols);
        }
    }
    const bool any_writes = std::any_of(facts.begin(), facts.end(), [](const FunctionFacts& f) { return f.writes; });
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (facts[i].writes) continue;
            for (const bytecode::Instruction& inst : module.functions[i].code) {
                if ((inst.op == Opcode::kCall && facts[static_cast<std::size_t>(inst.a)].writes) ||
                    (inst.op == Opcode::kCallValue && any_writes))
                    facts[i].writes = changed = true;
            }
        }
    }
    return facts;
}

}  // namespace

bytecode::ModuleRef ModuleState::one_op_module(const bytecode::Module& owner, std::int32_t function,
                                               std::int32_t site) {
    const bytecode::CallSite& call =
        owner.functions[static_cast<std::size_t>(function)].sites[static_cast<std::size_t>(site)];
    std::lock_guard lock(mutex);
    const auto [at, fresh] = one_op.try_emplace({function, site});
    if (!fresh) return at->second;
    std::vector<types::SymbolId> symbols;
    for (const auto& [name, value] : call.attrs.items()) collect_symbols(value, symbols);
    if (!symbols.empty()) return nullptr;
    const int results = ops::result_count(*call.definition, call.attrs);
    if (results < 0) return nullptr;
    auto made = make_one_op(owner, call, results);
    if (made) at->second = std::move(*made);
    return at->second;
}

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

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f ms", seconds * 1e3);
    return text;
}

// A look-up takes well under a microsecond; a sample beyond 5 us tells of an interrupt, not of the rung.
void add_sample(runtime::RungCounters& rung, std::uint64_t start) {
    const std::uint64_t taken = runtime::now_ns() - start;
    if (taken > 5'000) return;
    rung.samples.add();
    rung.sampled_ns.add(taken > clock_overhead() ? taken - clock_overhead() : 0);
}

// What the launches of an entry raise on a device.
void note_faults(Entry& entry, const bytecode::Module& module, std::int32_t function, runtime::cuda::FaultLog& faults) {
    const executable::Executable& e = *entry.executable;
    for (const executable::Launch& launch : e.launches) {
        if (launch.fault == 0) {
            entry.fault_words.push_back(0);  // never set
            continue;
        }
        const executable::Failure& failure = e.failures[launch.fault - 1];
        entry.fault_words.push_back(faults.add(
            located(raised(failure, "kernel " + e.kernels[launch.kernel].ir.name), module, function, failure.pc)));
    }
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
    : options_(options), compiler_(compiler), pool_(std::move(pool)), telemetry_(telemetry), hooks_(hooks) {
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
    auto made = std::make_shared<ModuleState>();
    made->id = module->id;
    made->module = module;
    made->facts = find_facts(*module);
    for (const bytecode::Function& function : module->functions) made->points.emplace_back(function.code.size() + 1);
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
        auto made = std::make_unique<ThreadModule>();
        made->state = module_state(module);
        for (const bytecode::Function& function : module->functions)
            made->points.emplace_back(function.code.size() + 1);
        at = context.modules.emplace(module->id, std::move(made)).first;
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
        FLEXOR_ASSIGN(const DeviceState* state, device_state(call.device));
        DeviceRun device(*state, call.device, call.stream, *context.shard);
        done = write_outputs(entry, results, outputs, &device);
    }
    results.clear();
    context.results = std::move(results);
    return done;
}

Expected<const DeviceState*> Engine::device_state(Device device) {
    if (devices_ == nullptr) return Diagnostic(DiagnosticId::kNoDevice).found("a session without devices");
    std::lock_guard lock(mutex_);
    std::unique_ptr<DeviceState>& state = device_states_[device.index];
    if (state == nullptr) {
        auto made = std::make_unique<DeviceState>();
        FLEXOR_ASSIGN(made->device, devices_->get(device.index));
        FLEXOR_ASSIGN(made->faults, runtime::cuda::FaultLog::create(made->device));
        made->pool = runtime::cuda::DevicePool::create(made->device, device_limits_);
        if (options_.device_graphs)
            made->graphs = std::make_shared<GraphBuilder>(made->device, options_.graphs_at_once);
        state = std::move(made);
    }
    return static_cast<const DeviceState*>(state.get());
}

Expected<void> Engine::synchronize(Device device, void* stream) {
    if (device.kind == DeviceKind::kCpu) return {};
    FLEXOR_ASSIGN(const DeviceState* state, device_state(device));
    context().shard->device_syncs.add();
    FLEXOR_TRY(state->device->synchronize(static_cast<runtime::cuda::CudaStream>(stream)));
    if (std::optional<Diagnostic> fault = state->faults->take()) return *std::move(fault);
    return {};
}

std::vector<std::shared_ptr<GraphBuilder>> Engine::graph_builders() {
    std::vector<std::shared_ptr<GraphBuilder>> builders;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [index, state] : device_states_) {
            if (state != nullptr && state->graphs != nullptr) builders.push_back(state->graphs);
        }
    }
    return builders;
}

void Engine::settle_graphs() {
    for (const auto& builder : graph_builders()) builder->settle();
}

void Engine::drop_graphs() {
    for (const auto& builder : graph_builders()) builder->reclaim(true);
}

Expected<Value> Engine::to_device(const Value& value, const CallOptions& call) {
    if (value.is_list()) {
        ValueList elements;
        for (const Value& element : value.elements()) {
            FLEXOR_ASSIGN(Value placed, to_device(element, call));
            elements.push_back(std::move(placed));
        }
        return Value::list(std::move(elements));
    }
    if (value.is_dict()) {
        ValueDict items;
        for (const auto& [key, item] : value.items()) {
            FLEXOR_ASSIGN(Value placed, to_device(item, call));
            items.emplace_back(key, std::move(placed));
        }
        return Value::dict(std::move(items));
    }
    if (!value.is_tensor()) return value;
    FLEXOR_ASSIGN(const DeviceState* state, device_state(call.device));
    DeviceRun device(*state, call.device, call.stream, *context().shard);
    FLEXOR_ASSIGN(Tensor placed, device.to_device(value.tensor().contiguous()));
    // The host's memory may go before the copy has been made.
    FLEXOR_TRY(state->device->synchronize(static_cast<runtime::cuda::CudaStream>(call.stream)));
    return Value(std::move(placed));
}

std::vector<std::shared_ptr<runtime::cuda::DevicePool>> Engine::device_pools() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<runtime::cuda::DevicePool>> pools;
    for (const auto& [index, state] : device_states_) {
        if (state != nullptr) pools.push_back(state->pool);
    }
    return pools;
}

Expected<void> Engine::run_on_device(Run& run, std::int32_t function, std::span<const Value> arguments,
                                     std::vector<Value>& results) {
    if (run.call.restores)
        return Diagnostic(DiagnosticId::kBadOption)
            .operand("restores")
            .found("a run on a device")
            .expected("one on the host");
    FLEXOR_ASSIGN(const DeviceState* state, device_state(run.call.device));
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

namespace {

// Wakes those that wait for a signature's compilation, whatever becomes of it.
class Landing {
public:
    Landing(EntryPoint& point, const std::vector<std::uint64_t>& words) : point_(&point), words_(words) {}
    Landing(const Landing&) = delete;
    Landing& operator=(const Landing&) = delete;
    ~Landing() {
        if (point_ == nullptr) return;
        {
            std::lock_guard lock(point_->mutex);
            std::erase(point_->in_flight, words_);
        }
        point_->done.notify_all();
    }
    void hand_over() { point_ = nullptr; }  // to another that stands for the same

private:
    EntryPoint* point_;
    const std::vector<std::uint64_t>& words_;
};

// Whether a region was refused for the sizes of this very call.
bool is_refused(const EntryPoint& point, const std::vector<std::uint64_t>& words, const LiveKey& key) {
    std::vector<std::uint64_t> all = words;
    all.insert(all.end(), key.frame.data(), key.frame.data() + key.frame.size());
    return std::ranges::find(point.refused, all) != point.refused.end();
}

}  // namespace

void Engine::miss(Run& run, ThreadEntryPoint& point, const LiveValues& live, Scratch& scratch, Found& found) {
    const support::ForkSection section;
    EntryPoint& shared = *point.shared;
    const bytecode::Function& function = run.module->functions[static_cast<std::size_t>(shared.function)];
    const std::string place = function.name + "@" + std::to_string(shared.pc);
    if (shared.pc == 0 && live.stack.empty() && live.locals.size() == function.params.size()) {
        auto checked = check_arguments(*run.module, function, live.locals, live.device);
        if (!checked) {
            found.error = std::make_unique<Diagnostic>(std::move(checked).error());
            return;
        }
    }
    // A compilation, or waiting for that of another thread, takes long.
    if (run.stop->ask()) {
        found.error = std::make_unique<Diagnostic>(
            located(Diagnostic(DiagnosticId::kInterrupted), *run.module, shared.function, shared.pc));
        return;
    }
    const std::vector<std::uint64_t> words(scratch.key.signature.data(),
                                           scratch.key.signature.data() + scratch.key.signature.size());
    const bool is_behind = options_.behind && run.device == nullptr && run.trace == nullptr;
    std::uint32_t failed = 0;
    bool known = false;
    for (;;) {
        std::unique_lock lock(shared.mutex);
        if (shared.generation != support::fork_generation()) {
            shared.in_flight.clear();
            shared.generation = support::fork_generation();
        }
        failed = 0;
        const SignatureGroup* group = shared.snapshot->find(scratch.key);
        known = group != nullptr;
        if (group != nullptr && options_.fail_guards) {
            failed = static_cast<std::uint32_t>(group->entries.size());
        } else if (group != nullptr) {
            if (const EntryRef* match = match_symbolic(*group, scratch.key, run.context.guard_frame, &failed)) {
                // Another thread was first.
                found.hold = *match;
                lock.unlock();
                Entry* entry = found.hold.get();
                found.entry = entry;
                point.exact.insert(scratch.key, point.own(found.hold), options_.exact_capacity);
                if (entry->executable == nullptr) return;
                entry->record->hits.add();
                run.context.shard->exact.misses.add();
                run.context.shard->symbolic.hits.add();
                return;
            }
        }
        const auto busy = std::find(shared.in_flight.begin(), shared.in_flight.end(), words);
        if (is_behind) {
            found.waits = true;
            if (run.one_op || busy != shared.in_flight.end() || is_refused(shared, words, scratch.key)) return;
        }
        if (busy == shared.in_flight.end()) {
            shared.in_flight.push_back(words);
            break;
        }
        constexpr std::chrono::milliseconds kLook{50};
        if (shared.done.wait_for(lock, kLook) == std::cv_status::no_timeout) continue;
        lock.unlock();
        if (run.stop->ask()) {
            found.error = std::make_unique<Diagnostic>(
                located(Diagnostic(DiagnosticId::kInterrupted), *run.module, shared.function, shared.pc));
            return;
        }
    }
    Landing landing(shared, words);
    run.context.shard->exact.misses.add();
    if (!options_.exact_only) run.context.shard->symbolic.misses.add();
    std::string why;
    if (!known)
        why = "new signature";
    else if (options_.exact_only)
        why = "new shape, exact-only";
    else
        why = "guards of " + std::to_string(failed) + (failed == 1 ? " entry" : " entries") + " do not hold";
    // Two entries of one signature failed: guards that were proposed from one call's sizes split the family.
    const bool generalise = !options_.exact_only && failed >= 2;
    if (known && !options_.exact_only) {
        Event event;
        event.kind = generalise ? "generalise" : "guard_miss";
        event.function = function.name;
        event.line = function.line_at(shared.pc);
        event.text = place + ": " + why;
        telemetry_->record_event(std::move(event));
    }
    if (run.trace != nullptr)
        run.trace->add("match guards",
                       place + ": exact miss, symbolic miss (" + why + ")" + (generalise ? ", generalise" : ""));
    Job job{run.module,
            &shared,
            make_signature(live),
            words,
            scratch.key.signature_hash,
            {scratch.key.frame.data(), scratch.key.frame.data() + scratch.key.frame.size()},
            generalise,
            why};
    if (is_behind) {
        compile_behind(run.thread_module->state, std::move(job));
        return landing.hand_over();
    }
    compile(run, point, job, scratch, found);
}

void Engine::compile_behind(std::shared_ptr<ModuleState> state, Job job) {
    behind_.add([this, state = std::move(state), job = std::move(job)] {
        const support::ForkSection section;
        const Landing landing(*job.point, job.words);
        const auto made = make_entry(job, nullptr, nullptr, nullptr);
        if (!made || (*made)->executable != nullptr || (*made)->whole_signature) return;
        constexpr std::size_t kMost = 64;
        std::lock_guard lock(job.point->mutex);
        auto& refused = job.point->refused;
        if (refused.size() == kMost) refused.erase(refused.begin());
        refused.push_back(job.words);
        refused.back().insert(refused.back().end(), job.frame.begin(), job.frame.end());
    });
}

void Engine::settle() { behind_.wait(); }

void Engine::compile(Run& run, ThreadEntryPoint& point, const Job& job, Scratch& scratch, Found& found) {
    auto made = make_entry(job, run.stop, run.device, run.trace);
    if (!made) {
        found.error = std::make_unique<Diagnostic>(std::move(made).error());
        return;
    }
    found.hold = *made;
    found.entry = found.hold.get();
    // Entries without code are nobody's but the exact record's.
    point.exact.insert(scratch.key, found.entry->executable != nullptr ? point.own(found.hold) : found.hold,
                       options_.exact_capacity);
}

// "yes", or why the launches of the entry run one by one.
std::string Engine::offer_graphs(Entry& entry, const DeviceState& state, const std::string& name) {
    if (state.graphs == nullptr) return "switched off";
    std::string refusal = GraphRegion::refusal(*entry.executable, options_.graphs_at_once ? 1 : kLeastGraphLaunches);
    if (!refusal.empty()) return refusal;
    entry.graphs = std::make_shared<EntryGraphs>(
        entry.executable, entry.buffers, entry.fault_words,
        GraphSurroundings{state.device, state.pool, state.faults, state.graphs, telemetry_, name});
    state.graphs->add(entry.graphs);
    return "yes";
}

Expected<EntryRef> Engine::make_entry(const Job& job, runtime::StopCheck* stop, DeviceRun* device, Trace* trace) {
    EntryPoint& shared = *job.point;
    const bytecode::Function& function = job.module->functions[static_cast<std::size_t>(shared.function)];
    const std::int32_t line = function.line_at(shared.pc);
    const std::string place = function.name + "@" + std::to_string(shared.pc);
    CompileRequest request;
    request.module = job.module;
    request.function = shared.function;
    request.pc = shared.pc;
    request.signature = &job.signature;
    request.frame = job.frame;
    request.exact_only = options_.exact_only;
    request.generalise = job.generalise;

    const std::uint64_t start = runtime::now_ns();
    auto compiled = [&] {
        const runtime::StopScope scope(stop, runtime::StopScope::Role::kOwner);
        return compiler_->compile(request);
    }();
    if (!compiled && compiled.error().id() == DiagnosticId::kInterrupted) {
        // Nothing is known of the region: the next call tries again.
        return located(std::move(compiled).error(), *job.module, shared.function, shared.pc);
    }
    const double seconds = static_cast<double>(runtime::now_ns() - start) * 1e-9;

    auto entry = std::make_shared<Entry>();
    entry->signature_words.assign(job.words.begin(), job.words.end());
    entry->signature_hash = job.hash;
    entry->last_used.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    if (!compiled) {
        const Diagnostic& error = compiled.error();
        const auto why = error.id() == DiagnosticId::kOpNotCompiled ? runtime::NotCompiled::kByDesign
                                                                    : runtime::NotCompiled::kFailed;
        entry->reason = fallback_reason(error);
        // What a user's sizes caused says nothing about other sizes.
        entry->whole_signature = !options_.exact_only && error.kind() != DiagnosticKind::kUserError;
        telemetry_->record_not_compiled(why, function.name, line, place + ": " + error.to_string(), seconds);
        if (trace != nullptr) trace->add("specialise", place + ": interpreted, " + error.to_string());
        if (entry->whole_signature) shared.add(entry, options_.entry_capacity);
        return entry;
    }
    entry->executable = std::move(*compiled);
    const executable::Executable& e = *entry->executable;
    entry->prepare(*job.module);
    if (device != nullptr) note_faults(*entry, *job.module, shared.function, *device->state().faults);
    entry->record = std::make_shared<runtime::EntryRecord>();
    EntryStats& stats = entry->record->stats;
    stats.function = function.name;
    stats.pc = shared.pc;
    stats.line = line;
    stats.signature = executable::to_string(job.signature);
    stats.guards = e.guard_texts.empty() ? "true" : support::join(e.guard_texts, " and ");
    stats.reason = job.why;
    stats.compile_seconds = seconds;
    stats.kernels = static_cast<std::uint32_t>(e.launches.size());
    stats.ops = e.op_count;
    if (device != nullptr) {
        stats.graphs = offer_graphs(*entry, device->state(), function.name);
        if (trace != nullptr) trace->add("generate", place + ": launches run as graphs of the device: " + stats.graphs);
    }
    if (describe_ != nullptr) describe_(describe_context_, e, stats);
    telemetry_->record_compile(entry->record);

    std::vector<std::int64_t> frame(e.frame_slots + 1);
    std::copy(job.frame.begin(), job.frame.end(), frame.begin());
    if (!executable::guards_hold(e, frame.data())) {
        // The guards refuse the very call that they were made for. The code is never reached.
        telemetry_->forget(entry->record.get());
        telemetry_->record_not_compiled(runtime::NotCompiled::kFailed, function.name, line,
                                        place + ": the new entry's guards refuse its own call", 0);
        auto refused = std::make_shared<Entry>();
        refused->signature_words = entry->signature_words;
        refused->signature_hash = entry->signature_hash;
        refused->reason = "guards_refused";
        refused->whole_signature = false;
        return refused;
    }
    std::size_t entries = 0;
    if (const EntryRef evicted = shared.add(entry, options_.entry_capacity, &entries)) {
        telemetry_->forget(evicted->record.get());
        telemetry_->record_eviction(function.name, line,
                                    place + ": " + std::to_string(options_.entry_capacity) +
                                        " entries of one signature; the least recently used is dropped");
    }
    if (trace != nullptr) {
        for (const std::string& event : e.events) trace->add("specialise", place + ": " + event);
        trace->add("specialise", place + ": " + std::to_string(stats.ops) + " ops, guards " + stats.guards + "; " +
                                     milliseconds(stats.specialize_seconds + stats.transform_seconds));
        trace->add("generate", place + ": " + std::to_string(e.kernels.size()) + " kernels, " +
                                   std::to_string(stats.kernels_built) + " of them built, " +
                                   support::text_from_bytes(stats.code_bytes) + " of code, " +
                                   std::to_string(e.packed.size()) + " weights packed; lower " +
                                   milliseconds(stats.lower_seconds) + ", generate " +
                                   milliseconds(stats.codegen_seconds) + ", pack " + milliseconds(stats.pack_seconds));
        trace->add("register", place + ": entry " + std::to_string(entries) + " of its signature, " +
                                   std::to_string(stats.kernels) + " launches, " + std::to_string(e.exits.size()) +
                                   " exits; in all " + milliseconds(seconds));
        trace->executables.push_back(entry->executable);
    }
    return entry;
}

}  // namespace flexor::vm
