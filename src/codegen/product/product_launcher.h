#pragma once
// A contraction on one device: for each launch a library's product, or the kernel of our own.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/product/choice.h"
#include "codegen/product/library_product.h"
#include "loopir/kernel.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/launcher.h"

namespace flexor::codegen::product {

class ProductLauncher final : public runtime::cuda::Launcher {
public:
    // `own` runs the kernel, `rest` product.rest, where there is one.
    ProductLauncher(loopir::Kernel kernel, LibraryProduct product, std::shared_ptr<runtime::cuda::Launcher> own,
                    std::shared_ptr<runtime::cuda::Launcher> rest, std::shared_ptr<runtime::cuda::LazyCublasLt> library,
                    int capability, Policy policy)
        : kernel_(std::move(kernel)),
          product_(std::move(product)),
          own_(std::move(own)),
          rest_(std::move(rest)),
          library_(std::move(library)),
          capability_(capability),
          policy_(policy) {}

    Expected<runtime::cuda::LaunchReport> launch(std::span<const runtime::cuda::CudaPointer> buffers,
                                                 const std::int64_t* params, runtime::cuda::CudaPointer fault,
                                                 runtime::cuda::CudaStream stream) override;
    std::uint32_t prefetch(std::span<const runtime::cuda::CudaPointer> buffers, const std::int64_t* params) override;
    void settle() override;
    std::string note() const override;
    // The kernel of our own. Refused where the library is so much faster that launches one by one are.
    Expected<runtime::cuda::GraphNode> graph_node(const runtime::cuda::GraphLaunch& launch,
                                                  runtime::cuda::GraphFrame& frame) override;

private:
    bool chosen(const std::int64_t* params) const;
    // Whether the library did it; then `report` is the rest's.
    Expected<bool> multiply(std::span<const runtime::cuda::CudaPointer> buffers, const std::int64_t* params,
                            runtime::cuda::CudaPointer fault, runtime::cuda::CudaStream stream,
                            runtime::cuda::LaunchReport& report);
    std::vector<std::int64_t> rest_params(const std::int64_t* params) const;

    loopir::Kernel kernel_;
    LibraryProduct product_;
    std::shared_ptr<runtime::cuda::Launcher> own_, rest_;
    std::shared_ptr<runtime::cuda::LazyCublasLt> library_;
    int capability_;
    Policy policy_;
    std::atomic<std::uint64_t> by_library_{0}, by_own_{0};
};

}  // namespace flexor::codegen::product
