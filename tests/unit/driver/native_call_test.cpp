// Ops on whole tensors as steps of a region: what their elements decide, and what follows it, is one compilation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "flexor/session.h"
#include "flexor/stress.h"

namespace flexor {
namespace {

using Floats = std::vector<float>;

Tensor vector_of(const Floats& values) {
    Tensor tensor = Tensor::empty(DType::kF32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.data_as<float>());
    return tensor;
}

Tensor matrix_of(std::int64_t columns, const Floats& values) {
    const Tensor flat = vector_of(values);
    const std::int64_t sizes[] = {flat.numel() / columns, columns}, strides[] = {columns, 1};
    return flat.view(flat.data(), DType::kF32, sizes, strides);
}

// Every other element of memory.
Tensor sliced(const Floats& values) {
    Floats wide;
    for (const float v : values) wide.insert(wide.end(), {v, 99});
    const Tensor flat = vector_of(wide);
    const std::int64_t sizes[] = {static_cast<std::int64_t>(values.size())}, strides[] = {2};
    return flat.view(flat.data(), DType::kF32, sizes, strides);
}

std::string text_of(const Value& value) {
    if (!value.is_tensor()) return value.describe();
    const Tensor tensor = value.tensor().contiguous();
    std::string text = value.describe() + ":";
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        switch (tensor.dtype()) {
            case DType::kF32: text += " " + std::to_string(tensor.data_as<float>()[i]); break;
            case DType::kI64: text += " " + std::to_string(tensor.data_as<std::int64_t>()[i]); break;
            case DType::kBool: text += tensor.data_as<std::uint8_t>()[i] != 0 ? " true" : " false"; break;
            default: ADD_FAILURE() << "another dtype";
        }
    }
    return text;
}

// On regions that are compiled, or evaluated where there is no code generator; evaluated always; and cut at once.
class NativeCallTest : public testing::TestWithParam<int> {
protected:
    static StressOptions stress() {
        const bool evaluate = GetParam() > 0 || !Session::has_code_generator();
        return {.evaluate_kernels = evaluate, .end_at_once = GetParam() == 2};
    }
    // Runs a program on several arguments as the interpreter does, in one region and one compilation.
    void expect_one_region(const std::string& text, const std::vector<std::vector<Value>>& calls) {
        auto module = Module::from_text(text, "test.fasm");
        ASSERT_TRUE(module) << module.error().to_string();
        Session session({}, stress());
        Session interpreter(SessionOptions{.compile = false});
        for (const std::vector<Value>& arguments : calls) {
            const auto found = session.run(*module, arguments);
            const auto wanted = interpreter.run(*module, arguments);
            ASSERT_TRUE(wanted) << wanted.error().to_string();
            ASSERT_TRUE(found) << found.error().to_string();
            ASSERT_EQ(found->size(), wanted->size());
            for (std::size_t i = 0; i < found->size(); ++i) EXPECT_EQ(text_of((*found)[i]), text_of((*wanted)[i]));
        }
        if (GetParam() == 2) return;
        const Stats stats = session.stats();
        EXPECT_EQ(stats.compilations, 1u);
        EXPECT_EQ(stats.region_exits, 0u);
        EXPECT_EQ(stats.interpreted_ops, 0u);
    }
};

INSTANTIATE_TEST_SUITE_P(Engines, NativeCallTest, testing::Range(0, 3));

const std::vector<std::vector<Value>> kVectors = {
    {vector_of({1, -2, 3, 0, 5})}, {vector_of({})}, {vector_of({-1})}, {vector_of({4})}, {vector_of(Floats(33, 2))}};

TEST_P(NativeCallTest, WhatFollowsAMaskIsTheSameRegion) {
    expect_one_region(R"(
.func main(x: f32[N]) -> 3
  LOAD_LOCAL x
  LOAD_LOCAL x
  CONST_SCALAR 0.0
  CALL_OP gt 2
  CALL_OP mask_select 2
  STORE_LOCAL chosen
  LOAD_LOCAL chosen
  CONST_SCALAR 2.0
  BINARY_MUL
  DUP
  CALL_OP reduce_sum 1
  LOAD_LOCAL chosen
  GET_DIM 0
  RETURN 3
)",
                      kVectors);
}

TEST_P(NativeCallTest, PlacesOfAMaskThatOnlySelect) {
    const std::string places = R"(
  CALL_OP nonzero 1
  CALL_OP select 1 axis=1, index=0
)";
    const std::string mask = "  LOAD_LOCAL x\n  CONST_SCALAR 0.0\n  CALL_OP gt 2\n";
    expect_one_region(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n" + mask + places +
                          "  CALL_OP take 2 axis=0, wrap=true\n  CALL_OP reduce_sum 1\n  RETURN 1\n",
                      kVectors);
    // The places are wanted too, so they are there.
    expect_one_region(".func main(x: f32[N]) -> 3\n" + mask + places +
                          "  STORE_LOCAL p\n  LOAD_LOCAL x\n  LOAD_LOCAL p\n  CALL_OP take 2 axis=0, wrap=true\n"
                          "  DUP\n  CALL_OP reduce_sum 1\n  LOAD_LOCAL p\n  RETURN 3\n",
                      kVectors);
    // Another tensor, which may be shorter, is not one that the mask selects from.
    expect_one_region(".func main(x: f32[N], y: f32[M]) -> 1\n  LOAD_LOCAL y\n" + mask + places +
                          "  CALL_OP take 2 axis=0, wrap=true\n  CALL_OP reduce_sum 1\n  RETURN 1\n",
                      {{vector_of({1, -1, 2, -3}), vector_of({5, 6, 7})}, {vector_of({-1}), vector_of({})}});
}

TEST_P(NativeCallTest, SelectionsByOneMaskHaveOneSize) {
    const std::string text = R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  CONST_SCALAR 0.0
  CALL_OP gt 2
  STORE_LOCAL m
  LOAD_LOCAL x
  LOAD_LOCAL m
  CALL_OP mask_select 2
  LOAD_LOCAL y
  LOAD_LOCAL m
  CALL_OP mask_select 2
  BINARY_MUL
  RETURN 1
)";
    std::vector<std::vector<Value>> calls;
    for (const auto& call : kVectors) calls.push_back({call[0], call[0]});
    expect_one_region(text, calls);
    // Nothing is left to be looked at in the run.
    if (GetParam() == 2) return;
    Session session({}, stress());
    const auto explained = session.explain(*Module::from_text(text, "test.fasm"), calls[0]);
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->text.find("check "), std::string::npos) << explained->text;
}

TEST_P(NativeCallTest, SumsOfASelectionLeaveOutWhatIsNotANumber) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    for (const char* reduce : {"reduce_sum 1", "reduce_prod 1", "reduce_sum 1 axes=[0], keepdim=true"}) {
        expect_one_region(std::string(R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CONST_SCALAR 0.0
  CALL_OP gt 2
  CALL_OP mask_select 2
  CALL_OP )") + reduce + "\n  RETURN 1\n",
                          {{vector_of({nan, 1, 2, -inf, 3})}, {vector_of({-inf, nan})}, {vector_of({})}});
    }
    expect_one_region(R"(
.func main(x: f32[N, 3]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CONST_SCALAR 0.0
  CALL_OP gt 2
  CALL_OP mask_select 2
  CALL_OP reduce_sum 1 axes=[0]
  RETURN 1
)",
                      {{matrix_of(3, {1, -2, nan, 4, -inf, 6})}, {matrix_of(3, {})}});
}

TEST_P(NativeCallTest, ALoopThatDropsWhatItHasSeen) {
    expect_one_region(R"(
.func main(x: f32[N]) -> 2
  LOAD_LOCAL x
  STORE_LOCAL rest
  LOAD_LOCAL x
  CALL_OP argsort 1 descending=true
  STORE_LOCAL order
  CONST_SCALAR 0
  STORE_LOCAL rounds
head:
  LOOP_HEAD
  LOAD_LOCAL order
  GET_DIM 0
  CONST_SCALAR 0
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL x
  LOAD_LOCAL order
  CALL_OP take 2 axis=0
  STORE_LOCAL rest
  LOAD_LOCAL order
  LOAD_LOCAL rest
  LOAD_LOCAL rest
  CALL_OP select 1 axis=0, index=0
  CONST_SCALAR 1.5
  BINARY_SUB
  CALL_OP lt 2
  CALL_OP mask_select 2
  STORE_LOCAL order
  LOAD_LOCAL rounds
  CONST_SCALAR 1
  SCALAR add
  STORE_LOCAL rounds
  JUMP head
done:
  LOAD_LOCAL rounds
  LOAD_LOCAL order
  RETURN 2
)",
                      {{vector_of({5, 1, 4.5f, 2, 9, 8})}, {vector_of({})}, {vector_of({3})}});
}

TEST_P(NativeCallTest, OrderAndRunningSumsAmongKernels) {
    const std::string text = R"(
.func main(x: f32[N]) -> 4
  LOAD_LOCAL x
  CONST_SCALAR 1.0
  BINARY_ADD
  CALL_OP sort 1
  STORE_LOCAL places
  CALL_OP cumsum 1 axis=0
  RELU
  LOAD_LOCAL places
  LOAD_LOCAL x
  CALL_OP cummax 1 axis=0
  RETURN 4
)";
    expect_one_region(text, kVectors);
    expect_one_region(text, {{sliced({-1, 7, 8, -9, 2, 0, 3})}, {sliced({1, 1})}});
}

TEST_P(NativeCallTest, WritesWaitForWhatReadsBeforeThem) {
    expect_one_region(R"(
.func main(x: f32[N]) -> 2
  LOAD_LOCAL x
  CALL_OP clone 1
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL y
  CONST_SCALAR 0.0
  CALL_OP gt 2
  CALL_OP mask_select 2
  STORE_LOCAL before
  LOAD_LOCAL y
  CONST_SCALAR 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL before
  LOAD_LOCAL y
  LOAD_LOCAL y
  CONST_SCALAR 0.0
  CALL_OP gt 2
  CALL_OP mask_select 2
  RETURN 2
)",
                      kVectors);
}

TEST_P(NativeCallTest, RefusalsNameTheOp) {
    auto module = Module::from_text(R"(
.func main(x: f32[N], m: bool[M]) -> 1
  LOAD_LOCAL x
  RELU
  LOAD_LOCAL m
  CALL_OP mask_select 2
  RETURN 1
)",
                                    "test.fasm");
    ASSERT_TRUE(module);
    Tensor mask = Tensor::empty(DType::kBool, {2});
    Session session({}, stress());
    const auto result = session.run(*module, {vector_of({1, 2, 3}), mask});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), "E0301");
    EXPECT_NE(result.error().to_string().find("mask_select"), std::string::npos);
}

}  // namespace
}  // namespace flexor
