#include "driver/prepare.h"

#include <algorithm>
#include <barrier>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "support/diagnostic.h"
#include "support/environment.h"
#include "support/text.h"

namespace flexor::driver {

namespace {

// Sizes of the range that are tried beyond its corners before it is given up: as many as an entry's signature keeps.
constexpr int kMostProbes = 64;
constexpr int kQuietProbes = 4;  // as many in a row without a compilation are taken for all

std::uint64_t next_random(std::uint64_t& state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

}  // namespace

Expected<Preparation> Preparation::of(const bytecode::Module& module, std::int32_t function,
                                      std::span<const SizeRange> ranges) {
    Preparation out(module, function);
    for (const SizeRange& range : ranges) {
        std::size_t symbol = 0;
        while (symbol < module.symbols.size() && module.symbols[symbol].name != range.symbol) ++symbol;
        if (symbol == module.symbols.size()) {
            std::vector<std::string_view> names;
            for (const bytecode::SymbolDecl& declared : module.symbols) names.emplace_back(declared.name);
            return Diagnostic(DiagnosticId::kUnknownName)
                .operand("symbol")
                .found(range.symbol)
                .hint(support::near_miss_hint(range.symbol, names));
        }
        if (range.lo > range.hi || range.lo < 0) {
            return Diagnostic(DiagnosticId::kBadSymbolRange)
                .operand(range.symbol)
                .found(std::to_string(range.lo) + ".." + std::to_string(range.hi));
        }
        out.axes_.push_back({static_cast<types::SymbolId>(symbol), range.lo, range.hi});
    }
    return out;
}

Expected<bool> Preparation::run_at(const FixedSizes& sizes, const PreparedRun& run) const {
    FLEXOR_ASSIGN(const std::vector<Value> arguments,
                  make_arguments(*module_, function_, example_sizes(*module_, function_, sizes)));
    return run(arguments);
}

Expected<bool> Preparation::try_at(const FixedSizes& sizes, const PreparedRun& run) const {
    auto compiled = run_at(sizes, run);
    if (!compiled && axes_.size() > 1 && compiled.error().kind() == DiagnosticKind::kUserError) return false;
    return compiled;
}

Expected<void> Preparation::compile(const PreparedRun& run) const {
    FixedSizes low, middle, high;
    for (const Axis& axis : axes_) {
        low[axis.symbol] = axis.lo;
        middle[axis.symbol] = axis.lo + (axis.hi - axis.lo) / 2;
        high[axis.symbol] = axis.hi;
    }
    for (const FixedSizes& sizes : {high, low, middle}) FLEXOR_TRY(run_at(sizes, run));
    std::vector<FixedSizes> corners;
    for (const Axis& axis : axes_) {
        if (axes_.size() < 2) break;
        corners.push_back(low);
        corners.back()[axis.symbol] = axis.hi;
        corners.push_back(high);
        corners.back()[axis.symbol] = axis.lo;
    }
    for (const FixedSizes& sizes : corners) FLEXOR_TRY(try_at(sizes, run));
    if (axes_.empty()) return {};
    // Where a size is part of the guards, one compilation is needed for each: every size of a short range, then others.
    int quiet = 0;
    std::uint64_t state = 1;
    std::uint64_t count = 1;
    for (const Axis& axis : axes_) {
        const auto length = static_cast<std::uint64_t>(axis.hi - axis.lo) + 1;
        count = length > kMostProbes || count > kMostProbes ? kMostProbes + 1 : count * length;
    }
    const bool all = count <= kMostProbes;
    for (int probe = 0; probe < (all ? static_cast<int>(count) : kMostProbes); ++probe) {
        FixedSizes sizes;
        auto rest = static_cast<std::uint64_t>(probe);
        // Every other time all symbols together, for they may have to be equal.
        const std::uint64_t common = next_random(state);
        for (const Axis& axis : axes_) {
            const auto length = static_cast<std::uint64_t>(axis.hi - axis.lo) + 1;
            sizes[axis.symbol] = axis.lo + static_cast<std::int64_t>((all              ? rest
                                                                      : probe % 2 == 0 ? common
                                                                                       : next_random(state)) %
                                                                     length);
            rest /= length;
        }
        FLEXOR_ASSIGN(const bool compiled, try_at(sizes, run));
        quiet = compiled ? 0 : quiet + 1;
        if (!all && quiet == kQuietProbes) return {};
    }
    if (all) return {};
    return Diagnostic(DiagnosticId::kNotPrepared)
        .function(module_->functions[static_cast<std::size_t>(function_)].name)
        .found("a compilation for nearly each of " + std::to_string(kMostProbes) + " sizes")
        .expected("a few that serve the whole range")
        .hint("leave out FROZEN, or prepare shorter ranges");
}

Expected<void> Preparation::sweep(const PreparedRun& run) const {
    constexpr std::int64_t kSteps = 48, kMultiple = 16;
    if (axes_.empty()) return {};
    for (std::int64_t step = 0; step <= kSteps; ++step) {
        FixedSizes any, multiples;
        bool other = false;
        for (const Axis& axis : axes_) {
            const std::int64_t at =
                axis.lo + (axis.hi - axis.lo) / kSteps * step + (axis.hi - axis.lo) % kSteps * step / kSteps;
            const std::int64_t up = (at + kMultiple - 1) / kMultiple * kMultiple;
            any[axis.symbol] = at;
            multiples[axis.symbol] = up <= axis.hi ? up : at;
            other = other || multiples[axis.symbol] != at;
        }
        FLEXOR_TRY(try_at(any, run));
        if (other) FLEXOR_TRY(try_at(multiples, run));
    }
    return {};
}

Expected<void> Preparation::touch(const PreparedRun& run) const {
    // Halved together, then each by itself beside the largest of the others.
    FixedSizes high;
    for (const Axis& axis : axes_) high[axis.symbol] = axis.hi;
    FLEXOR_TRY(run_at(high, run));
    for (std::size_t only = 0; only <= axes_.size(); ++only) {
        if (only == 1 && axes_.size() == 1) break;  // the same as together
        FixedSizes sizes = high;
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = 0; i < axes_.size(); ++i) {
                std::int64_t& size = sizes[axes_[i].symbol];
                if (only > 0 && i != only - 1) continue;
                const std::int64_t half = std::max(axes_[i].lo, size / 2);
                changed = changed || half != size;
                size = half;
            }
            if (changed) FLEXOR_TRY(try_at(sizes, run));
        }
    }
    return {};
}

Expected<void> on_threads(int count, const std::function<Expected<void>()>& work) {
    if (count <= 1) return work();
    if (count > support::kMaxThreads) {
        return Diagnostic(DiagnosticId::kBadOption)
            .operand("other_threads")
            .found(std::to_string(count - 1))
            .expected("0 to " + std::to_string(support::kMaxThreads - 1));
    }
    std::mutex mutex;
    std::optional<Diagnostic> refusal;
    // Nobody ends before all have begun: each has a state of its own.
    std::vector<std::thread> threads;
    std::barrier begun(count);
    const auto body = [&] {
        begun.arrive_and_wait();
        auto done = work();
        begun.arrive_and_wait();
        if (done) return;
        const std::lock_guard lock(mutex);
        if (!refusal) refusal = std::move(done).error();
    };
    for (int i = 1; i < count; ++i) {
        try {
            threads.emplace_back(body);
        } catch (const std::system_error&) {
            const std::lock_guard lock(mutex);
            if (!refusal) refusal = Diagnostic(DiagnosticId::kOutOfMemory).operand("a thread");
            // The places of those that do not come.
            for (int missing = i; missing < count; ++missing) begun.arrive_and_drop();
            break;
        }
    }
    body();
    for (std::thread& thread : threads) thread.join();
    if (refusal) return std::move(*refusal);
    return {};
}

}  // namespace flexor::driver
