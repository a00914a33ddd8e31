#include "runtime/cuda/device.h"

#include <limits>

#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::runtime::cuda {

namespace {

// Numbers of the driver's own enumerations.
constexpr int kMultiprocessorCount = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute
constexpr int kMaxDynamicSharedBytes = 8;                                               // CUfunction_attribute
constexpr unsigned kNonBlocking = 1;                                                    // CUstream_flags
constexpr unsigned kDisableTiming = 2;                                                  // CUevent_flags
constexpr unsigned kPortableMapped = 1 | 2;                                             // CU_MEMHOSTALLOC_*

constexpr std::int64_t kPlainSharedBytes = 48 * 1024;  // what a block may have without being asked for
constexpr unsigned kWarp = 32;
constexpr std::size_t kMostParameters = 128;
constexpr std::size_t kCompilerParameters = 2;  // pointers to scratch memory, null where the kernel wants none

}  // namespace

Expected<std::shared_ptr<const Device>> Device::open(std::shared_ptr<const Driver> driver, int index) {
    int count = 0;
    FLEXOR_TRY(driver->check(driver->device_count(&count), "cuDeviceGetCount"));
    if (index < 0 || index >= count) {
        return Diagnostic(DiagnosticId::kNoDevice)
            .found("device " + std::to_string(index))
            .expected("one of " + std::to_string(count));
    }
    std::shared_ptr<Device> device(new Device(std::move(driver), index));
    FLEXOR_TRY(device->start());
    return std::shared_ptr<const Device>(std::move(device));
}

Expected<void> Device::start() {
    FLEXOR_TRY(driver_->check(driver_->device(&handle_, index_), "cuDeviceGet"));
    char name[256] = "";
    FLEXOR_TRY(driver_->check(driver_->device_name(name, sizeof name, handle_), "cuDeviceGetName"));
    name_ = name;
    int major = 0, minor = 0;
    for (const auto& [value, number] : {std::pair{&major, kCapabilityMajor}, std::pair{&minor, kCapabilityMinor},
                                        std::pair{&multiprocessors_, kMultiprocessorCount}})
        FLEXOR_TRY(driver_->check(driver_->device_attribute(value, number, handle_), "cuDeviceGetAttribute"));
    capability_ = 10 * major + minor;
    std::size_t bytes = 0;
    FLEXOR_TRY(driver_->check(driver_->total_memory(&bytes, handle_), "cuDeviceTotalMem"));
    memory_bytes_ = bytes;
    return driver_->check(driver_->retain_context(&context_, handle_), "cuDevicePrimaryCtxRetain");
}

Device::~Device() {
    if (context_ != nullptr) driver_->release_context(handle_);
}

Expected<int> Device::attribute(int number) const {
    int value = 0;
    FLEXOR_TRY(driver_->check(driver_->device_attribute(&value, number, handle_), "cuDeviceGetAttribute"));
    return value;
}

Expected<CudaPointer> Device::allocate(std::size_t bytes, CudaStream stream) const {
    if (bytes == 0) return CudaPointer{0};
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    CudaPointer memory = 0;
    FLEXOR_TRY(driver_->check(driver_->allocate(&memory, bytes, stream), "cuMemAllocAsync",
                              std::to_string(bytes) + " bytes on device " + std::to_string(index_)));
    return memory;
}

void Device::release(CudaPointer memory, CudaStream stream) const {
    if (memory == 0) return;
    const Current current(*this);
    if (current.ok()) driver_->release(memory, stream);
}

Expected<void> Device::copy_to_device(CudaPointer to, const void* from, std::size_t bytes, CudaStream stream) const {
    if (bytes == 0) return {};
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    return driver_->check(driver_->copy_to_device(to, from, bytes, stream), "cuMemcpyHtoDAsync");
}

Expected<void> Device::copy_to_host(void* to, CudaPointer from, std::size_t bytes, CudaStream stream) const {
    if (bytes == 0) return {};
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    return driver_->check(driver_->copy_to_host(to, from, bytes, stream), "cuMemcpyDtoHAsync");
}

Expected<void> Device::copy_on_device(CudaPointer to, CudaPointer from, std::size_t bytes, CudaStream stream) const {
    if (bytes == 0) return {};
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    return driver_->check(driver_->copy_on_device(to, from, bytes, stream), "cuMemcpyDtoDAsync");
}

void Device::release_unused() const {
    const Current current(*this);
    CudaMemoryPool pool = nullptr;
    if (current.ok() && driver_->default_pool(&pool, handle_) == 0) driver_->trim_pool(pool, 0);
}

Expected<void*> Device::allocate_host(std::size_t bytes) const {
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    void* memory = nullptr;
    FLEXOR_TRY(driver_->check(driver_->allocate_host(&memory, bytes, kPortableMapped), "cuMemHostAlloc"));
    return memory;
}

void Device::release_host(void* memory) const {
    const Current current(*this);
    if (current.ok()) driver_->release_host(memory);
}

Expected<void> Device::synchronize(CudaStream stream) const {
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    return driver_->check(driver_->synchronize_stream(stream), "cuStreamSynchronize");
}

Expected<bool> Device::is_captured(CudaStream stream) const {
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    int status = 0;
    FLEXOR_TRY(driver_->check(driver_->is_capturing(stream, &status), "cuStreamIsCapturing"));
    return status != 0;
}

Expected<void> Device::synchronize_all() const {
    const Current current(*this);
    FLEXOR_TRY(current.ok());
    return driver_->check(driver_->synchronize_context(), "cuCtxSynchronize");
}

// ---------------------------------------------------------------- Stream

Expected<std::shared_ptr<const Stream>> Stream::create(std::shared_ptr<const Device> device) {
    std::shared_ptr<Stream> stream(new Stream(std::move(device)));
    const Driver& driver = stream->device_->driver();
    const Device::Current current(*stream->device_);
    FLEXOR_TRY(current.ok());
    FLEXOR_TRY(driver.check(driver.create_stream(&stream->handle_, kNonBlocking), "cuStreamCreate"));
    FLEXOR_TRY(driver.check(driver.create_event(&stream->event_, kDisableTiming), "cuEventCreate"));
    return std::shared_ptr<const Stream>(std::move(stream));
}

Stream::~Stream() {
    const Device::Current current(*device_);
    if (!current.ok()) return;
    if (event_ != nullptr) device_->driver().destroy_event(event_);
    if (handle_ != nullptr) device_->driver().destroy_stream(handle_);
}

Expected<void> Stream::wait_for(CudaStream other) const {
    const Driver& driver = device_->driver();
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    FLEXOR_TRY(driver.check(driver.record_event(event_, other), "cuEventRecord"));
    return driver.check(driver.wait_event(handle_, event_, 0), "cuStreamWaitEvent");
}

// ---------------------------------------------------------------- DeviceKernel

Expected<std::shared_ptr<const DeviceKernel>> DeviceKernel::load(std::shared_ptr<const Device> device,
                                                                 const DeviceCode& code, std::string name) {
    std::shared_ptr<DeviceKernel> kernel(new DeviceKernel(std::move(device), std::move(name)));
    FLEXOR_TRY(kernel->start(code));
    return std::shared_ptr<const DeviceKernel>(std::move(kernel));
}

Expected<void> DeviceKernel::start(const DeviceCode& code) {
    const Driver& driver = device_->driver();
    const auto refused = [&](const std::string& what) {
        return Diagnostic(DiagnosticId::kDeviceCallFailed).found("kernel " + name_ + " " + what);
    };
    if (code.scratch_bytes != 0) return refused("wants scratch memory");
    if (code.parameter_bytes.size() < kCompilerParameters || code.parameter_bytes.size() > kMostParameters)
        return refused("has " + std::to_string(code.parameter_bytes.size()) + " parameters");
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const std::string what = "kernel " + name_;
    FLEXOR_TRY(driver.check(driver.load_module(&module_, code.cubin.data()), "cuModuleLoadData", what));
    FLEXOR_TRY(
        driver.check(driver.module_function(&function_, module_, code.symbol.c_str()), "cuModuleGetFunction", what));
    if (code.shared_bytes > kPlainSharedBytes) {
        FLEXOR_TRY(driver.check(
            driver.set_function_attribute(function_, kMaxDynamicSharedBytes, static_cast<int>(code.shared_bytes)),
            "cuFuncSetAttribute", what));
    }
    for (std::size_t i = 0; i < code.parameter_bytes.size(); ++i) {
        std::size_t offset = 0, bytes = 0;
        FLEXOR_TRY(driver.check(driver.parameter_info(function_, i, &offset, &bytes), "cuFuncGetParamInfo", what));
        if (bytes != static_cast<std::size_t>(code.parameter_bytes[i]) || bytes > sizeof(std::uint64_t)) {
            return refused("has " + std::to_string(bytes) + " bytes in parameter " + std::to_string(i) + ", not " +
                           std::to_string(code.parameter_bytes[i]));
        }
    }
    threads_ = kWarp * static_cast<unsigned>(code.warps);
    shared_ = static_cast<unsigned>(code.shared_bytes);
    parameters_ = code.parameter_bytes.size() - kCompilerParameters;
    return {};
}

std::size_t DeviceKernel::compiler_parameters() { return kCompilerParameters; }

DeviceKernel::~DeviceKernel() {
    if (module_ == nullptr) return;
    const Device::Current current(*device_);
    if (current.ok()) device_->driver().unload_module(module_);
}

Expected<void> DeviceKernel::launch(std::int64_t programs, std::span<const std::uint64_t> arguments,
                                    CudaStream stream) const {
    FLEXOR_CHECK(arguments.size() == parameters_ && programs <= std::numeric_limits<std::int32_t>::max());
    if (programs <= 0) return {};
    std::uint64_t scratch = 0;
    void* pointers[kMostParameters];
    // The machine is little-endian: a parameter of four bytes lies where the number begins.
    for (std::size_t i = 0; i < parameters_; ++i) pointers[i] = const_cast<std::uint64_t*>(&arguments[i]);
    for (std::size_t i = 0; i < kCompilerParameters; ++i) pointers[parameters_ + i] = &scratch;
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const Driver& driver = device_->driver();
    return driver.check(driver.launch(function_, static_cast<unsigned>(programs), 1, 1, threads_, 1, 1, shared_, stream,
                                      pointers, nullptr),
                        "cuLaunchKernel", "kernel " + name_);
}

}  // namespace flexor::runtime::cuda
