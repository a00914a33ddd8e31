// References against values worked out by hand (or taken from torch where noted).
#include <limits>

#include "run_op.h"

namespace flexor::ops::test {
namespace {

using types::DimList;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Value f32(std::vector<std::int64_t> sizes, std::vector<double> data) {
    return as_value(tensor(DType::kF32, std::move(sizes), std::move(data)));
}
Value i64(std::vector<std::int64_t> sizes, std::vector<double> data) {
    return as_value(tensor(DType::kI64, std::move(sizes), std::move(data)));
}
void expect_values(const Tensor& found, const std::vector<double>& expected, double tolerance = 0) {
    const auto a = values(found);
    ASSERT_EQ(a.size(), expected.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(expected[i])) {
            EXPECT_TRUE(std::isnan(a[i])) << i << ": " << a[i];
        } else if (std::isinf(expected[i])) {
            EXPECT_EQ(a[i], expected[i]) << i;
        } else {
            EXPECT_NEAR(a[i], expected[i], tolerance) << i;
        }
    }
}
DiagnosticId refusal(std::string_view op, std::vector<Value> args, const Attrs& attrs = {},
                     Promotion promotion = Promotion::kTorch) {
    const auto outcome = run(*find_op(op), args, attrs, promotion);
    EXPECT_FALSE(outcome) << op;
    return outcome ? DiagnosticId::kInternalError : outcome.error().id();
}

TEST(Reference, Division) {
    const Value x = f32({6}, {7, -7, 7, -7, 0, 1});
    const Value y = f32({6}, {2, 2, -2, -2, 3, 0});
    expect_values(call("floor_divide", {x, y}), {3, -4, -4, 3, 0, kInf});
    expect_values(call("remainder", {x, y}), {1, 1, -1, -1, 0, kNan});
    expect_values(call("fmod", {x, y}), {1, -1, 1, -1, 0, kNan});
    const Value a = i64({4}, {7, -7, 7, -7});
    const Value b = i64({4}, {2, 2, -2, -2});
    expect_values(call("floor_divide", {a, b}), {3, -4, -4, 3});
    expect_values(call("remainder", {a, b}), {1, 1, -1, -1});
    expect_values(call("fmod", {a, b}), {1, -1, 1, -1});
    EXPECT_EQ(call("div", {a, b}).dtype(), DType::kF32);
    EXPECT_EQ(call("div", {a, b}, {}, Promotion::kNumpy).dtype(), DType::kF64);
    EXPECT_EQ(refusal("floor_divide", {a, i64({}, {0})}), DiagnosticId::kDivisionByZero);
    // The quotient is 1 - 2^-24 rounded up to 1: the floor must still be 0.
    expect_values(call("floor_divide", {f32({1}, {0.99999994}), f32({1}, {1})}), {0});
    expect_values(call("floor_divide", {f32({1}, {1}), f32({1}, {0.1})}), {9});
}

TEST(Reference, IntegersWrap) {
    const Value big = as_value(tensor(DType::kI8, {2}, {127, -128}));
    expect_values(call("add", {big, scalar(1, DType::kI64)}), {-128, -127});
    expect_values(call("neg", {big}), {-127, -128});
    expect_values(call("abs", {big}), {127, -128});
    expect_values(call("mul", {big, big}), {1, 0});
    expect_values(call("pow", {i64({3}, {2, -1, 0}), i64({3}, {-1, -3, 0})}), {0, -1, 1});
    expect_values(call("shift_left", {i64({3}, {1, 1, 1}), i64({3}, {3, 64, -1})}), {8, 0, 0});
    expect_values(call("shift_right", {i64({3}, {-8, -8, 8}), i64({3}, {1, 70, 70})}), {-4, -1, 0});
}

TEST(Reference, NanAndInfinity) {
    const Value x = f32({3}, {kNan, 1, 2});
    const Value y = f32({3}, {0, kNan, -1});
    expect_values(call("maximum", {x, y}), {kNan, kNan, 2});
    expect_values(call("fmax", {x, y}), {0, 1, 2});
    expect_values(call("relu", {x}), {kNan, 1, 2});
    expect_values(call("clamp", {x, scalar(1.5), {}}), {kNan, 1.5, 2});
    expect_values(call("sign", {x}), {kNan, 1, 1});
    expect_values(call("sign", {x}, {{"keep_nan", false}}), {0, 1, 1});
    expect_values(call("reduce_max", {x}), {kNan});
    expect_values(call("argmax", {f32({4}, {1, kNan, 3, kNan})}), {1});
    expect_values(call("argmin", {f32({4}, {2, 1, 3, 1})}), {1});
    expect_values(call("isfinite", {f32({3}, {1, kInf, kNan})}), {1, 0, 0});
    expect_values(call("softmax", {f32({2, 2}, {kInf, 0, -kInf, -kInf})}), {kNan, kNan, kNan, kNan});
    expect_values(call("softmax", {f32({2}, {-kInf, 0})}), {0, 1});
    expect_values(call("logsumexp", {f32({3}, {kInf, 0, 1})}), {kInf});
    expect_values(call("logsumexp", {f32({2}, {-kInf, -kInf})}), {-kInf});
    expect_values(call("logsumexp", {f32({2}, {1000, 1000})}), {1000.6931}, 1e-3);
}

TEST(Reference, Activations) {
    const Value x = f32({5}, {-4, -1, 0, 1, 4});
    expect_values(call("gelu", {x}), {-0.00012669, -0.15865526, 0, 0.84134475, 3.9998733}, 1e-6);
    expect_values(call("gelu", {x}, {{"approximate", "tanh"}}), {-0.00007023, -0.15880801, 0, 0.84119199, 3.9999297},
                  1e-6);
    expect_values(call("silu", {x}), {-0.07194484, -0.26894143, 0, 0.73105860, 3.9280553}, 1e-6);
    expect_values(call("softplus", {x}), {0.01814993, 0.31326166, 0.69314718, 1.3132616, 4.0181499}, 1e-6);
    expect_values(call("elu", {x}), {-0.98168439, -0.63212055, 0, 1, 4}, 1e-6);
    expect_values(call("hardswish", {x}), {0, -1.0 / 3, 0, 2.0 / 3, 4}, 1e-6);
    expect_values(call("hardtanh", {x}), {-1, -1, 0, 1, 1});
    expect_values(call("leaky_relu", {x}, {{"negative_slope", 0.5}}), {-2, -0.5, 0, 1, 4});
    EXPECT_EQ(refusal("gelu", {x}, {{"approximate", "sine"}}), DiagnosticId::kBadAttribute);
    EXPECT_EQ(refusal("gelu", {i64({1}, {1})}), DiagnosticId::kDTypeMismatch);
}

TEST(Reference, RoundsOnceAndTiesToEven) {
    expect_values(call("round", {f32({4}, {0.5, 1.5, 2.5, -0.5})}), {0, 2, 2, 0});
    expect_values(call("cast", {f32({4}, {1.9, -1.9, 300, 0})}, {{"dtype", DType::kI8}}), {1, -1, 44, 0});
    expect_values(call("cast", {f32({3}, {0.1, 0, kNan})}, {{"dtype", DType::kBool}}), {1, 0, 1});
    // 2049 lies between two f16 numbers, a tie: the even one is 2048.
    expect_values(call("cast", {f32({2}, {2049, 2051})}, {{"dtype", DType::kF16}}), {2048, 2052});
}

TEST(Reference, Reductions) {
    const Value x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    expect_values(call("reduce_sum", {x}), {21});
    expect_values(call("reduce_sum", {x}, {{"axes", DimList{0}}}), {5, 7, 9});
    expect_values(call("reduce_mean", {x}, {{"axes", DimList{-1}}, {"keepdim", true}}), {2, 5});
    expect_values(call("reduce_prod", {x}, {{"axes", DimList{1}}}), {6, 120});
    expect_values(call("var", {x}, {{"axes", DimList{1}}}), {1, 1}, 1e-6);
    expect_values(call("std", {x}, {{"axes", DimList{0}}, {"correction", 0}}), {1.5, 1.5, 1.5}, 1e-6);
    expect_values(call("argmax", {x}, {{"axes", DimList{1}}}), {2, 2});
    expect_values(call("reduce_any", {f32({2, 2}, {0, 0, 0, 3})}, {{"axes", DimList{1}}}), {0, 1});
    expect_values(call("reduce_all", {f32({2, 2}, {0, 1, 2, 3})}, {{"axes", DimList{1}}}), {0, 1});
    const Value none = f32({2, 0}, {});
    expect_values(call("reduce_sum", {none}), {0});
    expect_values(call("reduce_prod", {none}), {1});
    expect_values(call("reduce_mean", {none}, {{"axes", DimList{1}}}), {kNan, kNan});
    expect_values(call("reduce_max", {none}, {{"axes", DimList{1}}, {"allow_empty", true}}), {-kInf, -kInf});
    EXPECT_EQ(refusal("reduce_max", {none}, {{"axes", DimList{1}}}), DiagnosticId::kEmptyReduction);
    EXPECT_EQ(refusal("argmin", {none}), DiagnosticId::kEmptyReduction);
    EXPECT_EQ(sizes_of(call("reduce_max", {none}, {{"axes", DimList{0}}})), (std::vector<std::int64_t>{0}));
    EXPECT_EQ(refusal("reduce_sum", {x}, {{"axes", DimList{2}}}), DiagnosticId::kAxisOutOfRange);
    EXPECT_EQ(refusal("reduce_sum", {x}, {{"axes", DimList{0, -2}}}), DiagnosticId::kDuplicateAxis);
}

TEST(Reference, ReductionDTypes) {
    const Value bools = as_value(tensor(DType::kBool, {3}, {1, 0, 1}));
    const Value bytes = as_value(tensor(DType::kU8, {2}, {200, 100}));
    EXPECT_EQ(call("reduce_sum", {bools}).dtype(), DType::kI64);
    expect_values(call("reduce_sum", {bytes}), {300});
    EXPECT_EQ(call("reduce_any", {bytes}).dtype(), DType::kU8);
    EXPECT_EQ(call("reduce_any", {bytes}, {}, Promotion::kNumpy).dtype(), DType::kBool);
    EXPECT_EQ(refusal("reduce_mean", {bytes}), DiagnosticId::kDTypeMismatch);
    EXPECT_EQ(call("reduce_mean", {bytes}, {}, Promotion::kNumpy).dtype(), DType::kF64);
    EXPECT_EQ(call("reduce_mean", {as_value(tensor(DType::kF16, {2}, {1, 2}))}).dtype(), DType::kF16);
}

TEST(Reference, MatmulRanks) {
    const Value m = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const Value v = f32({3}, {1, 0, -1});
    expect_values(call("matmul", {m, v}), {-2, -2});
    expect_values(call("matmul", {v, v}), {2});
    EXPECT_EQ(call("matmul", {v, v}).rank(), 0);
    expect_values(call("matmul", {f32({2}, {1, 1}), m}), {5, 7, 9});
    const Value columns = as_value(call("transpose", {m}, {{"a", 0}, {"b", 1}}));
    expect_values(call("matmul", {m, columns}), {14, 32, 32, 77});
    expect_values(call("linear", {v, m, f32({2}, {10, 20})}), {8, 18});
    EXPECT_EQ(refusal("matmul", {m, m}), DiagnosticId::kShapeMismatch);
    EXPECT_EQ(refusal("matmul", {m, scalar(2)}), DiagnosticId::kValueKindMismatch);
    EXPECT_EQ(refusal("matmul", {m, as_value(tensor(DType::kF64, {3}, {1, 2, 3}))}), DiagnosticId::kDTypeMismatch);
    expect_values(call("addmm", {f32({2}, {1, 2}), f32({1, 1}, {3}), f32({1, 2}, {4, 5})}, {{"beta", 2.0}}), {14, 19});
}

TEST(Reference, LayerNorm) {
    // torch: layer_norm([[1, 2, 4]], (3,), weight [1, 2, 3], bias [0, 1, 2])
    expect_values(call("layer_norm", {f32({1, 3}, {1, 2, 4}), f32({3}, {1, 2, 3}), f32({3}, {0, 1, 2})}),
                  {-1.0690416, 0.46547925, 6.0089083}, 1e-5);
    expect_values(call("rms_norm", {f32({1, 2}, {3, 4}), {}}, {{"eps", 0.0}}), {0.8485281, 1.1313708}, 1e-6);
    EXPECT_EQ(refusal("layer_norm", {f32({1, 3}, {1, 2, 4}), f32({2}, {1, 2}), {}}), DiagnosticId::kShapeMismatch);
}

TEST(Reference, Attention) {
    // One query, two keys: scores 1 and 0 over sqrt(1).
    const Value q = f32({1, 1, 1, 1}, {1});
    const Value k = f32({1, 1, 2, 1}, {1, 0});
    const Value v = f32({1, 1, 2, 1}, {10, 20});
    const double p = 1 / (1 + std::exp(-1.0));
    expect_values(call("sdpa", {q, k, v, {}, {}}), {10 * p + 20 * (1 - p)}, 1e-5);
    expect_values(call("sdpa", {q, k, v, {}, {}}, {{"is_causal", true}}), {10}, 1e-6);
    expect_values(call("sdpa", {q, k, v, {}, i64({1}, {1})}), {10}, 1e-6);
    expect_values(call("sdpa", {q, k, v, {}, i64({1}, {0})}), {0});
    expect_values(call("sdpa", {q, k, v, {}, i64({1}, {0})}, {{"fully_masked", "nan"}}), {kNan});
    const Value nothing = f32({1, 1, 0, 1}, {});
    expect_values(call("sdpa", {q, nothing, nothing, {}, {}}, {{"fully_masked", "nan"}}), {kNan});
    expect_values(call("sdpa", {q, nothing, nothing, {}, {}}), {0});
    const Value no = as_value(tensor(DType::kBool, {1, 2}, {0, 0}));
    expect_values(call("sdpa", {q, k, v, no, {}}), {0});
    expect_values(call("sdpa", {q, k, v, f32({2}, {-kInf, 0}), {}}), {20}, 1e-6);
    EXPECT_EQ(refusal("sdpa", {q, k, v, no, {}}, {{"is_causal", true}}), DiagnosticId::kBadAttribute);
}

TEST(Reference, Indexing) {
    const Value table = f32({3, 2}, {0, 1, 10, 11, 20, 21});
    expect_values(call("embedding", {i64({2}, {2, 0}), table}), {20, 21, 0, 1});
    EXPECT_EQ(refusal("embedding", {i64({1}, {3}), table}), DiagnosticId::kElementIndexOutOfRange);
    EXPECT_EQ(refusal("embedding", {i64({1}, {-1}), table}), DiagnosticId::kElementIndexOutOfRange);
    expect_values(call("embedding", {i64({1}, {-1}), table}, {{"wrap", true}}), {20, 21});
    expect_values(call("gather", {table, i64({1, 2}, {2, 1})}), {20, 11});
    expect_values(call("index_select", {table, i64({3}, {1, 1, 0})}, {{"axis", 1}}), {1, 1, 0, 11, 11, 10, 21, 21, 20});
    expect_values(call("take", {table, i64({1, 2}, {2, 0})}), {20, 21, 0, 1});
    const Value ids = i64({2, 2}, {0, 2, 1, 1});
    expect_values(call("embedding_bag", {ids, table}), {10, 11, 10, 11});
    expect_values(call("embedding_bag", {ids, table}, {{"mode", "max"}}), {20, 21, 10, 11});
    expect_values(call("embedding_bag_offsets", {i64({3}, {0, 2, 1}), i64({3}, {0, 2, 2}), table}, {{"mode", "sum"}}),
                  {20, 22, 0, 0, 10, 11});
    EXPECT_EQ(refusal("embedding_bag_offsets", {i64({2}, {0, 1}), i64({1}, {1}), table}),
              DiagnosticId::kElementIndexOutOfRange);
    EXPECT_EQ(refusal("embedding_bag_offsets", {i64({1}, {0}), i64({1}, {2}), table}),
              DiagnosticId::kElementIndexOutOfRange);
    expect_values(call("tril", {f32({2, 2}, {1, 2, 3, 4})}), {1, 0, 3, 4});
    expect_values(call("triu", {f32({2, 2}, {1, 2, 3, 4})}, {{"diagonal", 1}}), {0, 2, 0, 0});
}

TEST(Reference, Movement) {
    const Value x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    expect_values(call("concat", {x, f32({1, 3}, {7, 8, 9})}), {1, 2, 3, 4, 5, 6, 7, 8, 9});
    expect_values(call("stack", {f32({2}, {1, 2}), f32({2}, {3, 4})}, {{"axis", -1}}), {1, 3, 2, 4});
    expect_values(call("pad", {f32({2}, {1, 2})}, {{"before", DimList{1}}, {"after", DimList{1}}, {"value", 9.0}}),
                  {9, 1, 2, 9});
    expect_values(call("pad", {f32({3}, {1, 2, 3})}, {{"before", DimList{-1}}, {"after", DimList{1}}}), {2, 3, 0});
    expect_values(call("flip", {x}, {{"axes", DimList{1}}}), {3, 2, 1, 6, 5, 4});
    expect_values(call("roll", {f32({3}, {1, 2, 3})}, {{"axes", DimList{0}}, {"shifts", DimList{1}}}), {3, 1, 2});
    expect_values(call("repeat", {f32({2}, {1, 2})}, {{"counts", DimList{2, 2}}}), {1, 2, 1, 2, 1, 2, 1, 2});
    expect_values(call("slice", {x}, {{"axis", 1}, {"start", -1}, {"stop", {}}, {"step", -2}}), {3, 1, 6, 4});
    expect_values(call("arange", {}, {{"start", 5}, {"stop", 0}, {"step", -2}}), {5, 3, 1});
    expect_values(call("eye", {}, {{"rows", 2}}), {1, 0, 0, 1});
    expect_values(call("full", {scalar(7, DType::kI64)}, {{"shape", DimList{2}}}), {7, 7});
    EXPECT_EQ(call("full", {scalar(7, DType::kI64)}, {{"shape", DimList{2}}}).dtype(), DType::kI64);
}

TEST(Reference, WritesGoToTheTarget) {
    const Value x = f32({2, 2}, {1, 2, 3, 4});
    const Tensor written = call("add_", {x, f32({2}, {10, 20})});
    EXPECT_EQ(written.data(), x.tensor.data());
    expect_values(x.tensor, {11, 22, 13, 24});
    const Value column = as_value(call("select", {x}, {{"axis", 1}, {"index", 0}}));
    call("fill_", {column, scalar(0)});
    expect_values(x.tensor, {0, 22, 0, 24});
    // Source and target share memory: the source is read first.
    const Value line = f32({4}, {1, 2, 3, 4});
    call("assign", {as_value(call("slice", {line}, {{"start", 1}})), as_value(call("slice", {line}, {{"stop", -1}}))});
    expect_values(line.tensor, {1, 1, 2, 3});
    EXPECT_EQ(refusal("div_", {i64({1}, {4}), scalar(2, DType::kI64)}), DiagnosticId::kCastNotAllowed);
    EXPECT_EQ(refusal("add_", {f32({1}, {1}), f32({2}, {1, 2})}), DiagnosticId::kShapeMismatch);
    const Value wide = as_value(call("expand", {f32({1}, {1})}, {{"shape", DimList{3}}}));
    EXPECT_EQ(refusal("add_", {wide, scalar(1)}), DiagnosticId::kOverlappingWrite);
    EXPECT_EQ(refusal("assign", {wide, scalar(1)}), DiagnosticId::kOverlappingWrite);
}

}  // namespace
}  // namespace flexor::ops::test
