#pragma once
// What a processor or a device does at best: the measure of what kernels take.
#include "flexor/dtype.h"

namespace flexor::runtime {

// 0: not known.
struct Floor {
    double bytes_per_second = 0;  // of a large copy, measured: what it reads and what it writes
    double operations_per_second = 0;
    double products_16_per_second = 0, products_32_per_second = 0, products_64_per_second = 0;  // operations, by bits

    double products_per_second(DType dtype) const {
        const std::size_t bytes = dtype_size(dtype);
        return bytes <= 2 ? products_16_per_second : bytes == 4 ? products_32_per_second : products_64_per_second;
    }
};

// Of this host, by all threads of the pool: measured at the first call. Its operations are not known.
const Floor& host_floor();

}  // namespace flexor::runtime
