#include "codegen/triton/device_launcher.h"

#include <future>
#include <map>
#include <mutex>
#include <vector>

#include "codegen/triton/generator.h"
#include "codegen/triton/graph_kernels.h"
#include "codegen/triton/variants.h"
#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::codegen::triton {

using loopir::Kernel;
using runtime::cuda::CudaPointer;
using runtime::cuda::CudaStream;
using runtime::cuda::LaunchReport;

namespace {

constexpr std::int64_t kScratchAlignment = 256;

// What calls wait for comes first.
CompilerPool::Answer compile_beside(CompilerPool& compiler, const CompileRequest& request) {
    auto answer = std::make_shared<std::promise<CompilerPool::Answer>>();
    std::future<CompilerPool::Answer> answered = answer->get_future();
    const auto job = compiler.submit(request, Urgency::kTuned,
                                     [answer](CompilerPool::Answer code) { answer->set_value(std::move(code)); });
    if (job == nullptr) return Diagnostic(DiagnosticId::kKernelCompilerFailed).found("no compiler any more");
    return answered.get();
}

}  // namespace

// What programs of one launch leave each other, on one stream.
struct Shared {
    CudaPointer scratch = 0, counters = 0;
    std::int64_t scratch_bytes = 0, counter_count = 0;
};

struct DeviceLauncher::Impl {
    Impl(Generator generator, std::shared_ptr<const runtime::cuda::Device> on, std::shared_ptr<CompilerPool> compiler,
         LauncherOptions options)
        : device(std::move(on)),
          variants(std::make_shared<Variants>(std::move(generator), device, compiler, options.stand_ins)),
          graph_kernels(variants->generator(), device, options.successor,
                        [compiler](const CompileRequest& request) { return compile_beside(*compiler, request); }) {}
    const std::shared_ptr<const runtime::cuda::Device> device;
    const std::shared_ptr<Variants> variants;
    GraphKernels graph_kernels;
    std::mutex mutex;
    std::map<CudaStream, Shared> shared;

    ~Impl() {
        for (const auto& [stream, piece] : shared) {
            if (piece.scratch != 0) device->release(piece.scratch, stream);
            if (piece.counters != 0) device->release(piece.counters, stream);
        }
    }

    // Memory grows as launches want it. Counters are 0 from the start, and every launch leaves them so. Called with the
    // lock, which is held until the launch is given to the stream: only then may another thread replace the memory.
    Expected<Shared> share(const LaunchPlan& plan, CudaStream stream) {
        std::int64_t bytes = 0;
        for (const std::int64_t part : plan.scratch) bytes += round_up(part);
        if (bytes == 0 && plan.counters == 0) return Shared{};
        Shared& piece = shared[stream];
        if (bytes > piece.scratch_bytes) {
            FLEXOR_ASSIGN(const CudaPointer made, device->allocate(static_cast<std::size_t>(bytes), stream));
            if (piece.scratch != 0) device->release(piece.scratch, stream);
            piece.scratch = made;
            piece.scratch_bytes = bytes;
        }
        if (plan.counters > piece.counter_count) {
            const std::vector<std::int32_t> zeros(static_cast<std::size_t>(plan.counters), 0);
            const std::size_t size = zeros.size() * sizeof(std::int32_t);
            FLEXOR_ASSIGN(const CudaPointer made, device->allocate(size, stream));
            if (piece.counters != 0) device->release(piece.counters, stream);
            piece.counters = made;
            piece.counter_count = plan.counters;
            FLEXOR_TRY(device->copy_to_device(made, zeros.data(), size, stream));
            FLEXOR_TRY(device->synchronize(stream));
        }
        return piece;
    }

    static std::int64_t round_up(std::int64_t bytes) {
        return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    }
};

DeviceLauncher::DeviceLauncher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceLauncher::~DeviceLauncher() = default;

Expected<std::shared_ptr<DeviceLauncher>> DeviceLauncher::create(Kernel kernel,
                                                                 std::shared_ptr<const runtime::cuda::Device> device,
                                                                 std::shared_ptr<CompilerPool> compiler,
                                                                 LauncherOptions options) {
    FLEXOR_ASSIGN(Generator generator, Generator::create(std::move(kernel)));
    auto impl = std::make_unique<Impl>(std::move(generator), std::move(device), std::move(compiler), options);
    return std::shared_ptr<DeviceLauncher>(new DeviceLauncher(std::move(impl)));
}

Expected<LaunchReport> DeviceLauncher::launch(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                              CudaPointer fault, CudaStream stream) {
    const Generator& generator = impl_->variants->generator();
    FLEXOR_CHECK(buffers.size() == generator.kernel().buffers.size());
    const int multiprocessors = impl_->device->multiprocessors();
    FLEXOR_ASSIGN(LaunchPlan wanted, generator.plan(params, multiprocessors));
    if (wanted.tiles == 0) return LaunchReport{};
    FLEXOR_ASSIGN(Variants::Choice choice, impl_->variants->choose(std::move(wanted), {buffers, params}));
    const LaunchPlan& plan = choice.plan;
    std::unique_lock lock(impl_->mutex, std::defer_lock);
    if (plan.counters > 0 || !plan.scratch.empty()) lock.lock();
    FLEXOR_ASSIGN(const Shared piece, impl_->share(plan, stream));
    CudaPointer scratch = piece.scratch;
    std::vector<std::uint64_t> values;
    for (const Argument& argument : choice.source->arguments) {
        std::uint64_t value = 0;
        switch (argument.kind) {
            case ArgumentKind::kBuffer: value = buffers[argument.index]; break;
            case ArgumentKind::kFault: value = fault; break;
            case ArgumentKind::kScratch:
                value = scratch;
                if (scratch != 0) scratch += static_cast<CudaPointer>(Impl::round_up(plan.scratch[argument.index]));
                break;
            case ArgumentKind::kCounters: value = piece.counters; break;
            case ArgumentKind::kExtent: value = static_cast<std::uint64_t>(plan.extents[argument.index]); break;
            case ArgumentKind::kPlace:
            case ArgumentKind::kNumber: value = static_cast<std::uint64_t>(params[argument.index]); break;
        }
        values.push_back(value);
    }
    FLEXOR_TRY(choice.kernel->launch(plan.programs(multiprocessors), values, stream));
    return std::move(choice.report);
}

std::uint32_t DeviceLauncher::prefetch(std::span<const CudaPointer> buffers, const std::int64_t* params) {
    const auto wanted = impl_->variants->generator().plan(params, impl_->device->multiprocessors());
    if (!wanted || wanted->tiles == 0) return 0;
    return impl_->variants->prefetch(*wanted, {buffers, params});
}

Expected<runtime::cuda::GraphNode> DeviceLauncher::graph_node(const runtime::cuda::GraphLaunch& launch,
                                                              runtime::cuda::GraphFrame& frame) {
    return impl_->graph_kernels.node(launch, frame);
}

void DeviceLauncher::settle() { impl_->variants->settle(); }
std::size_t DeviceLauncher::variants() const { return impl_->variants->count(); }

}  // namespace flexor::codegen::triton
