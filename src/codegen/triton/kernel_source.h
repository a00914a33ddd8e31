#pragma once
// A kernel of the loop IR as the text of a Triton function.
//
// One text serves all sizes: extents, and the strides, offsets and numbers that are slots of the launch, are arguments.
// The text depends on the kernel and the form alone, so that equal kernels have equal text but for the name.
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/triton/row_layout.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

// Of a row kernel; the others have one form, kResident.
enum class Form : std::uint8_t {
    kResident,  // a row is one block: every value is computed once and stays in registers
    kLooped,    // every pass walks the row block by block and computes what it needs anew
    kSplit,     // several programs walk parts of a row; the last one to end joins what they leave, in a fixed order
};

enum class ArgumentKind : std::uint8_t {
    kBuffer,    // pointer to buffer `index`
    kFault,     // pointer to the i32 fault flag
    kScratch,   // pointer to scratch `index`, memory that the launch lends
    kCounters,  // pointer to i32 counters, 0 before and after each launch
    kExtent,    // extent of dim `index` of the layout's body, after merging; of k behind the last dim of a contraction;
                // of an attention, see attention_source.cpp
    kPlace,     // slot `index` as part of an address
    kNumber,    // slot `index` as a value: always 64 bits
};

struct Argument {
    ArgumentKind kind;
    std::uint32_t index = 0;
    friend bool operator==(const Argument&, const Argument&) = default;
};
std::string argument_name(const Argument& argument);

struct KernelSource {
    std::string function;
    std::string text;                    // a module: imports, helpers, the function
    std::size_t head = 0;                // where the function's parameters begin in it,
    std::size_t body = 0;                // and its first line
    std::vector<Argument> arguments;     // in order
    std::vector<std::string> constants;  // names of the constexpr arguments that follow them
    std::vector<DType> scratch;          // elements of each scratch
};

// Whether a row may be shared by several programs: all but what is done once a row happens in one walk over the row.
bool may_split(const RowLayout& layout);
// The dtypes of what a program leaves of its part of a row.
std::vector<DType> partial_dtypes(const RowLayout& layout);

// Whether a resident row may be several blocks beside each other, so that 768 elements take three blocks of 256 instead of one
// of 1,024.
bool may_chunk(const RowLayout& layout);

// `layout` is that of kernel.body. An elementwise layout has one form, kResident. `chunks` blocks make a resident row.
KernelSource write_row_kernel(const loopir::Kernel& kernel, const RowLayout& layout, Form form, int chunks = 1);

// Whether the products are summed by tensor cores or fused multiply-adds on blocks (else one k after the other).
bool sums_in_blocks(const loopir::Contraction& contraction);
// Whether a tile of one row is written too: its products are added up in lanes along k.
bool sums_row_by_row(const loopir::Contraction& contraction);

// `layout` is lay_out_epilogue's. A tile sums over k, then runs the epilogue on the sums; where several programs share
// k, the last one to end adds what they leave, in a fixed order.
KernelSource write_contraction(const loopir::Kernel& kernel, const RowLayout& layout);

KernelSource write_attention(const loopir::Kernel& kernel);

}  // namespace flexor::codegen::triton
