#pragma once
// Times of the kernels of one run, for `explain`.
#include <string>
#include <vector>

#include "flexor/session.h"
#include "loopir/work.h"
#include "runtime/floor.h"

namespace flexor::vm {

// Of one run, in one thread.
class Profile {
public:
    void set_floor(const runtime::Floor& floor) { floor_ = floor; }
    // A launch, or with no work the call of an op on whole tensors.
    void add(const std::string& name, const loopir::Work& work, double seconds);

    const std::vector<KernelTime>& rows() const { return rows_; }  // in the order of their first launches
    const runtime::Floor& floor() const { return floor_; }

private:
    runtime::Floor floor_;
    std::vector<KernelTime> rows_;
};

}  // namespace flexor::vm
