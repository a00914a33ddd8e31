#include "runtime/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/cpu_llvm/gemm_tiles.h"
#include "runtime/thread_pool.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

const GemmTiles* host_tiles(DType dtype) {
    auto tiles = codegen::cpu_llvm::host_gemm_tiles(dtype);
    return tiles ? *tiles : nullptr;
}

double get(DType dtype, const void* data, std::int64_t i) {
    switch (dtype) {
        case DType::kU8: return static_cast<const std::uint8_t*>(data)[i];
        case DType::kI8: return static_cast<const std::int8_t*>(data)[i];
        case DType::kI32: return static_cast<const std::int32_t*>(data)[i];
        case DType::kI64: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
        case DType::kF16: return types::f32_from_f16(static_cast<const std::uint16_t*>(data)[i]);
        case DType::kBF16: return types::f32_from_bf16(static_cast<const std::uint16_t*>(data)[i]);
        case DType::kF32: return static_cast<const float*>(data)[i];
        case DType::kF64: return static_cast<const double*>(data)[i];
        default: return 0;
    }
}

void set(DType dtype, void* data, std::int64_t i, double value) {
    switch (dtype) {
        case DType::kU8: static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(value); return;
        case DType::kI8: static_cast<std::int8_t*>(data)[i] = static_cast<std::int8_t>(value); return;
        case DType::kI32: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value); return;
        case DType::kI64: static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(value); return;
        case DType::kF16: static_cast<std::uint16_t*>(data)[i] = types::f16_from_f32(static_cast<float>(value)); return;
        case DType::kBF16:
            static_cast<std::uint16_t*>(data)[i] = types::bf16_from_f32(static_cast<float>(value));
            return;
        case DType::kF32: static_cast<float*>(data)[i] = static_cast<float>(value); return;
        case DType::kF64: static_cast<double*>(data)[i] = value; return;
        default: return;
    }
}

// Memory of `count` elements with a guard on both sides that no kernel may touch.
class Buffer {
public:
    Buffer(DType dtype, std::int64_t count) : dtype_(dtype), count_(count), bytes_(kGuard * 2 + size() * 1, 0xAB) {}
    std::size_t size() const { return static_cast<std::size_t>(count_) * dtype_size(dtype_); }
    void* data() { return bytes_.data() + kGuard; }
    const void* data() const { return bytes_.data() + kGuard; }
    double operator[](std::int64_t i) const { return get(dtype_, data(), i); }
    void put(std::int64_t i, double value) { set(dtype_, data(), i, value); }
    void fill(std::mt19937& random) {
        for (std::int64_t i = 0; i < count_; ++i) {
            double value = static_cast<double>(static_cast<int>(random() % 17) - 8);
            if (dtype_ == DType::kU8) value = static_cast<double>(random() % 250);
            if (is_floating(dtype_)) value = value / 8 + static_cast<double>(random() % 64) / 512;
            put(i, value);
        }
    }
    bool guards_hold() const {
        for (std::size_t i = 0; i < kGuard; ++i) {
            if (bytes_[i] != 0xAB || bytes_[bytes_.size() - 1 - i] != 0xAB) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t kGuard = 256;
    DType dtype_;
    std::int64_t count_;
    std::vector<unsigned char> bytes_;
};

enum class BForm { kRows, kColumns, kStrided, kPacked, kPackedColumns };
enum class AForm { kRows, kOffset, kColumns, kStrided };

struct GemmCase {
    DType dtype = DType::kF32;
    DType out = DType::kF32;
    std::int64_t m, n, k;
    AForm a = AForm::kRows;
    BForm b = BForm::kRows;
    bool portable = false;
};

struct EpilogueContext {
    std::vector<int> visits;
    double* out;
    std::int64_t m, n;
    DType accumulator;
};

void check_gemm(const GemmCase& c) {
    SCOPED_TRACE(::testing::Message() << dtype_name(c.dtype) << "->" << dtype_name(c.out) << " m" << c.m << " n" << c.n
                                      << " k" << c.k << " a" << static_cast<int>(c.a) << " b" << static_cast<int>(c.b)
                                      << " portable " << c.portable);
    std::mt19937 random(static_cast<unsigned>(c.m * 131 + c.n * 17 + c.k));
    const GemmTiles* tiles = c.portable || !is_floating(c.dtype) ? portable_gemm_tiles(c.dtype) : host_tiles(c.dtype);
    ASSERT_NE(tiles, nullptr);
    GemmCall call;
    call.dtype = c.dtype;
    call.tiles = tiles;
    call.m = c.m;
    call.n = c.n;
    call.k = c.k;
    switch (c.a) {
        case AForm::kRows: call.a.row_stride = c.k, call.a.col_stride = 1; break;
        case AForm::kOffset: call.a.row_stride = c.k + 3, call.a.col_stride = 1; break;
        case AForm::kColumns: call.a.row_stride = 1, call.a.col_stride = c.m; break;
        case AForm::kStrided: call.a.row_stride = 2 * c.k + 1, call.a.col_stride = 2; break;
    }
    bool columns = c.b == BForm::kColumns || c.b == BForm::kPackedColumns;
    call.b.row_stride = columns ? 1 : c.b == BForm::kStrided ? 2 * c.n + 3 : c.n;
    call.b.col_stride = columns ? c.k + (c.b == BForm::kColumns) : c.b == BForm::kStrided ? 2 : 1;
    auto extent = [](std::int64_t rows, std::int64_t rs, std::int64_t cols, std::int64_t cs) {
        return rows > 0 && cols > 0 ? (rows - 1) * rs + (cols - 1) * cs + 1 : 0;
    };
    Buffer a(c.dtype, extent(c.m, call.a.row_stride, c.k, call.a.col_stride));
    Buffer b(c.dtype, extent(c.k, call.b.row_stride, c.n, call.b.col_stride));
    Buffer out(c.out, c.m * c.n);
    a.fill(random);
    b.fill(random);
    call.a.data = a.data();
    call.b.data = b.data();
    call.c.data = out.data();
    call.c.dtype = c.out;
    call.c.row_stride = c.n;
    call.c.col_stride = 1;
    std::unique_ptr<PackedMatrix> packed;
    if (c.b == BForm::kPacked || c.b == BForm::kPackedColumns) {
        packed =
            std::make_unique<PackedMatrix>(c.dtype, c.k, c.n, b.data(), call.b.row_stride, call.b.col_stride, tiles);
        call.b.data = packed->data();
        call.b_packed = true;
    }
    std::vector<char> workspace(gemm_workspace_bytes(call) + 64);
    auto aligned = (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64;
    EXPECT_TRUE(gemm(call, reinterpret_cast<void*>(aligned), gemm_workspace_bytes(call)));

    EXPECT_TRUE(a.guards_hold() && b.guards_hold() && out.guards_hold());
    int wrong = 0;
    std::vector<double> reference(static_cast<std::size_t>(c.m * c.n));
    for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
            double sum = 0, magnitude = 0;
            for (std::int64_t q = 0; q < c.k; ++q) {
                double product =
                    a[i * call.a.row_stride + q * call.a.col_stride] * b[q * call.b.row_stride + j * call.b.col_stride];
                sum += product;
                magnitude += std::fabs(product);
            }
            reference[static_cast<std::size_t>(i * c.n + j)] = sum;
            double tolerance = 0;
            if (is_floating(c.dtype)) tolerance = magnitude * (c.dtype == DType::kF64 ? 1e-14 : 2e-6);
            if (c.out == DType::kF16) tolerance += std::fabs(sum) * 0x1p-10;
            if (c.out == DType::kBF16) tolerance += std::fabs(sum) * 0x1p-7;
            double expected = sum;
            if (c.out == DType::kU8) expected = static_cast<std::uint8_t>(static_cast<std::int64_t>(sum));
            if (c.out == DType::kI8) expected = static_cast<std::int8_t>(static_cast<std::int64_t>(sum));
            if (!(std::fabs(out[i * c.n + j] - expected) <= tolerance)) ++wrong;
        }
    }
    EXPECT_EQ(wrong, 0);

    // The same through an epilogue: every element exactly once, with the accumulator's value.
    std::vector<double> seen(static_cast<std::size_t>(c.m * c.n));
    EpilogueContext context{std::vector<int>(static_cast<std::size_t>(c.m * c.n)), seen.data(), c.m, c.n,
                            tiles->accumulator};
    call.epilogue = [](void* p, std::int64_t, std::int64_t m, std::int64_t n0, std::int64_t count, const void* sums) {
        auto* e = static_cast<EpilogueContext*>(p);
        for (std::int64_t j = 0; j < count; ++j) {
            ++e->visits[static_cast<std::size_t>(m * e->n + n0 + j)];
            e->out[m * e->n + n0 + j] = get(e->accumulator, sums, j);
        }
    };
    call.epilogue_context = &context;
    EXPECT_TRUE(gemm(call, nullptr, 0));
    wrong = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (context.visits[i] != 1) ++wrong;
        double scale = std::fabs(reference[i]) + static_cast<double>(c.k);
        double tolerance = is_floating(c.dtype) ? scale * (c.dtype == DType::kF64 ? 1e-13 : 1e-5) : 0;
        if (!(std::fabs(seen[i] - reference[i]) <= tolerance)) ++wrong;
    }
    EXPECT_EQ(wrong, 0);
}

constexpr std::int64_t kGemmSizes[] = {0, 1, 2, 15, 16, 17, 33, 65};

TEST(Gemm, EverySizeInF32) {
    for (std::int64_t m : kGemmSizes) {
        for (std::int64_t n : kGemmSizes) {
            for (std::int64_t k : kGemmSizes) {
                for (BForm b : {BForm::kRows, BForm::kColumns, BForm::kPacked}) {
                    GemmCase c{.m = m, .n = n, .k = k};
                    c.b = b;
                    check_gemm(c);
                }
            }
        }
    }
}

TEST(Gemm, EveryLayoutAndDType) {
    for (DType dtype :
         {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
        for (bool portable : {false, true}) {
            if (portable && !is_floating(dtype)) continue;
            for (AForm a : {AForm::kRows, AForm::kOffset, AForm::kColumns, AForm::kStrided}) {
                for (BForm b :
                     {BForm::kRows, BForm::kColumns, BForm::kStrided, BForm::kPacked, BForm::kPackedColumns}) {
                    for (auto [m, n, k] : {std::tuple<int, int, int>{1, 33, 17},
                                           {3, 5, 65},
                                           {17, 50, 33},
                                           {33, 97, 2},
                                           {65, 130, 70},
                                           {2, 64, 0},
                                           {70, 1, 35}}) {
                        GemmCase c{.dtype = dtype, .out = dtype, .m = m, .n = n, .k = k, .a = a, .b = b};
                        c.portable = portable;
                        check_gemm(c);
                    }
                }
            }
        }
    }
}

TEST(Gemm, ConvertsToOtherOutputs) {
    for (DType out : {DType::kF64, DType::kBF16, DType::kF16, DType::kF32}) {
        for (DType dtype : {DType::kF32, DType::kBF16}) {
            GemmCase c{.dtype = dtype, .out = out, .m = 19, .n = 70, .k = 40};
            check_gemm(c);
        }
    }
}

TEST(Gemm, LongKIsCutIntoBlocks) {
    for (BForm b : {BForm::kRows, BForm::kColumns, BForm::kPacked}) {
        for (std::int64_t m : {3, 21}) {
            GemmCase c{.m = m, .n = 53, .k = 13001};
            c.b = b;
            check_gemm(c);
            c.dtype = DType::kBF16;
            check_gemm(c);
        }
    }
}

// C[b0, b1, m, n] with every combination of broadcasts, against one call a matrix.
TEST(Gemm, BatchesAndBroadcasts) {
    std::mt19937 random(3);
    const std::int64_t b0 = 3, b1 = 5;
    for (auto [m, n, k] : {std::tuple<int, int, int>{7, 20, 12}, {33, 64, 17}, {1, 70, 65}}) {
        Buffer a(DType::kF32, b0 * b1 * m * k), b(DType::kF32, b0 * b1 * k * n), c(DType::kF32, b0 * b1 * m * n);
        Buffer single(DType::kF32, m * n);
        a.fill(random);
        b.fill(random);
        for (int kinds = 0; kinds < 16; ++kinds) {
            for (bool transposed : {false, true}) {
                GemmCall call;
                call.tiles = host_tiles(DType::kF32);
                call.m = m, call.n = n, call.k = k;
                call.batch_rank = 2;
                call.batch[0] = b0, call.batch[1] = b1;
                call.a = {a.data(), k, 1, {kinds & 1 ? 0 : b1 * m * k, kinds & 2 ? 0 : m * k}};
                call.b = {b.data(),
                          transposed ? 1 : n,
                          transposed ? k : 1,
                          {kinds & 4 ? 0 : b1 * k * n, kinds & 8 ? 0 : k * n}};
                call.c = {c.data(), DType::kF32, n, 1, {b1 * m * n, m * n}};
                EXPECT_TRUE(gemm(call, nullptr, 0));
                int wrong = 0;
                for (std::int64_t i0 = 0; i0 < b0; ++i0) {
                    for (std::int64_t i1 = 0; i1 < b1; ++i1) {
                        for (std::int64_t i = 0; i < m; ++i) {
                            for (std::int64_t j = 0; j < n; ++j) {
                                double sum = 0;
                                for (std::int64_t q = 0; q < k; ++q) {
                                    sum += a[i0 * call.a.batch_strides[0] + i1 * call.a.batch_strides[1] + i * k + q] *
                                           b[i0 * call.b.batch_strides[0] + i1 * call.b.batch_strides[1] +
                                             q * call.b.row_stride + j * call.b.col_stride];
                                }
                                double got = c[((i0 * b1 + i1) * m + i) * n + j];
                                if (!(std::fabs(got - sum) <= 1e-4)) ++wrong;
                            }
                        }
                    }
                }
                EXPECT_EQ(wrong, 0) << "kinds " << kinds << " transposed " << transposed << " m " << m;
            }
        }
    }
}

TEST(Gemm, FoldedBatchesReachTheEpilogueWithTheirOwnIndices) {
    std::mt19937 random(4);
    const std::int64_t batch = 4, m = 5, n = 37, k = 9;
    Buffer a(DType::kF32, batch * m * k), b(DType::kF32, k * n);
    a.fill(random);
    b.fill(random);
    struct Context {
        const Buffer *a, *b;
        std::vector<int> visits;
        int wrong = 0;
    } context{&a, &b, std::vector<int>(static_cast<std::size_t>(batch * m * n)), 0};
    GemmCall call;
    call.tiles = host_tiles(DType::kF32);
    call.m = m, call.n = n, call.k = k;
    call.batch_rank = 1;
    call.batch[0] = batch;
    call.a = {a.data(), k, 1, {m * k}};
    call.b = {b.data(), n, 1, {0}};
    call.epilogue_context = &context;
    call.epilogue = [](void* p, std::int64_t index, std::int64_t row, std::int64_t n0, std::int64_t count,
                       const void* sums) {
        auto* c = static_cast<Context*>(p);
        for (std::int64_t j = n0; j < n0 + count; ++j) {
            double sum = 0;
            for (std::int64_t q = 0; q < 9; ++q) sum += (*c->a)[(index * 5 + row) * 9 + q] * (*c->b)[q * 37 + j];
            if (!(std::fabs(static_cast<const float*>(sums)[j - n0] - sum) <= 1e-4)) ++c->wrong;
            ++c->visits[static_cast<std::size_t>((index * 5 + row) * 37 + j)];
        }
    };
    set_thread_count(1);
    EXPECT_TRUE(gemm(call, nullptr, 0));
    set_thread_count(default_thread_count());
    EXPECT_EQ(context.wrong, 0);
    for (int visits : context.visits) EXPECT_EQ(visits, 1);
}

// A prologue that computes 2 * x + batch, for each way B can come.
TEST(Gemm, PrologueFeedsTheRows) {
    std::mt19937 random(5);
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        for (std::int64_t batch : {1, 2, 9}) {
            for (int form = 0; form < 3; ++form) {
                const std::int64_t m = 55, n = 100, k = 31;
                Buffer a(dtype, batch * m * k), b(dtype, batch * k * n), c(DType::kF32, batch * m * n);
                a.fill(random);
                b.fill(random);
                struct Context {
                    Buffer* a;
                    DType dtype;
                } context{&a, dtype};
                GemmCall call;
                call.dtype = dtype;
                call.tiles = host_tiles(dtype);
                call.m = m, call.n = n, call.k = k;
                call.batch_rank = 1;
                call.batch[0] = batch;
                bool columns = form == 1;
                call.b = {b.data(), columns ? 1 : n, columns ? k : 1, {form == 2 ? 0 : k * n}};
                call.c = {c.data(), DType::kF32, n, 1, {m * n}};
                call.prologue_context = &context;
                call.prologue = [](void* p, std::int64_t index, std::int64_t m0, std::int64_t m1, void* rows) {
                    auto* x = static_cast<Context*>(p);
                    for (std::int64_t i = 0; i < (m1 - m0) * 31; ++i) {
                        double value = (*x->a)[(index * 55 + m0) * 31 + i];
                        set(x->dtype, rows, i, 2 * value + static_cast<double>(index));
                    }
                };
                EXPECT_TRUE(gemm(call, nullptr, 0));
                int wrong = 0;
                for (std::int64_t i = 0; i < batch * m; ++i) {
                    for (std::int64_t j = 0; j < n; ++j) {
                        double sum = 0;
                        for (std::int64_t q = 0; q < k; ++q) {
                            Buffer rounded(dtype, 1);
                            rounded.put(0, 2 * a[i * k + q] + static_cast<double>(i / m));
                            sum += rounded[0] *
                                   b[i / m * call.b.batch_strides[0] + q * call.b.row_stride + j * call.b.col_stride];
                        }
                        if (!(std::fabs(c[i * n + j] - sum) <= 1e-3)) ++wrong;
                    }
                }
                EXPECT_EQ(wrong, 0) << dtype_name(dtype) << " batch " << batch << " form " << form;
            }
        }
    }
}

TEST(Gemm, WithoutMemoryThereIsNoPackedMatrix) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer ends the process instead";
#endif
    const std::int64_t side = std::int64_t{1} << 29;
    const PackedMatrix packed(DType::kF32, side, side, nullptr, side, 1);
    EXPECT_EQ(packed.data(), nullptr);
}

TEST(Gemm, SaysThatThereIsNoMemoryForItsWorkspace) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer ends the process at such sizes";
#endif
    // A strided A is copied: 2^57 bytes of it.
    float one = 1;
    GemmCall call;
    call.tiles = portable_gemm_tiles(DType::kF32);
    call.m = std::int64_t{1} << 35, call.n = 1, call.k = std::int64_t{1} << 20;
    call.a = {&one, 0, 0, {}};
    call.b = {&one, 0, 0, {}};
    call.c = {&one, DType::kF32, 0, 0, {}};
    EXPECT_FALSE(gemm(call, nullptr, 0));
    EXPECT_EQ(one, 1.0F);
}

TEST(Gemm, TakesOperandsAtAnyAddress) {
    std::mt19937 random(8);
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI32}) {
        const auto size = static_cast<std::int64_t>(dtype_size(dtype));
        for (const std::int64_t m : {1, 3, 17}) {
            for (const bool columns : {false, true}) {  // of B
                const std::int64_t n = 21, k = 19;
                Buffer a(dtype, m * k + 1), b(dtype, k * n + 1), c(dtype, m * n + 1), wanted(dtype, m * n);
                a.fill(random);
                b.fill(random);
                GemmCall call;
                call.dtype = dtype;
                call.tiles = dtype == DType::kI32 ? portable_gemm_tiles(dtype) : host_tiles(dtype);
                call.m = m, call.n = n, call.k = k;
                call.a = {a.data(), k, 1, {}};
                call.b = columns ? GemmOperand{b.data(), 1, k, {}} : GemmOperand{b.data(), n, 1, {}};
                call.c = {wanted.data(), dtype, n, 1, {}};
                EXPECT_TRUE(gemm(call, nullptr, 0));
                const auto moved = [](Buffer& buffer, std::int64_t bytes) {
                    char* to = static_cast<char*>(buffer.data()) + 1;
                    std::memmove(to, buffer.data(), static_cast<std::size_t>(bytes));
                    return to;
                };
                call.a.data = moved(a, m * k * size);
                call.b.data = moved(b, k * n * size);
                call.c.data = static_cast<char*>(c.data()) + 1;
                EXPECT_TRUE(gemm(call, nullptr, 0));
                EXPECT_EQ(std::memcmp(call.c.data, wanted.data(), static_cast<std::size_t>(m * n * size)), 0)
                    << dtype_name(dtype) << " " << m;
            }
        }
    }
}

TEST(Gemm, ResultsDoNotDependOnThreadsOrOnM) {
    std::mt19937 random(6);
    const std::int64_t m = 203, n = 333, k = 257;
    Buffer a(DType::kF32, m * k), b(DType::kF32, k * n), first(DType::kF32, m * n), other(DType::kF32, m * n);
    a.fill(random);
    b.fill(random);
    PackedMatrix packed(DType::kF32, k, n, b.data(), n, 1, host_tiles(DType::kF32));
    GemmCall call;
    call.tiles = host_tiles(DType::kF32);
    call.m = m, call.n = n, call.k = k;
    call.a = {a.data(), k, 1, {}};
    call.b.data = packed.data();
    call.b_packed = true;
    call.c = {first.data(), DType::kF32, n, 1, {}};
    set_thread_count(1);
    EXPECT_TRUE(gemm(call, nullptr, 0));
    for (int threads : {2, 3, 8}) {
        set_thread_count(threads);
        call.c.data = other.data();
        EXPECT_TRUE(gemm(call, nullptr, 0));
        EXPECT_EQ(std::memcmp(first.data(), other.data(), first.size()), 0);
    }
    call.m = 11;
    EXPECT_TRUE(gemm(call, nullptr, 0));
    EXPECT_EQ(std::memcmp(first.data(), other.data(), static_cast<std::size_t>(11 * n) * 4), 0);
    set_thread_count(default_thread_count());
}

TEST(Gemm, AColumnGivesTheSameWhateverM) {
    std::mt19937 random(7);
    const std::int64_t m = 103, k = 77;
    Buffer a(DType::kF32, m * k), b(DType::kF32, k), first(DType::kF32, m), other(DType::kF32, m);
    a.fill(random);
    b.fill(random);
    GemmCall call;
    call.tiles = host_tiles(DType::kF32);
    call.m = m, call.n = 1, call.k = k;
    call.a = {a.data(), k, 1, {}};
    call.b = {b.data(), 1, 1, {}};
    call.c = {first.data(), DType::kF32, 1, 1, {}};
    EXPECT_TRUE(gemm(call, nullptr, 0));
    call.c.data = other.data();
    for (const std::int64_t rows : {1, 2, 11, 50}) {
        call.m = rows;
        EXPECT_TRUE(gemm(call, nullptr, 0));
        EXPECT_EQ(std::memcmp(first.data(), other.data(), static_cast<std::size_t>(rows) * 4), 0) << rows;
    }
}

TEST(Gemm, NanAndInfinityStayWhereTheyBelong) {
    const std::int64_t m = 9, n = 50, k = 20;
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        for (std::int64_t column = 0; column < n; ++column) {
            Buffer a(dtype, m * k), b(dtype, k * n), c(dtype, m * n);
            for (std::int64_t i = 0; i < m * k; ++i) a.put(i, 1);
            for (std::int64_t i = 0; i < k * n; ++i) b.put(i, 1);
            b.put(3 * n + column, std::numeric_limits<double>::quiet_NaN());
            a.put(2 * k + 1, std::numeric_limits<double>::infinity());
            GemmCall call;
            call.dtype = dtype;
            call.tiles = host_tiles(dtype);
            call.m = m, call.n = n, call.k = k;
            call.a = {a.data(), k, 1, {}};
            call.b = {b.data(), n, 1, {}};
            call.c = {c.data(), dtype, n, 1, {}};
            EXPECT_TRUE(gemm(call, nullptr, 0));
            int wrong = 0;
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    double got = c[i * n + j];
                    if (j == column ? !std::isnan(got)
                        : i == 2    ? got != std::numeric_limits<double>::infinity()
                                    : got != 20) {
                        ++wrong;
                    }
                }
            }
            EXPECT_EQ(wrong, 0) << dtype_name(dtype) << " column " << column;
        }
    }
}

}  // namespace
}  // namespace flexor::runtime
