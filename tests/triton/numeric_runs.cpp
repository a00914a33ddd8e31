#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "loopir/loopir.h"
#include "loopir/scalar_value.h"
#include "random_kernel.h"
#include "support/check.h"
#include "triton/cases.h"

namespace flexor::tests {

using loopir::Body;
using loopir::ScalarClass;

namespace {

constexpr DType kComputing[] = {DType::kU8, DType::kI8, DType::kI32, DType::kI64, DType::kF32, DType::kF64};
constexpr DType kAll[] = {DType::kBool, DType::kU8,   DType::kI8,  DType::kI32, DType::kI64,
                          DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

std::vector<double> special_values(DType dtype) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (is_floating(dtype))
        return {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.75, 7.0, 1e-3, 130.5, -2e9, 3e9, 6e4, kInf, -kInf, std::nan("")};
    if (dtype == DType::kBool) return {0, 1};
    if (dtype == DType::kU8) return {0, 1, 2, 7, 128, 254, 255};
    if (dtype == DType::kI8) return {0, 1, -1, 2, -3, 7, 127, -128};
    if (dtype == DType::kI32) return {0, 1, -1, 2, -3, 7, 1000003, 2147483647.0, -2147483648.0};
    return {0, 1, -1, 2, -3, 7, 1e15, -4e18, -0x1p63};
}

std::vector<std::uint8_t> zeros(DType dtype, std::int64_t count) {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * dtype_size(dtype));
}

void put(std::vector<std::uint8_t>& bytes, DType dtype, std::int64_t at, double value) {
    loopir::store_scalar(bytes.data(), dtype, at, loopir::scalar_from_double(dtype, value));
}

struct Operation {
    ScalarOp op;
    DType result;
};

// Operators of the same operands, each with a buffer of its own; operands[i] holds the i-th operand of each place.
KernelRun map_run(const std::string& name, const std::vector<Operation>& operations, const std::vector<DType>& dtypes,
                  const std::vector<std::vector<double>>& operands) {
    KernelRun run;
    run.name = run.kernel.name = name;
    run.small_tiles = false;
    const auto count = static_cast<std::int64_t>(operands[0].size());
    run.params = {count};
    run.kernel.param_count = 1;
    Body& body = run.kernel.body;
    body.extents = {IntRef::slot(0)};
    body.parallel = 1;
    BodyBuilder b(body);
    std::vector<NodeId> nodes;
    const auto buffer = [&](DType dtype, bool read) {
        run.kernel.buffers.push_back({"", dtype, read, !read});
        run.memory.push_back(zeros(dtype, count));
        Access access;
        access.buffer = static_cast<std::uint32_t>(run.kernel.buffers.size() - 1);
        access.strides = {IntRef::constant(1)};
        return access;
    };
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Access access = buffer(dtypes[i], true);
        for (std::int64_t at = 0; at < count; ++at)
            put(run.memory[i], dtypes[i], at, operands[i][static_cast<std::size_t>(at)]);
        nodes.push_back(b.load(dtypes[i], access));
    }
    for (const Operation& operation : operations) {
        NodeId value = 0;
        if (operation.op == ScalarOp::kCast)
            value = b.cast(nodes[0], operation.result);
        else if (operation.op == ScalarOp::kSelect)
            value = b.select(nodes[0], nodes[1], nodes[2]);
        else if (operation.op == ScalarOp::kFma)
            value = b.fma(nodes[0], nodes[1], nodes[2]);
        else
            value = nodes.size() == 1 ? b.unary(operation.op, nodes[0]) : b.binary(operation.op, nodes[0], nodes[1]);
        b.store(value, buffer(operation.result, false), false);
    }
    return run;
}

bool applies(ScalarOp op, DType dtype) {
    const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
    const bool shift = op == ScalarOp::kShl || op == ScalarOp::kShr;
    switch (loopir::scalar_class(op)) {
        case ScalarClass::kLeaf:
        case ScalarClass::kCast: return false;
        case ScalarClass::kArith: return !half && dtype != DType::kBool;
        case ScalarClass::kFloat: return dtype == DType::kF32 || dtype == DType::kF64;
        case ScalarClass::kCompare: return !half;
        case ScalarClass::kBits: return is_integer(dtype) || (dtype == DType::kBool && !shift);
        case ScalarClass::kSelect: return true;
    }
    return false;
}

void add_operators(std::vector<KernelRun>& runs) {
    constexpr ScalarOp kOps[] = {
#define X(enumerator, text, arity, klass) ScalarOp::enumerator,
#include "loopir/scalar_ops.def"
#undef X
    };
    for (const DType dtype : kAll) {
        const std::vector<double> values = special_values(dtype);
        // Operators that fault stand alone, for the flag is one; a shift's second operand is a count.
        std::map<std::string, std::vector<ScalarOp>> groups;
        for (const ScalarOp op : kOps) {
            if (!applies(op, dtype)) continue;
            const bool divides = op == ScalarOp::kFloorDiv || op == ScalarOp::kTruncDiv || op == ScalarOp::kFloorMod ||
                                 op == ScalarOp::kTruncMod;
            const bool shift = op == ScalarOp::kShl || op == ScalarOp::kShr;
            const bool alone = op == ScalarOp::kSelect || (divides && is_integer(dtype));
            groups[alone   ? loopir::scalar_name(op)
                   : shift ? "shifts"
                           : "of_" + std::to_string(loopir::scalar_arity(op))]
                .push_back(op);
        }
        for (const auto& [group, ops] : groups) {
            const int arity = loopir::scalar_arity(ops[0]);
            const bool select = ops[0] == ScalarOp::kSelect, shift = group == "shifts";
            std::vector<std::vector<double>> operands(static_cast<std::size_t>(arity));
            for (std::size_t i = 0; i < values.size(); ++i) {
                for (std::size_t j = 0; j < (arity > 1 ? values.size() : 1); ++j) {
                    if (select) {
                        operands[0].push_back(static_cast<double>(i % 2));
                        operands[1].push_back(values[i]);
                        operands[2].push_back(values[j]);
                        continue;
                    }
                    operands[0].push_back(values[i]);
                    if (arity > 1)
                        operands[1].push_back(shift ? static_cast<double>(j % (dtype_size(dtype) * 8)) : values[j]);
                    if (arity > 2) operands[2].push_back(values[(i + j) % values.size()]);
                }
            }
            std::vector<DType> dtypes(static_cast<std::size_t>(arity), dtype);
            if (select) dtypes[0] = DType::kBool;
            std::vector<Operation> operations;
            for (const ScalarOp op : ops)
                operations.push_back({op, loopir::scalar_class(op) == ScalarClass::kCompare ? DType::kBool : dtype});
            runs.push_back(map_run("op_" + group + "_" + std::string(dtype_name(dtype)), operations, dtypes, operands));
        }
    }
    for (const DType from : kAll) {
        std::vector<Operation> casts;
        for (const DType to : kAll) {
            if (from != to) casts.push_back({ScalarOp::kCast, to});
        }
        runs.push_back(map_run("cast_" + std::string(dtype_name(from)), casts, {from}, {special_values(from)}));
    }
}

// All that a dtype is reduced by, in one kernel.
void add_reductions(std::vector<KernelRun>& runs) {
    constexpr Combine kArithmetic[] = {Combine::kSum, Combine::kProd,   Combine::kMax,
                                       Combine::kMin, Combine::kArgMax, Combine::kArgMin};
    constexpr Combine kLogical[] = {Combine::kAny, Combine::kAll};
    for (const DType dtype : kAll) {
        const bool logical = dtype == DType::kBool;
        if (!logical && std::find(std::begin(kComputing), std::end(kComputing), dtype) == std::end(kComputing))
            continue;
        for (const std::int64_t length : {0, 1, 17}) {
            KernelRun run;
            run.name = run.kernel.name = "reduce_" + std::string(dtype_name(dtype)) + "_" + std::to_string(length);
            run.small_tiles = length == 17;
            constexpr std::int64_t kRows = 5;
            run.params = {kRows, length};
            run.kernel.param_count = 2;
            run.kernel.buffers = {{"", dtype, true, false}};
            run.memory = {zeros(dtype, kRows * length)};
            for (std::int64_t i = 0; i < kRows * length; ++i) {
                const std::int64_t row = i / length, column = i % length;
                double value = static_cast<double>((i * 7 + row) % 5) - (dtype == DType::kU8 ? 0 : 2);
                if (logical) value = row == 0 ? 0 : row == 1 ? 1 : column == 3;
                const bool nan = is_floating(dtype) && (row == 1 ? column == 0 : row == 2 ? column % 9 == 8 : false);
                put(run.memory[0], dtype, i, nan ? std::nan("") : value);
            }
            Body& body = run.kernel.body;
            body.extents = {IntRef::slot(0), IntRef::slot(1)};
            body.parallel = 1;
            BodyBuilder b(body);
            const NodeId value = b.load(dtype, {0, {}, {IntRef::slot(1), IntRef::constant(1)}, {}, loopir::kNoNode});
            const std::span<const Combine> combines =
                logical ? std::span<const Combine>(kLogical) : std::span<const Combine>(kArithmetic);
            for (const Combine combine : combines) {
                const bool arg = combine == Combine::kArgMax || combine == Combine::kArgMin;
                const DType result = arg ? DType::kI64 : dtype;
                const std::uint32_t stage = b.reduce(combine, value);
                const auto buffer = static_cast<std::uint32_t>(run.kernel.buffers.size());
                run.kernel.buffers.push_back({"", result, false, true});
                run.memory.push_back(zeros(result, kRows));
                b.store(b.row_value(result, stage),
                        {buffer, {}, {IntRef::constant(1), IntRef::constant(0)}, {}, loopir::kNoNode}, true);
            }
            runs.push_back(std::move(run));
        }
    }
}

// Kernels in text form whose slots 0 and 1 are rows and columns; every buffer has `elements(rows, columns)` elements.
struct TextKernel {
    const char* name;
    const char* text;
    std::vector<std::int64_t> more = {};  // further slots
};

const TextKernel kTextKernels[] = {
    {"add_relu_sum", R"(
kernel add_relu_sum(%0: in f32, %1: in f32, %2: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  v1 = load %1 [0, 1] : f32
  v2 = add v0, v1 : f32
  v3 = const 0.0 : f32
  v4 = max v2, v3 : f32
  s0 = reduce sum v4
  v5 = row_value s0 : f32
  s1 = store per_row %2 [1, 0] v5
)"},
    {"softmax", R"(
kernel softmax(%0: in bf16, %1: out bf16) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : bf16
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
)"},
    {"layer_norm_in_place", R"(
kernel layer_norm(%0: inout f32, %1: in f32, %2: out f32) params 2
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
  s2 = store %0 [p1, 1] v14
  s3 = store per_row %2 [1, 0] v4
)"},
    {"column_sum", R"(
kernel column_sum(%0: in f32, %1: out f32) params 2
row parallel [p1] row [p0]
  v0 = load %0 [1, p1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [1, 0] v1
)"},
    {"full_max", R"(
kernel full_max(%0: in f32, %1: out f32) params 2
row parallel [] row [p0, p1]
  v0 = load %0 [p1, 1] : f32
  s0 = reduce max v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [0, 0] v1
)"},
    {"argmax_of_two_dims", R"(
kernel argmax(%0: in f32, %1: out i64) params 2
row parallel [3] row [p0, p1]
  v0 = load %0 [p1, 1, 3] : f32
  s0 = reduce argmax v0
  v1 = row_value s0 : i64
  s1 = store per_row %1 [1, 0, 0] v1
)"},
    {"transposed_add", R"(
kernel transposed(%0: in f16, %1: in f16, %2: out f16) params 2
row parallel [p0, p1] row []
  v0 = load %0 [1, p0] : f16
  v1 = cast v0 : f32
  v2 = load %1 [p1, 1] : f16
  v3 = cast v2 : f32
  v4 = add v1, v3 : f32
  v5 = cast v4 : f16
  s0 = store %2 [p1, 1] v5
)"},
    {"strided_offset",
     R"(
kernel strided(%0: in i32, %1: inout i32) params 4
row parallel [p0, p1] row []
  v0 = load %0 + p2 [p3, 3] : i32
  v1 = load %1 + 1 [p3, 2] : i32
  v2 = mul v0, v1 : i32
  s0 = store %1 + 1 [p3, 2] v2
)",
     {5, 101}},
    {"gather_rows", R"(
kernel gather(%0: in f64, %1: in i64, %2: in bool, %3: out f64) params 2
row parallel [p0] row [p1]
  v0 = load %1 [1, 0] : i64
  v1 = load %2 [1, 0] : bool
  v2 = load %0 [0, 1] gather v0 * p1 of p0 wrap mask v1 : f64
  s0 = store %3 [p1, 1] v2
)"},
    {"scatter_columns", R"(
kernel scatter(%0: in f32, %1: in i32, %2: inout f32) params 2
row parallel [p0] row [p1]
  v0 = load %1 [0, 1] : i32
  v1 = load %0 [p1, 1] : f32
  v2 = load %2 [p1, 1] : f32
  v3 = add v1, v2 : f32
  s0 = store %2 [p1, 1] v3
)"},
    {"concat", R"(
kernel concat(%0: in f32, %1: in f32, %2: out f32) params 2
row parallel [p0] row [p1]
  v0 = index d1 : i64
  v1 = const 5 : i64
  v2 = lt v0, v1 : bool
  v3 = not v2 : bool
  v4 = load %0 [p1, 1] mask v2 : f32
  v5 = load %1 + -5 [p1, 1] mask v3 : f32
  v6 = select v2, v4, v5 : f32
  s0 = store %2 [p1, 1] v6
)"},
    {"linear_relu", R"(
kernel linear(%0 a: in f16, %1 b: in f16, %2 bias: in f32, %3: out f16) params 2
contraction batch 0 m p0 n p1 k 40 accumulate f32
  a %0 : f16 [] row 40 col 1
  b %1 : f16 [] row 1 col 40
  epilogue parallel [p0, p1] row []
    v0 = accumulator : f32
    v1 = load %2 [0, 1] : f32
    v2 = add v0, v1 : f32
    v3 = const 0.0 : f32
    v4 = max v2, v3 : f32
    v5 = cast v4 : f16
    s0 = store %3 [p1, 1] v5
)"},
    {"batched_matmul_in_place",
     R"(
kernel matmul(%0 a: in f32, %1 b: in f32, %2: inout f32) params 3
contraction batch 1 m p0 n p1 k 17 accumulate f32
  a %0 : f32 + 1 [1] row 17 col 1
  b %1 : f32 [0] row p1 col 1
  epilogue parallel [2, p0, p1] row []
    v0 = accumulator : f32
    v1 = load %2 [1, p2, 2] : f32
    v2 = add v0, v1 : f32
    s0 = store %2 [1, p2, 2] v2
)",
     {100}},
    {"matmul_of_integers", R"(
kernel matmul(%0 a: in i64, %1 b: in i64, %2: out i64) params 2
contraction batch 0 m p0 n p1 k 5 accumulate i64
  a %0 : i64 [] row 5 col 1
  b %1 : i64 [] row p1 col 1
  epilogue parallel [p0, p1] row []
    v0 = accumulator : i64
    s0 = store %2 [p1, 1] v0
)"},
    {"matmul_of_nothing", R"(
kernel matmul(%0 a: in f32, %1 b: in f32, %2: out f32) params 2
contraction batch 0 m p0 n p1 k 0 accumulate f32
  a %0 : f32 [] row 0 col 1
  b %1 : f32 [] row p1 col 1
  epilogue parallel [p0, p1] row []
    v0 = accumulator : f32
    s0 = store %2 [p1, 1] v0
)"},
    {"norm_matmul", R"(
kernel norm_matmul(%0 a: in f16, %1 b: in f16, %2: in f16, %3: out f16) params 2
contraction batch 1 m p0 n p1 k 40 accumulate f32
  a %0 : f16 [0] row 40 col 1
  b %1 : f16 [0] row 1 col 40
  prologue parallel [2, p0] row [40]
    v0 = load %0 [1, 40, 1] : f16
    v1 = cast v0 : f32
    s0 = reduce sum v1
    v2 = row_value s0 : f32
    v3 = const 0.025 : f32
    v4 = mul v2, v3 : f32
    v5 = sub v1, v4 : f32
    v6 = mul v5, v5 : f32
    s1 = reduce sum v6
    v7 = row_value s1 : f32
    v8 = const 1.0 : f32
    v9 = add v7, v8 : f32
    v10 = rsqrt v9 : f32
    v11 = mul v5, v10 : f32
    v12 = load %2 [0, 0, 1] : f16
    v13 = cast v12 : f32
    v14 = add v11, v13 : f32
    v15 = cast v14 : f16
    s2 = store %0 [0, 0, 0] v15
  end
  epilogue parallel [2, p0, p1] row []
    v0 = accumulator : f32
    v1 = cast v0 : f16
    s0 = store %3 [33, 66, 1] v1
)"},
    {"gelu_matmul_of_doubles", R"(
kernel gelu_matmul(%0 a: in f64, %1 b: in f64, %2: out f64) params 2
contraction batch 0 m p0 n p1 k 9 accumulate f64
  a %0 : f64 [] row 9 col 1
  b %1 : f64 [] row p1 col 1
  prologue parallel [p0] row [9]
    v0 = load %0 [9, 1] : f64
    v1 = const 0.0 : f64
    v2 = max v0, v1 : f64
    s0 = store %0 [0, 0] v2
  end
  epilogue parallel [p0, p1] row []
    v0 = accumulator : f64
    s0 = store %2 [p1, 1] v0
)"},
    {"attention", R"(
kernel attend(%0 q: in f32, %1 k: in f32, %2 v: in f32, %3: out f32) params 2
attention f32 batch 2 heads 2 kv_heads 1 q_len p0 kv_len p1 head_dim 8 value_dim 5 scale default
  q %0 [32, 8, 64, 1]
  k %1 [16, 8, 32, 1]
  v %2 [10, 5, 20, 1]
  out %3 [20, 5, 40, 1]
  mask none
)"},
    {"attention_causal", R"(
kernel attend(%0 q: in f16, %1 k: in f16, %2 v: in f16, %3: out f16) params 2
attention f16 batch 2 heads 2 kv_heads 1 q_len p0 kv_len p1 head_dim 8 value_dim 16 scale v0
  q %0 [32, 8, 64, 1]
  k %1 [16, 8, 32, 1]
  v %2 [32, 16, 64, 1]
  out %3 + 2 [64, 1, 128, 4]
  mask causal
  v0 = const 0.5 : f32
)"},
    {"attention_boolean", R"(
kernel attend(%0 q: in f64, %1 k: in f64, %2 v: in f64, %3: out f64, %4: in bool, %5: in i64) params 2
attention f64 batch 2 heads 2 kv_heads 2 q_len p0 kv_len p1 head_dim 8 value_dim 5 scale v0
  q %0 [32, 8, 64, 1]
  k %1 [32, 8, 64, 1]
  v %2 [20, 5, 40, 1]
  out %3 [20, 5, 40, 1]
  mask boolean %4 [0, 0, p1, 1]
  lengths %5 [1]
  v0 = const 0.3 : f64
)"},
    {"attention_additive",
     R"(
kernel attend(%0 q: in bf16, %1 k: in bf16, %2 v: in bf16, %3: out bf16, %4: in bf16, %5: in i64) params 3
attention bf16 batch 2 heads 2 kv_heads 1 q_len p0 kv_len p1 head_dim 16 value_dim 8 scale v0
  q %0 [64, 16, 128, 1]
  k %1 [16, 0, 32, 1]
  v %2 [8, 0, 16, 1]
  out %3 [32, 8, 64, 1]
  mask additive %4 [0, 1, p1, 1]
  lengths %5 + 1 [1]
  fully_masked nan
  v0 = param p2 : f32
)",
     {0x3FD0000000000000}},
    {"gelus", R"(
kernel gelus(%0: in f32, %1: out f32, %2: out bf16, %3: out f16) params 2
row parallel [p0, p1] row []
  v0 = load %0 [p1, 1] : f32
  v1 = const 2.5 : f32
  v2 = mul v0, v1 : f32
  v3 = erf v2 : f32
  v4 = const 1.0 : f32
  v5 = add v4, v3 : f32
  v6 = mul v0, v5 : f32
  s0 = store %1 [p1, 1] v6
  v7 = tanh v2 : f32
  v8 = add v7, v4 : f32
  v9 = sigmoid v0 : f32
  v10 = mul v9, v8 : f32
  v11 = cast v10 : bf16
  s1 = store %2 [p1, 1] v11
  v12 = exp v0 : f32
  v13 = const 3.0 : f32
  v14 = add v12, v13 : f32
  v15 = div v0, v14 : f32
  v16 = cast v15 : f16
  s2 = store %3 [p1, 1] v16
)"},
    {"mean_of_rows_and_count", R"(
kernel mean(%0: in i64, %1: in bool, %2: out f32, %3: out i64) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : i64
  v1 = load %1 [p1, 1] : bool
  v2 = cast v1 : i64
  s0 = reduce sum v2
  v3 = const 0 : i64
  v4 = select v1, v0, v3 : i64
  s1 = reduce sum v4
  v5 = row_value s0 : i64
  v6 = row_value s1 : i64
  v7 = floor_div v6, v5 : i64
  v8 = cast v7 : f32
  s2 = store per_row %2 [1, 0] v8
  s3 = store per_row %3 [1, 0] v5
)"},
};

KernelRun parsed_run(const TextKernel& source, std::int64_t rows, std::int64_t columns) {
    KernelRun run;
    run.name = std::string(source.name) + "_" + std::to_string(rows) + "x" + std::to_string(columns);
    Expected<Kernel> kernel = loopir::parse(source.text);
    FLEXOR_CHECK(kernel.has_value());
    run.kernel = *std::move(kernel);
    FLEXOR_CHECK(loopir::verify(run.kernel).has_value());
    run.params = {rows, columns};
    // Where there are several of the small tiles along each axis, and once with a NaN.
    run.small_tiles = rows == 33 || columns == 33 || (rows == 3 && columns == 16);
    run.params.insert(run.params.end(), source.more.begin(), source.more.end());
    return run;
}

KernelRun text_run(const TextKernel& source, std::int64_t rows, std::int64_t columns, bool nan) {
    KernelRun run = parsed_run(source, rows, columns);
    const std::int64_t elements = 3 * rows * columns + 128 * rows + 64 * columns + 64;
    std::mt19937 random(static_cast<unsigned>(rows * 100 + columns));
    for (const loopir::BufferParam& buffer : run.kernel.buffers) {
        run.memory.push_back(zeros(buffer.dtype, elements));
        if (!buffer.read) continue;
        for (std::int64_t i = 0; i < elements; ++i) {
            double value = static_cast<double>(random() % 4001) / 1000 - 2;
            if (!is_floating(buffer.dtype)) value = static_cast<double>(random() % 7) - 3;
            if (buffer.dtype == DType::kBool) value = random() % 2;
            if (nan && is_floating(buffer.dtype) && random() % 13 == 0) value = std::nan("");
            put(run.memory.back(), buffer.dtype, i, value);
        }
    }
    return run;
}

void add_text_kernels(std::vector<KernelRun>& runs) {
    constexpr std::int64_t kSizes[] = {0, 1, 2, 15, 16, 17, 33};
    for (const TextKernel& source : kTextKernels) {
        for (const std::int64_t columns : kSizes) runs.push_back(text_run(source, 3, columns, columns % 2 == 0));
        for (const std::int64_t rows : {0, 1, 17, 33}) runs.push_back(text_run(source, rows, 17, rows == 17));
    }
}

// A NaN in each lane of a row, one lane a row.
void add_lanes(std::vector<KernelRun>& runs) {
    for (const char* name : {"add_relu_sum", "softmax", "full_max", "argmax_of_two_dims"}) {
        for (const TextKernel& source : kTextKernels) {
            if (std::string_view(source.name) != name) continue;
            KernelRun run = text_run(source, 17, 17, false);
            run.name += "_nan_in_each_lane";
            const DType dtype = run.kernel.buffers[0].dtype;
            for (std::int64_t lane = 0; lane < 17; ++lane) put(run.memory[0], dtype, lane * 17 + lane, std::nan(""));
            runs.push_back(std::move(run));
        }
    }
}

void add_random(std::vector<KernelRun>& runs) {
    for (unsigned seed = 0; seed < 24; ++seed) {
        RandomKernel random(seed);
        random.make();
        KernelRun run;
        run.name = "random_" + std::to_string(seed);
        run.kernel = random.kernel;
        run.params = random.params;
        run.memory = random.memory;
        run.small_tiles = seed % 3 == 0;
        runs.push_back(std::move(run));
    }
}

}  // namespace

KernelRun text_kernel(const std::string& name, std::int64_t rows, std::int64_t columns) {
    for (const TextKernel& source : kTextKernels) {
        if (source.name == name) return parsed_run(source, rows, columns);
    }
    FLEXOR_UNREACHABLE();
}

std::vector<KernelRun> numeric_runs() {
    std::vector<KernelRun> out;
    add_operators(out);
    add_reductions(out);
    add_text_kernels(out);
    add_lanes(out);
    add_random(out);
    for (const KernelRun& run : out) FLEXOR_CHECK(loopir::verify(run.kernel).has_value());
    return out;
}

}  // namespace flexor::tests
