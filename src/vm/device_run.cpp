#include "vm/device_run.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/cuda/launcher.h"
#include "runtime/kernels/strided_copy.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "vm/device_graphs.h"

namespace flexor::vm {

using executable::Call;
using executable::CallOperand;
using executable::kNoSlot;
using executable::TensorRef;
using runtime::cuda::CudaPointer;

namespace {

CudaPointer address(const void* memory) { return reinterpret_cast<CudaPointer>(memory); }

// The bytes that a view touches, from its first element on; none: low == high.
struct Span {
    std::int64_t low = 0, high = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(high - low); }
};

Span span_of(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, DType dtype) {
    const auto item = static_cast<std::int64_t>(dtype_size(dtype));
    Span span{0, item};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) return {};
        const std::int64_t reach = (sizes[i] - 1) * strides[i] * item;
        (reach < 0 ? span.low : span.high) += reach;
    }
    return span;
}

Span span_of(const Tensor& tensor) { return span_of(tensor.sizes(), tensor.strides(), tensor.dtype()); }

}  // namespace

Expected<Tensor> device_weight(const std::shared_ptr<const runtime::cuda::Device>& device,
                               const bytecode::Module& module, std::uint32_t weight) {
    struct Held {
        std::shared_ptr<const runtime::cuda::Device> device;
        CudaPointer memory = 0;
        explicit Held(std::shared_ptr<const runtime::cuda::Device> d) : device(std::move(d)) {}
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        // Streams that do not wait for the default one may still read it.
        ~Held() {
            if (device->synchronize_all()) device->release(memory, nullptr);
        }
    };
    using Key = std::tuple<std::uint64_t, std::uint32_t, const runtime::cuda::Device*>;
    static std::mutex mutex;
    static auto* cache = new std::map<Key, std::weak_ptr<Held>>();
    const Tensor& source = module.weights[weight].tensor;
    const auto bytes = static_cast<std::size_t>(source.numel()) * dtype_size(source.dtype());
    const std::lock_guard lock(mutex);
    std::weak_ptr<Held>& known = (*cache)[{module.id, weight, device.get()}];
    std::shared_ptr<Held> held = known.lock();
    if (held == nullptr) {
        held = std::make_shared<Held>(device);
        FLEXOR_ASSIGN(held->memory, device->allocate(std::max<std::size_t>(bytes, 1), nullptr));
        FLEXOR_TRY(device->copy_to_device(held->memory, source.data(), bytes, nullptr));
        // Every stream may read it from now on.
        FLEXOR_TRY(device->synchronize(nullptr));
        known = held;
        std::erase_if(*cache, [](const auto& item) { return item.second.expired(); });
    }
    const auto memory = held->memory;
    const Tensor tensor = Tensor::from_blob(
        reinterpret_cast<void*>(memory), source.dtype(), source.sizes(), source.strides(),
        [](void* context, void*) { delete static_cast<std::shared_ptr<Held>*>(context); },
        new std::shared_ptr<Held>(std::move(held)), {DeviceKind::kCuda, static_cast<std::int8_t>(device->index())});
    tensor.refuse_writes();
    return tensor;
}

DeviceRun::DeviceRun(const DeviceState& state, Device place, void* stream, runtime::Shard& shard, Profile* profile)
    : state_(state),
      place_(place),
      stream_(static_cast<runtime::cuda::CudaStream>(stream)),
      shard_(shard),
      profile_(profile) {
    if (profile_ == nullptr) return;
    profile_->set_floor(runtime::cuda::device_floor(state_.device, stream_));
    timer_.emplace(state_.device, stream_);
}

DeviceRun::~DeviceRun() = default;

Expected<void> DeviceRun::finish_profile() { return timer_ ? timer_->finish() : Expected<void>{}; }

Expected<std::shared_ptr<const Diagnostic>> DeviceRun::launch(runtime::cuda::Launcher& launcher,
                                                              const loopir::Kernel& ir, void* const* buffers,
                                                              std::size_t count, const std::int64_t* params,
                                                              std::uint32_t fault_word) {
    static_assert(sizeof(void*) == sizeof(CudaPointer));
    const runtime::cuda::NamedRange range(state_.ranges, ir.name);
    if (timer_) {
        // Its own variant, and no waiting for it between the events.
        if (launcher.prefetch({reinterpret_cast<const CudaPointer*>(buffers), count}, params) > 0)
            FLEXOR_TRY(timer_->finish());
        launcher.settle();
        FLEXOR_TRY(timer_->begin());
    }
    FLEXOR_ASSIGN(runtime::cuda::LaunchReport report,
                  launcher.launch({reinterpret_cast<const CudaPointer*>(buffers), count}, params,
                                  state_.faults->address(fault_word), stream_));
    shard_.launches.add(report.launches);
    shard_.device_launches.add(report.launches);
    if (report.by_library > 0) shard_.library_launches.add(report.by_library);
    if (timer_) {
        FLEXOR_TRY(timer_->end([profile = profile_, &ir, work = loopir::work_of(ir, params)](double seconds) {
            profile->add(ir.name, work, seconds);
        }));
    }
    if (report.requested > 0) shard_.device_variants.add(report.requested);
    if (report.stand_in) shard_.device_stand_ins.add();
    if (report.waited_ns > 0) {
        shard_.device_compile_waits.add();
        shard_.device_compile_wait_ns.add(report.waited_ns);
    }
    return std::move(report.refusal);
}

void DeviceRun::prefetch(runtime::cuda::Launcher& launcher, void* const* buffers, std::size_t count,
                         const std::int64_t* params) {
    shard_.device_variants.add(launcher.prefetch({reinterpret_cast<const CudaPointer*>(buffers), count}, params));
}

bool DeviceRun::reclaim(const Diagnostic& refusal) {
    const bool memory = refusal.id() == DiagnosticId::kOutOfMemory || refusal.id() == DiagnosticId::kHardMemoryLimit;
    if (!memory || state_.graphs == nullptr || !state_.graphs->reclaim(false)) return false;
    shard_.device_syncs.add();
    state_.pool->trim();
    return true;
}

Expected<bool> DeviceRun::launch(runtime::cuda::Graph& graph, const std::int64_t* frame, void* const* buffers) {
    FLEXOR_ASSIGN(const bool launched, graph.launch(frame, buffers, stream_));
    if (!launched) {
        shard_.graph_misfits.add();
        return false;
    }
    shard_.launches.add(graph.nodes());
    shard_.device_launches.add(graph.nodes());
    shard_.graph_launches.add();
    return true;
}

Expected<void> DeviceRun::read(void* to, const void* from, std::size_t bytes) {
    FLEXOR_TRY(finish_profile());
    FLEXOR_TRY(state_.device->copy_to_host(to, address(from), bytes, stream_));
    shard_.device_syncs.add();
    shard_.device_copied_bytes.add(bytes);
    FLEXOR_TRY(state_.device->synchronize(stream_));
    if (std::optional<Diagnostic> fault = take_fault()) return *std::move(fault);
    return {};
}

Expected<void> DeviceRun::write(void* to, const void* from, std::size_t bytes) {
    shard_.device_copied_bytes.add(bytes);
    return state_.device->copy_to_device(address(to), from, bytes, stream_);
}

// ---------------------------------------------------------------- whole tensors

Expected<Tensor> DeviceRun::to_host(const Tensor& tensor) {
    if (tensor.device().kind == DeviceKind::kCpu) return tensor;
    if (!holds(tensor)) {
        return Diagnostic(DiagnosticId::kDeviceMismatch)
            .found("a tensor on cuda:" + std::to_string(tensor.device().index))
            .expected("cuda:" + std::to_string(place_.index));
    }
    const Span span = span_of(tensor);
    const Tensor memory = Tensor::empty(DType::kU8, {static_cast<std::int64_t>(span.bytes())});
    if (!memory.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("a copy of a tensor in host memory");
    if (span.bytes() > 0)
        FLEXOR_TRY(read(memory.data(), static_cast<const char*>(tensor.data()) + span.low, span.bytes()));
    return memory.view(static_cast<char*>(memory.data()) - span.low, tensor.dtype(), tensor.sizes(), tensor.strides());
}

Expected<Tensor> DeviceRun::to_device(const Tensor& tensor) {
    FLEXOR_ASSIGN(Tensor made, empty(tensor.dtype(), tensor.sizes(), tensor.strides()));
    const Span span = span_of(tensor);
    FLEXOR_CHECK(span.low == 0);
    FLEXOR_TRY(write(made.data(), tensor.data(), span.bytes()));
    return made;
}

Expected<void> DeviceRun::put_back(const Tensor& host, const Tensor& tensor) {
    const Span span = span_of(tensor);
    return write(static_cast<char*>(tensor.data()) + span.low, static_cast<const char*>(host.data()) + span.low,
                 span.bytes());
}

Expected<void> DeviceRun::assign(const Tensor& to, const Tensor& from) {
    const Span span = span_of(to);
    const bool dense = span.low == 0 && span.bytes() == static_cast<std::size_t>(to.numel()) * dtype_size(to.dtype());
    if (dense && holds(from) && std::ranges::equal(to.strides(), from.strides()))
        return state_.device->copy_on_device(address(to.data()), address(from.data()), span.bytes(), stream_);
    FLEXOR_ASSIGN(const Tensor source, to_host(from));
    FLEXOR_ASSIGN(const Tensor target, to_host(to));
    runtime::copy_strided(target.data(), target.strides(), source.data(), source.strides(), target.sizes(),
                          dtype_size(target.dtype()));
    FLEXOR_TRY(put_back(target, to));
    // The copy on the host goes when this ends.
    return state_.device->synchronize(stream_);
}

// ---------------------------------------------------------------- calls of a tape

Expected<void> DeviceRun::mirror(const TensorRef& ref, const std::int64_t* frame, void* const* buffers, bool filled) {
    std::int64_t sizes[kMaxRank], strides[kMaxRank];
    const std::size_t rank = ref.sizes.size();
    for (std::size_t i = 0; i < rank; ++i) {
        sizes[i] = frame[ref.sizes[i]];
        strides[i] = frame[ref.strides[i]];
    }
    Span span = span_of({sizes, rank}, {strides, rank}, ref.dtype);
    const std::int64_t begin =
        ref.offset == kNoSlot ? 0 : frame[ref.offset] * static_cast<std::int64_t>(dtype_size(ref.dtype));
    span.low += begin;
    span.high += begin;
    auto at = std::find_if(mirrors_.begin(), mirrors_.end(), [&](const Mirror& m) { return m.buffer == ref.buffer; });
    if (at != mirrors_.end() && span.low >= at->low && span.high <= at->high) return {};
    Mirror wider;
    wider.buffer = ref.buffer;
    wider.low = at != mirrors_.end() ? std::min(at->low, span.low) : span.low;
    wider.high = at != mirrors_.end() ? std::max(at->high, span.high) : span.high;
    const auto bytes = static_cast<std::size_t>(wider.high - wider.low);
    wider.memory.reset(new (std::nothrow) char[bytes + 1]);
    if (wider.memory == nullptr) return Diagnostic(DiagnosticId::kOutOfMemory).operand("a copy of a tensor");
    if (filled && bytes > 0) {
        FLEXOR_TRY(read(wider.memory.get(), static_cast<const char*>(buffers[ref.buffer]) + wider.low, bytes));
    }
    if (at == mirrors_.end()) at = mirrors_.emplace(mirrors_.end());
    *at = std::move(wider);
    return {};
}

Expected<void* const*> DeviceRun::begin_call(const Call& call, const std::int64_t* frame, void* const* buffers,
                                             bool with_operands) {
    if (with_operands) {
        mirrors_.clear();
        for (const CallOperand& operand : call.operands) {
            if (operand.kind == CallOperand::Kind::kTensor) FLEXOR_TRY(mirror(operand.tensor, frame, buffers, true));
        }
    }
    if (call.sizes.empty() || !with_operands) {
        // A result that leaves gaps keeps what is in them.
        for (const TensorRef& result : call.results) {
            std::int64_t bytes = static_cast<std::int64_t>(dtype_size(result.dtype)), reach = bytes;
            for (std::size_t i = 0; i < result.sizes.size(); ++i) {
                bytes *= frame[result.sizes[i]];
                reach += (frame[result.sizes[i]] - 1) * frame[result.strides[i]] *
                         static_cast<std::int64_t>(dtype_size(result.dtype));
            }
            FLEXOR_TRY(mirror(result, frame, buffers, bytes != 0 && bytes != reach));
        }
    }
    std::size_t most = 0;
    for (const Mirror& m : mirrors_) most = std::max<std::size_t>(most, m.buffer + 1);
    table_.assign(most, nullptr);
    for (const Mirror& m : mirrors_) table_[m.buffer] = m.memory.get() - m.low;
    return static_cast<void* const*>(table_.data());
}

Expected<void> DeviceRun::end_call(const Call& call, const std::int64_t* frame, void* const* buffers) {
    for (const TensorRef& result : call.results) {
        const bool empty = std::ranges::any_of(result.sizes, [&](executable::Slot slot) { return frame[slot] == 0; });
        const auto at =
            std::find_if(mirrors_.begin(), mirrors_.end(), [&](const Mirror& m) { return m.buffer == result.buffer; });
        if (empty || at == mirrors_.end()) continue;
        FLEXOR_TRY(write(static_cast<char*>(buffers[result.buffer]) + at->low, at->memory.get(),
                         static_cast<std::size_t>(at->high - at->low)));
    }
    mirrors_.clear();
    return {};
}

}  // namespace flexor::vm
