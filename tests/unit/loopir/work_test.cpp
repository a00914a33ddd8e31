#include "loopir/work.h"

#include <gtest/gtest.h>

#include "unit/loopir/kernels.h"

namespace flexor::loopir {
namespace {

TEST(Work, CountsWhatIsReadAndWrittenOnce) {
    // relu(a + b) summed over rows of 5, b one row: three numbers out.
    const std::int64_t rows[] = {3, 5};
    const Work sum = work_of(testing::verified(testing::kAddReluSum), rows);
    EXPECT_EQ(sum.bytes, 4.0 * (3 * 5 + 5 + 3));
    EXPECT_EQ(sum.operations, 3.0 * 3 * 5);  // add, max, and the sum
    EXPECT_EQ(sum.products, 0);
    const std::int64_t none[] = {0, 5};
    EXPECT_EQ(work_of(testing::verified(testing::kAddReluSum), none).bytes, 0);
}

TEST(Work, CountsProducts) {
    const Kernel linear = testing::verified(testing::kLinear);
    std::vector<std::int64_t> params(linear.param_count, 7);
    const auto size = [&](const IntRef& ref) { return static_cast<double>(ref.is_constant ? ref.value : 7); };
    const Contraction& c = *linear.contraction;
    const Work work = work_of(linear, params.data());
    double batch = 1;
    for (std::uint32_t dim = 0; dim < c.batch_dims; ++dim) batch *= size(linear.body.extents[dim]);
    EXPECT_EQ(work.products, 2 * batch * size(c.m) * size(c.n) * size(c.k));
    EXPECT_EQ(work.products_dtype, c.a_dtype);
    EXPECT_GE(work.bytes, 4 * (size(c.m) * size(c.k) + size(c.k) * size(c.n) + size(c.m) * size(c.n)));

    const Kernel attention = testing::verified(testing::kAttention);
    params.assign(attention.param_count, 7);
    const Attention& a = *attention.attention;
    const Work scores = work_of(attention, params.data());
    EXPECT_EQ(scores.products, 2 * size(a.batch) * size(a.heads) * size(a.q_len) * size(a.kv_len) *
                                   (size(a.head_dim) + size(a.value_dim)));
    EXPECT_GT(scores.bytes, 0);
}

}  // namespace
}  // namespace flexor::loopir
