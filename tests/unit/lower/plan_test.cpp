// The memory plan over random lifetimes, sizes and symbol values: buffers that live together share no byte, and what
// the arena takes is close to what lives at the worst step, which is counted here.
#include "lower/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace flexor::lower {
namespace {

using types::Dim;
using types::Range;
using types::ShapeEnv;

struct Layout {
    std::vector<std::int64_t> bytes, offsets;
    std::int64_t total = 0, bound = 0;
};

std::int64_t value_of(const Dim& d, const std::vector<std::int64_t>& values) {
    const types::Evaluated v = d.evaluate(values);
    EXPECT_EQ(v.status, types::EvalStatus::kOk);
    return v.value;
}

Layout evaluate(const std::vector<PlanItem>& items, const Plan& plan, std::vector<std::int64_t> values) {
    Layout layout;
    for (const PlanStep& step : plan.steps) {
        std::int64_t value = value_of(step.of[0], values);
        for (const Dim& d : step.of) value = std::max(value, value_of(d, values));
        if (step.kind == PlanStep::Kind::kAlignUp) value = (value + 63) & -64;
        values.push_back(value);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        layout.bytes.push_back(std::max<std::int64_t>(value_of(items[i].bytes, values), 0));
        layout.offsets.push_back(value_of(plan.offsets[i], values));
    }
    layout.total = value_of(plan.total, values);
    for (const PlanItem& at : items) {
        std::int64_t alive = 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i].life.first <= at.life.first && at.life.first <= items[i].life.last)
                alive += (layout.bytes[i] + 63) / 64 * 64;
        }
        layout.bound = std::max(layout.bound, alive);
    }
    return layout;
}

void expect_sound(const std::vector<PlanItem>& items, const Layout& layout) {
    for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_GE(layout.offsets[i], 0);
        EXPECT_EQ(layout.offsets[i] % 64, 0);
        EXPECT_LE(layout.offsets[i] + layout.bytes[i], layout.total);
        for (std::size_t j = 0; j < i; ++j) {
            if (!meet(items[i].life, items[j].life)) continue;
            EXPECT_TRUE(layout.offsets[i] + layout.bytes[i] <= layout.offsets[j] ||
                        layout.offsets[j] + layout.bytes[j] <= layout.offsets[i])
                << "items " << i << " and " << j;
        }
    }
    EXPECT_GE(layout.total, layout.bound);
}

double ratio(const Layout& layout) {
    return layout.bound > 0 ? static_cast<double>(layout.total) / static_cast<double>(layout.bound) : 1;
}

struct Sizes {
    ShapeEnv env;
    Dim b, s, t, n;
    Sizes() {
        b = Dim::symbol(env.add_symbol("B", {1, 64}, 8));
        s = Dim::symbol(env.add_symbol("S", {0, 512}, 33));
        t = Dim::symbol(env.add_symbol("T", {}));
        n = Dim::symbol(env.add_symbol("n", Range{-types::kDimInfinity, types::kDimInfinity}));
    }
    std::vector<std::int64_t> random(std::mt19937& source) const {
        const auto pick = [&](std::int64_t lo, std::int64_t hi) {
            return std::uniform_int_distribution<std::int64_t>(lo, hi)(source);
        };
        return {pick(1, 64), pick(0, 512), pick(0, pick(0, 1) == 0 ? 8 : 5000), pick(-40, 40)};
    }
};

TEST(Plan, RandomLivesShareNoByteWhateverTheSizes) {
    std::mt19937 source(7);
    const Sizes sizes;
    const Dim &b = sizes.b, &s = sizes.s, &t = sizes.t, &n = sizes.n;
    const std::vector<Dim> shapes{Dim(1),
                                  Dim(100),
                                  b * s * Dim(256),
                                  b * s * Dim(768),
                                  b * s * Dim(3),
                                  b * s * s * Dim(48),
                                  s * t,
                                  t * Dim(4),
                                  t * Dim(8),
                                  n * Dim(64),
                                  (s - Dim(5)) * Dim(4),
                                  Dim::max(s, t) * Dim(2),
                                  Dim::floor_div(s * t, 3),
                                  b * s * Dim(256) + t * Dim(64)};
    double sum = 0, most = 0;
    int count = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<PlanItem> items;
        const std::size_t steps = 2 + source() % 20;
        const std::size_t buffers = 1 + source() % 24;
        for (std::size_t i = 0; i < buffers; ++i) {
            const std::size_t first = source() % steps;
            const std::size_t length = source() % (source() % 3 == 0 ? steps : 4);
            items.push_back({shapes[source() % shapes.size()], {first, std::min(first + length, steps - 1)}});
        }
        const Plan plan = plan_arena(items, sizes.env);
        for (int k = 0; k < 10; ++k) {
            const Layout layout = evaluate(items, plan, sizes.random(source));
            expect_sound(items, layout);
            sum += ratio(layout);
            most = std::max(most, ratio(layout));
            ++count;
        }
        if (HasFailure()) FAIL() << "round " << round;
    }
    EXPECT_LE(sum / count, 1.005);
    EXPECT_LE(most, 1.1);
}

// A chain of layers, each with a value that is kept past the others: sizes that have no order change nothing.
TEST(Plan, LayersTakeExactlyWhatLives) {
    std::mt19937 source(11);
    const Sizes sizes;
    const Dim hidden = sizes.b * sizes.s * Dim(256);
    const Dim scores = sizes.b * sizes.s * sizes.s * Dim(48);
    std::vector<PlanItem> items;
    for (std::size_t layer = 0; layer < 12; ++layer) {
        const std::size_t at = 8 * layer;
        items.push_back({hidden * Dim(3), {at + 0, at + 3}});
        items.push_back({scores, {at + 1, at + 2}});
        items.push_back({scores, {at + 2, at + 3}});
        items.push_back({hidden, {at + 3, at + 4}});
        items.push_back({hidden, {at + 4, at + 6}});
        items.push_back({hidden * Dim(4), {at + 5, at + 6}});
        items.push_back({hidden, {at + 6, at + 7}});
        items.push_back({hidden, {at + 7, at + 8 + (layer == 11 ? 0 : 4)}});
    }
    const Plan plan = plan_arena(items, sizes.env);
    for (int k = 0; k < 200; ++k) {
        const Layout layout = evaluate(items, plan, sizes.random(source));
        expect_sound(items, layout);
        EXPECT_EQ(layout.total, layout.bound);
    }
}

TEST(Plan, OfSizesInOrderHasNoMaximum) {
    const Sizes sizes;
    const Dim row = sizes.b * sizes.s * Dim(256);
    const Plan plan = plan_arena({{row, {0, 1}}, {row * Dim(3), {1, 2}}, {row * Dim(2), {2, 3}}}, sizes.env);
    EXPECT_TRUE(plan.steps.empty());
    EXPECT_EQ(plan.total, row * Dim(5));
}

TEST(Plan, OfSizesWithoutOrderTakesTheLarger) {
    const Sizes sizes;
    const Dim a = sizes.b * Dim(256), c = sizes.t * Dim(64);
    const Plan plan = plan_arena({{a, {0, 1}}, {sizes.s * Dim(64), {1, 2}}, {c, {2, 3}}}, sizes.env);
    ASSERT_LE(plan.steps.size(), 2u);  // one for the middle one's place or for the total
    for (const std::int64_t t : {0, 1, 1000}) {
        const std::int64_t most = std::max<std::int64_t>(7 * 256 + 5 * 64, t * 64 + 5 * 64);
        EXPECT_EQ(evaluate({{a, {0, 1}}, {sizes.s * Dim(64), {1, 2}}, {c, {2, 3}}}, plan, {7, 5, t, 0}).total, most);
    }
}

// While n is negative, its buffer takes nothing: what lies on it does not reach into what lies below.
TEST(Plan, SizesThatAreNotYetCheckedTakeNothing) {
    const Sizes sizes;
    const std::vector<PlanItem> items{
        {sizes.n * Dim(64), {0, 3}}, {sizes.t * Dim(64), {0, 3}}, {sizes.n * Dim(128), {1, 3}}, {Dim(640), {1, 3}}};
    const Plan plan = plan_arena(items, sizes.env);
    for (const std::int64_t n : {-100, -1, 0, 1, 9}) expect_sound(items, evaluate(items, plan, {1, 1, 4, n}));
}

TEST(Plan, OfManyBuffersIsMadeSoon) {
    const Sizes sizes;
    std::vector<PlanItem> items;
    for (std::size_t i = 0; i < 600; ++i) items.push_back({sizes.b * Dim(64) + sizes.t * Dim(i + 1), {0, 600 + i}});
    const Plan plan = plan_arena(items, sizes.env);
    const Layout layout = evaluate(items, plan, {3, 1, 100, 0});
    expect_sound(items, layout);
    EXPECT_EQ(layout.total, layout.bound);
}

}  // namespace
}  // namespace flexor::lower
