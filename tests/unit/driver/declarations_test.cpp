// Arguments against what a function declares, on every engine: sizes that are solved for their symbol, numbers that
// become what is declared, calls of one function from another.
#include <gtest/gtest.h>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

Tensor ones(std::initializer_list<std::int64_t> sizes) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    std::fill_n(tensor.data_as<float>(), tensor.numel(), 1.0F);
    return tensor;
}

class DeclarationTest : public TierTest {
protected:
    // What the results are ("f32[3] int"), or the number of the refusal and its hint.
    std::string run(const Module& module, const std::vector<Value>& arguments) {
        const auto results = session_.run(module, arguments);
        if (!results) return results.error().code() + " " + results.error().hint();
        std::string text;
        for (const Value& value : *results) {
            if (!text.empty()) text += ' ';
            text += value.describe();
        }
        return text;
    }
};

INSTANTIATE_TEST_SUITE_P(Engines, DeclarationTest,
                         testing::Values(Tier::kInterpreted, Tier::kCompiled, Tier::kEvaluated, Tier::kEveryGuardFails,
                                         Tier::kEndsAtOnce, Tier::kExactOnly),
                         tier_name);

TEST_P(DeclarationTest, ASizeIsSolvedForTheSymbolThatItAloneNames) {
    const Module module = module_from(R"(
.func main(x: f32[2*N + 1]) -> 2
  LOAD_LOCAL x
  CALL_OP exp 1
  CALL_OP zeros 0 shape=[N]
  RETURN 2
)");
    for (int round = 0; round < 2; ++round) {
        for (const std::int64_t n : {0, 1, 2, 7}) {
            EXPECT_EQ(run(module, {ones({2 * n + 1})}),
                      "f32[" + std::to_string(2 * n + 1) + "] f32[" + std::to_string(n) + "]");
            EXPECT_EQ(run(module, {ones({2 * n})}), "E0504 2*N+1 is " + std::to_string(2 * n) + " for no integer N");
        }
    }
}

TEST_P(DeclarationTest, AnExpressionMayTakeWhatAnotherSizeBinds) {
    const Module module = module_from(R"(
.symbol N in 1..10
.func main(x: f32[B*N + M], y: f32[N - M], z: f32[B, M]) -> 1
  LOAD_LOCAL z
  CALL_OP exp 1
  POP
  CALL_OP zeros 0 shape=[N, M]
  RETURN 1
)");
    EXPECT_EQ(run(module, {ones({11}), ones({4}), ones({2, 1})}), "f32[5,1]");
    EXPECT_EQ(run(module, {ones({17}), ones({3}), ones({3, 2})}), "f32[5,2]");
    EXPECT_EQ(run(module, {ones({12}), ones({4}), ones({2, 1})}).substr(0, 5), "E0504");
    EXPECT_EQ(run(module, {ones({11}), ones({3}), ones({2, 1})}).substr(0, 5), "E0504");
    EXPECT_EQ(run(module, {ones({23}), ones({10}), ones({2, 1})}).substr(0, 5), "E0505");
    EXPECT_EQ(run(module, {ones({11}), ones({4}), ones({2, 1})}), "f32[5,1]");
}

TEST_P(DeclarationTest, AFrozenExpressionIsSolvedToo) {
    const Module module = module_from(R"(
.func main(x: f32[FROZEN 3*N]) -> 1
  CALL_OP zeros 0 shape=[N]
  RETURN 1
)");
    EXPECT_EQ(run(module, {ones({6})}), "f32[2]");
    EXPECT_EQ(run(module, {ones({9})}), "f32[3]");
    EXPECT_EQ(run(module, {ones({8})}), "E0504 3*N is 8 for no integer N");
}

TEST_P(DeclarationTest, ASymbolThatNoArgumentDeterminesIsNamed) {
    const Module module = module_from(R"(
.func main(x: f32[N % 4], flag: bool) -> 1
  LOAD_LOCAL flag
  BRANCH_IF_FALSE other
  LOAD_LOCAL x
  RETURN 1
other:
  CALL_OP zeros 0 shape=[N]
  RETURN 1
)");
    EXPECT_EQ(run(module, {ones({3}), true}), "f32[3]");
    const auto refused = session_.run(module, {ones({3}), false});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), "E0112");
    EXPECT_EQ(refused.error().found(), "symbol N");
}

TEST_P(DeclarationTest, NumbersBecomeWhatIsDeclared) {
    const Module module = module_from(R"(
.func main(a: float, n: int) -> 3
  LOAD_LOCAL a
  LOAD_LOCAL n
  LOAD_LOCAL a
  LOAD_LOCAL n
  SCALAR add
  RETURN 3
)");
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(run(module, {2.5, std::int64_t{2}}), "2.5 2 4.5");
        const auto converted = session_.run(module, {std::int64_t{3}, true});
        ASSERT_TRUE(converted) << converted.error().to_string();
        EXPECT_TRUE((*converted)[0].is_float());
        EXPECT_EQ((*converted)[0].real(), 3.0);
        EXPECT_TRUE((*converted)[1].is_int());
        EXPECT_EQ((*converted)[1].integer(), 1);
        EXPECT_TRUE((*converted)[2].is_float());
        EXPECT_TRUE((*session_.run(module, {true, false}))[0].is_float());
        EXPECT_EQ(run(module, {1.0, 2.0}).substr(0, 5), "E0404");
        EXPECT_EQ(run(module, {ones({1}), std::int64_t{2}}).substr(0, 5), "E0404");
    }
}

// An i64 tensor beside what is declared a float gives floats, whatever number came.
TEST_P(DeclarationTest, ResultTypesFollowTheDeclaration) {
    const Module module = module_from(R"(
.func main(x: i64[N], a: float) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL a
  CALL_OP add 2
  RETURN 1
)");
    Tensor x = Tensor::empty(DType::kI64, {2});
    std::fill_n(x.data_as<std::int64_t>(), 2, 1);
    EXPECT_EQ(run(module, {x, std::int64_t{2}}), "f32[2]");
    EXPECT_EQ(run(module, {x, 2.0}), "f32[2]");
}

TEST_P(DeclarationTest, CallsBindTheSymbolsOfTheirFunction) {
    const Module module = module_from(R"(
.func main(x: f32[N, 4], y: f32[M], n: int) -> 2
  LOAD_LOCAL y
  LOAD_LOCAL n
  CALL counted 2
  RETURN 2
.end
.func counted(z: f32[N], a: float) -> 2
  CALL_OP zeros 0 shape=[N]
  LOAD_LOCAL a
  RETURN 2
.end
)");
    const auto results = session_.run(module, {ones({5, 4}), ones({3}), std::int64_t{7}});
    ASSERT_TRUE(results) << results.error().to_string();
    EXPECT_EQ((*results)[0].describe(), "f32[3]");
    EXPECT_TRUE((*results)[1].is_float());
}

TEST_P(DeclarationTest, CallsRefuseWhatTheirFunctionDoesNotDeclare) {
    const auto code = [&](std::string_view declared, std::vector<Value> arguments) {
        const Module module = module_from(R"(
.func main(x: any) -> 1
  LOAD_LOCAL x
  CALL inner 1
  RETURN 1
.end
.func inner(y: )" + std::string(declared) +
                                          R"() -> 1
  LOAD_LOCAL y
  RETURN 1
.end
)");
        return run(module, arguments).substr(0, 5);
    };
    EXPECT_EQ(code("f32[4]", {ones({5})}), "E0504");
    EXPECT_EQ(code("f32[4]", {ones({4, 1})}), "E0502");
    EXPECT_EQ(code("i64[N]", {ones({4})}), "E0503");
    EXPECT_EQ(code("f32[2*N]", {ones({5})}), "E0504");
    EXPECT_EQ(code("int", {2.5}), "E0404");
    EXPECT_EQ(code("bool", {std::int64_t{1}}), "E0404");
    EXPECT_EQ(code("f32[N]", {ones({4})}), "f32[4");
}

}  // namespace
}  // namespace flexor
