#include "unit/loopir/kernels.h"

namespace flexor::loopir {
namespace {

using testing::kernel_from;

// The promise that a changed kernel breaks, or "" if it verifies.
template <class Change>
std::string broken_promise(const char* text, Change change) {
    Kernel kernel = kernel_from(text);
    EXPECT_TRUE(verify(kernel)) << text;
    change(kernel);
    const auto status = verify(kernel);
    return status ? "" : status.error().where().constraint;
}

TEST(Verify, V1EveryIndexIsInRange) {
    const auto add = [](auto change) { return broken_promise(testing::kAddReluSum, change); };
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[2].operands[1] = 77; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[0].index = 9; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.accesses[0].buffer = 3; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.accesses[0].strides.pop_back(); }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.accesses[0].offset = IntRef::slot(2); }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.extents[0] = IntRef::slot(-1); }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.parallel = 3; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[5].index = 2; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.body.stages[0].value = kNoNode; }), "V1");
    EXPECT_EQ(add([](Kernel& k) { k.param_count = 1; }), "V1");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction->b.buffer = 4; }), "V1");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction->a.batch_strides.clear(); }), "V1");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.attention->scale = 1; }), "V1");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.attention->q.strides.pop_back(); }), "V1");
}

TEST(Verify, V2OperandsPrecedeUsers) {
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.body.nodes[2].operands[0] = 2; }), "V2");
    EXPECT_EQ(broken_promise(testing::kGather, [](Kernel& k) { k.body.accesses[2].gathers[0].index = 2; }), "V2");
    EXPECT_EQ(broken_promise(testing::kGather, [](Kernel& k) { k.body.accesses[2].mask = 2; }), "V2");
}

TEST(Verify, V3DTypes) {
    const auto add = [](auto change) { return broken_promise(testing::kAddReluSum, change); };
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[2].dtype = DType::kF64; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[0].dtype = DType::kI32; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[4].op = ScalarOp::kAnd; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.body.nodes[4].op = ScalarOp::kLt; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.body.stages[0].combine = Combine::kAny; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.body.stages[0].combine = Combine::kArgMax; }), "V3");
    EXPECT_EQ(add([](Kernel& k) { k.buffers[2].dtype = DType::kF64; }), "V3");
    // L3: no arithmetic on bf16.
    EXPECT_EQ(broken_promise(testing::kSoftmax,
                             [](Kernel& k) {
                                 k.body.nodes[1] = {ScalarOp::kExp, DType::kBF16, {0, kNoNode, kNoNode}};
                                 k.body.nodes[2].dtype = DType::kBF16;
                             }),
              "V3");
    EXPECT_EQ(broken_promise(testing::kGather, [](Kernel& k) { k.body.accesses[2].mask = 0; }), "V3");
    EXPECT_EQ(broken_promise(testing::kGather, [](Kernel& k) { k.body.accesses[2].gathers[0].index = 1; }), "V3");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction->a_dtype = DType::kF32; }), "V3");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.attention->dtype = DType::kF16; }), "V3");
}

TEST(Verify, V4RowValuesComeFromEarlierReductions) {
    EXPECT_EQ(broken_promise(testing::kSoftmax, [](Kernel& k) { std::swap(k.body.stages[1], k.body.stages[2]); }),
              "V4");
    EXPECT_EQ(broken_promise(testing::kSoftmax, [](Kernel& k) { std::swap(k.body.stages[0], k.body.stages[1]); }),
              "V4");
}

TEST(Verify, V5PerRowStores) {
    EXPECT_EQ(broken_promise(testing::kAddReluSum,
                             [](Kernel& k) { k.body.stages[1].target.strides[1] = IntRef::constant(1); }),
              "V5");
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.body.stages[1].value = 4; }), "V5");
}

TEST(Verify, V6FlagsMatchUse) {
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.buffers[0].read = false; }), "V6");
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.buffers[0].written = true; }), "V6");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.buffers[1].read = false; }), "V6");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.buffers[5].read = false; }), "V6");
}

TEST(Verify, V7EveryKindHasItsPartsAndNoOthers) {
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.body.stages.clear(); }), "V7");
    EXPECT_EQ(broken_promise(testing::kAddReluSum, [](Kernel& k) { k.extern_name = "sort"; }), "V7");
    EXPECT_EQ(broken_promise(testing::kAddReluSum,
                             [](Kernel& k) { k.body.nodes[3] = {ScalarOp::kAccumulator, DType::kF32}; }),
              "V7");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction.reset(); }), "V7");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.body.parallel = 2; }), "V7");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction->m = IntRef::slot(1); }), "V7");
    EXPECT_EQ(broken_promise(testing::kLinear, [](Kernel& k) { k.contraction->a.packed = true; }), "V7");
    EXPECT_EQ(broken_promise(testing::kPrologue, [](Kernel& k) { k.contraction->prologue->stages.pop_back(); }), "V7");
    EXPECT_EQ(
        broken_promise(testing::kPrologue, [](Kernel& k) { k.contraction->prologue->extents[1] = IntRef::slot(1); }),
        "V7");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.attention->mask.reset(); }), "V7");
    EXPECT_EQ(broken_promise(testing::kAttention, [](Kernel& k) { k.attention->mask_kind = MaskKind::kCausal; }), "V7");
    EXPECT_EQ(broken_promise("kernel e() params 0 extern sort", [](Kernel& k) { k.extern_name.clear(); }), "V7");
}

}  // namespace
}  // namespace flexor::loopir
