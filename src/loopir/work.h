#pragma once
// What one launch of a kernel has to do at least, counted from its IR and its parameters.
#include <cstdint>

#include "loopir/kernel.h"

namespace flexor::loopir {

// Bytes: every element that is read or written, once. Operations: those of floats and integers, a product with its sum as
// two; of attention without regard to masks and lengths.
struct Work {
    double bytes = 0;
    double operations = 0;               // but for those below
    double products = 0;                 // of contractions and attention
    DType products_dtype = DType::kF32;  // of their operands
};
Work work_of(const Kernel& kernel, const std::int64_t* params);

}  // namespace flexor::loopir
