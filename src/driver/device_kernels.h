#pragma once
// Kernels of programs on devices, and what compiles them.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/device_products.h"
#include "driver/kernel_cache.h"
#include "executable/executable.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launcher.h"
#include "support/expected.h"

namespace flexor::driver {

// What is equal is made once a device, whoever asks; machine code is made when a launch first wants it.
class DeviceKernels {
public:
    static DeviceKernels& instance();

    // Of the whole process, before the first kernel: see Session::set_device_compiler.
    void set_compiler(std::vector<std::string> command);

    // Sets the launchers of all kernels. On failure those that could not be made, and no others, are without one.
    Expected<KernelCache::Built> fill(std::span<executable::KernelSlot> kernels,
                                      const std::shared_ptr<const runtime::cuda::Device>& device);

    // Waits until every variant that launches have asked for is compiled.
    void settle();

    // Whether kernels can be compiled, for people.
    std::string compiler_report();

private:
    struct Compiler;
    struct Item {
        loopir::Kernel kernel;
        const runtime::cuda::Device* device;  // the launcher keeps it
        std::shared_ptr<runtime::cuda::Launcher> launcher;
    };
    std::shared_ptr<Compiler> compiler();
    void end();

    std::mutex mutex_;
    std::vector<std::string> command_;
    std::shared_ptr<Compiler> compiler_;
    DeviceProducts products_{product_policy()};
    std::unordered_multimap<std::size_t, Item> items_;
};

// A kernel that runs in the loop-IR evaluator behind such a driver; null for an extern kernel.
std::shared_ptr<runtime::cuda::Launcher> evaluated_launcher(const loopir::Kernel& kernel,
                                                            std::shared_ptr<const runtime::cuda::Device> device);

}  // namespace flexor::driver
