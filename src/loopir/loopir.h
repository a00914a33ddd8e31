#pragma once
// Printer, parser, verifier and evaluator of the loop IR.
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "loopir/kernel.h"
#include "support/expected.h"

namespace flexor::loopir {

// Text form. Buffers are %0.., nodes v0.., stages s0.., parameter slots p0.., dims d0..; an integer is a constant or a
// slot; ';' starts a comment; a line break is white space.
//
//   kernel main:1:add_relu_sum(%0 x: in f32, %1 w: in f32, %2 out: out f32) params 3
//   row parallel [p0] row [p1]
//     v0 = load %0 [p1, 1] : f32
//     v1 = load %1 [0, 1] : f32
//     v2 = add v0, v1 : f32
//     s0 = reduce sum v2
//     v3 = row_value s0 : f32
//     s1 = store per_row %2 [1, 0] v3
//
// Other leaves: `const 1.5`, `param p3`, `index d0`, `accumulator`. An access is
//   %0 + p2 [p1, 1] gather v3 * p4 of p5 wrap mask v6
// (offset, gathered terms and mask where present). A contraction is
//   contraction batch 1 m p0 n p1 k p2 accumulate f32
//     a %0 : bf16 [p3] row p2 col 1
//     b %1 packed : bf16 [0] row p1 col 1
//     prologue parallel [p4, p0] row [p2] ... end
//     epilogue parallel [p4, p0, p1] row [] ...
// attention is
//   attention f32 batch p0 heads p1 kv_heads p2 q_len p3 kv_len p4 head_dim p5 value_dim p6 scale v0
//     q %0 [..4] k %1 [..4] v %2 [..4] out %3 [..4] mask boolean %4 [..4] lengths %5 [1] fully_masked nan
//     v0 = param p7 : f32
// and `extern sort` names an implementation.
std::string print(const Kernel& kernel);
Expected<Kernel> parse(std::string_view text);

// Promises
//  V1  every index (node, access, buffer, dim, stage, param slot) is in range, every list has the length of its dims;
//  V2  operands precede users, and so do gather indices and masks of a load;
//  V3  dtypes obey scalar_ops.def and L3 (arithmetic is on i8..i64, u8, f32, f64; comparison also on bool);
//  V4  kRowValue obeys L1;
//  V5  per_row stores obey their definition;
//  V6  buffers' read/written flags match use;
//  V7  each kind has its parts and no others: a row kernel and an epilogue have a stage, contraction and attention are
//      complete.
Expected<void> verify(const Kernel& kernel);

struct EvalArgs;
using ExternFunction = std::function<void(const Kernel& kernel, EvalArgs& args)>;
using ExternTable = std::map<std::string, ExternFunction, std::less<>>;

struct EvalArgs {
    void* const* buffers;                  // one per BufferParam, raw element memory; a packed operand unpacked
    const std::int64_t* params;            // param_count
    bool fault = false;                    // set as law L7 and scalar_ops.def say
    const ExternTable* externs = nullptr;  // must name the implementation of an extern kernel
};
// Slow oracle: plain nested loops, one element at a time, no code shared with codegen. Sums in the accumulator's dtype
// by pairwise tree. In every stage every node that the stage needs is evaluated anew at every index. Functions of f32
// are computed in f64 and rounded.
void evaluate(const Kernel& kernel, EvalArgs& args);

}  // namespace flexor::loopir
