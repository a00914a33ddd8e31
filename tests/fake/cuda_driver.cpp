#include "cuda_driver.h"

#include <cstdlib>
#include <cstring>

namespace {

flexor::tests::FakeCuda state;

// The error that the test has asked for, once.
int result_of(const char* call) {
    if (state.failing != call) return 0;
    state.failing.clear();
    return state.code;
}

}  // namespace

flexor::tests::FakeCuda* fake_cuda_state() { return &state; }

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
    *value = number == 75 ? 9 : number == 76 ? 0 : 132;
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
CALL(cuModuleLoadData, void** module, const void*) {
    if (const int error = result_of("cuModuleLoadData")) return error;
    ++state.modules;
    *module = &state;
    return 0;
}
CALL(cuModuleUnload, void*) {
    --state.modules;
    return 0;
}
CALL(cuModuleGetFunction, void** function, void*, const char*) {
    *function = &state;
    return result_of("cuModuleGetFunction");
}
CALL(cuFuncSetAttribute, void*, int, int value) {
    state.dynamic_shared = value;
    return 0;
}
CALL(cuFuncGetParamInfo, void*, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (index >= state.parameter_bytes.size()) return 1;
    *offset = 8 * index;
    *size = state.parameter_bytes[index];
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
CALL(cuStreamSynchronize, void*) { return result_of("cuStreamSynchronize"); }
CALL(cuStreamWaitEvent, void*, void*, unsigned) { return 0; }
CALL(cuEventCreate, void** event, unsigned) {
    ++state.events;
    *event = &state.events;
    return 0;
}
CALL(cuEventRecord, void*, void*) { return 0; }
CALL(cuEventDestroy_v2, void*) {
    --state.events;
    return 0;
}
CALL(cuMemAllocAsync, std::uint64_t* pointer, std::size_t bytes, void*) {
    if (const int error = result_of("cuMemAllocAsync")) return error;
    ++state.blocks;
    *pointer = reinterpret_cast<std::uint64_t>(std::malloc(bytes));
    return 0;
}
CALL(cuMemFreeAsync, std::uint64_t pointer, void*) {
    --state.blocks;
    std::free(reinterpret_cast<void*>(pointer));
    return 0;
}
CALL(cuMemcpyHtoDAsync_v2, std::uint64_t to, const void* from, std::size_t bytes, void*) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
}
CALL(cuMemcpyDtoHAsync_v2, void* to, std::uint64_t from, std::size_t bytes, void*) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return 0;
}
CALL(cuLaunchKernel, void*, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned shared,
     void* stream, void** parameters, void**) {
    if (const int error = result_of("cuLaunchKernel")) return error;
    if (x == 0) return 1;  // as the driver does
    flexor::tests::FakeLaunch launch{{x, y, z}, threads, shared, stream, {}};
    for (std::size_t i = 0; i < state.parameter_bytes.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, parameters[i], state.parameter_bytes[i]);
        launch.values.push_back(value);
    }
    state.launches.push_back(launch);
    return 0;
}
