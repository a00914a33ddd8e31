#include "lower/plan.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "support/hash.h"

namespace flexor::lower {

using types::Dim;
using types::DimOp;
using types::Range;
using types::ShapeEnv;
using types::Truth;

namespace {

constexpr std::size_t kSamples = 16;
constexpr std::int64_t kLargestSample = 4096;  // of a symbol whose range says no more
constexpr std::size_t kMostTerms = 4;          // of an offset; a longer sum becomes a symbol of its own

std::int64_t raised(std::int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

class Planner {
public:
    Planner(const std::vector<PlanItem>& items, const ShapeEnv& env)
        : items_(items), env_(env), first_symbol_(env.symbol_count()) {}

    Plan plan() {
        std::vector<Life> lives;
        for (const PlanItem& item : items_) {
            lives.push_back(item.life);
            sizes_.push_back(size(item.bytes));
        }
        const std::vector<std::size_t> order = arena_order(lives, samples());
        const auto graph = meetings(lives);

        plan_.offsets.resize(items_.size());
        above_.resize(items_.size());
        std::vector<std::size_t> ranks(items_.size());
        for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = i;
        for (std::size_t item : order) {
            std::vector<std::size_t> below;
            for (std::size_t other : graph[item]) {
                if (ranks[other] < ranks[item]) below.push_back(other);
            }
            plan_.offsets[item] = highest_end(std::move(below), ranks);
            for (std::size_t other : graph[item]) {
                if (ranks[other] < ranks[item]) above_[other].push_back(item);
            }
        }
        plan_.total = highest_end(order, ranks);
        return std::move(plan_);
    }

private:
    Dim add_step(PlanStep step) {
        plan_.steps.push_back(std::move(step));
        return Dim::symbol(static_cast<types::SymbolId>(first_symbol_ + plan_.steps.size() - 1));
    }

    // What a buffer takes: never negative, and a multiple of the alignment.
    Dim size(const Dim& bytes) {
        if (bytes.is_constant()) return raised(std::max<std::int64_t>(bytes.constant(), 0));
        const auto [it, inserted] = known_sizes_.try_emplace(bytes, bytes);
        if (!inserted) return it->second;
        Dim size = bytes;
        if (env_.le(0, bytes) != Truth::kTrue) size = add_step({PlanStep::Kind::kMax, {bytes, 0}});
        if (env_.divisible(bytes, kArenaAlignment) != Truth::kTrue) size = add_step({PlanStep::Kind::kAlignUp, {size}});
        known_sizes_.insert_or_assign(bytes, size);
        return size;
    }

    // Sizes of all buffers for the values of the call that is compiled, and for values spread over the ranges.
    std::vector<std::vector<double>> samples() const {
        std::vector<std::vector<double>> out;
        std::vector<std::int64_t> values(first_symbol_);
        for (std::size_t s = 0; s <= kSamples; ++s) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                const auto id = static_cast<types::SymbolId>(i);
                const Range range = env_.range(Dim::symbol(id));
                const std::int64_t lo = std::clamp<std::int64_t>(range.lo, 1, kLargestSample);
                const std::int64_t hi = std::clamp<std::int64_t>(range.hi, lo, kLargestSample);
                const double share = static_cast<double>(support::hash_combine(s, i) >> 40) / double{1 << 24};
                const double value =
                    static_cast<double>(lo) * std::pow(static_cast<double>(hi) / static_cast<double>(lo), share);
                values[i] = static_cast<std::int64_t>(std::llround(value));
                if (s == 0) values[i] = env_.hint(id).value_or(values[i]);
            }
            std::vector<double> sizes;
            for (const PlanItem& item : items_) {
                const types::Evaluated bytes = item.bytes.evaluate(values);
                if (bytes.status != types::EvalStatus::kOk || bytes.value > types::kDimInfinity) break;
                sizes.push_back(static_cast<double>(raised(std::max<std::int64_t>(bytes.value, 0))));
            }
            if (sizes.size() == items_.size()) out.push_back(std::move(sizes));
        }
        return out;
    }

    // The symbols of the plan are sizes and offsets, so none is negative.
    bool is_never_negative(const Dim& d) const {
        const auto operands = d.operands();
        const auto is = [&](const Dim& operand) { return is_never_negative(operand); };
        switch (d.op()) {
            case DimOp::kConstant: return d.constant() >= 0;
            case DimOp::kSymbol: return d.symbol_id() >= first_symbol_ || env_.le(0, d) == Truth::kTrue;
            case DimOp::kMax: return std::any_of(operands.begin(), operands.end(), is);
            case DimOp::kMod: return is(operands[1]);
            case DimOp::kAdd:
            case DimOp::kMul:
            case DimOp::kFloorDiv:
            case DimOp::kTruncDiv:
            case DimOp::kMin:
            case DimOp::kBroadcast: return std::all_of(operands.begin(), operands.end(), is);
        }
        return false;
    }

    bool is_at_most(const Dim& a, const Dim& b) const { return is_never_negative(b - a); }

    // The largest of the ends of `below`, 0 for none.
    Dim highest_end(std::vector<std::size_t> below, const std::vector<std::size_t>& ranks) {
        // Who has one of the others above it does not end higher than that one.
        std::vector<bool> among(items_.size());
        for (std::size_t i : below) among[i] = true;
        std::erase_if(below, [&](std::size_t i) {
            return std::any_of(above_[i].begin(), above_[i].end(), [&](std::size_t o) { return among[o]; });
        });
        std::sort(below.begin(), below.end(), [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
        std::vector<Dim> ends;
        for (std::size_t i : below) {
            const Dim end = plan_.offsets[i] + sizes_[i];
            if (std::any_of(ends.begin(), ends.end(), [&](const Dim& other) { return is_at_most(end, other); }))
                continue;
            std::erase_if(ends, [&](const Dim& other) { return is_at_most(other, end); });
            ends.push_back(end);
        }
        if (ends.empty()) return 0;
        if (ends.size() == 1 && ends[0].operands().size() <= kMostTerms) return ends[0];
        return add_step({PlanStep::Kind::kMax, std::move(ends)});
    }

    const std::vector<PlanItem>& items_;
    const ShapeEnv& env_;
    std::size_t first_symbol_;
    Plan plan_;
    std::vector<Dim> sizes_;
    std::unordered_map<Dim, Dim> known_sizes_;
    std::vector<std::vector<std::size_t>> above_;  // by item: those that were placed on it
};

}  // namespace

Plan plan_arena(const std::vector<PlanItem>& items, const ShapeEnv& env) { return Planner(items, env).plan(); }

}  // namespace flexor::lower
