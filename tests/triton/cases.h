#pragma once
// Kernels written as Triton source, in a form that Python reads: one JSON object a line.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "codegen/triton/generator.h"
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

// Multiprocessors of the device that cases are planned for.
inline constexpr int kProcessors = 132;

// What compiling a kernel takes.
nlohmann::json compile_case(const std::string& name, const codegen::triton::Generator& generator,
                            const codegen::triton::LaunchPlan& plan);

// As a launch of a graph: every address and every number comes from the frame, and is planned twice as large as it is. None
// where a graph cannot hold it.
std::optional<nlohmann::json> graph_case(const std::string& name, const codegen::triton::Generator& generator,
                                         const std::vector<std::int64_t>& params,
                                         codegen::triton::Successor successor = codegen::triton::Successor::kWhenEnded);

// The same, with the launch's arguments and what the evaluator leaves in the buffers: one case as planned, one of
// small tiles, and if asked for one of a graph.
std::vector<nlohmann::json> run_cases(const KernelRun& run, bool in_graph);

// Every scalar operator, cast and reduction over special values; the row kernels of networks over sizes and layouts;
// random kernels.
std::vector<KernelRun> numeric_runs();

// Large kernels, with the bytes of their buffers and those that a launch must move. Cases of one "group" are one kernel in
// several tilings, the one that is planned first.
std::vector<nlohmann::json> timed_rows();
std::vector<nlohmann::json> timed_products();
std::vector<nlohmann::json> timed_attention();

// A kernel's source and the launch of a plan, without memory.
nlohmann::json launch_case(const std::string& name, const codegen::triton::Generator& generator,
                           const codegen::triton::LaunchPlan& plan, const std::vector<std::int64_t>& params);
codegen::triton::Generator generator_of(const loopir::Kernel& kernel);

// A row kernel of numeric_runs by its name, without memory.
KernelRun text_kernel(const std::string& name, std::int64_t rows, std::int64_t columns);

// The kernels of a program (.fasm or .flx), as explain prints them.
std::vector<loopir::Kernel> kernels_of_program(const std::string& path);

}  // namespace flexor::tests
