#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/cpu_llvm/kernel_compiler.h"
#include "loopir/loopir.h"
#include "runtime/kernels/gemm.h"
#include "types/half.h"
#include "unit/codegen/compiled.h"
#include "unit/loopir/kernels.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using loopir::Kernel;
using loopir::testing::verified;
using testing::compiled;
using Params = std::vector<std::int64_t>;

// f32 or bf16 elements, kept as the bytes the kernel sees.
struct Memory {
    DType dtype;
    std::vector<std::uint8_t> bytes;
    Memory(DType d, std::int64_t count, std::mt19937& random)
        : dtype(d), bytes(static_cast<size_t>(std::max<std::int64_t>(count, 1)) * dtype_size(d)) {
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < size(); ++i) {
            const float v = normal(random);
            if (d == DType::kF32)
                std::memcpy(bytes.data() + 4 * i, &v, 4);
            else if (d == DType::kBF16)
                reinterpret_cast<std::uint16_t*>(bytes.data())[i] = types::bf16_from_f32(v);
            else
                bytes[i] = 0;
        }
    }
    size_t size() const { return bytes.size() / dtype_size(dtype); }
    float value(size_t i) const {
        if (dtype == DType::kF32) return reinterpret_cast<const float*>(bytes.data())[i];
        return types::f32_from_bf16(reinterpret_cast<const std::uint16_t*>(bytes.data())[i]);
    }
};

void launch(const runtime::KernelRef& handle, std::vector<void*> buffers, const Params& params) {
    EXPECT_EQ(testing::launch(*handle, buffers.data(), params.data()), runtime::kNoFault);
}

void expect_agreement(const Kernel& kernel, const runtime::KernelRef& handle, std::vector<Memory> memory,
                      const Params& params, double tolerance) {
    if (!handle) return;
    std::vector<Memory> expected = memory;
    std::vector<void*> ours, theirs;
    for (Memory& m : memory) ours.push_back(m.bytes.data());
    for (Memory& m : expected) theirs.push_back(m.bytes.data());
    launch(handle, ours, params);
    loopir::EvalArgs args{theirs.data(), params.data()};
    loopir::evaluate(kernel, args);
    for (size_t b = 0; b < memory.size(); ++b) {
        if (memory[b].dtype != DType::kF32 && memory[b].dtype != DType::kBF16) continue;
        int wrong = 0;
        for (size_t i = 0; i < memory[b].size() && wrong < 3; ++i) {
            const double got = memory[b].value(i), want = expected[b].value(i);
            if (std::fabs(got - want) <= tolerance * (1 + std::fabs(want))) continue;
            ++wrong;
            ADD_FAILURE() << kernel.name << " buffer " << b << " element " << i << ": " << got << ", not " << want;
        }
    }
}

constexpr std::int64_t kLibrarySizes[] = {0, 1, 2, 15, 17, 50};

TEST(LibraryKernels, ContractionStoresSums) {
    Kernel kernel = verified(R"(
kernel plain(%0 a: in f32, %1 b: in f32, %2: out bf16) params 4
contraction batch 1 m p0 n p1 k p2 accumulate f32
  a %0 : f32 [p3] row p2 col 1
  b %1 : f32 [0] row 1 col p2
  epilogue parallel [3, p0, p1] row []
    v0 = accumulator : f32
    v1 = cast v0 : bf16
    s0 = store %2 [0, 1, p0] v1
)");
    kernel.body.stages[0].target.strides[0] = loopir::IntRef::constant(2500);
    auto handle = compiled(kernel);
    std::mt19937 random(1);
    for (std::int64_t m : kLibrarySizes)
        for (std::int64_t n : kLibrarySizes)
            for (std::int64_t k : {0, 1, 33}) {
                expect_agreement(kernel, handle,
                                 {Memory(DType::kF32, 3 * m * k, random), Memory(DType::kF32, n * k, random),
                                  Memory(DType::kBF16, 2 * 2500 + m * n, random)},
                                 {m, n, k, m * k}, 1e-2);
            }
}

constexpr const char* kLinear = R"(
kernel linear(%0 a: in f32, %1 b: in f32, %2 bias: in f32, %3 rest: in f32, %4: out f32) params 4
contraction batch 2 m p0 n p1 k p2 accumulate f32
  a %0 : f32 [p3, 0] row p2 col 1
  b %1 : f32 [0, 0] row p1 col 1
  epilogue parallel [2, 2, p0, p1] row []
    v0 = accumulator : f32
    v1 = load %2 [0, 0, 0, 1] : f32
    v2 = add v0, v1 : f32
    v3 = tanh v2 : f32
    v4 = load %3 [0, 0, 1, p0] : f32
    v5 = add v3, v4 : f32
    v6 = index d1 : i64
    v7 = cast v6 : f32
    v8 = add v5, v7 : f32
    s0 = store %4 [5000, 2500, p1, 1] v8
)";

TEST(LibraryKernels, EpilogueComputes) {
    Kernel kernel = verified(kLinear);
    auto handle = compiled(kernel);
    std::mt19937 random(2);
    for (std::int64_t m : kLibrarySizes)
        for (std::int64_t n : kLibrarySizes)
            for (std::int64_t k : {0, 7, 40}) {
                expect_agreement(kernel, handle,
                                 {Memory(DType::kF32, 2 * m * k, random), Memory(DType::kF32, n * k, random),
                                  Memory(DType::kF32, n, random), Memory(DType::kF32, n * m, random),
                                  Memory(DType::kF32, 7500 + m * n, random)},
                                 {m, n, k, m * k}, 2e-5);
            }
}

TEST(LibraryKernels, EpilogueOverAConstantNumberOfColumns) {
    for (std::int64_t n : {48, 64, 96, 160, 17}) {
        std::string text = kLinear;
        for (size_t at; (at = text.find("p1")) != std::string::npos;) text.replace(at, 2, std::to_string(n));
        for (const char* op : {"tanh", "neg"}) {
            std::string one = text;
            one.replace(one.find("tanh"), 4, op);
            Kernel kernel = verified(one);
            auto handle = compiled(kernel);
            std::mt19937 random(6);
            for (std::int64_t m : {1, 2, 9}) {
                const std::int64_t k = 7;
                expect_agreement(kernel, handle,
                                 {Memory(DType::kF32, 2 * m * k, random), Memory(DType::kF32, n * k, random),
                                  Memory(DType::kF32, n, random), Memory(DType::kF32, n * m, random),
                                  Memory(DType::kF32, 7500 + m * n, random)},
                                 {m, n, k, m * k}, 2e-5);
            }
        }
    }
}

TEST(LibraryKernels, PackedWeightGivesTheSame) {
    Kernel kernel = verified(kLinear), packed = verified(kLinear);
    packed.contraction->b.packed = true;
    auto handle = compiled(kernel), packed_handle = compiled(packed);
    std::mt19937 random(3);
    const std::int64_t m = 21, n = 50, k = 40;
    Memory a(DType::kF32, 2 * m * k, random), b(DType::kF32, n * k, random), bias(DType::kF32, n, random),
        rest(DType::kF32, n * m, random), out(DType::kF32, 7500 + m * n, random), packed_out = out;
    runtime::PackedMatrix weight(DType::kF32, k, n, b.bytes.data(), n, 1);
    launch(handle, {a.bytes.data(), b.bytes.data(), bias.bytes.data(), rest.bytes.data(), out.bytes.data()},
           {m, n, k, m * k});
    launch(packed_handle,
           {a.bytes.data(), const_cast<void*>(weight.data()), bias.bytes.data(), rest.bytes.data(),
            packed_out.bytes.data()},
           {m, n, k, m * k});
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out.value(i), packed_out.value(i), 1e-4) << i;
}

TEST(LibraryKernels, PrologueIsARowStage) {
    for (const bool half : {false, true}) {
        std::string text = R"(
kernel scores(%0 a: in f32, %1 b: in TT, %2: out f32) params 3
contraction batch 1 m p0 n p1 k p2 accumulate f32
  a %0 : TT [0] row p2 col 1
  b %1 : TT [0] row p1 col 1
  prologue parallel [2, p0] row [p2]
    v0 = load %0 [7000, p2, 1] : f32
    v1 = const 2.0 : f32
    v2 = mul v0, v1 : f32
    s0 = reduce max v2
    v3 = row_value s0 : f32
    v4 = sub v2, v3 : f32
    v5 = exp v4 : f32
    s1 = reduce sum v5
    v6 = row_value s1 : f32
    v7 = div v5, v6 : f32
    CAST
    s2 = store %0 [0, 0, 0] VALUE
  end
  epilogue parallel [2, p0, p1] row []
    v0 = accumulator : f32
    s0 = store %2 [2500, p1, 1] v0
)";
        auto replace = [&](const std::string& from, const std::string& to) {
            for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
        };
        replace("TT", half ? "bf16" : "f32");
        replace("CAST", half ? "v8 = cast v7 : bf16" : "");
        replace("VALUE", half ? "v8" : "v7");
        auto kernel = loopir::parse(text);
        ASSERT_TRUE(kernel) << kernel.error().to_string();
        auto handle = compiled(*kernel);
        std::mt19937 random(4);
        for (std::int64_t m : kLibrarySizes)
            for (std::int64_t k : {1, 16, 33, 100}) {
                const std::int64_t n = 21;
                expect_agreement(*kernel, handle,
                                 {Memory(DType::kF32, 7000 + m * k, random),
                                  Memory(half ? DType::kBF16 : DType::kF32, n * k, random),
                                  Memory(DType::kF32, 2500 + m * n, random)},
                                 {m, n, k}, half ? 1e-2 : 2e-5);
            }
    }
}

TEST(LibraryKernels, AttentionWithMaskLengthsAndDefaultScale) {
    Kernel kernel = verified(R"(
kernel attend(%0: in f32, %1: in f32, %2: in f32, %3: out f32, %4: in f32, %5: in i64) params 9
attention f32 batch p0 heads p1 kv_heads p2 q_len p3 kv_len p4 head_dim p5 value_dim p6 scale v0
  q %0 [p7, 80, 8, 1]
  k %1 [p8, 104, 8, 1]
  v %2 [p8, 104, 8, 1]
  out %3 [p7, 8, 24, 1]
  mask additive %4 [0, 0, 13, 1]
  lengths %5 [1]
  v0 = const 0.35355339059327379 : f32
)");
    auto handle = compiled(kernel);
    std::mt19937 random(5);
    const Params params = {2, 3, 3, 10, 13, 8, 8, 240, 312};
    std::vector<Memory> memory = {Memory(DType::kF32, 480, random), Memory(DType::kF32, 624, random),
                                  Memory(DType::kF32, 624, random), Memory(DType::kF32, 480, random),
                                  Memory(DType::kF32, 130, random), Memory(DType::kI64, 2, random)};
    std::int64_t lengths[] = {13, 6};
    std::memcpy(memory[5].bytes.data(), lengths, sizeof lengths);
    expect_agreement(kernel, handle, memory, params, 1e-5);
    Kernel unscaled = kernel;
    unscaled.attention->scale = loopir::kNoNode;
    auto unscaled_handle = compiled(unscaled);
    std::vector<Memory> again = memory, scaled = memory;
    auto pointers = [](std::vector<Memory>& all) {
        std::vector<void*> p;
        for (Memory& m : all) p.push_back(m.bytes.data());
        return p;
    };
    launch(unscaled_handle, pointers(again), params);
    launch(handle, pointers(scaled), params);
    for (size_t i = 0; i < 480; ++i) ASSERT_NEAR(again[3].value(i), scaled[3].value(i), 1e-6);

    // Without keys: zeros, or NaN by choice.
    lengths[1] = 0;
    std::memcpy(scaled[5].bytes.data(), lengths, sizeof lengths);
    launch(handle, pointers(scaled), params);
    for (size_t i = 240; i < 480; ++i) ASSERT_EQ(scaled[3].value(i), 0);
    Kernel nan = kernel;
    nan.attention->fully_masked = loopir::FullyMasked::kNan;
    launch(compiled(nan), pointers(scaled), params);
    for (size_t i = 0; i < 480; ++i) ASSERT_EQ(std::isnan(scaled[3].value(i)), i >= 240);
}

TEST(LibraryKernels, RefusesWhatTheTilesCannotDo) {
    Kernel kernel = verified(kLinear);
    kernel.contraction->b_dtype = DType::kBF16;
    const Kernel* list[] = {&kernel};
    auto result = compile_kernels(list);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().to_string().find("operands of two dtypes"), std::string::npos);
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
