#pragma once
// Kernels in text form, and helpers, that several tests share.
#include <gtest/gtest.h>

#include <string>

#include "loopir/loopir.h"

namespace flexor::loopir::testing {

inline Kernel kernel_from(const std::string& text) {
    auto kernel = parse(text);
    if (!kernel) {
        ADD_FAILURE() << kernel.error().to_string() << "\n" << text;
        return {};
    }
    return std::move(kernel).value();
}

inline Kernel verified(const std::string& text) {
    Kernel kernel = kernel_from(text);
    if (const auto status = verify(kernel); !status) ADD_FAILURE() << status.error().to_string() << "\n" << text;
    return kernel;
}

inline constexpr const char* kAddReluSum = R"(
kernel main:1:add_relu_sum(%0 x: in f32, %1 w: in f32, %2: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  v1 = load %1 [0, 1] : f32
  v2 = add v0, v1 : f32
  v3 = const 0.0 : f32
  v4 = max v2, v3 : f32
  s0 = reduce sum v4
  v5 = row_value s0 : f32
  s1 = store per_row %2 [1, 0] v5
)";

// bf16 in and out, computed in f32.
inline constexpr const char* kSoftmax = R"(
kernel softmax(%0: in bf16, %1: out bf16) params 3
row parallel [p0] row [p1]
  v0 = load %0 + p2 [p1, 1] : bf16
  v1 = cast v0 : f32
  s0 = reduce max v1
  v2 = row_value s0 : f32
  v3 = sub v1, v2 : f32
  v4 = exp v3 : f32
  s1 = reduce sum v4
  v5 = row_value s1 : f32
  v6 = div v4, v5 : f32
  v7 = cast v6 : bf16
  s2 = store %1 [p1, 1] v7
)";

// out[i, j] = mask[i] ? table[index[i], j] : 0, with negative indices counted from the end.
inline constexpr const char* kGather = R"(
kernel "gather rows"(%0 table: in f64, %1 index: in i64, %2 mask: in bool, %3 out: out f64) params 3
row parallel [p0] row [p1]
  v0 = load %1 [1, 0] : i64
  v1 = load %2 [1, 0] : bool
  v2 = load %0 [0, 1] gather v0 * p1 of p2 wrap mask v1 : f64
  s0 = store %3 [p1, 1] v2
)";

// relu(a b^T + bias), a in bf16, batch of b broadcast.
inline constexpr const char* kLinear = R"(
kernel linear(%0 a: in bf16, %1 b: in bf16, %2 bias: in f32, %3: out f32) params 5
contraction batch 1 m p0 n p1 k p2 accumulate f32
  a %0 : bf16 [p3] row p2 col 1
  b %1 : bf16 [0] row 1 col p2
  epilogue parallel [p4, p0, p1] row []
    v0 = accumulator : f32
    v1 = load %2 [0, 0, 1] : f32
    v2 = add v0, v1 : f32
    v3 = const 0.0 : f32
    v4 = max v2, v3 : f32
    s0 = store %3 + 0 [6, p1, 1] v4
)";

// softmax(2 a) b: scores never reach memory.
inline constexpr const char* kPrologue = R"(
kernel scores(%0 a: in f32, %1 b: in f32, %2: out f32) params 3
contraction batch 0 m p0 n p1 k p2 accumulate f32
  a %0 : f32 [] row p2 col 1
  b %1 : f32 [] row p1 col 1
  prologue parallel [p0] row [p2]
    v0 = load %0 [p2, 1] : f32
    v1 = const 2.0 : f32
    v2 = mul v0, v1 : f32
    s0 = reduce max v2
    v3 = row_value s0 : f32
    v4 = sub v2, v3 : f32
    v5 = exp v4 : f32
    s1 = reduce sum v5
    v6 = row_value s1 : f32
    v7 = div v5, v6 : f32
    s2 = store %0 [0, 0] v7
  end
  epilogue parallel [p0, p1] row []
    v0 = accumulator : f32
    s0 = store %2 [p1, 1] v0
)";

inline constexpr const char* kAttention = R"(
kernel attend(%0: in f32, %1: in f32, %2: in f32, %3: out f32, %4: in bool, %5: in i64) params 7
attention f32 batch p0 heads p1 kv_heads p2 q_len p3 kv_len p4 head_dim p5 value_dim p6 scale v0
  q %0 [24, 12, 4, 1]
  k %1 [20, 20, 4, 1]
  v %2 [10, 10, 2, 1]
  out %3 [12, 6, 2, 1]
  mask boolean %4 [0, 0, 5, 1]
  lengths %5 [1]
  v0 = const 0.5 : f32
)";

}  // namespace flexor::loopir::testing
