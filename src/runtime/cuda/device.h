#pragma once
// A CUDA device: memory, streams and compiled kernels in its primary context, which the process's other users of the device
// (torch among them) share. No call changes which context is current in the calling thread.
//
// Laws
//  D1  Memory is ordered with a stream: it may be used by what follows on that stream, and is given back behind what
//      precedes the release.
//  D2  Objects keep their device alive, and may be dropped by any thread.
//  D3  A failed call is a Diagnostic: OutOfMemory, else DeviceCallFailed with the call, the driver's name of the error and
//      the kernel. A kernel that fails while it runs is reported by a later call.
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/device_code.h"
#include "runtime/cuda/driver.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

class Device {
public:
    static Expected<std::shared_ptr<const Device>> open(std::shared_ptr<const Driver> driver, int index);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    int index() const { return index_; }
    const std::string& name() const { return name_; }
    int capability() const { return capability_; }  // 10 * major + minor
    int multiprocessors() const { return multiprocessors_; }
    std::uint64_t memory_bytes() const { return memory_bytes_; }
    const Driver& driver() const { return *driver_; }
    Expected<int> attribute(int number) const;  // a CUdevice_attribute

    Expected<CudaPointer> allocate(std::size_t bytes, CudaStream stream) const;  // 0 for no bytes
    void release(CudaPointer memory, CudaStream stream) const;
    Expected<void> copy_to_device(CudaPointer to, const void* from, std::size_t bytes, CudaStream stream) const;
    Expected<void> copy_to_host(void* to, CudaPointer from, std::size_t bytes, CudaStream stream) const;
    Expected<void> copy_on_device(CudaPointer to, CudaPointer from, std::size_t bytes, CudaStream stream) const;
    Expected<void> synchronize(CudaStream stream) const;
    // Whether what is given to the stream becomes part of a graph instead of being done.
    Expected<bool> is_captured(CudaStream stream) const;
    Expected<void> synchronize_all() const;  // every stream of the device's context
    void release_unused() const;             // memory that was released goes from the driver's pool back to the device

    // Host memory that the device reads and writes at the same address.
    Expected<void*> allocate_host(std::size_t bytes) const;
    void release_host(void* memory) const;

    // Makes the device's context current in this thread while it lives.
    class Current {
    public:
        explicit Current(const Device& device)
            : device_(device), status_(device.driver_->push_context(device.context_)) {}
        ~Current() {
            CudaContext ours = nullptr;
            if (status_ == 0) device_.driver_->pop_context(&ours);
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        Expected<void> ok() const { return device_.driver_->check(status_, "cuCtxPushCurrent"); }

    private:
        const Device& device_;
        int status_;
    };

private:
    Device(std::shared_ptr<const Driver> driver, int index) : driver_(std::move(driver)), index_(index) {}
    Expected<void> start();

    std::shared_ptr<const Driver> driver_;
    int index_;
    CudaDevice handle_ = 0;
    CudaContext context_ = nullptr;
    std::string name_;
    int capability_ = 0;
    int multiprocessors_ = 0;
    std::uint64_t memory_bytes_ = 0;
};

// A stream of our own that does not wait for the default stream.
class Stream {
public:
    static Expected<std::shared_ptr<const Stream>> create(std::shared_ptr<const Device> device);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    CudaStream handle() const { return handle_; }

    // What follows on this stream runs behind what has been given to `other` so far.
    Expected<void> wait_for(CudaStream other) const;

private:
    explicit Stream(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
    std::shared_ptr<const Device> device_;
    CudaStream handle_ = nullptr;
    CudaEvent event_ = nullptr;
};

// A kernel that is loaded. Immutable and thread-safe.
class DeviceKernel {
public:
    // `name` is function:line:kind, for people. The driver's parameters must be those that the compiler stated.
    static Expected<std::shared_ptr<const DeviceKernel>> load(std::shared_ptr<const Device> device,
                                                              const DeviceCode& code, std::string name);
    ~DeviceKernel();
    DeviceKernel(const DeviceKernel&) = delete;
    DeviceKernel& operator=(const DeviceKernel&) = delete;

    // `arguments`: one a parameter but the compiler's own two, an integer in its low bytes. Nothing happens for a grid of
    // no programs.
    Expected<void> launch(std::int64_t programs, std::span<const std::uint64_t> arguments, CudaStream stream) const;

    // ---- of a launch by somebody else, who passes compiler_parameters() null pointers behind the arguments

    CudaFunction function() const { return function_; }
    unsigned threads() const { return threads_; }
    unsigned shared_bytes() const { return shared_; }
    const std::string& name() const { return name_; }
    static std::size_t compiler_parameters();

private:
    DeviceKernel(std::shared_ptr<const Device> device, std::string name)
        : device_(std::move(device)), name_(std::move(name)) {}
    Expected<void> start(const DeviceCode& code);

    std::shared_ptr<const Device> device_;
    std::string name_;
    CudaModule module_ = nullptr;
    CudaFunction function_ = nullptr;
    unsigned threads_ = 0, shared_ = 0;
    std::size_t parameters_ = 0;
};

}  // namespace flexor::runtime::cuda
