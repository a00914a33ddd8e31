#pragma once
// The memory of one run: what buffer slots and lists hold, counted, and the arena.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "flexor/tensor.h"
#include "runtime/pool.h"

namespace flexor::vm {

// Memory that one run owns.
struct Owned {
    runtime::Block block;  // pool memory, until it becomes part of a tensor
    Tensor tensor;         // memory that leaves, or has left, as a tensor
    bool callers = false;  // it was the caller's before the run
    std::int32_t references = 0;
    std::int32_t next_free = -1;
};

class RunMemory {
public:
    // `table` is kept between runs and begins empty of memory.
    RunMemory(std::vector<Owned>& table, runtime::PoolCache& cache) : table_(table), cache_(cache) {}
    RunMemory(const RunMemory&) = delete;
    RunMemory& operator=(const RunMemory&) = delete;

    // Whatever the run still owns goes back, also when a host function throws.
    ~RunMemory() {
        for (std::size_t i = 0; i < count_; ++i) drop(table_[i]);
    }

    // A new owner, which nobody holds yet.
    std::int32_t add(runtime::Block block) {
        try {
            const std::int32_t owner = fresh();
            at(owner).block = block;
            return owner;
        } catch (...) {  // no room in the table
            cache_.release(block);
            throw;
        }
    }
    std::int32_t add(Tensor tensor) {
        const std::int32_t owner = fresh();
        at(owner).tensor = std::move(tensor);
        return owner;
    }
    Owned& at(std::int32_t owner) { return table_[static_cast<std::size_t>(owner)]; }

    // Memory that the run does not own has a negative owner: nothing is counted.
    void retain(std::int32_t owner) {
        if (owner >= 0) ++at(owner).references;
    }
    void release(std::int32_t owner) {
        if (owner < 0 || --at(owner).references > 0) return;
        drop(at(owner));
        at(owner).next_free = free_;
        free_ = owner;
    }

private:
    void drop(Owned& owned) {
        if (owned.block.data != nullptr) cache_.release(owned.block);
        owned.block = {};
        owned.tensor = Tensor();
        owned.callers = false;
    }

    std::int32_t fresh() {
        if (free_ >= 0) {
            const std::int32_t owner = free_;
            free_ = at(owner).next_free;
            return owner;
        }
        if (count_ == table_.size()) table_.emplace_back();
        table_[count_].references = 0;
        return static_cast<std::int32_t>(count_++);
    }

    std::vector<Owned>& table_;
    runtime::PoolCache& cache_;
    std::size_t count_ = 0;
    std::int32_t free_ = -1;
};

// An arena for the length of a run; a run inside the run gets one of its own.
class ArenaLease {
public:
    ArenaLease(runtime::Arena* arena, const std::shared_ptr<runtime::Pool>& pool) {
        if (arena->acquire()) {
            arena_ = arena;
        } else {
            own_.emplace(pool);
            own_->acquire();
            arena_ = &*own_;
        }
    }
    ~ArenaLease() { arena_->release(); }
    ArenaLease(const ArenaLease&) = delete;
    ArenaLease& operator=(const ArenaLease&) = delete;
    void* reserve(std::size_t bytes) { return arena_->reserve(bytes); }

private:
    std::optional<runtime::Arena> own_;
    runtime::Arena* arena_;
};

}  // namespace flexor::vm
