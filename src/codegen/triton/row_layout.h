#pragma once
// A row kernel's Body as tiles: which dim runs along each axis of a tile, and which loop each stage runs in.
#include <cstdint>
#include <vector>

#include "loopir/kernel.h"

namespace flexor::codegen::triton {

// Axis 0 of a tile runs along a parallel dim, axis 1 along a row dim. The other parallel dims are one index a tile, the
// other row dims are loops inside the tile.
struct RowLayout {
    loopir::Body body;  // the input, with a dim of extent 1 where it had no parallel or no row dim
    bool elementwise;   // neither a reduction nor a store a row: one row dim, cut into tiles as the parallel dims are
    std::uint32_t axis_dim[2];
    int contiguous[2];                 // accesses along both axes whose stride along this one is known to be 1
    std::vector<std::uint32_t> pass;   // per stage, see stage_passes.h
    std::vector<std::uint32_t> outer;  // parallel dims other than axis 0's, outermost first
    std::vector<std::uint32_t> loops;  // row dims other than axis 1's, outermost first
};

RowLayout lay_out(const loopir::Body& body);

// The epilogue of a contraction, elementwise over its result: axis 0 along m, axis 1 along n, batch dims outside.
RowLayout lay_out_epilogue(const loopir::Kernel& kernel);

// `visit` is called with every access of the body: loads, then the targets of stores.
template <class Visit>
void for_each_access(const loopir::Body& body, Visit visit) {
    for (const loopir::Access& access : body.accesses) visit(access);
    for (const loopir::Stage& stage : body.stages) {
        if (stage.kind == loopir::StageKind::kStore) visit(stage.target);
    }
}

}  // namespace flexor::codegen::triton
