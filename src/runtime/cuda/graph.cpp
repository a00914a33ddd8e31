#include "runtime/cuda/graph.h"

#include <algorithm>

#include "support/check.h"

namespace flexor::runtime::cuda {

namespace {

constexpr std::int64_t kAlignment = 256;
constexpr unsigned kUntimed = 2;                                   // CUevent_flags
constexpr unsigned char kProgrammaticPort = 1, kProgrammatic = 1;  // CU_GRAPH_KERNEL_NODE_PORT_, CUgraphDependencyType

std::int64_t round_up(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Parts {
    std::int64_t words, counters, scratch;  // bytes
    Parts(std::span<const GraphNode> nodes, const GraphFrame& frame)
        : words(round_up(static_cast<std::int64_t>((frame.words() + 1) * sizeof(std::int64_t)))),
          counters(0),
          scratch(0) {
        for (const GraphNode& node : nodes) {
            counters = std::max(counters, round_up(node.counters * static_cast<std::int64_t>(sizeof(std::int32_t))));
            scratch = std::max(scratch, round_up(node.scratch_bytes));
        }
    }
};

}  // namespace

std::int64_t Graph::memory_bytes(std::span<const GraphNode> nodes, const GraphFrame& frame) {
    const Parts parts(nodes, frame);
    return parts.words + parts.counters + parts.scratch;
}

Expected<std::shared_ptr<Graph>> Graph::make(std::shared_ptr<const Device> device, std::vector<GraphNode> nodes,
                                             GraphFrame frame, Tensor own, std::vector<Tensor> held,
                                             CudaStream builder) {
    std::shared_ptr<Graph> graph(new Graph(std::move(device)));
    graph->nodes_ = std::move(nodes);
    graph->frame_ = std::move(frame);
    graph->own_ = std::move(own);
    graph->held_ = std::move(held);
    FLEXOR_TRY(graph->build(builder));
    return graph;
}

Expected<void> Graph::build(CudaStream builder) {
    const Parts parts(nodes_, frame_);
    words_ = reinterpret_cast<CudaPointer>(own_.data());
    const CudaPointer counters = words_ + static_cast<CudaPointer>(parts.words);
    const CudaPointer scratch = counters + static_cast<CudaPointer>(parts.counters);
    FLEXOR_ASSIGN(void* ring, device_->allocate_host(kSlots * (frame_.words() + 1) * sizeof(std::int64_t)));
    ring_ = static_cast<std::int64_t*>(ring);
    const std::vector<char> zeros(static_cast<std::size_t>(parts.counters), 0);
    FLEXOR_TRY(device_->copy_to_device(counters, zeros.data(), zeros.size(), builder));

    const Driver& driver = device_->driver();
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    for (CudaEvent& event : passed_) FLEXOR_TRY(driver.check(driver.create_event(&event, kUntimed), "cuEventCreate"));
    FLEXOR_TRY(driver.check(driver.create_graph(&graph_, 0), "cuGraphCreate"));
    CudaGraphNode last = nullptr;
    for (const GraphNode& node : nodes_) {
        std::vector<std::uint64_t> values;
        for (const GraphArgument& argument : node.arguments) {
            switch (argument.kind) {
                case GraphArgument::Kind::kValue: values.push_back(argument.value); break;
                case GraphArgument::Kind::kFrame: values.push_back(words_); break;
                case GraphArgument::Kind::kScratch: values.push_back(scratch + argument.value); break;
                case GraphArgument::Kind::kCounters: values.push_back(counters); break;
            }
        }
        std::vector<void*> pointers;
        for (std::uint64_t& value : values) pointers.push_back(&value);
        KernelNodeParameters parameters{};
        parameters.function = node.function;
        parameters.grid[0] = node.programs;
        parameters.grid[1] = parameters.grid[2] = parameters.block[1] = parameters.block[2] = 1;
        parameters.block[0] = node.threads;
        parameters.shared_bytes = node.shared_bytes;
        parameters.parameters = pointers.data();
        CudaGraphNode added = nullptr;
        const bool early = node.waits && last != nullptr && driver.add_dependencies != nullptr;
        FLEXOR_TRY(
            driver.check(driver.add_kernel_node(&added, graph_, &last, early || last == nullptr ? 0 : 1, &parameters),
                         "cuGraphAddKernelNode", "kernel " + node.name));
        if (early) {
            const GraphEdge edge{kProgrammaticPort, 0, kProgrammatic, {}};
            FLEXOR_TRY(driver.check(driver.add_dependencies(graph_, &last, &added, &edge, 1), "cuGraphAddDependencies",
                                    "kernel " + node.name));
        }
        last = added;
    }
    FLEXOR_TRY(driver.check(driver.instantiate_graph(&exec_, graph_, 0), "cuGraphInstantiate"));
    FLEXOR_TRY(driver.check(driver.upload_graph(exec_, builder), "cuGraphUpload"));
    return driver.check(driver.synchronize_stream(builder), "cuStreamSynchronize");
}

Graph::~Graph() {
    // While something still runs, and the device cannot be waited for (a stream is being captured), all is kept.
    if (exec_ != nullptr && !device_->synchronize_all()) {
        new std::vector<Tensor>(std::move(held_));
        new Tensor(std::move(own_));
        new std::vector<GraphNode>(std::move(nodes_));
        return;
    }
    const Device::Current current(*device_);
    if (!current.ok()) return;
    const Driver& driver = device_->driver();
    if (exec_ != nullptr) driver.destroy_graph_exec(exec_);
    if (graph_ != nullptr) driver.destroy_graph(graph_);
    for (const CudaEvent event : passed_) {
        if (event != nullptr) driver.destroy_event(event);
    }
    if (ring_ != nullptr) device_->release_host(ring_);
}

Expected<bool> Graph::launch(const std::int64_t* frame, void* const* buffers, CudaStream stream) {
    const std::lock_guard lock(mutex_);
    const std::size_t half = next_ / kHalf;
    std::int64_t* words = ring_ + next_ * (frame_.words() + 1);
    const Driver& driver = device_->driver();
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    if (next_ % kHalf == 0 && recorded_[half]) {
        FLEXOR_TRY(driver.check(driver.synchronize_event(passed_[half]), "cuEventSynchronize"));
        recorded_[half] = false;
    }
    if (!frame_.fill(frame, buffers, words)) return false;
    if (frame_.words() > 0) {
        FLEXOR_TRY(driver.check(driver.copy_to_device(words_, words, frame_.words() * sizeof(std::int64_t), stream),
                                "cuMemcpyHtoDAsync"));
    }
    FLEXOR_TRY(driver.check(driver.launch_graph(exec_, stream), "cuGraphLaunch"));
    if (++next_ % kHalf == 0) {
        FLEXOR_TRY(driver.check(driver.record_event(passed_[half], stream), "cuEventRecord"));
        recorded_[half] = true;
        next_ %= kSlots;
    }
    return true;
}

}  // namespace flexor::runtime::cuda
