#pragma once
// What a thread keeps for an engine between calls: exact tables, snapshots, scratch memory, its shard of the counters.
// A context belongs to one thread at a time; the engine owns it and hands it on when the thread ends.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/pool.h"
#include "runtime/telemetry.h"
#include "vm/ladder.h"
#include "vm/tape.h"

namespace flexor::vm {

// Facts about a function that every call needs.
struct FunctionFacts {
    bool writes = false;                   // it, or what it calls, writes to tensors
    bool grows_lists = false;              // it has a loop, and appends to lists
    std::vector<types::SymbolId> symbols;  // of the module, that attributes name
    std::vector<std::uint32_t> numbers;    // number_parameters()
};

// Shared by all threads: the safe points of one Module.
struct ModuleState {
    std::uint64_t id = 0;
    std::weak_ptr<const bytecode::Module> module;
    std::vector<FunctionFacts> facts;
    std::mutex mutex;
    std::vector<std::vector<std::unique_ptr<EntryPoint>>> points;  // by function and pc; made on first use
    std::map<std::pair<std::int32_t, std::int32_t>, bytecode::ModuleRef> one_op;  // by function and site; null: none

    EntryPoint* point(std::int32_t function, std::int32_t pc);
    // A Module whose main is that call site alone, so that one op can run as a region; null where an attribute names a
    // symbol or the number of results is not known.
    bytecode::ModuleRef one_op_module(const bytecode::Module& owner, std::int32_t function, std::int32_t site);
};

// The same as one thread sees it.
struct ThreadModule {
    std::shared_ptr<ModuleState> state;
    std::vector<std::vector<std::unique_ptr<ThreadEntryPoint>>> points;

    ThreadEntryPoint& point(std::int32_t function, std::int32_t pc) {
        auto& at = points[static_cast<std::size_t>(function)][static_cast<std::size_t>(pc)];
        if (at == nullptr) {
            auto made = std::make_unique<ThreadEntryPoint>();
            made->shared = state->point(function, pc);
            at = std::move(made);
        }
        return *at;
    }
};

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
