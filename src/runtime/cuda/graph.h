#pragma once
// A chain of kernels that the driver launches as one: an instantiated CUDA graph, its memory, and the frame of numbers that
// the kernels read. What a call does is to fill the frame: one copy, one launch, and no node is ever changed.
//
// Laws
//  G1  Calls of a graph are ordered by its stream: one frame and one memory serve them all.
//  G2  A graph may be dropped while it runs: what it holds is kept until the device has come to rest.
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "flexor/tensor.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/graph_frame.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

struct GraphArgument {
    enum class Kind : std::uint8_t {
        kValue,     // `value`
        kFrame,     // the address of the frame on the device
        kScratch,   // `value` bytes into memory that the launches of the graph use one after the other
        kCounters,  // i32 counters, 0 before and after each launch
    } kind = Kind::kValue;
    std::uint64_t value = 0;
};

// A launch that is part of a graph: grids are those of the largest sizes, programs that have nothing to do leave at once.
struct GraphNode {
    CudaFunction function = nullptr;
    std::shared_ptr<const void> keeps;  // what the function is part of
    std::string name;
    unsigned programs = 0, threads = 0, shared_bytes = 0;
    std::vector<GraphArgument> arguments;  // of the driver's
    std::int64_t scratch_bytes = 0, counters = 0;
    // All its programs wait (griddepcontrol) for the kernels in front before they touch anything but the frame: it may be
    // launched before the one in front of it has ended.
    bool waits = false;
};

class Graph {
public:
    // Bytes of device memory that a graph of the nodes needs for itself.
    static std::int64_t memory_bytes(std::span<const GraphNode> nodes, const GraphFrame& frame);

    // `own`: memory_bytes of the device's; `held`: whatever else the kernels use. Work on `builder` makes it ready, and
    // has ended afterwards.
    static Expected<std::shared_ptr<Graph>> make(std::shared_ptr<const Device> device, std::vector<GraphNode> nodes,
                                                 GraphFrame frame, Tensor own, std::vector<Tensor> held,
                                                 CudaStream builder);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    std::size_t nodes() const { return nodes_.size(); }

    // False: the call is not the graph's, and nothing has happened. Thread-safe; always with the same stream.
    Expected<bool> launch(const std::int64_t* frame, void* const* buffers, CudaStream stream);

private:
    // Copies that may be under way are those of one half of the ring and the next.
    static constexpr std::size_t kSlots = 64, kHalf = kSlots / 2;

    explicit Graph(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
    Expected<void> build(CudaStream builder);

    std::shared_ptr<const Device> device_;
    std::vector<GraphNode> nodes_;
    GraphFrame frame_;
    Tensor own_;
    std::vector<Tensor> held_;
    CudaPointer words_ = 0;  // on the device
    CudaGraph graph_ = nullptr;
    CudaGraphExec exec_ = nullptr;
    CudaEvent passed_[2] = {nullptr, nullptr};  // the copies of a half have ended
    bool recorded_[2] = {false, false};
    std::mutex mutex_;
    std::int64_t* ring_ = nullptr;  // pinned
    std::size_t next_ = 0;
};

}  // namespace flexor::runtime::cuda
