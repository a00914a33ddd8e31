#include "runtime/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "support/check.h"

namespace flexor::runtime {

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;  // from here on blocks are mapped one by one
constexpr std::size_t kLargeUnit = 64 * 1024;
constexpr std::size_t kHuge = std::size_t{8} << 20;  // from here on large pages are asked for
constexpr std::size_t kGuard = 64;                   // readable bytes after a block

void* map_memory(std::size_t bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    if (bytes >= kHuge) ::madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

std::size_t with_guard(std::size_t capacity) {
    return capacity >= kLarge ? capacity : (capacity + kGuard + 63) / 64 * 64;
}

struct Adopted {
    std::shared_ptr<Pool> pool;
    Block block;
};

void release_adopted(void* context, void*) {
    auto* adopted = static_cast<Adopted*>(context);
    adopted->pool->put_back(adopted->block);
    delete adopted;
}

}  // namespace

// ---------------------------------------------------------------- sizes

std::size_t Pool::round_up(std::size_t bytes) {
    if (bytes <= 64) return 64;
    if (bytes + kGuard >= kLarge) {
        if (bytes > (std::size_t{1} << 62)) return 0;
        return (bytes + kGuard + kLargeUnit - 1) / kLargeUnit * kLargeUnit;
    }
    // Eight steps per power of two: at most 12.5 % slack. Below 512 bytes steps of 64.
    const std::size_t step = std::max<std::size_t>(64, std::bit_floor(bytes - 1) / 8);
    return (bytes + step - 1) / step * step;
}

std::size_t Pool::class_index(std::size_t capacity) {
    // `capacity` is a result of round_up below kLarge: (exponent, eighth) pairs, dense from 64 bytes up.
    const unsigned exponent = static_cast<unsigned>(std::bit_width(capacity)) - 1;
    return (exponent - 6) * 8 + ((capacity >> (exponent - 3)) & 7);
}

// ---------------------------------------------------------------- pool

Pool::~Pool() {
    clear_shelves();
    for (const auto& [capacity, data] : idle_) give_memory(data, capacity);
}

void* Pool::take_memory(std::size_t capacity) {
    if (options_.allocate != nullptr)
        return options_.allocate(options_.context, with_guard(capacity), kTensorAlignment);
    return capacity >= kLarge ? map_memory(capacity) : std::aligned_alloc(kTensorAlignment, with_guard(capacity));
}

void Pool::give_memory(void* data, std::size_t capacity) {
    if (options_.release != nullptr)
        options_.release(options_.context, data, with_guard(capacity));
    else if (capacity >= kLarge)
        ::munmap(data, capacity);
    else
        std::free(data);
}

void Pool::set_listener(std::function<void(const PoolEvent&)> listener) {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
}

void Pool::tell(const std::vector<PoolEvent>& events) {
    if (events.empty()) return;
    try {
        std::function<void(const PoolEvent&)> listener;
        {
            std::lock_guard lock(mutex_);
            listener = listener_;
        }
        if (!listener) return;
        for (const PoolEvent& event : events) listener(event);
    } catch (const std::bad_alloc&) {  // an event that nobody hears is better than memory that nobody owns
    }
}

void Pool::note_live(std::int64_t delta) {
    const std::int64_t live = live_.fetch_add(delta, std::memory_order_relaxed) + delta;
    if (delta <= 0) return;
    std::int64_t peak = peak_live_.load(std::memory_order_relaxed);
    while (live > peak && !peak_live_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
}

Pool::Shelf& Pool::own_shelf() {
    static std::atomic<std::size_t> next{0};
    static thread_local const std::size_t own = next.fetch_add(1, std::memory_order_relaxed) % kShelves;
    return shelves_[own];
}

void Pool::put_back(Block block) {
    if (block.capacity <= PoolCache::kMaxCached && !over_soft()) {
        Shelf& shelf = own_shelf();
        const std::lock_guard lock(shelf.mutex);
        const std::size_t count = shelf.count.load(std::memory_order_relaxed);
        if (count < Shelf::kDepth) {
            shelf.blocks[count] = block;
            shelf.count.store(count + 1, std::memory_order_release);
            return;
        }
    }
    release(block);
}

// Remembers an idle block, or gives it to the system where there is no memory to remember it in. Caller holds the lock.
void Pool::keep_idle(Block block) {
    if (spare_.empty()) {
        try {
            idle_.emplace(block.capacity, block.data);
        } catch (const std::bad_alloc&) {
            give_memory(block.data, block.capacity);
            reserved_ -= block.capacity;
            shrunk_bytes_ += block.capacity;
            return;
        }
    } else {
        auto node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = block.capacity;
        node.mapped() = block.data;
        idle_.insert(std::move(node));
    }
    idle_bytes_ += block.capacity;
}

// Caller holds the lock.
void Pool::clear_shelves() {
    for (Shelf& shelf : shelves_) {
        const std::lock_guard lock(shelf.mutex);
        for (std::size_t i = 0; i < shelf.count.load(std::memory_order_relaxed); ++i) {
            note_live(-static_cast<std::int64_t>(shelf.blocks[i].capacity));
            keep_idle(shelf.blocks[i]);
        }
        shelf.count.store(0, std::memory_order_relaxed);
    }
}

// Frees idle blocks, largest first, until `bytes` are gone. Caller holds the lock.
std::uint64_t Pool::free_idle(std::uint64_t bytes) {
    clear_shelves();
    std::uint64_t freed = 0;
    while (freed < bytes && !idle_.empty()) {
        const auto last = std::prev(idle_.end());
        give_memory(last->second, last->first);
        freed += last->first;
        idle_.erase(last);
    }
    idle_bytes_ -= freed;
    reserved_ -= freed;
    return freed;
}

// Takes the memory of arenas that no run uses until `bytes` are gone. Caller holds the lock.
std::uint64_t Pool::reclaim_arenas(const Arena* keep, std::uint64_t bytes) {
    std::uint64_t freed = 0;
    for (Arena* arena : arenas_) {
        if (freed >= bytes) break;
        int idle = Arena::kIdle;
        if (arena == keep ||
            !arena->state_.compare_exchange_strong(idle, Arena::kReclaiming, std::memory_order_acquire))
            continue;
        if (arena->base_ != nullptr) {
            arena->give_back();
            freed += arena->capacity_;
            note_live(-static_cast<std::int64_t>(arena->capacity_));
            arena->base_ = nullptr;
            arena->capacity_ = 0;
        }
        arena->state_.store(Arena::kIdle, std::memory_order_release);
    }
    reserved_ -= freed;
    return freed;
}

// Gives idle memory back while, with `more`, more is reserved than the soft limit. Caller holds the lock.
void Pool::shrink(std::uint64_t more, const Arena* keep) {
    const std::uint64_t soft = options_.soft_limit;
    if (beyond(soft, more)) shrunk_bytes_ += free_idle(reserved_ + more - soft);
    if (beyond(soft, more)) shrunk_bytes_ += reclaim_arenas(keep, reserved_ + more - soft);
}

// Makes room for `bytes` more from the system, or refuses. Caller holds the lock.
bool Pool::admit(std::size_t bytes, std::size_t idle_to_free, const Arena* keep, std::vector<PoolEvent>& events) {
    if (idle_to_free > 0) free_idle(idle_to_free);
    shrink(bytes, keep);
    const std::uint64_t hard = options_.hard_limit;
    if (beyond(hard, bytes)) free_idle(reserved_ + bytes - hard);
    if (beyond(hard, bytes)) reclaim_arenas(keep, reserved_ + bytes - hard);
    if (!beyond(hard, bytes)) return true;
    ++hard_limit_events_;
    events.push_back({PoolEvent::Kind::kHardLimit, bytes, reserved_,
                      static_cast<std::uint64_t>(live_.load(std::memory_order_relaxed))});
    return false;
}

constexpr std::size_t kMostEventsOfGrowth = 2;

// Books `bytes` taken from the system; `events` has room. Caller holds the lock.
void Pool::grown(std::size_t bytes, std::vector<PoolEvent>& events) {
    const bool was_over = over_soft();
    reserved_ += bytes;
    ++growth_events_;
    peak_reserved_ = std::max<std::uint64_t>(peak_reserved_, reserved_);
    const auto live = static_cast<std::uint64_t>(live_.load(std::memory_order_relaxed));
    if (bytes >= kLargeUnit) events.push_back({PoolEvent::Kind::kGrowth, bytes, reserved_, live});
    if (over_soft() && !was_over) {
        ++over_soft_events_;
        events.push_back({PoolEvent::Kind::kOverSoft, bytes, reserved_, live});
    }
}

Block Pool::allocate(std::size_t bytes) {
    const std::size_t capacity = round_up(bytes);
    if (capacity == 0) return {};
    Block block;
    std::vector<PoolEvent> events;
    {
        std::lock_guard lock(mutex_);
        const auto fits = [&](auto at) {
            return at != idle_.end() && (at->first < kLarge || at->first / 8 <= capacity);
        };
        auto found = idle_.lower_bound(capacity);
        if (!fits(found)) {
            clear_shelves();
            found = idle_.lower_bound(capacity);
        }
        if (fits(found)) {
            if (spare_.size() == spare_.capacity()) spare_.reserve(2 * spare_.size() + 8);
            block = {found->second, found->first};
            idle_bytes_ -= found->first;
            spare_.push_back(idle_.extract(found));
            reuses_.fetch_add(1, std::memory_order_relaxed);
        } else if (admit(capacity, capacity >= kLarge ? capacity : 0, nullptr, events)) {
            events.reserve(events.size() + kMostEventsOfGrowth);
            void* data = take_memory(capacity);
            if (data == nullptr) {
                free_idle(~std::uint64_t{0});
                data = take_memory(capacity);
            }
            if (data != nullptr) {
                block = {data, capacity};
                grown(capacity, events);
            }
        }
    }
    tell(events);
    if (block.data == nullptr) return block;
    note_live(static_cast<std::int64_t>(block.capacity));
    if (options_.poison) std::memset(block.data, 0xFF, bytes);
    return block;
}

void Pool::release(Block block) {
    if (block.data == nullptr) return;
    note_live(-static_cast<std::int64_t>(block.capacity));
    std::lock_guard lock(mutex_);
    keep_idle(block);
    shrink(0, nullptr);
}

Tensor Pool::adopt(Block block, DType dtype, std::span<const std::int64_t> sizes) {
    std::int64_t strides[kMaxRank];
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= std::max<std::int64_t>(sizes[i], 1);
    }
    auto adopted = std::make_unique<Adopted>(Adopted{shared_from_this(), block});
    Tensor tensor =
        Tensor::from_blob(block.data, dtype, sizes, {strides, sizes.size()}, release_adopted, adopted.get());
    static_cast<void>(adopted.release());
    return tensor;
}

Tensor Pool::empty(DType dtype, std::span<const std::int64_t> sizes) {
    std::size_t bytes = dtype_size(dtype);
    for (std::int64_t size : sizes) {
        if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) return {};
    }
    const Block block = allocate(bytes);
    if (block.data == nullptr) return {};
    try {
        return adopt(block, dtype, sizes);
    } catch (...) {
        release(block);
        throw;
    }
}

std::uint64_t Pool::trim() {
    std::lock_guard lock(mutex_);
    return free_idle(~std::uint64_t{0}) + reclaim_arenas(nullptr, ~std::uint64_t{0});
}

PoolGauges Pool::gauges() const {
    std::lock_guard lock(mutex_);
    PoolGauges gauges;
    std::int64_t live = live_.load(std::memory_order_relaxed);
    for (const PoolCache* cache : caches_) live -= cache->idle_bytes_.load(std::memory_order_relaxed);
    for (const Shelf& shelf : shelves_) {
        const std::lock_guard held(const_cast<std::mutex&>(shelf.mutex));
        for (std::size_t i = 0; i < shelf.count.load(std::memory_order_relaxed); ++i)
            live -= static_cast<std::int64_t>(shelf.blocks[i].capacity);
    }
    // A block may be on its way between a cache and its owner.
    gauges.live_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(live, 0));
    gauges.peak_live_bytes = static_cast<std::uint64_t>(peak_live_.load(std::memory_order_relaxed));
    gauges.reserved_bytes = reserved_;
    gauges.peak_reserved_bytes = peak_reserved_;
    gauges.growth_events = growth_events_;
    gauges.over_soft_events = over_soft_events_;
    gauges.hard_limit_events = hard_limit_events_;
    gauges.shrunk_bytes = shrunk_bytes_;
    gauges.reuses = reuses_.load(std::memory_order_relaxed);
    return gauges;
}

void Pool::reset_peaks() {
    std::lock_guard lock(mutex_);
    peak_live_.store(live_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    peak_reserved_ = reserved_;
    growth_events_ = over_soft_events_ = hard_limit_events_ = shrunk_bytes_ = 0;
    reuses_.store(0, std::memory_order_relaxed);
}

// ---------------------------------------------------------------- cache

PoolCache::PoolCache(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {
    const std::lock_guard lock(pool_->mutex_);
    pool_->caches_.push_back(this);
}

PoolCache::~PoolCache() {
    flush();
    const std::lock_guard lock(pool_->mutex_);
    std::erase(pool_->caches_, this);
}

bool PoolCache::keep(Block block) {
    if (block.capacity > kMaxCached) return false;
    const std::size_t index = Pool::class_index(block.capacity);
    Bin& bin = bins_[index];
    if (bin.count == kDepth) return false;
    bin.blocks[bin.count++] = block.data;
    filled_[index / 64] |= std::uint64_t{1} << (index % 64);
    add_idle(static_cast<std::int64_t>(block.capacity));
    return true;
}

void PoolCache::fetch_returned() {
    Pool::Shelf& shelf = pool_->own_shelf();
    if (shelf.count.load(std::memory_order_acquire) == 0) return;
    const std::lock_guard lock(shelf.mutex);
    std::size_t left = 0;
    for (std::size_t i = 0; i < shelf.count.load(std::memory_order_relaxed); ++i) {
        if (!keep(shelf.blocks[i])) shelf.blocks[left++] = shelf.blocks[i];
    }
    shelf.count.store(left, std::memory_order_relaxed);
}

Block PoolCache::take(std::size_t class_index, std::size_t bytes) {
    Bin& bin = bins_[class_index];
    const Block block{bin.blocks[--bin.count], capacity_of(class_index)};
    if (bin.count == 0) filled_[class_index / 64] &= ~(std::uint64_t{1} << (class_index % 64));
    add_idle(-static_cast<std::int64_t>(block.capacity));
    if (pool_->options_.poison) std::memset(block.data, 0xFF, bytes);
    return block;
}

Block PoolCache::allocate(std::size_t bytes) {
    if (bytes <= kMaxCached) {
        const std::size_t wanted = Pool::class_index(Pool::round_up(bytes));
        if (bins_[wanted].count == 0) fetch_returned();
        if (bins_[wanted].count > 0) return take(wanted, bytes);
        std::uint64_t mask = ~std::uint64_t{0} << (wanted % 64);
        for (std::size_t word = wanted / 64; word < std::size(filled_); ++word, mask = ~std::uint64_t{0}) {
            if (const std::uint64_t larger = filled_[word] & mask)
                return take(word * 64 + static_cast<std::size_t>(std::countr_zero(larger)), bytes);
        }
    }
    // What this cache keeps is idle memory too (M1).
    if (pool_->beyond(pool_->options_.hard_limit, Pool::round_up(bytes))) flush();
    return pool_->allocate(bytes);
}

void PoolCache::release(Block block) {
    if (block.data == nullptr) return;
    if (pool_->over_soft()) {
        flush();
    } else if (keep(block)) {
        return;
    }
    pool_->release(block);
}

void PoolCache::flush() {
    for (std::size_t i = 0; i < kClasses; ++i) {
        Bin& bin = bins_[i];
        const std::size_t capacity = capacity_of(i);
        while (bin.count > 0) {
            add_idle(-static_cast<std::int64_t>(capacity));
            pool_->release({bin.blocks[--bin.count], capacity});
        }
    }
    std::fill(std::begin(filled_), std::end(filled_), 0);
}

// ---------------------------------------------------------------- arena

Arena::Arena(std::shared_ptr<Pool> pool) : pool_(std::move(pool)), poison_(pool_->options_.poison) {
    std::lock_guard lock(pool_->mutex_);
    pool_->arenas_.push_back(this);
}

Arena::~Arena() {
    std::lock_guard lock(pool_->mutex_);
    std::erase(pool_->arenas_, this);
    if (base_ == nullptr) return;
    give_back();
    pool_->reserved_ -= capacity_;
    pool_->note_live(-static_cast<std::int64_t>(capacity_));
}

bool Arena::acquire() {
    int seen = kIdle;
    while (!state_.compare_exchange_weak(seen, kBusy, std::memory_order_acquire)) {
        if (seen == kBusy) return false;
        seen = kIdle;  // a reclaimer is about to finish
    }
    return true;
}

void Arena::release() {
    state_.store(kIdle, std::memory_order_release);
    if (!pool_->over_soft()) return;
    std::lock_guard lock(pool_->mutex_);
    pool_->shrink(0, nullptr);
}

// Whatever books are kept of it is the caller's.
void Arena::give_back() {
    if (pool_->options_.release != nullptr)
        pool_->options_.release(pool_->options_.context, base_, capacity_);
    else
        ::munmap(base_, capacity_);
}

// Growing in place keeps the pages that are already backed; only the new ones cost a first touch. False: what was there
// is there still, or, of a host's allocator, nothing is.
bool Arena::grow_memory(std::size_t wanted) {
    if (pool_->options_.allocate != nullptr) {
        if (base_ != nullptr) give_back();
        pool_->reserved_ -= capacity_;
        pool_->note_live(-static_cast<std::int64_t>(capacity_));
        base_ = pool_->options_.allocate(pool_->options_.context, wanted, kTensorAlignment);
        capacity_ = 0;
        return base_ != nullptr;
    }
    void* data = base_ == nullptr ? map_memory(wanted) : ::mremap(base_, capacity_, wanted, MREMAP_MAYMOVE);
    if (data == nullptr || data == MAP_FAILED) return false;
    if (wanted >= kHuge) ::madvise(data, wanted, MADV_HUGEPAGE);
    base_ = data;
    return true;
}

void* Arena::reserve_slow(std::size_t bytes) {
    FLEXOR_DCHECK(state_.load(std::memory_order_relaxed) == kBusy);
    if (bytes > capacity_ || base_ == nullptr) {
        if (bytes > (std::size_t{1} << 62)) return nullptr;
        const std::size_t wanted = (bytes + kGuard + kLargeUnit - 1) / kLargeUnit * kLargeUnit;
        std::size_t more = wanted - capacity_;
        std::vector<PoolEvent> events;
        bool grown = false;
        {
            std::lock_guard lock(pool_->mutex_);
            events.reserve(kMostEventsOfGrowth + 1);
            if (pool_->admit(more, more, this, events) && grow_memory(wanted)) {
                more = wanted - capacity_;
                capacity_ = wanted;
                pool_->grown(more, events);
                grown = true;
            }
        }
        if (grown) pool_->note_live(static_cast<std::int64_t>(more));
        pool_->tell(events);
        if (!grown) return nullptr;
    }
    if (poison_) std::memset(base_, 0xFF, bytes);
    return base_;
}

}  // namespace flexor::runtime
