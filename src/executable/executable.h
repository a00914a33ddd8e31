#pragma once
// One compiled region: guard chain, frame programs, tape, memory plan, safe-point map.
//
// Laws
//  X1  The frame starts with the call frame of the signature; further slots are written by frame programs, block moves
//      and read steps, each before its use.
//  X2  A buffer slot holds a base address. Arguments and weights are set at entry; arena buffers at block entry; others
//      by kAllocate, by elements of lists and by block moves.
//  X3  Arena memory lives for one run of its block: a value that leaves the block (terminator values, jump arguments,
//      elements of lists) is never in the arena.
//  X4  Steps run in order. A step that fails leaves every earlier effect visible and later ones undone, as eager does.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executable/signature.h"
#include "loopir/kernel.h"
#include "ops/op_def.h"
#include "runtime/kernel_handle.h"
#include "types/op_site.h"

namespace flexor::runtime::cuda {
class Launcher;
}

namespace flexor::executable {

using Slot = std::uint32_t;        // index into the int64 frame
using BufferSlot = std::uint32_t;  // index into the void* table
using ListSlot = std::uint32_t;    // index into the table of lists
inline constexpr Slot kNoSlot = ~Slot{0};

// dst = a op b, overflow-checked. kMove copies a; kConst loads immediate.
enum class FrameOp : std::uint8_t {
    kConst,
    kMove,
    kAdd,
    kSub,
    kMul,
    kFloorDiv,
    kTruncDiv,
    kMod,
    kMin,
    kMax,
    kBroadcast,
    kAlignUp,
    // On slots that hold the bits of a double; comparisons give 0 or 1.
    kRealOfInt,
    kRealNeg,
    kRealAdd,
    kRealSub,
    kRealMul,
    kRealDiv,
    kRealEq,
    kRealLt,
    kRealLe
};
// Reads slot `a` only.
inline bool is_unary(FrameOp op) {
    return op == FrameOp::kMove || op == FrameOp::kAlignUp || op == FrameOp::kRealOfInt || op == FrameOp::kRealNeg;
}
struct FrameInst {
    FrameOp op;
    Slot dst = 0, a = 0, b = 0;
    std::int64_t immediate = 0;  // kConst; kAlignUp: power of two
};

// A relation of two slots that must hold; otherwise `diagnostic` is raised (in a tape) or the entry does not apply (in
// the guard chain).
struct Check {
    ops::Relation relation;
    Slot a = 0, b = 0;
    bool or_one = false;           // also satisfied if either side is 1
    std::uint32_t diagnostic = 0;  // index into Executable::failures
};

struct FrameProgram {
    std::vector<FrameInst> insts;
};

// What a failed check or fault raises.
struct Failure {
    DiagnosticId id;
    std::string op;
    std::string constraint;  // "C2"
    std::string text;        // sentence of the constraint, or of an assertion
    std::string expected;    // symbolic form of the relation
    std::int32_t pc = 0;
};

// A tensor as the tape knows it: base buffer and geometry in frame slots.
struct TensorRef {
    BufferSlot buffer = 0;
    DType dtype = DType::kF32;
    std::vector<Slot> sizes;
    std::vector<Slot> strides;
    Slot offset = kNoSlot;  // elements; kNoSlot: 0
    bool is_view = false;   // another tensor than what the buffer was made as
};

struct Launch {
    std::uint32_t kernel = 0;         // index into Executable::kernels
    std::vector<BufferSlot> buffers;  // one per BufferParam
    std::vector<Slot> params;         // one per kernel param
    std::uint32_t fault = 0;          // index into failures + 1; 0: cannot fault
    // A contraction in a loop whose right side is the same memory, and unchanged, at every pass: its number among such
    // launches + 1, 0: none. A run may pack the right side once and multiply by that.
    std::uint32_t pack = 0;
    std::vector<TensorRef> writes = {};  // on the host, what it stores into tensors that it does not make
};

// A step on lists of the run. A list is a value: appending leaves the list that is appended to as it was.
struct ListStep {
    enum class Kind : std::uint8_t {
        kArgument,  // lists[result] = Signature::values[argument], which is a list of the run
        kBuild,     // lists[result] = the elements, of dtype `dtype` and rank `rank`
        kAppend,    // lists[result] = lists[list] with elements[0] at its end
        kGet,       // buffer `buffer` = the first element of tensor number `at` of lists[list]
        kSize,      // frame[slot] = size of tensor `at` along `axis`; 0 where there is none
        kStride,    // likewise
        kTotal,     // frame[slot] = the sum of the sizes along `axis`
        kAlike,     // frame[slot] = 1 if all tensors have the same sizes but for `axis`, else 0
        kJoin,      // `joined` = the tensors one after the other along `axis`, or along a new one
    } kind;
    ListSlot list = 0, result = 0;
    std::uint32_t argument = 0;
    DType dtype = DType::kF32;
    std::uint32_t rank = 0;
    std::vector<TensorRef> elements;
    BufferSlot buffer = 0;
    Slot at = kNoSlot, slot = kNoSlot;
    std::uint32_t axis = 0;
    bool new_axis = false;
    TensorRef joined;
};

// An operand of a call; scalars as ReferenceContext has them.
struct CallOperand {
    enum class Kind : std::uint8_t { kNone, kTensor, kBool, kInt, kFloat } kind = Kind::kNone;
    TensorRef tensor;
    Slot slot = kNoSlot;  // a scalar; kFloat: bits of a double
};
// A dim of an attribute that the frame holds: the attribute itself, or element `position` of a list.
struct CallDim {
    std::string attribute;
    std::int32_t position = -1;
    Slot slot = kNoSlot;
};
// An op on whole tensors, by the kernel that its entry in the registry names (ops::run_whole).
struct Call {
    const ops::OpDef* op = nullptr;
    std::vector<CallOperand> operands;
    std::vector<types::Strength> strengths;  // one per operand
    std::vector<TensorRef> results;
    ops::DTypes dtypes;
    types::Attrs attrs;
    std::vector<CallDim> dims;
    std::vector<Slot> sizes;  // what OpDef::data_sizes gives, in order
    std::string fallback;     // why the op that has code does without; empty: it has none
    std::int32_t pc = 0;
    std::int32_t line = 0;
};

struct Step {
    enum class Kind : std::uint8_t {
        kLaunch,     // launches[index]
        kCallSizes,  // frame[calls[index].sizes] = the sizes that the elements of the operands make
        kCall,       // calls[index] fills its results; after its kCallSizes, if it has one
        kAllocate,   // buffer `buffer` = fresh memory of `bytes` (pool memory that may outlive the block; outputs:
                     // caller-owned tensor memory)
        kFrame,      // frames[index]
        kCheck,      // checks[index]
        kReadInt,    // frame[slot] = integer element of dtype at buffer + offset slot
        kReadFloat,  // frame[slot] = bits of double
        kGrow,       // as kAllocate, but if the run alone holds buffer `from`, and holds nothing in it but its first
                     // `kept` bytes, `buffer` may be that memory, grown: its first bytes are those. Only where frame
                     // `slot` is 1
        kRelease,    // buffer is no longer needed (pool memory goes back)
        kList,       // lists[index]
    } kind;
    std::uint32_t index = 0;
    BufferSlot buffer = 0;
    Slot slot = kNoSlot;        // kReadInt/kReadFloat: destination; kGrow: condition
    Slot bytes = kNoSlot;       // kAllocate, kGrow
    BufferSlot from = 0;        // kGrow
    Slot kept = kNoSlot;        // kGrow
    Slot offset = kNoSlot;      // reads: element offset
    DType dtype = DType::kF32;  // reads
    bool output = false;        // kAllocate: memory leaves the region as a result
    bool unless_grown = false;  // kLaunch: left out if the last kGrow has kept the bytes
    bool once = false;          // kCheck, kLaunch, kAllocate: the same at every pass of its block; done at the first
};

// A value handed back to the VM.
struct OutValue {
    enum class Kind : std::uint8_t {
        kUnset,
        kNone,
        kTensor,
        kInt,
        kBool,
        kFloat,
        kString,
        kList,
        kFunction,
        kArgument,
        kOpaque,
        kRunList
    } kind = Kind::kUnset;
    TensorRef tensor;     // kTensor: a view of `buffer`
    Slot slot = kNoSlot;  // kInt, kBool, kFloat: frame slot (float: bits)
    // kArgument: exactly tensor `argument` of the entry (tensors of the signature in order, lists flattened);
    // kOpaque: Signature::values[argument], handed back untouched. A kTensor on an argument's buffer is a view of the
    // argument.
    std::uint32_t argument = 0;
    ListSlot list = 0;  // kRunList
    std::string text;
    std::vector<OutValue> elements;
};

struct Move {
    BufferSlot from, to;
    bool is_view = false;  // what is carried is a view of what `from` was made as
};
struct SlotMove {
    Slot from, to;
};
struct ListMove {
    ListSlot from, to;
};
// Moves happen in parallel (all sources are read first).
struct Jump {
    std::uint32_t block = 0;
    std::vector<Move> buffers;
    std::vector<SlotMove> slots;
    std::vector<ListMove> lists;
};

struct Exit {
    std::int32_t pc = 0;
    std::vector<OutValue> locals;
    std::vector<OutValue> stack;
    std::string reason;
};

struct Terminator {
    enum class Kind : std::uint8_t { kJump, kBranch, kReturn, kExit } kind = Kind::kReturn;
    Slot condition = kNoSlot;      // kBranch: non-zero takes jumps[0]
    bool float_condition = false;  // the slot holds double bits
    std::vector<Jump> jumps;
    std::vector<OutValue> values;  // kReturn
    std::uint32_t exit = 0;
};

// One buffer of the memory plan, for listings and the planner's test.
struct Planned {
    BufferSlot buffer;
    Slot bytes;   // size of the buffer
    Slot offset;  // offset in the block's arena
    std::uint32_t first_step, last_step;
};

struct Block {
    FrameProgram once;           // run at the first entry of a run: over the call frame alone
    FrameProgram frame;          // run at block entry
    std::vector<Planned> arena;  // buffers in the arena
    Slot arena_bytes = kNoSlot;  // kNoSlot: no arena
    std::vector<Step> steps;
    Terminator terminator;
    bool loop_head = false;
};

struct KernelSlot {
    loopir::Kernel ir;
    runtime::KernelRef handle;                          // set by the driver; null where the executable runs on a device
    std::shared_ptr<runtime::cuda::Launcher> launcher;  // likewise; null where it runs on the host
    std::vector<types::OpSite> sites;                   // ops that it computes, all or in part
};

// How a buffer slot of the entry is set.
struct BufferSource {
    enum class Kind : std::uint8_t { kNone, kArgument, kWeight, kPackedWeight } kind = Kind::kNone;
    std::uint32_t index =
        0;  // live value (flattened tensors of the signature, in order) / Module weight / Executable::packed
};

// A weight packed for a contraction's right side at compile time: element (k, n) lies at offset + k*row_stride +
// n*col_stride of the weight.
struct PackedWeight {
    std::uint32_t weight = 0;
    std::int64_t k = 0, n = 0, row_stride = 0, col_stride = 0, offset = 0;
    DType dtype = DType::kF32;
    std::shared_ptr<const void> data;  // set by the driver; buffer address is data.get()
    std::size_t bytes = 0;
};

struct Executable {
    std::string function;
    std::int32_t pc = 0;
    Signature signature;

    std::uint32_t frame_slots = 0;  // total
    std::uint32_t buffer_slots = 0;
    std::uint32_t list_slots = 0;
    std::uint32_t packs = 0;               // launches with a right side to pack
    FrameProgram guard_frame;              // slots that guards read, from the call frame
    std::vector<Check> guards;             // the symbolic rung; empty: always true
    std::vector<std::string> guard_texts;  // one per guard

    std::vector<BufferSource> sources;  // one per buffer slot; kNone for those set by the tape
    std::vector<PackedWeight> packed;
    // On a device: copies of the weights that it reads there, by number, undefined for others. Else empty.
    std::vector<Tensor> device_weights;
    std::vector<KernelSlot> kernels;
    std::vector<Launch> launches;
    std::vector<Call> calls;
    std::vector<FrameProgram> frames;
    std::vector<Check> checks;
    std::vector<ListStep> lists;
    std::vector<Failure> failures;
    std::vector<Block> blocks;
    std::vector<Exit> exits;
    std::uint32_t op_count = 0;       // registry ops compiled into it (for the fallback rate)
    std::vector<std::string> events;  // for explain
    std::string listing;              // the specialised program, printed
};

std::string print(const Executable& executable);
// Promises: every index is in range; every slot and buffer is written before it is read on every path; X3.
Expected<void> verify(const Executable& executable);

// Evaluates guards over a call frame. `scratch` has frame_slots elements and begins with the call frame.
bool guards_hold(const Executable& executable, std::int64_t* scratch);
// False on overflow or zero divisor. With `checked`, a division by zero gives 0: a check in place refuses the divisor.
bool run_frame(const FrameProgram& program, std::int64_t* frame, bool checked = false);
bool check_holds(const Check& check, const std::int64_t* frame);

}  // namespace flexor::executable
