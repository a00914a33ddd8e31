#pragma once
// Matrix products in blocks, for the interpreter: plain loops over copies of blocks that stay in the cache. Elements are
// converted and summed as the references do it, in double or wrapping int64; only the order of the sums is another.
#include <cstdint>
#include <functional>

#include "ops/op_def.h"

namespace flexor::ops {

// A matrix in the memory of a tensor; offset and strides in elements.
struct MatrixView {
    const Tensor& tensor;
    std::int64_t offset = 0, row_stride = 0, column_stride = 0;
};

struct ProductSizes {
    std::int64_t rows = 0, columns = 0, depth = 0;
};

// A sum of products: `real` of a floating dtype, else `integer`.
struct Dot {
    double real = 0;
    std::int64_t integer = 0;
};
using TakeDot = std::function<void(std::int64_t row, std::int64_t column, Dot sum)>;

// Keeps its scratch memory from product to product.
class BlockedProduct {
public:
    // Elements are converted to `dtype` before they are multiplied.
    BlockedProduct(DType dtype, bool (*stop_requested)());

    // a[rows, depth] . b[depth, columns]; `take` gets every sum once. OutOfMemory or Interrupted.
    Expected<void> run(const MatrixView& a, const MatrixView& b, const ProductSizes& sizes, const TakeDot& take);

private:
    template <class Number>
    Expected<void> multiply(const MatrixView& a, const MatrixView& b, const ProductSizes& sizes, const TakeDot& take);

    DType dtype_;
    bool (*stop_requested_)();
    Tensor scratch_;
};

}  // namespace flexor::ops
