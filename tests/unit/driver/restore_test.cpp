// Runs that fail and give back what they have overwritten (CallOptions::restores).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "elements.h"
#include "flexor/session.h"
#include "flexor/stress.h"

namespace flexor {
namespace {

using Numbers = std::vector<double>;

// Writes to all of x, to a part of it, by indices, and to a list's tensor, and asks between them whether n is 1, 2, ...
constexpr const char* kProgram = R"(.func main(x: f32[N, 4], i: i64[K], y: f32[K, 4], rows: any, n: int) -> 1
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR ne
  ASSERT "first"
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul_ 2
  POP
  LOAD_LOCAL n
  LOAD_CONST 2
  SCALAR ne
  ASSERT "second"
  LOAD_LOCAL x
  CALL_OP slice 1 axis=1, start=1, stop=3
  LOAD_CONST 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL n
  LOAD_CONST 3
  SCALAR ne
  ASSERT "third"
  LOAD_LOCAL x
  LOAD_LOCAL y
  LOAD_LOCAL i
  CALL_OP index_put_ 3 axis=0, accumulate=true
  POP
  LOAD_LOCAL n
  LOAD_CONST 4
  SCALAR ne
  ASSERT "fourth"
  LOAD_LOCAL rows
  LOAD_CONST 0
  LIST_GET
  LOAD_CONST 5.0
  CALL_OP fill_ 2
  POP
  LOAD_LOCAL n
  LOAD_CONST 5
  SCALAR ne
  ASSERT "fifth"
  LOAD_LOCAL x
  CALL_OP relu 1
  RETURN 1
)";

Tensor matrix(std::int64_t rows, float first) {
    Tensor tensor = Tensor::empty(DType::kF32, {rows, 4});
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<float>()[i] = first + static_cast<float>(i);
    return tensor;
}

CallOptions options_that(bool restores) {
    CallOptions options;
    options.restores = restores;
    return options;
}

// In regions that are compiled, or evaluated; cut at once; and on the interpreter.
class RestoreTest : public testing::TestWithParam<int> {
protected:
    static SessionOptions options() { return {.compile = GetParam() < 3}; }
    static StressOptions stress() {
        return {.evaluate_kernels = GetParam() == 1 || !Session::has_code_generator(), .end_at_once = GetParam() == 2};
    }
};

TEST_P(RestoreTest, WhatWasOverwrittenIsGivenBack) {
    auto module = Module::from_text(kProgram, "test.fasm");
    ASSERT_TRUE(module) << module.error().to_string();
    Session session(options(), stress());
    for (const bool restores : {true, false}) {
        for (const std::int64_t stop : {0, 1, 2, 3, 4, 5}) {
            const Tensor x = matrix(5, 1), y = matrix(3, 50), row = matrix(2, 9);
            Tensor index = Tensor::empty(DType::kI64, {3});
            std::ranges::copy(std::vector<std::int64_t>{4, 1, 1}, index.data_as<std::int64_t>());
            const std::vector<Value> arguments{x, index, y, Value::list({row}), stop};
            const auto done = session.run(*module, arguments, options_that(restores));
            EXPECT_EQ(static_cast<bool>(done), stop == 0);
            Numbers wanted = elements(matrix(5, 1));
            const bool stays = stop == 0 || !restores;
            const auto reached = [&](std::int64_t place) { return stays && (stop == 0 || stop > place); };
            for (std::size_t at = 0; at < wanted.size(); ++at) {
                if (reached(1)) wanted[at] *= 2;
                if (reached(2) && (at % 4 == 1 || at % 4 == 2)) wanted[at] += 1;
            }
            for (std::size_t k = 0; k < 12 && reached(3); ++k)
                wanted[static_cast<std::size_t>(index.data_as<std::int64_t>()[k / 4]) * 4 + k % 4] += elements(y)[k];
            EXPECT_EQ(elements(x), wanted) << stop << " " << restores;
            EXPECT_EQ(elements(row), reached(4) ? Numbers(8, 5.0) : elements(matrix(2, 9))) << stop << " " << restores;
        }
    }
}

TEST_P(RestoreTest, ElementsThatAreInSeveralPlaces) {
    auto module = Module::from_text(R"(.func main(x: f32[N], i: i64[K]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 3.0
  CALL_OP fill_ 2
  LOAD_LOCAL i
  CALL_OP take 2
  RETURN 1
)",
                                    "test.fasm");
    ASSERT_TRUE(module) << module.error().to_string();
    Session session(options(), stress());
    const Tensor one = matrix(1, 7);
    const std::int64_t sizes[] = {6}, strides[] = {0};
    Tensor index = Tensor::empty(DType::kI64, {1});
    *index.data_as<std::int64_t>() = 6;
    const auto done =
        session.run(*module, {one.view(one.data(), DType::kF32, sizes, strides), index}, options_that(true));
    ASSERT_FALSE(done);
    EXPECT_EQ(elements(one), elements(matrix(1, 7)));
}

INSTANTIATE_TEST_SUITE_P(Engines, RestoreTest, testing::Range(0, 4));

}  // namespace
}  // namespace flexor
