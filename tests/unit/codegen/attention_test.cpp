#include "runtime/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "codegen/cpu_llvm/attention_rows.h"
#include "codegen/cpu_llvm/gemm_tiles.h"
#include "runtime/thread_pool.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double value_at(DType dtype, const void* data, std::int64_t i) {
    switch (dtype) {
        case DType::kBool: return static_cast<const std::uint8_t*>(data)[i];
        case DType::kF16: return types::f32_from_f16(static_cast<const std::uint16_t*>(data)[i]);
        case DType::kBF16: return types::f32_from_bf16(static_cast<const std::uint16_t*>(data)[i]);
        case DType::kF32: return static_cast<const float*>(data)[i];
        default: return static_cast<const double*>(data)[i];
    }
}

void put(DType dtype, void* data, std::int64_t i, double value) {
    switch (dtype) {
        case DType::kBool: static_cast<std::uint8_t*>(data)[i] = value != 0; return;
        case DType::kF16: static_cast<std::uint16_t*>(data)[i] = types::f16_from_f32(static_cast<float>(value)); return;
        case DType::kBF16:
            static_cast<std::uint16_t*>(data)[i] = types::bf16_from_f32(static_cast<float>(value));
            return;
        case DType::kF32: static_cast<float*>(data)[i] = static_cast<float>(value); return;
        default: static_cast<double*>(data)[i] = value; return;
    }
}

// A tensor of four dims in memory of exactly its own size, so that a sanitizer sees every step outside.
struct Tensor4 {
    DType dtype;
    std::int64_t sizes[4];
    std::int64_t strides[4];
    std::vector<unsigned char> bytes;

    // `order` lists the dims from the slowest to the fastest; `gap` multiplies the fastest stride.
    Tensor4(DType dtype_in, std::initializer_list<std::int64_t> sizes_in, std::initializer_list<int> order,
            std::int64_t gap = 1)
        : dtype(dtype_in) {
        std::copy(sizes_in.begin(), sizes_in.end(), sizes);
        std::int64_t stride = gap;
        std::vector<int> dims(order);
        for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
            strides[*d] = stride;
            stride *= sizes[*d];
        }
        bytes.resize(static_cast<std::size_t>(stride) * dtype_size(dtype));
    }
    std::int64_t at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
        return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
    }
    double operator()(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
        return value_at(dtype, bytes.data(), at(a, b, c, d));
    }
    void set(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, double value) {
        put(dtype, bytes.data(), at(a, b, c, d), value);
    }
    template <typename Make>
    void fill(Make&& make) {
        for (std::int64_t a = 0; a < sizes[0]; ++a) {
            for (std::int64_t b = 0; b < sizes[1]; ++b) {
                for (std::int64_t c = 0; c < sizes[2]; ++c) {
                    for (std::int64_t d = 0; d < sizes[3]; ++d) set(a, b, c, d, make());
                }
            }
        }
    }
    AttentionOperand operand() const { return {bytes.data(), {strides[0], strides[1], strides[2], strides[3]}}; }
};

struct AttentionCase {
    DType dtype = DType::kF32;
    std::int64_t batch = 2, heads = 2, kv_heads = 2, q_len = 5, kv_len = 7, head_dim = 16, value_dim = 16;
    AttentionMask mask = AttentionMask::kNone;
    DType mask_dtype = DType::kF32;
    bool mask_broadcast = false;  // [B, 1, 1, Sk]
    std::int64_t mask_gap = 1;
    bool token_major = false;  // tensors laid out as [B, S, H, D]
    std::int64_t gap = 1;      // stride of the last dim of k and v
    bool lengths = false;
    bool portable = false;
    double scale = 0.25;
    FullyMasked fully_masked = FullyMasked::kZero;
};

struct Problem {
    AttentionCase c;
    Tensor4 q, k, v, out;
    std::optional<Tensor4> mask;
    std::vector<std::int64_t> lengths;

    explicit Problem(const AttentionCase& c_in)
        : c(c_in),
          q(c.dtype, {c.batch, c.heads, c.q_len, c.head_dim}, order()),
          k(c.dtype, {c.batch, c.kv_heads, c.kv_len, c.head_dim}, order(), c.gap),
          v(c.dtype, {c.batch, c.kv_heads, c.kv_len, c.value_dim}, order(), c.gap),
          out(c.dtype, {c.batch, c.heads, c.q_len, c.value_dim}, {0, 2, 1, 3}) {
        std::mt19937 random(static_cast<unsigned>(c.q_len * 31 + c.kv_len));
        auto number = [&] { return static_cast<double>(static_cast<int>(random() % 256) - 128) / 64; };
        q.fill(number);
        k.fill(number);
        v.fill(number);
        if (c.mask >= AttentionMask::kBoolean) {
            DType dtype = c.mask == AttentionMask::kBoolean ? DType::kBool : c.mask_dtype;
            mask.emplace(dtype,
                         std::initializer_list<std::int64_t>{c.batch, c.mask_broadcast ? 1 : c.heads,
                                                             c.mask_broadcast ? 1 : c.q_len, c.kv_len},
                         std::initializer_list<int>{0, 1, 2, 3}, c.mask_gap);
            mask->fill([&] {
                if (dtype == DType::kBool) return random() % 3 ? 1.0 : 0.0;
                return random() % 4 ? number() : -kInfinity;
            });
            if (c.mask_broadcast) mask->strides[1] = mask->strides[2] = 0;
        }
        for (std::int64_t b = 0; c.lengths && b < c.batch; ++b) {
            lengths.push_back(b == 0 ? c.kv_len / 2 : b == 1 ? 0 : c.kv_len + 5);
        }
    }
    std::initializer_list<int> order() const {
        static constexpr std::initializer_list<int> token{0, 2, 1, 3}, head{0, 1, 2, 3};
        return c.token_major ? token : head;
    }

    void run() {
        AttentionCall call;
        call.dtype = c.dtype;
        call.batch = c.batch, call.heads = c.heads, call.kv_heads = c.kv_heads;
        call.q_len = c.q_len, call.kv_len = c.kv_len, call.head_dim = c.head_dim, call.value_dim = c.value_dim;
        call.q = q.operand(), call.k = k.operand(), call.v = v.operand();
        call.out = out.bytes.data();
        std::copy(out.strides, out.strides + 4, call.out_strides);
        call.scale = c.scale;
        call.mask_kind = c.mask;
        if (mask) call.mask = mask->operand();
        call.mask_dtype = c.mask_dtype;
        if (c.lengths) call.lengths = lengths.data();
        call.fully_masked = c.fully_masked;
        if (c.portable) {
            call.tiles = portable_gemm_tiles(c.dtype);
            call.rows = portable_attention_rows(c.dtype, false);
        } else {
            auto tiles = codegen::cpu_llvm::host_gemm_tiles(c.dtype);
            ASSERT_TRUE(tiles);
            call.tiles = *tiles;
            auto rows = codegen::cpu_llvm::host_attention_rows(c.dtype, call.tiles->a_type != call.tiles->accumulator);
            ASSERT_TRUE(rows) << rows.error().to_string();
            call.rows = *rows;
        }
        std::fill(out.bytes.begin(), out.bytes.end(), 0xCD);
        EXPECT_TRUE(attention(call, nullptr, 0));
    }

    // The weights of one row as the definition says, in double; empty if the row sees nothing.
    std::vector<double> weights(std::int64_t b, std::int64_t h, std::int64_t i) const {
        std::int64_t kv = h / (c.heads / c.kv_heads);
        std::int64_t count = c.kv_len;
        if (c.lengths) count = std::clamp<std::int64_t>(lengths[static_cast<std::size_t>(b)], 0, c.kv_len);
        if (c.mask == AttentionMask::kCausal) count = std::min(count, i + 1);
        std::vector<double> row;
        double maximum = -kInfinity, sum = 0;
        for (std::int64_t j = 0; j < count; ++j) {
            double score = 0;
            for (std::int64_t d = 0; d < c.head_dim; ++d) score += q(b, h, i, d) * k(b, kv, j, d);
            score *= c.scale;
            if (c.mask == AttentionMask::kBoolean) score += (*mask)(b, h, i, j) != 0 ? 0 : -kInfinity;
            if (c.mask == AttentionMask::kAdditive) score += (*mask)(b, h, i, j);
            row.push_back(score);
            maximum = std::isnan(score) || std::isnan(maximum) ? kNan : std::max(maximum, score);
        }
        if (maximum == -kInfinity) return {};
        for (double& weight : row) sum += weight = std::exp(weight - maximum);
        for (double& weight : row) weight /= sum;
        return row;
    }

    int mismatches() const {
        double tolerance = c.dtype == DType::kF64   ? 1e-12
                           : c.dtype == DType::kF32 ? 2e-5
                           : c.dtype == DType::kF16 ? 4e-3
                                                    : 3e-2;
        int wrong = 0;
        for (std::int64_t b = 0; b < c.batch; ++b) {
            for (std::int64_t h = 0; h < c.heads; ++h) {
                for (std::int64_t i = 0; i < c.q_len; ++i) {
                    std::vector<double> row = weights(b, h, i);
                    for (std::int64_t d = 0; d < c.value_dim; ++d) {
                        double want = row.empty() && c.fully_masked == FullyMasked::kNan ? kNan : 0;
                        for (std::size_t j = 0; j < row.size(); ++j) {
                            want += row[j] * v(b, h / (c.heads / c.kv_heads), static_cast<std::int64_t>(j), d);
                        }
                        double got = out(b, h, i, d);
                        bool same = std::isnan(want) ? std::isnan(got)
                                                     : std::fabs(want - got) <= tolerance * (1 + std::fabs(want));
                        if (!same) ++wrong;
                    }
                }
            }
        }
        return wrong;
    }
};

void check_attention(const AttentionCase& c) {
    SCOPED_TRACE(::testing::Message() << dtype_name(c.dtype) << " heads " << c.heads << "/" << c.kv_heads << " q "
                                      << c.q_len << " kv " << c.kv_len << " d " << c.head_dim << "/" << c.value_dim
                                      << " mask " << static_cast<int>(c.mask) << " broadcast " << c.mask_broadcast
                                      << " mask gap " << c.mask_gap << " token major " << c.token_major << " gap "
                                      << c.gap << " lengths " << c.lengths << " portable " << c.portable);
    Problem problem(c);
    problem.run();
    EXPECT_EQ(problem.mismatches(), 0);
}

constexpr AttentionMask kMasks[] = {AttentionMask::kNone, AttentionMask::kCausal, AttentionMask::kBoolean,
                                    AttentionMask::kAdditive};
constexpr std::int64_t kAttentionSizes[] = {0, 1, 2, 15, 16, 17, 33, 65};

TEST(Attention, EverySizeAndMask) {
    for (std::int64_t q_len : kAttentionSizes) {
        for (std::int64_t kv_len : kAttentionSizes) {
            for (AttentionMask mask : kMasks) {
                AttentionCase c;
                c.q_len = q_len, c.kv_len = kv_len, c.mask = mask;
                check_attention(c);
                c.token_major = true;
                c.head_dim = 24, c.value_dim = 40;
                check_attention(c);
            }
        }
    }
}

TEST(Attention, EveryDTypeLayoutAndHeadSize) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        for (bool portable : {false, true}) {
            for (AttentionMask mask : kMasks) {
                for (std::int64_t dim : {1, 3, 16, 64, 80, 128}) {
                    for (std::int64_t gap : {1, 2}) {
                        AttentionCase c;
                        c.dtype = dtype, c.portable = portable, c.mask = mask, c.gap = gap;
                        c.mask_dtype = dtype;
                        c.heads = 4, c.kv_heads = 2;
                        c.q_len = 19, c.kv_len = 35;
                        c.head_dim = dim, c.value_dim = dim + (dim > 16 ? 0 : 5);
                        c.token_major = gap == 1;
                        c.scale = 1 / std::sqrt(static_cast<double>(dim));
                        check_attention(c);
                    }
                }
            }
        }
    }
}

// A token at a time against a growing cache: keys are read in place.
TEST(Attention, FewQueriesAgainstManyKeys) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        for (std::int64_t q_len : {1, 2, 3, 4}) {
            for (std::int64_t kv_len : {1, 3, 6, 97, 1003}) {
                for (AttentionMask mask : kMasks) {
                    AttentionCase c;
                    c.dtype = dtype, c.mask = mask, c.mask_dtype = dtype;
                    c.heads = 4, c.kv_heads = 2;
                    c.q_len = q_len, c.kv_len = kv_len;
                    c.head_dim = 35, c.value_dim = 48;
                    c.token_major = q_len % 2 == 0;
                    check_attention(c);
                }
            }
        }
    }
}

TEST(Attention, ManyKeysTakeSeveralBlocks) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
        for (AttentionMask mask : kMasks) {
            for (std::int64_t kv_len : {480, 481, 1100}) {
                AttentionCase c;
                c.dtype = dtype, c.mask = mask, c.mask_dtype = dtype;
                c.batch = 1, c.heads = 2, c.kv_heads = 1, c.q_len = 21, c.kv_len = kv_len;
                check_attention(c);
                c.q_len = 700, c.heads = 1, c.kv_len = kv_len, c.head_dim = c.value_dim = 8;
                if (kv_len == 1100 && dtype == DType::kF32) check_attention(c);
            }
        }
    }
}

TEST(Attention, MasksBroadcastAndHaveStrides) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
        for (DType mask_dtype : {dtype, DType::kF32}) {
            for (AttentionMask mask : {AttentionMask::kBoolean, AttentionMask::kAdditive}) {
                for (bool broadcast : {false, true}) {
                    for (std::int64_t gap : {1, 3}) {
                        AttentionCase c;
                        c.dtype = dtype, c.mask = mask, c.mask_dtype = mask_dtype;
                        c.mask_broadcast = broadcast, c.mask_gap = gap;
                        c.q_len = 9, c.kv_len = 21;
                        check_attention(c);
                    }
                }
            }
        }
    }
}

TEST(Attention, LengthsCutKeys) {
    for (AttentionMask mask : kMasks) {
        for (std::int64_t kv_len : {1, 17, 65, 1000}) {
            for (DType dtype : {DType::kF32, DType::kBF16}) {
                AttentionCase c;
                c.dtype = dtype, c.mask = mask, c.mask_dtype = dtype;
                c.batch = 3, c.kv_len = kv_len, c.q_len = 18, c.lengths = true;
                check_attention(c);
                // NaN in keys and values that do not exist must not be seen.
                Problem problem(c);
                for (std::int64_t j = kv_len / 2; j < kv_len; ++j) {
                    for (std::int64_t d = 0; d < 16; ++d) {
                        problem.k.set(0, 1, j, d, kNan);
                        problem.v.set(0, 1, j, d, kNan);
                    }
                }
                problem.run();
                EXPECT_EQ(problem.mismatches(), 0);
            }
        }
    }
}

TEST(Attention, FullyMaskedRowsGiveZeroOrNan) {
    for (FullyMasked choice : {FullyMasked::kZero, FullyMasked::kNan}) {
        for (AttentionMask mask : {AttentionMask::kBoolean, AttentionMask::kAdditive}) {
            for (bool portable : {false, true}) {
                for (std::int64_t kv_len : {20, 600}) {
                    AttentionCase c;
                    c.mask = mask, c.fully_masked = choice, c.portable = portable, c.kv_len = kv_len;
                    Problem problem(c);
                    for (std::int64_t j = 0; j < kv_len; ++j) {
                        problem.mask->set(1, 0, 3, j, mask == AttentionMask::kBoolean ? 0 : -kInfinity);
                        // and one row whose first block only is masked
                        if (j < 590) problem.mask->set(0, 0, 2, j, mask == AttentionMask::kBoolean ? 0 : -kInfinity);
                    }
                    problem.run();
                    EXPECT_EQ(problem.mismatches(), 0);
                    const auto without_keys = [&] {
                        const double got = problem.out(1, 0, 3, 0);
                        return choice == FullyMasked::kNan ? std::isnan(got) : got == 0;
                    };
                    EXPECT_TRUE(without_keys());
                    problem.v.set(1, 0, 5, 0, kInfinity);
                    problem.run();
                    EXPECT_TRUE(without_keys());
                }
            }
        }
    }
}

TEST(Attention, NanSpreadsOverItsRowOnly) {
    for (bool portable : {false, true}) {
        for (std::int64_t lane = 0; lane < 35; ++lane) {
            AttentionCase c;
            c.portable = portable;
            c.batch = 1, c.heads = c.kv_heads = 1, c.q_len = 9, c.kv_len = 35;
            c.mask = AttentionMask::kAdditive;
            Problem problem(c);
            problem.mask->set(0, 0, 4, lane, kNan);
            problem.mask->set(0, 0, 6, lane, kInfinity);  // inf - inf
            problem.run();
            for (std::int64_t i = 0; i < 9; ++i) {
                for (std::int64_t d = 0; d < 16; ++d) {
                    EXPECT_EQ(std::isnan(problem.out(0, 0, i, d)), i == 4 || i == 6) << i << " lane " << lane;
                }
            }
            // A NaN query, a NaN key that a boolean mask hides: eager's softmax makes both rows NaN.
            c.mask = AttentionMask::kBoolean;
            Problem hidden(c);
            for (std::int64_t j = 0; j < 35; ++j) hidden.mask->set(0, 0, 2, j, j != lane);
            hidden.k.set(0, 0, lane, 3, kNan);
            hidden.run();
            EXPECT_TRUE(std::isnan(hidden.out(0, 0, 2, 0)));
        }
    }
}

TEST(Attention, ResultsDoNotDependOnThreads) {
    AttentionCase c;
    c.batch = 1, c.heads = 3, c.kv_heads = 3, c.q_len = 203, c.kv_len = 517, c.mask = AttentionMask::kCausal;
    Problem one(c), many(c);
    set_thread_count(1);
    one.run();
    for (int threads : {2, 5}) {
        set_thread_count(threads);
        many.run();
        EXPECT_EQ(std::memcmp(one.out.bytes.data(), many.out.bytes.data(), one.out.bytes.size()), 0);
    }
    set_thread_count(default_thread_count());
}

}  // namespace
}  // namespace flexor::runtime
