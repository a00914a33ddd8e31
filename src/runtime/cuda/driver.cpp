#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "runtime/cuda/device.h"
#include "support/diagnostic.h"

namespace flexor::runtime::cuda {

namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

Diagnostic missing(const std::string& what) { return Diagnostic(DiagnosticId::kNoDevice).found(what); }

}  // namespace

Expected<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return missing(dlerror());
    auto driver = std::make_shared<Driver>();
#define FLEXOR_CUDA_CALL(name, symbol, ...)                                        \
    driver->name = reinterpret_cast<int (*)(__VA_ARGS__)>(dlsym(handle, #symbol)); \
    if (driver->name == nullptr) return missing("a driver without " #symbol ": too old");
#include "runtime/cuda/driver_calls.def"
#undef FLEXOR_CUDA_CALL
    driver->add_dependencies =
        reinterpret_cast<decltype(driver->add_dependencies)>(dlsym(handle, "cuGraphAddDependencies_v2"));
    if (auto status = driver->check(driver->init(0), "cuInit"); !status) return missing(status.error().to_string());
    return std::shared_ptr<const Driver>(std::move(driver));
}

Expected<std::shared_ptr<const Driver>> Driver::system() {
    static const Expected<std::shared_ptr<const Driver>> kDriver = open("libcuda.so.1");
    if (!kDriver) return Diagnostic(kDriver.error());
    return *kDriver;
}

Expected<void> Driver::check(int result, const char* call, const std::string& what) const {
    if (result == 0) return {};
    const char* name = nullptr;
    if (error_name(result, &name) != 0 || name == nullptr) name = "an unknown error";
    const std::string said =
        std::string(call) + " gave " + name + " (" + std::to_string(result) + ")" + (what.empty() ? "" : ", " + what);
    return Diagnostic(result == kOutOfMemory ? DiagnosticId::kOutOfMemory : DiagnosticId::kDeviceCallFailed)
        .found(said);
}

std::string device_report(const std::string& library) {
    const auto driver = Driver::open(library);
    if (!driver) return "driver     missing: " + driver.error().found() + "\n";
    int version = 0, count = 0;
    (*driver)->driver_version(&version);
    std::string out = "driver     " + library + ", CUDA " + std::to_string(version / 1000) + "." +
                      std::to_string(version % 1000 / 10) + "\n";
    if (const auto status = (*driver)->check((*driver)->device_count(&count), "cuDeviceGetCount"); !status)
        return out + "devices    " + status.error().found() + "\n";
    if (count == 0) out += "devices    none\n";
    for (int i = 0; i < count; ++i) {
        const auto device = Device::open(*driver, i);
        out += "device " + std::to_string(i) + "   " +
               (device ? (*device)->name() + ", compute capability " + std::to_string((*device)->capability() / 10) +
                             "." + std::to_string((*device)->capability() % 10)
                       : device.error().found()) +
               "\n";
    }
    return out;
}

}  // namespace flexor::runtime::cuda
