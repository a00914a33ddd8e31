#include "bytecode/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace flexor::bytecode {
namespace {

using Op = ScalarOperator;

std::string run(Op op, Value a, Value b) {
    auto result = scalar_binary(op, a, b);
    return result ? result->describe() : result.error().code();
}

std::string run(Op op, Value a) {
    auto result = scalar_unary(op, a);
    return result ? result->describe() : result.error().code();
}

TEST(Scalar, PythonArithmetic) {
    EXPECT_EQ(run(Op::kFloorDiv, -7, 2), "-4");
    EXPECT_EQ(run(Op::kMod, -7, 2), "1");
    EXPECT_EQ(run(Op::kMod, 7, -2), "-1");
    EXPECT_EQ(run(Op::kFloorDiv, -7.5, 2), "-4.0");
    EXPECT_EQ(run(Op::kMod, -7.5, 2), "0.5");
    EXPECT_EQ(run(Op::kMod, 5.0, -3.0), "-1.0");
    EXPECT_EQ(run(Op::kTrueDiv, 7, 2), "3.5");
    EXPECT_EQ(run(Op::kPow, 2, 10), "1024");
    EXPECT_EQ(run(Op::kPow, 2, -1), "0.5");
    EXPECT_EQ(run(Op::kPow, -8, 3), "-512");
    EXPECT_EQ(run(Op::kAdd, true, true), "2");
    EXPECT_EQ(run(Op::kMul, 2, 1.5), "3.0");
    EXPECT_EQ(run(Op::kMin, 1, 1.0), "1") << "the first of equals, as min() gives it";
    EXPECT_EQ(run(Op::kMax, 3, 2), "3");
    EXPECT_EQ(run(Op::kAnd, 0, 5), "0");
    EXPECT_EQ(run(Op::kOr, 0, 5), "5");
    EXPECT_EQ(run(Op::kNeg, 3), "-3");
    EXPECT_EQ(run(Op::kNot, 0.0), "true");
    EXPECT_EQ(run(Op::kToInt, -2.9), "-2");
    EXPECT_EQ(run(Op::kToFloat, 3), "3.0");
}

TEST(Scalar, ComparisonsAreExact) {
    EXPECT_EQ(run(Op::kEq, std::int64_t{9007199254740993}, 9007199254740992.0), "false");
    EXPECT_EQ(run(Op::kLt, 9007199254740992.0, std::int64_t{9007199254740993}), "true");
    const double nan = std::nan("");
    for (const Op op : {Op::kEq, Op::kLt, Op::kLe, Op::kGt, Op::kGe}) EXPECT_EQ(run(op, nan, nan), "false");
    EXPECT_EQ(run(Op::kNe, nan, nan), "true");
    EXPECT_EQ(run(Op::kEq, "a", "a"), "true");
    EXPECT_EQ(run(Op::kEq, Value(), 0), "false");
    EXPECT_EQ(run(Op::kEq, Value(), Value()), "true");
}

TEST(Scalar, RefusalsInsteadOfWrapping) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(run(Op::kAdd, kMax, std::int64_t{1}), "E0309");
    EXPECT_EQ(run(Op::kMul, std::int64_t{1} << 40, std::int64_t{1} << 40), "E0309");
    EXPECT_EQ(run(Op::kFloorDiv, kMin, std::int64_t{-1}), "E0309");
    EXPECT_EQ(run(Op::kNeg, kMin), "E0309");
    EXPECT_EQ(run(Op::kPow, 10, 30), "E0309");
    EXPECT_EQ(run(Op::kToInt, 1e30), "E0309");
    EXPECT_EQ(run(Op::kToInt, std::nan("")), "E0309");
    for (const Op op : {Op::kTrueDiv, Op::kFloorDiv, Op::kMod}) {
        EXPECT_EQ(run(op, 1, 0), "E0310");
        EXPECT_EQ(run(op, 1.0, 0.0), "E0310");
    }
    EXPECT_EQ(run(Op::kPow, 0.0, -1.0), "E0310");
    EXPECT_EQ(run(Op::kPow, -8.0, 0.5), "E0404");
    EXPECT_EQ(run(Op::kAdd, "a", 1), "E0404");
}

TEST(Scalar, TruthAndItemOfTensors) {
    Tensor one = Tensor::empty(DType::kF16, {1, 1});
    *one.data_as<std::uint16_t>() = 0x3C00;
    EXPECT_TRUE(*truth(Value(one)));
    EXPECT_EQ(item(Value(one))->describe(), "1.0");
    Tensor two = Tensor::empty(DType::kI32, {2});
    EXPECT_EQ(truth(Value(two)).error().code(), "E0301");
    EXPECT_EQ(truth(Value("x")).error().code(), "E0404");
}

}  // namespace
}  // namespace flexor::bytecode
