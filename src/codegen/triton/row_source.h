#pragma once
// A row kernel of the loop IR as the text of a Triton function.
//
// One text serves all sizes: extents, and the strides, offsets and numbers that are slots of the launch, are arguments.
// The text depends on the kernel and the form alone, so that equal kernels have equal text but for the name.
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/triton/row_layout.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

enum class RowForm : std::uint8_t {
    kResident,  // a row is one block: every value is computed once and stays in registers
    kLooped,    // every pass walks the row block by block and computes what it needs anew
};

enum class ArgumentKind : std::uint8_t {
    kBuffer,  // pointer to buffer `index`
    kFault,   // pointer to the i32 fault flag
    kExtent,  // extent of dim `index` of the layout's body, after merging; of k behind the last dim of a contraction
    kPlace,   // slot `index` as part of an address
    kNumber,  // slot `index` as a value: always 64 bits
};

struct Argument {
    ArgumentKind kind;
    std::uint32_t index = 0;
    friend bool operator==(const Argument&, const Argument&) = default;
};
std::string argument_name(const Argument& argument);

// The tile's sides, and the steps along k: constexpr arguments behind the others. A row kernel has the first two.
inline constexpr const char* kBlockNames[3] = {"BLOCK_0", "BLOCK_1", "BLOCK_K"};

struct RowSource {
    std::string function;
    std::string text;                 // a module: imports, helpers, the function
    std::vector<Argument> arguments;  // in order; the constexpr ones follow
};

// `layout` is that of kernel.body. An elementwise layout has one form, kResident.
RowSource write_row_kernel(const loopir::Kernel& kernel, const RowLayout& layout, RowForm form);

// Whether the products are summed by tensor cores or fused multiply-adds on blocks (else one k after the other).
bool sums_in_blocks(const loopir::Contraction& contraction);

// A contraction without a prologue; `layout` is lay_out_epilogue's. A tile sums over k, then runs the epilogue on the sums.
RowSource write_contraction(const loopir::Kernel& kernel, const RowLayout& layout);

}  // namespace flexor::codegen::triton
