#include "executable/executable.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/diagnostic.h"

namespace flexor::executable {
namespace {

using ops::Relation;

// y = x with one kernel of two buffers and one parameter.
Executable sample() {
    Executable e;
    e.function = "main";
    e.signature.local_count = 1;
    LiveSignature x;
    x.kind = LiveKind::kTensor;
    x.rank = 1;
    e.signature.values.push_back(x);
    e.frame_slots = 4;  // size, stride, bytes, constant
    e.buffer_slots = 2;
    e.sources = {{BufferSource::Kind::kArgument, 0}, {}};
    KernelSlot kernel;
    kernel.ir.name = "main:1:copy";
    kernel.ir.buffers = {{"x", DType::kF32, true, false}, {"y", DType::kF32, false, true}};
    kernel.ir.param_count = 1;
    e.kernels.push_back(kernel);
    e.launches.push_back({0, {0, 1}, {0}, 0});
    Block block;
    block.frame.insts = {{FrameOp::kConst, 3, 0, 0, 4}, {FrameOp::kMul, 2, 0, 3, 0}};
    Step allocate{Step::Kind::kAllocate};
    allocate.buffer = 1;
    allocate.bytes = 2;
    allocate.output = true;
    Step launch{Step::Kind::kLaunch};
    block.steps = {allocate, launch};
    OutValue value;
    value.kind = OutValue::Kind::kTensor;
    value.tensor = {1, DType::kF32, {0}, {1}, kNoSlot};
    block.terminator.values.push_back(value);
    e.blocks.push_back(block);
    return e;
}

std::string refusal(const Executable& e) {
    const auto verified = verify(e);
    return verified ? "" : verified.error().found();
}

TEST(Executable, SampleVerifiesAndPrints) {
    EXPECT_EQ(refusal(sample()), "");
    const std::string text = print(sample());
    for (const char* part : {"executable main@0", "s2 = s0 * s3", "output   b1 s2 bytes",
                             "launch   main:1:copy (b0, b1; s0)", "return   f32[s0] b1", "exits      none"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Executable, VerifyFindsWhatIsReadBeforeItIsWritten) {
    Executable e = sample();
    e.blocks[0].frame.insts.erase(e.blocks[0].frame.insts.begin());
    EXPECT_NE(refusal(e).find("slot 3 is read before"), std::string::npos);
    e = sample();
    std::swap(e.blocks[0].steps[0], e.blocks[0].steps[1]);
    EXPECT_NE(refusal(e).find("buffer 1 is read before"), std::string::npos);
    e = sample();
    e.launches[0].params.clear();
    EXPECT_NE(refusal(e), "");
    e = sample();
    e.launches[0].kernel = 7;
    EXPECT_NE(refusal(e), "");
    e = sample();
    e.blocks[0].terminator.values[0].tensor.buffer = 9;
    EXPECT_NE(refusal(e), "");
}

TEST(Executable, VerifyKeepsArenaMemoryInItsBlock) {
    Executable e = sample();
    e.blocks[0].steps.erase(e.blocks[0].steps.begin());
    e.blocks[0].arena_bytes = 2;
    e.blocks[0].arena.push_back({1, 2, 2, 0, 1});
    EXPECT_NE(refusal(e).find("leaves its block from the arena"), std::string::npos);
}

TEST(Executable, VerifyMeetsPaths) {
    // Block 1 is reached with and without slot 4.
    Executable e = sample();
    e.frame_slots = 5;
    Block last = e.blocks[0];
    last.frame.insts = {{FrameOp::kConst, 3, 0, 0, 4}, {FrameOp::kMul, 2, 4, 3, 0}};
    Block head;
    head.terminator.kind = Terminator::Kind::kBranch;
    head.terminator.condition = 0;
    head.terminator.jumps = {{1, {}, {{0, 4}}, {}}, {1, {}, {{0, 4}}, {}}};
    e.blocks = {head, last};
    EXPECT_EQ(refusal(e), "");
    e.blocks[0].terminator.jumps[1].slots.clear();
    EXPECT_NE(refusal(e).find("slot 4"), std::string::npos);
}

TEST(Frame, ArithmeticIsCheckedAndFloors) {
    std::int64_t frame[4] = {-7, 2, 0, 0};
    const auto run = [&](FrameOp op, std::int64_t a, std::int64_t b) {
        frame[0] = a;
        frame[1] = b;
        FrameProgram program;
        program.insts = {{op, 2, 0, 1, 64}};
        return run_frame(program, frame);
    };
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(run(FrameOp::kFloorDiv, -7, 2));
    EXPECT_EQ(frame[2], -4);
    EXPECT_TRUE(run(FrameOp::kTruncDiv, -7, 2));
    EXPECT_EQ(frame[2], -3);
    EXPECT_TRUE(run(FrameOp::kMod, -7, 2));
    EXPECT_EQ(frame[2], 1);
    EXPECT_TRUE(run(FrameOp::kMod, kMin, -1));
    EXPECT_EQ(frame[2], 0);
    EXPECT_TRUE(run(FrameOp::kBroadcast, 1, 9));
    EXPECT_EQ(frame[2], 9);
    EXPECT_TRUE(run(FrameOp::kAlignUp, 65, 0));
    EXPECT_EQ(frame[2], 128);
    for (const auto& [op, a, b] :
         {std::tuple{FrameOp::kMul, std::int64_t{1} << 40, std::int64_t{1} << 40},
          std::tuple{FrameOp::kAdd, kMax, std::int64_t{1}}, std::tuple{FrameOp::kSub, kMin, std::int64_t{1}},
          std::tuple{FrameOp::kFloorDiv, std::int64_t{1}, std::int64_t{0}},
          std::tuple{FrameOp::kTruncDiv, kMin, std::int64_t{-1}},
          std::tuple{FrameOp::kMod, std::int64_t{1}, std::int64_t{0}},
          std::tuple{FrameOp::kAlignUp, kMax, std::int64_t{0}}})
        EXPECT_FALSE(run(op, a, b)) << static_cast<int>(op);
}

TEST(Frame, ChecksAndGuards) {
    const std::int64_t frame[] = {1, 5, 5};
    EXPECT_FALSE(check_holds({Relation::kEq, 0, 1}, frame));
    EXPECT_TRUE(check_holds({Relation::kEq, 0, 1, true}, frame));
    EXPECT_TRUE(check_holds({Relation::kEq, 1, 2}, frame));
    EXPECT_TRUE(check_holds({Relation::kLt, 0, 1}, frame));
    EXPECT_TRUE(check_holds({Relation::kLe, 1, 2}, frame));
    EXPECT_FALSE(check_holds({Relation::kNe, 1, 2}, frame));
    Executable e = sample();
    e.guard_frame.insts = {{FrameOp::kMul, 2, 0, 1, 0}, {FrameOp::kConst, 3, 0, 0, 12}};
    e.guards = {{Relation::kEq, 2, 3}};
    std::int64_t good[] = {3, 4, 0, 0}, bad[] = {3, 5, 0, 0};
    std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0, 0};
    EXPECT_TRUE(guards_hold(e, good));
    EXPECT_FALSE(guards_hold(e, bad));
    EXPECT_FALSE(guards_hold(e, huge)) << "an overflow is no match";
}

TEST(Signature, SizeAndText) {
    const Signature a = sample().signature;
    Signature b = a;
    EXPECT_TRUE(a == b);
    b.values[0].dtype = DType::kF64;
    EXPECT_FALSE(a == b);
    EXPECT_EQ(a.frame_size(), 2u);
    LiveSignature list, integer;
    integer.kind = LiveKind::kInt;
    list.kind = LiveKind::kList;
    list.elements = {a.values[0], integer};
    EXPECT_EQ(frame_size(list), 3u);
    EXPECT_NE(to_string(list).find("f32 r1 cpu"), std::string::npos) << to_string(list);
}

}  // namespace
}  // namespace flexor::executable
