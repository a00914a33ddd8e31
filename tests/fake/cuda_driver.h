#pragma once
// A CUDA driver for machines without a GPU. Tests load it in the place of libcuda and look at it through fake_cuda_state.
//
// Device memory has addresses of its own, which the host cannot read: what forgets to copy ends there. A function that is a
// driver::HostFunction runs at its launch; every other launch is recorded alone. A module whose image is a text, "parameters 8 4;" and
// what a test wants to find again, has functions with such parameters; those of others have FakeCuda::parameter_bytes.
#include <atomic>
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
    std::string code;                   // behind the sizes, of a module that states them
};

// A number that threads change.
template <class T>
struct FakeCount : std::atomic<T> {
    FakeCount(T value = 0) : std::atomic<T>(value) {}
    FakeCount(const FakeCount& other) : std::atomic<T>(other.load()) {}
    FakeCount& operator=(const FakeCount& other) {
        this->store(other.load());
        return *this;
    }
    using std::atomic<T>::operator=;
};

struct FakeCuda {
    int devices = 1;
    std::string failing;  // the call that fails next
    int code = 0;         // with this error
    std::vector<std::size_t> parameter_bytes;
    std::vector<FakeLaunch> launches;  // those that did not run
    int contexts = 0;                  // retained and not released
    FakeCount<int> pushed = 0;         // contexts current in some thread
    FakeCount<int> modules = 0, streams = 0, events = 0;
    FakeCount<std::size_t> blocks = 0;  // allocated and not released
    std::size_t largest_sum = 0;        // of bytes that blocks may have together; 0: no limit
    FakeCount<int> ran = 0;             // launches that ran
    FakeCount<int> graphs = 0;          // made and not destroyed, instantiated ones too
    FakeCount<int> graph_launches = 0;
    int early_edges = 0;  // of graphs: kernels that may begin before those in front have ended
    FakeCount<int> copies_to_device = 0;
    FakeCount<int> waits = 0;  // for a stream
    bool capturing = false;
    int dynamic_shared = 0;  // what the function was allowed
};

}  // namespace flexor::tests

extern "C" flexor::tests::FakeCuda* fake_cuda_state();
// Where the host finds device memory.
extern "C" void* fake_cuda_memory(std::uint64_t address);
