// Programs made ready for a range of sizes.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class PrepareTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, PrepareTest, every_tier(), tier_name);

TEST_P(PrepareTest, PrepareLeavesNothingToCompile) {
    if (lacks_generator()) GTEST_SKIP() << "needs the code generator";
    if (GetParam() >= Tier::kEveryGuardFails) GTEST_SKIP() << "compiles always, or runs in between";
    const Module module = module_from(R"(
.symbol S in 1..64
.func main(x: f32[S, 16]) -> 1
  LOAD_LOCAL x
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP matmul 2
  RETURN 1
)");
    const SizeRange range[] = {{"S", 2, 48}};
    const auto prepared = session_.prepare(module, range);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    const Stats before = session_.stats();
    for (std::int64_t s = 2; s <= 48; ++s) {
        Tensor x = Tensor::empty(DType::kF32, {s, 16});
        std::fill_n(x.data_as<float>(), x.numel(), 0.5f);
        const std::vector<Value> arguments{x};
        ASSERT_TRUE(session_.run(module, arguments));
    }
    const Stats after = session_.stats();
    EXPECT_EQ(after.compilations, before.compilations);
    if (GetParam() != Tier::kInterpreted) {
        EXPECT_EQ(after.pool.growth_events, before.pool.growth_events);
    }
    const SizeRange wrong[] = {{"T", 1, 2}};
    EXPECT_EQ(session_.prepare(module, wrong).error().code(), "E0112");
}

TEST_P(PrepareTest, PrepareFollowsWhatMustBeEqual) {
    const Module module = module_from(R"(
.symbol S in 1..64
.func main(x: f32[S], y: f32[T]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
)");
    const std::vector<SizeRange> ranges{{"S", 2, 50}};
    const auto done = session_.prepare(module, ranges);
    ASSERT_TRUE(done) << done.error().to_string();
    const std::uint64_t compiled = session_.stats().compilations;
    EXPECT_TRUE(session_.run(module, {floats({3}, {1, 2, 3}), floats({3}, {1, 2, 3})}));
    if (GetParam() == Tier::kCompiled) {
        EXPECT_EQ(session_.stats().compilations, compiled);
    }
}

}  // namespace
}  // namespace flexor
