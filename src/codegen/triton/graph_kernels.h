#pragma once
// The variants of one kernel that graphs launch: numbers and addresses that differ from call to call come from words of the
// graph's frame, and what is planned is planned for the largest sizes.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/triton/generator.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/device_code.h"
#include "runtime/cuda/launcher.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// One of them, before it is compiled.
struct GraphVariant {
    LaunchPlan plan;  // of the largest sizes
    KernelSource source;
    std::vector<bool> divisible, indirect;                // see make_request
    std::vector<runtime::cuda::GraphArgument> arguments;  // the frame, then those of the source
    std::int64_t programs = 0, scratch_bytes = 0;
};
// See runtime::cuda::Launcher::graph_node.
Expected<GraphVariant> plan_for_graph(const Generator& generator, int multiprocessors,
                                      const runtime::cuda::GraphLaunch& launch, runtime::cuda::GraphFrame& frame);

// Thread-safe; nothing is locked while code is compiled. The generator outlives it.
class GraphKernels {
public:
    // Beyond, a node is refused.
    static constexpr std::size_t kMostVariants = 128;

    using Compile = std::function<Expected<runtime::cuda::DeviceCode>(const CompileRequest&)>;

    GraphKernels(const Generator& generator, std::shared_ptr<const runtime::cuda::Device> device, Successor successor,
                 Compile compile);

    // See runtime::cuda::Launcher::graph_node.
    Expected<runtime::cuda::GraphNode> node(const runtime::cuda::GraphLaunch& launch, runtime::cuda::GraphFrame& frame);

private:
    // What chooses machine code: form, chunks, width, warps, stages, then constants, divisible and indirect arguments.
    using Key = std::vector<std::int64_t>;
    Expected<std::shared_ptr<const runtime::cuda::DeviceKernel>> find(const GraphVariant& variant);

    const Generator& generator_;
    std::shared_ptr<const runtime::cuda::Device> device_;
    Successor successor_;  // as far as the device can
    Compile compile_;
    std::mutex mutex_;
    std::map<Key, std::shared_ptr<const runtime::cuda::DeviceKernel>> variants_;
};

}  // namespace flexor::codegen::triton
