#include "cuda_driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "driver/host_function.h"
#include "runtime/cuda/driver.h"

namespace {

flexor::tests::FakeCuda state;

// The error that the test has asked for, once.
int result_of(const char* call) {
    if (state.failing != call) return 0;
    state.failing.clear();
    return state.code;
}

constexpr std::size_t kReserved = std::size_t{8} << 30;
constexpr std::size_t kGap = 256;
constexpr unsigned char kUnset = 0xA5;

// Addresses that nobody may read, and the memory behind them.
class DeviceMemory {
public:
    static DeviceMemory& instance() {
        static auto* memory = new DeviceMemory();
        return *memory;
    }

    // 0: there is no more.
    std::uint64_t allocate(std::size_t bytes, std::size_t limit) {
        const std::lock_guard lock(mutex_);
        if (limit != 0 && used_ + bytes > limit) return 0;
        const std::size_t size = (bytes + 2 * kGap - 1) / kGap * kGap;
        std::size_t offset = 0;
        const auto free = free_.find(size);
        if (free != free_.end()) {
            offset = free->second;
            free_.erase(free);
        } else {
            if (next_ + size > kReserved) return 0;
            offset = next_;
            next_ += size;
        }
        std::memset(host_ + offset, kUnset, size);
        sizes_[offset] = {size, bytes};
        used_ += bytes;
        return base() + offset;
    }
    void release(std::uint64_t address) {
        const std::lock_guard lock(mutex_);
        const auto block = sizes_.find(address - base());
        if (block == sizes_.end()) std::abort();
        std::memset(host_ + block->first, kUnset, block->second.first);
        free_.emplace(block->second.first, block->first);
        used_ -= block->second.second;
        sizes_.erase(block);
    }
    std::uint64_t to_host(std::uint64_t address) const {
        return address >= base() && address < base() + kReserved
                   ? address - base() + reinterpret_cast<std::uint64_t>(host_)
                   : address;
    }

private:
    DeviceMemory() {
        const int file = memfd_create("fake_cuda", 0);
        if (file < 0 || ftruncate(file, kReserved) != 0) std::abort();
        host_ =
            static_cast<char*>(mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
        device_ = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (host_ == MAP_FAILED || device_ == MAP_FAILED) std::abort();
        close(file);
    }
    std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(device_); }

    std::mutex mutex_;
    char* host_ = nullptr;
    void* device_ = nullptr;
    std::size_t next_ = 0, used_ = 0;
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> sizes_;  // by offset: of the block, as asked for
    std::multimap<std::size_t, std::size_t> free_;
};

struct FakeModule {
    bool states_sizes = false;
    std::vector<std::size_t> sizes;
    std::string code;
};
std::mutex module_mutex;
std::set<const void*> known_modules;

const FakeModule* module_of(const void* function) {
    const std::lock_guard lock(module_mutex);
    return known_modules.contains(function) ? static_cast<const FakeModule*>(function) : nullptr;
}

const std::vector<std::size_t>& sizes_of(const FakeModule* module) {
    return module != nullptr && module->states_sizes ? module->sizes : state.parameter_bytes;
}

void* at(std::uint64_t address) { return reinterpret_cast<void*>(DeviceMemory::instance().to_host(address)); }

}  // namespace

flexor::tests::FakeCuda* fake_cuda_state() { return &state; }
void* fake_cuda_memory(std::uint64_t address) { return at(address); }

#define CALL(name, ...) extern "C" int name(__VA_ARGS__)

CALL(cuInit, unsigned) { return result_of("cuInit"); }
CALL(cuDriverGetVersion, int* version) {
    *version = 13000;
    return 0;
}
CALL(cuGetErrorName, int code, const char** name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
    return *name == nullptr ? 1 : 0;
}
CALL(cuDeviceGetCount, int* count) {
    *count = state.devices;
    return result_of("cuDeviceGetCount");
}
CALL(cuDeviceGet, int* device, int index) {
    *device = index;
    return 0;
}
CALL(cuDeviceGetName, char* name, int size, int) {
    std::strncpy(name, "Fake", static_cast<std::size_t>(size));
    return 0;
}
CALL(cuDeviceGetAttribute, int* value, int number, int) {
    *value = number == 75 ? 9 : number == 76 ? 0 : number == 13 ? 1'000'000 : 132;
    return 0;
}
CALL(cuDevicePrimaryCtxRetain, void** context, int) {
    if (const int error = result_of("cuDevicePrimaryCtxRetain")) return error;
    ++state.contexts;
    *context = &state;
    return 0;
}
CALL(cuDevicePrimaryCtxRelease_v2, int) {
    --state.contexts;
    return 0;
}
CALL(cuCtxPushCurrent_v2, void*) {
    ++state.pushed;
    return 0;
}
CALL(cuCtxPopCurrent_v2, void**) {
    --state.pushed;
    return 0;
}
CALL(cuModuleLoadData, void** module, const void* image) {
    if (const int error = result_of("cuModuleLoadData")) return error;
    auto made = std::make_unique<FakeModule>();
    std::istringstream words(static_cast<const char*>(image));
    std::string first;
    words >> first;
    if (first == "parameters") {
        made->states_sizes = true;
        std::size_t size = 0;
        while (words >> size) made->sizes.push_back(size);
        words.clear();
        std::getline(words, first, ';');
        std::getline(words, made->code, '\0');
    }
    ++state.modules;
    const std::lock_guard lock(module_mutex);
    known_modules.insert(made.get());
    *module = made.release();
    return 0;
}
CALL(cuModuleUnload, void* module) {
    --state.modules;
    const std::lock_guard lock(module_mutex);
    known_modules.erase(module);
    delete static_cast<FakeModule*>(module);
    return 0;
}
CALL(cuModuleGetFunction, void** function, void* module, const char*) {
    *function = module;
    return result_of("cuModuleGetFunction");
}
CALL(cuFuncSetAttribute, void*, int, int value) {
    state.dynamic_shared = value;
    return 0;
}
CALL(cuFuncGetParamInfo, void* function, std::size_t index, std::size_t* offset, std::size_t* size) {
    const std::vector<std::size_t>& sizes = sizes_of(module_of(function));
    if (index >= sizes.size()) return 1;
    *offset = 8 * index;
    *size = sizes[index];
    return 0;
}
CALL(cuStreamCreate, void** stream, unsigned) {
    ++state.streams;
    *stream = &state.streams;
    return 0;
}
CALL(cuStreamDestroy_v2, void*) {
    --state.streams;
    return 0;
}
CALL(cuStreamSynchronize, void*) {
    ++state.waits;
    return result_of("cuStreamSynchronize");
}
CALL(cuStreamIsCapturing, void*, int* status) {
    *status = state.capturing ? 1 : 0;
    return 0;
}
CALL(cuCtxSynchronize) { return 0; }
CALL(cuStreamWaitEvent, void*, void*, unsigned) { return 0; }
CALL(cuEventCreate, void** event, unsigned) {
    ++state.events;
    *event = &state.events;
    return 0;
}
CALL(cuEventRecord, void*, void*) { return 0; }
CALL(cuEventElapsedTime, float* milliseconds, void*, void*) {
    *milliseconds = 0.5F;
    return 0;
}
CALL(cuLaunchHostFunc, void*, void (*run)(void*), void* context) {
    if (const int error = result_of("cuLaunchHostFunc")) return error;
    std::thread(run, context).detach();  // what it holds back has been done
    return 0;
}
CALL(cuEventDestroy_v2, void*) {
    --state.events;
    return 0;
}
CALL(cuMemAllocAsync, std::uint64_t* pointer, std::size_t bytes, void*) {
    if (const int error = result_of("cuMemAllocAsync")) return error;
    *pointer = DeviceMemory::instance().allocate(bytes, state.largest_sum);
    if (*pointer == 0) return 2;
    ++state.blocks;
    return 0;
}
CALL(cuMemFreeAsync, std::uint64_t pointer, void*) {
    --state.blocks;
    DeviceMemory::instance().release(pointer);
    return 0;
}
CALL(cuMemcpyHtoDAsync_v2, std::uint64_t to, const void* from, std::size_t bytes, void*) {
    ++state.copies_to_device;
    std::memcpy(at(to), from, bytes);
    return result_of("cuMemcpyHtoDAsync");
}
CALL(cuMemcpyDtoHAsync_v2, void* to, std::uint64_t from, std::size_t bytes, void*) {
    std::memcpy(to, at(from), bytes);
    return result_of("cuMemcpyDtoHAsync");
}
CALL(cuMemcpyDtoDAsync_v2, std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
    std::memmove(at(to), at(from), bytes);
    return 0;
}
CALL(cuMemHostAlloc, void** memory, std::size_t bytes, unsigned) {
    *memory = std::malloc(bytes);
    return result_of("cuMemHostAlloc");
}
CALL(cuMemFreeHost, void* memory) {
    std::free(memory);
    return 0;
}
CALL(cuDeviceTotalMem_v2, std::size_t* bytes, int) {
    *bytes = kReserved;
    return 0;
}
CALL(cuDeviceGetDefaultMemPool, void** pool, int) {
    *pool = &state;
    return 0;
}
CALL(cuMemPoolTrimTo, void*, std::size_t) { return 0; }
CALL(cuEventSynchronize, void*) { return 0; }
CALL(cuThreadExchangeStreamCaptureMode, int*) { return 0; }

namespace {

int run_kernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned shared, void* stream,
               void** parameters) {
    if (x == 0) return 1;  // as the driver does
    const FakeModule* module = module_of(function);
    if (module == nullptr) {
        const auto& host = *static_cast<const flexor::driver::HostFunction*>(function);
        std::vector<std::uint64_t> words;
        for (std::size_t i = 0; i < host.arguments; ++i)
            words.push_back(DeviceMemory::instance().to_host(*static_cast<const std::uint64_t*>(parameters[i])));
        ++state.ran;
        host.run(host.context, words.data(),
                 [](std::uint64_t address) { return DeviceMemory::instance().to_host(address); });
        return 0;
    }
    flexor::tests::FakeLaunch launch{{x, y, z}, threads, shared, stream, {}, module->code};
    for (std::size_t i = 0; i < sizes_of(module).size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, parameters[i], sizes_of(module)[i]);
        launch.values.push_back(value);
    }
    state.launches.push_back(launch);
    return 0;
}

std::vector<std::size_t> parameter_sizes_of(void* function) {
    if (const FakeModule* module = module_of(function)) return sizes_of(module);
    const auto& host = *static_cast<const flexor::driver::HostFunction*>(function);
    return std::vector<std::size_t>(host.arguments, sizeof(std::uint64_t));
}

// A node keeps the values of its parameters, as the driver's do.
struct FakeNode {
    void* function;
    unsigned grid[3], threads, shared;
    std::vector<std::uint64_t> values;
};
struct FakeGraph {
    std::vector<FakeNode> nodes;
    std::size_t edges = 0;
};

}  // namespace

CALL(cuLaunchKernel, void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
     unsigned shared, void* stream, void** parameters, void**) {
    if (const int error = result_of("cuLaunchKernel")) return error;
    return run_kernel(function, x, y, z, threads, shared, stream, parameters);
}
CALL(cuGraphCreate, void** graph, unsigned) {
    if (const int error = result_of("cuGraphCreate")) return error;
    ++state.graphs;
    *graph = new FakeGraph();
    return 0;
}
CALL(cuGraphAddKernelNode_v2, void** node, void* graph, void* const* before, std::size_t count,
     const flexor::runtime::cuda::KernelNodeParameters* parameters) {
    if (const int error = result_of("cuGraphAddKernelNode")) return error;
    auto& nodes = static_cast<FakeGraph*>(graph)->nodes;
    // Chains alone.
    if (count > 1 || (count == 1 && *before != reinterpret_cast<void*>(nodes.size()))) return 1;
    static_cast<FakeGraph*>(graph)->edges += count;
    void* function = parameters->function;
    FakeNode made{function,
                  {parameters->grid[0], parameters->grid[1], parameters->grid[2]},
                  parameters->block[0],
                  parameters->shared_bytes,
                  {}};
    const std::vector<std::size_t> sizes = parameter_sizes_of(function);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, parameters->parameters[i], sizes[i]);
        made.values.push_back(value);
    }
    nodes.push_back(std::move(made));
    *node = reinterpret_cast<void*>(nodes.size());
    return 0;
}
CALL(cuGraphAddDependencies_v2, void* graph, void* const* from, void* const* to,
     const flexor::runtime::cuda::GraphEdge* edge, std::size_t count) {
    if (const int error = result_of("cuGraphAddDependencies")) return error;
    auto& made = *static_cast<FakeGraph*>(graph);
    const std::uint64_t last = made.nodes.size();
    const bool programmatic = edge->type == 1 && edge->from_port == 1 && edge->to_port == 0;
    if (count != 1 || *from != reinterpret_cast<void*>(last - 1) || *to != reinterpret_cast<void*>(last) ||
        !programmatic)
        return 1;
    ++made.edges;
    ++state.early_edges;
    return 0;
}
CALL(cuGraphInstantiateWithFlags, void** exec, void* graph, unsigned long long) {
    if (const int error = result_of("cuGraphInstantiate")) return error;
    const auto& given = *static_cast<FakeGraph*>(graph);
    if (given.edges + 1 != given.nodes.size()) return 1;
    ++state.graphs;
    *exec = new FakeGraph(*static_cast<FakeGraph*>(graph));
    return 0;
}
CALL(cuGraphUpload, void*, void*) { return 0; }
CALL(cuGraphLaunch, void* exec, void* stream) {
    if (const int error = result_of("cuGraphLaunch")) return error;
    ++state.graph_launches;
    for (FakeNode& node : static_cast<FakeGraph*>(exec)->nodes) {
        std::vector<void*> pointers;
        for (std::uint64_t& value : node.values) pointers.push_back(&value);
        if (const int error = run_kernel(node.function, node.grid[0], node.grid[1], node.grid[2], node.threads,
                                         node.shared, stream, pointers.data()))
            return error;
    }
    return 0;
}
CALL(cuGraphExecDestroy, void* exec) {
    --state.graphs;
    delete static_cast<FakeGraph*>(exec);
    return 0;
}
CALL(cuGraphDestroy, void* graph) {
    --state.graphs;
    delete static_cast<FakeGraph*>(graph);
    return 0;
}
