#pragma once
// What a thread keeps for an engine between calls: its view of modules, scratch memory, its shard of the counters.
// A context belongs to one thread at a time; the engine owns it and hands it on when the thread ends.
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/pool.h"
#include "runtime/telemetry.h"
#include "vm/module_state.h"
#include "vm/tape.h"

namespace flexor::vm {

struct ThreadContext {
    ThreadContext(const std::shared_ptr<runtime::Pool>& pool, std::shared_ptr<runtime::Shard> own_shard)
        : shard(std::move(own_shard)), cache(pool), arena(pool), workspace(pool) {}

    std::atomic<bool> taken{true};
    std::shared_ptr<runtime::Shard> shard;
    runtime::PoolCache cache;
    runtime::Arena arena, workspace;
    std::uint64_t generation = 0;  // of the engine's cache, when `modules` was filled
    std::unordered_map<std::uint64_t, std::unique_ptr<ThreadModule>> modules;
    ThreadModule* last = nullptr;
    std::vector<std::unique_ptr<Scratch>> scratches;
    std::size_t scratch_depth = 0;
    Words<std::int64_t> guard_frame;
    std::vector<Value> results;    // of Engine::run_into, between calls
    std::uint32_t run_depth = 0;   // runs of this thread that are under way
    std::uint32_t call_depth = 0;  // nested function calls
};

// A scratch of the context for the length of a scope.
class ScratchLease {
public:
    explicit ScratchLease(ThreadContext& context) : context_(context) {
        if (context.scratch_depth == context.scratches.size()) context.scratches.push_back(std::make_unique<Scratch>());
        scratch_ = context.scratches[context.scratch_depth++].get();
    }
    ~ScratchLease() { --context_.scratch_depth; }
    ScratchLease(const ScratchLease&) = delete;
    ScratchLease& operator=(const ScratchLease&) = delete;
    Scratch& operator*() const { return *scratch_; }
    Scratch* operator->() const { return scratch_; }

private:
    ThreadContext& context_;
    Scratch* scratch_;
};

}  // namespace flexor::vm
