#pragma once
// Lists of one run: tensors whose number only the run knows.
//
// Laws
//  L1  A list is a value: appending makes another one. Lists that grew out of each other share their elements, so that
//      appending to the longest of them costs the same whatever its length; another one is copied first.
//  L2  An element keeps the memory of its tensor as long as some list holds it.
#include <cstdint>
#include <span>
#include <vector>

#include "executable/executable.h"
#include "flexor/dtype.h"
#include "runtime/stop_check.h"
#include "vm/device_run.h"
#include "vm/run_memory.h"

namespace flexor::vm {

// A tensor in a list; `data` is its first element.
struct ListItem {
    void* data = nullptr;
    std::int32_t owner = -1;
};

// What lists share. Kept between runs for its memory.
struct ListElements {
    DType dtype = DType::kF32;
    std::uint32_t rank = 0;
    std::int32_t references = 0;
    std::vector<ListItem> items;
    std::vector<std::int64_t> geometry;  // sizes, then strides of each item
};

// The first `length` of the elements.
struct ListValue {
    std::int32_t elements = -1;  // -1: no list yet
    std::int64_t length = 0;
};

struct ListTable {
    std::vector<ListValue> values;  // by list slot
    std::vector<ListValue> moved;
    std::vector<ListElements> elements;
    std::vector<std::int32_t> free;
};

class RunLists {
public:
    RunLists(ListTable& table, std::uint32_t slots, RunMemory& memory);
    ~RunLists();
    RunLists(const RunLists&) = delete;
    RunLists& operator=(const RunLists&) = delete;

    void build(executable::ListSlot result, DType dtype, std::uint32_t rank);  // an empty list
    // `geometry`: sizes, then strides.
    void append(executable::ListSlot list, executable::ListSlot result, ListItem item,
                std::span<const std::int64_t> geometry);
    void move(std::span<const executable::ListMove> moves);  // in parallel

    std::int64_t length(executable::ListSlot list) const { return table_.values[list].length; }
    DType dtype(executable::ListSlot list) const { return elements(list).dtype; }
    const ListItem& item(executable::ListSlot list, std::int64_t at) const {
        return elements(list).items[static_cast<std::size_t>(at)];
    }
    std::span<const std::int64_t> sizes(executable::ListSlot list, std::int64_t at) const { return part(list, at, 0); }
    std::span<const std::int64_t> strides(executable::ListSlot list, std::int64_t at) const {
        return part(list, at, elements(list).rank);
    }

    // The answer of a query step; `at` is the position that it asks for.
    std::int64_t ask(const executable::ListStep& step, std::int64_t at) const;
    // Copies the elements of the step's list to `data`, whose strides are those of the joined tensor. `copies`: where they
    // lie instead; empty: where they are.
    void join(const executable::ListStep& step, void* data, std::span<const std::int64_t> strides,
              std::span<void* const> copies = {}) const;
    // The same with elements and `target` on a device, by way of copies on the host.
    Expected<void> join_on_host(const executable::ListStep& step, DeviceRun& device, const Tensor& target,
                                runtime::StopCheck* stop) const;

private:
    const ListElements& elements(executable::ListSlot list) const {
        return table_.elements[static_cast<std::size_t>(table_.values[list].elements)];
    }
    std::span<const std::int64_t> part(executable::ListSlot list, std::int64_t at, std::size_t offset) const {
        const ListElements& e = elements(list);
        return {e.geometry.data() + static_cast<std::size_t>(at) * 2 * e.rank + offset, e.rank};
    }
    std::int32_t fresh(DType dtype, std::uint32_t rank);
    std::int32_t copy(const ListValue& value);
    void push(ListElements& elements, ListItem item, std::span<const std::int64_t> geometry);
    void set(executable::ListSlot slot, ListValue value);
    void release(std::int32_t elements);

    ListTable& table_;
    RunMemory& memory_;
};

}  // namespace flexor::vm
