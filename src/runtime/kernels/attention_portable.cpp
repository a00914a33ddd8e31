// Row kernels of attention in plain C++: what a build without LLVM runs.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/kernels/attention_rows.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

enum class Mask { kNone, kBoolean, kAdditive, kHalf, kBrain };

template <typename Real, Mask Kind>
Real masked(Real score, const void* mask, std::int64_t i) {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    if constexpr (Kind == Mask::kBoolean) return static_cast<const std::uint8_t*>(mask)[i] ? score : score - kInfinity;
    if constexpr (Kind == Mask::kAdditive) return score + static_cast<const Unaligned<Real>*>(mask)[i];
    if constexpr (Kind == Mask::kHalf)
        return score + types::f32_from_f16(static_cast<const Unaligned<std::uint16_t>*>(mask)[i]);
    if constexpr (Kind == Mask::kBrain)
        return score + types::f32_from_bf16(static_cast<const Unaligned<std::uint16_t>*>(mask)[i]);
    return score;
}

template <typename Real, Mask Kind, bool Narrow>
void softmax(const SoftmaxBlock* block) {
    const SoftmaxBlock& b = *block;
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    for (std::int64_t r = 0; r < b.rows; ++r) {
        Real* scores = static_cast<Real*>(b.scores) + r * b.ld;
        std::int64_t valid = std::clamp<std::int64_t>(b.valid + r * b.valid_step, 0, b.n);
        Real maximum = static_cast<Real*>(b.maximum)[r];
        Real before = maximum;
        for (std::int64_t j = 0; j < valid; ++j) {
            scores[j] = masked<Real, Kind>(scores[j] * static_cast<Real>(b.scale), b.mask, r * b.mask_stride + j);
            if (scores[j] > maximum || std::isnan(scores[j])) maximum = scores[j];
        }
        Real anchor = maximum == -kInfinity ? Real{0} : maximum;
        Real correction = std::exp(before - anchor);
        Real sum = static_cast<Real*>(b.sum)[r] * correction;
        for (std::int64_t j = 0; j < b.n; ++j) {
            Real weight = j < valid ? std::exp(scores[j] - anchor) : Real{0};
            sum += weight;
            if constexpr (Narrow) {
                static_cast<std::uint16_t*>(b.weights)[r * b.weights_ld + j] =
                    types::bf16_from_f32(static_cast<float>(weight));
            } else {
                static_cast<Real*>(b.weights)[r * b.weights_ld + j] = weight;
            }
        }
        static_cast<Real*>(b.maximum)[r] = maximum;
        static_cast<Real*>(b.sum)[r] = sum;
        static_cast<Real*>(b.correction)[r] = correction;
    }
}

template <typename Real>
void scale_rows(const void* source, std::int64_t source_ld, void* target, std::int64_t target_ld, std::int64_t rows,
                std::int64_t columns, const void* factors) {
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            static_cast<Unaligned<Real>*>(target)[r * target_ld + c] =
                static_cast<const Real*>(source)[r * source_ld + c] * static_cast<const Real*>(factors)[r];
        }
    }
}

template <typename Real, Mask NarrowMask, bool Narrow>
constexpr AttentionRows rows_table() {
    return {softmax<Real, Mask::kNone, Narrow>, softmax<Real, Mask::kBoolean, Narrow>,
            softmax<Real, Mask::kAdditive, Narrow>, softmax<Real, NarrowMask, Narrow>, scale_rows<Real>};
}

std::atomic<AttentionRowsProvider> rows_provider{nullptr};

}  // namespace

const AttentionRows* portable_attention_rows(DType dtype, bool narrow_weights) {
    static constexpr AttentionRows f64 = rows_table<double, Mask::kAdditive, false>();
    static constexpr AttentionRows f32 = rows_table<float, Mask::kAdditive, false>();
    static constexpr AttentionRows f16 = rows_table<float, Mask::kHalf, false>();
    static constexpr AttentionRows bf16 = rows_table<float, Mask::kBrain, false>();
    static constexpr AttentionRows bf16_narrow = rows_table<float, Mask::kBrain, true>();
    switch (dtype) {
        case DType::kF64: return &f64;
        case DType::kF32: return &f32;
        case DType::kF16: return &f16;
        case DType::kBF16: return narrow_weights ? &bf16_narrow : &bf16;
        default: return nullptr;
    }
}

const AttentionRows* attention_rows(DType dtype, bool narrow_weights) {
    if (AttentionRowsProvider found = rows_provider.load(std::memory_order_acquire)) {
        if (const AttentionRows* rows = found(dtype, narrow_weights)) return rows;
    }
    return portable_attention_rows(dtype, narrow_weights);
}

void install_attention_rows(AttentionRowsProvider replacement) {
    rows_provider.store(replacement, std::memory_order_release);
}

}  // namespace flexor::runtime
