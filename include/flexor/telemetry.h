#pragma once
// What a Session counts, and the four ways to read it: structs, JSON, Prometheus text, a dashboard for people.
//
// Counters are kept per thread without locks and summed when read: a snapshot taken during calls may lag them by a few
// counts, never lose any.
#include <cstdint>
#include <string>
#include <vector>

#include "flexor/export.h"

namespace flexor {

// One rung of the guard ladder. Every look-up of the rung counts; one in 64 is timed.
struct RungStats {
    std::string name;          // "exact", "symbolic", "data" (no guard reads data: it stays at 0)
    std::uint64_t hits = 0;    // answered here
    std::uint64_t misses = 0;  // handed on to the next rung
    std::uint64_t samples = 0;
    double mean_ns = 0;  // of the sampled look-ups, key building included
};

// Work that ran outside compiled regions: one row per op, reason and place.
struct FallbackRow {
    std::string op;      // registry name, or "foreign <hook>"
    std::string reason;  // stable id: "compile_off", "not_compiled", "foreign", "hard_limit", ...
    std::string function;
    std::int32_t line = 0;
    std::uint64_t count = 0;
    double seconds = 0;
};

// One compiled region.
struct EntryStats {
    std::string function;
    std::int32_t pc = 0;
    std::int32_t line = 0;
    std::string signature;
    std::string guards;  // "true", or the conditions joined by " and "
    std::string reason;  // why it was compiled
    std::uint64_t hits = 0;
    double compile_seconds = 0;
    double specialize_seconds = 0, transform_seconds = 0, lower_seconds = 0, codegen_seconds = 0, pack_seconds = 0;
    std::uint32_t kernels = 0;        // launches in its tape
    std::uint32_t kernels_built = 0;  // compiled for it; the rest came from the kernel cache
    std::uint64_t code_bytes = 0;
    std::uint32_t ops = 0;  // registry ops compiled into it
    std::string graphs;     // on a device: "yes" if its launches run as graphs there, else why not
};

struct PoolStats {
    std::uint64_t live_bytes = 0;      // handed out
    std::uint64_t reserved_bytes = 0;  // taken from the system, live or idle
    std::uint64_t peak_live_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    std::uint64_t soft_limit = 0;     // 0: none
    std::uint64_t hard_limit = 0;     // 0: none
    std::uint64_t growth_events = 0;  // memory taken from the system
    std::uint64_t over_soft_events = 0;
    std::uint64_t hard_limit_events = 0;
    std::uint64_t shrunk_bytes = 0;  // idle memory given back because more than the soft limit was reserved
    std::uint64_t reuses = 0;        // requests answered without the system
};

// Something that happens rarely enough to be told one by one.
struct Event {
    std::uint64_t sequence = 0;  // counts from 1; gaps mean that the ring overwrote events
    double seconds = 0;          // since the session began
    std::string kind;            // "compile", "compile_failed", "interpreted", "guard_miss", "generalise", "evict",
                                 // "pool_growth", "over_soft_limit", "hard_limit", "fallback_alarm"
    std::string function;
    std::int32_t line = 0;
    std::string text;
    double duration_seconds = 0;  // compile events
    std::uint64_t bytes = 0;      // pool events
};

struct Stats {
    double uptime_seconds = 0;
    std::uint64_t calls = 0;
    std::uint64_t failed_calls = 0;

    std::vector<RungStats> rungs;  // in ladder order
    double hit_rate = 0;           // region look-ups answered without a compilation; 1 when there were none
    std::uint64_t lookups = 0;

    std::uint64_t compiled_ops = 0;     // op executions inside compiled regions
    std::uint64_t interpreted_ops = 0;  // op executions outside, foreign calls among them
    std::uint64_t typed_calls = 0;      // calls of the host that say before the run what they give; no fallbacks
    double fallback_rate = 0;           // interpreted / all
    double fallback_seconds = 0;
    bool fallback_alarm = false;         // fallback_rate > 0.1
    std::vector<FallbackRow> fallbacks;  // most frequent first

    std::uint64_t compilations = 0;
    std::uint64_t failed_compilations = 0;
    double compile_seconds = 0;
    double mean_compile_seconds = 0;
    std::vector<EntryStats> entries;

    std::uint64_t kernel_launches = 0;  // on devices too
    std::uint64_t device_launches = 0;
    std::uint64_t library_launches = 0;      // of them products that cuBLASLt computed
    std::uint64_t device_syncs = 0;          // times that a run waited for its device
    std::uint64_t device_copied_bytes = 0;   // between host and device
    std::uint64_t device_variants = 0;       // of kernels, that launches asked the compiler for
    std::uint64_t device_stand_ins = 0;      // launches by another variant than their own, which was not there yet
    std::uint64_t device_compile_waits = 0;  // launches that waited for the compiler: nothing served
    double device_compile_wait_seconds = 0;
    std::uint64_t graph_launches = 0;  // of many kernels as one, each of which is a device launch too
    std::uint64_t graph_misfits = 0;   // calls that a graph of their sizes could not serve
    std::uint64_t graphs_built = 0;
    std::uint64_t graphs_refused = 0;  // that could not be made
    std::uint64_t graphs_evicted = 0;
    std::uint64_t kernels_compiled = 0;
    std::uint64_t kernel_cache_hits = 0;
    std::uint64_t code_bytes = 0;
    std::uint64_t packed_weight_bytes = 0;
    std::uint64_t region_exits = 0;
    std::uint64_t evictions = 0;

    PoolStats pool;
    PoolStats device_pool;  // of all devices together; limits hold for each
};

FLEXOR_API std::string to_json(const Stats& stats);
FLEXOR_API std::string to_prometheus(const Stats& stats);  // text/plain; version=0.0.4
FLEXOR_API std::string to_text(const Stats& stats);        // the dashboard
FLEXOR_API std::string to_json_line(const Event& event);   // without a line end

}  // namespace flexor
