#pragma once
// Buffers of the caller for the results of a run.
//
// Laws
//  D1  What is written while inputs are still read is memory that no input, no weight and no other output has a part in.
//  D2  After a refusal of check_outputs nothing was run; after one of write_outputs, or of the run, the contents of the
//      buffers are undefined.
#include <span>

#include "bytecode/module.h"
#include "flexor/tensor.h"
#include "flexor/value.h"
#include "support/expected.h"
#include "vm/device_run.h"

namespace flexor::vm {

// One defined, writable tensor on `place` for each result, in which no two elements share memory, and which shares
// none with a tensor of the arguments or of the module, or with another output.
Expected<void> check_outputs(const bytecode::Module& module, const bytecode::Function& function,
                             std::span<const Value> arguments, std::span<const Tensor> outputs, Device place = {});

// Every result in its buffer: what is there already stays, the rest is copied; on a device by way of the host where
// strides differ.
Expected<void> write_outputs(const bytecode::Function& function, std::span<const Value> results,
                             std::span<const Tensor> outputs, DeviceRun* device = nullptr);

// Whether the run may read tensors of the host's that are not among its arguments: then nothing may be written early.
bool may_reach_host(const bytecode::Module& module, std::span<const Value> arguments);

// Whether elements of the two may share memory. Exact for what lies in rows of one pitch, as the columns of one matrix do;
// else true where the two ranges of addresses meet.
bool may_share_memory(const Tensor& a, const Tensor& b);

}  // namespace flexor::vm
