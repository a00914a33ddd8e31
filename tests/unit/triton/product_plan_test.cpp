#include <gtest/gtest.h>

#include "codegen/triton/generator.h"
#include "unit/loopir/kernels.h"

namespace flexor::codegen::triton {
namespace {

using loopir::testing::verified;

constexpr const char* kLinear = R"(
kernel linear(%0 a: in bf16, %1 b: in bf16, %2: out bf16) params 3
contraction batch 0 m p0 n p1 k p2 accumulate f32
  a %0 : bf16 [] row p2 col 1
  b %1 : bf16 [] row 1 col p2
  epilogue parallel [p0, p1] row []
    v0 = accumulator : f32
    v1 = cast v0 : bf16
    s0 = store %2 [p1, 1] v1
)";

constexpr const char* kDecode = R"(
kernel attend(%0: in bf16, %1: in bf16, %2: in bf16, %3: out bf16) params 2
attention bf16 batch 1 heads 12 kv_heads 12 q_len p0 kv_len p1 head_dim 64 value_dim 64 scale default
  q %0 [64, 64, 768, 1]
  k %1 [64, 64, 768, 1]
  v %2 [64, 64, 768, 1]
  out %3 [64, 64, 768, 1]
  mask none
)";

LaunchPlan planned_product(const char* text, std::vector<std::int64_t> params) {
    const auto generator = Generator::create(verified(text));
    EXPECT_TRUE(generator.has_value());
    return *generator->plan(params.data(), 132);
}

TEST(TritonProductPlan, TakesTheMeasuredTile) {
    const GemmTile entry = choose_gemm_tile({1, 512, 2304, 768, DType::kBF16}, 132);
    EXPECT_EQ(entry, (GemmTile{64, 128, 64, 4, 4, 1, 8, 64}));
    // Its class of rows, but no other depth, batch or kind.
    EXPECT_EQ(choose_gemm_tile({1, 300, 2304, 768, DType::kBF16}, 132), entry);
    const GemmSize others[] = {
        {1, 512, 2304, 760, DType::kBF16}, {2, 512, 2304, 768, DType::kBF16}, {1, 512, 2304, 768, DType::kBF16, true}};
    for (const GemmSize& other : others) EXPECT_EQ(choose_gemm_tile(other, 132), rule_for_gemm_tile(other, 132));
}

TEST(TritonProductPlan, AddsUpTheProductsOfOneRowInLanes) {
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kF64}) {
        EXPECT_EQ(rule_for_gemm_tile({1, 1, 1000, 500, dtype}, 132).m, 1);
        EXPECT_EQ(rule_for_gemm_tile({1, 1, 1, 500, dtype}, 132).n, 1);
    }
    // Computed left sides, and more rows of 16-bit floats, are the tensor cores'.
    EXPECT_EQ(rule_for_gemm_tile({1, 1, 1000, 500, DType::kBF16, true}, 132).m, 16);
    EXPECT_EQ(rule_for_gemm_tile({1, 2, 1000, 500, DType::kBF16}, 132).m, 16);
    EXPECT_EQ(rule_for_gemm_tile({1, 2, 1000, 500, DType::kF32}, 132).m, 2);
}

TEST(TritonProductPlan, CountsTheColumnsOfBothBlocks) {
    const auto generator = Generator::create(loopir::testing::verified(kLinear));
    ASSERT_TRUE(generator.has_value());
    const GemmTile wide{64, 64, 32, 4, 3, 2, 8, 32};
    Forced forced;
    forced.gemm = &wide;
    const std::int64_t params[] = {128, 192, 256};
    const LaunchPlan plan = *generator->plan(params, 132, forced);
    EXPECT_EQ(plan.tiles, 2 * 2 * 2);
    EXPECT_EQ(plan.scratch[0], plan.tiles * 64 * 96 * 4);
    EXPECT_EQ(plan.constant("EVEN_1"), 1);
    EXPECT_EQ(plan.constant("EVEN_2"), 1);
    const std::int64_t odd[] = {128, 128, 256};
    EXPECT_EQ(generator->plan(odd, 132, forced)->constant("EVEN_1"), 0);
}

TEST(TritonProductPlan, SharesTheSumWhereTilesAreFew) {
    const LaunchPlan few = planned_product(kLinear, {64, 256, 4096});
    const std::int64_t split = few.constant("SPLIT");
    EXPECT_GT(split, 1);
    EXPECT_EQ(few.tiles, few.counters * split);
    EXPECT_EQ(few.scratch[0], few.tiles * few.constant("BLOCK_0") * few.constant("BLOCK_1") * 4);
    EXPECT_EQ(planned_product(kLinear, {4096, 4096, 4096}).constant("SPLIT"), 1);
}

TEST(TritonProductPlan, LaunchesNothingWithoutAResult) {
    EXPECT_EQ(planned_product(kLinear, {0, 256, 64}).tiles, 0);
    EXPECT_EQ(planned_product(kLinear, {64, 0, 64}).tiles, 0);
    // A sum of nothing is a result, and every plan can be compiled.
    EXPECT_GT(planned_product(kLinear, {64, 256, 0}).tiles, 0);
    EXPECT_GE(planned_product(kLinear, {0, 0, 0}).constant("BLOCK_K"), 16);
}

TEST(TritonAttentionPlan, SharesTheKeysOfFewQueries) {
    const LaunchPlan decode = planned_product(kDecode, {1, 1024});
    EXPECT_EQ(decode.constant("BLOCK_0"), 16);
    EXPECT_GT(decode.constant("SPLIT"), 1);
    EXPECT_EQ(decode.tiles, 12 * decode.constant("SPLIT"));
    EXPECT_EQ(decode.counters, 12);
    EXPECT_EQ(planned_product(kDecode, {1, 16}).constant("SPLIT"), 1);
    EXPECT_EQ(planned_product(kDecode, {2048, 2048}).constant("SPLIT"), 1);
    EXPECT_EQ(planned_product(kDecode, {0, 16}).tiles, 0);
    EXPECT_EQ(planned_product(kDecode, {3, 0}).tiles, 12);
}

TEST(TritonAttentionPlan, RefusesHeadsThatTurnOutTooWide) {
    loopir::Kernel kernel = verified(kDecode);
    kernel.attention->head_dim = loopir::IntRef::slot(0);
    const auto generator = Generator::create(kernel);
    ASSERT_TRUE(generator.has_value());
    const std::int64_t wide[] = {257, 16};
    const auto refused = generator->plan(wide, 132);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), "E0702");
}

}  // namespace
}  // namespace flexor::codegen::triton
