#pragma once
// A CUDA driver for machines without a GPU: memory is the host's, kernels are recorded and not run. Tests load it in the
// place of libcuda and look at it through fake_cuda_state.
#include <cstdint>
#include <string>
#include <vector>

namespace flexor::tests {

struct FakeLaunch {
    unsigned grid[3];
    unsigned threads;
    unsigned shared;
    void* stream;
    std::vector<std::uint64_t> values;  // of the parameters' sizes
};

struct FakeCuda {
    int devices = 1;
    std::string failing;  // the call that fails next
    int code = 0;         // with this error
    std::vector<std::size_t> parameter_bytes;
    std::vector<FakeLaunch> launches;
    int contexts = 0;  // retained and not released
    int pushed = 0;    // contexts current in some thread
    int modules = 0, streams = 0, events = 0;
    std::size_t blocks = 0;
    int dynamic_shared = 0;  // what the function was allowed
};

}  // namespace flexor::tests

extern "C" flexor::tests::FakeCuda* fake_cuda_state();
