// Functions of the host that a program calls.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/diagnostic.h"
#include "unit/driver/tiers.h"

namespace flexor {
namespace {

class ForeignTest : public TierTest {};
INSTANTIATE_TEST_SUITE_P(Tiers, ForeignTest, every_tier(), tier_name);

constexpr std::string_view kForeign = R"(
.hook log
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2
  CALL_OP mul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  CALL_FOREIGN log 1
  POP
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP add 2
  RETURN 1
)";

TEST_P(ForeignTest, ForeignCallOnceAndItsEffectIsSeen) {
    int calls = 0;
    Tensor x = floats({2}, {1, 2});
    session_.bind("log", [&](std::span<const Value> arguments) -> Expected<Value> {
        ++calls;
        EXPECT_EQ(values_of(arguments[0]), (std::vector<float>{2, 4}));
        x.data_as<float>()[0] = 10;  // x is read again after the call
        return Value();
    });
    EXPECT_EQ(values_of(run(kForeign, {x})[0]), (std::vector<float>{12, 6}));
    EXPECT_EQ(calls, 1);
    const Stats stats = session_.stats();
    const auto row = std::find_if(stats.fallbacks.begin(), stats.fallbacks.end(),
                                  [](const FallbackRow& r) { return r.op == "foreign log"; });
    ASSERT_NE(row, stats.fallbacks.end());
    EXPECT_EQ(row->count, 1u);
    EXPECT_EQ(row->reason, "foreign");
    EXPECT_EQ(row->line, 9);
}

TEST_P(ForeignTest, ForeignErrorsAndMissingHooks) {
    EXPECT_EQ(error_code(kForeign, {floats({1}, {1})}), "E0705");
    session_.bind("log", [](std::span<const Value>) -> Expected<Value> {
        return Diagnostic(DiagnosticId::kAssertionFailed).found("no log");
    });
    EXPECT_EQ(error_code(kForeign, {floats({1}, {1})}), "E0508");
}

TEST_P(ForeignTest, SessionsMayBeUsedFromInsideAHook) {
    const Module inner = module_from(kAddReluSum);
    session_.bind("log", [&](std::span<const Value> arguments) -> Expected<Value> {
        auto result = session_.run(inner, arguments);
        EXPECT_TRUE(result) << result.error().to_string();
        EXPECT_EQ(values_of((*result)[0]), (std::vector<float>{3 + 5}));
        return Value();
    });
    EXPECT_EQ(values_of(run(kForeign, {floats({2}, {1, 2})})[0]), (std::vector<float>{3, 6}));
}

}  // namespace
}  // namespace flexor
