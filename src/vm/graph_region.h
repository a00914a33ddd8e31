#pragma once
// Whether the launches of a region may run as one graph of the device, and what a graph must know of its numbers.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executable/executable.h"
#include "runtime/cuda/graph_frame.h"
#include "support/expected.h"

namespace flexor::vm {

// Fewer launches than these gain nothing from a graph.
inline constexpr std::size_t kLeastGraphLaunches = 3;

// The size up to which a graph serves sizes near `n`: powers of two up to 32, then steps of 32, from 512 on of an eighth of the
// power of two below.
std::int64_t bucket_end(std::int64_t n);

// A region whose steps are known before its first launch: one block, without calls, reads and lists. Immutable.
class GraphRegion {
public:
    // Why the region has no graphs, for people; empty: it has some.
    static std::string refusal(const executable::Executable& executable, std::size_t least = kLeastGraphLaunches);

    explicit GraphRegion(std::shared_ptr<const executable::Executable> executable);
    const executable::Executable& executable() const { return *executable_; }
    const std::shared_ptr<const executable::Executable>& shared_executable() const { return executable_; }

    // Numbers of the call frame that decide which graph serves: sizes of tensors, and whatever sizes, strides and offsets are
    // made of.
    const std::vector<executable::Slot>& deciding() const { return deciding_; }
    // Those that are sizes: where one is 0 there are no graphs.
    const std::vector<executable::Slot>& sizes() const { return sizes_; }

    // Frames of a call and of the largest one beside it. SizeOverflow where that has no frame.
    struct Frames {
        std::vector<std::int64_t> now, most;
    };
    Expected<Frames> frames(std::vector<std::int64_t> call_frame) const;

    // The number in a slot, as all calls of a graph see it.
    runtime::cuda::GraphNumber number(executable::Slot slot, const Frames& frames,
                                      runtime::cuda::GraphFrame& frame) const;

private:
    bool run(std::vector<std::int64_t>& frame) const;

    std::shared_ptr<const executable::Executable> executable_;
    std::vector<executable::Slot> deciding_, sizes_;
    std::vector<bool> fixed_;             // by slot: the same in every call
    std::vector<std::int64_t> divisors_;  // by slot
};

}  // namespace flexor::vm
