#pragma once
// What a driver that runs kernels on the host (tests/fake) takes for a function.
#include <cstddef>
#include <cstdint>

namespace flexor::driver {

// All arguments are 64-bit words; those that are addresses of the device's memory are the host's when `run` gets them, and
// `to_host` makes others so.
struct HostFunction {
    void (*run)(void* context, const std::uint64_t* arguments, std::uint64_t (*to_host)(std::uint64_t));
    void* context;
    std::size_t arguments;
};

}  // namespace flexor::driver
