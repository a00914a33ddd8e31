#include "types/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "types/tensor_type.h"

namespace flexor::types {
namespace {

using Ints = std::vector<std::int64_t>;

std::string layout_text(const Ints& sizes, const Ints& strides) { return to_string(classify_layout(sizes, strides)); }

TEST(Layout, StrongestClassWins) {
    EXPECT_EQ(layout_text({}, {}), "contiguous");
    EXPECT_EQ(layout_text({2, 3, 4}, {12, 4, 1}), "contiguous");
    EXPECT_EQ(layout_text({2, 3, 4}, {4, 8, 1}), "permuted(1,0,2)");
    EXPECT_EQ(layout_text({3, 4}, {1, 3}), "permuted(1,0)");
    EXPECT_EQ(layout_text({2, 3, 4}, {12, 1, 3}), "permuted(0,2,1)");
    EXPECT_EQ(layout_text({2, 3, 4}, {100, 4, 1}), "inner-contiguous");
    EXPECT_EQ(layout_text({4}, {2}), "general");
    EXPECT_EQ(layout_text({4}, {-1}), "general");
    EXPECT_EQ(layout_text({3, 4}, {0, 1}), "broadcast(0; inner)");
    EXPECT_EQ(layout_text({3, 4}, {1, 0}), "broadcast(1)");
    EXPECT_EQ(layout_text({3, 4}, {0, 0}), "broadcast(0,1)");
    EXPECT_EQ(layout_text({3, 4}, {1, 1}), "self-overlapping");
    EXPECT_EQ(layout_text({2, 3, 4}, {0, 1, 1}), "self-overlapping");
}

TEST(Layout, InterleavedAxesNeedNotOverlap) {
    EXPECT_FALSE(overlaps_itself(Ints{2, 3}, Ints{3, 2}));
    EXPECT_FALSE(overlaps_itself(Ints{3, 3}, Ints{3, 2}));
    EXPECT_TRUE(overlaps_itself(Ints{3, 4}, Ints{3, 2}));
    EXPECT_TRUE(overlaps_itself(Ints{4, 3}, Ints{1, 1}));
    EXPECT_FALSE(overlaps_itself(Ints{1 << 20, 1 << 20}, Ints{1 << 20, 1}));
    EXPECT_FALSE(overlaps_itself(Ints{0, 4}, Ints{0, 0}));
    EXPECT_FALSE(overlaps_itself(Ints{}, Ints{}));
    EXPECT_TRUE(overlaps_itself(Ints{1 << 20, 3}, Ints{std::int64_t{1} << 60, 1}));
}

TEST(Layout, SizeOneAxesAndEmptyTensorsAreFree) {
    EXPECT_EQ(layout_text({1, 4}, {99, 1}), "contiguous");
    EXPECT_EQ(layout_text({4, 1}, {1, 0}), "contiguous");
    EXPECT_EQ(layout_text({0, 4}, {7, 7}), "contiguous");
    EXPECT_EQ(layout_text({1, 3, 4}, {0, 1, 3}), "permuted(0,2,1)");
    EXPECT_EQ(layout_text({3, 4, 1}, {8, 2, 5}), "inner-contiguous");
}

TEST(Layout, PermutationIsPartOfTheClass) {
    const auto a = classify_layout(Ints{2, 3, 4}, Ints{4, 8, 1});
    const auto b = classify_layout(Ints{2, 3, 4}, Ints{12, 1, 3});
    EXPECT_EQ(a.kind, LayoutKind::kPermuted);
    EXPECT_EQ(b.kind, LayoutKind::kPermuted);
    EXPECT_NE(a, b);
    EXPECT_NE(a.bits(), b.bits());
    EXPECT_EQ(a.detail & 0xFFF, 0x201u);
}

// Every layout of small sizes and strides: whether it overlaps, by enumeration of its addresses.
TEST(Layout, NeverCallsAnOverlappingLayoutFree) {
    for (std::int64_t n0 = 1; n0 <= 3; ++n0) {
        for (std::int64_t n1 = 1; n1 <= 3; ++n1) {
            for (std::int64_t n2 = 1; n2 <= 3; ++n2) {
                for (std::int64_t code = 0; code < 9 * 9 * 9; ++code) {
                    const Ints sizes{n0, n1, n2};
                    const Ints strides{code % 9 - 2, code / 9 % 9 - 2, code / 81 - 2};
                    std::multiset<std::int64_t> addresses;
                    bool zero_stride = false;
                    for (std::int64_t i = 0; i < n0 * n1 * n2; ++i) {
                        const Ints at{i / (n1 * n2), i / n2 % n1, i % n2};
                        addresses.insert(at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2]);
                    }
                    for (std::size_t i = 0; i < 3; ++i) zero_stride |= sizes[i] > 1 && strides[i] == 0;
                    const std::set<std::int64_t> distinct(addresses.begin(), addresses.end());
                    const bool overlaps = distinct.size() != addresses.size();
                    ASSERT_EQ(overlaps_itself(sizes, strides), overlaps) << ::testing::PrintToString(strides);
                    const auto kind = classify_layout(sizes, strides).kind;
                    const bool says_overlap = kind == LayoutKind::kSelfOverlapping || kind == LayoutKind::kBroadcast;
                    ASSERT_TRUE(!overlaps || says_overlap) << to_string(classify_layout(sizes, strides));
                    ASSERT_EQ(kind == LayoutKind::kBroadcast, zero_stride && kind != LayoutKind::kSelfOverlapping);
                    const bool compact = distinct.size() == addresses.size() && *distinct.begin() == 0 &&
                                         *distinct.rbegin() == n0 * n1 * n2 - 1;
                    ASSERT_EQ(compact && !zero_stride,
                              kind == LayoutKind::kContiguous || kind == LayoutKind::kPermuted);
                }
            }
        }
    }
}

TEST(TensorType, PrintsStridesOnlyWhenNotContiguous) {
    const auto name = [](SymbolId id) { return std::string(1, "BS"[id]); };
    auto type = contiguous_type(DType::kF32, {Dim::symbol(0), Dim::symbol(1), 768});
    EXPECT_EQ(to_string(type, name), "f32[B,S,768]");
    EXPECT_EQ(type.numel(), 768 * Dim::symbol(0) * Dim::symbol(1));
    std::swap(type.strides[0], type.strides[1]);
    type.offset = 4;
    EXPECT_EQ(to_string(type, name), "f32[B,S,768] strides [768,768*S,1] offset 4");
}

}  // namespace
}  // namespace flexor::types
