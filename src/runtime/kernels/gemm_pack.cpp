#include "runtime/kernels/gemm_pack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "support/check.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

const char* offset(const void* base, std::int64_t elements, std::size_t size) {
    return static_cast<const char*>(base) + elements * static_cast<std::int64_t>(size);
}

// Element of a type of the same size as the dtype: packing moves bits.
template <typename Bits>
void pack_panel_bits(const GemmTiles& tiles, const void* source_in, std::int64_t rs, std::int64_t cs, std::int64_t k,
                     std::int64_t columns, std::int64_t width, void* panel_in) {
    const auto* source = static_cast<const Unaligned<Bits>*>(source_in);
    auto* panel = static_cast<Bits*>(panel_in);
    if (tiles.pairs) {
        for (std::int64_t i = 0; i < k; i += 2) {
            Bits* out = panel + i * width;
            bool second = i + 1 < k;
            const Unaligned<Bits>* low = source + i * rs;
            const Unaligned<Bits>* high = second ? low + rs : low;
            for (std::int64_t j = 0; j < columns; ++j) {
                out[2 * j] = low[j * cs];
                out[2 * j + 1] = second ? high[j * cs].value : Bits{0};
            }
            std::fill(out + 2 * columns, out + 2 * width, Bits{0});
        }
        return;
    }
    if (cs == 1) {
        for (std::int64_t i = 0; i < k; ++i) {
            std::memcpy(panel + i * width, source + i * rs, static_cast<std::size_t>(columns) * sizeof(Bits));
            std::fill(panel + i * width + columns, panel + (i + 1) * width, Bits{0});
        }
        return;
    }
    // Blocks of K, so that the panel's rows stay in the first cache while the columns are walked.
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t i0 = 0; i0 < k; i0 += kBlock) {
        std::int64_t i1 = std::min(k, i0 + kBlock);
        for (std::int64_t j = 0; j < columns; ++j) {
            const Unaligned<Bits>* column = source + j * cs;
            for (std::int64_t i = i0; i < i1; ++i) panel[i * width + j] = column[i * rs];
        }
        for (std::int64_t i = i0; i < i1; ++i) std::fill(panel + i * width + columns, panel + (i + 1) * width, Bits{0});
    }
}

template <typename Target, typename Source>
void store_converted(const Source* sums, std::int64_t n, void* target_in, std::int64_t stride) {
    auto* target = static_cast<Unaligned<Target>*>(target_in);
    for (std::int64_t j = 0; j < n; ++j) target[j * stride] = static_cast<Target>(sums[j]);
}

template <typename Source>
void store_row_from(const Source* sums, std::int64_t n, void* target, std::int64_t stride, DType dtype) {
    switch (dtype) {
        case DType::kU8: return store_converted<std::uint8_t>(sums, n, target, stride);
        case DType::kI8: return store_converted<std::int8_t>(sums, n, target, stride);
        case DType::kI32: return store_converted<std::int32_t>(sums, n, target, stride);
        case DType::kI64: return store_converted<std::int64_t>(sums, n, target, stride);
        case DType::kF32: return store_converted<float>(sums, n, target, stride);
        case DType::kF64: return store_converted<double>(sums, n, target, stride);
        case DType::kF16:
            for (std::int64_t j = 0; j < n; ++j) {
                static_cast<Unaligned<std::uint16_t>*>(target)[j * stride] =
                    types::f16_from_f32(static_cast<float>(sums[j]));
            }
            return;
        case DType::kBF16:
            for (std::int64_t j = 0; j < n; ++j) {
                static_cast<Unaligned<std::uint16_t>*>(target)[j * stride] =
                    types::bf16_from_f32(static_cast<float>(sums[j]));
            }
            return;
        case DType::kBool: break;
    }
    FLEXOR_UNREACHABLE();
}

template <typename Bits>
void gather_rows(const void* source_in, std::int64_t rs, std::int64_t cs, std::int64_t rows, std::int64_t k,
                 void* target_in) {
    const auto* source = static_cast<const Unaligned<Bits>*>(source_in);
    auto* target = static_cast<Bits*>(target_in);
    if (cs == 1) {
        for (std::int64_t r = 0; r < rows; ++r) {
            std::memcpy(target + r * k, source + r * rs, static_cast<std::size_t>(k) * sizeof(Bits));
        }
        return;
    }
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t i0 = 0; i0 < k; i0 += kBlock) {
        std::int64_t i1 = std::min(k, i0 + kBlock);
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t i = i0; i < i1; ++i) target[r * k + i] = source[r * rs + i * cs];
        }
    }
}

template <float (*Widen)(std::uint16_t)>
void widen_rows(const void* source_in, std::int64_t rs, std::int64_t cs, std::int64_t rows, std::int64_t k,
                float* target) {
    const auto* source = static_cast<const Unaligned<std::uint16_t>*>(source_in);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t i = 0; i < k; ++i) target[r * k + i] = Widen(source[r * rs + i * cs]);
    }
}

}  // namespace

void pack_panel(const GemmTiles& tiles, const void* source, std::int64_t rs, std::int64_t cs, std::int64_t k,
                std::int64_t columns, std::int64_t width, void* panel) {
    std::size_t size = dtype_size(tiles.dtype);
    if (rs == 1 && cs != 1 && tiles.pack_columns) {
        tiles.pack_columns(source, cs, panel, width, columns, k);
        if (tiles.pairs && (k & 1)) {
            auto* last = static_cast<char*>(panel) + (k - 1) * width * static_cast<std::int64_t>(size);
            pack_panel_bits<std::uint16_t>(tiles, offset(source, k - 1, size), 1, cs, 1, columns, width, last);
        }
        return;
    }
    if (cs == 1 && tiles.pairs && tiles.pack_row_pairs) {
        std::int64_t even = k & ~std::int64_t{1};
        tiles.pack_row_pairs(source, rs, panel, width, columns, even);
        if (even < k) {
            auto* last = static_cast<char*>(panel) + even * width * static_cast<std::int64_t>(size);
            pack_panel_bits<std::uint16_t>(tiles, offset(source, even * rs, size), rs, 1, 1, columns, width, last);
        }
        return;
    }
    switch (size) {
        case 1: return pack_panel_bits<std::uint8_t>(tiles, source, rs, cs, k, columns, width, panel);
        case 2: return pack_panel_bits<std::uint16_t>(tiles, source, rs, cs, k, columns, width, panel);
        case 4: return pack_panel_bits<std::uint32_t>(tiles, source, rs, cs, k, columns, width, panel);
        default: return pack_panel_bits<std::uint64_t>(tiles, source, rs, cs, k, columns, width, panel);
    }
}

void pack_a_rows(const GemmTiles& tiles, const void* source, std::int64_t rs, std::int64_t cs, std::int64_t rows,
                 std::int64_t k, void* target) {
    std::size_t size = dtype_size(tiles.dtype);
    if (tiles.a_type != tiles.dtype) {  // 16-bit floats, computed in f32
        auto* floats = static_cast<float*>(target);
        if (cs == 1 && tiles.to_a_type) {
            for (std::int64_t r = 0; r < rows; ++r) tiles.to_a_type(offset(source, r * rs, size), floats + r * k, k);
        } else if (tiles.dtype == DType::kF16) {
            widen_rows<types::f32_from_f16>(source, rs, cs, rows, k, floats);
        } else {
            widen_rows<types::f32_from_bf16>(source, rs, cs, rows, k, floats);
        }
        return;
    }
    if (rs == 1 && cs != 1 && tiles.pack_columns && !tiles.pairs) {
        return tiles.pack_columns(source, cs, target, k, k, rows);  // a transposition
    }
    switch (size) {
        case 1: return gather_rows<std::uint8_t>(source, rs, cs, rows, k, target);
        case 2: return gather_rows<std::uint16_t>(source, rs, cs, rows, k, target);
        case 4: return gather_rows<std::uint32_t>(source, rs, cs, rows, k, target);
        default: return gather_rows<std::uint64_t>(source, rs, cs, rows, k, target);
    }
}

void store_row(const GemmTiles& tiles, const void* sums, std::int64_t n, void* target, std::int64_t stride,
               DType dtype) {
    if (stride == 1 && dtype == tiles.accumulator) {
        std::memcpy(target, sums, static_cast<std::size_t>(n) * dtype_size(dtype));
        return;
    }
    if (stride == 1 && dtype == tiles.dtype && tiles.from_accumulator) return tiles.from_accumulator(sums, target, n);
    switch (tiles.accumulator) {
        case DType::kF32: return store_row_from(static_cast<const float*>(sums), n, target, stride, dtype);
        case DType::kF64: return store_row_from(static_cast<const double*>(sums), n, target, stride, dtype);
        case DType::kI32: return store_row_from(static_cast<const std::int32_t*>(sums), n, target, stride, dtype);
        default: return store_row_from(static_cast<const std::int64_t*>(sums), n, target, stride, dtype);
    }
}

}  // namespace flexor::runtime
