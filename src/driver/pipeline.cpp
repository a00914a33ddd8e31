#include "driver/pipeline.h"

#include <algorithm>

#include "driver/device_kernels.h"
#include "driver/kernel_cache.h"
#include "loopir/loopir.h"
#include "lower/lower.h"
#include "specialised/program.h"
#include "support/diagnostic.h"
#include "support/expected.h"
#include "transform/transform.h"
#include "vm/device_run.h"

namespace flexor::driver {

namespace {

// Seconds since the last call.
class StageClock {
public:
    double lap() {
        const std::uint64_t now = runtime::now_ns();
        const double seconds = static_cast<double>(now - last_) * 1e-9;
        last_ = now;
        return seconds;
    }

private:
    std::uint64_t last_ = runtime::now_ns();
};

bool several(const std::vector<types::OpSite>& sites) {
    return std::any_of(sites.begin(), sites.end(), [&](const types::OpSite& site) { return site != sites.front(); });
}

// A region knows one device, the run's: its types say nothing of it. Refused where a tensor lies elsewhere.
Expected<void> as_on_host(std::vector<executable::LiveSignature>& values, Device device) {
    for (executable::LiveSignature& value : values) {
        const bool tensors =
            value.kind == executable::LiveKind::kTensor || value.kind == executable::LiveKind::kRunList;
        if (tensors && value.device != device)
            return Diagnostic(DiagnosticId::kOpNotCompiled).found("tensors_on_several_devices");
        value.device = {};
        FLEXOR_TRY(as_on_host(value.elements, device));
    }
    return {};
}

}  // namespace

bool Pipeline::available() {
#ifdef FLEXOR_WITH_LLVM
    return true;
#else
    return false;
#endif
}

Expected<void> Pipeline::build_kernels(executable::Executable& executable, StageTimes& times) {
    if (options_.evaluate_kernels) {
        for (executable::KernelSlot& slot : executable.kernels) slot.handle = evaluated_kernel(slot.ir);
        times.kernels_built = static_cast<std::uint32_t>(executable.kernels.size());
        return {};
    }
    FLEXOR_ASSIGN(const KernelCache::Built built, KernelCache::instance().fill(executable.kernels));
    times.kernels_built = built.compiled;
    times.code_bytes = built.code_bytes;
    telemetry_->kernels_compiled.fetch_add(built.compiled, std::memory_order_relaxed);
    telemetry_->kernel_cache_hits.fetch_add(built.hits, std::memory_order_relaxed);
    telemetry_->code_bytes.fetch_add(built.code_bytes, std::memory_order_relaxed);
    return {};
}

Expected<void> Pipeline::build_for_device(executable::Executable& executable, const bytecode::Module& module,
                                          StageTimes& times, std::vector<types::OpSite>* refused) {
    if (devices_ == nullptr) return Diagnostic(DiagnosticId::kNoDevice).found("a session without devices");
    FLEXOR_ASSIGN(const auto device, devices_->get(executable.signature.device.index));
    if (options_.evaluate_kernels) {
        for (executable::KernelSlot& slot : executable.kernels) {
            slot.launcher = evaluated_launcher(slot.ir, device);
            if (slot.launcher == nullptr) {
                refused->insert(refused->end(), slot.sites.begin(), slot.sites.end());
                continue;
            }
            slot.launcher = products_.choose(slot.ir, device, std::move(slot.launcher),
                                             [&](const auto& kernel) { return evaluated_launcher(kernel, device); });
        }
        if (!refused->empty()) return Diagnostic(DiagnosticId::kNoCodeGenerator).found("an extern kernel");
        times.kernels_built = static_cast<std::uint32_t>(executable.kernels.size());
    } else {
        auto built = DeviceKernels::instance().fill(executable.kernels, device);
        if (!built) {
            // Without a compiler everything is refused, which says nothing about an op.
            for (const executable::KernelSlot& slot : executable.kernels) {
                if (built.error().id() == DiagnosticId::kNoCodeGenerator && slot.launcher == nullptr)
                    refused->insert(refused->end(), slot.sites.begin(), slot.sites.end());
            }
            return std::move(built).error();
        }
        times.kernels_built = built->compiled;
        telemetry_->kernels_compiled.fetch_add(built->compiled, std::memory_order_relaxed);
        telemetry_->kernel_cache_hits.fetch_add(built->hits, std::memory_order_relaxed);
    }
    executable.device_weights.resize(module.weights.size());
    const auto place = [&](std::uint32_t weight) -> Expected<void> {
        Tensor& placed = executable.device_weights[weight];
        if (!placed.defined()) {
            FLEXOR_ASSIGN(placed, vm::device_weight(device, module, weight));
        }
        return {};
    };
    for (const executable::BufferSource& source : executable.sources) {
        if (source.kind == executable::BufferSource::Kind::kWeight) FLEXOR_TRY(place(source.index));
    }
    // Matrices are read where they lie, by the strides that the kernels state.
    for (executable::PackedWeight& packed : executable.packed) {
        FLEXOR_TRY(place(packed.weight));
        const Tensor& tensor = executable.device_weights[packed.weight];
        const auto* data = static_cast<const char*>(tensor.data()) +
                           packed.offset * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
        packed.data = std::shared_ptr<const void>(std::make_shared<Tensor>(tensor), data);
    }
    return {};
}

Expected<void> Pipeline::pack_weights(executable::Executable& executable, const bytecode::Module& module) {
    for (executable::PackedWeight& packed : executable.packed) {
        if (options_.evaluate_kernels) {
            // The evaluator reads the matrix where it lies, by the strides that the kernel states.
            const Tensor& tensor = module.weights[packed.weight].tensor;
            const auto* data = static_cast<const char*>(tensor.data()) +
                               packed.offset * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
            packed.data = std::shared_ptr<const void>(std::make_shared<Tensor>(tensor), data);
            continue;
        }
        bool made = false;
        FLEXOR_ASSIGN(packed.data, packed_weight(module, packed, &packed.bytes, &made));
        if (made) telemetry_->packed_weight_bytes.fetch_add(packed.bytes, std::memory_order_relaxed);
    }
    return {};
}

Pipeline::Compiled Pipeline::compile(const vm::CompileRequest& request) {
    for (;;) {
        specialize::RefusedOps known;
        {
            std::lock_guard lock(mutex_);
            const auto found = refused_.find({request.module->id, request.signature->device.kind});
            if (found != refused_.end()) known = found->second.ops;
        }
        const std::uint64_t start = runtime::now_ns();
        std::vector<types::OpSite> refused;
        Compiled compiled = compile_once(request, known, options_.fuse, &refused);
        if (!compiled && options_.fuse && several(refused)) {
            // One op is at fault, or only their being together.
            refused.clear();
            compiled = compile_once(request, known, false, &refused);
        }
        if (compiled || refused.empty()) return compiled;
        const Diagnostic& error = compiled.error();
        const double seconds = static_cast<double>(runtime::now_ns() - start) * 1e-9;
        {
            std::lock_guard lock(mutex_);
            std::erase_if(refused_, [](const auto& item) { return item.second.module.expired(); });
            Refusals& refusals = refused_[{request.module->id, request.signature->device.kind}];
            refusals.module = request.module;
            bool added = false;
            for (const types::OpSite& site : refused)
                added |= refusals.ops.try_emplace(site, vm::fallback_reason(error)).second;
            if (!added && known.size() == refusals.ops.size()) return compiled;
        }
        const types::OpSite& site = refused.front();
        const bytecode::Function& function = request.module->functions[static_cast<std::size_t>(site.function)];
        telemetry_->record_not_compiled(runtime::NotCompiled::kFailed, function.name, function.line_at(site.pc),
                                        function.name + "@" + std::to_string(site.pc) + ": " + error.to_string(),
                                        seconds);
    }
}

Pipeline::Compiled Pipeline::compile_once(const vm::CompileRequest& request, const specialize::RefusedOps& known,
                                          bool fuse, std::vector<types::OpSite>* refused) {
    StageTimes times;
    StageClock clock;
    const Device device = request.signature->device;
    const bool on_host = device.kind == DeviceKind::kCpu;
    executable::Signature signature = *request.signature;
    FLEXOR_TRY(as_on_host(signature.values, device));
    specialize::Region region;
    region.module = request.module.get();
    region.function = request.function;
    region.pc = request.pc;
    region.signature = &signature;
    region.frame = request.frame;
    region.exact_only = request.exact_only;
    region.generalise = request.generalise;
    region.refused = &known;
    region.end_at_once = options_.end_at_once;
    FLEXOR_ASSIGN(specialised::Program program, specialize::specialize(region));
    FLEXOR_TRY(specialised::verify(program));
    std::string listing = specialised::print(program);
    times.specialize = clock.lap();

    FLEXOR_TRY(transform::expand(program, request.module->promotion, refused));
    transform::simplify_selections(program, request.module->promotion);
    transform::read_before_widening(program);
    transform::remove_dead_code(program);
    FLEXOR_TRY(specialised::verify(program));
    times.transform = clock.lap();

    lower::Options options;
    options.fuse = fuse;
    options.prologues = on_host;
    FLEXOR_ASSIGN(executable::Executable lowered, lower::lower(program, *request.signature, options, refused));
    auto executable = std::make_shared<executable::Executable>(std::move(lowered));
    executable->listing = std::move(listing);
    for (const executable::KernelSlot& kernel : executable->kernels) FLEXOR_TRY(loopir::verify(kernel.ir));
    FLEXOR_TRY(executable::verify(*executable));
    times.lower = clock.lap();

    if (!on_host) {
        FLEXOR_TRY(build_for_device(*executable, *request.module, times, refused));
        times.codegen = clock.lap();
    } else if (auto built = build_kernels(*executable, times); !built) {
        for (const executable::KernelSlot& slot : executable->kernels) {
            // A build without a code generator refuses everything, which says nothing about an op.
            if (available() && slot.handle == nullptr && built.error().id() != DiagnosticId::kInterrupted)
                refused->insert(refused->end(), slot.sites.begin(), slot.sites.end());
        }
        return std::move(built).error();
    }
    if (on_host) {
        times.codegen = clock.lap();
        FLEXOR_TRY(pack_weights(*executable, *request.module));
        times.pack = clock.lap();
    }

    {
        std::lock_guard lock(mutex_);
        times_[executable.get()] = times;
    }
    return std::shared_ptr<const executable::Executable>(std::move(executable));
}

void Pipeline::describe(const executable::Executable& executable, EntryStats& stats) {
    std::lock_guard lock(mutex_);
    const auto found = times_.find(&executable);
    if (found == times_.end()) return;
    const StageTimes& times = found->second;
    stats.specialize_seconds = times.specialize;
    stats.transform_seconds = times.transform;
    stats.lower_seconds = times.lower;
    stats.codegen_seconds = times.codegen;
    stats.pack_seconds = times.pack;
    stats.kernels_built = times.kernels_built;
    stats.code_bytes = times.code_bytes;
    times_.erase(found);
}

}  // namespace flexor::driver
