#pragma once
// The library that computes products on devices, and the launchers that choose between it and kernels of our own.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "codegen/product/choice.h"
#include "loopir/kernel.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/launcher.h"

namespace flexor::driver {

// Thread-safe.
class DeviceProducts {
public:
    // `library`: see CublasLt::open.
    explicit DeviceProducts(codegen::product::Policy policy, std::string library = "")
        : policy_(policy), library_(std::move(library)) {}

    using Made = std::shared_ptr<runtime::cuda::Launcher>;
    // `own`, or what asks for each launch whether the library is to compute it. `make` gives a launcher of our own, or null.
    Made choose(const loopir::Kernel& kernel, const std::shared_ptr<const runtime::cuda::Device>& device, Made own,
                const std::function<Made(const loopir::Kernel&)>& make);

private:
    codegen::product::Policy policy_;
    std::string library_;
    std::mutex mutex_;
    std::map<const runtime::cuda::Device*, std::weak_ptr<runtime::cuda::LazyCublasLt>> opened_;
};

// What FLEXOR_CUBLASLT says.
codegen::product::Policy product_policy();

}  // namespace flexor::driver
