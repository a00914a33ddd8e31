#pragma once
// One kernel of the loop IR on one device: compiled as launches want it, kept, and launched.
#include <cstdint>
#include <memory>
#include <span>

#include "codegen/triton/compiler_process.h"
#include "loopir/kernel.h"
#include "runtime/cuda/device.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// A variant is machine code for a tile, a form, a width of indices, and a set of arguments that are multiples of 16. Tiles
// are powers of two and the sets of one tile at most kMostAlignments, so that variants are few whatever the sizes do: a set
// beyond is served by a variant that assumes less. Thread-safe; a launch waits while another compiles.
//
// Where programs share a row or a sum, they meet in memory of the launcher's own, one piece a stream: work on a stream must
// have ended before the stream is destroyed, and a launch on another stream does not disturb it. The piece is made by the
// first launch on a stream that wants it, which must not be captured.
class DeviceLauncher {
public:
    static constexpr std::size_t kMostAlignments = 4;

    // Refused with NoCodeGenerator: see Generator.
    static Expected<std::shared_ptr<DeviceLauncher>> create(loopir::Kernel kernel,
                                                            std::shared_ptr<const runtime::cuda::Device> device,
                                                            std::shared_ptr<CompilerProcess> compiler);
    ~DeviceLauncher();
    DeviceLauncher(const DeviceLauncher&) = delete;
    DeviceLauncher& operator=(const DeviceLauncher&) = delete;

    // `buffers`: one a loopir::BufferParam, on the device. `fault`: an i32 on the device, set where an index is out of
    // range or a divisor is 0, never cleared. Nothing happens where there is nothing to compute.
    Expected<void> launch(std::span<const runtime::cuda::CudaPointer> buffers, const std::int64_t* params,
                          runtime::cuda::CudaPointer fault, runtime::cuda::CudaStream stream);

    std::size_t variants() const;

private:
    struct Impl;
    explicit DeviceLauncher(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace flexor::codegen::triton
