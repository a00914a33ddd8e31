#include "codegen/triton/graph_kernels.h"

#include <limits>

#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::codegen::triton {

using runtime::cuda::DeviceKernel;
using runtime::cuda::GraphArgument;
using runtime::cuda::GraphFrame;
using runtime::cuda::GraphLaunch;
using runtime::cuda::GraphNode;
using runtime::cuda::GraphNumber;

namespace {

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kPieceAlignment = 256;

}  // namespace

Expected<GraphVariant> plan_for_graph(const Generator& generator, int multiprocessors, const GraphLaunch& launch,
                                      GraphFrame& frame) {
    const loopir::Kernel& kernel = generator.kernel();
    FLEXOR_CHECK(launch.buffers.size() == kernel.buffers.size());
    const auto refused = [&](const char* what) {
        return Diagnostic(DiagnosticId::kNoCodeGenerator).found(kernel.name + ": " + what);
    };
    std::vector<std::int64_t> most, now, divisors;
    for (const GraphNumber& number : launch.params) {
        most.push_back(number.most);
        now.push_back(number.now);
        divisors.push_back(number.divisor);
    }
    GraphVariant out;
    FLEXOR_ASSIGN(out.plan, generator.plan({most.data(), now.data(), divisors.data()}, multiprocessors));
    out.programs = out.plan.programs(multiprocessors);
    if (out.plan.tiles == 0) return refused("nothing to compute");
    if (out.programs > std::numeric_limits<std::int32_t>::max()) return refused("too many programs");

    const auto number_of = [&](const loopir::IntRef& ref) {
        return ref.is_constant ? GraphNumber::of(ref.value) : launch.params[static_cast<std::size_t>(ref.value)];
    };
    std::vector<GraphNumber> extents;
    for (const loopir::IntRef& ref : generator.extents()) {
        extents.push_back(number_of(ref));
        frame.bound(extents.back(), 1);
    }
    for (const std::uint32_t dim : out.plan.merged) {
        bool alike = true;
        for_each_access(generator.layout()->body, [&](const loopir::Access& access) {
            alike = alike && frame.equal(frame.product(number_of(access.strides[dim + 1]), extents[dim + 1]),
                                         number_of(access.strides[dim]));
        });
        if (!alike) return refused("dims that are no longer one");
        extents[dim + 1] = frame.product(extents[dim], extents[dim + 1]);
        extents[dim] = GraphNumber::of(1);
    }

    out.source = generator.write(out.plan.form, out.plan.chunks);
    std::vector<std::int64_t> scratch_at;
    for (const std::int64_t bytes : out.plan.scratch) {
        scratch_at.push_back(out.scratch_bytes);
        out.scratch_bytes += (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
    }
    out.arguments.push_back({GraphArgument::Kind::kFrame, 0});
    for (const Argument& argument : out.source.arguments) {
        GraphArgument given;
        bool aligned = true, word = false;
        const auto take = [&](const GraphNumber& number, bool address) {
            word = !number.fixed();
            aligned = address && number.divisor % kVectorBytes == 0;
            given.value = word ? number.word : static_cast<std::uint64_t>(number.now);
            if (aligned) frame.divide({number.word, number.now, number.most, kVectorBytes});
        };
        switch (argument.kind) {
            case ArgumentKind::kBuffer: take(launch.buffers[argument.index], true); break;
            case ArgumentKind::kFault:
                given.value = launch.fault;
                aligned = false;
                break;
            case ArgumentKind::kScratch:
                given = {GraphArgument::Kind::kScratch, static_cast<std::uint64_t>(scratch_at[argument.index])};
                break;
            case ArgumentKind::kCounters: given.kind = GraphArgument::Kind::kCounters; break;
            case ArgumentKind::kExtent: take(extents[argument.index], true); break;
            case ArgumentKind::kPlace:
                take(launch.params[argument.index], true);
                frame.bound(launch.params[argument.index], -launch.params[argument.index].most);
                break;
            case ArgumentKind::kNumber: take(launch.params[argument.index], false); break;
        }
        out.arguments.push_back(given);
        out.divisible.push_back(aligned);
        out.indirect.push_back(word);
    }
    return out;
}

GraphKernels::GraphKernels(const Generator& generator, std::shared_ptr<const runtime::cuda::Device> device,
                           Successor successor, Compile compile)
    : generator_(generator),
      device_(std::move(device)),
      successor_(device_->capability() >= kDependentLaunchTarget ? successor : Successor::kWhenEnded),
      compile_(std::move(compile)) {}

Expected<GraphNode> GraphKernels::node(const GraphLaunch& launch, GraphFrame& frame) {
    FLEXOR_ASSIGN(GraphVariant variant, plan_for_graph(generator_, device_->multiprocessors(), launch, frame));
    FLEXOR_ASSIGN(const std::shared_ptr<const DeviceKernel> made, find(variant));
    GraphNode out;
    out.arguments = std::move(variant.arguments);
    out.arguments.resize(out.arguments.size() + DeviceKernel::compiler_parameters());
    out.scratch_bytes = variant.scratch_bytes;
    out.counters = variant.plan.counters;
    out.function = made->function();
    out.name = made->name();
    out.programs = static_cast<unsigned>(variant.programs);
    out.threads = made->threads();
    out.shared_bytes = made->shared_bytes();
    out.keeps = made;
    out.waits = successor_ != Successor::kWhenEnded;
    return out;
}

Expected<std::shared_ptr<const DeviceKernel>> GraphKernels::find(const GraphVariant& variant) {
    const LaunchPlan& plan = variant.plan;
    Key key{static_cast<std::int64_t>(plan.form), plan.chunks, plan.narrow, plan.warps, plan.stages};
    for (const auto& [name, value] : plan.constants) key.push_back(value);
    for (std::size_t i = 0; i < variant.divisible.size(); ++i)
        key.push_back(2 * variant.divisible[i] + variant.indirect[i]);
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = variants_.find(key); known != variants_.end()) return known->second;
        if (variants_.size() >= kMostVariants)
            return Diagnostic(DiagnosticId::kNoCodeGenerator).found(generator_.kernel().name + ": too many variants");
    }
    CompileRequest request = generator_.request(variant.source, plan, variant.divisible, variant.indirect, successor_);
    request.target = device_->capability();
    FLEXOR_ASSIGN(const runtime::cuda::DeviceCode code, compile_(request));
    FLEXOR_ASSIGN(std::shared_ptr<const DeviceKernel> made,
                  DeviceKernel::load(device_, code, generator_.kernel().name));
    const std::lock_guard lock(mutex_);
    return variants_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace flexor::codegen::triton
