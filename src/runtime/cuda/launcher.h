#pragma once
// A kernel of a program, made ready for one device, whoever compiled it.
#include <cstdint>
#include <span>

#include "runtime/cuda/driver.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// Thread-safe.
class Launcher {
public:
    virtual ~Launcher() = default;

    // `buffers`: one a loopir::BufferParam, on the device. `fault`: an i32 that the device can write, set where an index
    // is out of range or a divisor is 0, never cleared. Nothing happens where there is nothing to compute.
    virtual Expected<void> launch(std::span<const CudaPointer> buffers, const std::int64_t* params, CudaPointer fault,
                                  CudaStream stream) = 0;
};

}  // namespace flexor::runtime::cuda
