// The limits of the pool, and what the call path takes from the heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "unit/driver/tiers.h"

namespace {
std::atomic<std::uint64_t> operator_news{0};
}

// Counts what the call path takes from the heap.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
    operator_news.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace flexor {
namespace {

class SessionMemoryTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, SessionMemoryTest, every_tier(), tier_name);

TEST_P(SessionMemoryTest, HardLimitNamesTheTensorAndBothLimits) {
    SessionOptions options = TierTest::options();
    options.soft_limit = 1 << 16;
    options.hard_limit = 1 << 18;
    Session small(options, stress());
    const Module module = module_from(R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=0
  CALL_OP matmul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL y
  CALL_OP matmul 2
  CALL_OP reduce_sum 1 axes=[0, 1], keepdim=false
  RETURN 1
)");
    const std::vector<Value> fits{floats({2}, {1, 2})};
    const auto result = small.run(module, fits);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(values_of((*result)[0])[0], 45.0f);  // [[1,2],[2,4]] squared: 5+10+10+20
    const std::vector<Value> too_long{Tensor::empty(DType::kF32, {512})};
    const auto refused = small.run(module, too_long);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), "E0601");
    EXPECT_NE(refused.error().where().operand.find("512"), std::string::npos) << refused.error().to_string();
    EXPECT_NE(refused.error().expected().find("soft limit 64"), std::string::npos) << refused.error().expected();
    EXPECT_NE(refused.error().expected().find("hard limit 256"), std::string::npos) << refused.error().expected();
    EXPECT_TRUE(small.run(module, fits));
}

TEST_P(SessionMemoryTest, BeyondTheHardLimitOpsRunOneByOne) {
    // The region wants both products at once; op by op one of them is gone before the other comes.
    const Module module = module_from(R"(
.func main(x: f32[N, N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP matmul 2
  CALL_OP relu 1
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP matmul 2
  CALL_OP reduce_sum 1 axes=[0, 1], keepdim=false
  RETURN 1
)");
    Tensor x = Tensor::empty(DType::kF32, {64, 64});
    std::fill_n(x.data_as<float>(), x.numel(), 0.5f);
    const std::vector<Value> arguments{x};
    SessionOptions options = TierTest::options();
    for (const std::uint64_t limit : {std::uint64_t{1} << 30, std::uint64_t{72} << 10}) {
        options.hard_limit = limit;
        Session session(options, stress());
        const auto result = session.run(module, arguments);
        ASSERT_TRUE(result) << result.error().to_string();
        EXPECT_EQ(values_of((*result)[0])[0], 64 * 64 * 64 * 0.25f * 64 * 0.5f);
    }
}

TEST_P(SessionMemoryTest, SteadyStateAllocatesOnlyOutputs) {
    if (!has_compiled()) GTEST_SKIP();
    const Module module = module_from(R"(
.func main(x: f32[N, 64]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP matmul 2
  RETURN 1
)");
    Tensor x = Tensor::empty(DType::kF32, {40, 64});
    std::fill_n(x.data_as<float>(), x.numel(), 0.01f);
    const std::vector<Value> arguments{x};
    std::vector<Value> results;
    const std::int32_t main = Session::function_index(module, "main");
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(session_.run_into(module, main, arguments, results));
    const PoolStats before = session_.stats().pool;
    const std::uint64_t news = operator_news.load();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(session_.run_into(module, main, arguments, results));
    EXPECT_EQ(operator_news.load(), news) << "operator new on the call path";
    const PoolStats after = session_.stats().pool;
    EXPECT_EQ(after.growth_events, before.growth_events);
    EXPECT_EQ(after.live_bytes, before.live_bytes);
}

}  // namespace
}  // namespace flexor
