#include "codegen/triton/variants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "runtime/telemetry.h"
#include "support/diagnostic.h"

namespace flexor::codegen::triton {

using runtime::cuda::DeviceKernel;

namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::size_t kBits = 63;  // arguments behind them are taken for unaligned

// How far the tile of one plan is from that of another.
double distance(const LaunchPlan& a, const LaunchPlan& b) {
    double sum = a.form == b.form ? 0 : 4;
    if (a.constants.size() != b.constants.size()) return sum;
    for (std::size_t i = 0; i < a.constants.size(); ++i) {
        const auto log = [](std::int64_t value) {
            return std::log2(static_cast<double>(std::max<std::int64_t>(value, 0) + 1));
        };
        sum += std::abs(log(a.constants[i].second) - log(b.constants[i].second));
    }
    return sum;
}

}  // namespace

Variants::Variants(Generator generator, std::shared_ptr<const runtime::cuda::Device> device,
                   std::shared_ptr<CompilerPool> compiler, bool stand_ins)
    : generator_(std::move(generator)),
      device_(std::move(device)),
      compiler_(std::move(compiler)),
      stand_ins_(stand_ins) {}

Variants::Shape Variants::shape_of(const LaunchPlan& plan) {
    std::vector<std::int64_t> constants;
    for (const auto& [name, value] : plan.constants) constants.push_back(value);
    return {plan.form, plan.chunks, std::move(constants), plan.warps, plan.stages, plan.narrow};
}

const KernelSource& Variants::source(const LaunchPlan& plan) {
    const std::pair key(plan.form, plan.chunks);
    const auto known = sources_.find(key);
    if (known != sources_.end()) return known->second;
    return sources_.emplace(key, generator_.write(plan.form, plan.chunks)).first->second;
}

std::uint64_t Variants::divisible(const KernelSource& source, const LaunchPlan& plan,
                                  const LaunchValues& values) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < std::min(source.arguments.size(), kBits); ++i) {
        const Argument& argument = source.arguments[i];
        if (!generator_.alignment_matters(argument)) continue;
        std::uint64_t value = 0;  // of memory that the launch lends: that is aligned
        switch (argument.kind) {
            case ArgumentKind::kBuffer: value = values.buffers[argument.index]; break;
            case ArgumentKind::kExtent: value = static_cast<std::uint64_t>(plan.extents[argument.index]); break;
            case ArgumentKind::kPlace: value = static_cast<std::uint64_t>(values.params[argument.index]); break;
            default: break;
        }
        if (value % kAlignment == 0) out |= std::uint64_t{1} << i;
    }
    return out;
}

// Called with the lock, as are those below.
Variants::VariantRef Variants::request(const LaunchPlan& plan, std::uint64_t divisible, Urgency urgency) {
    const KernelSource& from = source(plan);
    std::vector<bool> bits;
    for (std::size_t i = 0; i < from.arguments.size(); ++i) bits.push_back(i < kBits && (divisible >> i & 1) != 0);
    CompileRequest request = generator_.request(from, plan, bits);
    request.target = device_->capability();
    auto variant = std::make_shared<Variant>();
    variant->divisible = divisible;
    variant->plan = plan;
    variants_[shape_of(plan)].push_back(variant);
    ++count_;
    ++compiling_;
    const auto ended = [] {
        return Diagnostic(DiagnosticId::kKernelCompilerFailed).found("the compiler's processes have been ended");
    };
    variant->job = compiler_->submit(std::move(request), urgency,
                                     [weak = weak_from_this(), variant, name = generator_.kernel().name,
                                      device = device_](CompilerPool::Answer code) {
                                         auto made = [&]() -> Expected<std::shared_ptr<const DeviceKernel>> {
                                             if (!code) return std::move(code).error();
                                             return DeviceKernel::load(device, *code, name);
                                         }();
                                         const auto self = weak.lock();
                                         if (self == nullptr) return;
                                         const std::lock_guard lock(self->mutex_);
                                         if (made)
                                             variant->kernel = *std::move(made);
                                         else
                                             variant->refusal =
                                                 std::make_shared<const Diagnostic>(std::move(made).error());
                                         variant->job = nullptr;
                                         --self->compiling_;
                                         self->done_.notify_all();
                                     });
    if (variant->job == nullptr) {
        variant->refusal = std::make_shared<const Diagnostic>(ended());
        --compiling_;
    }
    return variant;
}

// One place is kept for the variant that assumes nothing and serves every launch.
bool Variants::is_full(const std::vector<VariantRef>& known) {
    const auto places = std::ranges::count_if(known, [](const VariantRef& one) { return one->divisible != 0; });
    return static_cast<std::size_t>(places) + 1 >= kMostAlignments;
}

// Of those that are there the one that assumes most of what holds.
Variants::VariantRef Variants::best(const std::vector<VariantRef>& known, std::uint64_t holds) {
    VariantRef found;
    for (const VariantRef& one : known) {
        if (one->kernel == nullptr || (one->divisible & ~holds) != 0) continue;
        if (found == nullptr || std::popcount(one->divisible) > std::popcount(found->divisible)) found = one;
    }
    return found;
}

bool Variants::has_general(const std::vector<VariantRef>& known) {
    return std::ranges::any_of(known,
                               [](const VariantRef& one) { return one->divisible == 0 && one->kernel != nullptr; });
}

// The variant for what holds: one that is there, is being compiled or was refused, or a new one. Null where there are too
// many and something serves.
Variants::VariantRef Variants::ask(const LaunchPlan& wanted, std::uint64_t holds, const LaunchValues& values,
                                   Urgency urgency, bool served, std::uint32_t& requested) {
    const std::vector<VariantRef>& known = variants_[shape_of(wanted)];
    const auto find = [&](std::uint64_t assumed) -> VariantRef {
        const auto place = std::ranges::find(known, assumed, &Variant::divisible);
        return place == known.end() ? nullptr : *place;
    };
    if (VariantRef exact = find(holds)) return exact;
    const std::uint64_t assumed = is_full(known) ? 0 : holds;
    if (VariantRef general = find(assumed)) return general;
    if (served && count_ >= kMostVariants) return nullptr;
    const bool first = count_ == 0;
    VariantRef made = request(wanted, assumed, urgency);
    ++requested;
    if (first && stand_ins_ && generator_.kernel().param_count > 0) {
        const LaunchPlan spare = generator_.general(wanted, values.params, device_->multiprocessors());
        if (assumed != 0 || shape_of(spare) != shape_of(wanted)) {
            request(spare, 0, Urgency::kSpare);
            ++requested;
        }
    }
    return made;
}

// What is there and serves, best: the same tile, then the most like it.
Variants::VariantRef Variants::nearest(const LaunchPlan& wanted, const LaunchValues& values, LaunchPlan& plan) {
    const Shape shape = shape_of(wanted);
    VariantRef found = best(variants_[shape], divisible(source(wanted), wanted, values));
    if (found != nullptr) {
        plan = wanted;
        return found;
    }
    double least = 0;
    for (const auto& [other, known] : variants_) {
        if (other == shape || known.empty()) continue;
        const double away = distance(known[0]->plan, wanted);
        if (found != nullptr && away >= least) continue;
        auto as = generator_.plan_as(known[0]->plan, wanted, values.params, device_->multiprocessors());
        if (!as) continue;
        VariantRef one = best(known, divisible(source(*as), *as, values));
        if (one == nullptr) continue;
        found = std::move(one);
        least = away;
        plan = *std::move(as);
    }
    return found;
}

Expected<Variants::Choice> Variants::choose(LaunchPlan wanted, const LaunchValues& values) {
    Choice out;
    std::unique_lock lock(mutex_);
    const std::uint64_t holds = divisible(source(wanted), wanted, values);
    const std::vector<VariantRef>& known = variants_[shape_of(wanted)];
    VariantRef chosen = best(known, holds);
    LaunchPlan plan;
    // Where there are too many sets of arguments, what is there is all there will be.
    const bool tuned =
        chosen != nullptr && (chosen->divisible == holds || (stand_ins_ && is_full(known) && has_general(known)));
    if (tuned) {
        plan = std::move(wanted);
    } else {
        chosen = stand_ins_ ? nearest(wanted, values, plan) : nullptr;
        const bool served = chosen != nullptr;
        const VariantRef own =
            ask(wanted, holds, values, served ? Urgency::kTuned : Urgency::kWaited, served, out.report.requested);
        if (!served && own->job != nullptr) {
            const std::uint64_t start = runtime::now_ns();
            compiler_->hurry(own->job, Urgency::kWaited);
            done_.wait(lock, [&] {
                if (stand_ins_) chosen = nearest(wanted, values, plan);
                return chosen != nullptr || own->job == nullptr;
            });
            out.report.waited_ns = runtime::now_ns() - start;
        }
        if (chosen == nullptr && own->kernel != nullptr) {
            chosen = own;
            plan = std::move(wanted);
        }
        if (chosen == nullptr) return Diagnostic(*own->refusal);
        out.report.stand_in = chosen != own;
        if (own != nullptr && own->refusal != nullptr && !own->told) {
            own->told = true;
            out.report.refusal = own->refusal;
        }
    }
    out.kernel = chosen->kernel;
    out.source = &source(plan);
    out.plan = std::move(plan);
    return out;
}

std::uint32_t Variants::prefetch(const LaunchPlan& wanted, const LaunchValues& values) {
    std::uint32_t requested = 0;
    const std::lock_guard lock(mutex_);
    const std::uint64_t holds = divisible(source(wanted), wanted, values);
    LaunchPlan plan;
    const bool served = nearest(wanted, values, plan) != nullptr;
    std::ignore = ask(wanted, holds, values, served ? Urgency::kTuned : Urgency::kWaited, served, requested);
    return requested;
}

void Variants::settle() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return compiling_ == 0; });
}

std::size_t Variants::count() const {
    const std::lock_guard lock(mutex_);
    return count_;
}

}  // namespace flexor::codegen::triton
