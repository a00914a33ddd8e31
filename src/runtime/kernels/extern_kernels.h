#pragma once
// Kernels written by hand, by the name that loopir::Kernel::extern_name gives.
//
// Buffers are the op's operands, then its results. Parameters follow the buffers: for each, its offset in elements, its
// sizes and its strides; ranks are those that the op takes. Bool attributes of the op follow, in name order.
#include "loopir/kernel.h"
#include "runtime/kernel_handle.h"

namespace flexor::runtime {

// Null if there is none of this name.
KernelRef extern_kernel(const loopir::Kernel& kernel);

}  // namespace flexor::runtime
