// Sizes beyond one block, which the samples of the registry do not reach.
#include "ops/blocked_product.h"

#include "ops/samples.h"
#include "run_op.h"

namespace flexor::ops::test {
namespace {

Value random_value(DType dtype, std::vector<std::int64_t> sizes, std::mt19937& random) {
    Sample sample;
    sample.inputs.push_back(samples::input(std::move(sizes)));
    return make_inputs(sample, dtype, random)[0];
}

void expect_same(std::string_view name, const std::vector<Value>& args, const Attrs& attrs = {},
                 Promotion promotion = Promotion::kTorch) {
    const OpDef* op = find_op(name);
    ASSERT_NE(op, nullptr);
    ASSERT_NE(op->native, nullptr);
    OpDef blocked = *op;
    blocked.reference = {op->native};
    const auto expected = run(*op, args, attrs, promotion), found = run(blocked, args, attrs, promotion);
    ASSERT_TRUE(expected && found);
    expect_close(found->outputs[0], expected->outputs[0], 1, std::string(name));
}

TEST(BlockedProduct, SizesBeyondABlock) {
    std::mt19937 random(3);
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32, DType::kI64}) {
        for (const auto [m, k, n] : {std::array{1, 600, 3}, std::array{65, 257, 129}, std::array{130, 3, 260}}) {
            expect_same("matmul", {random_value(dtype, {m, k}, random), random_value(dtype, {k, n}, random)});
            expect_same("linear", {random_value(dtype, {2, m, k}, random), random_value(dtype, {n, k}, random),
                                   random_value(dtype, {n}, random)});
        }
    }
}

TEST(BlockedProduct, OperandsOfTwoDTypesAndBoolsBesideNumPy) {
    std::mt19937 random(5);
    const auto make = [&](DType dtype, std::vector<std::int64_t> sizes) {
        return random_value(dtype, std::move(sizes), random);
    };
    for (const auto& [left, right] : {std::pair{DType::kI64, DType::kF32}, std::pair{DType::kU8, DType::kI8},
                                      std::pair{DType::kBool, DType::kBool}})
        expect_same("matmul", {make(left, {5, 300}), make(right, {300, 7})}, {}, Promotion::kNumpy);
}

TEST(BlockedProduct, AttentionBeyondABlock) {
    std::mt19937 random(4);
    const auto f32 = [&](std::vector<std::int64_t> sizes) {
        return random_value(DType::kF32, std::move(sizes), random);
    };
    const Value lengths = as_value(tensor(DType::kI64, {2}, {300, 0}));
    expect_same("sdpa", {f32({1, 2, 70, 8}), f32({1, 1, 300, 8}), f32({1, 1, 300, 5}), {}, {}});
    expect_same("sdpa", {f32({2, 1, 130, 4}), f32({2, 1, 300, 4}), f32({2, 1, 300, 4}), {}, lengths},
                {{"is_causal", true}});
    // Rows of more keys than the scores of a block of queries have room for.
    expect_same("sdpa", {f32({1, 1, 3, 2}), f32({1, 1, 70'000, 2}), f32({1, 1, 70'000, 2}), {}, {}});
}

TEST(BlockedProduct, StopsWhenItIsAsked) {
    BlockedProduct product(DType::kF32, [] { return true; });
    const Tensor one = tensor(DType::kF32, {1}, {1});
    const ProductSizes endless{std::int64_t{1} << 40, std::int64_t{1} << 40, std::int64_t{1} << 40};
    const auto done = product.run({one}, {one}, endless, [](std::int64_t, std::int64_t, Dot) { FAIL(); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().id(), DiagnosticId::kInterrupted);
}

}  // namespace
}  // namespace flexor::ops::test
