#pragma once
// Printer, parser, verifier and evaluator of the loop IR.
#include <string>
#include <string_view>

#include "loopir/kernel.h"
#include "support/expected.h"

namespace flexor::loopir {

// Text form, e.g.
//   kernel main:1:add_relu_sum(%0: in f32, %1: in f32, %2: out f32) params 3
//   row parallel [p0] row [p1]
//     %a = load %0 [p1, 1] : f32
//     ...
//     s0 = reduce sum %c
//     store per_row %2 [1, 0] s0
std::string print(const Kernel& kernel);
Expected<Kernel> parse(std::string_view text);

// Promises: V1 every index (node, access, buffer, dim, stage, param slot) is in range; V2 operands precede users; V3
// dtypes obey scalar_ops.def and L3; V4 kRowValue obeys L1; V5 per_row stores obey their definition; V6 buffers'
// read/written flags match use; V7 contraction and attention parts are complete.
Expected<void> verify(const Kernel& kernel);

struct EvalArgs {
    void* const* buffers;        // one per BufferParam, raw element memory
    const std::int64_t* params;  // param_count
    bool fault = false;          // set as law L7 says
};
// Slow oracle: plain nested loops, one element at a time, no code shared with codegen. Sums in the accumulator's dtype
// by pairwise tree.
void evaluate(const Kernel& kernel, EvalArgs& args);

}  // namespace flexor::loopir
