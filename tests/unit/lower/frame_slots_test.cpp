#include "lower/frame_slots.h"

#include <gtest/gtest.h>

namespace flexor::lower {
namespace {

TEST(FrameSlots, ASumThatGrowsTakesOneInstructionATerm) {
    constexpr types::SymbolId kTerms = 200;
    FrameSlots slots(0);
    for (types::SymbolId id = 0; id < kTerms; ++id) slots.symbol(id);
    executable::FrameProgram program;
    Dim sum = Dim::symbol(0);
    for (types::SymbolId id = 1; id < kTerms; ++id) {
        const Dim next = sum + Dim::symbol(id);
        const Slot slot = slots.value_of_sum(next, sum, Dim::symbol(id), program);
        EXPECT_EQ(slot, slots.value(next, program));
        EXPECT_EQ(slot, slots.value_of_sum(next, sum, Dim::symbol(id), program));
        sum = next;
    }
    EXPECT_EQ(program.insts.size(), kTerms - 1);
    for (const auto& inst : program.insts) EXPECT_EQ(inst.op, executable::FrameOp::kAdd);
}

TEST(FrameSlots, ASumThatIsNoSumIsItsValue) {
    FrameSlots slots(0);
    executable::FrameProgram program;
    const Dim n = Dim::symbol(3);
    EXPECT_EQ(slots.value_of_sum(n, n, Dim(0), program), slots.symbol(3));
    EXPECT_TRUE(program.insts.empty());
    EXPECT_EQ(slots.value_of_sum(Dim(5), Dim(2), Dim(3), program), slots.value(Dim(5), program));
}

}  // namespace
}  // namespace flexor::lower
