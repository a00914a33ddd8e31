#pragma once
// What the compiler of device kernels is asked for; see compiler_process.h.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/triton/kernel_source.h"
#include "codegen/triton/launch_plan.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

struct CompileRequest {
    std::string function;
    std::string source;
    std::vector<std::pair<std::string, std::string>> signature;   // name and Triton's type, without the constants
    std::vector<std::pair<std::string, std::int64_t>> constants;  // constexpr parameters
    std::vector<std::string> divisible;                           // arguments whose values are multiples of 16
    int warps = 4;
    int stages = 3;   // of software pipelining
    int target = 90;  // compute capability, 10 * major + minor
};

// `divisible` says of each argument of `source` whether all its values are multiples of 16. With `indirect` the function gets the
// address of a frame of 64-bit words first, and in the place of each argument that is marked the number of its word.
CompileRequest make_request(const loopir::Kernel& kernel, const KernelSource& source, const LaunchPlan& plan,
                            const std::vector<bool>& divisible, const std::vector<bool>& indirect = {});

}  // namespace flexor::codegen::triton
