#include "ops/running.h"

#include <type_traits>

#include "ops/native.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

// Lines that are gone along side by side: their sums do not wait for each other, and neighbours in memory are read
// together.
constexpr I kRunningPanel = 16;

int running_axis(const ReferenceContext& c) {
    return rules::normal_axis(c.attrs.integer("axis"), std::max(c.inputs[0].rank(), 1));
}

// step(lane, i, element of x) for every element of every line, panel by panel; begin(line of each lane) before each.
template <class E, class Begin, class Step>
Expected<void> go_along(ReferenceContext& c, Begin begin_panel, Step step) {
    const Tensor& x = c.inputs[0];
    if (x.numel() == 0) return {};
    const Lines lines(x, running_axis(c));
    const I length = lines.length(), stride = lines.step(x);
    const I panels = (lines.count() + kRunningPanel - 1) / kRunningPanel;
    parallel(c, panels, grain_of(length * kRunningPanel), [&](I begin, I end) {
        for (I panel = begin; panel < end; ++panel) {
            const I first = panel * kRunningPanel;
            const I width = std::min(kRunningPanel, lines.count() - first);
            const typename E::Stored* from[kRunningPanel];
            auto state = begin_panel(lines, first, width);
            for (I lane = 0; lane < width; ++lane)
                from[lane] = x.data_as<const typename E::Stored>() + lines.start(x, first + lane);
            if (width == 1) {
                for (I i = 0; i < length; ++i) step(state, I{0}, i, E::load(from[0][i * stride]));
                continue;
            }
            for (I i = 0; i < length; ++i) {
                for (I lane = 0; lane < width; ++lane) step(state, lane, i, E::load(from[lane][i * stride]));
            }
        }
    });
    if (stopped(c)) return interrupted();
    return {};
}

// Where the lines of a panel begin in a result.
template <class Stored>
struct Targets {
    Targets(const Tensor& out, const Lines& lines, I first, I width) : step(lines.step(out)) {
        for (I lane = 0; lane < width; ++lane) to[lane] = out.data_as<Stored>() + lines.start(out, first + lane);
    }
    void put(I lane, I i, Stored value) { to[lane][i * step] = value; }
    Stored* to[kRunningPanel];
    I step;
};

template <bool product>
Expected<void> running(ReferenceContext& c) {
    const DType from = c.inputs[0].dtype(), to = c.dtypes.results[0];
    if (from != to && (is_floating(from) || to != DType::kI64)) {
        // Elements are converted before they are added.
        ReferenceContext converted = c;
        Tensor x = Tensor::empty(to, c.inputs[0].sizes());
        if (!x.defined()) return no_memory("x in another dtype");
        I at = 0;
        for_each_index(c.inputs[0].sizes(), [&](const Index& index) {
            store(x, at++, load_as(c.inputs[0], offset_of(c.inputs[0], index), to));
        });
        const Tensor inputs[] = {x};
        converted.inputs = inputs;
        return running<product>(converted);
    }
    return with_elements(from, [&](auto elements) {
        using E = decltype(elements);
        constexpr bool real = std::is_floating_point_v<typename E::Number>;
        using Sum = std::conditional_t<real, double, std::uint64_t>;
        using Stored = std::conditional_t<real, typename E::Stored, Unaligned<I>>;
        struct State {
            Targets<Stored> out;
            Sum sums[kRunningPanel];
        };
        return go_along<E>(
            c,
            [&](const Lines& lines, I first, I width) {
                State state{{c.outputs[0], lines, first, width}, {}};
                std::fill_n(state.sums, kRunningPanel, Sum{product ? 1 : 0});
                return state;
            },
            [](State& state, I lane, I i, auto element) {
                Sum& sum = state.sums[lane];
                if (i == 0) {
                    sum = static_cast<Sum>(element);
                } else {
                    sum = product ? sum * static_cast<Sum>(element) : sum + static_cast<Sum>(element);
                }
                if constexpr (real) {
                    state.out.put(lane, i, E::store(static_cast<typename E::Number>(sum)));
                } else {
                    state.out.put(lane, i, {static_cast<I>(sum)});
                }
            });
    });
}

template <bool greatest>
Expected<void> extremes(ReferenceContext& c) {
    return with_elements(c.inputs[0].dtype(), [&](auto elements) {
        using E = decltype(elements);
        using Number = typename E::Number;
        struct State {
            Targets<typename E::Stored> values;
            Targets<Unaligned<I>> places;
            Number best[kRunningPanel];
            I place[kRunningPanel];
        };
        return go_along<E>(
            c,
            [&](const Lines& lines, I first, I width) {
                return State{{c.outputs[0], lines, first, width}, {c.outputs[1], lines, first, width}, {}, {}};
            },
            [](State& state, I lane, I i, Number element) {
                Number& best = state.best[lane];
                const bool better = greatest ? element >= best : element <= best;
                if (i == 0 || element != element || (best == best && better)) {
                    best = element;
                    state.place[lane] = i;
                }
                state.values.put(lane, i, E::store(best));
                state.places.put(lane, i, {state.place[lane]});
            });
    });
}

}  // namespace

Expected<void> native_cumsum(ReferenceContext& c) { return running<false>(c); }
Expected<void> native_cumprod(ReferenceContext& c) { return running<true>(c); }
Expected<void> native_cummax(ReferenceContext& c) { return extremes<true>(c); }
Expected<void> native_cummin(ReferenceContext& c) { return extremes<false>(c); }

}  // namespace flexor::ops
