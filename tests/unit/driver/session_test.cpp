// Programs in text form, run through the public Session: what they give, on every tier.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class SessionTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, SessionTest, every_tier(), tier_name);

TEST_P(SessionTest, AddReluSum) {
    const auto results = run(kAddReluSum, {floats({4}, {-3, 0, 1, 2})});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(values_of(results[0]), (std::vector<float>{0 + 1 + 2 + 3}));
    EXPECT_EQ(values_of(run(kAddReluSum, {floats({0}, {})})[0]), (std::vector<float>{0}));
}

constexpr std::string_view kLoop = R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  STORE_LOCAL y
head:
  LOOP_HEAD
  LOAD_LOCAL y
  CALL_OP reduce_sum 1 axes=[0], keepdim=false
  CONST_SCALAR 100.0
  CALL_OP gt 2
  BRANCH_IF_FALSE done
  LOAD_LOCAL y
  CONST_SCALAR 0.5
  BINARY_MUL
  STORE_LOCAL y
  JUMP head
done:
  LOAD_LOCAL y
  RETURN 1
)";

TEST_P(SessionTest, LoopOnTensorValues) {
    EXPECT_EQ(values_of(run(kLoop, {floats({2}, {399, -5})})[0]), (std::vector<float>{100, 0}));
    EXPECT_EQ(values_of(run(kLoop, {floats({3}, {1, 2, 3})})[0]), (std::vector<float>{2, 3, 4}));
}

// Program 5 of the walk: what the write and the sum may share depends on the memory of the call.
constexpr std::string_view kWriteThenAdd = R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul_ 2
  POP
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
)";

TEST_P(SessionTest, WritesAreSeenThroughEveryAlias) {
    const Module module = module_from(kWriteThenAdd);
    for (const std::int64_t n : {1, 5, 64, 3000}) {
        // Distance of y from x in one buffer; n and more: disjoint.
        for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 1, n, n + 3, -n / 2, -n}) {
            const std::int64_t length = 3 * n + 3;
            Tensor base = Tensor::empty(DType::kF32, {length});
            std::vector<float> wanted(static_cast<std::size_t>(length));
            for (std::int64_t i = 0; i < length; ++i) {
                base.data_as<float>()[i] = static_cast<float>(i + 1);
                wanted[static_cast<std::size_t>(i)] = static_cast<float>(i >= n && i < 2 * n ? 2 * (i + 1) : i + 1);
            }
            const std::vector<std::int64_t> sizes{n}, strides{1};
            const auto part = [&](std::int64_t from) {
                return base.view(base.data_as<float>() + from, DType::kF32, sizes, strides);
            };
            auto results = session_.run(module, std::vector<Value>{part(n), part(n + shift)});
            ASSERT_TRUE(results) << results.error().to_string();
            EXPECT_EQ(values_of(base), wanted) << "n " << n << ", shift " << shift;
            const std::vector<float> sums = values_of((*results)[0]);
            for (std::int64_t i = 0; i < n; ++i) {
                const auto x = static_cast<std::size_t>(n + i), y = static_cast<std::size_t>(n + shift + i);
                ASSERT_EQ(sums[static_cast<std::size_t>(i)], wanted[x] + wanted[y])
                    << "n " << n << ", shift " << shift << ", element " << i;
            }
        }
    }
}

TEST_P(SessionTest, OneKernelWritesAndAddsWhereNothingIsShared) {
    if (GetParam() == Tier::kInterpreted || GetParam() == Tier::kEndsAtOnce) GTEST_SKIP() << "no region holds both";
    if (lacks_generator()) GTEST_SKIP() << "needs the code generator";
    const Module module = module_from(kWriteThenAdd);
    // A session each: an explanation lists every kernel of its session.
    const auto kernels = [&](const Tensor& x, const Tensor& y) {
        Session session(options(), stress());
        auto explanation = session.explain(module, std::vector<Value>{x, y});
        EXPECT_TRUE(explanation);
        const std::string& text = explanation->text;
        int count = 0;
        for (std::size_t at = 0; (at = text.find("\n  kernel ", at)) != std::string::npos; ++at) ++count;
        return count;
    };
    const Tensor x = floats({4}, {1, 2, 3, 4});
    EXPECT_EQ(kernels(x, floats({4}, {1, 2, 3, 4})), 1);
    EXPECT_EQ(kernels(x, x), 2);
    const std::vector<std::int64_t> sizes{3}, strides{1};
    EXPECT_EQ(kernels(x.view(x.data_as<float>(), DType::kF32, sizes, strides),
                      x.view(x.data_as<float>() + 1, DType::kF32, sizes, strides)),
              2);
}

TEST_P(SessionTest, Lists) {
    const auto results = run(R"(
.func main(n: int) -> 2
  BUILD_LIST 0
  STORE_LOCAL out
  LOAD_CONST 0
  STORE_LOCAL i
head:
  LOOP_HEAD
  LOAD_LOCAL i
  LOAD_LOCAL n
  SCALAR lt
  BRANCH_IF_FALSE done
  LOAD_LOCAL out
  LOAD_LOCAL i
  LOAD_LOCAL i
  SCALAR mul
  LIST_APPEND
  STORE_LOCAL out
  LOAD_LOCAL i
  LOAD_CONST 1
  SCALAR add
  STORE_LOCAL i
  JUMP head
done:
  LOAD_LOCAL out
  LOAD_LOCAL out
  LOAD_CONST -1
  LIST_GET
  RETURN 2
)",
                             {Value(5)});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].describe(), "[0, 1, 4, 9, 16]");
    EXPECT_EQ(results[1].integer(), 16);
}

TEST_P(SessionTest, Recursion) {
    constexpr std::string_view kFactorial = R"(
.func main(n: int) -> 1
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR le
  BRANCH_IF_TRUE base
  LOAD_LOCAL n
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  CALL main 1
  SCALAR mul
  RETURN 1
base:
  LOAD_CONST 1
  RETURN 1
)";
    EXPECT_EQ(run(kFactorial, {Value(10)})[0].integer(), 3628800);
    EXPECT_EQ(error_code(kFactorial, {Value(5000)}), "E0603");
    // A product that leaves 64 bits is an error, never a wrapped number.
    EXPECT_EQ(error_code(kFactorial, {Value(30)}), "E0309");
}

TEST_P(SessionTest, FunctionsAndTheirResults) {
    const auto results = run(R"(
.func pair(x: f32[N]) -> 2
  LOAD_LOCAL x
  RELU
  LOAD_LOCAL x
  GET_DIM 0
  RETURN 2
.end
.func main(x: f32[N]) -> 2
  LOAD_LOCAL x
  CALL pair 1
  SWAP
  RETURN 2
.end
)",
                             {floats({3}, {-1, 2, -3})});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].integer(), 3);
    EXPECT_EQ(values_of(results[1]), (std::vector<float>{0, 2, 0}));
}

TEST_P(SessionTest, OptionalArguments) {
    constexpr std::string_view kOptional = R"(
.func main(x: f32[N], y: f32[N]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL none
  LOAD_LOCAL x
  LOAD_LOCAL y
  BINARY_ADD
  RETURN 1
none:
  LOAD_LOCAL x
  RETURN 1
)";
    EXPECT_EQ(values_of(run(kOptional, {floats({1}, {1}), floats({1}, {2})})[0]), (std::vector<float>{3}));
    const Tensor x = floats({1}, {1});
    const auto results = run(kOptional, {x, Value()});
    EXPECT_EQ(results[0].tensor().data(), x.data()) << "an argument that is returned is that argument";
}

TEST_P(SessionTest, OptionalArgumentsAtTheEndMayBeLeftOut) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[N]?, z: f32[N]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL alone
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
alone:
  LOAD_LOCAL x
  RETURN 1
)");
    const Tensor x = floats({2}, {1, 2});
    const auto first = [&](const std::vector<Value>& arguments) {
        const auto results = session_.run(module, arguments);
        return results ? values_of((*results)[0]) : std::vector<float>{};
    };
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(first({x}), (std::vector<float>{1, 2}));
        EXPECT_EQ(first({x, x}), (std::vector<float>{2, 4}));
        EXPECT_EQ(first({x, x, x}), (std::vector<float>{2, 4}));
    }
    for (const std::vector<Value>& wrong : {std::vector<Value>{}, std::vector<Value>{x, x, x, x}}) {
        const auto refused = session_.run(module, wrong);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), "E0501");
        EXPECT_EQ(refused.error().expected(), "1 to 3");
    }
}

TEST_P(SessionTest, FrozenDimsMakeOneVersionPerValue) {
    const Module module = module_from(R"(
.func main(x: f32[B, FROZEN S]) -> 1
  LOAD_LOCAL x
  RELU
  CALL_OP reduce_sum 1 axes=[1], keepdim=false
  RETURN 1
)");
    for (std::int64_t b = 1; b <= 3; ++b) {
        for (std::int64_t s = 1; s <= 4; ++s) {
            Tensor x = Tensor::empty(DType::kF32, {b, s});
            std::fill_n(x.data_as<float>(), x.numel(), 1.0f);
            const std::vector<Value> arguments{x};
            const auto result = session_.run(module, arguments);
            ASSERT_TRUE(result) << result.error().to_string();
            EXPECT_EQ(values_of((*result)[0]), std::vector<float>(static_cast<std::size_t>(b), static_cast<float>(s)));
        }
    }
    if (GetParam() == Tier::kEvaluated || (has_compiled())) {
        EXPECT_EQ(session_.stats().compilations, 4u);
    }
}

TEST_P(SessionTest, StressSwitchesAct) {
    if (GetParam() < Tier::kEvaluated) GTEST_SKIP() << "not a stressed session";
    const Module module = module_from(kAddReluSum);
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(session_.run(module, {floats({4}, {-3, 0, 1, 2})}));
    const Stats stats = session_.stats();
    // Ended at once, the first region holds the addition and the second the sum; what stands between is interpreted.
    EXPECT_EQ(stats.compilations,
              GetParam() == Tier::kEveryGuardFails ? 5u : (GetParam() == Tier::kEndsAtOnce ? 2u : 1u));
    EXPECT_EQ(stats.region_exits, GetParam() == Tier::kEndsAtOnce ? 10u : 0u);
}

}  // namespace
}  // namespace flexor
