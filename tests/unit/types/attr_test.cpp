#include "types/attr.h"

#include <gtest/gtest.h>

namespace flexor::types {
namespace {

std::string name(SymbolId id) { return "s" + std::to_string(id); }

TEST(Attrs, SortedEqualAndHashedByValue) {
    const Attrs a{{"keepdim", false}, {"axes", DimList{-1, Dim::symbol(0)}}};
    Attrs b;
    b.set("axes", DimList{-1, Dim::symbol(0)});
    b.set("keepdim", true);
    EXPECT_NE(a, b);
    b.set("keepdim", false);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.hash(), b.hash());
    EXPECT_EQ(to_string(a, name), "axes=[-1, s0], keepdim=false");
}

TEST(Attrs, TypedReads) {
    const Attrs a{{"alpha", Dim(2)},    {"dtype", DType::kBF16}, {"eps", 1e-5},
                  {"mode", "constant"}, {"none", AttrValue{}},   {"ref", OperandRef{3}}};
    EXPECT_EQ(a.real("alpha"), 2.0);
    EXPECT_EQ(a.integer("alpha"), Dim(2));
    EXPECT_EQ(a.real("eps"), 1e-5);
    EXPECT_EQ(a.dtype("dtype"), DType::kBF16);
    EXPECT_EQ(a.text("mode"), "constant");
    EXPECT_FALSE(a.has("none"));
    EXPECT_FALSE(a.has("absent"));
    EXPECT_TRUE(a.has("ref"));
    EXPECT_EQ(to_string(a, name), "alpha=2, dtype=bf16, eps=1e-05, mode=\"constant\", none=none, ref=$3");
}

}  // namespace
}  // namespace flexor::types
