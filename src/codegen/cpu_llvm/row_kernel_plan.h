// Decides how a Body of the loop IR becomes loops: which dim is vectorised, which stages share a loop, which values
// wait in a scratch row, how far to unroll. Pure data; no LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "loopir/kernel.h"

namespace flexor::codegen::cpu_llvm {

// The loop in which a node is computed; a node at one level is a scalar or a vector of the levels inside.
enum class Level : std::uint8_t {
    kKernel,  // once a call
    kRow,     // once a row (or block of rows)
    kOuter,   // in the loops over the row dims other than the inner one
    kInner    // in the innermost loop
};

enum class RowForm : std::uint8_t {
    kElementwise,  // no reduction: one row dim, every other dim parallel; the row may be cut anywhere
    kRows,         // rows in parallel, each whole
    kSplit         // no parallel dims: the row itself is cut, one function a pass, partial results combined in order
};

// Stages that run in one loop over the row space.
struct Pass {
    std::vector<std::uint32_t> once;   // per_row stores whose value is known before this pass, run before its loop
    std::vector<std::uint32_t> loop;   // reduce and store stages of the loop
    std::vector<loopir::NodeId> save;  // buffered nodes computed here
    int cost = 0;                      // instructions of one vector of the loop body
    int unroll = 1;
    bool masked_only = false;  // one loop whose every vector is masked, instead of a plain loop and a masked tail
};

struct BufferedNode {
    loopir::NodeId node;
    std::uint32_t pass;  // written in this one, read in later ones
    std::uint32_t slot;  // position among the scratch rows
};

struct RowPlan {
    RowForm form = RowForm::kRows;
    loopir::Body body;  // the input with dims added or regrouped: parallel dims first
    std::uint32_t vector_dim = 0;
    bool vector_is_row = true;
    std::vector<std::uint32_t> outer_rows;  // row dims outside the inner loop, outermost first
    std::uint32_t inner_dim = 0;            // vector_dim, or the last row dim if the vector dim is parallel
    int lanes = 1;
    int block_vectors = 1;           // vectors of one block along a parallel vector dim
    bool exact_rows = false;         // the vector dim's extent is a known multiple of lanes * unroll of every pass
    std::vector<Level> level;        // per node
    std::vector<bool> along_vector;  // per node: differs between lanes
    std::vector<Pass> passes;
    std::vector<BufferedNode> buffered;
    std::uint32_t scratch_rows = 0;
    std::uint32_t scratch_element_bytes = 4;  // per scratch row element
    std::vector<std::uint32_t> stage_pass;    // per stage
    int cost_per_element = 1;                 // of all passes, for choosing a grain

    const BufferedNode* find_buffered(loopir::NodeId n) const {
        for (const BufferedNode& b : buffered)
            if (b.node == n) return &b;
        return nullptr;
    }
};

struct PlanOptions {
    int vector_bytes = 64;
    bool cheap_masks = true;
    std::uint32_t scratch_rows_allowed = ~0u;  // 1 for a prologue: its own output row
    std::uint32_t scratch_bytes_allowed = 8;   // largest element of a scratch row
    bool keep_vector_last = false;             // vectorise along the last dim, parallel or not (epilogues)
};

RowPlan plan_rows(const loopir::Body& body, const PlanOptions& options);

}  // namespace flexor::codegen::cpu_llvm
