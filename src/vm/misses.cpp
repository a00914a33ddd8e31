// What the engine does when no entry serves: one thread compiles, those that miss the same signature wait (ladder law G2).
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "support/diagnostic.h"
#include "support/fork_gate.h"
#include "support/text.h"
#include "vm/device_graphs.h"
#include "vm/engine.h"

namespace flexor::vm {

namespace {

const bytecode::Function& function_at(const bytecode::Module& module, const EntryPoint& point) {
    return module.functions[static_cast<std::size_t>(point.function)];
}

std::string place_of(const bytecode::Module& module, const EntryPoint& point) {
    return function_at(module, point).name + "@" + std::to_string(point.pc);
}

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f ms", seconds * 1e3);
    return text;
}

std::unique_ptr<Diagnostic> interrupted(const bytecode::Module& module, const EntryPoint& point) {
    return std::make_unique<Diagnostic>(
        located(Diagnostic(DiagnosticId::kInterrupted), module, point.function, point.pc));
}

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

}  // namespace

// ---------------------------------------------------------------- the call that missed

void Engine::miss(Run& run, ThreadEntryPoint& point, const LiveValues& live, Scratch& scratch, Found& found) {
    const support::ForkSection section;
    EntryPoint& shared = *point.shared;
    const bytecode::Function& function = function_at(*run.module, shared);
    if (shared.pc == 0 && live.stack.empty() && live.locals.size() == function.params.size()) {
        auto checked = check_arguments(*run.module, function, live.locals, live.device);
        if (!checked) {
            found.error = std::make_unique<Diagnostic>(std::move(checked).error());
            return;
        }
    }
    // A compilation, or waiting for that of another thread, takes long.
    if (run.stop->ask()) {
        found.error = interrupted(*run.module, shared);
        return;
    }
    const std::vector<std::uint64_t> words(scratch.key.signature.data(),
                                           scratch.key.signature.data() + scratch.key.signature.size());
    const bool is_behind = options_.behind && run.device == nullptr && run.trace == nullptr;
    std::optional<std::uint32_t> failed;
    if (!claim(run, point, words, is_behind, scratch, found, failed)) return;
    Landing landing(shared, words);
    run.context.shard->exact.misses.add();
    if (!options_.exact_only) run.context.shard->symbolic.misses.add();
    // Two entries of one signature failed: guards that were proposed from one call's sizes split the family.
    const bool generalise = !options_.exact_only && failed.value_or(0) >= 2;
    Job job{run.module,
            &shared,
            make_signature(live),
            words,
            scratch.key.signature_hash,
            {scratch.key.frame.data(), scratch.key.frame.data() + scratch.key.frame.size()},
            generalise,
            tell_miss(run, shared, failed, generalise)};
    if (is_behind) {
        compile_behind(run.thread_module->state, std::move(job));
        return landing.hand_over();
    }
    compile(run, point, job, scratch, found);
}

bool Engine::claim(Run& run, ThreadEntryPoint& point, const std::vector<std::uint64_t>& words, bool is_behind,
                   Scratch& scratch, Found& found, std::optional<std::uint32_t>& failed) {
    EntryPoint& shared = *point.shared;
    for (;;) {
        std::unique_lock lock(shared.mutex);
        if (shared.generation != support::fork_generation()) {
            shared.in_flight.clear();
            shared.generation = support::fork_generation();
        }
        failed.reset();
        const SignatureGroup* group = shared.snapshot->find(scratch.key);
        if (group != nullptr && options_.fail_guards) {
            failed = static_cast<std::uint32_t>(group->entries.size());
        } else if (group != nullptr) {
            if (const EntryRef* match =
                    match_symbolic(*group, scratch.key, run.context.guard_frame, &failed.emplace(0))) {
                // Another thread was first.
                found.hold = *match;
                lock.unlock();
                Entry* entry = found.hold.get();
                found.entry = entry;
                point.exact.insert(scratch.key, point.own(found.hold), options_.exact_capacity);
                if (entry->executable == nullptr) return false;
                entry->record->hits.add();
                run.context.shard->exact.misses.add();
                run.context.shard->symbolic.hits.add();
                return false;
            }
        }
        const auto busy = std::find(shared.in_flight.begin(), shared.in_flight.end(), words);
        if (is_behind) {
            found.waits = true;
            if (run.one_op || busy != shared.in_flight.end() || is_refused(shared, words, scratch.key)) return false;
        }
        if (busy == shared.in_flight.end()) {
            shared.in_flight.push_back(words);
            return true;
        }
        constexpr std::chrono::milliseconds kLook{50};
        if (shared.done.wait_for(lock, kLook) == std::cv_status::no_timeout) continue;
        lock.unlock();
        if (run.stop->ask()) {
            found.error = interrupted(*run.module, shared);
            return false;
        }
    }
}

std::string Engine::tell_miss(Run& run, const EntryPoint& point, std::optional<std::uint32_t> failed, bool generalise) {
    const bytecode::Function& function = function_at(*run.module, point);
    const std::string place = place_of(*run.module, point);
    std::string why;
    if (!failed)
        why = "new signature";
    else if (options_.exact_only)
        why = "new shape, exact-only";
    else
        why = "guards of " + std::to_string(*failed) + (*failed == 1 ? " entry" : " entries") + " do not hold";
    if (failed && !options_.exact_only) {
        Event event;
        event.kind = generalise ? "generalise" : "guard_miss";
        event.function = function.name;
        event.line = function.line_at(point.pc);
        event.text = place + ": " + why;
        telemetry_->record_event(std::move(event));
    }
    if (run.trace != nullptr)
        run.trace->add("match guards",
                       place + ": exact miss, symbolic miss (" + why + ")" + (generalise ? ", generalise" : ""));
    return why;
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

// ---------------------------------------------------------------- the entry that comes of it

Expected<EntryRef> Engine::make_entry(const Job& job, runtime::StopCheck* stop, DeviceRun* device, Trace* trace) {
    CompileRequest request;
    request.module = job.module;
    request.function = job.point->function;
    request.pc = job.point->pc;
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
        return located(std::move(compiled).error(), *job.module, request.function, request.pc);
    }
    const double seconds = static_cast<double>(runtime::now_ns() - start) * 1e-9;
    if (!compiled) return add_refusal(job, compiled.error(), seconds, trace);

    const EntryRef entry = blank_entry(job);
    entry->executable = std::move(*compiled);
    entry->prepare(*job.module);
    if (device != nullptr) note_faults(*entry, *job.module, request.function, *device->state().faults);
    describe_entry(job, *entry, seconds, device, trace);

    const executable::Executable& e = *entry->executable;
    std::vector<std::int64_t> frame(e.frame_slots + 1);
    std::copy(job.frame.begin(), job.frame.end(), frame.begin());
    if (!executable::guards_hold(e, frame.data())) {
        // The guards refuse the very call that they were made for. The code is never reached.
        telemetry_->forget(entry->record.get());
        const bytecode::Function& function = function_at(*job.module, *job.point);
        telemetry_->record_not_compiled(
            runtime::NotCompiled::kFailed, function.name, function.line_at(job.point->pc),
            place_of(*job.module, *job.point) + ": the new entry's guards refuse its own call", 0);
        EntryRef refused = blank_entry(job);
        refused->reason = "guards_refused";
        refused->whole_signature = false;
        return refused;
    }
    register_entry(job, entry, trace);
    return entry;
}

EntryRef Engine::blank_entry(const Job& job) {
    auto entry = std::make_shared<Entry>();
    entry->signature_words = job.words;
    entry->signature_hash = job.hash;
    entry->last_used.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    return entry;
}

EntryRef Engine::add_refusal(const Job& job, const Diagnostic& error, double seconds, Trace* trace) {
    const bytecode::Function& function = function_at(*job.module, *job.point);
    const std::string place = place_of(*job.module, *job.point);
    EntryRef entry = blank_entry(job);
    entry->reason = fallback_reason(error);
    // What a user's sizes caused says nothing about other sizes.
    entry->whole_signature = !options_.exact_only && error.kind() != DiagnosticKind::kUserError;
    const auto why =
        error.id() == DiagnosticId::kOpNotCompiled ? runtime::NotCompiled::kByDesign : runtime::NotCompiled::kFailed;
    telemetry_->record_not_compiled(why, function.name, function.line_at(job.point->pc),
                                    place + ": " + error.to_string(), seconds);
    if (trace != nullptr) trace->add("specialise", place + ": interpreted, " + error.to_string());
    if (entry->whole_signature) job.point->add(entry, options_.entry_capacity);
    return entry;
}

void Engine::describe_entry(const Job& job, Entry& entry, double seconds, const DeviceRun* device, Trace* trace) {
    const bytecode::Function& function = function_at(*job.module, *job.point);
    const executable::Executable& e = *entry.executable;
    entry.record = std::make_shared<runtime::EntryRecord>();
    EntryStats& stats = entry.record->stats;
    stats.function = function.name;
    stats.pc = job.point->pc;
    stats.line = function.line_at(job.point->pc);
    stats.signature = executable::to_string(job.signature);
    stats.guards = e.guard_texts.empty() ? "true" : support::join(e.guard_texts, " and ");
    stats.reason = job.why;
    stats.compile_seconds = seconds;
    stats.kernels = static_cast<std::uint32_t>(e.launches.size());
    stats.ops = e.op_count;
    if (device != nullptr) {
        stats.graphs = offer_graphs(entry, device->state(), function.name);
        if (trace != nullptr)
            trace->add("generate",
                       place_of(*job.module, *job.point) + ": launches run as graphs of the device: " + stats.graphs);
    }
    if (describe_ != nullptr) describe_(describe_context_, e, stats);
    telemetry_->record_compile(entry.record);
}

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

void Engine::register_entry(const Job& job, const EntryRef& entry, Trace* trace) {
    const std::string place = place_of(*job.module, *job.point);
    const EntryStats& stats = entry->record->stats;
    std::size_t entries = 0;
    if (const EntryRef evicted = job.point->add(entry, options_.entry_capacity, &entries)) {
        telemetry_->forget(evicted->record.get());
        telemetry_->record_eviction(stats.function, stats.line,
                                    place + ": " + std::to_string(options_.entry_capacity) +
                                        " entries of one signature; the least recently used is dropped");
    }
    if (trace == nullptr) return;
    const executable::Executable& e = *entry->executable;
    for (const std::string& event : e.events) trace->add("specialise", place + ": " + event);
    trace->add("specialise", place + ": " + std::to_string(stats.ops) + " ops, guards " + stats.guards + "; " +
                                 milliseconds(stats.specialize_seconds + stats.transform_seconds));
    trace->add("generate",
               place + ": " + std::to_string(e.kernels.size()) + " kernels, " + std::to_string(stats.kernels_built) +
                   " of them built, " + support::text_from_bytes(stats.code_bytes) + " of code, " +
                   std::to_string(e.packed.size()) + " weights packed; lower " + milliseconds(stats.lower_seconds) +
                   ", generate " + milliseconds(stats.codegen_seconds) + ", pack " + milliseconds(stats.pack_seconds));
    trace->add("register", place + ": entry " + std::to_string(entries) + " of its signature, " +
                               std::to_string(stats.kernels) + " launches, " + std::to_string(e.exits.size()) +
                               " exits; in all " + milliseconds(stats.compile_seconds));
    trace->executables.push_back(entry->executable);
}

}  // namespace flexor::vm
