#pragma once
// What a launch needs, or all launches of a graph: tile, form, and the values of the extents, from the parameters.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/triton/gemm_tiles.h"
#include "codegen/triton/kernel_source.h"
#include "codegen/triton/row_layout.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

// The parameters of one launch; or of many, of which `most` bounds the magnitudes and `divisors` divides the values, planned
// from the sight of one of them: no extent of any is below 1.
struct PlanValues {
    const std::int64_t* most;
    const std::int64_t* now = nullptr;       // null: most
    const std::int64_t* divisors = nullptr;  // null: most
    PlanValues(const std::int64_t* params) : most(params) {}
    PlanValues(const std::int64_t* bound, const std::int64_t* seen, const std::int64_t* dividing)
        : most(bound), now(seen), divisors(dividing) {}

    std::int64_t most_of(const loopir::IntRef& ref) const { return ref.is_constant ? ref.value : most[ref.value]; }
    std::int64_t now_of(const loopir::IntRef& ref) const {
        return ref.is_constant ? ref.value : (now == nullptr ? most : now)[ref.value];
    }
    std::int64_t divisor_of(const loopir::IntRef& ref) const {
        return ref.is_constant ? ref.value : (divisors == nullptr ? most : divisors)[ref.value];
    }
};

// Form, chunks, constants, warps, stages and width of indices choose what is compiled.
struct LaunchPlan {
    Form form = Form::kResident;
    int chunks = 1;                                               // blocks of a resident row
    std::vector<std::pair<std::string, std::int64_t>> constants;  // the source's constexpr arguments, in order
    int warps = 4;
    int stages = 3;
    bool narrow = false;                // every index and address fits in 32 bits
    std::vector<std::int64_t> extents;  // values of ArgumentKind::kExtent, or their bounds
    std::vector<std::uint32_t> merged;  // dims whose extent was multiplied into the next one's, in this order
    std::int64_t tiles = 0;             // programs if each takes one tile; with 0 nothing is to be launched
    int per_processor = 0;              // programs that a multiprocessor runs, each taking several tiles; 0: one a tile
    std::vector<std::int64_t> scratch;  // bytes of each scratch
    std::int64_t counters = 0;

    std::int64_t constant(const std::string& name) const;
    std::int64_t programs(int multiprocessors) const;
};

// How row kernels are tiled. 0: what was measured best.
struct RowTuning {
    std::int64_t tile = 0;          // elements of a tile, if there are so many
    std::int64_t resident = 16384;  // a longer row is walked block by block
    std::int64_t elements_per_thread = 0;
    std::int64_t most_0 = 1 << 20, most_1 = 1 << 20;  // of a tile's sides
    std::int64_t parts = 0;                           // of a split row
    bool walk = false;                                // whatever fits too
    int threads = 0;                                  // that a multiprocessor runs at once; -1: one tile a program
    int stages = 0;                                   // of the loop over tiles
    int chunks = 0;
    const LaunchPlan* like = nullptr;  // its form, chunks, tile, parts and warps, whether they fit or not
};

LaunchPlan plan_row(const RowLayout& layout, const PlanValues& params, int multiprocessors,
                    const RowTuning& tuning = {});
// `tile` overrides the table's.
LaunchPlan plan_contraction(const loopir::Contraction& contraction, const RowLayout& layout, const PlanValues& params,
                            int multiprocessors, const GemmTile* tile = nullptr);

struct AttentionTile {
    int queries = 0, keys = 0, warps = 4, stages = 2;
    int split = 1;  // programs that share the keys
};
// Whether heads of that width are written.
bool head_fits(std::int64_t head_dim, std::int64_t value_dim, DType dtype);
LaunchPlan plan_attention(const loopir::Attention& attention, const PlanValues& params, int multiprocessors,
                          const AttentionTile* tile = nullptr);

}  // namespace flexor::codegen::triton
