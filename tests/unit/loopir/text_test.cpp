#include <cmath>

#include "unit/loopir/kernels.h"

namespace flexor::loopir {
namespace {

using testing::kernel_from;
using testing::verified;

TEST(LoopIrText, RoundTrips) {
    for (const char* text : {testing::kAddReluSum, testing::kSoftmax, testing::kGather, testing::kLinear,
                             testing::kPrologue, testing::kAttention, "kernel e(%0: in f32) params 1 extern sort"}) {
        const Kernel first = kernel_from(text);
        EXPECT_TRUE(verify(first)) << text;
        const std::string printed = print(first);
        const Kernel second = kernel_from(printed);
        EXPECT_EQ(print(second), printed);
        EXPECT_TRUE(structurally_equal(first, second)) << printed;
        EXPECT_EQ(structural_hash(first), structural_hash(second));
    }
}

TEST(LoopIrText, PrintsWhatIsWritten) {
    EXPECT_EQ("\n" + print(kernel_from(testing::kAddReluSum)), testing::kAddReluSum);
    EXPECT_EQ("\n" + print(kernel_from(testing::kSoftmax)), testing::kSoftmax);
    EXPECT_EQ("\n" + print(kernel_from(testing::kGather)), testing::kGather);
    EXPECT_EQ("\n" + print(kernel_from(testing::kAttention)), testing::kAttention);
    Kernel nan = kernel_from(testing::kAttention);
    nan.attention->fully_masked = FullyMasked::kNan;
    EXPECT_NE(print(nan), print(kernel_from(testing::kAttention)));
    EXPECT_TRUE(structurally_equal(kernel_from(print(nan)), nan));
}

TEST(LoopIrText, Literals) {
    const Kernel kernel = verified(R"(
        kernel literals(%0: out f64, %1: out i64, %2: inout bool) params 0 ; a comment
        row parallel [] row [3]
          v0 = const -1e-05 : f64   ; an exponent
          v1 = const inf : f64
          v2 = const nan : f64
          v3 = const -inf : f64
          v4 = const -9223372036854775808 : i64
          v5 = const 1 : bool
          v6 = load %2 [1] : bool
          v7 = or v5, v6 : bool
          v8 = add v0, v1 : f64
          v9 = add v8, v2 : f64
          v10 = add v9, v3 : f64
          s0 = store %0 [1] v10
          s1 = store %1 [1] v4
          s2 = store %2 [1] v7
    )");
    const std::string printed = print(kernel);
    EXPECT_NE(printed.find("const -1e-05 : f64"), std::string::npos) << printed;
    EXPECT_NE(printed.find("const -9223372036854775808 : i64"), std::string::npos) << printed;
    EXPECT_TRUE(structurally_equal(kernel, kernel_from(printed)));
    EXPECT_TRUE(kernel.buffers[2].read && kernel.buffers[2].written);
}

TEST(LoopIrText, NamesAreFreeText) {
    Kernel kernel = kernel_from(testing::kAddReluSum);
    for (const char* name : {"", "a:", "two words", "quote\"(%0: in", "α"}) {
        kernel.name = name;
        kernel.buffers[0].name = name;
        const Kernel back = kernel_from(print(kernel));
        EXPECT_EQ(back.name, name);
        EXPECT_EQ(back.buffers[0].name, name);
    }
}

TEST(LoopIrText, RefusesWithLineAndReason) {
    const struct {
        const char* text;
        const char* code;
        const char* part;
    } cases[] = {
        {"", "E0801", "line 1"},
        {"kernel x() params 0\nloop", "E0802", "line 2"},
        {"kernel x(%1: in f32) params 0 row parallel [] row []", "E0801", "in order"},
        {"kernel x(%0: in f3) params 0", "E0803", "a dtype"},
        {"kernel x() params 0\nrow parallel [] row []\n\nv0 = ad v1, v2 : f32", "E0802", "did you mean 'add'"},
        {"kernel x() params 0 row parallel [] row [] v1 = const 1 : i64", "E0801", "in order"},
        {"kernel x() params 0 row parallel [] row [] v0 = const 1.5 : i64", "E0803", "an integer"},
        {"kernel x() params 0 row parallel [] row [] s0 = reduce average v0", "E0802", "a reduction"},
        {"kernel x() params 0 row parallel [] row [] nonsense", "E0801", "the end of the kernel"},
        {"kernel x() params 99999999999 extern y", "E0803", "an index"},
        {"kernel \"x", "E0803", "quoted"},
        {"kernel x(", "E0801", "line 1"},
    };
    for (const auto& c : cases) {
        const auto kernel = parse(c.text);
        ASSERT_FALSE(kernel) << c.text;
        EXPECT_EQ(kernel.error().code(), c.code) << kernel.error().to_string();
        EXPECT_NE(kernel.error().to_string().find(c.part), std::string::npos) << kernel.error().to_string();
    }
}

// Whatever is cut out of a text, reading it neither crashes nor reads out of bounds.
TEST(LoopIrText, SurvivesDamage) {
    int accepted = 0;
    for (const std::string text : {testing::kSoftmax, testing::kGather, testing::kPrologue, testing::kAttention}) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            for (const std::size_t n : {1, 3, 17}) {
                std::string damaged = text;
                damaged.erase(i, n);
                const auto kernel = parse(damaged);
                if (!kernel) continue;
                ++accepted;
                static_cast<void>(verify(*kernel).has_value());
                EXPECT_FALSE(print(*kernel).empty());
            }
        }
    }
    EXPECT_GT(accepted, 10);
}

}  // namespace
}  // namespace flexor::loopir
