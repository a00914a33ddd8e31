#include "ops/scattering.h"

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/native.h"
#include "ops/reduction.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

template <class Number>
Number sum_of(Number a, Number b) {
    if constexpr (std::is_floating_point_v<Number>) {
        return a + b;
    } else {
        return static_cast<Number>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
}
template <class Number>
Number product_of(Number a, Number b) {
    if constexpr (std::is_floating_point_v<Number>) {
        return a * b;
    } else {
        return static_cast<Number>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
}
template <class Number>
Number combined(Reduction reduction, Number a, Number b) {
    switch (reduction) {
        case Reduction::kNone: return b;
        case Reduction::kSum:
        case Reduction::kMean: return sum_of(a, b);
        case Reduction::kProd: return product_of(a, b);
        case Reduction::kMax: return a != a || a > b ? a : b;
        case Reduction::kMin: return a != a || a < b ? a : b;
    }
    FLEXOR_UNREACHABLE();
}

template <class Number>
Number number_of(const Element& element) {
    return element.floating ? static_cast<Number>(element.real) : static_cast<Number>(element.integer);
}

// out, which is row-major, = x
void copy_all(const ReferenceContext& c, const Tensor& out, const Tensor& x) {
    if (!x.is_contiguous()) return copy_in_order(out, x);
    const I bytes = x.numel() * static_cast<I>(dtype_size(x.dtype()));
    parallel(c, bytes, I{1} << 20, [&](I begin, I end) {
        std::memcpy(static_cast<char*>(out.data()) + begin, static_cast<const char*>(x.data()) + begin,
                    static_cast<std::size_t>(end - begin));
    });
}

// The first index that a thread has found outside.
class BadIndex {
public:
    void note(I index) {
        bool expected = false;
        if (found_.compare_exchange_strong(expected, true)) index_ = index;
    }
    bool found() const { return found_.load(); }
    Diagnostic refusal(I size) const { return bad_index(index_, size); }

private:
    std::atomic<bool> found_{false};
    I index_ = 0;
};

constexpr I kScatterPanel =
    16;  // lines that are gone along together, so that neighbours in memory are written together

// The tensor without the elements that stand where others do.
Tensor distinct(const Tensor& tensor) {
    std::vector<I> sizes(tensor.sizes().begin(), tensor.sizes().end());
    for (int a = 0; a < tensor.rank(); ++a) {
        if (tensor.stride(a) == 0) sizes[static_cast<std::size_t>(a)] = std::min<I>(tensor.size(a), 1);
    }
    return tensor.view(tensor.data(), tensor.dtype(), sizes, tensor.strides());
}

// The smallest and the largest index, as they are given; the smallest is the larger one where there is none.
struct Range {
    I low = std::numeric_limits<I>::max(), high = std::numeric_limits<I>::min();
};
Range range_of(const Tensor& index) {
    Range range;
    const auto meet = [&](I at) {
        const I given = read_integer(index.dtype(), index.data(), at);
        range = {std::min(range.low, given), std::max(range.high, given)};
    };
    if (index.is_contiguous()) {
        for (I i = 0; i < index.numel(); ++i) meet(i);
    } else {
        for_each_index(distinct(index).sizes(), [&](const Index& place) { meet(offset_of(index, place)); });
    }
    return range;
}

// Refuses an index that does not lie within the size.
Expected<void> check_range(const Tensor& index, I size, bool wrap) {
    const auto [low, high] = range_of(index);
    if (low > high) return {};
    if (checked_index(low, size, wrap) < 0) return bad_index(low, size);
    if (checked_index(high, size, wrap) < 0) return bad_index(high, size);
    return {};
}

// First byte and end of the memory that the elements span.
std::pair<const char*, const char*> span_of(const Tensor& tensor) {
    const auto item = static_cast<I>(dtype_size(tensor.dtype()));
    const auto* data = static_cast<const char*>(tensor.data());
    if (tensor.numel() == 0) return {data, data};
    I low = 0, high = item;
    for (int a = 0; a < tensor.rank(); ++a) {
        const I reach = (tensor.size(a) - 1) * tensor.stride(a) * item;
        (reach < 0 ? low : high) += reach;
    }
    return {data + low, data + high};
}

// The operands, those that share memory with the first one copied; false: memory is exhausted.
bool set_apart(std::span<const Tensor> inputs, std::vector<Tensor>& apart) {
    apart.assign(inputs.begin(), inputs.end());
    const auto [begin, end] = span_of(inputs[0]);
    for (std::size_t i = 1; i < apart.size(); ++i) {
        if (!apart[i].defined()) continue;
        const auto [from, to] = span_of(apart[i]);
        if (from >= end || begin >= to) continue;
        apart[i] = apart[i].clone();
        if (!apart[i].defined()) return false;
    }
    return true;
}

ReferenceContext with_inputs(const ReferenceContext& c, std::span<const Tensor> inputs) {
    return {inputs, c.strengths, c.outputs, c.attrs, c.dtypes, c.stop_requested, c.parallel};
}

// Writes into what stands in the output.
Expected<void> scatter_into(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &index = c.inputs[1], &source = c.inputs[2], &out = c.outputs[0];
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(x.rank(), 1));
    const Reduction reduction = *reduction_of(c.attrs.text("reduce"));
    const bool own = c.attrs.flag("include_self");
    const bool counted = reduction == Reduction::kMean || (!own && reduction != Reduction::kNone);
    const bool scalar = c.strengths[2] == types::Strength::kScalar;
    const I size = x.rank() == 0 ? 1 : x.size(axis);
    if (index.numel() == 0) return {};
    const Lines lines(index, axis);
    const I index_step = lines.step(index), source_step = source.rank() == 0 ? 0 : lines.step(source);
    const I out_step = out.rank() == 0 ? 0 : out.stride(axis);
    const auto start = [&](const Tensor& tensor, I line) {
        return tensor.rank() == 0 || scalar ? 0 : lines.start(tensor, line);
    };
    const I panels = (lines.count() + kScatterPanel - 1) / kScatterPanel;
    BadIndex bad;
    with_elements(out.dtype(), [&](auto elements) {
        using E = decltype(elements);
        using Number = typename E::Number;
        const Number number = scalar ? number_of<Number>(load_as(source, 0, out.dtype())) : Number{};
        parallel(c, panels, grain_of(lines.length() * kScatterPanel), [&](I begin, I end) {
            std::vector<I> counts;
            for (I panel = begin; panel < end; ++panel) {
                const I first = panel * kScatterPanel, width = std::min(kScatterPanel, lines.count() - first);
                I index_at[kScatterPanel], source_at[kScatterPanel], out_at[kScatterPanel];
                for (I lane = 0; lane < width; ++lane) {
                    index_at[lane] = lines.start(index, first + lane);
                    source_at[lane] = start(source, first + lane);
                    out_at[lane] = out.rank() == 0 ? 0 : lines.start(out, first + lane);
                }
                if (counted) counts.assign(static_cast<std::size_t>(width * size), 0);
                auto* const to = out.data_as<typename E::Stored>();
                for (I i = 0; i < lines.length(); ++i) {
                    for (I lane = 0; lane < width; ++lane) {
                        const I given = read_integer(index.dtype(), index.data(), index_at[lane] + i * index_step);
                        if (given < 0 || given >= size) {
                            bad.note(given);
                            continue;
                        }
                        const Number next =
                            scalar ? number
                                   : E::load(
                                         source.data_as<const typename E::Stored>()[source_at[lane] + i * source_step]);
                        auto& target = to[out_at[lane] + given * out_step];
                        if (counted && counts[static_cast<std::size_t>(lane * size + given)]++ == 0 && !own) {
                            target = E::store(next);
                        } else {
                            target = E::store(combined(reduction, E::load(target), next));
                        }
                    }
                }
                if (reduction != Reduction::kMean) continue;
                for (I lane = 0; lane < width; ++lane) {
                    for (I i = 0; i < size; ++i) {
                        const I count = counts[static_cast<std::size_t>(lane * size + i)] + (own ? 1 : 0);
                        if (count < 2) continue;
                        auto& target = to[out_at[lane] + i * out_step];
                        const Number sum = E::load(target);
                        if constexpr (std::is_floating_point_v<Number>) {
                            target = E::store(sum / static_cast<Number>(count));
                        } else {
                            target = E::store(static_cast<Number>(floor_divided(static_cast<I>(sum), count)));
                        }
                    }
                }
            }
        });
    });
    if (stopped(c)) return interrupted();
    if (bad.found()) return bad.refusal(size);
    return {};
}

// Whether a point that indices name has an element: the other axes have. Else no index is looked at.
bool has_slots(const Tensor& x, int axis, std::size_t indices) {
    for (int a = 0; a < x.rank(); ++a) {
        if ((a < axis || a >= axis + static_cast<int>(indices)) && x.size(a) == 0) return false;
    }
    return true;
}

Expected<void> put_into(ReferenceContext& c) {
    const Tensor &x = c.inputs[0], &values = c.inputs[1], &out = c.outputs[0];
    const std::span<const Tensor> indices = c.inputs.subspan(2);
    const int axis = rules::normal_axis(c.attrs.integer("axis"), x.rank());
    const int count = static_cast<int>(indices.size());
    const bool add = c.attrs.flag("accumulate"), wrap = c.attrs.flag("wrap");
    if (!has_slots(x, axis, indices.size())) return {};
    // The points that the indices name, and the slots of each: the other axes.
    std::vector<I> points;
    for (const Tensor& index : indices) {
        const auto more = static_cast<std::ptrdiff_t>(index.rank()) - static_cast<std::ptrdiff_t>(points.size());
        if (more > 0) points.insert(points.begin(), static_cast<std::size_t>(more), 1);
        for (int a = 0; a < index.rank(); ++a) {
            I& size = points[points.size() - static_cast<std::size_t>(index.rank() - a)];
            if (size == 1) size = index.size(a);
        }
    }
    const auto depth = static_cast<int>(points.size());
    // Strides of the values along lead, points and rest; 0 where they are broadcast.
    const int total = axis + depth + x.rank() - axis - count;
    std::vector<I> strides(static_cast<std::size_t>(total), 0);
    for (int a = 0; a < values.rank(); ++a) {
        if (values.size(a) != 1) strides[static_cast<std::size_t>(total - values.rank() + a)] = values.stride(a);
    }
    std::vector<I> slots, slot_strides, value_strides;
    for (int a = 0; a < x.rank(); ++a) {
        if (a >= axis && a < axis + count) continue;
        slots.push_back(x.size(a));
        slot_strides.push_back(out.stride(a));
        value_strides.push_back(strides[static_cast<std::size_t>(a < axis ? a : a - count + depth)]);
    }
    std::optional<Diagnostic> error;
    with_elements(out.dtype(), [&](auto elements) {
        using E = decltype(elements);
        using Number = typename E::Number;
        const bool same = values.dtype() == out.dtype();
        auto* const to = out.data_as<typename E::Stored>();
        const auto* from = values.data_as<const typename E::Stored>();
        const Number number = same ? Number{} : number_of<Number>(load_as(values, 0, out.dtype()));  // a scalar
        I done = 0;
        for_each_index(points, [&](const Index& point) {
            if (error || (++done % 4096 == 0 && stopped(c))) return;
            I target = 0, value = 0;
            for (int i = 0; i < count; ++i) {
                const Tensor& index = indices[static_cast<std::size_t>(i)];
                const I given = read_integer(index.dtype(), index.data(), broadcast_offset(index, point));
                const I checked = checked_index(given, x.size(axis + i), wrap);
                if (checked < 0) {
                    error = bad_index(given, x.size(axis + i));
                    return;
                }
                target += checked * out.stride(axis + i);
            }
            for (int a = 0; a < depth; ++a)
                value += point[static_cast<std::size_t>(a)] * strides[static_cast<std::size_t>(axis + a)];
            const auto put = [&](I slot_target, I slot_value) {
                const Number next = same ? E::load(from[slot_value]) : number;
                auto& element = to[slot_target];
                element = E::store(add ? sum_of(E::load(element), next) : next);
            };
            if (slots.empty()) return put(target, value);
            for_each_index(slots, [&](const Index& slot) {
                I slot_target = target, slot_value = value;
                for (std::size_t a = 0; a < slot.size(); ++a) {
                    slot_target += slot[a] * slot_strides[a];
                    slot_value += slot[a] * value_strides[a];
                }
                put(slot_target, slot_value);
            });
        });
    });
    if (stopped(c)) return interrupted();
    if (error) return *std::move(error);
    return {};
}

}  // namespace

Expected<void> native_scatter(ReferenceContext& c) {
    copy_all(c, c.outputs[0], c.inputs[0]);
    return scatter_into(c);
}

Expected<void> native_index_put(ReferenceContext& c) {
    copy_all(c, c.outputs[0], c.inputs[0]);
    return put_into(c);
}

Expected<void> native_scatter_in_place(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const int axis = rules::normal_axis(c.attrs.integer("axis"), std::max(x.rank(), 1));
    FLEXOR_TRY(check_range(c.inputs[1], x.rank() == 0 ? 1 : x.size(axis), false));
    std::vector<Tensor> inputs;
    if (!set_apart(c.inputs, inputs)) return Diagnostic(DiagnosticId::kOutOfMemory);
    ReferenceContext own = with_inputs(c, inputs);
    return scatter_into(own);
}

Expected<void> native_index_put_in_place(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const int axis = rules::normal_axis(c.attrs.integer("axis"), x.rank());
    const bool looks = has_slots(x, axis, c.inputs.size() - 2);
    for (std::size_t i = 2; i < c.inputs.size() && looks; ++i)
        FLEXOR_TRY(check_range(c.inputs[i], x.size(axis + static_cast<int>(i) - 2), c.attrs.flag("wrap")));
    std::vector<Tensor> inputs;
    if (!set_apart(c.inputs, inputs)) return Diagnostic(DiagnosticId::kOutOfMemory);
    ReferenceContext own = with_inputs(c, inputs);
    return put_into(own);
}

Tensor written_part(const OpDef& op, const types::Attrs& attrs, std::span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    const bool scatters = op.native == native_scatter_in_place;
    if (x.rank() == 0 || !(scatters || op.native == native_index_put_in_place)) return x;
    const int axis = rules::normal_axis(attrs.integer("axis"), x.rank());
    std::vector<I> sizes(x.sizes().begin(), x.sizes().end());
    I offset = 0;
    const auto narrow = [&](const Tensor& index, int along, bool wrap) {
        Range range = range_of(index);
        const I size = x.size(along);
        if (wrap && range.low < 0 && range.high >= 0) range = {0, size - 1};
        if (wrap && range.high < 0) range = {range.low + size, range.high + size};
        // Indices outside are refused before anything is written.
        const bool fits = range.low >= 0 && range.low <= range.high && range.high < size;
        sizes[static_cast<std::size_t>(along)] = fits ? range.high - range.low + 1 : 0;
        if (fits) offset += range.low * x.stride(along);
    };
    if (scatters) {
        const Tensor& index = inputs[1];
        for (int a = 0; a < x.rank() && index.rank() == x.rank(); ++a) {
            if (a != axis) sizes[static_cast<std::size_t>(a)] = std::min(x.size(a), index.size(a));
        }
        narrow(index, axis, false);
    } else {
        for (std::size_t i = 2; i < inputs.size(); ++i)
            narrow(inputs[i], axis + static_cast<int>(i) - 2, attrs.flag("wrap"));
    }
    return x.view(static_cast<char*>(x.data()) + offset * static_cast<I>(dtype_size(x.dtype())), x.dtype(), sizes,
                  x.strides());
}

}  // namespace flexor::ops
