#pragma once
// Machine code of one kernel for a device, as a compiler gives it.
#include <cstdint>
#include <string>
#include <vector>

namespace flexor::runtime::cuda {

struct DeviceCode {
    std::string symbol;
    int warps = 0;  // to launch with: the compiler may choose others than asked for
    std::int64_t shared_bytes = 0;
    std::int64_t scratch_bytes = 0;             // of global memory, a program
    std::vector<std::int64_t> parameter_bytes;  // of each parameter: the arguments, then two pointers
    std::string cubin;
};

}  // namespace flexor::runtime::cuda
