#pragma once
// Kernels written as Triton source, in a form that Python reads: one JSON object a line.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codegen/triton/row_launch.h"
#include "loopir/kernel.h"

namespace flexor::tests {

using Memory = std::vector<std::vector<std::uint8_t>>;  // one a buffer

// A kernel with what it is launched on.
struct KernelRun {
    std::string name;
    loopir::Kernel kernel;
    std::vector<std::int64_t> params;
    Memory memory;
    bool small_tiles = true;  // one case more, of tiles so small that loops and grids have several steps
};

// Layout, launch and source of a kernel: of a row kernel, or of a contraction without a prologue.
struct Written {
    codegen::triton::RowLayout layout;
    codegen::triton::RowLaunch launch;
};
bool is_written(const loopir::Kernel& kernel);
Written planned(const loopir::Kernel& kernel, const std::vector<std::int64_t>& params);

// What compiling a kernel takes.
nlohmann::json compile_case(const std::string& name, const loopir::Kernel& kernel,
                            const codegen::triton::RowLayout& layout, const codegen::triton::RowLaunch& launch);

// The same, with the launch's arguments and what the evaluator leaves in the buffers: one case as planned, and one of
// small tiles.
std::vector<nlohmann::json> run_cases(const KernelRun& run);

// Every scalar operator, cast and reduction over special values; the row kernels of networks over sizes and layouts;
// random kernels.
std::vector<KernelRun> numeric_runs();

// Large kernels, with the bytes of their buffers and those that a launch must move.
std::vector<nlohmann::json> timed_cases();

// A row kernel of numeric_runs by its name, without memory.
KernelRun text_kernel(const std::string& name, std::int64_t rows, std::int64_t columns);

// The kernels of a program (.fasm or .flx), as explain prints them.
std::vector<loopir::Kernel> kernels_of_program(const std::string& path);

}  // namespace flexor::tests
