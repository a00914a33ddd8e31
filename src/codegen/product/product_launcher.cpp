#include "codegen/product/product_launcher.h"

#include <vector>

#include "support/diagnostic.h"

namespace flexor::codegen::product {

using runtime::cuda::CudaPointer;
using runtime::cuda::CudaStream;
using runtime::cuda::LaunchReport;
using runtime::cuda::MatrixProduct;

bool ProductLauncher::chosen(const std::int64_t* params) const {
    if (policy_ == Policy::kAlways) return true;
    const loopir::Contraction& c = *kernel_.contraction;
    return library_computes(c.a_dtype, rest_ == nullptr ? Part::kWhole : Part::kBefore,
                            product_sizes(c, kernel_.body, params), capability_);
}

Expected<LaunchReport> ProductLauncher::launch(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                               CudaPointer fault, CudaStream stream) {
    if (chosen(params)) {
        LaunchReport report;
        FLEXOR_ASSIGN(const bool done, multiply(buffers, params, fault, stream, report));
        if (done) {
            by_library_.fetch_add(1, std::memory_order_relaxed);
            report.launches = rest_ == nullptr ? 1 : 2;
            report.by_library = 1;
            return report;
        }
    }
    by_own_.fetch_add(1, std::memory_order_relaxed);
    return own_->launch(buffers, params, fault, stream);
}

std::uint32_t ProductLauncher::prefetch(std::span<const CudaPointer> buffers, const std::int64_t* params) {
    if (!chosen(params)) return own_->prefetch(buffers, params);
    if (rest_ == nullptr) return 0;
    std::vector<CudaPointer> all(buffers.begin(), buffers.end());
    all.push_back(0);
    return rest_->prefetch(all, rest_params(params).data());
}

void ProductLauncher::settle() {
    own_->settle();
    if (rest_ != nullptr) rest_->settle();
}

std::vector<std::int64_t> ProductLauncher::rest_params(const std::int64_t* params) const {
    const loopir::Body& body = kernel_.body;
    std::vector<std::int64_t> out(params, params + kernel_.param_count);
    out.resize(product_.rest->param_count);
    std::int64_t stride = 1;
    for (std::uint32_t dim = body.rank(); dim-- > 1;) {
        const loopir::IntRef& extent = body.extents[dim];
        stride *= extent.is_constant ? extent.value : params[extent.value];
        out[kernel_.param_count + dim - 1] = stride;
    }
    return out;
}

Expected<bool> ProductLauncher::multiply(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                         CudaPointer fault, CudaStream stream, LaunchReport& report) {
    const std::optional<MatrixProduct> product = placed(product_, kernel_, buffers, params);
    runtime::cuda::CublasLt* library = product ? library_->get() : nullptr;
    if (library == nullptr) return false;
    if (rest_ == nullptr) return library->multiply(*product, stream);

    const ProductSizes sizes = product_sizes(*kernel_.contraction, kernel_.body, params);
    const auto bytes = static_cast<std::size_t>(sizes.batch * sizes.m * sizes.n) * dtype_size(product_.result);
    return library->multiply_then(*product, bytes, stream, [&](CudaPointer made) -> Expected<void> {
        std::vector<CudaPointer> all(buffers.begin(), buffers.end());
        all.push_back(made);
        FLEXOR_ASSIGN(report, rest_->launch(all, rest_params(params).data(), fault, stream));
        return {};
    });
}

Expected<runtime::cuda::GraphNode> ProductLauncher::graph_node(const runtime::cuda::GraphLaunch& launch,
                                                               runtime::cuda::GraphFrame& frame) {
    std::vector<std::int64_t> most;
    for (const runtime::cuda::GraphNumber& number : launch.params) most.push_back(number.most);
    if (policy_ != Policy::kAlways && kernel_.contraction->a_dtype == DType::kF32 && chosen(most.data()))
        return Diagnostic(DiagnosticId::kNoCodeGenerator).found(kernel_.name + ": a product for cuBLASLt");
    return own_->graph_node(launch, frame);
}

std::string ProductLauncher::note() const {
    return "cuBLASLt computed " + std::to_string(by_library_.load(std::memory_order_relaxed)) +
           " of its products, the kernel " + std::to_string(by_own_.load(std::memory_order_relaxed));
}

}  // namespace flexor::codegen::product
