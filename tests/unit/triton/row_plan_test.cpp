#include "codegen/triton/launch_plan.h"

#include <gtest/gtest.h>

#include "codegen/triton/compile_request.h"
#include "unit/loopir/kernels.h"

namespace flexor::codegen::triton {
namespace {

using loopir::testing::verified;

constexpr const char* kMap = R"(
kernel map(%0: in f32, %1: in f32, %2: out f32) params 5
row parallel [p0, p1, p2] row []
  v0 = load %0 [p3, p2, 1] : f32
  v1 = load %1 [0, 0, 1] : f32
  v2 = add v0, v1 : f32
  s0 = store %2 [p4, p2, 1] v2
)";

LaunchPlan planned_rows(const char* text, std::vector<std::int64_t> params) {
    const loopir::Kernel kernel = verified(text);
    return plan_row(lay_out(kernel.body), params.data(), 132);
}

TEST(TritonRowPlan, MergesDimsThatAllAccessesStepThroughAsOne) {
    // The bias keeps the last dim apart; the two before are one where both tensors are contiguous.
    EXPECT_EQ(planned_rows(kMap, {4, 5, 6, 30, 30}).extents, (std::vector<std::int64_t>{1, 20, 6}));
    EXPECT_EQ(planned_rows(kMap, {4, 5, 6, 31, 30}).extents, (std::vector<std::int64_t>{4, 5, 6}));
    EXPECT_EQ(planned_rows(kMap, {1, 5, 6, 999, 30}).extents, (std::vector<std::int64_t>{1, 5, 6}));
}

TEST(TritonRowPlan, LaunchesNothingWithoutElements) {
    EXPECT_EQ(planned_rows(kMap, {4, 0, 6, 0, 0}).tiles, 0);
    EXPECT_EQ(planned_rows(kMap, {4, 5, 0, 0, 0}).tiles, 0);
    // A reduction over nothing still has a result.
    const LaunchPlan empty_rows = planned_rows(loopir::testing::kAddReluSum, {3, 0});
    EXPECT_EQ(empty_rows.tiles, 1);
    EXPECT_EQ(empty_rows.form, Form::kResident);
    EXPECT_EQ(planned_rows(loopir::testing::kAddReluSum, {0, 3}).tiles, 0);
}

TEST(TritonRowPlan, TilesFollowTheRow) {
    struct Tile {
        std::int64_t length, block_0, block_1;
    };
    for (const auto& [length, block_0, block_1] : {Tile{1, 1024, 1}, {50, 16, 64}, {1024, 1, 1024}, {8192, 1, 8192}}) {
        const LaunchPlan launch = planned_rows(loopir::testing::kAddReluSum, {1000, length});
        EXPECT_EQ(launch.form, Form::kResident) << length;
        EXPECT_EQ(launch.constant("BLOCK_1"), block_1) << length;
        EXPECT_EQ(launch.constant("BLOCK_0"), block_0) << length;
    }
    // Three blocks hold what would leave a quarter of four idle.
    for (const std::int64_t length : {33, 48, 768, 12288}) {
        const LaunchPlan launch = planned_rows(loopir::testing::kAddReluSum, {1000, length});
        EXPECT_EQ(launch.chunks, 3) << length;
        EXPECT_EQ(launch.constant("EVEN_1"), length == 33 ? 0 : 1) << length;
    }
    const LaunchPlan longer = planned_rows(loopir::testing::kAddReluSum, {1000, 16385});
    EXPECT_EQ(longer.form, Form::kLooped);
    EXPECT_EQ(longer.tiles, 1000);
    // Nothing is masked where blocks end with the row.
    EXPECT_EQ(planned_rows(loopir::testing::kAddReluSum, {1000, 1024}).constant("EVEN_1"), 1);
    EXPECT_EQ(planned_rows(loopir::testing::kAddReluSum, {1000, 1023}).constant("EVEN_1"), 0);
}

TEST(TritonRowPlan, SharesFewLongRows) {
    const LaunchPlan one = planned_rows(loopir::testing::kAddReluSum, {1, 1 << 24});
    EXPECT_EQ(one.form, Form::kSplit);
    EXPECT_EQ(one.tiles, 512);
    EXPECT_EQ(one.counters, 1);
    EXPECT_EQ(one.scratch, std::vector<std::int64_t>{512 * 4});
    // The bytes read are those of the tensor, and what is left between is a number a program.
    EXPECT_EQ(planned_rows(loopir::testing::kAddReluSum, {600, 1 << 20}).form, Form::kLooped);
    // A softmax walks the row more than once.
    EXPECT_EQ(planned_rows(loopir::testing::kSoftmax, {1, 1 << 24, 0}).form, Form::kLooped);
}

TEST(TritonRowPlan, TakesWideIndicesWhereAnAddressNeedsThem) {
    EXPECT_TRUE(planned_rows(kMap, {4, 5, 6, 30, 30}).narrow);
    EXPECT_FALSE(planned_rows(kMap, {4, 5, 6, std::int64_t{1} << 30, 30}).narrow);
    EXPECT_FALSE(planned_rows(kMap, {std::int64_t{1} << 31, 1, 1, 1, 1}).narrow);
    const LaunchPlan huge = planned_rows(kMap, {std::int64_t{1} << 40, std::int64_t{1} << 40, 6, 0, 0});
    EXPECT_FALSE(huge.narrow);
}

TEST(TritonRowPlan, ReducesColumnsAlongContiguousMemory) {
    const LaunchPlan launch = planned_rows(R"(
kernel columns(%0: in f32, %1: out f32) params 2
row parallel [p1] row [p0]
  v0 = load %0 [1, p1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [1, 0] v1
)",
                                           {4096, 768});
    EXPECT_EQ(launch.constant("BLOCK_0"), 128);
    EXPECT_EQ(launch.form, Form::kSplit);
    EXPECT_EQ(launch.tiles, 6 * 64);
}

TEST(TritonRowRequest, StatesTheArgumentsInOrder) {
    const loopir::Kernel kernel = verified(loopir::testing::kGather);
    const RowLayout layout = lay_out(kernel.body);
    const std::int64_t params[] = {3, 17, 5};
    const LaunchPlan launch = plan_row(layout, params, 132);
    const KernelSource source = write_row_kernel(kernel, layout, launch.form);
    std::vector<bool> divisible(source.arguments.size(), false);
    divisible[0] = true;
    const CompileRequest request = make_request(kernel, source, launch, divisible);
    const std::vector<std::pair<std::string, std::string>> expected = {
        {"b0", "*fp64"}, {"b1", "*i64"}, {"b2", "*u8"}, {"b3", "*fp64"}, {"fault", "*i32"},
        {"n0", "i32"},   {"n1", "i32"},  {"p1", "i32"}, {"p2", "i32"}};
    EXPECT_EQ(request.signature, expected);
    EXPECT_EQ(request.divisible, std::vector<std::string>{"b0"});
    EXPECT_EQ(request.function, "k_gather_rows");
}

TEST(TritonRowRequest, InAGraphWaitsOnceItHasReadTheFrame) {
    const loopir::Kernel kernel = verified(loopir::testing::kSoftmax);
    const RowLayout layout = lay_out(kernel.body);
    const std::int64_t params[] = {3, 17};
    const LaunchPlan launch = plan_row(layout, params, 132);
    const KernelSource source = write_row_kernel(kernel, layout, launch.form);
    const std::vector<bool> none(source.arguments.size(), false), all(source.arguments.size(), true);
    const auto text = [&](Successor successor) {
        return make_request(kernel, source, launch, none, all, successor).source;
    };
    EXPECT_EQ(text(Successor::kWhenEnded).find("gdc_"), std::string::npos);
    for (const Successor successor : {Successor::kWhenEnding, Successor::kWhenBegun}) {
        const std::string early = text(successor);
        const std::size_t wait = early.find("tl.extra.cuda.gdc_wait()\n");
        ASSERT_NE(wait, std::string::npos);
        // Nothing but the frame is read before, and nothing of the frame afterwards.
        EXPECT_LT(early.rfind("tl.load(frame"), wait);
        EXPECT_EQ(early.find("tl.load(b"), early.find("tl.load(b", wait));
        EXPECT_EQ(early.find("gdc_launch_dependents") != std::string::npos, successor == Successor::kWhenBegun);
    }
    EXPECT_EQ(make_request(kernel, source, launch, none, {}, Successor::kWhenBegun).source, source.text);
}

TEST(TritonRowSource, IsTheSameTextForEqualKernels) {
    loopir::Kernel a = verified(loopir::testing::kSoftmax);
    loopir::Kernel b = a;
    b.buffers[0].name = "other";
    for (const Form form : {Form::kResident, Form::kLooped}) {
        const KernelSource x = write_row_kernel(a, lay_out(a.body), form);
        EXPECT_EQ(x.text, write_row_kernel(b, lay_out(b.body), form).text);
        // One read of memory a pass over the row: one in registers, three block by block.
        std::size_t loads = 0;
        for (std::size_t at = x.text.find("tl.load"); at != std::string::npos; at = x.text.find("tl.load", at + 1))
            ++loads;
        EXPECT_EQ(loads, form == Form::kResident ? 1u : 3u);
    }
}

}  // namespace
}  // namespace flexor::codegen::triton
