#include "ops/groups.h"

#include <array>

#include "ops/native.h"
#include "ops/ordering.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

// The places of the elements of a vector in order, NaN last.
Expected<Tensor> places_in_order(const ReferenceContext& c, const Tensor& x, bool descending) {
    Tensor places = Tensor::empty(DType::kI64, {x.numel()});
    if (!places.defined()) return no_memory("the places of the elements in order");
    const Tensor inputs[] = {x};
    Tensor outputs[] = {places};
    ReferenceContext inner{inputs, {}, outputs, c.attrs, c.dtypes, c.stop_requested, c.parallel};
    FLEXOR_TRY(order_lines(inner, 0, descending, x.numel(), true));
    return places;
}

// ---------------------------------------------------------------- unique

struct Groups {
    Tensor x;               // as a row-major vector
    Tensor order;           // places, equal elements next to each other; undefined: as they stand
    std::vector<I> starts;  // of the groups in the order
};

}  // namespace

Expected<std::vector<std::int64_t>> unique_sizes(ReferenceContext& c) {
    auto groups = std::make_shared<Groups>();
    const Tensor dense = c.inputs[0].contiguous();
    if (!dense.defined()) return no_memory("x");
    const I count = dense.numel(), stride = 1;
    groups->x = dense.view(dense.data(), dense.dtype(), {&count, 1}, {&stride, 1});
    if (!c.attrs.flag("consecutive")) {
        FLEXOR_ASSIGN(groups->order, places_in_order(c, groups->x, false));
    }
    const I* order = groups->order.defined() ? groups->order.data_as<const I>() : nullptr;
    const bool equal_nan = c.attrs.flag("equal_nan");
    with_elements(dense.dtype(), [&](auto elements) {
        using E = decltype(elements);
        const auto* data = groups->x.data_as<const typename E::Stored>();
        typename E::Number last{};
        for (I i = 0; i < count; ++i) {
            const auto next = E::load(data[order != nullptr ? order[i] : i]);
            const bool same = next == last || (equal_nan && next != next && last != last);
            if (i == 0 || !same) groups->starts.push_back(i);
            last = next;
        }
    });
    const auto found = static_cast<I>(groups->starts.size());
    c.found = std::move(groups);
    return std::vector<I>{found};
}

Expected<void> native_unique(ReferenceContext& c) {
    const auto& groups = *static_cast<const Groups*>(c.found.get());
    const I* order = groups.order.defined() ? groups.order.data_as<const I>() : nullptr;
    auto* const inverse = c.outputs[1].data_as<Unaligned<I>>();
    auto* const counts = c.outputs[2].data_as<Unaligned<I>>();
    with_elements(groups.x.dtype(), [&](auto elements) {
        using Stored = typename decltype(elements)::Stored;
        const auto* data = groups.x.data_as<const Stored>();
        auto* const values = c.outputs[0].data_as<Stored>();
        for (std::size_t group = 0; group < groups.starts.size(); ++group) {
            const I begin = groups.starts[group];
            const I end = group + 1 < groups.starts.size() ? groups.starts[group + 1] : groups.x.numel();
            values[group] = data[order != nullptr ? order[begin] : begin];
            counts[group] = end - begin;
            for (I i = begin; i < end; ++i) inverse[order != nullptr ? order[i] : i] = static_cast<I>(group);
        }
    });
    return {};
}

// ---------------------------------------------------------------- nms

namespace {

// Sides of the boxes by falling score, apart from each other, so that one box meets the others in a plain loop.
template <class Number>
class Boxes {
public:
    Boxes(const Tensor& boxes, const I* order) : count_(boxes.size(0)) {
        for (std::vector<Number>& side : sides_) side.resize(static_cast<std::size_t>(count_));
        const auto* data = boxes.data_as<const Unaligned<Number>>();
        for (I i = 0; i < count_; ++i) {
            const auto* box = data + order[i] * boxes.stride(0);
            const auto at = static_cast<std::size_t>(i);
            for (std::size_t s = 0; s < 4; ++s) sides_[s][at] = box[static_cast<I>(s) * boxes.stride(1)];
            sides_[4][at] = (sides_[2][at] - sides_[0][at]) * (sides_[3][at] - sides_[1][at]);
        }
    }
    // Flags the boxes behind `box` that it covers.
    void cover(I box, double threshold, std::vector<std::uint8_t>& covered) const {
        const auto [x1, y1, x2, y2, areas] =
            std::array{sides_[0].data(), sides_[1].data(), sides_[2].data(), sides_[3].data(), sides_[4].data()};
        const Number left = x1[box], top = y1[box], right = x2[box], bottom = y2[box], area = areas[box];
        std::uint8_t* flags = covered.data();
        for (I i = box + 1; i < count_; ++i) {
            const Number width = std::max(Number{0}, std::min(right, x2[i]) - std::max(left, x1[i]));
            const Number height = std::max(Number{0}, std::min(bottom, y2[i]) - std::max(top, y1[i]));
            const Number shared = width * height;
            flags[i] |= static_cast<std::uint8_t>(static_cast<double>(shared / (area + areas[i] - shared)) > threshold);
        }
    }

private:
    I count_;
    std::array<std::vector<Number>, 5> sides_;  // x1, y1, x2, y2, area
};

template <class Number>
std::vector<I> keep_boxes(const ReferenceContext& c, const I* order) {
    const double threshold = c.attrs.real("iou_threshold");
    const I count = c.inputs[0].size(0);
    const Boxes<Number> boxes(c.inputs[0], order);
    std::vector<std::uint8_t> covered(static_cast<std::size_t>(count), 0);
    std::vector<I> kept;
    for (I i = 0; i < count && !stopped(c); ++i) {
        if (covered[static_cast<std::size_t>(i)] != 0) continue;
        kept.push_back(order[i]);
        boxes.cover(i, threshold, covered);
    }
    return kept;
}

}  // namespace

Expected<std::vector<std::int64_t>> nms_sizes(ReferenceContext& c) {
    FLEXOR_ASSIGN(const Tensor order, places_in_order(c, c.inputs[1], true));
    const I* places = order.data_as<const I>();
    auto kept = std::make_shared<std::vector<I>>(c.inputs[0].dtype() == DType::kF32 ? keep_boxes<float>(c, places)
                                                                                    : keep_boxes<double>(c, places));
    if (stopped(c)) return interrupted();
    const auto count = static_cast<I>(kept->size());
    c.found = std::move(kept);
    return std::vector<I>{count};
}

Expected<void> native_nms(ReferenceContext& c) {
    const auto& kept = *static_cast<const std::vector<I>*>(c.found.get());
    std::copy(kept.begin(), kept.end(), c.outputs[0].data_as<Unaligned<I>>());
    return {};
}

}  // namespace flexor::ops
