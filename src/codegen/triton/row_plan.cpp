#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/triton/address_range.h"
#include "codegen/triton/launch_plan.h"
#include "support/check.h"

namespace flexor::codegen::triton {

using loopir::Access;
using loopir::Body;
using loopir::IntRef;
using loopir::Node;
using loopir::ScalarOp;

namespace {

constexpr std::int64_t kTransposeSide = 32;  // of a tile that is contiguous along either axis, depending on the access
constexpr std::int64_t kMostWarps = 16;
constexpr int kThreads = 2048;             // of a multiprocessor
constexpr std::int64_t kTile = 4096;       // elements of a tile, if there are so many
constexpr std::int64_t kShortTile = 1024;  // of rows shorter than
constexpr std::int64_t kLongRow = 4096;
constexpr std::int64_t kHalfRow = 512;  // up to which a warp has a row and more
constexpr std::int64_t kSplitTile = 2048;
constexpr int kChunks = 3;                  // of a row in several blocks
constexpr std::int64_t kLeastChunked = 64;  // a power of two that holds such a row
constexpr std::int64_t kPartOfRow = 8192;   // elements that a program must find in a part of a row
constexpr std::int64_t kMostParts = 1024;
constexpr std::int64_t kPartials = 8192;  // of a tile, which one program joins

class Planner {
public:
    Planner(const RowLayout& layout, const PlanValues& params, int multiprocessors, const RowTuning& tuning)
        : layout_(layout), body_(layout.body), params_(params), multiprocessors_(multiprocessors), tuning_(tuning) {
        for (const IntRef& extent : body_.extents) {
            out_.extents.push_back(params.most_of(extent));
            now_.push_back(params.now_of(extent));
            divisors_.push_back(params.divisor_of(extent));
        }
    }

    LaunchPlan plan() {
        const bool empty = std::any_of(out_.extents.begin(), out_.extents.begin() + body_.parallel,
                                       [](std::int64_t e) { return e <= 0; }) ||
                           (layout_.elementwise && out_.extents.back() <= 0);
        if (!empty) {
            empty_rows();
            merge_dims();
        }
        choose_tile();
        if (!empty) count_tiles();
        if (!empty && !layout_.elementwise) split_rows();
        finish();
        out_.narrow = !empty && fits_in_32_bits();
        return out_;
    }

private:
    // Rows of no elements keep that along axis 1 alone.
    void empty_rows() {
        const auto rows = out_.extents.begin() + body_.parallel;
        if (std::none_of(rows, out_.extents.end(), [](std::int64_t e) { return e <= 0; })) return;
        std::fill(rows, out_.extents.end(), 1);
        out_.extents[layout_.axis_dim[1]] = 0;
        now_ = divisors_ = out_.extents;
    }

    void merge_dims() {
        std::vector<bool> fixed(body_.rank(), false);
        for (const Node& node : body_.nodes) {
            if (node.op == ScalarOp::kIndex) fixed[node.index] = true;
        }
        for (std::uint32_t dim = 0; dim + 1 < body_.rank(); ++dim) {
            const bool same_space = layout_.elementwise || (dim < body_.parallel) == (dim + 1 < body_.parallel);
            if (!same_space || fixed[dim] || fixed[dim + 1] || now_[dim] == 1) continue;
            bool one = true;
            for_each_access(body_, [&](const Access& access) {
                const std::int64_t outer = params_.now_of(access.strides[dim]);
                const std::int64_t inner = params_.now_of(access.strides[dim + 1]);
                std::int64_t step = 0;
                one = one && !__builtin_mul_overflow(inner, now_[dim + 1], &step) && step == outer;
            });
            std::int64_t merged = 0;
            if (!one || __builtin_mul_overflow(out_.extents[dim], out_.extents[dim + 1], &merged)) continue;
            out_.extents[dim + 1] = merged;
            out_.extents[dim] = 1;
            now_[dim + 1] *= now_[dim];
            divisors_[dim + 1] = saturated_product(divisors_[dim], divisors_[dim + 1]);
            now_[dim] = divisors_[dim] = 1;
            out_.merged.push_back(dim);
        }
    }

    void choose_tile() {
        if (tuning_.like != nullptr) {
            const LaunchPlan& like = *tuning_.like;
            out_.form = like.form;
            out_.chunks = like.chunks;
            side_[0] = like.constant("BLOCK_0");
            side_[1] = like.constant("BLOCK_1");
            return;
        }
        const std::int64_t along[2] = {out_.extents[layout_.axis_dim[0]], out_.extents[layout_.axis_dim[1]]};
        const int* contiguous = layout_.contiguous;
        const bool turned = layout_.elementwise ? contiguous[0] > 0 : contiguous[0] > contiguous[1];
        // Short rows run best in small tiles, of which a multiprocessor holds many.
        const bool few = !layout_.elementwise && !turned && along[1] < kLongRow;
        if (tuning_.tile == 0) tuning_.tile = few ? kShortTile : kTile;
        // Few elements are spread over many programs.
        std::int64_t all = 1;
        for (const std::int64_t extent : out_.extents) all = saturated_product(all, extent);
        const std::int64_t enough = power_of_two(all / (4 * multiprocessors_), tuning_.tile);
        const std::int64_t tile = std::max<std::int64_t>(enough, std::min<std::int64_t>(tuning_.tile, kShortTile));
        if (turned && along[0] > 1) {
            const std::int64_t first = layout_.elementwise ? kTransposeSide : 4 * kTransposeSide;
            side_[0] = power_of_two(along[0], first);
            side_[1] = power_of_two(along[1], tile / side_[0]);
            if (layout_.elementwise) side_[0] = power_of_two(along[0], tile / side_[1]);
        } else {
            side_[1] = power_of_two(along[1], layout_.elementwise ? tile : tuning_.resident);
            if (in_chunks(along[1])) {
                out_.chunks = kChunks;
                side_[1] /= kChunks + 1;
            }
            side_[0] = power_of_two(along[0], std::max<std::int64_t>(tile / (side_[1] * out_.chunks), 1));
            side_[0] = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(side_[0])));
        }
        if (layout_.elementwise) side_[1] = std::min(side_[1], tuning_.most_1);
        side_[0] = std::min(side_[0], tuning_.most_0);
        const bool whole =
            side_[1] * out_.chunks >= along[1] && std::all_of(layout_.loops.begin(), layout_.loops.end(),
                                                              [&](std::uint32_t d) { return out_.extents[d] == 1; });
        if (!layout_.elementwise && (!whole || tuning_.walk)) {
            out_.form = Form::kLooped;
            out_.chunks = 1;
            side_[1] = std::min({side_[1], std::max<std::int64_t>(tile / side_[0], 1), tuning_.most_1});
        }
    }

    // Whether three quarters of the power of two hold the row, and the rest would idle.
    bool in_chunks(std::int64_t row) const {
        if (layout_.elementwise || tuning_.chunks == 1 || !may_chunk(layout_) || row > tuning_.resident) return false;
        return side_[1] >= kLeastChunked && row <= side_[1] / 4 * 3;
    }

    void count_tiles() {
        out_.tiles = ceil_div(out_.extents[layout_.axis_dim[0]], side_[0]);
        if (layout_.elementwise)
            out_.tiles = saturated_product(out_.tiles, ceil_div(out_.extents[layout_.axis_dim[1]], side_[1]));
        for (const std::uint32_t dim : layout_.outer) out_.tiles = saturated_product(out_.tiles, out_.extents[dim]);
    }

    // Few long rows are shared by several programs. The outermost loop is shared first.
    void split_rows() {
        if (tuning_.like != nullptr) {
            if (out_.form != Form::kSplit) return;
            parts_ = tuning_.like->constant("PARTS");
            if (!layout_.loops.empty()) parts_outer_ = tuning_.like->constant("PARTS_OUTER");
            share_tiles();
            return;
        }
        if (!may_split(layout_)) return;
        std::int64_t row = 1;
        for (std::uint32_t dim = body_.parallel; dim < body_.rank(); ++dim)
            row = saturated_product(row, out_.extents[dim]);
        const std::int64_t least = std::max<std::int64_t>(kPartOfRow / side_[0], 2 * side_[1]);
        std::int64_t wanted = std::min(4 * multiprocessors_ / out_.tiles, row / std::max<std::int64_t>(least, 1));
        if (out_.form == Form::kResident && tuning_.parts == 0) return;
        if (tuning_.parts > 0) wanted = tuning_.parts;
        wanted = std::min({wanted, kMostParts, std::max<std::int64_t>(kPartials / side_[0], 1)});
        if (wanted < 2) return;
        if (tuning_.parts == 0) side_[1] = std::min(side_[1], std::max<std::int64_t>(kSplitTile / side_[0], 1));
        std::int64_t parts = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
        out_.form = Form::kSplit;
        if (!layout_.loops.empty()) {
            parts_outer_ = std::min(parts, power_of_two(out_.extents[layout_.loops[0]], parts));
            parts /= parts_outer_;
        }
        parts_ = parts;
        share_tiles();
    }

    void share_tiles() {
        const std::int64_t all = parts_ * parts_outer_;
        out_.counters = out_.tiles;
        for (const DType dtype : partial_dtypes(layout_))
            out_.scratch.push_back(
                saturated_product(out_.tiles, side_[0] * all * static_cast<std::int64_t>(dtype_size(dtype))));
        out_.tiles = saturated_product(out_.tiles, all);
    }

    void finish() {
        const std::int64_t elements = side_[0] * side_[1] * out_.chunks;
        const bool rows = !layout_.elementwise && out_.form == Form::kResident;
        if (tuning_.elements_per_thread == 0) {
            const std::int64_t row = side_[1] * out_.chunks;
            tuning_.elements_per_thread = 16;
            if (rows) tuning_.elements_per_thread = row > kHalfRow && row < kLongRow / 4 * 3 ? 16 : 32;
            if (out_.form == Form::kSplit) tuning_.elements_per_thread = 8;
        }
        const std::int64_t warps = power_of_two(elements / tuning_.elements_per_thread / 32, kMostWarps);
        out_.warps = tuning_.like != nullptr ? tuning_.like->warps : static_cast<int>(warps);
        // A tile that is read once has nothing to share with the next one.
        const bool once = layout_.elementwise || out_.form == Form::kResident;
        const int threads = tuning_.threads != 0 ? tuning_.threads : once ? -1 : kThreads;
        out_.per_processor = threads < 0 ? 0 : std::max(threads / (32 * out_.warps), 1);
        if (out_.tiles > std::numeric_limits<std::int32_t>::max()) out_.per_processor = kThreads / (32 * out_.warps);
        const auto even = [&](int axis) {
            const std::int64_t extent = divisors_[layout_.axis_dim[axis]];
            return std::int64_t{extent > 0 && extent % (side_[axis] * (axis == 1 ? out_.chunks : 1)) == 0};
        };
        out_.constants = {{"BLOCK_0", side_[0]}, {"BLOCK_1", side_[1]}, {"STAGES", std::max(tuning_.stages, 1)}};
        if (out_.form == Form::kSplit) {
            out_.constants.emplace_back("PARTS", parts_);
            if (!layout_.loops.empty()) out_.constants.emplace_back("PARTS_OUTER", parts_outer_);
        }
        out_.constants.emplace_back("EVEN_0", even(0));
        out_.constants.emplace_back("EVEN_1", even(1));
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
        add_accesses(range, body_, out_.extents, params_.most);
        return range.fits();
    }

    const RowLayout& layout_;
    const Body& body_;
    PlanValues params_;
    std::vector<std::int64_t> now_, divisors_;  // of the extents
    int multiprocessors_;
    RowTuning tuning_;
    std::int64_t side_[2] = {1, 1};
    std::int64_t parts_ = 1, parts_outer_ = 1;
    LaunchPlan out_;
};

}  // namespace

std::int64_t LaunchPlan::constant(const std::string& name) const {
    for (const auto& [known, value] : constants) {
        if (known == name) return value;
    }
    FLEXOR_UNREACHABLE();
}

std::int64_t LaunchPlan::programs(int multiprocessors) const {
    if (per_processor == 0) return tiles;
    return std::min(tiles, std::int64_t{per_processor} * multiprocessors);
}

LaunchPlan plan_row(const RowLayout& layout, const PlanValues& params, int multiprocessors, const RowTuning& tuning) {
    return Planner(layout, params, multiprocessors, tuning).plan();
}

}  // namespace flexor::codegen::triton
