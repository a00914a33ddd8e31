#include "vm/device_graphs.h"

#include <algorithm>

#include "runtime/cuda/launcher.h"
#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::vm {

using executable::BufferSource;
using executable::Executable;
using executable::Planned;
using runtime::cuda::CudaStream;
using runtime::cuda::Graph;
using runtime::cuda::GraphFrame;
using runtime::cuda::GraphNode;
using runtime::cuda::GraphNumber;

namespace {

constexpr std::int64_t kAlignment = 16;
constexpr int kRelaxed = 2;  // CUstreamCaptureMode: this thread's calls are no part of others' captures

}  // namespace

// ---------------------------------------------------------------- GraphBuilder

GraphBuilder::~GraphBuilder() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        jobs_.clear();
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

CudaStream GraphBuilder::stream() {
    const std::lock_guard lock(stream_mutex_);
    if (stream_ == nullptr) {
        auto made = runtime::cuda::Stream::create(device_);
        if (!made) return nullptr;
        stream_ = *std::move(made);
    }
    return stream_->handle();
}

void GraphBuilder::submit(Job job) {
    if (at_once_) return job(stream());
    {
        const std::lock_guard lock(mutex_);
        if (closing_) return;
        jobs_.push_back(std::move(job));
        if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    }
    wake_.notify_one();
}

void GraphBuilder::settle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return jobs_.empty() && !busy_; });
}

void GraphBuilder::serve() {
    int mode = kRelaxed;
    device_->driver().exchange_capture_mode(&mode);
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
        if (closing_) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        busy_ = true;
        lock.unlock();
        job(stream());
        job = nullptr;
        lock.lock();
        busy_ = false;
        if (jobs_.empty()) idle_.notify_all();
    }
}

void GraphBuilder::add(std::weak_ptr<EntryGraphs> graphs) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.expired(); });
    entries_.push_back(std::move(graphs));
}

bool GraphBuilder::reclaim(bool again) {
    std::vector<std::weak_ptr<EntryGraphs>> entries;
    {
        const std::lock_guard lock(mutex_);
        entries = entries_;
    }
    bool any = false;
    for (const auto& entry : entries) {
        if (const auto graphs = entry.lock()) any = !graphs->take(again).empty() || any;
    }
    return any;
}

// ---------------------------------------------------------------- EntryGraphs

EntryGraphs::~EntryGraphs() {
    for (auto& graph : take(false)) discard(std::move(graph));
}

std::vector<std::shared_ptr<Graph>> EntryGraphs::take(bool again) {
    std::vector<std::shared_ptr<Graph>> out;
    const std::lock_guard lock(mutex_);
    for (Held& held : held_) {
        if (held.graph != nullptr) out.push_back(std::move(held.graph));
    }
    if (again) held_.clear();
    return out;
}

// Waiting for the device is left to the builder.
void EntryGraphs::discard(std::shared_ptr<Graph> graph) {
    if (graph == nullptr) return;
    if (const auto builder = around_.builder.lock())
        builder->submit([graph = std::move(graph)](CudaStream) mutable { graph = nullptr; });
}

bool EntryGraphs::aligned(void* const* buffers) const {
    std::uintptr_t all = 0;
    const std::vector<BufferSource>& sources = region_.executable().sources;
    for (std::size_t slot = 0; slot < sources.size(); ++slot) {
        if (sources[slot].kind == BufferSource::Kind::kArgument) all |= reinterpret_cast<std::uintptr_t>(buffers[slot]);
    }
    return all % kAlignment == 0;
}

std::shared_ptr<Graph> EntryGraphs::find(const std::int64_t* call_frame, void* const* buffers, CudaStream stream) {
    const std::vector<executable::Slot>& deciding = region_.deciding();
    for (const executable::Slot slot : region_.sizes()) {
        if (call_frame[slot] == 0) return nullptr;
    }
    const std::int64_t on = reinterpret_cast<std::intptr_t>(stream);
    const std::int64_t aligned = this->aligned(buffers);
    const auto serves = [&](const Held& held) {
        if (held.key[deciding.size()] != on || held.key[deciding.size() + 1] != aligned) return false;
        for (std::size_t i = 0; i < deciding.size(); ++i) {
            if (bucket_end(call_frame[deciding[i]]) != held.key[i]) return false;
        }
        return true;
    };
    std::shared_ptr<Graph> evicted;
    Key key;
    {
        const std::lock_guard lock(mutex_);
        const auto known = std::find_if(held_.begin(), held_.end(), serves);
        if (known != held_.end()) {
            known->used = ++clock_;
            if (known->graph != nullptr) ++served_;
            return known->graph;
        }
        if (made_ >= kTrial && served_ < 2 * made_) return nullptr;
        ++made_;
        for (const executable::Slot slot : deciding) key.push_back(bucket_end(call_frame[slot]));
        key.push_back(on);
        key.push_back(aligned);
        if (held_.size() >= kMostGraphs) {
            const auto oldest = std::ranges::min_element(held_, {}, [](const Held& held) { return held.used; });
            evicted = std::move(oldest->graph);
            held_.erase(oldest);
        }
        held_.push_back({key, nullptr, ++clock_});
    }
    if (evicted != nullptr) {
        around_.telemetry->graphs_evicted.fetch_add(1, std::memory_order_relaxed);
        discard(std::move(evicted));
    }
    const auto builder = around_.builder.lock();
    if (builder == nullptr) return nullptr;
    std::vector<std::int64_t> frame(call_frame, call_frame + region_.executable().signature.frame_size());
    builder->submit([self = shared_from_this(), key, frame = std::move(frame)](CudaStream builders) mutable {
        self->make(key, std::move(frame), builders);
    });
    const std::lock_guard lock(mutex_);
    const auto made = std::ranges::find(held_, key, &Held::key);
    return made == held_.end() ? nullptr : made->graph;
}

void EntryGraphs::make(const Key& key, std::vector<std::int64_t> call_frame, CudaStream builder) {
    const std::uint64_t start = runtime::now_ns();
    auto made = build(std::move(call_frame), key.back() != 0, builder);
    Event event;
    event.kind = made ? "graph" : "graph_refused";
    event.function = around_.name;
    event.duration_seconds = static_cast<double>(runtime::now_ns() - start) * 1e-9;
    event.text = made ? std::to_string((*made)->nodes()) + " launches as one, sizes up to " : made.error().to_string();
    if (made) {
        const std::vector<std::int64_t> ends(key.begin(), key.end() - 2);
        event.text += support::join(ends, ", ", [](std::int64_t end) { return std::to_string(end); });
    }
    (made ? around_.telemetry->graphs_built : around_.telemetry->graphs_refused)
        .fetch_add(1, std::memory_order_relaxed);
    around_.telemetry->record_event(std::move(event));
    if (!made) return;
    std::shared_ptr<Graph> late = *std::move(made);
    {
        const std::lock_guard lock(mutex_);
        const auto held = std::ranges::find(held_, key, &Held::key);
        if (held != held_.end()) held->graph = std::move(late);
    }
    discard(std::move(late));  // nobody waits for it any more
}

Expected<std::shared_ptr<Graph>> EntryGraphs::build(std::vector<std::int64_t> call_frame, bool aligned,
                                                    CudaStream builder) {
    if (builder == nullptr) return Diagnostic(DiagnosticId::kDeviceCallFailed).found("no stream for graphs");
    const Executable& e = region_.executable();
    const executable::Block& block = e.blocks[0];
    FLEXOR_ASSIGN(const GraphRegion::Frames frames, region_.frames(std::move(call_frame)));
    GraphFrame frame;
    std::vector<GraphNumber> addresses(e.buffer_slots);
    for (std::uint32_t slot = 0; slot < e.buffer_slots; ++slot) {
        const BufferSource::Kind kind = slot < e.sources.size() ? e.sources[slot].kind : BufferSource::Kind::kNone;
        if (kind == BufferSource::Kind::kWeight || kind == BufferSource::Kind::kPackedWeight)
            addresses[slot] = GraphNumber::of(reinterpret_cast<std::intptr_t>(buffers_[slot]));
    }
    std::vector<Tensor> held;
    if (block.arena_bytes != executable::kNoSlot) {
        FLEXOR_ASSIGN(Tensor arena, around_.pool->bytes(frames.most[block.arena_bytes], builder));
        for (const Planned& planned : block.arena) {
            addresses[planned.buffer] =
                GraphNumber::of(reinterpret_cast<std::intptr_t>(arena.data()) + frames.most[planned.offset]);
            // A smaller call has smaller buffers: they lie apart where the largest do.
            frame.bound(region_.number(planned.bytes, frames, frame), 0);
        }
        held.push_back(std::move(arena));
    }
    const auto address = [&](executable::BufferSlot slot) {
        if (!addresses[slot].fixed() || addresses[slot].now != 0) return addresses[slot];
        const bool argument = slot < e.sources.size() && e.sources[slot].kind == BufferSource::Kind::kArgument;
        GraphNumber out;
        out.word = frame.address(slot);
        out.divisor = !argument || aligned ? kAlignment : 1;
        return addresses[slot] = out;
    };
    std::vector<GraphNode> nodes;
    for (std::size_t i = 0; i < e.launches.size(); ++i) {
        const executable::Launch& launch = e.launches[i];
        const executable::KernelSlot& kernel = e.kernels[launch.kernel];
        std::vector<GraphNumber> buffers, params;
        for (const executable::BufferSlot slot : launch.buffers) buffers.push_back(address(slot));
        for (const executable::Slot slot : launch.params) params.push_back(region_.number(slot, frames, frame));
        FLEXOR_ASSIGN(GraphNode node,
                      kernel.launcher->graph_node({buffers, params, around_.faults->address(fault_words_[i])}, frame));
        nodes.push_back(std::move(node));
    }
    // Weights live as long as the executable.
    nodes.front().keeps = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        nodes.front().keeps, region_.shared_executable());
    FLEXOR_ASSIGN(Tensor own, around_.pool->bytes(Graph::memory_bytes(nodes, frame), builder));
    return Graph::make(around_.device, std::move(nodes), std::move(frame), std::move(own), std::move(held), builder);
}

}  // namespace flexor::vm
