// Machine code that was compiled for other sizes, in the place of what is not there yet.
#include <algorithm>

#include "codegen/triton/address_range.h"
#include "codegen/triton/generator.h"

namespace flexor::codegen::triton {

using loopir::KernelKind;

namespace {

bool says_even(const std::string& constant) { return constant.starts_with("EVEN"); }

// Whether the two agree in all that chooses the text and the tile.
bool same_parts(const LaunchPlan& a, const LaunchPlan& b) {
    if (a.form != b.form || a.constants.size() != b.constants.size()) return false;
    return std::ranges::equal(a.constants, b.constants, [](const auto& one, const auto& other) {
        return !one.first.starts_with("PARTS") || one == other;
    });
}

// `planned` with what `made` assumes, if that holds.
std::optional<LaunchPlan> adopt(LaunchPlan planned, const LaunchPlan& made) {
    if (planned.form != made.form || planned.chunks != made.chunks ||
        planned.constants.size() != made.constants.size() || (made.narrow && !planned.narrow))
        return std::nullopt;
    for (std::size_t i = 0; i < made.constants.size(); ++i) {
        const auto& [name, assumed] = made.constants[i];
        auto& [own_name, holds] = planned.constants[i];
        if (name != own_name || (says_even(name) ? assumed != 0 && holds == 0 : assumed != holds)) return std::nullopt;
        holds = assumed;
    }
    planned.warps = made.warps;
    planned.stages = made.stages;
    planned.narrow = made.narrow;
    return planned;
}

}  // namespace

std::optional<LaunchPlan> Generator::plan_as(const LaunchPlan& made, const LaunchPlan& wanted,
                                             const std::int64_t* params, int multiprocessors) const {
    Forced forced;
    GemmTile gemm;
    AttentionTile attention;
    const auto constant = [&](const char* name) { return static_cast<int>(made.constant(name)); };
    switch (kernel_.kind) {
        case KernelKind::kRow:
            // Every part of a row has elements of its own.
            if (made.form == Form::kSplit && !same_parts(made, wanted)) return std::nullopt;
            if (made.form == Form::kResident && !layout_->elementwise) {
                const auto one = [&](std::uint32_t dim) { return wanted.extents[dim] == 1; };
                if (wanted.extents[layout_->axis_dim[1]] > made.constant("BLOCK_1") * made.chunks ||
                    !std::ranges::all_of(layout_->loops, one))
                    return std::nullopt;
            }
            forced.row.like = &made;
            break;
        case KernelKind::kContraction:
            gemm = {constant("BLOCK_0"), constant("BLOCK_1"), constant("BLOCK_K"), made.warps,
                    made.stages,         constant("SPLIT"),   constant("GROUP"),   constant("BLOCK_2")};
            forced.gemm = &gemm;
            break;
        default:
            attention = {constant("BLOCK_0"), constant("BLOCK_1"), made.warps, made.stages, constant("SPLIT")};
            forced.attention = &attention;
            break;
    }
    auto planned = plan(params, multiprocessors, forced);
    if (!planned) return std::nullopt;
    return adopt(*std::move(planned), made);
}

bool Generator::alignment_matters(const Argument& argument) const {
    switch (argument.kind) {
        case ArgumentKind::kFault:
        case ArgumentKind::kNumber: return false;
        case ArgumentKind::kExtent: break;
        default: return true;
    }
    if (kernel_.kind == KernelKind::kAttention) return argument.index >= 5;  // widths of heads
    const RowLayout& layout = *layout_;
    if (argument.index == layout.axis_dim[1]) return layout.contiguous[1] > 0;
    if (kernel_.kind == KernelKind::kContraction && argument.index >= layout.body.rank()) return true;  // k
    if (argument.index != layout.axis_dim[0]) return false;
    return layout.contiguous[0] > 0 ||
           (kernel_.kind == KernelKind::kContraction && kernel_.contraction->a.row_stride.is(1));
}

LaunchPlan Generator::general(const LaunchPlan& wanted, const std::int64_t* params, int multiprocessors) const {
    LaunchPlan out = wanted;
    if (kernel_.kind == KernelKind::kRow && !layout_->elementwise && wanted.form != Form::kLooped) {
        Forced walked;
        walked.row.walk = true;
        walked.row.parts = 1;
        if (auto planned = plan(params, multiprocessors, walked)) out = *std::move(planned);
    }
    for (auto& [name, value] : out.constants) {
        if (says_even(name)) value = 0;
    }
    return out;
}

}  // namespace flexor::codegen::triton
