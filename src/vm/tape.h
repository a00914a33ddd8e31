#pragma once
// Runs the tape of an executable over live values.
//
// Laws
//  T1  Steps run in order (X4). A failure leaves earlier effects visible and raises what the executable says.
//  T2  When memory is refused before any effect, nothing has happened: the caller may do the region's work another way.
//      After an effect the refusal is an error of the run.
#include <cstdint>
#include <vector>

#include "flexor/call_options.h"
#include "runtime/pool.h"
#include "runtime/stop_check.h"
#include "runtime/telemetry.h"
#include "vm/device_run.h"
#include "vm/entry.h"
#include "vm/failures.h"
#include "vm/journal.h"
#include "vm/live.h"
#include "vm/loop_packs.h"
#include "vm/native_call.h"
#include "vm/profile.h"
#include "vm/run_lists.h"
#include "vm/run_memory.h"

namespace flexor::vm {

// What a run needs and keeps for the next one.
struct Scratch {
    LiveKey key;
    Words<std::int64_t> frame;
    Words<std::int64_t> params;
    Words<void*> buffers;
    Words<void*> launch_buffers;
    Words<std::int32_t> owners;
    Words<std::int64_t> moved;
    Words<std::int32_t> moved_owners;
    std::vector<Owned> owned;
    ListTable lists;
    std::vector<LoopPack> packs;
    std::vector<bool> visited;  // by block
    NativeCall call;
};

struct TapeContext {
    runtime::PoolCache* cache = nullptr;
    runtime::Arena* arena = nullptr;
    runtime::Arena* workspace = nullptr;
    runtime::Shard* shard = nullptr;
    runtime::Telemetry* telemetry = nullptr;  // gets the fallbacks; null: somebody else records them
    const bytecode::Module* module = nullptr;
    std::int32_t function = 0;
    const CallOptions* call = nullptr;
    runtime::StopCheck* stop = nullptr;
    runtime::Pool* output_pool = nullptr;  // results are memory of this pool instead of the caller's
    std::span<const Tensor> outputs = {};  // where results may be written, by their places in the return
    DeviceRun* device = nullptr;           // null: the run is on the host
    Profile* profile = nullptr;            // gets the times of kernels
    Journal* journal = nullptr;            // gets what is overwritten; null: nobody asks for it
};

enum class TapeEnd : std::uint8_t {
    kReturned,  // values
    kExited,    // locals, stack, pc
    kFailed,    // error
    kRefused,   // there was no memory, or no kernel, and nothing has happened yet; refused_bytes, refusal
};
struct TapeResult {
    TapeEnd end = TapeEnd::kReturned;
    std::vector<Value> locals, stack;
    std::int32_t pc = 0;
    const std::string* reason = nullptr;  // of the exit
    std::unique_ptr<Diagnostic> error;
    std::uint64_t refused_bytes = 0;
    std::string refusal;  // kRefused: why, if not for memory
};

// `live` and scratch.key describe the same call. Results of a return are appended to `values`.
void run_tape(const Entry& entry, const LiveValues& live, Scratch& scratch, TapeContext& context,
              std::vector<Value>& values, TapeResult& result);

}  // namespace flexor::vm
