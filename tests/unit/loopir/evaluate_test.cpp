#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "types/half.h"
#include "unit/loopir/kernels.h"

namespace flexor::loopir {
namespace {

using testing::verified;
using Params = std::vector<std::int64_t>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

bool run(const Kernel& kernel, std::vector<void*> buffers, const Params& params, const ExternTable* externs = nullptr) {
    EvalArgs args{buffers.data(), params.data(), false, externs};
    evaluate(kernel, args);
    return args.fault;
}

std::vector<std::uint16_t> bf16(const std::vector<float>& values) {
    std::vector<std::uint16_t> out;
    for (const float v : values) out.push_back(types::bf16_from_f32(v));
    return out;
}

TEST(Evaluate, AddReluSum) {
    const Kernel kernel = verified(testing::kAddReluSum);
    std::vector<float> x{1, -5, 2, 3, 4, -9}, w{1, 1, -1}, out(2, -7);
    EXPECT_FALSE(run(kernel, {x.data(), w.data(), out.data()}, {2, 3}));
    EXPECT_EQ(out, (std::vector<float>{3, 9}));
    EXPECT_FALSE(run(kernel, {x.data(), w.data(), out.data()}, {2, 0}));
    EXPECT_EQ(out, (std::vector<float>{0, 0}));  // sums of no elements
    out = {5, 5};
    run(kernel, {x.data(), w.data(), out.data()}, {0, 3});
    EXPECT_EQ(out, (std::vector<float>{5, 5}));
}

TEST(Evaluate, SoftmaxRoundsToBf16) {
    const Kernel kernel = verified(testing::kSoftmax);
    auto x = bf16({9, 9, 1, 2, 3, 4});
    std::vector<std::uint16_t> out(4);
    run(kernel, {x.data(), out.data()}, {2, 2, 2});
    for (std::size_t r = 0; r < 2; ++r) {
        EXPECT_EQ(out[2 * r], types::bf16_from_f32(static_cast<float>(1 / (1 + std::exp(1.0)))));
        EXPECT_EQ(out[2 * r + 1], types::bf16_from_f32(static_cast<float>(1 / (1 + std::exp(-1.0)))));
    }
}

TEST(Evaluate, L7GatherChecksEveryIndex) {
    const Kernel kernel = verified(testing::kGather);
    std::vector<double> table{0, 1, 10, 11, 20, 21}, out(8, -1);
    std::vector<std::int64_t> index{2, -1, 0, 99};
    std::vector<std::uint8_t> mask{1, 1, 0, 0};
    EXPECT_FALSE(run(kernel, {table.data(), index.data(), mask.data(), out.data()}, {4, 2, 3}));
    EXPECT_EQ(out, (std::vector<double>{20, 21, 20, 21, 0, 0, 0, 0}));  // masked: no look at the index
    mask = {1, 1, 1, 1};
    index = {0, -4, 3, -3};
    EXPECT_TRUE(run(kernel, {table.data(), index.data(), mask.data(), out.data()}, {4, 2, 3}));
    EXPECT_EQ(out, (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 1}));
}

TEST(Evaluate, StoresMaskAndScatter) {
    const Kernel kernel = verified(R"(
        kernel scatter(%0: in i32, %1: in i64, %2: out i32) params 2
        row parallel [] row [p0]
          v0 = load %0 [1] : i32
          v1 = load %1 [1] : i64
          v2 = const 0 : i32
          v3 = gt v0, v2 : bool
          s0 = store %2 [0] gather v1 * 1 of p1 mask v3 v0
    )");
    std::vector<std::int32_t> x{5, -6, 7, 8}, out{0, 0, 0};
    std::vector<std::int64_t> index{2, 1, 0, 1};
    EXPECT_FALSE(run(kernel, {x.data(), index.data(), out.data()}, {4, 3}));
    EXPECT_EQ(out, (std::vector<std::int32_t>{7, 8, 5}));
    index[3] = 3;
    EXPECT_TRUE(run(kernel, {x.data(), index.data(), out.data()}, {4, 3}));
    EXPECT_EQ(out, (std::vector<std::int32_t>{7, 8, 5}));
}

// One operator over one row of f32, f64, i32, ... values.
template <class T>
std::vector<T> apply(const std::string& op, const std::string& dtype, std::vector<T> a, std::vector<T> b = {},
                     bool* fault = nullptr) {
    const bool binary = !b.empty();
    const std::string names = binary ? "v0, v1" : "v0";
    const Kernel kernel =
        verified("kernel t(%0: in " + dtype + ", %1: in " + dtype + ", %2: out " + dtype +
                 ") params 1 row parallel [] row [p0] v0 = load %0 [1] : " + dtype + " v1 = load %1 [1] : " + dtype +
                 " v2 = " + op + " " + names + " : " + dtype + " s0 = store %2 [1] v2");
    if (!binary) b = a;
    std::vector<T> out(a.size());
    const bool faulted = run(kernel, {a.data(), b.data(), out.data()}, {static_cast<std::int64_t>(a.size())});
    if (fault != nullptr) *fault = faulted;
    return out;
}

template <class T>
void expect_same(const std::vector<T>& found, const std::vector<T>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (expected[i] != expected[i]) {
            EXPECT_NE(found[i], found[i]) << i;
        } else {
            EXPECT_EQ(found[i], expected[i]) << i;
        }
    }
}

TEST(Evaluate, FloatDivisionAndRemainders) {
    using F = std::vector<float>;
    const float n = static_cast<float>(kNan);
    const float inf = static_cast<float>(kInf);
    const F a{7, -7, 7, -7, 1.0f, 5, -5, 1, 0, n}, b{2, 2, -2, -2, 0.1f, inf, inf, 0, 0, 1};
    // As Python: 1.0 // 0.1f is 9, for 0.1f is more than a tenth.
    expect_same(apply<float>("floor_div", "f32", a, b), F{3, -4, -4, 3, 9, 0, -1, inf, n, n});
    expect_same(apply<float>("trunc_div", "f32", a, b), F{3, -3, -3, 3, 10, 0, 0, inf, n, n});
    expect_same(apply<float>("floor_mod", "f32", {7, -7, 7, -7, 0}, {3, 3, -3, -3, 3}), F{1, 2, -2, -1, 0});
    expect_same(apply<float>("trunc_mod", "f32", {7, -7, 7, -7, 1}, {3, 3, -3, -3, 0}), F{1, -1, 1, -1, n});
}

TEST(Evaluate, NanRules) {
    using D = std::vector<double>;
    const D a{1, kNan, 2, kNan}, b{2, 1, kNan, kNan};
    expect_same(apply<double>("max", "f64", a, b), D{2, kNan, kNan, kNan});
    expect_same(apply<double>("min", "f64", a, b), D{1, kNan, kNan, kNan});
    expect_same(apply<double>("max_num", "f64", a, b), D{2, 1, 2, kNan});
    expect_same(apply<double>("min_num", "f64", a, b), D{1, 1, 2, kNan});
    expect_same(apply<double>("sign", "f64", {kNan, -2, 0, 3}), D{kNan, -1, 0, 1});
    expect_same(apply<double>("round", "f64", {0.5, 1.5, 2.5, -0.5, -1.5}), D{0, 2, 2, 0, -2});
    expect_same(apply<double>("sigmoid", "f64", {0, -1000, 1000}), D{0.5, 0, 1});
}

TEST(Evaluate, FmaRoundsOnce) {
    const Kernel kernel = verified(R"(
        kernel fma(%0: in f32, %1: out f32) params 0
        row parallel [] row [1]
          v0 = load %0 [1] : f32
          v1 = load %0 + 1 [1] : f32
          v2 = fma v0, v0, v1 : f32
          s0 = store %1 [1] v2
    )");
    const float x = 1 + 0x1p-12f;
    std::vector<float> in{x, -(1 + 0x1p-11f)}, out(1);
    run(kernel, {in.data(), out.data()}, {});
    EXPECT_EQ(out[0], 0x1p-24f);
}

TEST(Evaluate, IntegersWrapAndZeroDivisorsFault) {
    using I32 = std::vector<std::int32_t>;
    const std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
    bool fault = false;
    expect_same(apply<std::int32_t>("add", "i32", {2147483647, 1}, {1, 1}), I32{lowest, 2});
    expect_same(apply<std::int32_t>("mul", "i32", {65536, 3}, {65536, 4}), I32{0, 12});
    expect_same(apply<std::int32_t>("neg", "i32", {lowest, 5}), I32{lowest, -5});
    expect_same(apply<std::int32_t>("abs", "i32", {lowest, -5}), I32{lowest, 5});
    expect_same(apply<std::int32_t>("floor_div", "i32", {-7, 7, lowest}, {2, -2, -1}, &fault), I32{-4, -4, lowest});
    EXPECT_FALSE(fault);
    expect_same(apply<std::int32_t>("floor_div", "i32", {-7, 7}, {0, 2}, &fault), I32{0, 3});
    EXPECT_TRUE(fault);
    expect_same(apply<std::int32_t>("floor_mod", "i32", {-7, 7, 7, lowest}, {3, -3, 0, -1}, &fault), I32{2, -2, 0, 0});
    EXPECT_TRUE(fault);
    expect_same(apply<std::int32_t>("trunc_div", "i32", {-7, 7}, {2, -2}), I32{-3, -3});
    expect_same(apply<std::int32_t>("trunc_mod", "i32", {-7, 7}, {3, -3}), I32{-1, 1});
    expect_same(apply<std::int32_t>("pow", "i32", {3, 2, -1, 2, 1}, {4, 31, -3, -1, -5}), I32{81, lowest, -1, 0, 1});
    expect_same(apply<std::int32_t>("shr", "i32", {-8, 8}, {1, 2}), I32{-4, 2});
    using U8 = std::vector<std::uint8_t>;
    expect_same(apply<std::uint8_t>("sub", "u8", {1, 5}, {2, 2}), U8{255, 3});
    expect_same(apply<std::uint8_t>("not", "u8", {1, 255}), U8{254, 0});
    expect_same(apply<std::uint8_t>("not", "bool", {1, 0}), U8{0, 1});
    expect_same(apply<std::uint8_t>("shl", "u8", {200, 1}, {1, 7}), U8{144, 128});
    using I64 = std::vector<std::int64_t>;
    const std::int64_t lowest64 = std::numeric_limits<std::int64_t>::min();
    expect_same(apply<std::int64_t>("floor_div", "i64", {lowest64, -9}, {-1, 4}), I64{lowest64, -3});
}

template <class From, class To>
std::vector<To> cast(const std::string& from, const std::string& to, std::vector<From> in) {
    const Kernel kernel = verified("kernel c(%0: in " + from + ", %1: out " + to +
                                   ") params 1 row parallel [] row [p0] v0 = load %0 [1] : " + from +
                                   " v1 = cast v0 : " + to + " s0 = store %1 [1] v1");
    std::vector<To> out(in.size());
    run(kernel, {in.data(), out.data()}, {static_cast<std::int64_t>(in.size())});
    return out;
}

TEST(Evaluate, Casts) {
    using U8 = std::vector<std::uint8_t>;
    EXPECT_EQ((cast<float, std::int32_t>("f32", "i32", {1.9f, -1.9f, 3e9f})),
              (std::vector<std::int32_t>{1, -1, std::numeric_limits<std::int32_t>::min()}));
    EXPECT_EQ((cast<float, std::uint8_t>("f32", "u8", {300.7f, -1})), (U8{44, 255}));
    EXPECT_EQ((cast<double, std::uint8_t>("f64", "bool", {0.5, 0, -0.0, kNan})), (U8{1, 0, 0, 1}));
    EXPECT_EQ((cast<std::int64_t, std::int8_t>("i64", "i8", {200, -129})), (std::vector<std::int8_t>{-56, 127}));
    EXPECT_EQ((cast<std::int64_t, float>("i64", "f32", {(1 << 24) + 1, (std::int64_t{1} << 53) + (1 << 29) + 1})),
              (std::vector<float>{16777216.0f, 0x1p53f + 0x1p30f}));  // rounded once, not by way of f64
    EXPECT_EQ((cast<float, std::uint16_t>("f32", "bf16", {1 + 0x1p-8f, 1 + 0x1.8p-7f, 3.4e38f})),
              (std::vector<std::uint16_t>{0x3F80, 0x3F82, 0x7F80}));
    EXPECT_EQ((cast<float, std::uint16_t>("f32", "f16", {1 + 0x1p-11f, 65520.0f, 0x1p-25f, 0x1.8p-25f})),
              (std::vector<std::uint16_t>{0x3C00, 0x7C00, 0, 1}));
    EXPECT_EQ((cast<double, std::uint16_t>("f64", "bf16", {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 + 0x1p-20})),
              (std::vector<std::uint16_t>{0x3F80, 0x3F81}));  // by way of f32, as torch
    EXPECT_EQ((cast<std::uint8_t, std::int32_t>("bool", "i32", {2, 0})), (std::vector<std::int32_t>{1, 0}));
}

TEST(Evaluate, Reductions) {
    const auto reduce = [](const std::string& combine, std::vector<double> in) {
        const bool position = combine.starts_with("arg");
        const std::string result = position ? "i64" : "f64";
        const Kernel kernel = verified("kernel r(%0: in f64, %1: out " + result +
                                       ") params 1 row parallel [] row [p0] v0 = load %0 [1] : f64 s0 = reduce " +
                                       combine + " v0 v1 = row_value s0 : " + result + " s1 = store per_row %1 [0] v1");
        std::int64_t word = 0;
        run(kernel, {in.data(), &word}, {static_cast<std::int64_t>(in.size())});
        return position ? static_cast<double>(word) : std::bit_cast<double>(word);
    };
    EXPECT_EQ(reduce("sum", {1, 2, 3, 4, 5}), 15);
    EXPECT_EQ(reduce("prod", {1, 2, 3, 4, 5}), 120);
    EXPECT_EQ(reduce("max", {1, 7, 3}), 7);
    EXPECT_EQ(reduce("min", {1, 7, 3}), 1);
    EXPECT_TRUE(std::isnan(reduce("max", {1, kNan, 3})));
    EXPECT_TRUE(std::isnan(reduce("min", {kNan, 1, 3})));
    EXPECT_EQ(reduce("argmax", {1, 7, 3, 7}), 1);
    EXPECT_EQ(reduce("argmin", {3, 1, 1}), 1);
    EXPECT_EQ(reduce("argmax", {1, 7, kNan, 9, kNan}), 2);
    EXPECT_EQ(reduce("sum", {}), 0);
    EXPECT_EQ(reduce("prod", {}), 1);
    EXPECT_EQ(reduce("max", {}), -kInf);
    EXPECT_EQ(reduce("min", {}), kInf);
    const Kernel any = verified(R"(
        kernel any(%0: in bool, %1: out bool, %2: out bool) params 2
        row parallel [p0] row [p1]
          v0 = load %0 [p1, 1] : bool
          s0 = reduce any v0
          s1 = reduce all v0
          v1 = row_value s0 : bool
          v2 = row_value s1 : bool
          s2 = store per_row %1 [1, 0] v1
          s3 = store per_row %2 [1, 0] v2
    )");
    std::vector<std::uint8_t> in{1, 0, 1, 1, 0, 0}, out_any(3), out_all(3);
    run(any, {in.data(), out_any.data(), out_all.data()}, {3, 2});
    EXPECT_EQ(out_any, (std::vector<std::uint8_t>{1, 1, 0}));
    EXPECT_EQ(out_all, (std::vector<std::uint8_t>{0, 1, 0}));
    run(any, {in.data(), out_any.data(), out_all.data()}, {3, 0});
    EXPECT_EQ(out_any, (std::vector<std::uint8_t>{0, 0, 0}));
    EXPECT_EQ(out_all, (std::vector<std::uint8_t>{1, 1, 1}));
}

TEST(Evaluate, SumsByTreeInTheAccumulatorsDtype) {
    const Kernel kernel = verified(R"(
        kernel s(%0: in f32, %1: out f32) params 1
        row parallel [] row [p0]
          v0 = load %0 [1] : f32
          s0 = reduce sum v0
          v1 = row_value s0 : f32
          s1 = store per_row %1 [0] v1
    )");
    std::vector<float> ones(1 << 17, 0.1f), out(1);
    run(kernel, {ones.data(), out.data()}, {1 << 17});
    EXPECT_EQ(out[0], 0.1f * (1 << 17));  // a running sum in f32 would be off by hundreds
}

TEST(Evaluate, IndexAndParams) {
    const Kernel kernel = verified(R"(
        kernel i(%0: out i64, %1: out f32) params 4
        row parallel [2] row [3]
          v0 = index d0 : i64
          v1 = index d1 : i64
          v2 = param p0 : i64
          v3 = mul v0, v2 : i64
          v4 = add v3, v1 : i64
          v5 = param p1 : f32
          s0 = store %0 + p2 [p3, -1] v4
          s1 = store %1 [3, 1] v5
    )");
    std::vector<std::int64_t> out(6);
    std::vector<float> f(6);
    run(kernel, {out.data(), f.data()}, {10, std::bit_cast<std::int64_t>(2.5), 2, 3});
    EXPECT_EQ(out, (std::vector<std::int64_t>{2, 1, 0, 12, 11, 10}));
    EXPECT_EQ(f, std::vector<float>(6, 2.5f));
}

TEST(Evaluate, ContractionWithEpilogue) {
    const Kernel kernel = verified(testing::kLinear);
    auto a = bf16({1, 2, 3, 4, 5, 6, -1, -2, -3, 0, 0, 1});  // [2, 2, 3]
    auto b = bf16({1, 0, 1, 2, 1, 0, 0, 0, 1});              // [3, 3], row n holds b[:, n]
    std::vector<float> bias{0, 1, -100}, out(12, -7);
    run(kernel, {a.data(), b.data(), bias.data(), out.data()}, {2, 3, 3, 6, 2});
    EXPECT_EQ(out, (std::vector<float>{4, 5, 0, 10, 14, 0, 0, 0, 0, 1, 1, 0}));
    run(kernel, {a.data(), b.data(), bias.data(), out.data()}, {2, 3, 0, 6, 2});  // sums over no k
    EXPECT_EQ(out, (std::vector<float>{0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0}));
}

TEST(Evaluate, ContractionWithPrologue) {
    const Kernel kernel = verified(testing::kPrologue);
    std::vector<float> a{0, 1, 2, 3, 1, 0}, b{1, 10, 2, 20, 3, 30}, out(4);
    run(kernel, {a.data(), b.data(), out.data()}, {2, 2, 3});
    for (std::size_t r = 0; r < 2; ++r) {
        double weights[3];
        double total = 0;
        for (std::size_t i = 0; i < 3; ++i) total += weights[i] = std::exp(2 * a[3 * r + i]);
        for (std::size_t c = 0; c < 2; ++c) {
            double expected = 0;
            for (std::size_t i = 0; i < 3; ++i) expected += weights[i] / total * b[2 * i + c];
            EXPECT_NEAR(out[2 * r + c], expected, 1e-5);
        }
    }
}

// Against the formula in double, over every kind of mask.
TEST(Evaluate, Attention) {
    constexpr int kHeads = 2, kQ = 3, kKeys = 5, kDim = 4, kValue = 2;
    std::vector<float> q(24 * 2), k(20 * 2), v(10 * 2), out(12 * 2);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(std::sin(i * 1.7));
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(std::cos(i * 0.9));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
    std::vector<std::uint8_t> mask(kQ * kKeys, 1);
    mask[1] = mask[7] = 0;
    for (int j = 0; j < kKeys; ++j) mask[static_cast<std::size_t>(2 * kKeys + j)] = 0;  // query 2 sees nothing
    std::vector<float> bias(kQ * kKeys);
    for (std::size_t i = 0; i < bias.size(); ++i)
        bias[i] = i % 4 == 0 ? -std::numeric_limits<float>::infinity() : 0.1f * static_cast<float>(i);
    std::vector<std::int64_t> lengths{5, 2};

    for (const auto kind : {MaskKind::kNone, MaskKind::kCausal, MaskKind::kBoolean, MaskKind::kAdditive}) {
        Kernel kernel = verified(testing::kAttention);
        kernel.attention->mask_kind = kind;
        const bool nan = kind == MaskKind::kBoolean;
        if (nan) kernel.attention->fully_masked = FullyMasked::kNan;
        const bool has_mask = kind == MaskKind::kBoolean || kind == MaskKind::kAdditive;
        if (!has_mask) kernel.attention->mask.reset();
        kernel.buffers[4].read = has_mask;
        if (kind == MaskKind::kAdditive) kernel.buffers[4].dtype = DType::kF32;
        ASSERT_TRUE(verify(kernel));
        void* mask_memory = kind == MaskKind::kAdditive ? static_cast<void*>(bias.data()) : mask.data();
        run(kernel, {q.data(), k.data(), v.data(), out.data(), mask_memory, lengths.data()},
            {2, kHeads, 1, kQ, kKeys, kDim, kValue});
        for (int b = 0; b < 2; ++b) {
            for (int h = 0; h < kHeads; ++h) {
                for (int i = 0; i < kQ; ++i) {
                    double total = 0;
                    double expected[kValue] = {};
                    for (int j = 0; j < kKeys && j < lengths[static_cast<std::size_t>(b)]; ++j) {
                        const auto cell = static_cast<std::size_t>(i * kKeys + j);
                        if (kind == MaskKind::kCausal && j > i) continue;
                        if (kind == MaskKind::kBoolean && !mask[cell]) continue;
                        double score = 0;
                        for (int d = 0; d < kDim; ++d) {
                            score += static_cast<double>(q[static_cast<std::size_t>(b * 24 + h * 12 + i * 4 + d)]) *
                                     k[static_cast<std::size_t>(b * 20 + j * 4 + d)];
                        }
                        score *= 0.5;
                        if (kind == MaskKind::kAdditive) score += bias[cell];
                        total += std::exp(score);
                        for (int d = 0; d < kValue; ++d) {
                            expected[d] += std::exp(score) * v[static_cast<std::size_t>(b * 10 + j * 2 + d)];
                        }
                    }
                    for (int d = 0; d < kValue; ++d) {
                        const double found = out[static_cast<std::size_t>(b * 12 + h * 6 + i * 2 + d)];
                        if (total == 0 && nan) {
                            EXPECT_TRUE(std::isnan(found));
                        } else {
                            EXPECT_NEAR(found, total == 0 ? 0 : expected[d] / total, 1e-5);
                        }
                    }
                }
            }
        }
    }
}

TEST(Evaluate, ExternKernelsComeFromATable) {
    const Kernel kernel = verified("kernel e(%0: in i64, %1: out i64) params 1 extern reverse");
    const ExternTable table{{"reverse", [](const Kernel& k, EvalArgs& args) {
                                 EXPECT_EQ(k.extern_name, "reverse");
                                 const auto* in = static_cast<const std::int64_t*>(args.buffers[0]);
                                 auto* out = static_cast<std::int64_t*>(args.buffers[1]);
                                 for (std::int64_t i = 0; i < args.params[0]; ++i) out[args.params[0] - 1 - i] = in[i];
                             }}};
    std::vector<std::int64_t> in{1, 2, 3}, out(3);
    run(kernel, {in.data(), out.data()}, {3}, &table);
    EXPECT_EQ(out, (std::vector<std::int64_t>{3, 2, 1}));
}

}  // namespace
}  // namespace flexor::loopir
