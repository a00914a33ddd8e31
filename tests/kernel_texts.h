#pragma once
// Kernels in text form that several tests share; slots 0 and 1 are rows and columns.

namespace flexor::loopir::testing {

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

// In f32, of rows without an offset.
inline constexpr const char* kSoftmaxF32 = R"(
kernel softmax(%0: in f32, %1: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  s0 = reduce max v0
  v1 = row_value s0 : f32
  v2 = sub v0, v1 : f32
  v3 = exp v2 : f32
  s1 = reduce sum v3
  v4 = row_value s1 : f32
  v5 = div v3, v4 : f32
  s2 = store %1 [p1, 1] v5
)";

// softmax(gelu(layer_norm(%0) * %1 + %2) + %3) over rows, as one kernel.
inline constexpr const char* kChain = R"(
kernel chain(%0: in f32, %1: in f32, %2: in f32, %3: in f32, %4: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  v2 = param p1 : i64
  v3 = cast v2 : f32
  v4 = div v1, v3 : f32
  v5 = sub v0, v4 : f32
  v6 = mul v5, v5 : f32
  s1 = reduce sum v6
  v7 = row_value s1 : f32
  v8 = div v7, v3 : f32
  v9 = const 1e-05 : f32
  v10 = add v8, v9 : f32
  v11 = rsqrt v10 : f32
  v12 = mul v5, v11 : f32
  v13 = load %1 [0, 1] : f32
  v14 = mul v12, v13 : f32
  v15 = load %2 [0, 1] : f32
  v16 = add v14, v15 : f32
  v17 = const 0.7071067811865476 : f32
  v18 = mul v16, v17 : f32
  v19 = erf v18 : f32
  v20 = const 0.5 : f32
  v21 = mul v20, v16 : f32
  v22 = const 1.0 : f32
  v23 = add v19, v22 : f32
  v24 = mul v21, v23 : f32
  v25 = load %3 [p1, 1] : f32
  v26 = add v24, v25 : f32
  s2 = reduce max v26
  v27 = row_value s2 : f32
  v28 = sub v26, v27 : f32
  v29 = exp v28 : f32
  s3 = reduce sum v29
  v30 = row_value s3 : f32
  v31 = div v22, v30 : f32
  v32 = mul v29, v31 : f32
  s4 = store %4 [p1, 1] v32
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
