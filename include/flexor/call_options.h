#pragma once
// What a host hands over with a call, and the functions that a program calls in it.
#include <cstdint>
#include <functional>
#include <span>

#include "flexor/error.h"
#include "flexor/tensor.h"
#include "flexor/value.h"

namespace flexor {

// Where results live. Called for every fresh tensor result with its final geometry; the tensor returned must have that
// dtype, sizes and strides (dense, from offset 0), and lie where the run is. An undefined tensor: allocation failed.
struct OutputAllocator {
    Tensor (*allocate)(void* context, DType dtype, std::span<const std::int64_t> sizes,
                       std::span<const std::int64_t> strides) = nullptr;
    void* context = nullptr;
    std::int64_t least_bytes = 0;  // of a result that it is called for; smaller ones live as without it
};

struct CallOptions {
    OutputAllocator allocator;  // null: Tensor::empty; on a device the session's pool
    // Asked by a run that takes long, from the calling thread: before a compilation, after about a millisecond, then
    // every 50 ms, in loops, between kernels and inside long ones. True stops the run with Interrupted. What the run
    // was writing to in place is then written in part.
    bool (*should_stop)(void* context) = nullptr;
    void* stop_context = nullptr;
    // Where the run is: all tensors lie there, but for tensors without axes, which may lie on the host. Work is given to
    // `stream` of that device, null: its default stream, and has not ended when the call returns.
    Device device;
    void* stream = nullptr;
    // A run that fails gives back what it has overwritten: whatever it writes to is kept until the run ends, as far as
    // it is written to.
    // Runs on the host alone: those on a device are refused (BadOption).
    bool restores = false;
};

// A function of the host that CALL_FOREIGN reaches by name.
using ForeignFunction = std::function<Expected<Value>(std::span<const Value> arguments)>;

}  // namespace flexor
