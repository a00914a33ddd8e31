#include "types/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "types/half.h"

namespace flexor::types {
namespace {

PromotionOperand operand_from_text(const std::string& text) {
    const auto colon = text.find(':');
    const auto dtype = dtype_from_name(text.substr(0, colon));
    EXPECT_TRUE(dtype) << text;
    const char s = text[colon + 1];
    return {*dtype, s == 't' ? Strength::kTensor : (s == 'z' ? Strength::kZeroDim : Strength::kScalar)};
}

TEST(Promotion, AgreesWithTorchAndNumpyForEveryPair) {
    std::ifstream file(FLEXOR_SOURCE_DIR "/tests/unit/types/promotion.txt");
    std::string line;
    int lines = 0;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string rule, a, b, result;
        words >> rule >> a >> b >> result;
        const auto promotion = rule == "torch" ? Promotion::kTorch : Promotion::kNumpy;
        const std::vector<PromotionOperand> forward{operand_from_text(a), operand_from_text(b)};
        const std::vector<PromotionOperand> backward{forward[1], forward[0]};
        EXPECT_EQ(dtype_name(promote(forward, promotion)), result) << line;
        EXPECT_EQ(dtype_name(promote(backward, promotion)), result) << line;
        ++lines;
    }
    EXPECT_GT(lines, 400);
}

TEST(Promotion, DoesNotDependOnTheOrderOfThreeOperands) {
    for (const auto rule : {Promotion::kTorch, Promotion::kNumpy}) {
        for (int a = 0; a < kDTypeCount; ++a) {
            for (int b = 0; b < kDTypeCount; ++b) {
                for (int c = 0; c < kDTypeCount; ++c) {
                    const auto t = [](int d) { return PromotionOperand{static_cast<DType>(d), Strength::kTensor}; };
                    const std::vector<PromotionOperand> abc{t(a), t(b), t(c)};
                    const std::vector<PromotionOperand> cab{t(c), t(a), t(b)};
                    if (rule == Promotion::kTorch || (a != 6 && b != 6 && c != 6)) {
                        EXPECT_EQ(promote(abc, rule), promote(cab, rule)) << a << b << c;
                    }
                }
            }
        }
    }
}

TEST(Promotion, NumpyJoinsFloatsFirst) {
    const auto t = [](DType d) { return PromotionOperand{d, Strength::kTensor}; };
    const std::vector<PromotionOperand> operands{t(DType::kI8), t(DType::kU8), t(DType::kF16)};
    EXPECT_EQ(promote(operands, Promotion::kNumpy), DType::kF16);
    EXPECT_EQ(promote(std::span(operands).first(2), Promotion::kNumpy), DType::kI32);
}

TEST(DTypeNames, RoundTrip) {
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto d = static_cast<DType>(i);
        EXPECT_EQ(dtype_from_name(dtype_name(d)), d);
        EXPECT_EQ(dtype_from_name(dtype_framework_name(d)), d);
    }
    EXPECT_FALSE(dtype_from_name("f8"));
}

TEST(Half, EveryF16RoundTripsAndAgreesWithTheCompiler) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto h = static_cast<std::uint16_t>(bits);
        const float value = f32_from_f16(h);
        const auto native = static_cast<float>(std::bit_cast<_Float16>(h));
        if (std::isnan(native)) {
            EXPECT_TRUE(std::isnan(value));
            EXPECT_TRUE(std::isnan(f32_from_f16(f16_from_f32(value))));
        } else {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(native)) << bits;
            ASSERT_EQ(f16_from_f32(value), h);
            ASSERT_EQ(f16_from_f64(value), h);
        }
        const float wide = f32_from_bf16(h);
        if (!std::isnan(wide)) {
            ASSERT_EQ(bf16_from_f32(wide), h);
            ASSERT_EQ(bf16_from_f64(wide), h);
        }
    }
}

TEST(Half, TiesGoToTheEvenNeighbour) {
    for (std::uint32_t bits = 0; bits + 1 < 0x10000; ++bits) {
        if ((bits & 0x7FFF) >= 0x7BFF) continue;  // no finite neighbour
        const double low = f32_from_f16(static_cast<std::uint16_t>(bits));
        const double high = f32_from_f16(static_cast<std::uint16_t>(bits + 1));
        const std::uint32_t even = (bits & 1) != 0 ? bits + 1 : bits;
        ASSERT_EQ(f16_from_f32(static_cast<float>((low + high) / 2)), even);
    }
    EXPECT_EQ(f16_from_f32(65519.f), 0x7BFF);
    EXPECT_EQ(f16_from_f32(65520.f), 0x7C00);
    EXPECT_EQ(bf16_from_f32(1.00390625f), 0x3F80);
    EXPECT_EQ(bf16_from_f32(1.01171875f), 0x3F82);
}

TEST(Half, RoundsToNearestEven) {
    std::uint64_t state = 12345;
    for (int i = 0; i < 200000; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto pattern = static_cast<std::uint32_t>(state >> 32);
        const auto value = std::bit_cast<float>(pattern);
        if (std::isnan(value)) continue;
        ASSERT_EQ(f16_from_f32(value), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) << pattern;
        // The magnitudes where f16 lives are rare among random patterns.
        const float near = std::ldexp(1.0f + static_cast<float>(pattern & 0xFFFFFF) / 16777216.0f, i % 44 - 27);
        ASSERT_EQ(f16_from_f32(near), std::bit_cast<std::uint16_t>(static_cast<_Float16>(near))) << near;
        const double twice = std::ldexp(1.0 + static_cast<double>(state >> 12) / 4503599627370496.0, i % 44 - 27);
        ASSERT_EQ(f16_from_f64(twice), f16_from_f32(static_cast<float>(twice))) << twice;
        // bf16: the nearer of the two neighbours, the even one on a tie.
        const std::uint16_t rounded = bf16_from_f32(value);
        const auto down = static_cast<std::uint16_t>(pattern >> 16);
        const std::uint32_t rest = pattern & 0xFFFF;
        const bool up = rest > 0x8000 || (rest == 0x8000 && (down & 1));
        ASSERT_EQ(rounded, static_cast<std::uint16_t>(down + (up ? 1 : 0)));
    }
    // 1 + 2^-8 + 2^-40 lies above the tie between two bf16 numbers; the way over f32 loses that, in torch too.
    EXPECT_EQ(bf16_from_f64(1.0 + 0x1p-8 + 0x1p-40), 0x3F80);
    EXPECT_EQ(bf16_from_f64(1.0 + 0x1p-8 + 0x1p-20), 0x3F81);
    EXPECT_EQ(bf16_from_f64(1.0 + 0x1p-8), 0x3F80);
}

}  // namespace
}  // namespace flexor::types
