#include "loopir/kernel.h"

#include <bit>
#include <cmath>

#include "unit/loopir/kernels.h"

namespace flexor::loopir {
namespace {

using testing::kernel_from;

Access access(std::uint32_t buffer) {
    Access out;
    out.buffer = buffer;
    out.strides = {IntRef::constant(1)};
    return out;
}

TEST(ScalarTables, MatchTheDefinitions) {
    EXPECT_EQ(scalar_arity(ScalarOp::kConst), 0);
    EXPECT_EQ(scalar_arity(ScalarOp::kFma), 3);
    EXPECT_EQ(scalar_class(ScalarOp::kIsNan), ScalarClass::kCompare);
    EXPECT_EQ(scalar_class(ScalarOp::kLoad), ScalarClass::kLeaf);
    EXPECT_STREQ(scalar_name(ScalarOp::kFloorDiv), "floor_div");
    EXPECT_STREQ(scalar_name(ScalarOp::kCast), "cast");
}

TEST(BodyBuilder, NumbersValues) {
    Body body;
    body.extents = {IntRef::slot(0)};
    BodyBuilder b(body);
    const NodeId x = b.load(DType::kF32, access(0));
    const NodeId y = b.load(DType::kF32, access(1));
    EXPECT_EQ(b.load(DType::kF32, access(0)), x);
    EXPECT_EQ(b.binary(ScalarOp::kAdd, x, y), b.binary(ScalarOp::kAdd, y, x));
    EXPECT_NE(b.binary(ScalarOp::kSub, x, y), b.binary(ScalarOp::kSub, y, x));
    EXPECT_NE(b.binary(ScalarOp::kMax, x, y), b.binary(ScalarOp::kMax, y, x));
    EXPECT_EQ(b.constant(DType::kF32, 0.1), b.constant(DType::kF32, static_cast<double>(0.1f)));
    EXPECT_NE(b.constant(DType::kF32, 0.0), b.constant(DType::kF32, -0.0));
    EXPECT_EQ(b.constant(DType::kF64, std::nan("1")), b.constant(DType::kF64, std::nan("2")));
    EXPECT_EQ(body.accesses.size(), 2u);
}

TEST(BodyBuilder, FoldsOnlyWhatChangesNoBit) {
    Body body;
    body.extents = {IntRef::slot(0)};
    BodyBuilder b(body);
    const NodeId f = b.load(DType::kF32, access(0));
    EXPECT_NE(b.binary(ScalarOp::kMul, f, b.constant(DType::kF32, 1)), f);
    EXPECT_NE(b.binary(ScalarOp::kAdd, f, b.constant(DType::kF32, 0)), f);
    const NodeId i = b.index(0);
    EXPECT_EQ(b.binary(ScalarOp::kAdd, i, b.constant_int(DType::kI64, 0)), i);
    EXPECT_EQ(b.binary(ScalarOp::kMul, b.constant_int(DType::kI64, 1), i), i);
    const NodeId sum =
        b.binary(ScalarOp::kAdd, b.constant_int(DType::kI32, 0x7FFFFFFF), b.constant_int(DType::kI32, 1));
    EXPECT_EQ(body.nodes[sum].constant_bits, std::int64_t{-2147483648});
    // A widening undone is nothing; a rounding point stays.
    const NodeId h = b.load(DType::kBF16, access(1));
    EXPECT_EQ(b.cast(b.cast(h, DType::kF32), DType::kBF16), h);
    const NodeId rounded = b.cast(f, DType::kBF16);
    EXPECT_NE(b.cast(rounded, DType::kF32), f);
    EXPECT_EQ(b.cast(f, DType::kF32), f);
    const NodeId c = b.cast(b.constant(DType::kF32, 1.01), DType::kBF16);
    EXPECT_EQ(std::bit_cast<double>(body.nodes[c].constant_bits), 1.0078125);
    EXPECT_EQ(b.select(b.constant_int(DType::kBool, 1), f, b.constant(DType::kF32, 2)), f);
    EXPECT_EQ(b.dtype(b.binary(ScalarOp::kLt, f, f)), DType::kBool);
    EXPECT_EQ(b.dtype(b.unary(ScalarOp::kIsNan, f)), DType::kBool);
}

TEST(Kernel, TrafficCountsBuffers) {
    const Traffic t = traffic(kernel_from(testing::kAddReluSum));
    EXPECT_EQ(t.reads, 2);
    EXPECT_EQ(t.writes, 1);
}

TEST(Kernel, IdentityIgnoresNamesOnly) {
    const Kernel a = kernel_from(testing::kSoftmax);
    Kernel b = a;
    b.name = "other";
    b.buffers[0].name = "x";
    EXPECT_TRUE(structurally_equal(a, b));
    EXPECT_EQ(structural_hash(a), structural_hash(b));
    const auto differs = [&](auto change) {
        Kernel c = a;
        change(c);
        return !structurally_equal(a, c) && structural_hash(a) != structural_hash(c);
    };
    EXPECT_TRUE(differs([](Kernel& k) { k.body.nodes[4].op = ScalarOp::kExp2; }));
    EXPECT_TRUE(differs([](Kernel& k) { k.body.accesses[0].offset = IntRef::constant(0); }));
    EXPECT_TRUE(differs([](Kernel& k) { k.body.stages[0].combine = Combine::kMin; }));
    EXPECT_TRUE(differs([](Kernel& k) { k.buffers[1].dtype = DType::kF16; }));
    EXPECT_TRUE(differs([](Kernel& k) { k.param_count = 4; }));
    Kernel linear = kernel_from(testing::kLinear);
    Kernel packed = linear;
    packed.contraction->b.packed = true;
    EXPECT_FALSE(structurally_equal(linear, packed));
    EXPECT_NE(structural_hash(linear), structural_hash(packed));
    Kernel attention = kernel_from(testing::kAttention);
    Kernel causal = attention;
    causal.attention->mask_kind = MaskKind::kCausal;
    EXPECT_FALSE(structurally_equal(attention, causal));
    EXPECT_NE(structural_hash(attention), structural_hash(causal));
    Kernel nan = attention;
    nan.attention->fully_masked = FullyMasked::kNan;
    EXPECT_FALSE(structurally_equal(attention, nan));
    EXPECT_NE(structural_hash(attention), structural_hash(nan));
}

}  // namespace
}  // namespace flexor::loopir
