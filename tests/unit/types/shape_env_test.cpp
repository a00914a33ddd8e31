#include "types/shape_env.h"

#include <gtest/gtest.h>

#include "types/interval.h"
#include "unit/types/random_expression.h"

namespace flexor::types {
namespace {

struct Fixture : ::testing::Test {
    ShapeEnv env;
    Dim symbol(const char* name, Range range = {0, kDimInfinity}, std::optional<std::int64_t> hint = std::nullopt) {
        return Dim::symbol(env.add_symbol(name, range, hint));
    }
};
using ShapeEnvTest = Fixture;

TEST_F(ShapeEnvTest, SolvesEqualitiesBySubstitution) {
    const Dim b = symbol("B", {1, 64});
    const Dim s = symbol("S", {1, 4096});
    const Dim s2 = symbol("S2", {1, 100});
    EXPECT_EQ(env.eq(s, s2), Truth::kUnknown);
    EXPECT_TRUE(env.assume_eq(s, s2));
    EXPECT_EQ(env.eq(s, s2), Truth::kTrue);
    EXPECT_EQ(env.simplify(b * s2 + 1), b * s + 1);
    EXPECT_EQ(env.range(s).hi, 100);  // what is known of the solved symbol stays known
    EXPECT_EQ(env.facts_to_string(), "B in 1..64, S in 1..100, S2 == S");
}

TEST_F(ShapeEnvTest, LinearSystems) {
    const Dim a = symbol("a"), b = symbol("b"), c = symbol("c");
    EXPECT_TRUE(env.assume_eq(2 * a, 4 * b + 2));  // a = 2b + 1
    EXPECT_TRUE(env.assume_eq(c, a + b));
    EXPECT_EQ(env.eq(c, 3 * b + 1), Truth::kTrue);
    EXPECT_FALSE(env.assume_eq(2 * a, 2 * b + 1));
    EXPECT_TRUE(env.assume_eq(b, 5));
    EXPECT_EQ(env.eq(c, 16), Truth::kTrue);
}

TEST_F(ShapeEnvTest, ProductsThatCannotBeSolved) {
    const Dim b = symbol("B", {1, 64}), s = symbol("S"), m = symbol("M"), n = symbol("N");
    EXPECT_TRUE(env.assume_eq(b * s, m * n));
    EXPECT_EQ(env.eq(4 * b * s, 4 * m * n), Truth::kTrue);
    EXPECT_EQ(env.simplify(b * s - n * m), Dim(0));
    EXPECT_TRUE(env.assume_eq(m, 3));
    EXPECT_EQ(env.eq(b * s, 3 * n), Truth::kTrue);
}

TEST_F(ShapeEnvTest, RangesDecideMinMaxBroadcastModAndDivision) {
    const Dim s = symbol("S", {2, 100}), t = symbol("T", {0, 7});
    EXPECT_EQ(env.simplify(Dim::broadcast(s, t)), s);
    EXPECT_EQ(env.simplify(Dim::mod(t, 8)), t);
    EXPECT_EQ(env.simplify(Dim::floor_div(t, 8)), Dim(0));
    EXPECT_EQ(env.simplify(Dim::trunc_div(s, 3)), Dim::floor_div(s, 3));
    EXPECT_TRUE(env.assume_range(s - t, {0, kDimInfinity}));
    EXPECT_EQ(env.simplify(Dim::min(s, t)), t);
    EXPECT_EQ(env.simplify(Dim::max(s + 1, t)), s + 1);
    EXPECT_TRUE(env.assume_eq(t, 1));
    EXPECT_EQ(env.simplify(Dim::broadcast(t, s)), s);
}

TEST_F(ShapeEnvTest, Divisibility) {
    const Dim s = symbol("S", {1, 4095}), t = symbol("T");
    EXPECT_TRUE(env.assume_divisible(s, 8));
    EXPECT_EQ(env.divisible(s, 4), Truth::kTrue);
    EXPECT_EQ(env.divisible(s + 1, 4), Truth::kFalse);
    EXPECT_EQ(env.divisible(s * t + 16, 8), Truth::kTrue);
    EXPECT_EQ(env.divisible(3 * s, 24), Truth::kTrue);
    EXPECT_EQ(env.divisible(t, 8), Truth::kUnknown);
    EXPECT_EQ(env.simplify(Dim::mod(s + 3, 4)), Dim(3));
    EXPECT_EQ(env.simplify(8 * Dim::floor_div(s, 8)), s);
    EXPECT_EQ(env.simplify(Dim::floor_div(s + 7, 8)), Dim::floor_div(s, 8));
    EXPECT_EQ(env.range(s).lo, 8);
    EXPECT_EQ(env.range(s).hi, 4088);
    EXPECT_EQ(env.eq(s, 12), Truth::kFalse);
    EXPECT_FALSE(env.assume_divisible(s + 4, 8));
    EXPECT_TRUE(env.assume_eq(Dim::mod(t, 16), 3));
    EXPECT_EQ(env.divisible(t - 3, 16), Truth::kTrue);
    EXPECT_EQ(env.facts_to_string(), "S in 8..4088, T in 3..inf, S % 8 == 0, (T+13) % 16 == 0");
}

TEST_F(ShapeEnvTest, OrderThroughSeveralFacts) {
    const Dim s = symbol("S"), t = symbol("T"), u = symbol("U"), b = symbol("B", {1, kDimInfinity});
    EXPECT_TRUE(env.assume_range(s - t, {0, kDimInfinity}));
    EXPECT_TRUE(env.assume_range(t - u, {1, kDimInfinity}));
    EXPECT_EQ(env.lt(u, s), Truth::kTrue);
    EXPECT_EQ(env.le(s, u), Truth::kFalse);
    EXPECT_EQ(env.le(s, t), Truth::kUnknown);
    EXPECT_EQ(env.le(s, b * s), Truth::kTrue);
    EXPECT_EQ(env.le(768 * b * s, 3072 * b * s), Truth::kTrue);
    EXPECT_EQ(env.eq(s, u), Truth::kFalse);
    EXPECT_FALSE(env.assume_range(u - s, {0, kDimInfinity}));
}

TEST_F(ShapeEnvTest, NotEqual) {
    const Dim s = symbol("S"), t = symbol("T", {0, 5});
    EXPECT_TRUE(env.assume_ne(s, 1));
    EXPECT_EQ(env.simplify(Dim::broadcast(s, t)), s);
    EXPECT_TRUE(env.assume_ne(t, 0));
    EXPECT_EQ(env.range(t).lo, 1);
    EXPECT_FALSE(env.assume_eq(s, 1));
    EXPECT_TRUE(env.assume_ne(s, 0));
    EXPECT_EQ(env.range(s).lo, 2);
    EXPECT_TRUE(env.assume_ne(s - t, 0));
    EXPECT_EQ(env.eq(s, t), Truth::kFalse);
    EXPECT_EQ(env.eq(2 * t, 2 * s), Truth::kFalse);
}

TEST_F(ShapeEnvTest, E2HintsProveNothing) {
    const Dim s = symbol("S", {0, kDimInfinity}, 7), t = symbol("T", {0, kDimInfinity}, 7), u = symbol("U");
    EXPECT_EQ(env.hint(s * t + 1), 50);
    EXPECT_EQ(env.hint(u), std::nullopt);
    EXPECT_EQ(env.eq(s, t), Truth::kUnknown);
    EXPECT_TRUE(env.assume_eq(u, s + 1));
    EXPECT_EQ(env.hint(u), 8);
    EXPECT_EQ(env.hint(Dim::floor_div(s, t - 7)), std::nullopt);
}

TEST_F(ShapeEnvTest, E3ARefusedFactLeavesNothingBehind) {
    const Dim s = symbol("S", {2, 10}), t = symbol("T", {0, 3});
    const std::string before = env.facts_to_string();
    EXPECT_FALSE(env.assume_eq(s + t, 14));
    EXPECT_FALSE(env.assume_range(s * t, {31, kDimInfinity}));
    EXPECT_FALSE(env.assume_divisible(s, 11));
    EXPECT_EQ(env.facts_to_string(), before);
}

TEST_F(ShapeEnvTest, HugeRangesDoNotWrap) {
    const Dim s = symbol("S"), t = symbol("T", {1, std::int64_t{1} << 40});
    EXPECT_EQ(env.range(s * t).hi, kDimInfinity);
    EXPECT_EQ(env.range(t * t * t * t).hi, kDimInfinity);
    EXPECT_EQ(env.le(t * t, std::int64_t{1} << 50), Truth::kUnknown);
    EXPECT_EQ(env.le(0, s * t), Truth::kTrue);
    const Dim big = std::int64_t{1} << 62;
    EXPECT_NE(env.le(big, big + big), Truth::kFalse);
    EXPECT_NE(env.eq(big * 4, big), Truth::kTrue);
}

// E1 and E3 against enumeration: every answer must hold for all valuations that the accepted facts allow.
TEST(ShapeEnvProperty, AnswersAreProofs) {
    int proven = 0;
    int refuted_facts = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        testing::ExpressionSource source(seed, 3);
        ShapeEnv env;
        Range ranges[3];
        for (int i = 0; i < 3; ++i) {
            ranges[i].lo = source.pick(4) - 1;
            ranges[i].hi = ranges[i].lo + source.pick(6);
            env.add_symbol(std::string(1, static_cast<char>('a' + i)), ranges[i], source.pick(5));
        }
        std::vector<std::vector<std::int64_t>> valuations;
        for (auto a = ranges[0].lo; a <= ranges[0].hi; ++a) {
            for (auto b = ranges[1].lo; b <= ranges[1].hi; ++b) {
                for (auto c = ranges[2].lo; c <= ranges[2].hi; ++c) valuations.push_back({a, b, c});
            }
        }
        for (int f = 0; f < 4; ++f) {
            const auto x = source.make(2);
            const auto y = source.make(f % 2 == 0 ? 1 : 2);
            const int kind = source.pick(4);
            const std::int64_t number = source.pick(5) + 1;
            std::vector<std::vector<std::int64_t>> kept;
            for (const auto& v : valuations) {
                const auto p = x.evaluate(v);
                const auto q = y.evaluate(v);
                if (!p || !q) continue;
                const bool holds = kind == 0   ? *p == *q
                                   : kind == 1 ? *p <= number && *p >= -1
                                   : kind == 2 ? *p % number == 0
                                               : *p != number;
                if (holds) kept.push_back(v);
            }
            if (kept.empty()) continue;  // what contradicts everything must be refused or may be unnoticed
            const std::string before = env.facts_to_string();
            const bool accepted = kind == 0   ? env.assume_eq(x.dim(), y.dim())
                                  : kind == 1 ? env.assume_range(x.dim(), {-1, number})
                                  : kind == 2 ? env.assume_divisible(x.dim(), number)
                                              : env.assume_ne(x.dim(), number);
            ASSERT_TRUE(accepted) << "seed " << seed << ": " << before << " refuses " << env.to_string(x.dim()) << " / "
                                  << env.to_string(y.dim()) << " kind " << kind << " number " << number;
            valuations = std::move(kept);
        }
        for (int f = 0; f < 6; ++f) {  // refusals: proofs that no valuation is left, and no trace in the environment
            const auto x = source.make(2);
            const std::int64_t number = source.pick(7);
            const std::string before = env.facts_to_string();
            ShapeEnv trial = env;
            if (trial.assume_eq(x.dim(), number)) continue;
            ++refuted_facts;
            ASSERT_EQ(trial.facts_to_string(), before);
            for (const auto& v : valuations) {
                const auto p = x.evaluate(v);
                ASSERT_TRUE(!p || *p != number) << before << " refuses " << env.to_string(x.dim()) << " == " << number;
            }
        }
        for (int e = 0; e < 25; ++e) {
            const auto x = source.make(3);
            const auto y = source.make(2);
            const Dim a = x.dim();
            const Dim b = y.dim();
            const Dim simplified = env.simplify(a);
            const Range range = env.range(a);
            const Truth equal = env.eq(a, b);
            const Truth less = env.le(a, b);
            const std::int64_t m = source.pick(5) + 1;
            const Truth divisible = env.divisible(a, m);
            proven += (equal != Truth::kUnknown) + (less != Truth::kUnknown) + (divisible != Truth::kUnknown);
            const auto story = [&] {
                return "seed " + std::to_string(seed) + ": " + env.facts_to_string() + " ; " + env.to_string(a) +
                       " -> " + env.to_string(simplified) + " ; " + env.to_string(b);
            };
            for (const auto& v : valuations) {
                const auto p = x.evaluate(v);
                if (!p) continue;
                const Evaluated after = simplified.evaluate(v);
                ASSERT_EQ(after.status, EvalStatus::kOk) << story();
                ASSERT_EQ(after.value, *p) << story();
                ASSERT_TRUE(contains(range, *p)) << story() << " range " << range.lo << ".." << range.hi;
                if (divisible != Truth::kUnknown) {
                    ASSERT_EQ(divisible == Truth::kTrue, *p % m == 0) << story() << " mod " << m;
                }
                const auto q = y.evaluate(v);
                if (!q) continue;
                if (equal != Truth::kUnknown) {
                    ASSERT_EQ(equal == Truth::kTrue, *p == *q) << story();
                }
                if (less != Truth::kUnknown) {
                    ASSERT_EQ(less == Truth::kTrue, *p <= *q) << story();
                }
            }
        }
    }
    EXPECT_GT(proven, 3000);
    EXPECT_GT(refuted_facts, 300);
}

}  // namespace
}  // namespace flexor::types
