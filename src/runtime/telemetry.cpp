#include "runtime/telemetry.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "support/fork_gate.h"
#include "support/hash.h"

namespace flexor::runtime {

std::size_t Shard::KeyHash::operator()(const Key& key) const {
    std::uint64_t hash = support::hash_bytes(key.op);
    hash = support::hash_combine(hash, support::hash_bytes(key.reason));
    hash = support::hash_combine(hash, support::hash_bytes(key.function));
    return support::hash_combine(hash, static_cast<std::uint64_t>(key.line));
}

namespace {

Event event_at(std::string kind, std::string_view function, std::int32_t line) {
    Event event;
    event.kind = std::move(kind);
    event.function = function;
    event.line = line;
    return event;
}

}  // namespace

Telemetry::Telemetry() : start_ns_(now_ns()) {}

std::shared_ptr<Shard> Telemetry::make_shard() {
    auto shard = std::make_shared<Shard>();
    std::lock_guard lock(mutex_);
    shards_.push_back(shard);
    return shard;
}

void Telemetry::record_fallback(Shard& shard, std::string_view op, std::string_view reason, std::string_view function,
                                std::int32_t line, std::uint64_t ns) {
    shard.interpreted_ops.add();
    {
        std::lock_guard lock(shard.mutex_);
        Shard::Cell& cell = shard.heat_[{std::string(op), std::string(reason), std::string(function), line}];
        ++cell.count;
        cell.ns += ns;
    }
    // The alarm is an event of its own, once; a session that never compiles is no alarm.
    if (reason == "compile_off" || shard.interpreted_ops.get() % 64 != 0) return;
    std::uint64_t compiled = 0, interpreted = 0;
    {
        std::lock_guard lock(mutex_);
        if (alarmed_) return;
        for (const auto& other : shards_) {
            compiled += other->compiled_ops.get();
            interpreted += other->interpreted_ops.get();
        }
        if (static_cast<double>(interpreted) <= kFallbackAlarm * static_cast<double>(interpreted + compiled)) return;
        alarmed_ = true;
    }
    Event event = event_at("fallback_alarm", function, line);
    event.text = std::to_string(interpreted) + " of " + std::to_string(interpreted + compiled) +
                 " op executions ran outside compiled regions";
    record_event(std::move(event));
}

std::uint64_t Telemetry::compilations() const {
    std::lock_guard lock(mutex_);
    return compilations_;
}

void Telemetry::record_compile(const std::shared_ptr<EntryRecord>& entry) {
    const EntryStats& stats = entry->stats;
    Event event = event_at("compile", stats.function, stats.line);
    event.text = stats.reason + " " + stats.signature;
    event.duration_seconds = stats.compile_seconds;
    {
        std::lock_guard lock(mutex_);
        ++compilations_;
        compile_seconds_ += stats.compile_seconds;
        std::erase_if(entries_, [](const auto& registered) { return registered.expired(); });
        entries_.push_back(entry);
    }
    record_event(std::move(event));
}

void Telemetry::record_not_compiled(NotCompiled why, std::string_view function, std::int32_t line, std::string text,
                                    double seconds) {
    if (why == NotCompiled::kFailed) {
        std::lock_guard lock(mutex_);
        ++failed_compilations_;
        compile_seconds_ += seconds;
    }
    Event event = event_at(why == NotCompiled::kFailed ? "compile_failed" : "interpreted", function, line);
    event.text = std::move(text);
    event.duration_seconds = seconds;
    record_event(std::move(event));
}

void Telemetry::forget(const EntryRecord* entry) {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& registered) { return registered.lock().get() == entry; });
}

void Telemetry::forget_entries() {
    std::lock_guard lock(mutex_);
    entries_.clear();
}

void Telemetry::record_eviction(std::string_view function, std::int32_t line, std::string text) {
    {
        std::lock_guard lock(mutex_);
        ++evictions_;
    }
    Event event = event_at("evict", function, line);
    event.text = std::move(text);
    record_event(std::move(event));
}

void Telemetry::record_event(Event event) {
    std::function<void(const Event&)> sink;
    event.seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9;
    {
        std::lock_guard lock(mutex_);
        event.sequence = ++sequence_;
        ring_.push_back(event);
        if (ring_.size() > kRing) ring_.pop_front();
        sink = sink_;
    }
    if (sink) {
        const support::ForkPause pause;  // the thread that forks may hold what the host waits for
        sink(event);
    }
}

std::vector<Event> Telemetry::events(std::uint64_t after) const {
    std::lock_guard lock(mutex_);
    std::vector<Event> out;
    for (const Event& event : ring_) {
        if (event.sequence > after) out.push_back(event);
    }
    return out;
}

void Telemetry::set_sink(std::function<void(const Event&)> sink) {
    std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
}

Stats Telemetry::snapshot() const {
    std::lock_guard lock(mutex_);
    Stats stats;
    stats.uptime_seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9;
    RungStats exact, symbolic, data;
    exact.name = "exact";
    symbolic.name = "symbolic";
    std::uint64_t exact_ns = 0, symbolic_ns = 0;
    std::map<std::tuple<std::string, std::string, std::string, std::int32_t>, Shard::Cell> heat;
    for (const auto& shard : shards_) {
        stats.calls += shard->calls.get();
        stats.failed_calls += shard->failed_calls.get();
        exact.hits += shard->exact.hits.get();
        exact.misses += shard->exact.misses.get();
        exact.samples += shard->exact.samples.get();
        exact_ns += shard->exact.sampled_ns.get();
        symbolic.hits += shard->symbolic.hits.get();
        symbolic.misses += shard->symbolic.misses.get();
        symbolic.samples += shard->symbolic.samples.get();
        symbolic_ns += shard->symbolic.sampled_ns.get();
        stats.compiled_ops += shard->compiled_ops.get();
        stats.interpreted_ops += shard->interpreted_ops.get();
        stats.typed_calls += shard->typed_calls.get();
        stats.kernel_launches += shard->launches.get();
        stats.device_launches += shard->device_launches.get();
        stats.library_launches += shard->library_launches.get();
        stats.device_syncs += shard->device_syncs.get();
        stats.device_copied_bytes += shard->device_copied_bytes.get();
        stats.device_variants += shard->device_variants.get();
        stats.device_stand_ins += shard->device_stand_ins.get();
        stats.device_compile_waits += shard->device_compile_waits.get();
        stats.device_compile_wait_seconds += static_cast<double>(shard->device_compile_wait_ns.get()) * 1e-9;
        stats.graph_launches += shard->graph_launches.get();
        stats.graph_misfits += shard->graph_misfits.get();
        stats.region_exits += shard->region_exits.get();
        std::lock_guard heat_lock(shard->mutex_);
        for (const auto& [key, cell] : shard->heat_) {
            Shard::Cell& sum = heat[{key.op, key.reason, key.function, key.line}];
            sum.count += cell.count;
            sum.ns += cell.ns;
        }
    }
    if (exact.samples > 0) exact.mean_ns = static_cast<double>(exact_ns) / static_cast<double>(exact.samples);
    if (symbolic.samples > 0)
        symbolic.mean_ns = static_cast<double>(symbolic_ns) / static_cast<double>(symbolic.samples);
    const std::uint64_t hits = exact.hits + symbolic.hits;
    stats.lookups = exact.hits + exact.misses;
    stats.hit_rate = stats.lookups == 0 ? 1.0 : static_cast<double>(hits) / static_cast<double>(stats.lookups);
    data.name = "data";
    stats.rungs = {exact, symbolic, data};

    for (const auto& [key, cell] : heat) {
        FallbackRow row;
        std::tie(row.op, row.reason, row.function, row.line) = key;
        row.count = cell.count;
        row.seconds = static_cast<double>(cell.ns) * 1e-9;
        stats.fallback_seconds += row.seconds;
        stats.fallbacks.push_back(std::move(row));
    }
    std::stable_sort(stats.fallbacks.begin(), stats.fallbacks.end(),
                     [](const FallbackRow& a, const FallbackRow& b) { return a.count > b.count; });
    const std::uint64_t ops = stats.compiled_ops + stats.interpreted_ops;
    stats.fallback_rate = ops == 0 ? 0.0 : static_cast<double>(stats.interpreted_ops) / static_cast<double>(ops);
    stats.fallback_alarm = stats.fallback_rate > kFallbackAlarm;

    stats.compilations = compilations_;
    stats.failed_compilations = failed_compilations_;
    stats.compile_seconds = compile_seconds_;
    const std::uint64_t attempts = compilations_ + failed_compilations_;
    stats.mean_compile_seconds = attempts == 0 ? 0.0 : compile_seconds_ / static_cast<double>(attempts);
    for (const auto& registered : entries_) {
        const std::shared_ptr<EntryRecord> entry = registered.lock();
        if (entry == nullptr) continue;
        stats.entries.push_back(entry->stats);
        stats.entries.back().hits = entry->hits.get();
    }
    stats.kernels_compiled = kernels_compiled.load(std::memory_order_relaxed);
    stats.kernel_cache_hits = kernel_cache_hits.load(std::memory_order_relaxed);
    stats.code_bytes = code_bytes.load(std::memory_order_relaxed);
    stats.packed_weight_bytes = packed_weight_bytes.load(std::memory_order_relaxed);
    stats.graphs_built = graphs_built.load(std::memory_order_relaxed);
    stats.graphs_refused = graphs_refused.load(std::memory_order_relaxed);
    stats.graphs_evicted = graphs_evicted.load(std::memory_order_relaxed);
    stats.evictions = evictions_;
    return stats;
}

// Counts of calls under way may survive the reset by a few: shards belong to their threads.
void Telemetry::reset() {
    std::lock_guard lock(mutex_);
    for (const auto& shard : shards_) {
        for (Counter* counter : {&shard->calls,
                                 &shard->failed_calls,
                                 &shard->exact.hits,
                                 &shard->exact.misses,
                                 &shard->exact.samples,
                                 &shard->exact.sampled_ns,
                                 &shard->symbolic.hits,
                                 &shard->symbolic.misses,
                                 &shard->symbolic.samples,
                                 &shard->symbolic.sampled_ns,
                                 &shard->compiled_ops,
                                 &shard->interpreted_ops,
                                 &shard->typed_calls,
                                 &shard->launches,
                                 &shard->region_exits,
                                 &shard->device_launches,
                                 &shard->library_launches,
                                 &shard->device_syncs,
                                 &shard->device_copied_bytes,
                                 &shard->device_variants,
                                 &shard->device_stand_ins,
                                 &shard->device_compile_waits,
                                 &shard->device_compile_wait_ns,
                                 &shard->graph_launches,
                                 &shard->graph_misfits})
            counter->clear();
        std::lock_guard heat_lock(shard->mutex_);
        shard->heat_.clear();
    }
    for (const auto& registered : entries_) {
        if (const auto entry = registered.lock()) entry->hits.clear();
    }
    compilations_ = failed_compilations_ = evictions_ = 0;
    graphs_built = graphs_refused = graphs_evicted = 0;
    compile_seconds_ = 0;
    alarmed_ = false;
    ring_.clear();
}

}  // namespace flexor::runtime
