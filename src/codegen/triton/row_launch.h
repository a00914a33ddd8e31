#pragma once
// What one launch of a row kernel needs: tile, form, and the values of the extents, from the launch's parameters.
#include <cstdint>
#include <vector>

#include "codegen/triton/row_layout.h"
#include "codegen/triton/row_source.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

// All but `extents` and `tiles` chooses what is compiled.
struct RowLaunch {
    RowForm form = RowForm::kResident;
    int block[2] = {1, 1};  // powers of two
    int block_k = 0;        // of a contraction
    int warps = 4;
    bool narrow = false;  // every index and address fits in 32 bits
    // Per dim of the layout's body, then k of a contraction. Dims that all accesses of a row kernel step through as one are
    // merged into the last of them, and the others are 1.
    std::vector<std::int64_t> extents;
    std::int64_t tiles = 0;  // programs if each takes one tile; with 0 nothing is to be launched
};

// A row of more elements, or rows of more than one dim, are walked block by block.
inline constexpr std::int64_t kResidentRow = 8192;

RowLaunch plan_launch(const RowLayout& layout, const std::int64_t* params);
RowLaunch plan_contraction(const loopir::Contraction& contraction, const RowLayout& layout, const std::int64_t* params);

}  // namespace flexor::codegen::triton
