#pragma once
// The buffer pool of a session: memory for values that live between kernels.
//
// Laws
//  M1  reserved <= hard limit, always (0: no limit). A request beyond it first gives idle memory back, then fails.
//  M2  While reserved <= soft limit, released memory is kept and reused. Beyond it idle memory goes back to the system,
//      the largest blocks first, then arenas, until reserved is within the limit or nothing is idle. What the caches of
//      other threads keep (a few small blocks of each size) goes back at their next release.
//  M3  Small blocks come in size classes with at most 12.5 % slack, large ones are rounded to 64 KiB. Before the pool
//      grows, an idle block that is larger serves: any small one, a large one of up to eight times the size. So a program
//      that has run at its largest sizes runs at smaller ones in the memory that is there. Before a large block or an
//      arena grows, idle blocks of as many bytes go back, so that reserved follows the peak of live memory.
//  M4  A block is aligned to 64 bytes and has 64 readable bytes after its end.
//  M5  Blocks may be released by any thread, and after the session is gone.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "flexor/tensor.h"

namespace flexor::runtime {

struct PoolOptions {
    std::uint64_t soft_limit = 0;  // 0: none
    std::uint64_t hard_limit = 0;  // 0: none
    bool poison = false;           // memory handed out is filled with 0xFF (NaN in every float format)
    // Where memory comes from; null: the system. See PoolAllocator in flexor/session.h.
    void* (*allocate)(void* context, std::size_t bytes, std::size_t alignment) = nullptr;
    void (*release)(void* context, void* data, std::size_t bytes) = nullptr;
    void* context = nullptr;
};

struct PoolGauges {
    std::uint64_t live_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    std::uint64_t peak_live_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    std::uint64_t growth_events = 0;
    std::uint64_t over_soft_events = 0;
    std::uint64_t hard_limit_events = 0;
    std::uint64_t shrunk_bytes = 0;
    std::uint64_t reuses = 0;
};

struct PoolEvent {
    enum class Kind : std::uint8_t { kGrowth, kOverSoft, kHardLimit } kind;
    std::uint64_t bytes;     // of the request
    std::uint64_t reserved;  // after it
    std::uint64_t live;
};

struct Block {
    void* data = nullptr;
    std::size_t capacity = 0;  // as the pool rounds it
};

class Pool;

// Free blocks of one thread: no lock and no shared write. Belongs to one thread at a time.
class PoolCache {
public:
    explicit PoolCache(std::shared_ptr<Pool> pool);
    ~PoolCache();
    PoolCache(const PoolCache&) = delete;
    PoolCache& operator=(const PoolCache&) = delete;

    Block allocate(std::size_t bytes);  // data is null beyond the limits
    void release(Block block);
    void flush();
    Pool& pool() { return *pool_; }
    const std::shared_ptr<Pool>& shared_pool() const { return pool_; }

private:
    static constexpr std::size_t kClasses = 96;
    static constexpr std::size_t kMaxCached = 64 * 1024;  // larger blocks go to the pool
    static constexpr int kDepth = 4;
    struct Bin {
        void* blocks[kDepth];
        int count = 0;
    };
    static std::size_t capacity_of(std::size_t class_index) { return (8 + (class_index & 7)) << (class_index / 8 + 3); }
    Block take(std::size_t class_index, std::size_t bytes);
    bool keep(Block block);  // false: there are enough of its class
    void fetch_returned();   // what tensors have given back on this thread's shelf
    void add_idle(std::int64_t bytes) {
        idle_bytes_.store(idle_bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    }
    friend class Pool;

    std::shared_ptr<Pool> pool_;
    Bin bins_[kClasses];
    std::uint64_t filled_[(kClasses + 63) / 64] = {};  // bins that hold a block, a bit each
    std::atomic<std::int64_t> idle_bytes_{0};          // of the bins; written by the thread alone
};

// Growing scratch memory of one thread: kept between runs, given back under pressure when no run uses it.
class Arena {
public:
    explicit Arena(std::shared_ptr<Pool> pool);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Between acquire and release the memory is the owner's. acquire is false if a run of this thread already holds it.
    bool acquire();
    void release();
    // At least `bytes`, contents undefined. Null beyond the limits. Only while acquired; earlier results become invalid
    // when it grows.
    void* reserve(std::size_t bytes) {
        if (bytes <= capacity_ && !poison_) return base_;
        return reserve_slow(bytes);
    }
    std::size_t capacity() const { return capacity_; }

private:
    friend class Pool;
    enum State : int { kIdle, kBusy, kReclaiming };
    void* reserve_slow(std::size_t bytes);
    void give_back();
    bool grow_memory(std::size_t wanted);

    std::shared_ptr<Pool> pool_;
    void* base_ = nullptr;
    std::size_t capacity_ = 0;
    bool poison_ = false;
    std::atomic<int> state_{kIdle};
};

class Pool : public std::enable_shared_from_this<Pool> {
public:
    static std::shared_ptr<Pool> create(const PoolOptions& options) { return std::shared_ptr<Pool>(new Pool(options)); }
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    Block allocate(std::size_t bytes);
    void release(Block block);

    // Small blocks that a tensor gives back wait on the shelf of the thread that drops it, for a cache to fetch them:
    // threads that run beside each other do not meet.
    void put_back(Block block);

    // A contiguous tensor on pool memory; undefined beyond the limits. Goes back when its last view dies.
    Tensor empty(DType dtype, std::span<const std::int64_t> sizes);
    // Hands a block over to a tensor.
    Tensor adopt(Block block, DType dtype, std::span<const std::int64_t> sizes);

    std::uint64_t trim();  // gives idle blocks and idle arenas back
    PoolGauges gauges() const;
    void reset_peaks();
    const PoolOptions& options() const { return options_; }
    void set_listener(std::function<void(const PoolEvent&)> listener);

    static std::size_t round_up(std::size_t bytes);  // the capacity that a request gets
    static std::size_t class_index(std::size_t bytes);

private:
    friend class PoolCache;
    friend class Arena;
    explicit Pool(const PoolOptions& options) : options_(options) {}

    bool over_soft() const { return beyond(options_.soft_limit, 0); }
    bool beyond(std::uint64_t limit, std::uint64_t more) const {
        return limit != 0 && reserved_.load(std::memory_order_relaxed) + more > limit;
    }
    void note_live(std::int64_t delta);
    void* take_memory(std::size_t capacity);
    void give_memory(void* data, std::size_t capacity);
    bool admit(std::size_t bytes, std::size_t idle_to_free, const Arena* keep, std::vector<PoolEvent>& events);
    std::uint64_t free_idle(std::uint64_t bytes);
    void keep_idle(Block block);
    void clear_shelves();
    std::uint64_t reclaim_arenas(const Arena* keep, std::uint64_t bytes);
    void shrink(std::uint64_t more, const Arena* keep);
    void tell(const std::vector<PoolEvent>& events);
    void grown(std::size_t bytes, std::vector<PoolEvent>& events);

    PoolOptions options_;
    mutable std::mutex mutex_;
    std::multimap<std::size_t, void*> idle_;                           // by capacity
    std::vector<std::multimap<std::size_t, void*>::node_type> spare_;  // nodes that idle_ does not use
    std::uint64_t idle_bytes_ = 0;
    struct alignas(64) Shelf {
        static constexpr std::size_t kDepth = 16;
        std::mutex mutex;  // taken after the pool's
        std::atomic<std::size_t> count{0};
        Block blocks[kDepth];
    };
    static constexpr std::size_t kShelves = 8;
    Shelf& own_shelf();
    Shelf shelves_[kShelves];
    std::vector<const PoolCache*> caches_;
    std::vector<Arena*> arenas_;
    std::function<void(const PoolEvent&)> listener_;
    std::atomic<std::uint64_t> reserved_{0};  // written under the mutex
    std::uint64_t peak_reserved_ = 0;
    std::uint64_t growth_events_ = 0, over_soft_events_ = 0, hard_limit_events_ = 0, shrunk_bytes_ = 0;
    // Blocks that have left the pool and arenas; what caches and shelves keep among them is idle, and the peak is of both.
    std::atomic<std::int64_t> live_{0};
    std::atomic<std::int64_t> peak_live_{0};
    std::atomic<std::uint64_t> reuses_{0};
};

}  // namespace flexor::runtime
