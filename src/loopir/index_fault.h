#pragma once
// What a launch stumbled over. A kernel only says that an index is out of range; this says which.
#include <cstdint>
#include <optional>

#include "loopir/loopir.h"

namespace flexor::loopir {

struct IndexFault {
    std::int64_t index;   // as the buffer holds it
    std::int64_t extent;  // it should lie below
};

// The first gathered index outside its extent, access by access, in row-major order; writes nothing. The buffers must
// hold what the launch read. Nothing for extern kernels, for indices that depend on a reduction of their row, and where
// the search would take too long.
std::optional<IndexFault> find_index_fault(const Kernel& kernel, const EvalArgs& args);

}  // namespace flexor::loopir
