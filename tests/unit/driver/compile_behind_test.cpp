// Regions that a thread compiles beside the calls: right results all the time, one compilation, no wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "flexor/session.h"
#include "flexor/stress.h"

namespace flexor::compile_behind {
namespace {

Tensor ones(std::initializer_list<std::int64_t> sizes) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    std::fill_n(tensor.data_as<float>(), tensor.numel(), 1.0f);
    return tensor;
}

Module module_from(std::string_view text) {
    auto module = Module::from_text(text, "test.fasm");
    EXPECT_TRUE(module) << module.error().to_string();
    return *module;
}

class CompileBehindTest : public testing::Test {
protected:
    CompileBehindTest()
        : session_(
              [] {
                  SessionOptions options;
                  options.compile_behind = true;
                  return options;
              }(),
              {.evaluate_kernels = !Session::has_code_generator()}) {}

    float run(const Module& module, const Tensor& x) {
        const auto results = session_.run(module, std::vector<Value>{x});
        EXPECT_TRUE(results) << results.error().to_string();
        return results ? results->at(0).tensor().data_as<float>()[0] : 0;
    }

    Session session_;
};

TEST_F(CompileBehindTest, CallsAreInterpretedUntilTheRegionIsThere) {
    const Module module = module_from(R"(
.func main(x: any) -> 1
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add 2
  CALL_OP reduce_sum 1
  RETURN 1
)");
    EXPECT_EQ(run(module, ones({3})), 6);
    session_.settle();
    EXPECT_EQ(session_.stats().compilations, 1u);
    const std::uint64_t interpreted = session_.stats().interpreted_ops;
    EXPECT_EQ(interpreted, 2u);
    for (const FallbackRow& row : session_.stats().fallbacks) EXPECT_EQ(row.reason, "being_compiled");
    for (std::int64_t n : {0, 1, 2, 33}) EXPECT_EQ(run(module, ones({n})), 2.0f * static_cast<float>(n));
    EXPECT_EQ(session_.stats().compilations, 1u);
    EXPECT_EQ(session_.stats().interpreted_ops, interpreted);
    // Another rank is another family.
    EXPECT_EQ(run(module, ones({2, 2})), 8);
    session_.settle();
    EXPECT_EQ(session_.stats().compilations, 2u);
    EXPECT_EQ(session_.stats().interpreted_ops, interpreted + 2);
    EXPECT_EQ(run(module, ones({2, 5})), 20);
    EXPECT_EQ(session_.stats().compilations, 2u);
}

constexpr std::string_view kLoop = R"(
.func main(x: any) -> 1
  LOAD_CONST 0
  STORE_LOCAL i
head:
  LOOP_HEAD
  LOAD_LOCAL i
  LOAD_CONST 5
  SCALAR lt
  BRANCH_IF_FALSE end
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul 2
  STORE_LOCAL x
  LOAD_LOCAL i
  LOAD_CONST 1
  SCALAR add
  STORE_LOCAL i
  JUMP head
end:
  LOAD_LOCAL x
  CALL_OP reduce_sum 1
  RETURN 1
)";

TEST_F(CompileBehindTest, ALoopIsOneRegionAndThreadsMayCallMeanwhile) {
    const Module module = module_from(kLoop);
    std::vector<std::thread> threads;
    std::vector<float> found(4);
    for (std::size_t t = 0; t < found.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int turn = 0; turn < 50; ++turn) found[t] += run(module, ones({3}));
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const float total : found) EXPECT_EQ(total, 50 * 96.0f);
    session_.settle();
    EXPECT_EQ(session_.stats().compilations, 1u);
    EXPECT_EQ(run(module, ones({4})), 128);
}

TEST_F(CompileBehindTest, AHookEndsARegionAndTypedOnesAreNoFallbacks) {
    const Module module = module_from(R"(
.hook twice
.func main(x: any) -> 1
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add 2
  CALL_FOREIGN twice 1
  CALL_OP reduce_sum 1
  RETURN 1
)");
    session_.bind(
        "twice",
        [](std::span<const Value> arguments) -> Expected<Value> {
            Tensor out = Tensor::empty(DType::kF32, {arguments[0].tensor().numel()});
            for (std::int64_t i = 0; i < out.numel(); ++i)
                out.data_as<float>()[i] = 2 * arguments[0].tensor().data_as<float>()[i];
            return Value(out);
        },
        true);
    for (int turn = 0; turn < 3; ++turn) {
        EXPECT_EQ(run(module, ones({3})), 12);
        session_.settle();
    }
    const Stats stats = session_.stats();
    EXPECT_EQ(stats.typed_calls, 3u);
    EXPECT_EQ(stats.compilations, 2u);
    EXPECT_NE(to_json(stats).find("\"typed_calls\":3"), std::string::npos) << to_json(stats);
    EXPECT_NE(to_prometheus(stats).find("flexor_typed_calls_total 3"), std::string::npos);
    EXPECT_NE(to_text(stats).find("typed calls      3"), std::string::npos);
    for (const FallbackRow& row : stats.fallbacks) EXPECT_EQ(row.reason, "being_compiled") << row.op;
}

TEST_F(CompileBehindTest, PreparationAndExplanationCompileAtOnce) {
    const Module module = module_from(kLoop);
    const auto told = session_.explain(module, std::vector<Value>{ones({3})});
    ASSERT_TRUE(told);
    EXPECT_EQ(session_.stats().compilations, 1u);
    const Module other = module_from(R"(
.func main(x: f32[N, 2]) -> 1
  LOAD_LOCAL x
  CALL_OP exp 1
  RETURN 1
)");
    const SizeRange range[] = {{"N", 1, 9}};
    ASSERT_TRUE(session_.prepare(other, range));
    EXPECT_EQ(session_.stats().compilations, 2u);
    const std::uint64_t interpreted = session_.stats().interpreted_ops;
    run(other, ones({7, 2}));
    EXPECT_EQ(session_.stats().interpreted_ops, interpreted);
}

TEST(Behind, ASessionThatEndsLeavesWhatIsOpen) {
    for (int turn = 0; turn < 20; ++turn) {
        SessionOptions options;
        options.compile_behind = true;
        Session session(options, {.evaluate_kernels = !Session::has_code_generator()});
        const Module module = module_from(kLoop);
        EXPECT_TRUE(session.run(module, std::vector<Value>{ones({turn + 1})}));
    }
}

}  // namespace
}  // namespace flexor::compile_behind
