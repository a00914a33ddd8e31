#pragma once
// The machine code of one kernel on one device, in as many variants as launches want.
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "codegen/triton/compiler_pool.h"
#include "codegen/triton/generator.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launcher.h"
#include "support/expected.h"

namespace flexor::codegen::triton {

// What a launch is given.
struct LaunchValues {
    std::span<const runtime::cuda::CudaPointer> buffers;
    const std::int64_t* params;
};

// A variant is machine code for a form, a tile, a width of indices, and a set of arguments that are multiples of 16. One that
// is not there yet is compiled beside the launches; what serves them until then is a variant that assumes less, or one of
// another tile, and a launch waits only where there is none. With the first variant of a kernel whose sizes change, one
// is compiled that serves them all.
//
// A stand-in rounds otherwise, where another tile sums in another order. Without stand-ins every launch waits for its own
// variant, so that equal calls give equal bits.
//
// Variants are few whatever the sizes do: tiles are powers of two, the sets of one tile kMostAlignments, of which the last
// assumes nothing, and all of a kernel kMostVariants, beyond which nothing is compiled that another one can stand in for.
// Thread-safe.
class Variants : public std::enable_shared_from_this<Variants> {
public:
    static constexpr std::size_t kMostAlignments = 4;
    static constexpr std::size_t kMostVariants = 64;

    Variants(Generator generator, std::shared_ptr<const runtime::cuda::Device> device,
             std::shared_ptr<CompilerPool> compiler, bool stand_ins);

    struct Choice {
        std::shared_ptr<const runtime::cuda::DeviceKernel> kernel;
        const KernelSource* source = nullptr;  // lives as long as the variants
        LaunchPlan plan;
        runtime::cuda::LaunchReport report;
    };
    // The variant to launch with now; waits for one where none serves. `wanted` is the plan of these values, of some tiles.
    Expected<Choice> choose(LaunchPlan wanted, const LaunchValues& values);
    // Begins to compile what choose() would wait for. The number of variants asked for.
    std::uint32_t prefetch(const LaunchPlan& wanted, const LaunchValues& values);
    // Waits until nothing is being compiled.
    void settle();

    std::size_t count() const;  // those that are there or being compiled
    const Generator& generator() const { return generator_; }

private:
    // What chooses machine code, but for alignment.
    using Shape = std::tuple<Form, int, std::vector<std::int64_t>, int, int, bool>;
    struct Variant {
        std::uint64_t divisible;                                    // a bit an argument
        LaunchPlan plan;                                            // that it was compiled for
        CompilerPool::Ticket job;                                   // null once it is done
        std::shared_ptr<const runtime::cuda::DeviceKernel> kernel;  // null: not there yet, or refused
        std::shared_ptr<const Diagnostic> refusal;
        bool told = false;  // the refusal, to a launch that something else has served
    };
    using VariantRef = std::shared_ptr<Variant>;

    static Shape shape_of(const LaunchPlan& plan);
    const KernelSource& source(const LaunchPlan& plan);
    std::uint64_t divisible(const KernelSource& source, const LaunchPlan& plan, const LaunchValues& values) const;
    VariantRef request(const LaunchPlan& plan, std::uint64_t divisible, Urgency urgency);
    VariantRef ask(const LaunchPlan& wanted, std::uint64_t holds, const LaunchValues& values, Urgency urgency,
                   bool served, std::uint32_t& requested);
    VariantRef nearest(const LaunchPlan& wanted, const LaunchValues& values, LaunchPlan& plan);
    static VariantRef best(const std::vector<VariantRef>& known, std::uint64_t holds);
    static bool is_full(const std::vector<VariantRef>& known);
    static bool has_general(const std::vector<VariantRef>& known);

    const Generator generator_;
    const std::shared_ptr<const runtime::cuda::Device> device_;
    const std::shared_ptr<CompilerPool> compiler_;
    const bool stand_ins_;
    mutable std::mutex mutex_;
    std::condition_variable done_;
    std::map<std::pair<Form, int>, KernelSource> sources_;  // by form and chunks
    std::map<Shape, std::vector<VariantRef>> variants_;
    std::size_t count_ = 0, compiling_ = 0;
};

}  // namespace flexor::codegen::triton
