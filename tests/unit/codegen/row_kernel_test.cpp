#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "codegen/cpu_llvm/kernel_compiler.h"
#include "loopir/loopir.h"
#include "runtime/thread_pool.h"
#include "types/half.h"
#include "unit/codegen/compiled.h"
#include "unit/loopir/kernels.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using loopir::Kernel;
using loopir::testing::kAddReluSum;
using loopir::testing::kChain;
using loopir::testing::kSoftmax;
using loopir::testing::kSoftmaxF32;
using loopir::testing::verified;
using testing::compiled;
using Params = std::vector<std::int64_t>;

// Memory of one buffer with guard bytes around it.
struct Buffer {
    static constexpr size_t kGuard = 256;
    DType dtype;
    std::int64_t count;
    std::vector<std::uint8_t> bytes;

    Buffer(DType d, std::int64_t n)
        : dtype(d), count(n), bytes(static_cast<size_t>(n) * dtype_size(d) + 2 * kGuard, 0xcd) {}
    void* data() { return bytes.data() + kGuard; }
    template <typename T>
    T* as() {
        return static_cast<T*>(data());
    }
    double value(std::int64_t i) {
        switch (dtype) {
            case DType::kF32: return as<float>()[i];
            case DType::kF64: return as<double>()[i];
            case DType::kF16: return types::f32_from_f16(as<std::uint16_t>()[i]);
            case DType::kBF16: return types::f32_from_bf16(as<std::uint16_t>()[i]);
            case DType::kI64: return static_cast<double>(as<std::int64_t>()[i]);
            case DType::kI32: return as<std::int32_t>()[i];
            case DType::kI8: return as<std::int8_t>()[i];
            default: return as<std::uint8_t>()[i];
        }
    }
    void set(std::int64_t i, double v) {
        switch (dtype) {
            case DType::kF32: as<float>()[i] = static_cast<float>(v); break;
            case DType::kF64: as<double>()[i] = v; break;
            case DType::kF16: as<std::uint16_t>()[i] = types::f16_from_f64(v); break;
            case DType::kBF16: as<std::uint16_t>()[i] = types::bf16_from_f64(v); break;
            case DType::kI64: as<std::int64_t>()[i] = static_cast<std::int64_t>(v); break;
            case DType::kI32: as<std::int32_t>()[i] = static_cast<std::int32_t>(v); break;
            case DType::kI8: as<std::int8_t>()[i] = static_cast<std::int8_t>(v); break;
            case DType::kBool: as<std::uint8_t>()[i] = v != 0; break;
            default: as<std::uint8_t>()[i] = static_cast<std::uint8_t>(v); break;
        }
    }
    void fill(std::mt19937& random) {
        std::normal_distribution<double> normal;
        for (std::int64_t i = 0; i < count; ++i) {
            set(i, is_floating(dtype)      ? normal(random)
                   : dtype == DType::kBool ? random() % 2
                   : dtype == DType::kU8   ? random() % 50
                                           : static_cast<double>(static_cast<int>(random() % 21) - 10));
        }
    }
};

double tolerance(DType d) {
    switch (d) {
        case DType::kF64: return 1e-12;
        case DType::kF32: return 2e-6;
        case DType::kF16: return 1.1e-3;
        case DType::kBF16: return 8e-3;
        default: return 0;
    }
}

// Runs the compiled kernel and the evaluator on equal memory; all bytes, the guards included, must agree (floats within
// the tolerance). Returns the fault flag.
bool agree(const runtime::KernelRef& handle, const Kernel& kernel, const std::vector<Buffer>& buffers,
           const Params& params, double factor = 1) {
    std::vector<Buffer> ours = buffers, theirs = buffers;
    std::vector<void*> our_pointers, their_pointers;
    for (Buffer& b : ours) our_pointers.push_back(b.data());
    for (Buffer& b : theirs) their_pointers.push_back(b.data());
    if (!handle) return false;
    const size_t size = handle->workspace_bytes(params.data());
    std::vector<char> memory(size + 64);
    char* workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    std::int32_t fault = 0;
    handle->launch({our_pointers.data(), params.data(), size ? workspace : nullptr, &fault});
    loopir::EvalArgs args{their_pointers.data(), params.data()};
    loopir::evaluate(kernel, args);
    EXPECT_EQ(fault != 0, args.fault) << kernel.name;
    std::string where = kernel.name + " [";
    for (std::int64_t p : params) where += std::to_string(p) + " ";
    for (size_t b = 0; b < ours.size(); ++b) {
        Buffer &x = ours[b], &y = theirs[b];
        const size_t body = static_cast<size_t>(x.count) * dtype_size(x.dtype);
        EXPECT_EQ(std::memcmp(x.bytes.data(), y.bytes.data(), Buffer::kGuard), 0)
            << where << "] wrote before buffer " << b;
        EXPECT_EQ(
            std::memcmp(x.bytes.data() + Buffer::kGuard + body, y.bytes.data() + Buffer::kGuard + body, Buffer::kGuard),
            0)
            << where << "] wrote past buffer " << b;
        int wrong = 0;
        for (std::int64_t i = 0; i < x.count && wrong < 3; ++i) {
            const double got = x.value(i), want = y.value(i);
            if (got == want || (std::isnan(got) && std::isnan(want))) continue;
            if (std::fabs(got - want) <= factor * tolerance(x.dtype) * (1 + std::fabs(want))) continue;
            ++wrong;
            ADD_FAILURE() << where << "] buffer " << b << " element " << i << ": " << got << ", not " << want;
        }
    }
    return fault != 0;
}

std::vector<Buffer> random_buffers(const Kernel& kernel, std::vector<std::int64_t> counts, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::vector<Buffer> all;
    for (size_t i = 0; i < counts.size(); ++i) {
        all.emplace_back(kernel.buffers[i].dtype, std::max<std::int64_t>(counts[i], 1));
        all.back().fill(random);
    }
    return all;
}

constexpr std::int64_t kRowSizes[] = {0, 1, 2, 15, 16, 17, 33, 70, 300};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

TEST(RowKernel, AddReluSumAtEverySize) {
    Kernel kernel = verified(kAddReluSum);
    auto handle = compiled(kernel);
    for (std::int64_t rows : {0, 1, 3, 40})
        for (std::int64_t n : kRowSizes)
            agree(handle, kernel, random_buffers(kernel, {rows * n, n, rows}), {rows, n}, 4);
    agree(handle, kernel, random_buffers(kernel, {3 * 70001, 70001, 3}), {3, 70001}, 100);
}

TEST(RowKernel, ChainOfNormalisationGeluAndSoftmax) {
    Kernel kernel = verified(kChain), fixed = verified(replaced(kChain, "row [p1]", "row [768]"));
    auto handle = compiled(kernel), fixed_handle = compiled(fixed);
    for (std::int64_t rows : {1, 5, 37}) {
        for (std::int64_t n : kRowSizes)
            agree(handle, kernel, random_buffers(kernel, {rows * n, n, n, rows * n, rows * n}), {rows, n});
        agree(fixed_handle, fixed, random_buffers(fixed, {rows * 768, 768, 768, rows * 768, rows * 768}), {rows, 768});
    }
}

TEST(RowKernel, SoftmaxInHalves) {
    for (const char* d : {"bf16", "f16"}) {
        Kernel kernel = verified(replaced(kSoftmax, "bf16", d));
        auto handle = compiled(kernel);
        for (std::int64_t n : kRowSizes) agree(handle, kernel, random_buffers(kernel, {4 * n + 5, 4 * n}), {4, n, 5});
    }
}

TEST(RowKernel, SoftmaxKeepsNotFinite) {
    Kernel kernel = verified(kSoftmaxF32);
    auto handle = compiled(kernel);
    for (std::int64_t n : {1, 16, 33}) {
        for (std::int64_t lane = 0; lane < n; ++lane) {
            auto buffers = random_buffers(kernel, {3 * n, 3 * n});
            buffers[0].set(lane, NAN);
            buffers[0].set(n + lane, -INFINITY);
            buffers[0].set(2 * n + lane, INFINITY);
            agree(handle, kernel, buffers, {3, n});
        }
    }
}

TEST(RowKernel, DivisionByARowValueAtTheExtremes) {
    Kernel kernel = verified(R"(
kernel divide(%0: in f32, %1: in f32, %2: out f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [0, 1] : f32
  v1 = load %1 [1, 0] : f32
  v2 = div v0, v1 : f32
  s0 = store %2 [p1, 1] v2
)");
    auto handle = compiled(kernel);
    std::vector<double> values = {0.0,      -0.0,      1,   -3, 1e-45, 1e-38, 1e38, 3e38,
                                  INFINITY, -INFINITY, NAN, 7,  1e-20, 0.1,   16,   3};
    const auto n = static_cast<std::int64_t>(values.size());
    auto buffers = random_buffers(kernel, {n, n, n * n});
    for (std::int64_t i = 0; i < n; ++i) {
        buffers[0].set(i, values[static_cast<size_t>(i)]);
        buffers[1].set(i, values[static_cast<size_t>(i)]);
    }
    agree(handle, kernel, buffers, {n, n});
}

TEST(RowKernel, ElementwiseOnAnyLayout) {
    Kernel kernel = verified(R"(
kernel gelu(%0: in f32, %1: in f32, %2: out f32) params 12
row parallel [p0, p1] row [p2]
  v0 = load %0 + p3 [p4, p5, p6] : f32
  v1 = load %1 [p7, p8, p9] : f32
  v2 = add v0, v1 : f32
  v3 = tanh v2 : f32
  v4 = mul v3, v0 : f32
  s0 = store %2 [p10, p11, 1] v4
)");
    auto handle = compiled(kernel);
    for (std::int64_t a : {0, 1, 3}) {
        for (std::int64_t b : {1, 4, 17}) {
            for (std::int64_t c : kRowSizes) {
                const std::int64_t n = a * b * c;
                auto buffers = random_buffers(kernel, {n + 3, n + 3, n});
                // contiguous, transposed, reversed, broadcast
                agree(handle, kernel, buffers, {a, b, c, 1, b * c, c, 1, b * c, c, 1, b * c, c});
                agree(handle, kernel, buffers, {a, b, c, 0, 1, a, a * b, b * c, c, 1, b * c, c});
                if (n > 0) agree(handle, kernel, buffers, {a, b, c, n - 1, -b * c, -c, -1, 0, 0, 1, b * c, c});
                agree(handle, kernel, buffers, {a, b, c, 0, b * c, c, 1, 0, 0, 0, b * c, c});
            }
        }
    }
    // Large enough for several threads, merged into one row and not.
    auto buffers = random_buffers(kernel, {3 * 100 * 1001, 3 * 100 * 1001, 3 * 100 * 1001});
    agree(handle, kernel, buffers, {3, 100, 1001, 0, 100100, 1001, 1, 100100, 1001, 1, 100100, 1001});
    agree(handle, kernel, buffers, {3, 100, 1001, 0, 100100, 1001, 1, 0, 0, 1, 100100, 1001});
}

TEST(RowKernel, TransposedVectorDimAndInPlace) {
    Kernel kernel = verified(R"(
kernel transposed(%0: inout f32) params 2
row parallel [p0, p1] row []
  v0 = load %0 [1, p0] : f32
  v1 = const 2.0 : f32
  v2 = mul v0, v1 : f32
  s0 = store %0 [1, p0] v2
)");
    auto handle = compiled(kernel);
    for (std::int64_t a : kRowSizes)
        for (std::int64_t b : {1, 5, 40}) agree(handle, kernel, random_buffers(kernel, {a * b}), {a, b});
    Kernel softmax = verified(R"(
kernel in_place(%0: inout f32) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : f32
  v1 = exp v0 : f32
  s0 = reduce sum v1
  v2 = row_value s0 : f32
  v3 = div v1, v2 : f32
  s1 = store %0 [p1, 1] v3
)");
    auto softmax_handle = compiled(softmax);
    for (std::int64_t n : kRowSizes) agree(softmax_handle, softmax, random_buffers(softmax, {6 * n}), {6, n});
}

TEST(RowKernel, ColumnReductions) {
    Kernel kernel = verified(R"(
kernel columns(%0: in f32, %1: out f32, %2: out f32, %3: out i64) params 2
row parallel [p1] row [p0]
  v0 = load %0 [1, p1] : f32
  s0 = reduce sum v0
  s1 = reduce max v0
  s2 = reduce argmax v0
  v1 = row_value s0 : f32
  v2 = row_value s1 : f32
  v3 = row_value s2 : i64
  s3 = store per_row %1 [1, 0] v1
  v4 = sub v0, v2 : f32
  v5 = exp v4 : f32
  s4 = reduce sum v5
  v6 = row_value s4 : f32
  s5 = store per_row %2 [1, 0] v6
  s6 = store per_row %3 [1, 0] v3
)");
    auto handle = compiled(kernel);
    for (std::int64_t rows : {1, 2, 50})
        for (std::int64_t columns : kRowSizes)
            agree(handle, kernel, random_buffers(kernel, {rows * columns, columns, columns, columns}), {rows, columns},
                  4);
    Kernel softmax = verified(R"(
kernel column_softmax(%0: in f32, %1: out f32) params 2
row parallel [p1] row [p0]
  v0 = load %0 [1, p1] : f32
  s0 = reduce max v0
  v1 = row_value s0 : f32
  v2 = sub v0, v1 : f32
  v3 = exp v2 : f32
  s1 = reduce sum v3
  v4 = row_value s1 : f32
  v5 = div v3, v4 : f32
  s2 = store %1 [1, p1] v5
)");
    auto softmax_handle = compiled(softmax);
    for (std::int64_t rows : {0, 1, 7, 200})
        for (std::int64_t columns : kRowSizes)
            agree(softmax_handle, softmax, random_buffers(softmax, {rows * columns, rows * columns}), {rows, columns});
}

TEST(RowKernel, EveryCombineAndDtype) {
    for (const char* d : {"f32", "f64", "i64", "i32", "i8", "u8"}) {
        Kernel kernel = verified(replaced(R"(
kernel combine(%0: in TT, %1: out TT, %2: out TT, %3: out TT, %4: out TT, %5: out i64, %6: out i64, %7: out bool, %8: out bool) params 2
row parallel [p0] row [p1]
  v0 = load %0 [p1, 1] : TT
  s0 = reduce sum v0
  s1 = reduce prod v0
  s2 = reduce max v0
  s3 = reduce min v0
  s4 = reduce argmax v0
  s5 = reduce argmin v0
  v1 = cast v0 : bool
  s6 = reduce any v1
  s7 = reduce all v1
  v2 = row_value s0 : TT
  v3 = row_value s1 : TT
  v4 = row_value s2 : TT
  v5 = row_value s3 : TT
  v6 = row_value s4 : i64
  v7 = row_value s5 : i64
  v8 = row_value s6 : bool
  v9 = row_value s7 : bool
  s8 = store per_row %1 [1, 0] v2
  s9 = store per_row %2 [1, 0] v3
  s10 = store per_row %3 [1, 0] v4
  s11 = store per_row %4 [1, 0] v5
  s12 = store per_row %5 [1, 0] v6
  s13 = store per_row %6 [1, 0] v7
  s14 = store per_row %7 [1, 0] v8
  s15 = store per_row %8 [1, 0] v9
)",
                                          "TT", d));
        auto handle = compiled(kernel);
        for (std::int64_t n : kRowSizes) {
            if (n > 100) continue;
            const std::int64_t r = 9;
            auto buffers = random_buffers(kernel, {r * n, r, r, r, r, r, r, r, r});
            agree(handle, kernel, buffers, {r, n}, 10);
            if (is_floating(buffers[0].dtype) && n > 0) {
                for (std::int64_t i = 0; i < n; i += 5) {
                    buffers[0].set(n + i, NAN);
                    buffers[0].set(2 * n + i, -INFINITY);
                    buffers[0].set(3 * n + i, INFINITY);
                    agree(handle, kernel, buffers, {r, n}, 10);
                }
            }
        }
    }
}

TEST(RowKernel, FullReductionsAreCutInParts) {
    Kernel kernel = verified(R"(
kernel full(%0: in f32, %1: out f32, %2: out i64, %3: out f32) params 4
row parallel [] row [p0, p1, p2]
  v0 = load %0 [p3, p2, 1] : f32
  s0 = reduce sum v0
  s1 = reduce argmin v0
  v1 = row_value s0 : f32
  v2 = row_value s1 : i64
  s2 = store per_row %1 [0, 0, 0] v1
  s3 = store per_row %2 [0, 0, 0] v2
  v3 = div v0, v1 : f32
  s4 = reduce max v3
  v4 = row_value s4 : f32
  s5 = store per_row %3 [0, 0, 0] v4
)");
    auto handle = compiled(kernel);
    for (std::int64_t a : {0, 1, 3})
        for (std::int64_t b : {1, 40})
            for (std::int64_t c : kRowSizes) {
                auto buffers = random_buffers(kernel, {a * (b * c + 2), 1, 1, 1});
                agree(handle, kernel, buffers, {a, b, c, b * c}, 1000);
                agree(handle, kernel, buffers, {a, b, c, b * c + 2}, 1000);
            }
    for (std::int64_t gap : {0, 2}) {
        auto buffers = random_buffers(kernel, {5 * (33 * 1000 + gap), 1, 1, 1});
        for (std::int64_t i = 0; i < buffers[0].count; ++i) buffers[0].set(i, std::fabs(buffers[0].value(i)));
        agree(handle, kernel, buffers, {5, 33, 1000, 33 * 1000 + gap}, 100);
        // The same bits whatever the number of threads.
        std::vector<std::uint32_t> results;
        for (int threads : {1, 2, 5}) {
            runtime::set_thread_count(threads);
            std::vector<Buffer> b = buffers;
            void* pointers[] = {b[0].data(), b[1].data(), b[2].data(), b[3].data()};
            Params params = {5, 33, 1000, 33 * 1000 + gap};
            testing::launch(*handle, pointers, params.data());
            results.push_back(std::bit_cast<std::uint32_t>(b[1].as<float>()[0]));
        }
        runtime::set_thread_count(runtime::default_thread_count());
        EXPECT_EQ(results[0], results[1]);
        EXPECT_EQ(results[0], results[2]);
    }
}

// Nothing is promised of where the caller's memory lies: neither of whole vectors, nor of rests, lanes far apart, gathered
// elements or scalars.
TEST(RowKernel, PromisesNoAlignmentOfBuffers) {
    for (const char* dtype : {"f32", "f64", "bf16", "i32"}) {
        const std::string d = dtype;
        const Kernel kernel =
            verified("kernel k(%0: in " + d + ", %1: in i64, %2: in " + d + ", %3: out " + d + ", %4: out " + d +
                     ") params 4\nrow parallel [p0] row [p1]\n" + "  v0 = load %0 [p1, p2] : " + d +
                     "\n  v1 = load %1 [0, 1] : i64\n" + "  v2 = load %2 [0, 0] gather v1 * 1 of p3 : " + d + "\n" +
                     "  s0 = store %3 [p1, 1] v0\n  s1 = store %4 [p1, 1] v2\n");
        ModuleBuilder owner("alignment");
        Ir ir(owner.context(), owner.module(), owner.builder());
        emit_row_kernel(ir, kernel, "k");
        const std::string text = print_module(owner.module());
        const std::string type = d == "f32" ? "float" : d == "f64" ? "double" : d == "i32" ? "i32" : "i16";
        const std::regex access("(load|store) (<[0-9]+ x )?" + type + "\\b[^\n]*, align [0-9]+");
        int accesses = 0;
        for (std::sregex_iterator at(text.begin(), text.end(), access), end; at != end; ++at) {
            if (at->str().starts_with("store i32 1, ")) continue;  // the report of a fault
            EXPECT_TRUE(at->str().ends_with("align 1")) << d << ": " << at->str();
            ++accesses;
        }
        const std::regex masked("call[^\n]*@llvm.masked.(load|store|gather|scatter)[^\n]*");
        for (std::sregex_iterator at(text.begin(), text.end(), masked), end; at != end; ++at, ++accesses)
            EXPECT_NE(at->str().find("i32 1, "), std::string::npos) << d << ": " << at->str();
        EXPECT_GT(accesses, 3) << d;
    }
}

TEST(RowKernel, LongSumsStayAccurate) {
    Kernel kernel = verified(R"(
kernel total(%0: in f32, %1: out f32) params 1
row parallel [1] row [p0]
  v0 = load %0 [0, 1] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [0, 0] v1
)");
    auto handle = compiled(kernel);
    const std::int64_t n = 10'000'000;
    auto buffers = random_buffers(kernel, {n, 1});
    for (std::int64_t i = 0; i < n; ++i) buffers[0].as<float>()[i] = 0.1f;
    void* pointers[] = {buffers[0].data(), buffers[1].data()};
    Params params = {n};
    testing::launch(*handle, pointers, params.data());
    EXPECT_NEAR(buffers[1].as<float>()[0], 0.1f * static_cast<double>(n), 1.0);
    // The same over columns, and with a body long enough for one copy.
    Kernel columns = verified(R"(
kernel columns(%0: in f32, %1: out f32, %2: out f32) params 1
row parallel [8] row [p0]
  v0 = load %0 [1, 8] : f32
  s0 = reduce sum v0
  v1 = row_value s0 : f32
  s1 = store per_row %1 [1, 0] v1
  v2 = sin v0 : f32
  s2 = reduce sum v2
  v3 = row_value s2 : f32
  s3 = store per_row %2 [1, 0] v3
)");
    const std::int64_t rows = n / 8;
    auto more = random_buffers(columns, {1, 8, 8});
    void* column_pointers[] = {buffers[0].data(), more[1].data(), more[2].data()};
    Params column_params = {rows};
    testing::launch(*compiled(columns), column_pointers, column_params.data());
    for (int i = 0; i < 8; ++i) {
        EXPECT_NEAR(more[1].as<float>()[i], 0.1f * static_cast<double>(rows), 1.5);
        EXPECT_NEAR(more[2].as<float>()[i], std::sin(0.1f) * static_cast<double>(rows), 1.5);
    }
    Kernel sines = verified(R"(
kernel sines(%0: in f32, %1: out f32) params 2
row parallel [p1] row [p0]
  v0 = load %0 [0, 1] : f32
  v1 = sin v0 : f32
  s0 = reduce sum v1
  v2 = row_value s0 : f32
  s1 = store per_row %1 [1, 0] v2
)");
    Params sine_params = {n, 1};
    testing::launch(*compiled(sines), pointers, sine_params.data());
    EXPECT_NEAR(buffers[1].as<float>()[0], std::sin(0.1f) * static_cast<double>(n), 1.5);
}

TEST(RowKernel, MultiDimRowsWithBroadcastAndIndex) {
    Kernel kernel = verified(R"(
kernel norm(%0: in f32, %1: in f32, %2: out f32) params 5
row parallel [p0] row [p1, p2]
  v0 = load %0 [p3, p2, 1] : f32
  v1 = load %1 [0, 1, 0] : f32
  v2 = exp v1 : f32
  v3 = mul v0, v2 : f32
  v4 = exp v3 : f32
  s0 = reduce sum v4
  v5 = row_value s0 : f32
  v6 = div v4, v5 : f32
  v7 = index d2 : i64
  v8 = cast v7 : f32
  v9 = add v6, v8 : f32
  s1 = store %2 [p3, 1, p1] v9
)");
    auto handle = compiled(kernel);
    for (std::int64_t b : {0, 1, 3, 20})
        for (std::int64_t c : kRowSizes)
            agree(handle, kernel, random_buffers(kernel, {4 * b * c, b, 4 * b * c}), {4, b, c, b * c, 0}, 4);
}

TEST(RowKernel, GathersMasksAndFaults) {
    Kernel kernel = verified(R"(
kernel gather(%0 table: in f32, %1 index: in i64, %2 mask: in bool, %3 out: out f32) params 3
row parallel [p0] row [p1]
  v0 = load %1 [1, 0] : i64
  v1 = load %2 [1, 0] : bool
  v2 = load %0 [0, 1] gather v0 * p1 of p2 wrap mask v1 : f32
  s0 = store %3 [p1, 1] v2
)");
    auto handle = compiled(kernel);
    std::mt19937 random(5);
    for (std::int64_t n : kRowSizes) {
        auto buffers = random_buffers(kernel, {11 * n, 20, 20, 20 * n});
        for (std::int64_t i = 0; i < 20; ++i)
            buffers[1].set(i, static_cast<double>(static_cast<int>(random() % 22) - 11));
        EXPECT_FALSE(agree(handle, kernel, buffers, {20, n, 11})) << n;
        buffers[1].set(7, 11);
        buffers[2].set(7, 0);
        EXPECT_FALSE(agree(handle, kernel, buffers, {20, n, 11}));
        buffers[2].set(7, 1);
        EXPECT_EQ(agree(handle, kernel, buffers, {20, n, 11}), n > 0);
    }
    for (const char* d : {"f32", "i64", "bf16", "bool", "u8"}) {
        Kernel lanes = verified(replaced(R"(
kernel lanes(%0 table: in TT, %1 index: in i32, %2 mask: in bool, %3 out: out TT) params 3
row parallel [p0] row [p1]
  v0 = load %1 [p1, 1] : i32
  v1 = load %2 [0, 1] : bool
  v2 = load %0 [p2, 0] gather v0 * 1 of p2 mask v1 : TT
  s0 = store %3 [p1, 1] mask v1 v2
)",
                                         "TT", d));
        auto lanes_handle = compiled(lanes);
        for (std::int64_t n : kRowSizes) {
            auto buffers = random_buffers(lanes, {3 * 13, 3 * n, n, 3 * n});
            for (std::int64_t i = 0; i < 3 * n; ++i) buffers[1].set(i, random() % 13);
            EXPECT_FALSE(agree(lanes_handle, lanes, buffers, {3, n, 13}));
            if (n == 0) continue;
            buffers[1].set(n - 1, 13);
            buffers[2].set(n - 1, 0);
            EXPECT_FALSE(agree(lanes_handle, lanes, buffers, {3, n, 13}));
            buffers[2].set(n - 1, 1);
            EXPECT_TRUE(agree(lanes_handle, lanes, buffers, {3, n, 13}));
        }
    }
}

TEST(RowKernel, ScatterAndStridedStores) {
    for (const char* d : {"f32", "f64", "i8", "bf16"}) {
        Kernel kernel = verified(replaced(R"(
kernel scatter(%0: in TT, %1: in i64, %2: out TT, %3: out TT) params 2
row parallel [] row [p0]
  v0 = load %0 [1] : TT
  v1 = load %1 [1] : i64
  s0 = store %2 [0] gather v1 * 1 of p1 v0
  s1 = store %3 [3] v0
)",
                                          "TT", d));
        auto handle = compiled(kernel);
        for (std::int64_t n : kRowSizes) {
            auto buffers = random_buffers(kernel, {n, n, n, 3 * n});
            for (std::int64_t i = 0; i < n; ++i) buffers[1].set(i, static_cast<double>((i * 7 + 3) % n));
            if (n % 7 == 0) continue;
            EXPECT_FALSE(agree(handle, kernel, buffers, {n, n}));
            if (n < 2) continue;
            buffers[1].set(1, -1);
            EXPECT_TRUE(agree(handle, kernel, buffers, {n, n}));
        }
    }
}

TEST(RowKernel, IntegerDivisionFaultsOnlyInLiveLanes) {
    Kernel kernel = verified(R"(
kernel divide(%0: in i32, %1: in i32, %2: out i32, %3: out i32) params 1
row parallel [] row [p0]
  v0 = load %0 [1] : i32
  v1 = load %1 [1] : i32
  v2 = floor_div v0, v1 : i32
  v3 = floor_mod v0, v1 : i32
  s0 = store %2 [1] v2
  s1 = store %3 [1] v3
)");
    auto handle = compiled(kernel);
    for (std::int64_t n : kRowSizes) {
        auto buffers = random_buffers(kernel, {n, n, n, n});
        for (std::int64_t i = 0; i < n; ++i) buffers[1].set(i, static_cast<double>(i % 2 ? i % 7 + 1 : -(i % 5) - 1));
        EXPECT_FALSE(agree(handle, kernel, buffers, {n}));
        if (n == 0) continue;
        buffers[1].set(n / 2, 0);
        EXPECT_TRUE(agree(handle, kernel, buffers, {n}));
    }
}

TEST(RowKernel, ParametersConstantsAndScalars) {
    Kernel kernel = verified(R"(
kernel fill(%0: out f32, %1: out bf16, %2: out i64) params 4
row parallel [] row [p0]
  v0 = param p1 : f32
  v1 = sqrt v0 : f32
  s0 = store %0 [1] v1
  v2 = cast v1 : bf16
  s1 = store %1 [1] v2
  v3 = index d0 : i64
  v4 = param p2 : i64
  v5 = mul v3, v4 : i64
  v6 = param p3 : i64
  v7 = add v5, v6 : i64
  s2 = store %2 [1] v7
)");
    auto handle = compiled(kernel);
    for (std::int64_t n : kRowSizes)
        agree(handle, kernel, random_buffers(kernel, {n, n, n}), {n, std::bit_cast<std::int64_t>(2.5), -3, 1000});
    Kernel scalar = verified(R"(
kernel scalar(%0: in f64, %1: out f32) params 0
row parallel [] row []
  v0 = load %0 [] : f64
  v1 = log v0 : f64
  v2 = cast v1 : f32
  s0 = store %1 [] v2
)");
    auto buffers = random_buffers(scalar, {1, 1});
    buffers[0].set(0, 12.5);
    agree(compiled(scalar), scalar, buffers, {});
}

TEST(RowKernel, EqualKernelsShareCode) {
    Kernel a = verified(kAddReluSum), b = verified(kAddReluSum), c = verified(kChain);
    b.name = "other";
    const Kernel* list[] = {&a, &b, &c};
    auto result = compile_kernels(list);
    ASSERT_TRUE(result);
    const std::vector<runtime::KernelRef>& handles = *result;
    EXPECT_EQ(handles[0], handles[1]);
    EXPECT_NE(handles[0], handles[2]);
    agree(handles[0], a, random_buffers(a, {3 * 33, 33, 3}), {3, 33}, 4);
    agree(handles[2], c, random_buffers(c, {3 * 33, 33, 33, 3 * 33, 3 * 33}), {3, 33});
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
