#pragma once
// One row of the ladder: a compiled region made ready to run, or the knowledge that a region is interpreted.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bytecode/module.h"
#include "executable/executable.h"
#include "runtime/telemetry.h"

namespace flexor::vm {

// Whose memory a buffer slot holds: an owner index of the run, or one of these.
inline constexpr std::int32_t kNoOwner = -1;                      // arena, or not set
inline constexpr std::int32_t source_owner(std::uint32_t slot) {  // argument or weight in `slot`
    return -2 - static_cast<std::int32_t>(slot);
}
inline constexpr std::uint32_t source_slot(std::int32_t owner) { return static_cast<std::uint32_t>(-2 - owner); }

class EntryGraphs;

struct Entry {
    std::shared_ptr<const executable::Executable> executable;  // null: interpreted
    std::string reason;                                        // why, if interpreted
    std::shared_ptr<runtime::EntryRecord> record;              // null if interpreted
    std::vector<std::uint64_t> signature_words;
    std::uint64_t signature_hash = 0;
    bool whole_signature = true;  // interpreted: whatever the sizes; else only for the exact key

    std::atomic<bool> dropped{false};
    mutable std::atomic<std::uint64_t> last_used{0};

    // Made by prepare().
    struct ArgumentSlot {
        std::uint32_t buffer, tensor;
    };
    std::vector<void*> buffers;  // weights set, the rest null
    std::vector<std::int32_t> owners;
    std::vector<ArgumentSlot> arguments;
    // Per block and step: the result that a kAllocate with `output` makes, when the same block returns it.
    std::vector<std::vector<const executable::TensorRef*>> outputs;
    std::vector<bool> writes_source;         // per launch: it writes to an argument's memory (or to what may be one)
    std::vector<std::uint32_t> fault_words;  // per launch, on a device: the word that it sets where it stumbles
    std::unique_ptr<std::atomic<bool>[]> prefetched;  // per block, on a device: its kernels have been asked for
    std::shared_ptr<EntryGraphs> graphs;              // on a device, where its launches may run as one
    bool uses_arena = false;
    std::uint32_t max_params = 0, max_buffers = 0, max_moves = 0;

    void prepare(const bytecode::Module& module);
};

using EntryRef = std::shared_ptr<Entry>;

}  // namespace flexor::vm
