#pragma once
// The CUDA driver, opened when it is first wanted: the library builds and runs without a CUDA toolkit and without a GPU.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "support/expected.h"

namespace flexor::runtime::cuda {

using CudaDevice = int;
using CudaPointer = std::uint64_t;
using CudaContext = struct CudaContextHandle*;
using CudaModule = struct CudaModuleHandle*;
using CudaFunction = struct CudaFunctionHandle*;
using CudaStream = struct CudaStreamHandle*;  // null: the caller's default stream
using CudaEvent = struct CudaEventHandle*;
using CudaMemoryPool = struct CudaMemoryPoolHandle*;
using CudaGraph = struct CudaGraphHandle*;
using CudaGraphNode = struct CudaGraphNodeHandle*;
using CudaGraphExec = struct CudaGraphExecHandle*;

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNodeParameters {
    CudaFunction function;
    unsigned grid[3], block[3], shared_bytes;
    void** parameters;
    void** extra;
    void* kernel;
    CudaContext context;
};

// CUgraphEdgeData.
struct GraphEdge {
    unsigned char from_port, to_port, type, reserved[5];
};

class Driver {
public:
#define FLEXOR_CUDA_CALL(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/driver_calls.def"
#undef FLEXOR_CUDA_CALL
    // Null with drivers before CUDA 12.3.
    int (*add_dependencies)(CudaGraph, const CudaGraphNode*, const CudaGraphNode*, const GraphEdge*,
                            std::size_t) = nullptr;

    // Opens the library and initialises the driver; NoDevice says what is missing. The library stays open.
    static Expected<std::shared_ptr<const Driver>> open(const std::string& library);
    // The system's driver; opened once, and so is what is missing.
    static Expected<std::shared_ptr<const Driver>> system();

    // Nothing if `result`, which `call` gave, is success; else OutOfMemory or DeviceCallFailed. `what` is said too.
    Expected<void> check(int result, const char* call, const std::string& what = "") const;
};

// What is there and what is missing, for people: the driver, its version, its devices.
std::string device_report(const std::string& library = "libcuda.so.1");

}  // namespace flexor::runtime::cuda
