// Views, strides of results, guards, checks and refusals of infer().
#include "run_op.h"

namespace flexor::ops::test {
namespace {

using types::DimList;
using Sizes = std::vector<std::int64_t>;

Tensor empty(Sizes sizes) { return Tensor::empty(DType::kF32, sizes); }
Tensor permuted(Sizes sizes, std::initializer_list<std::int64_t> axes) {
    DimList list;
    for (const auto a : axes) list.push_back(a);
    return call("permute", {as_value(empty(std::move(sizes)))}, {{"axes", list}});
}
DimList dims(std::initializer_list<std::int64_t> values) {
    DimList out;
    for (const auto v : values) out.push_back(v);
    return out;
}

// The strides that torch gives, case by case.
TEST(Layout, ElementwiseFollowsTheOperands) {
    const Value t = as_value(permuted({3, 4}, {1, 0}));
    EXPECT_EQ(strides_of(call("relu", {t})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("add", {t, t})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("add", {t, scalar(1)})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("add", {t, as_value(empty({4, 3}))})), (Sizes{1, 4})) << "the first operand decides";
    EXPECT_EQ(strides_of(call("add", {as_value(empty({4, 3})), t})), (Sizes{3, 1}));
    EXPECT_EQ(strides_of(call("add", {as_value(empty({3})), t})), (Sizes{1, 4})) << "broadcast axes say nothing";
    EXPECT_EQ(strides_of(call("cast", {t}, {{"dtype", DType::kF64}})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("clone", {t})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("zeros_like", {t})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("flip", {t}, {{"axes", dims({0})}})), (Sizes{1, 4}));
    EXPECT_EQ(strides_of(call("softmax", {t})), (Sizes{3, 1}));
    EXPECT_EQ(strides_of(call("layer_norm", {t, {}, {}})), (Sizes{3, 1}));
    EXPECT_EQ(strides_of(call("concat", {t, t})), (Sizes{3, 1}));
    EXPECT_EQ(strides_of(call("reduce_sum", {as_value(permuted({2, 3, 4}, {2, 1, 0}))}, {{"axes", dims({0})}})),
              (Sizes{2, 1}));
    // A gap in the operand is closed in the result.
    const Value wide = as_value(empty({2, 5, 24}));
    const Value part = as_value(call("slice", {wide}, {{"axis", 2}, {"stop", 8}}));
    EXPECT_EQ(strides_of(call("relu", {part})), (Sizes{40, 8, 1}));
    const Value heads = as_value(call("permute", {as_value(call("reshape", {part}, {{"shape", dims({2, 5, 2, 4})}}))},
                                      {{"axes", dims({0, 2, 1, 3})}}));
    EXPECT_EQ(strides_of(heads.tensor), (Sizes{120, 4, 24, 1}));
    EXPECT_EQ(strides_of(call("sdpa", {heads, heads, heads, {}, {}})), (Sizes{40, 4, 8, 1}));
}

bool is_view_of(const Tensor& a, const Value& b) { return a.storage() == b.tensor.storage(); }

TEST(Views, ReshapeIsAViewWhereStridesAllow) {
    const Value x = as_value(empty({2, 3, 4}));
    EXPECT_TRUE(is_view_of(call("reshape", {x}, {{"shape", dims({6, -1})}}), x));
    const Value t = as_value(call("permute", {x}, {{"axes", dims({1, 0, 2})}}));
    const Tensor split = call("reshape", {t}, {{"shape", dims({3, 2, 2, 2})}});
    EXPECT_TRUE(is_view_of(split, x));
    EXPECT_EQ(strides_of(split), (Sizes{4, 12, 2, 1}));
    EXPECT_FALSE(is_view_of(call("reshape", {t}, {{"shape", dims({6, 4})}}), x));
    const auto refused = run(*find_op("view"), std::vector<Value>{t}, {{"shape", dims({6, 4})}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), DiagnosticId::kViewNotPossible);
    // Axes of size 1 have no say.
    const Value one = as_value(call("slice", {x}, {{"axis", 1}, {"stop", 1}}));
    EXPECT_TRUE(is_view_of(call("reshape", {one}, {{"shape", dims({2, 4})}}), x));
    EXPECT_FALSE(is_view_of(call("contiguous", {t}), x));
    EXPECT_TRUE(is_view_of(call("contiguous", {x}), x));
}

TEST(Views, ReshapeRefusals) {
    const std::vector<Value> x = {as_value(empty({2, 3}))};
    const OpDef& reshape = *find_op("reshape");
    const auto id = [&](DimList shape) {
        const auto outcome = run(reshape, x, {{"shape", shape}});
        return outcome ? DiagnosticId::kInternalError : outcome.error().id();
    };
    EXPECT_EQ(id(dims({4})), DiagnosticId::kReshapeSizeMismatch);
    EXPECT_EQ(id(dims({-1, 4})), DiagnosticId::kReshapeSizeMismatch);
    EXPECT_EQ(id(dims({-1, -1})), DiagnosticId::kBadAttribute);
    EXPECT_EQ(id(dims({-2, 3})), DiagnosticId::kNegativeSize);
    const std::vector<Value> none = {as_value(empty({0, 3}))};
    const auto ambiguous = run(reshape, none, {{"shape", dims({0, -1})}});
    ASSERT_FALSE(ambiguous);
    EXPECT_EQ(ambiguous.error().where().constraint, "C3");
}

TEST(Views, PartsAndOffsets) {
    Value x = as_value(empty({4, 5}));
    const auto at = [&](const Tensor& t) {
        return (static_cast<char*>(t.data()) - static_cast<char*>(x.tensor.data())) / 4;
    };
    EXPECT_EQ(at(call("select", {x}, {{"axis", 0}, {"index", -1}})), 15);
    EXPECT_EQ(at(call("narrow", {x}, {{"axis", 1}, {"start", 2}, {"length", 3}})), 2);
    const Tensor back = call("slice", {x}, {{"axis", 1}, {"step", -2}});
    EXPECT_EQ(at(back), 4);
    EXPECT_EQ(strides_of(back), (Sizes{5, -2}));
    EXPECT_EQ(sizes_of(back), (Sizes{4, 3}));
    const auto pieces = run(*find_op("split"), std::vector<Value>{x}, {{"sizes", dims({1, 3})}});
    ASSERT_TRUE(pieces);
    ASSERT_EQ(pieces->outputs.size(), 2u);
    EXPECT_EQ(at(pieces->outputs[1]), 5);
    EXPECT_EQ(strides_of(call("expand", {as_value(empty({3, 1}))}, {{"shape", dims({2, 3, 4})}})), (Sizes{0, 1, 0}));
}

// ---------------------------------------------------------------- symbolic

struct Symbolic {
    ShapeEnv env;
    std::vector<Requirement> requirements;
    Dim symbol(std::string name, std::optional<std::int64_t> hint, std::int64_t lo = 0) {
        return Dim::symbol(env.add_symbol(std::move(name), {lo, 4096}, hint));
    }
    Expected<Inferred> run(std::string_view op, const std::vector<TensorType>& types, const Attrs& attrs = {},
                           bool allow_guards = true) {
        std::vector<ArgType> args;
        for (const TensorType& t : types) args.push_back({true, t, Strength::kTensor});
        return infer(*find_op(op), args, *check_attrs(*find_op(op), attrs), env, requirements, Promotion::kTorch,
                     allow_guards);
    }
};
TensorType f32_type(std::vector<Dim> sizes) { return types::contiguous_type(DType::kF32, std::move(sizes)); }

TEST(Symbolic, OperandsLieOnOneDevice) {
    Symbolic s;
    const Dim n = s.symbol("N", 8);
    TensorType there = f32_type({n});
    there.device = {DeviceKind::kCuda, 0};
    const auto refused = s.run("add", {f32_type({n}), there});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), DiagnosticId::kDeviceMismatch);
    EXPECT_TRUE(s.run("add", {there, f32_type({})})) << "a tensor of rank 0 joins any device";
}

TEST(Symbolic, EqualSymbolsNeedNothing) {
    Symbolic s;
    const Dim b = s.symbol("B", 8), n = s.symbol("S", 17);
    const auto r = s.run("add", {f32_type({b, n}), f32_type({n})});
    ASSERT_TRUE(r);
    EXPECT_TRUE(s.requirements.empty());
    EXPECT_EQ(r->results[0].type, f32_type({b, n}));
}

TEST(Symbolic, EqualByHintBecomesOneGuard) {
    Symbolic s;
    const Dim a = s.symbol("A", 8), b = s.symbol("B", 8);
    ASSERT_TRUE(s.run("add", {f32_type({a}), f32_type({b})}));
    ASSERT_EQ(s.requirements.size(), 1u);
    EXPECT_EQ(s.requirements[0].kind, Requirement::Kind::kGuard);
    ASSERT_TRUE(s.run("mul", {f32_type({a}), f32_type({b})}));
    EXPECT_EQ(s.requirements.size(), 1u) << "the guard is a fact now";
}

TEST(Symbolic, WithoutGuardsTheBroadcastStaysOpen) {
    Symbolic s;
    const Dim a = s.symbol("A", 8), b = s.symbol("B", 1);
    const auto r = s.run("add", {f32_type({a}), f32_type({b})}, {}, false);
    ASSERT_TRUE(r);
    ASSERT_EQ(s.requirements.size(), 1u);
    EXPECT_EQ(s.requirements[0].kind, Requirement::Kind::kCheck);
    EXPECT_TRUE(s.requirements[0].or_one);
    EXPECT_EQ(s.requirements[0].constraint, 1);
    const std::int64_t values[] = {1, 5};
    EXPECT_EQ(r->results[0].type.sizes[0].evaluate(values).value, 5);
}

TEST(Symbolic, AWeightDecides) {
    Symbolic s;
    const Dim b = s.symbol("B", 8), d = s.symbol("D", 768, 2);
    const auto r = s.run("add", {f32_type({b, d}), f32_type({768})}, {}, false);
    ASSERT_TRUE(r);
    EXPECT_TRUE(r->results[0].type.sizes[1].is_constant(768));
    ASSERT_EQ(s.requirements.size(), 1u);
    EXPECT_FALSE(s.requirements[0].or_one) << "neither side can be 1";
}

TEST(Symbolic, ReshapeSplitsAndMergesHeads) {
    Symbolic s;
    const Dim b = s.symbol("B", 8), n = s.symbol("S", 17);
    auto split = s.run("reshape", {f32_type({b, n, 768})}, {{"shape", DimList{b, n, 12, -1}}});
    ASSERT_TRUE(split);
    EXPECT_EQ(split->results[0].view_of, 0);
    EXPECT_EQ(split->results[0].type, f32_type({b, n, 12, 64}));
    auto heads = s.run("permute", {split->results[0].type}, {{"axes", dims({0, 2, 1, 3})}});
    ASSERT_TRUE(heads);
    auto merged = s.run("permute", {heads->results[0].type}, {{"axes", dims({0, 2, 1, 3})}});
    ASSERT_TRUE(merged);
    auto flat = s.run("reshape", {merged->results[0].type}, {{"shape", DimList{b, n, 768}}});
    ASSERT_TRUE(flat);
    EXPECT_EQ(flat->results[0].view_of, 0);
    for (const Requirement& r : s.requirements) EXPECT_EQ(r.kind, Requirement::Kind::kCheck) << "no guard is needed";
}

TEST(Symbolic, SliceClampsWithoutGuards) {
    Symbolic s;
    const Dim n = s.symbol("S", 17), k = s.symbol("K", 5);
    const auto r = s.run("slice", {f32_type({n})}, {{"start", k - 10}, {"stop", 3}});
    ASSERT_TRUE(r);
    EXPECT_TRUE(s.requirements.empty());
    for (std::int64_t size : {0, 1, 5, 17}) {
        for (std::int64_t key = 0; key < 30; ++key) {
            std::int64_t start = key - 10 < 0 ? std::max<std::int64_t>(key - 10 + size, 0) : std::min(key - 10, size);
            const std::int64_t stop = std::min<std::int64_t>(3, size);
            const std::int64_t values[] = {size, key};
            EXPECT_EQ(r->results[0].type.sizes[0].evaluate(values).value, std::max<std::int64_t>(stop - start, 0));
            EXPECT_EQ(r->results[0].type.offset.evaluate(values).value, start);
        }
    }
}

TEST(Symbolic, SqueezeSettlesTheRank) {
    Symbolic s;
    const Dim n = s.symbol("S", 1);
    auto r = s.run("squeeze", {f32_type({n, 3})}, {{"axes", dims({0})}}, false);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->results[0].type.rank(), 1);
    ASSERT_EQ(s.requirements.size(), 1u);
    EXPECT_EQ(s.requirements[0].kind, Requirement::Kind::kGuard);
    EXPECT_EQ(s.requirements[0].relation, Relation::kEq);
}

TEST(Symbolic, ExpandKeepsRuntimeStrides) {
    Symbolic s;
    const Dim n = s.symbol("S", std::nullopt);
    const auto r = s.run("expand", {f32_type({n})}, {{"shape", DimList{7}}});
    ASSERT_TRUE(r);
    ASSERT_EQ(s.requirements.size(), 1u);
    const Requirement& check = s.requirements[0];
    const auto holds = [&](std::int64_t size) {
        const std::int64_t values[] = {size};
        return check.a.evaluate(values).value == check.b.evaluate(values).value;
    };
    EXPECT_TRUE(holds(1));
    EXPECT_TRUE(holds(7));
    EXPECT_FALSE(holds(6));
    EXPECT_FALSE(holds(0));
    const std::int64_t one[] = {1}, seven[] = {7};
    EXPECT_EQ(r->results[0].type.strides[0].evaluate(one).value, 0);
    EXPECT_EQ(r->results[0].type.strides[0].evaluate(seven).value, 1);
}

TEST(Symbolic, EmptyReductionIsACheck) {
    Symbolic s;
    const Dim n = s.symbol("S", 17);
    ASSERT_TRUE(s.run("reduce_max", {f32_type({n})}));
    ASSERT_EQ(s.requirements.size(), 1u);
    EXPECT_EQ(s.requirements[0].kind, Requirement::Kind::kCheck);
    EXPECT_EQ(find_op("reduce_max")->constraints.value[static_cast<std::size_t>(s.requirements[0].constraint) - 1].id,
              DiagnosticId::kEmptyReduction);
}

TEST(Refusals, NameTheOpTheOperandAndTheConstraint) {
    Symbolic s;
    const Dim b = s.symbol("B", 8, 2);
    const auto r = s.run("linear", {f32_type({b, 5}), f32_type({7, 6}), f32_type({7})});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().id(), DiagnosticId::kShapeMismatch);
    EXPECT_EQ(r.error().where().op, "linear");
    EXPECT_EQ(r.error().where().constraint, "C2");
    EXPECT_NE(r.error().found().find("f32[B,5] = [8,5]"), std::string::npos) << r.error().found();
    EXPECT_NE(r.error().expected().find("5 == 6"), std::string::npos) << r.error().expected();

    const OpDef& gelu = *find_op("gelu");
    const std::vector<Value> ints = {as_value(Tensor::empty(DType::kI64, {2}))};
    const auto dtype = run(gelu, ints, {});
    ASSERT_FALSE(dtype);
    EXPECT_EQ(dtype.error().where().operand, "x");
    const auto count = run(gelu, std::vector<Value>{ints[0], ints[0]}, {});
    ASSERT_FALSE(count);
    EXPECT_EQ(count.error().id(), DiagnosticId::kWrongOperandCount);
    const auto none = run(gelu, std::vector<Value>{Value{}}, {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().id(), DiagnosticId::kMissingArgument);
}

}  // namespace
}  // namespace flexor::ops::test
