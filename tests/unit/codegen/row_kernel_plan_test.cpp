#include "codegen/cpu_llvm/row_kernel_plan.h"

#include <gtest/gtest.h>

#include "unit/loopir/kernels.h"

namespace flexor::codegen::cpu_llvm {
namespace {

loopir::Body body_of(const std::string& rest) { return loopir::testing::kernel_from("kernel k" + rest).body; }

loopir::Body softmax() { return loopir::testing::kernel_from(loopir::testing::kSoftmaxF32).body; }

RowPlan plan(const std::string& rest) { return plan_rows(body_of(rest), PlanOptions{}); }

TEST(RowPlan, StagesWithoutDependenceShareAPass) {
    RowPlan p = plan(R"((%0: in f32, %1: out f32, %2: out f32, %3: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  s0 = reduce sum v0
  v1 = mul v0, v0 : f32
  s1 = reduce sum v1
  s2 = store %1 [p1, 1] v1
  v2 = row_value s0 : f32
  v3 = row_value s1 : f32
  s3 = store per_row %2 [1, 0] v2
  s4 = store per_row %3 [1, 0] v3
)");
    EXPECT_EQ(p.form, RowForm::kRows);
    ASSERT_EQ(p.passes.size(), 2u);
    EXPECT_EQ(p.passes[0].loop.size(), 3u);
    EXPECT_TRUE(p.passes[1].loop.empty());
    EXPECT_EQ(p.passes[1].once.size(), 2u);
    EXPECT_TRUE(p.buffered.empty());
}

TEST(RowPlan, OnlyWhatIsDearToRecomputeWaitsInScratch) {
    RowPlan p = plan_rows(softmax(), PlanOptions{});
    ASSERT_EQ(p.passes.size(), 3u);
    ASSERT_EQ(p.buffered.size(), 1u);  // exp, not the load or the difference
    EXPECT_EQ(p.buffered[0].node, 3u);
    EXPECT_EQ(p.buffered[0].pass, 1u);
    EXPECT_EQ(p.scratch_rows, 1u);
    PlanOptions none;
    none.scratch_rows_allowed = 0;
    EXPECT_TRUE(plan_rows(softmax(), none).buffered.empty());
}

TEST(RowPlan, VectorsRunAlongUnitStrides) {
    RowPlan rows = plan_rows(softmax(), PlanOptions{});
    EXPECT_TRUE(rows.vector_is_row);
    EXPECT_EQ(rows.lanes, 16);
    RowPlan columns = plan(R"((%0: in f32, %1: out f32) params 2
row parallel [p1] row [p0]
  v0 = load %0 [1, p1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [1, 0] v1
)");
    EXPECT_EQ(columns.form, RowForm::kRows);
    EXPECT_FALSE(columns.vector_is_row);
    EXPECT_EQ(columns.block_vectors, 4);
    RowPlan permuted = plan(R"((%0: in f64, %1: out f64) params 2
row parallel [p0, p1] row []
  v0 = load %0 [1, p0] : f64
  v1 = neg v0 : f64
  s0 = store %1 [1, p0] v1
)");
    EXPECT_EQ(permuted.form, RowForm::kElementwise);
    EXPECT_EQ(permuted.lanes, 8);
    EXPECT_TRUE(permuted.body.accesses[0].strides[1].is(1));  // the unit stride moved to the end
}

TEST(RowPlan, FullReductionsAreSplit) {
    RowPlan p = plan(R"((%0: in f32, %1: out f32) params 2
row parallel [1] row [p0, p1]
  v0 = load %0 [0, p1, 1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [0, 0, 0] v1
)");
    EXPECT_EQ(p.form, RowForm::kSplit);
    EXPECT_EQ(p.outer_rows.size(), 1u);
    EXPECT_EQ(p.inner_dim, 2u);
}

TEST(RowPlan, ConstantRowsNeedNoTail) {
    loopir::Body body = softmax();
    body.extents[1] = loopir::IntRef::constant(768);
    EXPECT_TRUE(plan_rows(body, PlanOptions{}).exact_rows);
    body.extents[1] = loopir::IntRef::constant(770);
    EXPECT_FALSE(plan_rows(body, PlanOptions{}).exact_rows);
    PlanOptions epilogue;
    epilogue.keep_vector_last = true;
    EXPECT_FALSE(plan_rows(body_of(R"((%0: in f32, %1: out f32) params 1
row parallel [p0, 768] row []
  v0 = load %0 [768, 1] : f32
  s0 = store %1 [768, 1] v0
)"),
                           epilogue)
                     .exact_rows);
}

TEST(RowPlan, InPlaceStoresKeepTheirOrder) {
    RowPlan p = plan(R"((%0: inout f32, %1: out f32) params 1
row parallel [] row [p0]
  v0 = load %0 [1] : f32
  v1 = const 2.0 : f32
  v2 = mul v0, v1 : f32
  s0 = store %0 [1] v2
  s1 = store %1 [1] v0
)");
    // The second stage reads what the first wrote: it may not share its loop.
    ASSERT_EQ(p.passes.size(), 2u);
    EXPECT_EQ(p.stage_pass[0], 0u);
    EXPECT_EQ(p.stage_pass[1], 1u);
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
