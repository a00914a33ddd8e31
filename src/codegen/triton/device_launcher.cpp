#include "codegen/triton/device_launcher.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "codegen/triton/generator.h"
#include "support/check.h"

namespace flexor::codegen::triton {

using loopir::Kernel;
using runtime::cuda::CudaPointer;
using runtime::cuda::CudaStream;
using runtime::cuda::DeviceKernel;

namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::int64_t kScratchAlignment = 256;

// What chooses machine code, but for alignment.
using Shape = std::tuple<Form, int, std::vector<std::int64_t>, int, int, bool>;

Shape shape_of(const LaunchPlan& plan) {
    std::vector<std::int64_t> constants;
    for (const auto& [name, value] : plan.constants) constants.push_back(value);
    return {plan.form, plan.chunks, std::move(constants), plan.warps, plan.stages, plan.narrow};
}

struct Variant {
    std::uint64_t divisible;  // a bit an argument
    std::shared_ptr<const DeviceKernel> kernel;
};

}  // namespace

// What programs of one launch leave each other, on one stream.
struct Shared {
    CudaPointer scratch = 0, counters = 0;
    std::int64_t scratch_bytes = 0, counter_count = 0;
};

struct DeviceLauncher::Impl {
    Impl(Generator from, std::shared_ptr<const runtime::cuda::Device> on, std::shared_ptr<CompilerProcess> with)
        : generator(std::move(from)), device(std::move(on)), compiler(std::move(with)) {}
    Generator generator;
    std::shared_ptr<const runtime::cuda::Device> device;
    std::shared_ptr<CompilerProcess> compiler;
    mutable std::mutex mutex;
    std::map<std::pair<Form, int>, KernelSource> sources;  // by form and chunks
    std::map<Shape, std::vector<Variant>> variants;
    std::map<CudaStream, Shared> shared;

    ~Impl() {
        for (const auto& [stream, piece] : shared) {
            if (piece.scratch != 0) device->release(piece.scratch, stream);
            if (piece.counters != 0) device->release(piece.counters, stream);
        }
    }

    const KernelSource& source(const LaunchPlan& plan) {
        const std::pair key(plan.form, plan.chunks);
        const auto known = sources.find(key);
        if (known != sources.end()) return known->second;
        return sources.emplace(key, generator.write(plan.form, plan.chunks)).first->second;
    }

    // Memory grows as launches want it. Counters are 0 from the start, and every launch leaves them so.
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

    // The variant that assumes most of what holds.
    static const Variant* best(const std::vector<Variant>& known, std::uint64_t holds) {
        const Variant* found = nullptr;
        for (const Variant& variant : known) {
            if ((variant.divisible & ~holds) != 0) continue;
            if (found == nullptr || std::popcount(variant.divisible) > std::popcount(found->divisible))
                found = &variant;
        }
        return found;
    }

    Expected<std::shared_ptr<const DeviceKernel>> find(const LaunchPlan& launch, const KernelSource& from,
                                                       std::uint64_t holds) {
        std::vector<Variant>& known = variants[shape_of(launch)];
        const Variant* found = best(known, holds);
        // One place is kept for the variant that assumes nothing and serves every launch.
        const bool full = known.size() + 1 >= kMostAlignments;
        if (found != nullptr && (found->divisible == holds || full)) return found->kernel;
        const std::uint64_t assumed = full ? 0 : holds;
        std::vector<bool> divisible;
        for (std::size_t i = 0; i < from.arguments.size(); ++i)
            divisible.push_back((assumed >> std::min<std::size_t>(i, 63) & 1) != 0);
        CompileRequest request = generator.request(from, launch, divisible);
        request.target = device->capability();
        FLEXOR_ASSIGN(const runtime::cuda::DeviceCode code, compiler->compile(request));
        FLEXOR_ASSIGN(std::shared_ptr<const DeviceKernel> made,
                      DeviceKernel::load(device, code, generator.kernel().name));
        known.push_back({assumed, made});
        return made;
    }
};

DeviceLauncher::DeviceLauncher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceLauncher::~DeviceLauncher() = default;

Expected<std::shared_ptr<DeviceLauncher>> DeviceLauncher::create(Kernel kernel,
                                                                 std::shared_ptr<const runtime::cuda::Device> device,
                                                                 std::shared_ptr<CompilerProcess> compiler) {
    FLEXOR_ASSIGN(Generator generator, Generator::create(std::move(kernel)));
    auto impl = std::make_unique<Impl>(std::move(generator), std::move(device), std::move(compiler));
    return std::shared_ptr<DeviceLauncher>(new DeviceLauncher(std::move(impl)));
}

Expected<void> DeviceLauncher::launch(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                      CudaPointer fault, CudaStream stream) {
    FLEXOR_CHECK(buffers.size() == impl_->generator.kernel().buffers.size());
    const int multiprocessors = impl_->device->multiprocessors();
    FLEXOR_ASSIGN(const LaunchPlan plan, impl_->generator.plan(params, multiprocessors));
    if (plan.tiles == 0) return {};
    std::vector<std::uint64_t> values;
    std::shared_ptr<const DeviceKernel> kernel;
    {
        const std::lock_guard lock(impl_->mutex);
        const KernelSource& source = impl_->source(plan);
        FLEXOR_ASSIGN(const Shared piece, impl_->share(plan, stream));
        CudaPointer scratch = piece.scratch;
        std::uint64_t holds = 0;
        for (std::size_t i = 0; i < source.arguments.size(); ++i) {
            const Argument& argument = source.arguments[i];
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
            // A number is no address: its alignment says nothing, and would make variants.
            if (argument.kind != ArgumentKind::kNumber && i < 63 && value % kAlignment == 0)
                holds |= std::uint64_t{1} << i;
        }
        FLEXOR_ASSIGN(kernel, impl_->find(plan, source, holds));
    }
    return kernel->launch(plan.programs(multiprocessors), values, stream);
}

std::size_t DeviceLauncher::variants() const {
    const std::lock_guard lock(impl_->mutex);
    std::size_t count = 0;
    for (const auto& [shape, known] : impl_->variants) count += known.size();
    return count;
}

}  // namespace flexor::codegen::triton
