// What a run refuses: arguments, checks of ops, assertions, sizes; the same on every tier.
#include <gtest/gtest.h>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class RunErrorTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, RunErrorTest, every_tier(), tier_name);

TEST_P(RunErrorTest, ArgumentErrors) {
    constexpr std::string_view kTwo = R"(
.symbol S in 1..4
.func main(x: f32[S, 2], y: f32[S]) -> 1
  LOAD_LOCAL x
  RETURN 1
)";
    const Tensor y = floats({1}, {1});
    EXPECT_EQ(error_code(kTwo, {floats({1, 2}, {1, 2})}), "E0501");
    EXPECT_EQ(error_code(kTwo, {floats({2}, {1, 2}), y}), "E0502");
    EXPECT_EQ(error_code(kTwo, {Tensor::empty(DType::kF64, {1, 2}), y}), "E0503");
    EXPECT_EQ(error_code(kTwo, {floats({1, 3}, {1, 2, 3}), y}), "E0504");
    EXPECT_EQ(error_code(kTwo, {floats({2, 2}, {1, 2, 3, 4}), y}), "E0504");
    EXPECT_EQ(error_code(kTwo, {Tensor::empty(DType::kF32, {5, 2}), Tensor::empty(DType::kF32, {5})}), "E0505");
    EXPECT_EQ(error_code(kTwo, {Value(), y}), "E0506");
    EXPECT_EQ(error_code(kTwo, {Value(1), y}), "E0404");
    EXPECT_EQ(error_code(kTwo, {floats({1, 2}, {1, 2}), y}), "no error");
}

TEST_P(RunErrorTest, OpErrorsNameTheirPlace) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  BINARY_ADD
  RETURN 1
)");
    const std::vector<Value> arguments{floats({2}, {1, 2}), floats({3}, {1, 2, 3})};
    const auto results = session_.run(module, arguments);
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().code(), "E0301");
    EXPECT_EQ(results.error().where().op, "add");
    EXPECT_EQ(results.error().where().source, "test.fasm:5");
    // The same program goes on working for sizes that fit.
    const std::vector<Value> good{floats({2}, {1, 2}), floats({2}, {1, 2})};
    EXPECT_TRUE(session_.run(module, good));
}

TEST_P(RunErrorTest, WhatStandsBeforeACheckDoesNotRelyOnIt) {
    // y is twice as long as the product wants: nothing before the product may read or write by x's sizes.
    constexpr std::string_view kProduct = R"(
.func main(x: f32[A, B], y: f32[C, D], touch: bool) -> 2
  LOAD_LOCAL touch
  BRANCH_IF_FALSE go
  LOAD_LOCAL y
  CONST_SCALAR 1.0
  CALL_OP add_ 2
  POP
go:
  LOAD_LOCAL y
  RELU
  STORE_LOCAL z
  LOAD_LOCAL x
  LOAD_LOCAL z
  CALL_OP matmul 2
  LOAD_LOCAL z
  RETURN 2
)";
    const auto product = run(kProduct, {floats({1, 2}, {1, 2}), floats({2, 1}, {3, -4}), Value(false)});
    EXPECT_EQ(values_of(product[0]), (std::vector<float>{3}));
    EXPECT_EQ(values_of(product[1]), (std::vector<float>{3, 0}));
    const Tensor longer = floats({4, 1}, {1, 2, 3, 4}), shorter = floats({1, 1}, {1});
    for (const bool touch : {false, true}) {
        EXPECT_EQ(error_code(kProduct, {floats({1, 2}, {1, 2}), longer, Value(touch)}), "E0301");
        EXPECT_EQ(error_code(kProduct, {floats({1, 2}, {1, 2}), shorter, Value(touch)}), "E0301");
    }
    // The write came first and stays, whole.
    EXPECT_EQ(values_of(Value(longer)), (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(values_of(Value(shorter)), (std::vector<float>{2}));
}

TEST_P(RunErrorTest, AssertionsRaiseWhereTheyStand) {
    constexpr std::string_view kAssert = R"(
.func main(n: int) -> 1
  LOAD_LOCAL n
  LOAD_CONST 3
  SCALAR lt
  ASSERT "n is small"
  LOAD_LOCAL n
  RETURN 1
)";
    EXPECT_EQ(run(kAssert, {Value(2)})[0].integer(), 2);
    EXPECT_EQ(error_code(kAssert, {Value(3)}), "E0508");
}

TEST_P(RunErrorTest, SizesThatNoMachineHasAreErrors) {
    constexpr std::string_view kHuge = R"(
.func main(x: f32[1], n: int) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL n
  BUILD_LIST 1
  CALL_OP expand 2 shape=$1
  CALL_OP exp 1
  RETURN 1
)";
    EXPECT_EQ(values_of(run(kHuge, {floats({1}, {0}), Value(3)})[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(error_code(kHuge, {floats({1}, {0}), Value(std::int64_t{1} << 57)}), "E0602");
    EXPECT_EQ(error_code(kHuge, {floats({1}, {0}), Value(std::int64_t{1} << 62)}), "E0309");
}

TEST_P(RunErrorTest, RangesHoldOnEveryTier) {
    // Interpreted, compiled or remembered as interpreted: a size outside the declared range is refused on every call.
    const Module module = module_from(R"(
.symbol S in 2..4
.hook log
.func main(x: f32[S]) -> 1
  LOAD_LOCAL x
  CALL_FOREIGN log 1
  RETURN 1
)");
    session_.bind("log", [](std::span<const Value> arguments) -> Expected<Value> { return arguments[0]; });
    for (int round = 0; round < 3; ++round) {
        const std::vector<Value> good{floats({3}, {1, 2, 3})}, bad{floats({5}, {1, 2, 3, 4, 5})};
        EXPECT_TRUE(session_.run(module, good));
        const auto refused = session_.run(module, bad);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), "E0505");
    }
}

}  // namespace
}  // namespace flexor
