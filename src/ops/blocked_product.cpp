#include "ops/blocked_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/strided.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

// A block: 64 x 256 of a, 256 x 128 of b, 64 x 128 sums; 448 KiB in all. Inside it a and b lie in strips of four rows
// and of four columns, with what four steps of one sum need next to each other.
constexpr I kRows = 64, kColumns = 128, kDepth = 256;
constexpr I kStrip = 4;

I round_up(I value) { return (value + kStrip - 1) / kStrip * kStrip; }

// A run of elements of one stored type, converted on the way.
template <class Stored, class Number, class Convert>
void copy_run(const Tensor& tensor, I offset, I stride, I count, Number* to, I step, Convert convert) {
    const auto* from = tensor.data_as<const Unaligned<Stored>>() + offset;
    for (I i = 0; i < count; ++i) to[i * step] = static_cast<Number>(convert(from[i * stride].value));
}

// `count` elements from `offset` on, `stride` apart, converted to `dtype`, to every `step`th place.
template <class Number>
void copy_run(const Tensor& tensor, I offset, I stride, I count, DType dtype, Number* to, I step) {
    const auto plain = [](auto value) { return value; };
    if (tensor.dtype() == dtype) {
        switch (dtype) {
            case DType::kU8: return copy_run<std::uint8_t>(tensor, offset, stride, count, to, step, plain);
            case DType::kI8: return copy_run<std::int8_t>(tensor, offset, stride, count, to, step, plain);
            case DType::kI32: return copy_run<std::int32_t>(tensor, offset, stride, count, to, step, plain);
            case DType::kI64: return copy_run<std::int64_t>(tensor, offset, stride, count, to, step, plain);
            case DType::kF32: return copy_run<float>(tensor, offset, stride, count, to, step, plain);
            case DType::kF64: return copy_run<double>(tensor, offset, stride, count, to, step, plain);
            case DType::kF16:
                return copy_run<std::uint16_t>(tensor, offset, stride, count, to, step, types::f32_from_f16);
            case DType::kBF16:
                return copy_run<std::uint16_t>(tensor, offset, stride, count, to, step, types::f32_from_bf16);
            case DType::kBool: break;
        }
    }
    for (I i = 0; i < count; ++i) {
        const Element element = load_as(tensor, offset + i * stride, dtype);
        if constexpr (std::is_floating_point_v<Number>) {
            to[i * step] = element.real;
        } else {
            to[i * step] = static_cast<Number>(element.integer);
        }
    }
}

// Strips of `lines` lines of `depth` elements each; lines that fill the last strip are zero.
template <class Number>
void pack(const MatrixView& m, I first, I lines, I line_stride, I k, I depth, I k_stride, DType dtype, Number* to) {
    for (I line = 0; line < round_up(lines); ++line) {
        Number* place = to + line / kStrip * kStrip * depth + line % kStrip;
        if (line < lines) {
            copy_run(m.tensor, m.offset + (first + line) * line_stride + k * k_stride, k_stride, depth, dtype, place,
                     kStrip);
        } else {
            for (I i = 0; i < depth; ++i) place[i * kStrip] = 0;
        }
    }
}

// sums[4 rows, 4 columns] += a strip of a . a strip of b.
template <class Number>
void multiply_strips(const Number* a, const Number* b, I depth, Number* sums) {
    typedef Number Four __attribute__((vector_size(kStrip * sizeof(Number))));
    Four row0, row1, row2, row3;
    std::memcpy(&row0, sums, sizeof row0);
    std::memcpy(&row1, sums + kColumns, sizeof row1);
    std::memcpy(&row2, sums + 2 * kColumns, sizeof row2);
    std::memcpy(&row3, sums + 3 * kColumns, sizeof row3);
    for (I k = 0; k < depth; ++k, a += kStrip, b += kStrip) {
        Four right;
        std::memcpy(&right, b, sizeof right);
        row0 += a[0] * right;
        row1 += a[1] * right;
        row2 += a[2] * right;
        row3 += a[3] * right;
    }
    std::memcpy(sums, &row0, sizeof row0);
    std::memcpy(sums + kColumns, &row1, sizeof row1);
    std::memcpy(sums + 2 * kColumns, &row2, sizeof row2);
    std::memcpy(sums + 3 * kColumns, &row3, sizeof row3);
}

}  // namespace

BlockedProduct::BlockedProduct(DType dtype, bool (*stop_requested)())
    : dtype_(dtype),
      stop_requested_(stop_requested),
      scratch_(Tensor::empty(DType::kF64, {kRows * kDepth + kDepth * kColumns + kRows * kColumns})) {
    static_assert(sizeof(double) == sizeof(std::uint64_t));
}

template <class Number>
Expected<void> BlockedProduct::multiply(const MatrixView& a, const MatrixView& b, const ProductSizes& sizes,
                                        const TakeDot& take) {
    auto* const left = scratch_.data_as<Number>();
    Number* const right = left + kRows * kDepth;
    Number* const sums = right + kDepth * kColumns;
    for (I m = 0; m < sizes.rows; m += kRows) {
        const I rows = std::min(kRows, sizes.rows - m);
        for (I n = 0; n < sizes.columns; n += kColumns) {
            const I columns = std::min(kColumns, sizes.columns - n);
            std::fill_n(sums, round_up(rows) * kColumns, Number{0});
            for (I k = 0; k < sizes.depth; k += kDepth) {
                if (stop_requested_ != nullptr && stop_requested_()) return Diagnostic(DiagnosticId::kInterrupted);
                const I depth = std::min(kDepth, sizes.depth - k);
                pack(a, m, rows, a.row_stride, k, depth, a.column_stride, dtype_, left);
                pack(b, n, columns, b.column_stride, k, depth, b.row_stride, dtype_, right);
                for (I i = 0; i < rows; i += kStrip) {
                    for (I j = 0; j < columns; j += kStrip)
                        multiply_strips(left + i * depth, right + j * depth, depth, sums + i * kColumns + j);
                }
            }
            for (I i = 0; i < rows; ++i) {
                for (I j = 0; j < columns; ++j) {
                    const Number sum = sums[i * kColumns + j];
                    if constexpr (std::is_floating_point_v<Number>) {
                        take(m + i, n + j, {sum, 0});
                    } else {
                        take(m + i, n + j, {0, static_cast<I>(sum)});
                    }
                }
            }
        }
    }
    return {};
}

Expected<void> BlockedProduct::run(const MatrixView& a, const MatrixView& b, const ProductSizes& sizes,
                                   const TakeDot& take) {
    if (!scratch_.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("blocks of a product");
    return is_floating(dtype_) ? multiply<double>(a, b, sizes, take) : multiply<std::uint64_t>(a, b, sizes, take);
}

}  // namespace flexor::ops
