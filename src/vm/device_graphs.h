#pragma once
// Graphs of regions on devices: which are there, which are being made, and who makes them.
//
// A graph serves all calls of a region whose sizes lie in the same buckets, on one stream. A call that finds none launches
// kernel by kernel, and one is made beside the calls.
//
// Laws
//  K1  No call waits for a graph, and none is refused for want of one: what cannot be made is counted, and launched kernel by
//      kernel as before.
//  K2  Results are fresh memory; what lies between belongs to the graph.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/device_pool.h"
#include "runtime/cuda/fault_log.h"
#include "runtime/cuda/graph.h"
#include "runtime/telemetry.h"
#include "vm/graph_region.h"

namespace flexor::vm {

class EntryGraphs;

// The thread that makes graphs for one device, started when it is first wanted. Thread-safe.
class GraphBuilder {
public:
    // At once: submit() does the work itself.
    GraphBuilder(std::shared_ptr<const runtime::cuda::Device> device, bool at_once)
        : device_(std::move(device)), at_once_(at_once) {}
    ~GraphBuilder();  // what has not begun is dropped
    GraphBuilder(const GraphBuilder&) = delete;
    GraphBuilder& operator=(const GraphBuilder&) = delete;

    // `job` gets a stream for work that is made ready; null: there is none.
    using Job = std::function<void(runtime::cuda::CudaStream)>;
    void submit(Job job);
    // Waits until nothing is left to do.
    void settle();

    // Graphs that reclaim() may drop.
    void add(std::weak_ptr<EntryGraphs> graphs);
    // Gives the memory of all graphs back, which waits for the device. None of their sizes gets one again, unless `again`. Whether
    // there were any.
    bool reclaim(bool again);

private:
    void serve();
    runtime::cuda::CudaStream stream();

    std::shared_ptr<const runtime::cuda::Device> device_;
    const bool at_once_;
    std::mutex mutex_, stream_mutex_;
    std::condition_variable wake_, idle_;
    std::deque<Job> jobs_;
    bool busy_ = false, closing_ = false;
    std::thread thread_;
    std::shared_ptr<const runtime::cuda::Stream> stream_;
    std::vector<std::weak_ptr<EntryGraphs>> entries_;
};

// What graphs of a region need beside it.
struct GraphSurroundings {
    std::shared_ptr<const runtime::cuda::Device> device;
    std::shared_ptr<runtime::cuda::DevicePool> pool;
    std::shared_ptr<runtime::cuda::FaultLog> faults;
    std::weak_ptr<GraphBuilder> builder;
    runtime::Telemetry* telemetry = nullptr;  // outlives the builder
    std::string name;                         // function@pc, for events
};

// The graphs of one entry. Thread-safe.
class EntryGraphs : public std::enable_shared_from_this<EntryGraphs> {
public:
    // Of one entry; the least recently used goes first.
    static constexpr std::size_t kMostGraphs = 32;
    // Beyond so many, no more are made unless those that were have served twice as often.
    static constexpr std::uint64_t kTrial = 16;

    // `buffers`: addresses of weights, by slot; `fault_words`: by launch.
    EntryGraphs(std::shared_ptr<const executable::Executable> executable, std::vector<void*> buffers,
                std::vector<std::uint32_t> fault_words, GraphSurroundings surroundings)
        : region_(std::move(executable)),
          buffers_(std::move(buffers)),
          fault_words_(std::move(fault_words)),
          around_(std::move(surroundings)) {}
    ~EntryGraphs();
    EntryGraphs(const EntryGraphs&) = delete;
    EntryGraphs& operator=(const EntryGraphs&) = delete;

    // The graph for a call; null: there is none yet. `call_frame` is that of the signature, and `buffers` has the addresses of the
    // arguments.
    std::shared_ptr<runtime::cuda::Graph> find(const std::int64_t* call_frame, void* const* buffers,
                                               runtime::cuda::CudaStream stream);
    // The graphs that are there, which find() gives to nobody from now on; nor does it have others made for their sizes, unless
    // `again`.
    std::vector<std::shared_ptr<runtime::cuda::Graph>> take(bool again);

private:
    // Ends of the buckets of GraphRegion::deciding(), then the stream, and whether arguments are aligned.
    using Key = std::vector<std::int64_t>;
    struct Held {
        Key key;
        std::shared_ptr<runtime::cuda::Graph> graph;  // null: being made, or refused
        std::uint64_t used = 0;
    };
    bool aligned(void* const* buffers) const;
    void make(const Key& key, std::vector<std::int64_t> call_frame, runtime::cuda::CudaStream builder);
    Expected<std::shared_ptr<runtime::cuda::Graph>> build(std::vector<std::int64_t> call_frame, bool aligned,
                                                          runtime::cuda::CudaStream builder);
    void discard(std::shared_ptr<runtime::cuda::Graph> graph);

    const GraphRegion region_;
    const std::vector<void*> buffers_;
    const std::vector<std::uint32_t> fault_words_;
    const GraphSurroundings around_;
    std::mutex mutex_;
    std::vector<Held> held_;
    std::uint64_t clock_ = 0, made_ = 0, served_ = 0;
};

}  // namespace flexor::vm
