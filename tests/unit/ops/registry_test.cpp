#include <set>

#include "ops/rules.h"
#include "run_op.h"

namespace flexor::ops::test {
namespace {

TEST(Registry, EveryEntryIsComplete) {
    std::set<std::string_view> names;
    for (const OpDef* op : all_ops()) {
        EXPECT_TRUE(names.insert(op->name.value).second) << op->name.value;
        EXPECT_EQ(find_op(op->name.value), op);
        EXPECT_FALSE(op->summary.value.empty()) << op->name.value;
        EXPECT_EQ(op->summary.value.back(), '.') << op->name.value;
        EXPECT_FALSE(op->samples.value.dtypes.empty()) << op->name.value;
        EXPECT_FALSE(op->samples.value.make().empty()) << op->name.value;
        for (const Constraint& c : op->constraints.value) EXPECT_FALSE(c.text.empty()) << op->name.value;
        for (std::size_t i = 0; i + 1 < op->operands.value.size(); ++i) {
            EXPECT_NE(op->operands.value[i].kind, OperandKind::kTensorList) << op->name.value;
        }
    }
    EXPECT_GE(names.size(), 100u);
}

TEST(Registry, NamesTellWhatWrites) {
    for (const OpDef* op : all_ops()) {
        const bool writes = op->effects.value == Effects::kWritesFirst;
        EXPECT_EQ(writes, op->name.value.back() == '_' || op->name.value == "assign") << op->name.value;
    }
}

TEST(Registry, NearMisses) {
    EXPECT_EQ(find_op("softmacks"), nullptr);
    EXPECT_EQ(nearest_op_name("softmx"), "softmax");
    EXPECT_EQ(nearest_op_name("zzzzzzzz"), "");
}

TEST(Registry, UserOps) {
    OpDef mine = *find_op("relu");
    const std::string name = "relu_of_mine";
    mine.name.value = name;
    const std::size_t before = all_ops().size();
    const OpDef* entry = register_op(mine);
    ASSERT_NE(entry, nullptr);
    EXPECT_NE(entry->name.value.data(), name.data()) << "the entry owns its name";
    EXPECT_EQ(find_op("relu_of_mine"), entry);
    EXPECT_EQ(all_ops().size(), before + 1);
    EXPECT_EQ(register_op(mine), nullptr);
}

TEST(Attributes, DefaultsKindsAndNames) {
    const OpDef& sum = *find_op("reduce_sum");
    const auto filled = check_attrs(sum, {});
    ASSERT_TRUE(filled);
    EXPECT_FALSE(filled->flag("keepdim"));
    EXPECT_FALSE(filled->has("axes"));

    const auto misspelt = check_attrs(sum, {{"keepdims", true}});
    ASSERT_FALSE(misspelt);
    EXPECT_EQ(misspelt.error().id(), DiagnosticId::kBadAttribute);
    EXPECT_NE(misspelt.error().hint().find("keepdim"), std::string::npos);

    const auto wrong = check_attrs(sum, {{"keepdim", 1.5}});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().where().operand, "keepdim");

    const auto missing = check_attrs(*find_op("cast"), {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().found(), "no value");

    const auto number = check_attrs(*find_op("elu"), {{"alpha", 2}});
    ASSERT_TRUE(number);
    EXPECT_EQ(number->real("alpha"), 2.0);

    EXPECT_TRUE(check_attrs(*find_op("reshape"), {{"shape", types::OperandRef{1}}}));
    EXPECT_FALSE(check_attrs(*find_op("gelu"), {{"approximate", types::OperandRef{1}}}));
}

TEST(Attributes, SamplesPass) {
    for (const OpDef* op : all_ops()) {
        for (const Sample& s : op->samples.value.make()) {
            const auto attrs = check_attrs(*op, s.attrs);
            EXPECT_TRUE(attrs) << op->name.value << ": " << (attrs ? "" : attrs.error().to_string());
        }
    }
}

TEST(Attributes, ReducedAxes) {
    EXPECT_EQ(rules::reduced_axes({}, 3), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(rules::reduced_axes({{"axes", types::DimList{-1, 0}}}, 3), (std::vector<int>{0, 2}));
    EXPECT_EQ(rules::reduced_axes({{"axes", types::DimList{}}}, 3), (std::vector<int>{}));
}

}  // namespace
}  // namespace flexor::ops::test
