#include "vm/run_lists.h"

#include <algorithm>

#include "runtime/kernels/strided_copy.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/diagnostic.h"

namespace flexor::vm {

using executable::ListSlot;
using executable::ListStep;

namespace {
constexpr std::int64_t kSerialBytes = 128 * 1024;  // less than this one thread copies
}

RunLists::RunLists(ListTable& table, std::uint32_t slots, RunMemory& memory) : table_(table), memory_(memory) {
    table_.values.assign(slots, {});
}

RunLists::~RunLists() {
    for (const ListValue& value : table_.values) release(value.elements);
    table_.values.clear();
}

std::int32_t RunLists::fresh(DType dtype, std::uint32_t rank) {
    if (table_.free.empty()) {
        table_.free.push_back(static_cast<std::int32_t>(table_.elements.size()));
        table_.elements.emplace_back();
    }
    const std::int32_t index = table_.free.back();
    table_.free.pop_back();
    ListElements& elements = table_.elements[static_cast<std::size_t>(index)];
    elements.dtype = dtype;
    elements.rank = rank;
    elements.references = 0;
    return index;
}

void RunLists::release(std::int32_t index) {
    if (index < 0) return;
    ListElements& elements = table_.elements[static_cast<std::size_t>(index)];
    if (--elements.references > 0) return;
    for (const ListItem& item : elements.items) memory_.release(item.owner);
    elements.items.clear();
    elements.geometry.clear();
    table_.free.push_back(index);
}

void RunLists::set(ListSlot slot, ListValue value) {
    if (value.elements >= 0) ++table_.elements[static_cast<std::size_t>(value.elements)].references;
    const std::int32_t old = std::exchange(table_.values[slot], value).elements;
    release(old);
}

void RunLists::push(ListElements& elements, ListItem item, std::span<const std::int64_t> geometry) {
    memory_.retain(item.owner);
    elements.items.push_back(item);
    elements.geometry.insert(elements.geometry.end(), geometry.begin(), geometry.end());
}

std::int32_t RunLists::copy(const ListValue& value) {
    const auto from = static_cast<std::size_t>(value.elements);
    const std::int32_t index = fresh(table_.elements[from].dtype, table_.elements[from].rank);
    ListElements& to = table_.elements[static_cast<std::size_t>(index)];
    const ListElements& source = table_.elements[from];
    const std::size_t words = 2 * source.rank;
    for (std::size_t i = 0; i < static_cast<std::size_t>(value.length); ++i)
        push(to, source.items[i], {source.geometry.data() + i * words, words});
    return index;
}

void RunLists::build(ListSlot result, DType dtype, std::uint32_t rank) { set(result, {fresh(dtype, rank), 0}); }

void RunLists::append(ListSlot list, ListSlot result, ListItem item, std::span<const std::int64_t> geometry) {
    const ListValue base = table_.values[list];
    const bool longest = std::ssize(elements(list).items) == base.length;
    const ListValue longer{longest ? base.elements : copy(base), base.length + 1};
    push(table_.elements[static_cast<std::size_t>(longer.elements)], item, geometry);
    set(result, longer);
}

void RunLists::move(std::span<const executable::ListMove> moves) {
    // Held until every target has its value.
    table_.moved.clear();
    for (const executable::ListMove& move : moves) {
        table_.moved.push_back(table_.values[move.from]);
        ++table_.elements[static_cast<std::size_t>(table_.moved.back().elements)].references;
    }
    for (std::size_t i = 0; i < moves.size(); ++i) set(moves[i].to, table_.moved[i]);
    for (const ListValue& value : table_.moved) release(value.elements);
}

std::int64_t RunLists::ask(const ListStep& step, std::int64_t at) const {
    const std::int64_t count = length(step.list);
    switch (step.kind) {
        case ListStep::Kind::kSize:
        case ListStep::Kind::kStride:
            if (at < 0 || at >= count) return 0;
            return step.kind == ListStep::Kind::kSize ? sizes(step.list, at)[step.axis]
                                                      : strides(step.list, at)[step.axis];
        case ListStep::Kind::kTotal: {
            std::int64_t total = 0;
            for (std::int64_t i = 0; i < count; ++i) total += sizes(step.list, i)[step.axis];
            return total;
        }
        case ListStep::Kind::kAlike:
            for (std::int64_t i = 1; i < count; ++i) {
                const auto first = sizes(step.list, 0), own = sizes(step.list, i);
                for (std::size_t a = 0; a < own.size(); ++a) {
                    if (a != step.axis && own[a] != first[a]) return 0;
                }
            }
            return 1;
        default: return 0;
    }
}

void RunLists::join(const ListStep& step, void* data, std::span<const std::int64_t> strides_of_joined,
                    std::span<void* const> copies) const {
    const std::int64_t count = length(step.list);
    if (count == 0) return;
    const auto bytes = static_cast<std::int64_t>(dtype_size(dtype(step.list)));
    const std::int64_t along = strides_of_joined[step.axis];
    // Strides of the place of one element.
    std::vector<std::int64_t> strides_of_place(strides_of_joined.begin(), strides_of_joined.end());
    if (step.new_axis) strides_of_place.erase(strides_of_place.begin() + step.axis);
    std::vector<std::int64_t> begins;
    std::int64_t begin = 0, elements_in_all = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        begins.push_back(begin);
        const auto own = sizes(step.list, i);
        begin += step.new_axis ? 1 : own[step.axis];
        std::int64_t elements_here = 1;
        for (const std::int64_t size : own) elements_here *= size;
        elements_in_all += elements_here;
    }
    const auto copy_some = [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            void* const place = static_cast<char*>(data) + begins[static_cast<std::size_t>(i)] * along * bytes;
            const void* source = copies.empty() ? item(step.list, i).data : copies[static_cast<std::size_t>(i)];
            runtime::copy_strided(place, strides_of_place, source, strides(step.list, i), sizes(step.list, i),
                                  static_cast<std::size_t>(bytes));
        }
    };
    if (elements_in_all * bytes < kSerialBytes) return copy_some(0, count);
    const std::int64_t pieces = std::min<std::int64_t>(count, elements_in_all * bytes / (kSerialBytes / 2));
    runtime::parallel_for(count, (count + pieces - 1) / pieces, copy_some);
}

Expected<void> RunLists::join_on_host(const executable::ListStep& step, DeviceRun& device, const Tensor& target,
                                      runtime::StopCheck* stop) const {
    std::vector<Tensor> copies;
    std::vector<void*> addresses;
    for (std::int64_t i = 0; i < length(step.list); ++i) {
        const Tensor element = Tensor::from_blob(item(step.list, i).data, target.dtype(), sizes(step.list, i),
                                                 strides(step.list, i), nullptr, nullptr, device.place());
        FLEXOR_ASSIGN(Tensor copy, device.to_host(element));
        addresses.push_back(copy.data());
        copies.push_back(std::move(copy));
    }
    const Tensor memory = Tensor::empty(target.dtype(), {target.numel()});
    if (!memory.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("a copy of a joined list");
    const Tensor joined = memory.view(memory.data(), target.dtype(), target.sizes(), target.strides());
    {
        const runtime::StopScope scope(stop, runtime::StopScope::Role::kOwner);
        join(step, joined.data(), joined.strides(), addresses);
    }
    return device.put_back(joined, target);
}

}  // namespace flexor::vm
