#include "codegen/triton/row_launch.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace flexor::codegen::triton {

using loopir::Access;
using loopir::Body;
using loopir::IntRef;
using loopir::Node;
using loopir::ScalarOp;

namespace {

constexpr std::int64_t kTile = 1024;         // elements of a tile, if there are so many
constexpr std::int64_t kTransposeSide = 32;  // of a tile that is contiguous along either axis, depending on the access
constexpr std::int64_t kElementsPerWarp = 256;
constexpr std::int64_t kMostWarps = 16;
// Far enough below 2^31 for what a tile adds to an index.
constexpr std::int64_t kNarrowEnd = (std::int64_t{1} << 31) - (std::int64_t{1} << 17);

std::int64_t value_of(const IntRef& ref, const std::int64_t* params) {
    return ref.is_constant ? ref.value : params[ref.value];
}

std::int64_t power_of_two(std::int64_t n, std::int64_t most) {
    return n >= most
               ? most
               : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

// Whether numbers and addresses fit in 32 bits.
class AddressRange {
public:
    bool fits() const { return fits_; }
    void count(std::int64_t number) { fits_ = fits_ && number < kNarrowEnd; }
    void begin() { sum_ = 0; }
    // A part of the address since begin(): at most `steps` of `stride`.
    void add(std::int64_t steps, std::int64_t stride) {
        std::int64_t product = 0;
        fits_ = fits_ && !__builtin_mul_overflow(std::max<std::int64_t>(steps, 0), stride, &product) &&
                product > -kNarrowEnd && product < kNarrowEnd;
        if (fits_) sum_ += product < 0 ? -product : product;
        fits_ = fits_ && sum_ < kNarrowEnd;
    }

private:
    bool fits_ = true;
    std::int64_t sum_ = 0;
};

void add_accesses(AddressRange& range, const Body& body, const std::vector<std::int64_t>& extents,
                  const std::int64_t* params) {
    for_each_access(body, [&](const Access& access) {
        range.begin();
        range.add(1, value_of(access.offset, params));
        for (std::uint32_t dim = 0; dim < body.rank(); ++dim)
            range.add(extents[dim] - 1, value_of(access.strides[dim], params));
        for (const loopir::GatherTerm& gather : access.gathers)
            range.add(value_of(gather.extent, params), value_of(gather.stride, params));
    });
}

class Planner {
public:
    Planner(const RowLayout& layout, const std::int64_t* params)
        : layout_(layout), body_(layout.body), params_(params) {
        for (const IntRef& extent : body_.extents) out_.extents.push_back(value_of(extent, params));
    }

    RowLaunch plan() {
        if (std::any_of(out_.extents.begin(), out_.extents.begin() + body_.parallel,
                        [](std::int64_t e) { return e <= 0; }))
            return out_;
        if (layout_.elementwise && out_.extents.back() <= 0) return out_;
        empty_rows();
        merge_dims();
        choose_tile();
        count_tiles();
        out_.narrow = fits_in_32_bits();
        return out_;
    }

private:
    // Rows of no elements keep that along axis 1 alone.
    void empty_rows() {
        const auto rows = out_.extents.begin() + body_.parallel;
        if (std::none_of(rows, out_.extents.end(), [](std::int64_t e) { return e <= 0; })) return;
        std::fill(rows, out_.extents.end(), 1);
        out_.extents[layout_.axis_dim[1]] = 0;
    }

    void merge_dims() {
        std::vector<bool> fixed(body_.rank(), false);
        for (const Node& node : body_.nodes) {
            if (node.op == ScalarOp::kIndex) fixed[node.index] = true;
        }
        for (std::uint32_t dim = 0; dim + 1 < body_.rank(); ++dim) {
            const bool same_space = layout_.elementwise || (dim < body_.parallel) == (dim + 1 < body_.parallel);
            if (!same_space || fixed[dim] || fixed[dim + 1] || out_.extents[dim] == 1) continue;
            bool one = true;
            for_each_access(body_, [&](const Access& access) {
                const std::int64_t outer = value_of(access.strides[dim], params_);
                const std::int64_t inner = value_of(access.strides[dim + 1], params_);
                std::int64_t step = 0;
                one = one && !__builtin_mul_overflow(inner, out_.extents[dim + 1], &step) && step == outer;
            });
            std::int64_t merged = 0;
            if (!one || __builtin_mul_overflow(out_.extents[dim], out_.extents[dim + 1], &merged)) continue;
            out_.extents[dim + 1] = merged;
            out_.extents[dim] = 1;
        }
    }

    void choose_tile() {
        const std::int64_t along[2] = {out_.extents[layout_.axis_dim[0]], out_.extents[layout_.axis_dim[1]]};
        std::int64_t side[2];
        const int* contiguous = layout_.contiguous;
        const bool turned = layout_.elementwise ? contiguous[0] > 0 : contiguous[0] > contiguous[1];
        if (turned && along[0] > 1) {
            side[0] = power_of_two(along[0], kTransposeSide);
            side[1] = power_of_two(along[1], kTile / side[0]);
            if (layout_.elementwise) side[0] = power_of_two(along[0], kTile / side[1]);
        } else {
            side[1] = power_of_two(along[1], layout_.elementwise ? kTile : kResidentRow);
            side[0] = power_of_two(along[0], std::max<std::int64_t>(kTile / side[1], 1));
        }
        const bool whole = side[1] >= along[1] && std::all_of(layout_.loops.begin(), layout_.loops.end(),
                                                              [&](std::uint32_t d) { return out_.extents[d] == 1; });
        if (!layout_.elementwise && !whole) {
            out_.form = RowForm::kLooped;
            side[1] = std::min(side[1], 2 * kTile / side[0]);
        }
        for (int axis = 0; axis < 2; ++axis) out_.block[axis] = static_cast<int>(side[axis]);
        out_.warps = static_cast<int>(power_of_two(side[0] * side[1] / kElementsPerWarp, kMostWarps));
    }

    void count_tiles() {
        out_.tiles = ceil_div(out_.extents[layout_.axis_dim[0]], out_.block[0]);
        if (layout_.elementwise)
            out_.tiles = saturated_product(out_.tiles, ceil_div(out_.extents[layout_.axis_dim[1]], out_.block[1]));
        for (const std::uint32_t dim : layout_.outer) out_.tiles = saturated_product(out_.tiles, out_.extents[dim]);
    }

    bool fits_in_32_bits() const {
        AddressRange range;
        range.count(out_.tiles);
        std::int64_t rows = 1;
        for (std::uint32_t dim = 0; dim < body_.rank(); ++dim) {
            range.count(out_.extents[dim]);
            if (dim >= body_.parallel) rows = saturated_product(rows, out_.extents[dim]);
        }
        range.count(rows);
        add_accesses(range, body_, out_.extents, params_);
        return range.fits();
    }

    const RowLayout& layout_;
    const Body& body_;
    const std::int64_t* params_;
    RowLaunch out_;
};

}  // namespace

RowLaunch plan_launch(const RowLayout& layout, const std::int64_t* params) { return Planner(layout, params).plan(); }

RowLaunch plan_contraction(const loopir::Contraction& c, const RowLayout& layout, const std::int64_t* params) {
    RowLaunch out;
    for (const IntRef& extent : layout.body.extents) out.extents.push_back(value_of(extent, params));
    const std::int64_t k = value_of(c.k, params);
    const std::int64_t m = out.extents[layout.axis_dim[0]], n = out.extents[layout.axis_dim[1]];
    const bool empty = std::any_of(out.extents.begin(), out.extents.end(), [](std::int64_t e) { return e <= 0; });
    out.extents.push_back(std::max<std::int64_t>(k, 0));
    if (empty) return out;
    const bool halves = dtype_size(c.a_dtype) == 2 && c.a_dtype == c.b_dtype;
    const std::int64_t most = !sums_in_blocks(c) ? 32 : halves ? 128 : 64;
    const std::int64_t least = 16;  // of a side of a matrix product
    out.block[0] = static_cast<int>(std::max(power_of_two(m, most), least));
    out.block[1] = static_cast<int>(std::max(power_of_two(n, most), least));
    out.block_k = sums_in_blocks(c) ? (halves ? 64 : 32) : 1;
    out.warps = out.block[0] * out.block[1] >= 128 * 128 ? 8 : 4;
    out.tiles = saturated_product(ceil_div(m, out.block[0]), ceil_div(n, out.block[1]));
    for (const std::uint32_t dim : layout.outer) out.tiles = saturated_product(out.tiles, out.extents[dim]);

    AddressRange range;
    range.count(out.tiles);
    for (const std::int64_t extent : out.extents) range.count(extent);
    add_accesses(range, layout.body, out.extents, params);
    const auto add = [&](const loopir::MatrixOperand& matrix, std::int64_t rows, std::int64_t columns) {
        range.begin();
        range.add(1, value_of(matrix.offset, params));
        for (std::size_t dim = 0; dim < matrix.batch_strides.size(); ++dim)
            range.add(out.extents[dim] - 1, value_of(matrix.batch_strides[dim], params));
        range.add(rows, value_of(matrix.row_stride, params));
        range.add(columns, value_of(matrix.col_stride, params));
    };
    add(c.a, m, k);
    add(c.b, k, n);
    out.narrow = range.fits();
    return out;
}

}  // namespace flexor::codegen::triton
