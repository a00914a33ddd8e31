#include "codegen/triton/device_launcher.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "codegen/triton/row_launch.h"
#include "codegen/triton/row_source.h"
#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::codegen::triton {

using loopir::Kernel;
using loopir::KernelKind;
using runtime::cuda::CudaPointer;
using runtime::cuda::CudaStream;
using runtime::cuda::DeviceKernel;

namespace {

constexpr std::int64_t kBlocksPerProcessor = 8;  // of a row kernel; each takes the next tile when it is done
constexpr std::uint64_t kAlignment = 16;

// What chooses machine code, but for alignment.
using Shape = std::tuple<RowForm, int, int, int, int, bool>;

Shape shape_of(const RowLaunch& launch) {
    return {launch.form, launch.block[0], launch.block[1], launch.block_k, launch.warps, launch.narrow};
}

struct Variant {
    std::uint64_t divisible;  // a bit an argument
    std::shared_ptr<const DeviceKernel> kernel;
};

}  // namespace

struct DeviceLauncher::Impl {
    Kernel kernel;
    RowLayout layout;
    std::shared_ptr<const runtime::cuda::Device> device;
    std::shared_ptr<CompilerProcess> compiler;
    mutable std::mutex mutex;
    std::map<RowForm, RowSource> sources;
    std::map<Shape, std::vector<Variant>> variants;

    RowLaunch plan(const std::int64_t* params) const {
        return kernel.contraction ? plan_contraction(*kernel.contraction, layout, params) : plan_launch(layout, params);
    }

    const RowSource& source(RowForm form) {
        const auto known = sources.find(form);
        if (known != sources.end()) return known->second;
        RowSource made =
            kernel.contraction ? write_contraction(kernel, layout) : write_row_kernel(kernel, layout, form);
        return sources.emplace(form, std::move(made)).first->second;
    }

    std::int64_t programs(const RowLaunch& launch) const {
        if (kernel.contraction) return std::min<std::int64_t>(launch.tiles, std::numeric_limits<std::int32_t>::max());
        return std::min(launch.tiles, kBlocksPerProcessor * device->multiprocessors());
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

    Expected<std::shared_ptr<const DeviceKernel>> find(const RowLaunch& launch, const RowSource& from,
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
        CompileRequest request = row_request(kernel, from, launch, divisible);
        request.target = device->capability();
        FLEXOR_ASSIGN(const runtime::cuda::DeviceCode code, compiler->compile(request));
        FLEXOR_ASSIGN(std::shared_ptr<const DeviceKernel> made, DeviceKernel::load(device, code, kernel.name));
        known.push_back({assumed, made});
        return made;
    }
};

DeviceLauncher::DeviceLauncher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceLauncher::~DeviceLauncher() = default;

Expected<std::shared_ptr<DeviceLauncher>> DeviceLauncher::create(Kernel kernel,
                                                                 std::shared_ptr<const runtime::cuda::Device> device,
                                                                 std::shared_ptr<CompilerProcess> compiler) {
    const auto refused = [&](const char* what) {
        return Diagnostic(DiagnosticId::kNoCodeGenerator).found(kernel.name + ": " + what);
    };
    if (kernel.kind == KernelKind::kAttention) return refused("attention");
    if (kernel.kind == KernelKind::kExtern) return refused("an extern kernel");
    if (kernel.contraction && kernel.contraction->prologue) return refused("a contraction with a prologue");
    auto impl = std::make_unique<Impl>();
    impl->layout = kernel.contraction ? lay_out_epilogue(kernel) : lay_out(kernel.body);
    impl->kernel = std::move(kernel);
    impl->device = std::move(device);
    impl->compiler = std::move(compiler);
    return std::shared_ptr<DeviceLauncher>(new DeviceLauncher(std::move(impl)));
}

Expected<void> DeviceLauncher::launch(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                      CudaPointer fault, CudaStream stream) {
    FLEXOR_CHECK(buffers.size() == impl_->kernel.buffers.size());
    const RowLaunch launch = impl_->plan(params);
    if (launch.tiles == 0) return {};
    std::vector<std::uint64_t> values;
    std::shared_ptr<const DeviceKernel> kernel;
    {
        const std::lock_guard lock(impl_->mutex);
        const RowSource& source = impl_->source(launch.form);
        std::uint64_t holds = 0;
        for (std::size_t i = 0; i < source.arguments.size(); ++i) {
            const Argument& argument = source.arguments[i];
            std::uint64_t value = 0;
            switch (argument.kind) {
                case ArgumentKind::kBuffer: value = buffers[argument.index]; break;
                case ArgumentKind::kFault: value = fault; break;
                case ArgumentKind::kExtent: value = static_cast<std::uint64_t>(launch.extents[argument.index]); break;
                case ArgumentKind::kPlace:
                case ArgumentKind::kNumber: value = static_cast<std::uint64_t>(params[argument.index]); break;
            }
            values.push_back(value);
            // A number is no address: its alignment says nothing, and would make variants.
            if (argument.kind != ArgumentKind::kNumber && i < 63 && value % kAlignment == 0)
                holds |= std::uint64_t{1} << i;
        }
        FLEXOR_ASSIGN(kernel, impl_->find(launch, source, holds));
    }
    return kernel->launch(impl_->programs(launch), values, stream);
}

std::size_t DeviceLauncher::variants() const {
    const std::lock_guard lock(impl_->mutex);
    std::size_t count = 0;
    for (const auto& [shape, known] : impl_->variants) count += known.size();
    return count;
}

}  // namespace flexor::codegen::triton
