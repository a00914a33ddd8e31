#include "types/dim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "unit/types/random_expression.h"

namespace flexor::types {
namespace {

const Dim B = Dim::symbol(0);
const Dim S = Dim::symbol(1);
const Dim T = Dim::symbol(2);

std::string text(const Dim& d) {
    return d.to_string([](SymbolId id) { return std::string(1, "BST"[id]); });
}

TEST(Dim, D2EqualPolynomialsAreEqual) {
    EXPECT_EQ((B + S) * (B - S), B * B - S * S);
    EXPECT_EQ((B + S).hash(), (S + B).hash());
    EXPECT_EQ(B * S * 768, 768 * (S * B));
    EXPECT_EQ(B - B, Dim(0));
    EXPECT_EQ((S + 1) * (S + 1), S * S + 2 * S + 1);
    EXPECT_NE(S + 1, S);
    EXPECT_TRUE(B < S || S < B);
    EXPECT_FALSE(B < B);
}

TEST(Dim, D1OverflowStaysAnExpressionAndIsReported) {
    const Dim big = std::int64_t{1} << 40;
    const Dim product = big * big;
    EXPECT_FALSE(product.is_constant());
    EXPECT_EQ(product.evaluate({}).status, EvalStatus::kOverflow);
    const Dim edge = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ((edge + 1).evaluate({}).status, EvalStatus::kOverflow);
    const std::int64_t values[] = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
    EXPECT_EQ((B * S).evaluate(values).status, EvalStatus::kOverflow);
    EXPECT_EQ((B * S * T).evaluate(values).value, 0);
    EXPECT_EQ((big * S * big).evaluate(values).status, EvalStatus::kOverflow);
    EXPECT_EQ(Dim::floor_div(std::numeric_limits<std::int64_t>::min(), -1).evaluate({}).status, EvalStatus::kOverflow);
}

TEST(Dim, D3Divisions) {
    EXPECT_EQ(Dim::floor_div(-7, 2), Dim(-4));
    EXPECT_EQ(Dim::trunc_div(-7, 2), Dim(-3));
    EXPECT_EQ(Dim::mod(-7, 3), Dim(2));
    EXPECT_EQ(Dim::mod(7, -3), Dim(-2));
    const std::int64_t values[] = {5, 0, 0};
    EXPECT_EQ(Dim::floor_div(B, S).evaluate(values).status, EvalStatus::kZeroDivisor);
    EXPECT_EQ(Dim::trunc_div(B, S).evaluate(values).status, EvalStatus::kZeroDivisor);
    EXPECT_EQ(Dim::mod(B, S).evaluate(values).status, EvalStatus::kZeroDivisor);
    EXPECT_EQ(Dim::floor_div(3, 0).evaluate({}).status, EvalStatus::kZeroDivisor);
    EXPECT_EQ(Dim::floor_div(B * S * 768, B * 768), S);
    EXPECT_EQ(Dim::floor_div(4 * S + 8, 4), S + 2);
    EXPECT_EQ(Dim::floor_div(4 * S + T, 4), S + Dim::floor_div(T, 4));
    EXPECT_EQ(Dim::floor_div(Dim::floor_div(S, 2), 3), Dim::floor_div(S, 6));
    EXPECT_EQ(Dim::mod(4 * S + T, 4), Dim::mod(T, 4));
    EXPECT_EQ(Dim::mod(B * S, S), Dim(0));
}

TEST(Dim, PartsOfPartsAreParts) {
    const Dim first = Dim::max(S - 1, 0);
    EXPECT_EQ(Dim::max(first - 1, 0), Dim::max(S - 2, 0));
    EXPECT_EQ(Dim::max(0, Dim::max(0, first - 3) - 4), Dim::max(S - 8, 0));
    EXPECT_NE(Dim::max(first + 1, 0), Dim::max(S, 0));  // 1 where S is 0
    for (std::int64_t s = 0; s < 6; ++s) {
        const std::int64_t values[] = {0, s, 0};
        EXPECT_EQ(Dim::max(first - 2, 0).evaluate(values).value,
                  std::max<std::int64_t>(std::max<std::int64_t>(s - 1, 0) - 2, 0));
    }
}

TEST(Dim, D4Broadcast) {
    EXPECT_EQ(Dim::broadcast(1, S), S);
    EXPECT_EQ(Dim::broadcast(S, 1), S);
    EXPECT_EQ(Dim::broadcast(0, S), Dim(0));
    EXPECT_EQ(Dim::broadcast(S, S), S);
    const std::int64_t values[] = {1, 7, 0};
    EXPECT_EQ(Dim::broadcast(B, S).evaluate(values).value, 7);
    EXPECT_EQ(Dim::broadcast(S, B).evaluate(values).value, 7);
    const Dim both = Dim::broadcast(B, S);
    EXPECT_EQ(Dim::broadcast(both, B), both);
    EXPECT_EQ(Dim::broadcast(both, S), both);
    EXPECT_EQ(Dim::broadcast(B, both), both);
    EXPECT_EQ(Dim::broadcast(both, Dim::broadcast(S, B)), both);
    EXPECT_EQ(Dim::broadcast(both, T), Dim::broadcast(B, Dim::broadcast(S, T)));
    EXPECT_EQ(Dim::broadcast(Dim::broadcast(B, 4), S), Dim::broadcast(B, 4));
    EXPECT_EQ(text(Dim::broadcast(both, T)), "broadcast(B, broadcast(S, T))");
}

TEST(Dim, D4BroadcastIsTheFirstSizeThatIsNotOne) {
    const Dim sizes[] = {B, S, T, 1, 4, 0};
    for (std::size_t pick = 0; pick < 1296; ++pick) {
        const Dim& a = sizes[pick % 6];
        const Dim& b = sizes[pick / 6 % 6];
        const Dim& c = sizes[pick / 36 % 6];
        const Dim& d = sizes[pick / 216];
        const Dim left = Dim::broadcast(Dim::broadcast(Dim::broadcast(a, b), c), d);
        const Dim pairs = Dim::broadcast(Dim::broadcast(a, b), Dim::broadcast(c, d));
        EXPECT_EQ(left, pairs);
        for (std::int64_t at = 0; at < 27; ++at) {
            const std::int64_t values[] = {at % 3, at / 3 % 3, at / 9};
            std::int64_t expected = 1;
            for (const Dim* size : {&a, &b, &c, &d}) {
                if (expected == 1) expected = size->evaluate(values).value;
            }
            EXPECT_EQ(left.evaluate(values).value, expected);
        }
    }
}

TEST(Dim, MinMaxFold) {
    EXPECT_EQ(Dim::min(S, S + 1), S);
    EXPECT_EQ(Dim::max(S, S + 1), S + 1);
    EXPECT_EQ(Dim::min(S, T), Dim::min(T, S));
    EXPECT_EQ(Dim::min(Dim::min(S, T), T), Dim::min(S, T));
    EXPECT_EQ(Dim::max(Dim::min(S, T), T), T);
}

TEST(Dim, Prints) {
    EXPECT_EQ(text(2 * S + 1), "2*S+1");
    EXPECT_EQ(text(Dim::floor_div(B * S, 4)), "B*S//4");
    EXPECT_EQ(text(B * Dim::floor_div(S, 4)), "B*(S//4)");
    EXPECT_EQ(text(S - T - 3), "S-T-3");
    EXPECT_EQ(text(-S), "-S");
    EXPECT_EQ(text(Dim::mod(S + 1, B)), "(S+1)%B");
    EXPECT_EQ(text(Dim::max(S, T)), "max(S, T)");
    EXPECT_EQ(text(Dim(-4)), "-4");
}

TEST(Dim, SubstituteAndCollect) {
    const Dim four = 4;
    const Dim d = Dim::floor_div(B * S + T, 4);
    std::vector<SymbolId> symbols;
    d.collect_symbols(symbols);
    EXPECT_EQ(symbols.size(), 3u);
    const Dim e = d.substitute([&](SymbolId id) { return id == 1 ? &four : nullptr; });
    EXPECT_EQ(e, B + Dim::floor_div(T, 4));
}

TEST(Dim, SolvesForASymbolThatItIsLinearIn) {
    const Dim n = Dim::symbol(0), b = Dim::symbol(1);
    const auto is = [](const Dim& dim, const Dim& coefficient, const Dim& rest) {
        const auto form = linear_in(dim, 0);
        return form && form->coefficient == coefficient && form->rest == rest;
    };
    EXPECT_TRUE(is(n, 1, 0));
    EXPECT_TRUE(is(n * 2 + 1, 2, 1));
    EXPECT_TRUE(is(Dim(10) - n, -1, 10));
    EXPECT_TRUE(is((n + b) * b + 3, b, b * b + 3));
    EXPECT_TRUE(is(b * 2, 0, b * 2));
    EXPECT_TRUE(is(n * 3 + Dim::floor_div(b, 2), 3, Dim::floor_div(b, 2)));
    for (const Dim& other : {n * n, Dim::mod(n, 2), Dim::max(n, 1), n + Dim::floor_div(n, 2), (n + 1) * (n + b)}) {
        EXPECT_FALSE(linear_in(other, 0));
    }
}

TEST(Dim, ContiguousStrides) {
    const std::vector<Dim> sizes{B, S, 768};
    EXPECT_EQ(contiguous_strides(sizes), (std::vector<Dim>{768 * S, 768, 1}));
    EXPECT_EQ(contiguous_strides(std::vector<Dim>{2, 0, 3}), (std::vector<Dim>{3, 3, 1}));
    EXPECT_EQ(product(sizes), 768 * B * S);
    EXPECT_EQ(product({}), Dim(1));
}

TEST(Dim, AgreesWithDirectEvaluation) {
    testing::ExpressionSource source(7, 3);
    int compared = 0;
    for (int i = 0; i < 4000; ++i) {
        const auto expression = source.make(4);
        const Dim d = expression.dim();
        for (std::int64_t b = -2; b <= 4; b += 2) {
            for (std::int64_t s = -1; s <= 3; ++s) {
                for (std::int64_t t = 0; t <= 5; ++t) {
                    const std::int64_t values[] = {b, s, t};
                    const auto expected = expression.evaluate(values);
                    if (!expected) continue;
                    const Evaluated found = d.evaluate(values);
                    ASSERT_EQ(found.status, EvalStatus::kOk) << text(d);
                    ASSERT_EQ(found.value, *expected) << text(d) << " at " << b << "," << s << "," << t;
                    ++compared;
                }
            }
        }
    }
    EXPECT_GT(compared, 100000);
}

}  // namespace
}  // namespace flexor::types
