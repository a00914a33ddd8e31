#pragma once
// One kernel of the loop IR on one device: compiled as launches want it, kept, and launched.
#include <cstdint>
#include <memory>
#include <span>

#include "codegen/triton/compiler_pool.h"
#include "loopir/kernel.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launcher.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

struct LauncherOptions {
    bool stand_ins = true;                        // see variants.h
    Successor successor = Successor::kWhenEnded;  // in graphs
};

// Its machine code: see variants.h. Thread-safe.
//
// Where programs share a row or a sum, they meet in memory of the launcher's own, one piece a stream: work on a stream must
// have ended before the stream is destroyed, and a launch on another stream does not disturb it. The piece is made by the
// first launch on a stream that wants it, which must not be captured.
class DeviceLauncher final : public runtime::cuda::Launcher {
public:
    // Refused with NoCodeGenerator: see Generator.
    static Expected<std::shared_ptr<DeviceLauncher>> create(loopir::Kernel kernel,
                                                            std::shared_ptr<const runtime::cuda::Device> device,
                                                            std::shared_ptr<CompilerPool> compiler,
                                                            LauncherOptions options = {});
    ~DeviceLauncher() override;
    DeviceLauncher(const DeviceLauncher&) = delete;
    DeviceLauncher& operator=(const DeviceLauncher&) = delete;

    Expected<runtime::cuda::LaunchReport> launch(std::span<const runtime::cuda::CudaPointer> buffers,
                                                 const std::int64_t* params, runtime::cuda::CudaPointer fault,
                                                 runtime::cuda::CudaStream stream) override;
    std::uint32_t prefetch(std::span<const runtime::cuda::CudaPointer> buffers, const std::int64_t* params) override;
    void settle() override;

    Expected<runtime::cuda::GraphNode> graph_node(const runtime::cuda::GraphLaunch& launch,
                                                  runtime::cuda::GraphFrame& frame) override;

    std::size_t variants() const;

private:
    struct Impl;
    explicit DeviceLauncher(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace flexor::codegen::triton
