#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace flexor::runtime {
namespace {

class ThreadPool : public ::testing::Test {
protected:
    void SetUp() override { set_thread_count(4); }
    void TearDown() override { set_thread_count(default_thread_count()); }
};

TEST_F(ThreadPool, VisitsEveryIndexOnce) {
    for (std::int64_t count : {0, 1, 2, 15, 16, 17, 33, 65, 1000}) {
        for (std::int64_t grain : {-1, 0, 1, 3, 16, 5000}) {
            std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
            parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
            });
            for (auto& visits : seen) EXPECT_EQ(visits.load(), 1);
        }
    }
}

TEST_F(ThreadPool, ChunksDoNotDependOnTheThreadCount) {
    for (int threads : {1, 2, 4}) {
        set_thread_count(threads);
        std::vector<std::atomic<std::int64_t>> ends(10);
        parallel_for(94, 10, [&](std::int64_t begin, std::int64_t end) {
            ASSERT_EQ(begin % 10, 0);
            ends[static_cast<size_t>(begin / 10)] = end;
        });
        for (size_t i = 0; i < 9; ++i) EXPECT_EQ(ends[i].load(), static_cast<std::int64_t>(10 * i + 10));
        EXPECT_EQ(ends[9].load(), 94);
    }
}

TEST_F(ThreadPool, SlotsAreExclusiveAndBounded) {
    std::vector<std::atomic<int>> busy(4);
    std::atomic<int> wrong{0};
    parallel_for_slots(2000, 1, 3, [&](int slot, std::int64_t, std::int64_t) {
        if (slot < 0 || slot >= 3 || busy[static_cast<size_t>(slot)]++ != 0) ++wrong;
        --busy[static_cast<size_t>(slot)];
    });
    EXPECT_EQ(wrong.load(), 0);
}

TEST_F(ThreadPool, NestedCallsRunSerially) {
    std::atomic<int> wrong{0};
    std::atomic<std::int64_t> sum{0};
    parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
        std::thread::id self = std::this_thread::get_id();
        parallel_for(10, 1, [&](std::int64_t begin, std::int64_t end) {
            if (std::this_thread::get_id() != self) ++wrong;
            sum += end - begin;
        });
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(sum.load(), 80);
}

TEST_F(ThreadPool, ManyCallersAtOnce) {
    std::atomic<std::int64_t> sum{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 6; ++c) {
        callers.emplace_back([&] {
            for (int round = 0; round < 300; ++round) {
                std::atomic<std::int64_t> own{0};
                parallel_for(17, 2, [&](std::int64_t begin, std::int64_t end) { own += end - begin; });
                if (own.load() == 17) ++sum;
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(sum.load(), 6 * 300);
}

TEST_F(ThreadPool, SleepingWorkersWakeUp) {
    for (int round = 0; round < 5; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::atomic<int> threads{0};
        // Two chunks that wait for each other: only a second thread can end this.
        parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
            ++threads;
            while (threads.load() < 2) std::this_thread::yield();
        });
        EXPECT_EQ(threads.load(), 2);
    }
}

TEST_F(ThreadPool, AForkedChildHasAPoolOfItsOwn) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
    std::atomic<std::int64_t> warm{0};
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { warm += end - begin; });
    ASSERT_EQ(warm.load(), 100);
    pid_t child = fork();
    if (child == 0) {
        std::atomic<std::int64_t> sum{0};
        parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
        _exit(sum.load() == 100 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(ThreadPool, AWorkerThatWasWokenMayRunWhereItMightBefore) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::atomic<int> others{0};
    for (int turn = 0; turn < 20; ++turn) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough for the workers to sleep
        parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
            cpu_set_t mine;
            others += sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_EQUAL(&mine, &allowed) == 0;
        });
    }
    EXPECT_EQ(others.load(), 0);
}

TEST_F(ThreadPool, TheDefaultFollowsTheEnvironment) {
    ::setenv("FLEXOR_NUM_THREADS", "3", 1);
    EXPECT_EQ(default_thread_count(), 3);
    ::unsetenv("FLEXOR_NUM_THREADS");
    ::setenv("OMP_NUM_THREADS", "1", 1);
    EXPECT_EQ(default_thread_count(), 1);
    ::unsetenv("OMP_NUM_THREADS");
    EXPECT_GE(default_thread_count(), 1);
    set_thread_count(0);
    EXPECT_EQ(thread_count(), 1);
}

}  // namespace
}  // namespace flexor::runtime
