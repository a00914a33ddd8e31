#pragma once
// A contraction as a product of a library's, and what of its epilogue is left.
#include <cstdint>
#include <optional>
#include <span>

#include "loopir/kernel.h"
#include "runtime/cuda/cublaslt.h"

namespace flexor::codegen::product {

struct LibraryProduct {
    DType result = DType::kF32;           // of what the library writes
    std::optional<loopir::Access> bias;   // along n, one beside the other
    std::optional<loopir::Access> store;  // where the product is all that the kernel stores
    // Else: a row kernel that goes on from the product, with a buffer more than the kernel: the product, dense [batch.., m, n].
    // Behind the kernel's slots come strides of the product, one for each dim but the last.
    std::optional<loopir::Kernel> rest;
};

// Nothing where the library knows no such sum: of other dtypes, or of a left side that is computed.
std::optional<LibraryProduct> library_product(const loopir::Kernel& kernel);

struct ProductSizes {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
};
// Of a launch; batch is the product of all batch dims.
ProductSizes product_sizes(const loopir::Contraction& contraction, const loopir::Body& epilogue,
                           const std::int64_t* params);

// The launch as the library takes it; nothing where operands or result lie in a way that it does not know. The result's address is
// left out where there is a rest.
std::optional<runtime::cuda::MatrixProduct> placed(const LibraryProduct& product, const loopir::Kernel& kernel,
                                                   std::span<const runtime::cuda::CudaPointer> buffers,
                                                   const std::int64_t* params);

}  // namespace flexor::codegen::product
