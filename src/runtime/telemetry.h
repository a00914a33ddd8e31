#pragma once
// Counters of a session. The call path writes to a shard of its own thread (single writer, relaxed, no lock);
// everything rare goes under a lock.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flexor/telemetry.h"

namespace flexor::runtime {

inline std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

// Written by one thread, read by any.
class Counter {
public:
    void add(std::uint64_t n = 1) {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
    void clear() { value_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

// Written by many threads at once, each mostly on a cache line of its own.
class SpreadCounter {
public:
    void add(std::uint64_t n = 1) { lines_[line()].value.fetch_add(n, std::memory_order_relaxed); }
    std::uint64_t get() const {
        std::uint64_t sum = 0;
        for (const Line& line : lines_) sum += line.value.load(std::memory_order_relaxed);
        return sum;
    }
    void clear() {
        for (Line& line : lines_) line.value.store(0, std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t kLines = 8;
    struct alignas(64) Line {
        std::atomic<std::uint64_t> value{0};
    };
    static std::size_t line() {
        static std::atomic<std::size_t> next{0};
        static thread_local const std::size_t own = next.fetch_add(1, std::memory_order_relaxed) % kLines;
        return own;
    }
    std::array<Line, kLines> lines_;
};

struct RungCounters {
    Counter hits, misses, samples, sampled_ns;
};

inline constexpr std::uint64_t kSampleEvery = 64;
inline constexpr double kFallbackAlarm = 0.10;

class alignas(64) Shard {
public:
    Counter calls, failed_calls;
    RungCounters exact, symbolic;
    Counter compiled_ops, interpreted_ops, typed_calls;
    Counter launches, region_exits;
    Counter device_launches, library_launches, device_syncs, device_copied_bytes;
    Counter device_variants, device_stand_ins, device_compile_waits, device_compile_wait_ns;
    Counter graph_launches, graph_misfits;

    // True for one call in kSampleEvery.
    bool sample() { return (ticks_++ & (kSampleEvery - 1)) == 0; }

private:
    friend class Telemetry;
    struct Key {
        std::string op, reason, function;
        std::int32_t line;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    struct Cell {
        std::uint64_t count = 0;
        std::uint64_t ns = 0;
    };
    std::uint64_t ticks_ = 0;
    std::mutex mutex_;  // of the heat map only
    std::unordered_map<Key, Cell, KeyHash> heat_;
};

// One compiled region as telemetry knows it. Owned by the entry: Telemetry forgets it when the entry goes, or earlier
// when it is told to. Hits are added by any thread.
struct EntryRecord {
    EntryStats stats;  // fixed once registered, but for hits
    SpreadCounter hits;
};

// Why a region has no code: left to the interpreter by design, which is no failure, or refused by a stage.
enum class NotCompiled : std::uint8_t { kByDesign, kFailed };

class Telemetry {
public:
    Telemetry();

    std::shared_ptr<Shard> make_shard();

    void record_fallback(Shard& shard, std::string_view op, std::string_view reason, std::string_view function,
                         std::int32_t line, std::uint64_t ns);
    void record_compile(const std::shared_ptr<EntryRecord>& entry);
    void record_not_compiled(NotCompiled why, std::string_view function, std::int32_t line, std::string text,
                             double seconds);
    void record_eviction(std::string_view function, std::int32_t line, std::string text);
    void forget(const EntryRecord* entry);  // it serves no call from now on; null: an entry without code
    void forget_entries();
    void record_event(Event event);  // sequence and seconds are filled in

    std::uint64_t compilations() const;

    std::atomic<std::uint64_t> kernels_compiled{0}, kernel_cache_hits{0}, code_bytes{0}, packed_weight_bytes{0};
    std::atomic<std::uint64_t> graphs_built{0}, graphs_refused{0}, graphs_evicted{0};

    Stats snapshot() const;  // all but the pool
    std::vector<Event> events(std::uint64_t after) const;
    void reset();
    void set_sink(std::function<void(const Event&)> sink);

private:
    static constexpr std::size_t kRing = 4096;
    std::uint64_t start_ns_;
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Shard>> shards_;
    std::vector<std::weak_ptr<EntryRecord>> entries_;  // in order of registration
    std::deque<Event> ring_;
    std::uint64_t sequence_ = 0;
    std::uint64_t compilations_ = 0, failed_compilations_ = 0, evictions_ = 0;
    double compile_seconds_ = 0;
    bool alarmed_ = false;
    std::function<void(const Event&)> sink_;
};

}  // namespace flexor::runtime
