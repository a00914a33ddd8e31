#pragma once
// An op on whole tensors as a step of a tape.
#include <cstdint>
#include <vector>

#include "executable/executable.h"
#include "flexor/tensor.h"
#include "support/expected.h"

namespace flexor::vm {

// Refuses integers that do not fit in what the op converts them to.
Expected<void> refuse_out_of_range(const ops::OpDef& op, const ops::DTypes& dtypes, std::span<const Tensor> inputs);

// One call at a time. The memory that frame and buffers name stays alive, and is not written by others, from settle()
// to the end of run().
class NativeCall {
public:
    // Computes the sizes that the elements make into the frame. run() of the same call goes on from what was found.
    Expected<void> settle(const executable::Call& call, std::int64_t* frame, void* const* buffers);
    Expected<void> run(const executable::Call& call, const std::int64_t* frame, void* const* buffers);
    // What an op that writes to its first operand is about to write to, in the memory of that.
    Expected<Tensor> written(const executable::Call& call, const std::int64_t* frame, void* const* buffers);
    void forget();  // what a call that was not run to its end has left

private:
    Expected<void> prepare(const executable::Call& call, const std::int64_t* frame, void* const* buffers);
    ops::ReferenceContext context(const executable::Call& call);

    std::vector<Tensor> inputs_, outputs_;
    types::Attrs attrs_;
    std::shared_ptr<void> found_;
};

}  // namespace flexor::vm
