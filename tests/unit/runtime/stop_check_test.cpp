#include "runtime/stop_check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "runtime/kernels/gemm.h"
#include "runtime/thread_pool.h"

namespace flexor::runtime {
namespace {

using Role = StopScope::Role;

struct Host {
    int asked = 0;
    bool stop = true;
    CallOptions options() {
        CallOptions call;
        call.should_stop = [](void* context) {
            auto* host = static_cast<Host*>(context);
            ++host->asked;
            return host->stop;
        };
        call.stop_context = this;
        return call;
    }
};

class StopCheckTest : public ::testing::Test {
protected:
    void SetUp() override { set_thread_count(4); }
    void TearDown() override { set_thread_count(default_thread_count()); }
    std::atomic<std::uint64_t> interrupts_{0};
};

TEST_F(StopCheckTest, NothingStopsOutsideOfARun) {
    EXPECT_FALSE(stop_requested());
    const StopScope scope(nullptr, Role::kOwner);
    EXPECT_FALSE(stop_requested());
}

TEST_F(StopCheckTest, InterruptsCountFromTheBeginningOfTheRun) {
    const CallOptions call;
    interrupts_ = 5;
    StopCheck check(interrupts_, call), other(interrupts_, call);
    EXPECT_FALSE(check.stopped());
    EXPECT_FALSE(check.poll());
    ++interrupts_;
    EXPECT_TRUE(check.stopped());
    EXPECT_TRUE(check.poll());
    StopCheck later(interrupts_, call);
    EXPECT_FALSE(later.poll());
}

TEST_F(StopCheckTest, TheHostIsAskedWhenTheRunIsLong) {
    Host host;
    const CallOptions call = host.options();
    StopCheck check(interrupts_, call);
    EXPECT_FALSE(check.poll());  // the clock starts
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(check.stopped()) << "others do not ask";
    EXPECT_EQ(host.asked, 0);
    EXPECT_TRUE(check.poll());
    EXPECT_EQ(host.asked, 1);
    host.stop = false;
    EXPECT_TRUE(check.stopped()) << "a stop is final";
    EXPECT_TRUE(check.ask());
    EXPECT_EQ(host.asked, 1);
    StopCheck next(interrupts_, call);
    EXPECT_FALSE(next.ask());
    EXPECT_FALSE(next.poll()) << "asked a moment ago";
    EXPECT_EQ(host.asked, 2);
}

TEST_F(StopCheckTest, AStoppedRunLeavesTheRestOfItsChunks) {
    const CallOptions call;
    for (const int threads : {1, 4}) {
        set_thread_count(threads);
        StopCheck check(interrupts_, call);
        const StopScope scope(&check, Role::kOwner);
        std::atomic<int> done{0};
        parallel_for(100'000, 1, [&](std::int64_t, std::int64_t) {
            if (++done == 3) ++interrupts_;
        });
        EXPECT_GE(done.load(), 3);
        EXPECT_LT(done.load(), 1'000);
        // Calls inside a body belong to the same run.
        parallel_for(8, 1, [&](std::int64_t, std::int64_t) { ADD_FAILURE() << "the run is over"; });
    }
    std::atomic<int> all{0};
    parallel_for(100, 1, [&](std::int64_t, std::int64_t) { ++all; });
    EXPECT_EQ(all.load(), 100) << "other runs are not concerned";
}

// Nobody could wait for the end of this product.
TEST_F(StopCheckTest, AProductStopsInsideATask) {
    set_thread_count(1);
    Host host;
    const CallOptions call = host.options();
    StopCheck check(interrupts_, call);
    const StopScope scope(&check, Role::kOwner);
    float one = 1, sum = 0;
    GemmCall product;
    product.tiles = portable_gemm_tiles(DType::kF32);
    product.m = std::int64_t{1} << 40, product.n = 8, product.k = 1 << 10;
    product.a = {&one, 0, 1, {}};
    std::vector<float> row(static_cast<std::size_t>(product.k), 1.0F);
    product.a.data = row.data();
    product.b = {row.data(), 1, 0, {}};  // packed, so that one task takes all rows
    product.c = {&sum, DType::kF32, 0, 0, {}};
    EXPECT_TRUE(gemm(product, nullptr, 0));
    EXPECT_TRUE(check.stopped());
    EXPECT_EQ(host.asked, 1);
}

}  // namespace
}  // namespace flexor::runtime
