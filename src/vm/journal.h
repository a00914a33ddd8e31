#pragma once
// What a run has overwritten, so that a run that fails can give it back.
#include <utility>
#include <vector>

#include "flexor/tensor.h"

namespace flexor::vm {

// One run's. Unless the run is done when the journal ends, everything is given back, the newest first: also where memory
// is exhausted on the way.
class Journal {
public:
    Journal() = default;
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    // Keeps what the elements of a tensor in host memory hold, and that memory. False: memory is exhausted.
    [[nodiscard]] bool keep(const Tensor& target);
    void done() { kept_.clear(); }

private:
    std::vector<std::pair<Tensor, Tensor>> kept_;  // a target without the elements that are at several places, its copy
};

}  // namespace flexor::vm
