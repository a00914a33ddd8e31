#include "fast/prediction.h"

namespace flexor::python {

namespace {

// visit(value, exact): sizes of tensors grow work; ranks, integers and lengths of lists are another program.
template <class Visit>
void visit_extents(std::span<const Value> values, Visit&& visit) {
    for (const Value& value : values) {
        if (value.is_tensor()) {
            visit(value.tensor().rank(), true);
            for (const std::int64_t size : value.tensor().sizes()) visit(size, false);
        } else if (value.is_int() || value.is_bool()) {
            visit(value.integer(), true);
        } else if (value.is_list()) {
            visit(static_cast<std::int64_t>(value.elements().size()), true);
            visit_extents(value.elements(), visit);
        }
    }
}

}  // namespace

Prediction::Foreseen Prediction::foresee(std::span<const Value> arguments) {
    std::size_t next = 0;
    double growth = 1;
    bool same = true, known = true;
    visit_extents(arguments, [&](std::int64_t value, bool exact) {
        const std::int64_t last = next < extents_.size() ? extents_[next] : -1;
        ++next;
        if (value == last) return;
        same = false;
        if (!exact && value < last) return;
        known = known && !exact && last > 0;
        growth *= static_cast<double>(value) / static_cast<double>(last);
    });
    if (!known || next != extents_.size()) return {};
    const bool timed = !same || seconds_ > kShort || ++untimed_ >= kTimedEvery;
    if (timed) untimed_ = 0;
    return {seconds_ * growth * growth, same, timed, revision_};
}

void Prediction::learn(std::span<const Value> arguments, const Foreseen& foreseen, double seconds) {
    seconds_ = seconds;
    if (foreseen.same && foreseen.revision == revision_) return;
    ++revision_;
    extents_.clear();
    visit_extents(arguments, [&](std::int64_t value, bool) { extents_.push_back(value); });
}

}  // namespace flexor::python
