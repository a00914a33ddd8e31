#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/placement.h"
#include "runtime/stop_check.h"
#include "support/environment.h"

namespace flexor::runtime {
namespace {

using support::kMaxThreads;

constexpr std::size_t kPlacedWorkers = 4;  // with more of them, placing each costs more than it gains
constexpr int kSpins = 4000;               // 20 to 60 microseconds

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// One call of parallel_for. Owned by the pool and reused, so that a worker that wakes late may still look at it.
struct Job {
    SlotBody body = nullptr;
    void* context = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
    std::int64_t chunks = 0;
    int max_slots = 0;
    StopCheck* stop = nullptr;
    int users = 0;  // threads that may look at this job; guarded by the pool's mutex
    // The caller takes chunks from the front, workers from the back: in a loop over the same job each of them finds in
    // its caches what it has read the time before. Whoever takes one claims it first.
    alignas(64) std::atomic<std::int64_t> claimed{0};
    std::atomic<std::int64_t> front{0}, back{0};
    alignas(64) std::atomic<std::int64_t> left{0};

    void work(int slot) {
        while (claimed.fetch_add(1, std::memory_order_relaxed) < chunks) {
            std::int64_t chunk = slot == 0 ? front.fetch_add(1, std::memory_order_relaxed)
                                           : chunks - 1 - back.fetch_add(1, std::memory_order_relaxed);
            std::int64_t begin = chunk * grain;
            if (!stop_requested()) body(context, slot, begin, grain < count - begin ? begin + grain : count);
            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();
        }
    }

    void wait() {
        for (int spin = 0; spin < kSpins; ++spin) {
            if (left.load(std::memory_order_acquire) == 0) return;
            pause();
        }
        for (;;) {
            std::int64_t value = left.load(std::memory_order_acquire);
            if (value == 0) return;
            left.wait(value, std::memory_order_acquire);
        }
    }
};

thread_local int body_slot = -1;  // the slot of the body this thread runs, -1 outside

class SlotScope {
public:
    explicit SlotScope(int slot) : before_(body_slot) { body_slot = slot; }
    ~SlotScope() { body_slot = before_; }

private:
    int before_;
};

void run_alone(SlotBody body, void* context, std::int64_t count, std::int64_t grain) {
    const StopCheck* const stop = current_stop_check();
    if (stop != nullptr && stop->stopped()) return;
    for (std::int64_t begin = 0; begin < count;) {
        if (begin > 0 && stop_requested()) return;
        std::int64_t end = grain < count - begin ? begin + grain : count;
        body(context, 0, begin, end);
        begin = end;
    }
}

class Pool {
public:
    void start(int wanted) {
        std::unique_lock lock(mutex_);
        ensure_workers(wanted);
        begun_.wait(lock, [&] { return places_.size() >= static_cast<std::size_t>(workers_); });
        // A worker that wakes late keeps the job of a call that is over: one for each of them, and for some callers.
        constexpr std::size_t kCallers = 16;
        const std::size_t jobs = static_cast<std::size_t>(workers_) + kCallers;
        jobs_.reserve(jobs);
        while (jobs_.size() < jobs) {
            jobs_.push_back(std::make_unique<Job>());
            free_.push_back(jobs_.back().get());
        }
        free_.reserve(jobs_.size());
        open_.reserve(jobs_.size());
    }

    void run(SlotBody body, void* context, std::int64_t count, std::int64_t grain, std::int64_t chunks, int slots) {
        Job* job = nullptr;
        {
            std::lock_guard lock(mutex_);
            ensure_workers(slots - 1);
            if (!workers_) {
                job = nullptr;
            } else {
                job = acquire();
                job->body = body;
                job->context = context;
                job->count = count;
                job->grain = grain;
                job->chunks = chunks;
                job->max_slots = slots;
                job->stop = current_stop_check();
                job->users = 1;
                job->left.store(chunks, std::memory_order_relaxed);
                job->claimed.store(0, std::memory_order_relaxed);
                job->front.store(0, std::memory_order_relaxed);
                job->back.store(0, std::memory_order_relaxed);
                open_.push_back(job);
                epoch_.fetch_add(1, std::memory_order_release);
                if (places_.size() <= kPlacedWorkers) {
                    for (const auto& place : places_) {
                        if (place->asleep) place->keep_off_this_processor();
                    }
                }
            }
        }
        SlotScope scope(0);
        if (!job) return run_alone(body, context, count, grain);
        std::int64_t wanted = std::min<std::int64_t>(chunks - 1, slots - 1);
        if (sleepers_.load(std::memory_order_seq_cst) > 0) {
            if (wanted == 1) {
                wake_.notify_one();
            } else {
                wake_.notify_all();
            }
        }
        job->work(0);
        {
            std::lock_guard lock(mutex_);
            std::erase(open_, job);
        }
        job->wait();
        std::lock_guard lock(mutex_);
        release(job);
    }

private:
    // Starts workers until `wanted` exist; fewer if the system refuses.
    void ensure_workers(int wanted) {
        while (workers_ < wanted) {
            try {
                std::thread([this, slot = workers_ + 1] { serve(slot); }).detach();
            } catch (const std::system_error&) {
                return;
            }
            ++workers_;
        }
    }

    Job* acquire() {
        if (free_.empty()) {
            jobs_.push_back(std::make_unique<Job>());
            return jobs_.back().get();
        }
        Job* job = free_.back();
        free_.pop_back();
        return job;
    }

    void release(Job* job) {
        if (--job->users == 0) free_.push_back(job);
    }

    // An open job that worker `slot` may join and that still has chunks.
    Job* find(int slot) {
        for (Job* job : open_) {
            if (slot < job->max_slots && job->claimed.load(std::memory_order_relaxed) < job->chunks) return job;
        }
        return nullptr;
    }

    void serve(int slot) {
        body_slot = slot;
        std::uint64_t seen = 0;
        std::unique_lock lock(mutex_);
        WorkerPlace& place = *places_.emplace_back(std::make_unique<WorkerPlace>(pthread_self()));
        begun_.notify_all();
        for (;;) {
            if (Job* job = find(slot)) {
                ++job->users;
                lock.unlock();
                {
                    const StopScope scope(job->stop, StopScope::Role::kHelper);
                    job->work(slot);
                }
                lock.lock();
                release(job);
                continue;
            }
            seen = epoch_.load(std::memory_order_acquire);
            lock.unlock();
            for (int spin = 0; spin < kSpins && epoch_.load(std::memory_order_acquire) == seen; ++spin) pause();
            lock.lock();
            if (epoch_.load(std::memory_order_acquire) != seen) continue;
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            place.asleep = true;
            wake_.wait(lock, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
            place.asleep = false;
            place.settle();
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, begun_;
    std::vector<std::unique_ptr<Job>> jobs_;
    std::vector<Job*> free_;
    std::vector<Job*> open_;
    std::vector<std::unique_ptr<WorkerPlace>> places_;  // of the workers that have begun
    int workers_ = 0;
    std::atomic<std::uint64_t> epoch_{0};
    std::atomic<int> sleepers_{0};
};

// Never destroyed: its threads may outlive main. A forked child has none of them, so it forgets the pool and makes
// another at its first call.
std::atomic<Pool*> current_pool{nullptr};

Pool& pool() {
    Pool* found = current_pool.load(std::memory_order_acquire);
    if (found) return *found;
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr, std::memory_order_release); });
    (void)registered;
    Pool* fresh = new Pool;
    if (!current_pool.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) {
        delete fresh;
        return *found;
    }
    return *fresh;
}

// What OpenMP would use; its list of nested counts begins with the outermost. 0: not said.
int threads_of_openmp() {
    const char* text = std::getenv("OMP_NUM_THREADS");
    return text ? std::clamp(std::atoi(text), 0, kMaxThreads) : 0;
}

// The processors a control group's quota amounts to, 0 where there is no quota.
int quota_of_control_group() {
    auto rounded_up = [](double quota, double period) {
        return quota > 0 && period > 0 ? static_cast<int>((quota + period - 1) / period) : 0;
    };
    if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
        double quota = 0, period = 0;
        int fields = std::fscanf(file, "%lf %lf", &quota, &period);
        std::fclose(file);
        return fields == 2 ? rounded_up(quota, period) : 0;
    }
    double quota = 0, period = 0;
    for (auto [path, value] : {std::pair{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota},
                               std::pair{"/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period}}) {
        std::FILE* file = std::fopen(path, "r");
        if (!file) return 0;
        if (std::fscanf(file, "%lf", value) != 1) *value = 0;
        std::fclose(file);
    }
    return rounded_up(quota, period);
}

std::atomic<int> chosen_count{0};  // 0: not chosen yet

}  // namespace

int default_thread_count() {
    // A value that makes no sense is refused by the Session.
    if (const auto chosen = support::threads_from_environment(); chosen && *chosen) return **chosen;
    int count = static_cast<int>(std::thread::hardware_concurrency());
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
    if (int quota = quota_of_control_group()) count = std::min(count, quota);
    if (int omp = threads_of_openmp()) count = std::min(count, omp);
    return std::clamp(count, 1, kMaxThreads);
}

int thread_count() {
    int count = chosen_count.load(std::memory_order_relaxed);
    if (count) return count;
    int expected = 0;
    count = default_thread_count();
    return chosen_count.compare_exchange_strong(expected, count) ? count : expected;
}

void start_workers() {
    if (const int count = thread_count(); count > 1) pool().start(count - 1);
}

void set_thread_count(int count) { chosen_count.store(std::clamp(count, 1, kMaxThreads)); }

void parallel_for_slots(SlotBody body, void* context, std::int64_t count, std::int64_t grain, int max_slots) {
    if (count <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    std::int64_t chunks = (count - 1) / grain + 1;
    bool nested = body_slot >= 0;
    int slots = std::min(max_slots, thread_count());
    if (nested || slots <= 1 || chunks == 1) {
        // A nested call is alone on its own scratch, which belongs to this call: slot 0.
        SlotScope scope(nested ? body_slot : 0);
        return run_alone(body, context, count, grain);
    }
    pool().run(body, context, count, grain, chunks, slots);
}

void parallel_for(RangeBody body, void* context, std::int64_t count, std::int64_t grain) {
    struct Plain {
        RangeBody body;
        void* context;
    } plain{body, context};
    parallel_for_slots(
        [](void* p, int, std::int64_t begin, std::int64_t end) {
            auto* inner = static_cast<Plain*>(p);
            inner->body(inner->context, begin, end);
        },
        &plain, count, grain, kMaxThreads);
}

}  // namespace flexor::runtime
