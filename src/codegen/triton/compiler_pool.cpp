#include "codegen/triton/compiler_pool.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/triton/compiler_process.h"
#include "support/diagnostic.h"

namespace flexor::codegen::triton {

class CompilerPool::Job {
public:
    Job(CompileRequest asked, Urgency how, Then what)
        : request(std::move(asked)), urgency(how), then(std::move(what)) {}
    CompileRequest request;
    Urgency urgency;
    Then then;
};

namespace {

constexpr std::size_t kUrgencies = 3;
constexpr unsigned kLeastProcesses = 2, kMostProcesses = 8;
constexpr auto kIdle = std::chrono::seconds(60);

CompilerPool::Answer closed() {
    return Diagnostic(DiagnosticId::kKernelCompilerFailed).found("the compiler's processes have been ended");
}

}  // namespace

struct CompilerPool::State {
    struct Worker {
        explicit Worker(const CompilerPool& pool) : process(pool.command_, pool.limit_seconds_) {}
        CompilerProcess process;
        std::thread thread;
    };
    using WorkerRef = std::shared_ptr<Worker>;

    const pid_t owner = getpid();
    std::shared_ptr<State> self;  // threads hold it too
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Ticket> queues[kUrgencies];
    std::vector<WorkerRef> workers;
    std::vector<WorkerRef> ended;  // their threads are to be joined
    std::size_t idle = 0;          // those that start among them
    bool closing = false;

    static State* create() {
        auto made = std::make_shared<State>();
        made->self = made;
        return made.get();
    }

    Ticket next() {
        for (auto& queue : queues) {
            if (queue.empty()) continue;
            Ticket job = std::move(queue.front());
            queue.pop_front();
            return job;
        }
        return nullptr;
    }
    std::size_t waiting() const {
        std::size_t count = 0;
        for (const auto& queue : queues) count += queue.size();
        return count;
    }

    // Called with the lock. False: the system gives no thread.
    bool add_worker(const CompilerPool& pool) {
        for (const WorkerRef& worker : ended) worker->thread.join();
        ended.clear();
        auto worker = std::make_shared<Worker>(pool);
        try {
            worker->thread = std::thread([state = self, worker] { state->work(worker); });
        } catch (const std::system_error&) {
            return false;
        }
        workers.push_back(std::move(worker));
        ++idle;
        return true;
    }

    void work(const WorkerRef& worker) {
        worker->process.start();
        std::unique_lock lock(mutex);
        for (;;) {
            --idle;
            while (Ticket job = next()) {
                lock.unlock();
                job->then(worker->process.compile(job->request));
                job.reset();
                lock.lock();
            }
            if (closing) return;
            ++idle;
            if (changed.wait_for(lock, kIdle, [&] { return closing || waiting() > 0; }) || workers.size() == 1)
                continue;
            --idle;
            ended.push_back(worker);
            std::erase(workers, worker);
            return;
        }
    }

    void close() {
        std::vector<Ticket> left;
        std::vector<WorkerRef> all;
        {
            const std::lock_guard lock(mutex);
            closing = true;
            while (Ticket job = next()) left.push_back(std::move(job));
            all.swap(workers);
            all.insert(all.end(), ended.begin(), ended.end());
            ended.clear();
            for (const WorkerRef& worker : all) worker->process.end();
            changed.notify_all();
        }
        for (const Ticket& job : left) job->then(closed());
        for (const WorkerRef& worker : all) {
            if (worker->thread.get_id() == std::this_thread::get_id())
                worker->thread.detach();  // what it has done has dropped the pool
            else
                worker->thread.join();
        }
    }
};

CompilerPool::CompilerPool(std::vector<std::string> command, double limit_seconds, std::size_t processes)
    : command_(std::move(command)), limit_seconds_(limit_seconds), most_(processes) {
    if (most_ == 0) most_ = std::clamp(std::thread::hardware_concurrency() / 2, kLeastProcesses, kMostProcesses);
    state_.store(State::create());
}

CompilerPool::~CompilerPool() {
    close();
    State* last = state_.load();
    if (last->owner == getpid()) last->self.reset();
}

// A fork copies what its threads held: the child forgets it.
CompilerPool::State& CompilerPool::state() {
    State* found = state_.load(std::memory_order_acquire);
    if (found->owner == getpid()) return *found;
    State* fresh = State::create();
    if (state_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
    fresh->self.reset();
    return *found;
}

CompilerPool::Ticket CompilerPool::submit(CompileRequest request, Urgency urgency, Then then) {
    State& s = state();
    auto job = std::make_shared<Job>(std::move(request), urgency, std::move(then));
    {
        const std::lock_guard lock(s.mutex);
        const bool more = s.idle <= s.waiting() && s.workers.size() < most_;
        if (!s.closing && (!more || s.add_worker(*this) || !s.workers.empty())) {
            s.queues[static_cast<std::size_t>(urgency)].push_back(job);
            s.changed.notify_one();
            return job;
        }
    }
    return nullptr;
}

void CompilerPool::hurry(const Ticket& job, Urgency urgency) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    if (job->urgency <= urgency) return;
    auto& from = s.queues[static_cast<std::size_t>(job->urgency)];
    const auto place = std::ranges::find(from, job);
    if (place == from.end()) return;
    from.erase(place);
    job->urgency = urgency;
    s.queues[static_cast<std::size_t>(urgency)].push_back(job);
}

void CompilerPool::expect(std::size_t requests) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const std::size_t wanted = std::min(most_, s.waiting() + requests);
    while (!s.closing && s.idle < wanted && s.workers.size() < most_ && s.add_worker(*this)) {
    }
}

CompilerPool::Answer CompilerPool::compile(const CompileRequest& request) {
    std::promise<Answer> promise;
    std::future<Answer> answer = promise.get_future();
    if (submit(request, Urgency::kWaited, [&](Answer given) { promise.set_value(std::move(given)); }) == nullptr)
        return closed();
    return answer.get();
}

void CompilerPool::close() {
    State& s = state();
    s.close();
}

}  // namespace flexor::codegen::triton
