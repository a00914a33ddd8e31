#pragma once
// Who computes a product: the library where it was measured faster.
#include <cstdint>

#include "codegen/product/library_product.h"
#include "flexor/dtype.h"

namespace flexor::codegen::product {

enum class Policy : std::uint8_t {
    kMeasured,  // the table decides
    kNever,
    kAlways,  // whatever the library can
};

enum class Part : std::uint8_t {
    kWhole,   // the product is all there is
    kBefore,  // a kernel of our own goes on from it
};

// Of a device of that compute capability; one that was not measured computes everything itself.
bool library_computes(DType dtype, Part part, const ProductSizes& sizes, int capability);

}  // namespace flexor::codegen::product
