// Tiles in plain C++ for every dtype: what a build without LLVM runs, and the only tiles of the integer dtypes.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/gemm_tiles.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

constexpr int kRows = 4;
constexpr int kLanes = 8;

struct Half {
    std::uint16_t bits;
};
struct Brain {
    std::uint16_t bits;
};

template <typename Accumulator, typename Element>
Accumulator widen(Element value) {
    if constexpr (std::is_same_v<Element, Half>) {
        return types::f32_from_f16(value.bits);
    } else if constexpr (std::is_same_v<Element, Brain>) {
        return types::f32_from_bf16(value.bits);
    } else {
        return static_cast<Accumulator>(value);
    }
}

// Integers accumulate in unsigned arithmetic, so that wrapping is defined.
template <typename AType, typename BType, typename Accumulator, int Rows>
void tile(const void* a_in, std::int64_t lda, const void* b_in, std::int64_t ldb, void* c_in, std::int64_t ldc,
          std::int64_t k, std::int64_t accumulate) {
    const auto* a = static_cast<const Unaligned<AType>*>(a_in);
    const auto* b = static_cast<const Unaligned<BType>*>(b_in);
    auto* c = static_cast<Unaligned<Accumulator>*>(c_in);
    Accumulator sums[Rows][kLanes] = {};
    for (std::int64_t i = 0; i < k; ++i) {
        Accumulator column[kLanes];
        for (int j = 0; j < kLanes; ++j) column[j] = widen<Accumulator>(b[i * ldb + j].value);
        for (int r = 0; r < Rows; ++r) {
            Accumulator left = widen<Accumulator>(a[r * lda + i].value);
            for (int j = 0; j < kLanes; ++j) sums[r][j] += left * column[j];
        }
    }
    for (int r = 0; r < Rows; ++r) {
        for (int j = 0; j < kLanes; ++j) {
            Unaligned<Accumulator>& where = c[r * ldc + j];
            where = accumulate ? where.value + sums[r][j] : sums[r][j];
        }
    }
}

template <typename Element, float (*Widen)(std::uint16_t)>
void widen_all(const void* source, void* target, std::int64_t n) {
    const auto* from = static_cast<const Unaligned<std::uint16_t>*>(source);
    auto* to = static_cast<float*>(target);
    for (std::int64_t i = 0; i < n; ++i) to[i] = Widen(from[i]);
}

template <std::uint16_t (*Narrow)(float)>
void narrow_all(const void* source, void* target, std::int64_t n) {
    const auto* from = static_cast<const float*>(source);
    auto* to = static_cast<Unaligned<std::uint16_t>*>(target);
    for (std::int64_t i = 0; i < n; ++i) to[i] = Narrow(from[i]);
}

template <typename AType, typename BType, typename Accumulator>
GemmTiles tiles_table(DType dtype, DType a_type, DType accumulator) {
    GemmTiles tiles;
    tiles.dtype = dtype;
    tiles.a_type = a_type;
    tiles.accumulator = accumulator;
    tiles.max_rows = kRows;
    tiles.lanes = kLanes;
    tiles.vectors = 1;
    tiles.tile[0][0] = tile<AType, BType, Accumulator, 1>;
    tiles.tile[1][0] = tile<AType, BType, Accumulator, 2>;
    tiles.tile[2][0] = tile<AType, BType, Accumulator, 3>;
    tiles.tile[3][0] = tile<AType, BType, Accumulator, 4>;
    return tiles;
}

std::atomic<GemmTilesProvider> tiles_provider{nullptr};

}  // namespace

const GemmTiles* portable_gemm_tiles(DType dtype) {
    static const auto& tables = *new std::array<GemmTiles, kDTypeCount>([] {
        std::array<GemmTiles, kDTypeCount> all;
        auto at = [&](DType d) -> GemmTiles& { return all[static_cast<std::size_t>(d)]; };
        at(DType::kU8) = tiles_table<std::uint8_t, std::uint8_t, std::uint32_t>(DType::kU8, DType::kU8, DType::kI32);
        at(DType::kI8) = tiles_table<std::int8_t, std::int8_t, std::uint32_t>(DType::kI8, DType::kI8, DType::kI32);
        at(DType::kI32) = tiles_table<std::int32_t, std::int32_t, std::uint32_t>(DType::kI32, DType::kI32, DType::kI32);
        at(DType::kI64) = tiles_table<std::int64_t, std::int64_t, std::uint64_t>(DType::kI64, DType::kI64, DType::kI64);
        at(DType::kF32) = tiles_table<float, float, float>(DType::kF32, DType::kF32, DType::kF32);
        at(DType::kF64) = tiles_table<double, double, double>(DType::kF64, DType::kF64, DType::kF64);
        GemmTiles& half = at(DType::kF16) = tiles_table<float, Half, float>(DType::kF16, DType::kF32, DType::kF32);
        half.to_a_type = widen_all<Half, types::f32_from_f16>;
        half.from_accumulator = narrow_all<types::f16_from_f32>;
        GemmTiles& brain = at(DType::kBF16) = tiles_table<float, Brain, float>(DType::kBF16, DType::kF32, DType::kF32);
        brain.to_a_type = widen_all<Brain, types::f32_from_bf16>;
        brain.from_accumulator = narrow_all<types::bf16_from_f32>;
        return all;
    }());
    return dtype == DType::kBool ? nullptr : &tables[static_cast<std::size_t>(dtype)];
}

const GemmTiles* gemm_tiles(DType dtype) {
    if (GemmTilesProvider found = tiles_provider.load(std::memory_order_acquire)) {
        if (const GemmTiles* tiles = found(dtype)) return tiles;
    }
    return portable_gemm_tiles(dtype);
}

void install_gemm_tiles(GemmTilesProvider replacement) { tiles_provider.store(replacement, std::memory_order_release); }

}  // namespace flexor::runtime
