#pragma once
// Tests that run on every tier: on the interpreter alone, and through regions that are compiled, evaluated, or evaluated under
// stress. What a program gives or refuses is the same on all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flexor/session.h"
#include "flexor/stress.h"
#include "programs.h"

namespace flexor {

enum class Tier : std::uint8_t { kInterpreted, kCompiled, kEvaluated, kEveryGuardFails, kEndsAtOnce, kExactOnly };

// All that serve families of shapes.
inline auto every_tier() {
    return testing::Values(Tier::kInterpreted, Tier::kCompiled, Tier::kEvaluated, Tier::kEveryGuardFails,
                           Tier::kEndsAtOnce);
}

inline std::string tier_name(const testing::TestParamInfo<Tier>& info) {
    constexpr const char* kNames[] = {"interpreted",       "compiled",     "evaluated",
                                      "every_guard_fails", "ends_at_once", "exact_only"};
    return kNames[static_cast<std::size_t>(info.param)];
}

// Of f32, in row-major order.
inline Tensor floats(std::initializer_list<std::int64_t> sizes, const std::vector<float>& values) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    EXPECT_EQ(tensor.numel(), static_cast<std::int64_t>(values.size()));
    std::copy(values.begin(), values.end(), tensor.data_as<float>());
    return tensor;
}

class TierTest : public testing::TestWithParam<Tier> {
protected:
    TierTest() : session_(options(), stress()) {}
    static SessionOptions options() {
        return {.compile = GetParam() != Tier::kInterpreted, .exact_only = GetParam() == Tier::kExactOnly};
    }
    static StressOptions stress() {
        return {.evaluate_kernels = GetParam() >= Tier::kEvaluated,
                .fail_guards = GetParam() == Tier::kEveryGuardFails,
                .end_at_once = GetParam() == Tier::kEndsAtOnce};
    }
    // Whether regions run as machine code; whether they would, in a build with the code generator.
    static bool has_compiled() { return GetParam() == Tier::kCompiled && Session::has_code_generator(); }
    static bool lacks_generator() { return GetParam() == Tier::kCompiled && !Session::has_code_generator(); }

    // The results; none after an error, which fails the test.
    std::vector<Value> run(std::string_view text, const std::vector<Value>& arguments) {
        const Module module = module_from(text);
        auto results = session_.run(module, arguments);
        if (!results) {
            ADD_FAILURE() << results.error().to_string();
            return {};
        }
        return std::move(*results);
    }
    std::string error_code(std::string_view text, const std::vector<Value>& arguments) {
        const Module module = module_from(text);
        auto results = session_.run(module, arguments);
        return results ? "no error" : results.error().code();
    }
    Session session_;
};

inline constexpr std::string_view kAddReluSum = R"(
.func main(x: f32[N]) -> 1
  LOAD_TENSOR x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  REDUCE_SUM axes=[0], keepdim=false
  RETURN 1
)";

}  // namespace flexor
