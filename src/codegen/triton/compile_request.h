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

// When the kernel behind another one in a graph may begin. From compute capability 9.0 on it can begin early, as a programmatic
// dependent launch; then every program of it waits, before it touches what earlier kernels touch, until all of them have ended.
enum class Successor : std::uint8_t {
    kWhenEnded,   // all programs have ended
    kWhenEnding,  // all programs have ended, but for what the device still does with them
    kWhenBegun,   // all programs have begun
};
inline constexpr int kDependentLaunchTarget = 90;

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
// address of a frame of 64-bit words first, and in the place of each argument that is marked the number of its word. Only then
// `successor` is heeded.
CompileRequest make_request(const loopir::Kernel& kernel, const KernelSource& source, const LaunchPlan& plan,
                            const std::vector<bool>& divisible, const std::vector<bool>& indirect = {},
                            Successor successor = Successor::kWhenEnded);

}  // namespace flexor::codegen::triton
