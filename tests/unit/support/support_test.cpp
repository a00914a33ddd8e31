#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>

#include "support/check.h"
#include "support/diagnostic.h"
#include "support/environment.h"
#include "support/expected.h"
#include "support/hash.h"
#include "support/text.h"

namespace flexor {
namespace {

Expected<int> half(int value) {
    if (value % 2 != 0) return Diagnostic(DiagnosticId::kShapeMismatch).found(std::to_string(value)).expected("even");
    return value / 2;
}

Expected<int> quarter(int value) {
    FLEXOR_ASSIGN(const int first, half(value));
    FLEXOR_ASSIGN(const int second, half(first));
    return second;
}

Status even(int value) {
    FLEXOR_TRY(half(value));
    return {};
}

TEST(Expected, HandsValuesAndErrorsOn) {
    EXPECT_EQ(*quarter(8), 2);
    const auto refused = quarter(6);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().found(), "3");
    EXPECT_TRUE(even(4));
    EXPECT_FALSE(even(5));
}

TEST(Expected, HoldsMoveOnlyValues) {
    Expected<std::unique_ptr<int>> held = std::make_unique<int>(7);
    const std::unique_ptr<int> taken = std::move(held).value();
    EXPECT_EQ(*taken, 7);
}

TEST(Diagnostic, PrintsEveryPartThatIsPresent) {
    const auto diagnostic = Diagnostic(DiagnosticId::kShapeMismatch)
                                .source("model.py:3")
                                .op("add")
                                .operand("y")
                                .constraint("C1")
                                .found("[3]")
                                .expected("[S = 4]")
                                .hint("slice y")
                                .cause(Diagnostic(DiagnosticId::kOutOfMemory).pc(0));
    EXPECT_EQ(diagnostic.to_string(),
              "E0301 the shapes of the operands do not fit together\n"
              "  at model.py:3, op add, operand y, constraint C1\n"
              "  found [3]\n"
              "  expected [S = 4]\n"
              "  hint: slice y\n"
              "  because E0602 the system gives no more memory\n"
              "    at pc 0");
    EXPECT_EQ(diagnostic.name(), "ShapeMismatch");
    EXPECT_EQ(diagnostic.kind(), DiagnosticKind::kUserError);
    EXPECT_EQ(diagnostic.causes().at(0).kind(), DiagnosticKind::kLimit);
    EXPECT_EQ(Diagnostic(DiagnosticId::kOpNotCompiled).kind(), DiagnosticKind::kNotSupported);
    EXPECT_EQ(Diagnostic(DiagnosticId::kInternalError).kind(), DiagnosticKind::kBug);
}

TEST(Diagnostic, RowsHaveASentenceAndAHundredOfTheirOwn) {
    for (const auto& row : support::diagnostic_rows()) {
        const int number = static_cast<int>(row.id);
        EXPECT_GE(number, 100);
        EXPECT_LT(number, 1000);
        EXPECT_FALSE(row.sentence.empty());
        EXPECT_NE(row.sentence.back(), '.') << row.name;
    }
}

TEST(Expected, AbortsWhereTheAbsentSideIsAskedFor) {
    Expected<int> refused = Diagnostic(DiagnosticId::kShapeMismatch).op("add");
    EXPECT_DEATH(refused.value(), "holds E0301.*\n.*op add");
    EXPECT_DEATH(*refused, "holds E0301");
    EXPECT_DEATH(static_cast<void>(*std::move(refused)), "holds E0301");
    Expected<std::string> text = std::string("text");
    EXPECT_DEATH(text.error(), "holds a value");
    EXPECT_DEATH(static_cast<void>(std::move(text).error()), "holds a value");
    Status done;
    EXPECT_DEATH(done.error(), "holds a value");
    const Status& same = done;
    EXPECT_DEATH(same.error(), "holds a value");
}

TEST(Check, TellsTheSinkInThePlaceOfStderr) {
    const auto dies = [] {
        set_fatal_sink(
            [](void* context, std::string_view text) { *static_cast<std::ostream*>(context) << "sink: " << text; },
            &std::cerr);
        FLEXOR_CHECK(1 + 1 == 3);
    };
    EXPECT_DEATH(dies(), "^sink: flexor: .*check failed: 1 \\+ 1 == 3$");
}

TEST(Check, AbortsWithTheCondition) { EXPECT_DEATH(FLEXOR_CHECK(1 + 1 == 3), "check failed: 1 \\+ 1 == 3"); }

TEST(Hash, IsStableAndSameInPieces) {
    EXPECT_EQ(support::hash_bytes(std::string_view()), 0x2D06800538D394C2ULL);
    support::Hasher hasher;
    hasher.add("stack ");
    hasher.add("bytecode");
    EXPECT_EQ(hasher.digest(), support::hash_bytes("stack bytecode"));
    EXPECT_NE(support::hash_bytes("a", 0), support::hash_bytes("a", 1));
    EXPECT_NE(support::hash_combine(support::hash_combine(0, 1), 2),
              support::hash_combine(support::hash_combine(0, 2), 1));
}

TEST(Text, DoublesReadBackAsThemselves) {
    for (const double value : {0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, std::numeric_limits<double>::infinity()}) {
        const std::string text = support::text_from_double(value);
        ASSERT_TRUE(support::double_from_text(text)) << text;
        EXPECT_EQ(*support::double_from_text(text), value);
        EXPECT_FALSE(support::int_from_text(text)) << text;
    }
    EXPECT_EQ(support::text_from_double(-0.0), "-0.0");
    EXPECT_TRUE(std::isnan(*support::double_from_text("nan")));
    EXPECT_FALSE(support::int_from_text("9223372036854775808"));
    EXPECT_FALSE(support::int_from_text("12x"));
}

TEST(Text, QuotesAndUnquotes) {
    const std::string raw("a\"b\\c\n\t\x01", 8);
    EXPECT_EQ(support::quote(raw), "\"a\\\"b\\\\c\\n\\t\\x01\"");
    EXPECT_EQ(support::unquote(support::quote(raw)), raw);
    for (const char* bad : {"", "\"", "\"\\\"", "\"\\q\"", "\"\\x0\"", "\"a\"b\"", "abc"}) {
        EXPECT_FALSE(support::unquote(bad)) << bad;
    }
}

TEST(Text, SplitsTrimsAndJoins) {
    EXPECT_EQ(support::split("a,,b", ',').size(), 3u);
    EXPECT_EQ(support::split("", ',').size(), 1u);
    EXPECT_EQ(support::trim(" \t a b\n"), "a b");
    const std::array<std::string, 2> items = {"x", "y"};
    EXPECT_EQ(support::join(items, ", "), "x, y");
    EXPECT_EQ(support::text_from_bytes(1536), "1.5 KiB");
    EXPECT_EQ(support::text_from_bytes(12), "12 B");
}

TEST(Text, FindsNearMisses) {
    constexpr std::array<std::string_view, 4> kNames = {"relu", "gelu", "reduce_sum", "matmul"};
    EXPECT_EQ(support::edit_distance("relu", "rleu"), 1u);
    EXPECT_EQ(support::closest_name("mamtul", kNames), "matmul");
    EXPECT_EQ(support::near_miss_hint("reduce_smu", kNames), "did you mean 'reduce_sum'?");
    EXPECT_EQ(support::near_miss_hint("convolution", kNames), "");
}

TEST(Environment, NumbersAreCheckedAndAbsentWhereNotGiven) {
    using support::check_environment, support::threads_from_environment, support::vector_bits_from_environment;
    ::unsetenv("FLEXOR_NUM_THREADS");
    ::setenv("FLEXOR_VECTOR_BITS", "", 1);
    EXPECT_TRUE(check_environment());
    EXPECT_EQ(*threads_from_environment(), std::nullopt);
    EXPECT_EQ(*vector_bits_from_environment(), std::nullopt);
    ::setenv("FLEXOR_NUM_THREADS", "3", 1);
    ::setenv("FLEXOR_VECTOR_BITS", "256", 1);
    EXPECT_EQ(**threads_from_environment(), 3);
    EXPECT_EQ(**vector_bits_from_environment(), 256);
    for (const char* wrong : {"0", "-5", "1025", "many", "4 threads", "2.5", "99999999999999999999"}) {
        ::setenv("FLEXOR_NUM_THREADS", wrong, 1);
        const auto refused = check_environment();
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().code(), "E0507");
        EXPECT_EQ(refused.error().where().operand, "FLEXOR_NUM_THREADS");
        EXPECT_NE(refused.error().found().find(wrong), std::string::npos);
    }
    ::unsetenv("FLEXOR_NUM_THREADS");
    for (const char* wrong : {"64", "1024", "wide"}) {
        ::setenv("FLEXOR_VECTOR_BITS", wrong, 1);
        EXPECT_FALSE(check_environment()) << wrong;
    }
    ::unsetenv("FLEXOR_VECTOR_BITS");
    EXPECT_TRUE(*support::stand_ins_from_environment());
    ::setenv("FLEXOR_STAND_INS", "0", 1);
    EXPECT_FALSE(*support::stand_ins_from_environment());
    ::setenv("FLEXOR_STAND_INS", "no", 1);
    EXPECT_EQ(support::check_environment().error().id(), DiagnosticId::kBadOption);
    ::unsetenv("FLEXOR_STAND_INS");
    for (const auto& [name, right] : {std::pair("FLEXOR_CUBLASLT", "always"), {"FLEXOR_DEPENDENT_LAUNCH", "late"}}) {
        ::setenv(name, right, 1);
        EXPECT_TRUE(check_environment()) << name;
        ::setenv(name, "perhaps", 1);
        const auto refused = check_environment();
        ASSERT_FALSE(refused) << name;
        EXPECT_EQ(refused.error().where().operand, name);
        EXPECT_NE(refused.error().expected().find(right), std::string::npos) << refused.error().to_string();
        ::unsetenv(name);
    }
    EXPECT_FALSE(support::dependent_launch_from_environment()->has_value());
}

}  // namespace
}  // namespace flexor
