// A session that several threads use: calls beside each other, and calls that another thread ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class SessionThreadsTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, SessionThreadsTest, every_tier(), tier_name);

TEST_P(SessionThreadsTest, EndlessLoopsCanBeInterrupted) {
    const Module module = module_from(R"(
.func main(x: f32[N]) -> 1
head:
  LOOP_HEAD
  JUMP head
)");
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        session_.interrupt();
    });
    const std::vector<Value> arguments{floats({1}, {1})};
    const auto results = session_.run(module, arguments);
    stopper.join();
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().code(), "E0509");

    CallOptions call;
    call.should_stop = [](void*) { return true; };
    const auto stopped = session_.run(module, arguments, call);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), "E0509");
}

// One kernel each, which nobody could wait for.
TEST_P(SessionThreadsTest, LongKernelsCanBeInterrupted) {
    if (!has_compiled()) GTEST_SKIP() << "kernels that are cut in pieces";
    float one = 1;
    const auto ones = [&](std::int64_t size) {
        const std::int64_t strides[] = {0};
        return Tensor::from_blob(&one, DType::kF32, {&size, 1}, strides);
    };
    for (const char* axes : {"[0, 1]", "[1]"}) {
        const Module module = module_from(R"(
.func main(x: f32[N], y: f32[M]) -> 1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=1
  LOAD_LOCAL y
  CALL_OP unsqueeze 1 axis=0
  CALL_OP mul 2
  CALL_OP reduce_sum 1 keepdim=false, axes=)" +
                                          std::string(axes) + "\n  RETURN 1\n");
        ASSERT_TRUE(session_.run(module, {ones(2), ones(3)}));
        const std::vector<Value> endless{ones(std::int64_t{1} << 20), ones(std::int64_t{1} << 22)};
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            session_.interrupt();
        });
        const auto interrupted = session_.run(module, endless);
        stopper.join();
        ASSERT_FALSE(interrupted);
        EXPECT_EQ(interrupted.error().code(), "E0509");

        int asked = 0;
        CallOptions call;
        call.should_stop = [](void* context) { return ++*static_cast<int*>(context) == 3; };
        call.stop_context = &asked;
        const auto stopped = session_.run(module, endless, call);
        ASSERT_FALSE(stopped);
        EXPECT_EQ(stopped.error().code(), "E0509");
        EXPECT_EQ(asked, 3);
        const auto after = session_.run(module, {ones(2), ones(3)});
        ASSERT_TRUE(after);
        EXPECT_EQ(values_of((*after)[0])[0], axes[1] == '1' ? 3.0f : 6.0f);
    }
}

TEST_P(SessionThreadsTest, TwoThreadsWithDifferentShapes) {
    const Module module = module_from(kAddReluSum);
    const auto work = [&](std::int64_t first) {
        for (int round = 0; round < 300; ++round) {
            const std::int64_t n = first + round % 17;
            Tensor x = Tensor::empty(DType::kF32, {n});
            std::fill_n(x.data_as<float>(), n, 1.0f);
            const std::vector<Value> arguments{x};
            const auto results = session_.run(module, arguments);
            ASSERT_TRUE(results) << results.error().to_string();
            EXPECT_EQ(values_of((*results)[0])[0], static_cast<float>(2 * n));
        }
    };
    std::thread other([&] { work(1); });
    work(9);
    other.join();
    EXPECT_EQ(session_.stats().calls, 600u);
}

}  // namespace
}  // namespace flexor
