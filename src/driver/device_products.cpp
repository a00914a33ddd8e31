#include "driver/device_products.h"

#include "codegen/product/product_launcher.h"
#include "support/environment.h"

namespace flexor::driver {

using codegen::product::Policy;

DeviceProducts::Made DeviceProducts::choose(const loopir::Kernel& kernel,
                                            const std::shared_ptr<const runtime::cuda::Device>& device, Made own,
                                            const std::function<Made(const loopir::Kernel&)>& make) {
    if (policy_ == Policy::kNever) return own;
    auto product = codegen::product::library_product(kernel);
    if (!product) return own;
    Made rest;
    if (product->rest) {
        rest = make(*product->rest);
        if (rest == nullptr) return own;
    }
    std::shared_ptr<runtime::cuda::LazyCublasLt> library;
    {
        const std::lock_guard lock(mutex_);
        std::weak_ptr<runtime::cuda::LazyCublasLt>& known = opened_[device.get()];
        library = known.lock();
        if (library == nullptr) {
            library = std::make_shared<runtime::cuda::LazyCublasLt>(device, library_);
            known = library;
        }
    }
    return std::make_shared<codegen::product::ProductLauncher>(kernel, *std::move(product), std::move(own),
                                                               std::move(rest), std::move(library),
                                                               device->capability(), policy_);
}

Policy product_policy() {
    const auto said = support::library_products_from_environment();
    if (!said || !*said || **said == "measured") return Policy::kMeasured;
    return **said == "always" ? Policy::kAlways : Policy::kNever;
}

}  // namespace flexor::driver
