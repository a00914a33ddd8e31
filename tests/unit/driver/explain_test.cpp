// What Session::explain tells, and the arguments that it makes itself.
#include <gtest/gtest.h>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class ExplainTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, ExplainTest, every_tier(), tier_name);

TEST_P(ExplainTest, ExplainTellsTheSteps) {
    const Module module = module_from(kAddReluSum);
    const auto explanation = session_.explain(module);
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    const std::string& text = explanation->text;
    EXPECT_FALSE(explanation->refusal);
    EXPECT_NE(text.find("load"), std::string::npos);
    EXPECT_NE(text.find("main(x: f32[N])"), std::string::npos);
    if (has_compiled()) {
        for (const char* phase : {"symbolise", "match guards", "generate", "register"})
            EXPECT_NE(text.find(phase), std::string::npos) << text;
        EXPECT_NE(text.find("reads 1, intermediate writes 0"), std::string::npos) << text;
    }
}

TEST_P(ExplainTest, ExplainTellsARefusalAndHandsItOver) {
    const Module module = module_from(R"(
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP floor_divide 2
  RETURN 1
)");
    const Tensor zeros = Tensor::empty(DType::kI64, {1});
    zeros.data_as<std::int64_t>()[0] = 0;
    const auto explanation = session_.explain(module, std::vector<Value>{zeros, zeros});
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    ASSERT_TRUE(explanation->refusal);
    EXPECT_EQ(explanation->refusal->code(), "E0310");
    EXPECT_NE(explanation->text.find("raised        E0310"), std::string::npos) << explanation->text;
    EXPECT_FALSE(session_.explain(module, "missing"));
}

TEST_P(ExplainTest, ExampleArgumentsFitTogether) {
    const auto sizes_of = [&](std::string_view text) {
        const Module module = module_from(text);
        const auto arguments = Session::example_arguments(module);
        std::vector<std::vector<std::int64_t>> out;
        if (!arguments) return out;
        for (const Value& argument : *arguments)
            out.emplace_back(argument.tensor().sizes().begin(), argument.tensor().sizes().end());
        const auto results = session_.run(module, *arguments);
        EXPECT_TRUE(results) << results.error().to_string() << text;
        return out;
    };
    using Shapes = std::vector<std::vector<std::int64_t>>;
    EXPECT_EQ(sizes_of(R"(
.func main(x: f32[A, B], y: f32[C, D]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP matmul 2
  RETURN 1
)"),
              (Shapes{{8, 9}, {9, 11}}));
    // A weight decides, through a chain of ops.
    EXPECT_EQ(sizes_of(R"(
.weight w f32[5, 32] = ones
.func main(x: f32[A, B], y: f32[C]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  LOAD_WEIGHT w
  CALL_OP linear 2
  RETURN 1
)"),
              (Shapes{{8, 32}, {32}}));
    // Both sides of a branch, and an optional argument.
    EXPECT_EQ(sizes_of(R"(
.func main(x: f32[A], y: f32[B]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL alone
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
alone:
  LOAD_LOCAL x
  RETURN 1
)"),
              (Shapes{{8}, {8}}));
    // No equality of symbols: a product that must come out.
    const Shapes reshaped = sizes_of(R"(
.func main(x: f32[A, B]) -> 1
  LOAD_LOCAL x
  CALL_OP reshape 1 shape=[13, 768]
  RETURN 1
)");
    ASSERT_EQ(reshaped.size(), 1u);
    EXPECT_EQ(reshaped[0][0] * reshaped[0][1], 13 * 768);
}

}  // namespace
}  // namespace flexor
