#include "lower/plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace flexor::lower {

using types::Dim;
using types::DimOp;

namespace {

constexpr std::int64_t kAlignment = 64;

struct Split {
    std::int64_t factor = 1;
    Dim primitive = 1;
};

std::int64_t content(const Dim& d) {
    switch (d.op()) {
        case DimOp::kConstant: return d.constant() < 0 ? -d.constant() : d.constant();
        case DimOp::kMul: return d.operands()[0].is_constant() ? content(d.operands()[0]) : 1;
        case DimOp::kAdd: {
            std::int64_t g = 0;
            for (const Dim& t : d.operands()) g = std::gcd(g, content(t));
            return g;
        }
        default: return 1;
    }
}

Split split(const Dim& d) {
    if (d.is_constant()) return {std::max<std::int64_t>(d.constant(), 0), 1};
    const std::int64_t g = content(d);
    if (g <= 1) return {1, d};
    return {g, Dim::floor_div(d, g)};
}

Dim align(const Dim& d) { return Dim::floor_div(d + Dim(kAlignment - 1), kAlignment) * Dim(kAlignment); }

bool overlap(const PlanItem& a, const PlanItem& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

Plan plan_arena(const std::vector<PlanItem>& items) {
    Plan plan;
    plan.offsets.resize(items.size());
    std::vector<Split> splits;
    std::vector<Dim> primitives;  // in order of first use
    std::unordered_map<Dim, std::vector<std::size_t>> classes;
    for (const PlanItem& item : items) {
        splits.push_back(split(item.bytes));
        auto& members = classes[splits.back().primitive];
        if (members.empty()) primitives.push_back(splits.back().primitive);
        members.push_back(splits.size() - 1);
    }
    for (const Dim& primitive : primitives) {
        std::vector<std::size_t> members = classes[primitive];
        std::stable_sort(members.begin(), members.end(),
                         [&](std::size_t a, std::size_t b) { return splits[a].factor > splits[b].factor; });
        bool aligned = true;
        for (std::size_t i : members) aligned = aligned && splits[i].factor % kAlignment == 0;
        if (aligned || primitive.is_constant(1)) {
            // Exact packing by constants, largest first, each at the lowest place that is free while it lives.
            std::vector<std::pair<std::size_t, std::int64_t>> placed;
            std::int64_t total = 0;
            for (std::size_t i : members) {
                const std::int64_t size = (splits[i].factor + kAlignment - 1) / kAlignment * kAlignment;
                std::vector<std::pair<std::int64_t, std::int64_t>> taken;
                for (const auto& [other, at] : placed) {
                    if (overlap(items[i], items[other]))
                        taken.emplace_back(at, at + (splits[other].factor + kAlignment - 1) / kAlignment * kAlignment);
                }
                std::sort(taken.begin(), taken.end());
                std::int64_t at = 0;
                for (const auto& [begin, end] : taken) {
                    if (at + size <= begin) break;
                    at = std::max(at, end);
                }
                placed.emplace_back(i, at);
                total = std::max(total, at + size);
                plan.offsets[i] = plan.total + Dim(at) * primitive;
            }
            plan.total = plan.total + Dim(total) * primitive;
            continue;
        }
        // Slots of the largest constant, shared by buffers that are never live together.
        std::vector<std::vector<std::size_t>> slots;
        for (std::size_t i : members) {
            std::vector<std::size_t>* fitting = nullptr;
            for (auto& slot : slots) {
                const bool is_free =
                    std::none_of(slot.begin(), slot.end(), [&](std::size_t o) { return overlap(items[i], items[o]); });
                if (is_free && fitting == nullptr) fitting = &slot;
            }
            if (fitting == nullptr) fitting = &slots.emplace_back();
            fitting->push_back(i);
        }
        for (const auto& slot : slots) {
            for (std::size_t i : slot) plan.offsets[i] = plan.total;
            plan.total = plan.total + align(Dim(splits[slot[0]].factor) * primitive);
        }
    }
    return plan;
}

}  // namespace flexor::lower
