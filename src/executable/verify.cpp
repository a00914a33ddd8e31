// The verifier of executables: indices in range, slots and buffers written before they are read on every path, and law
// X3 (what leaves a block is never in its arena).
#include <deque>
#include <optional>

#include "executable/executable.h"
#include "support/diagnostic.h"
#include "support/expected.h"

namespace flexor::executable {

namespace {

// What is known to be written where control stands.
struct Defined {
    std::vector<bool> slots;
    std::vector<bool> buffers;
    std::vector<bool> lists;

    // Keeps what both know; true if something was lost.
    bool meet(const Defined& other) {
        bool changed = false;
        for (auto member : {&Defined::slots, &Defined::buffers, &Defined::lists}) {
            std::vector<bool>& mine = this->*member;
            const std::vector<bool>& others = other.*member;
            for (std::size_t i = 0; i < mine.size(); ++i) {
                if (mine[i] && !others[i]) mine[i] = false, changed = true;
            }
        }
        return changed;
    }
};

class Verifier {
public:
    explicit Verifier(const Executable& executable) : executable_(executable) {}

    Expected<void> run() {
        const Executable& e = executable_;
        const std::uint32_t call_slots = e.signature.frame_size();
        if (call_slots > e.frame_slots) return bad("the frame is smaller than the call frame");
        if (e.sources.size() != e.buffer_slots) return bad("sources do not cover the buffers");
        if (e.blocks.empty()) return bad("there is no block");
        count_tensors(e.signature.values);
        for (const BufferSource& source : e.sources) {
            if (source.kind == BufferSource::Kind::kArgument && source.index >= tensors_)
                return bad("a buffer names argument tensor " + std::to_string(source.index));
            if (source.kind == BufferSource::Kind::kPackedWeight && source.index >= e.packed.size())
                return bad("a buffer names packed weight " + std::to_string(source.index));
        }
        Defined entry{std::vector<bool>(e.frame_slots), std::vector<bool>(e.buffer_slots),
                      std::vector<bool>(e.list_slots)};
        for (std::uint32_t i = 0; i < call_slots; ++i) entry.slots[i] = true;
        for (std::uint32_t i = 0; i < e.buffer_slots; ++i)
            entry.buffers[i] = e.sources[i].kind != BufferSource::Kind::kNone;

        if (e.guards.size() != e.guard_texts.size()) return bad("guards and their texts differ in number");
        Defined guard = entry;
        FLEXOR_TRY(program(e.guard_frame, guard));
        for (const Check& check : e.guards) FLEXOR_TRY(read_check(check, guard, false));

        std::vector<std::optional<Defined>> at(e.blocks.size());
        std::deque<std::uint32_t> queue;
        at[0] = entry;
        queue.push_back(0);
        while (!queue.empty()) {
            const std::uint32_t index = queue.front();
            queue.pop_front();
            Defined state = *at[index];
            FLEXOR_TRY(block(e.blocks[index], state));
            for (const Jump& jump : e.blocks[index].terminator.jumps) {
                Defined after = state;
                for (const Move& move : jump.buffers) after.buffers[move.to] = true;
                for (const SlotMove& move : jump.slots) after.slots[move.to] = true;
                for (const ListMove& move : jump.lists) after.lists[move.to] = true;
                if (!at[jump.block]) {
                    at[jump.block] = after;
                    queue.push_back(jump.block);
                } else if (at[jump.block]->meet(after)) {
                    queue.push_back(jump.block);
                }
            }
        }
        return {};
    }

private:
    static Diagnostic bad(std::string text) {
        return Diagnostic(DiagnosticId::kInternalError).operand("executable").found(std::move(text));
    }

    void count_tensors(const std::vector<LiveSignature>& values) {
        for (const LiveSignature& value : values) {
            if (value.kind == LiveKind::kTensor) ++tensors_;
            count_tensors(value.elements);
        }
    }

    Expected<void> read_slot(Slot slot, const Defined& state) const {
        if (slot >= state.slots.size()) return bad("slot " + std::to_string(slot) + " does not exist");
        if (!state.slots[slot]) return bad("slot " + std::to_string(slot) + " is read before it is written");
        return {};
    }
    Expected<void> write_slot(Slot slot, Defined& state) const {
        if (slot >= state.slots.size()) return bad("slot " + std::to_string(slot) + " does not exist");
        state.slots[slot] = true;
        return {};
    }
    Expected<void> read_buffer(BufferSlot buffer, const Defined& state) const {
        if (buffer >= state.buffers.size()) return bad("buffer " + std::to_string(buffer) + " does not exist");
        if (!state.buffers[buffer]) return bad("buffer " + std::to_string(buffer) + " is read before it is set");
        return {};
    }

    Expected<void> read_list(ListSlot list, const Defined& state) const {
        if (list >= state.lists.size()) return bad("list " + std::to_string(list) + " does not exist");
        if (!state.lists[list]) return bad("list " + std::to_string(list) + " is read before it is made");
        return {};
    }

    // Elements live as long as their list: none is in the arena of the block.
    Expected<void> list_step(const ListStep& step, Defined& state, const std::vector<bool>& arena) const {
        using Kind = ListStep::Kind;
        if (step.kind != Kind::kBuild && step.kind != Kind::kArgument) FLEXOR_TRY(read_list(step.list, state));
        const bool at = step.kind == Kind::kGet || step.kind == Kind::kSize || step.kind == Kind::kStride;
        if (at) FLEXOR_TRY(read_slot(step.at, state));
        switch (step.kind) {
            case Kind::kArgument: {
                const std::vector<LiveSignature>& values = executable_.signature.values;
                if (step.argument >= values.size() || values[step.argument].kind != LiveKind::kRunList)
                    return bad("a step names no list among the live values");
                if (step.result >= state.lists.size()) return bad("a step makes no list");
                state.lists[step.result] = true;
                return {};
            }
            case Kind::kBuild:
            case Kind::kAppend:
                if (step.kind == Kind::kAppend && step.elements.size() != 1)
                    return bad("an append of several elements");
                for (const TensorRef& element : step.elements) {
                    FLEXOR_TRY(read_tensor(element, state));
                    if (element.dtype != step.dtype || element.sizes.size() != step.rank)
                        return bad("an element of another type than its list");
                    if (arena[element.buffer] ||
                        executable_.sources[element.buffer].kind == BufferSource::Kind::kPackedWeight)
                        return bad("buffer " + std::to_string(element.buffer) + " does not outlive its list");
                }
                if (step.result >= state.lists.size()) return bad("a step makes no list");
                state.lists[step.result] = true;
                return {};
            case Kind::kGet:
                if (step.buffer >= executable_.buffer_slots || arena[step.buffer] ||
                    executable_.sources[step.buffer].kind != BufferSource::Kind::kNone)
                    return bad("an element replaces an argument, a weight or what lies in the arena");
                state.buffers[step.buffer] = true;
                return {};
            case Kind::kSize:
            case Kind::kStride:
            case Kind::kTotal:
            case Kind::kAlike: return write_slot(step.slot, state);
            case Kind::kJoin: return read_tensor(step.joined, state);
        }
        return {};
    }

    Expected<void> program(const FrameProgram& program, Defined& state) const {
        for (const FrameInst& inst : program.insts) {
            if (inst.op != FrameOp::kConst) {
                FLEXOR_TRY(read_slot(inst.a, state));
                if (!is_unary(inst.op)) FLEXOR_TRY(read_slot(inst.b, state));
            }
            if (inst.op == FrameOp::kAlignUp && (inst.immediate <= 0 || (inst.immediate & (inst.immediate - 1)) != 0))
                return bad("an alignment is no power of two");
            FLEXOR_TRY(write_slot(inst.dst, state));
        }
        return {};
    }

    Expected<void> read_check(const Check& check, const Defined& state, bool raises) const {
        FLEXOR_TRY(read_slot(check.a, state));
        FLEXOR_TRY(read_slot(check.b, state));
        if (raises && check.diagnostic >= executable_.failures.size()) return bad("a check names no failure");
        return {};
    }

    Expected<void> read_tensor(const TensorRef& tensor, const Defined& state) const {
        if (tensor.sizes.size() != tensor.strides.size() || tensor.sizes.size() > static_cast<std::size_t>(kMaxRank))
            return bad("a tensor's sizes and strides differ in number");
        FLEXOR_TRY(read_buffer(tensor.buffer, state));
        for (Slot slot : tensor.sizes) FLEXOR_TRY(read_slot(slot, state));
        for (Slot slot : tensor.strides) FLEXOR_TRY(read_slot(slot, state));
        if (tensor.offset != kNoSlot) FLEXOR_TRY(read_slot(tensor.offset, state));
        return {};
    }

    Expected<void> read_operands(const Call& call, const Defined& state) const {
        if (call.strengths.size() != call.operands.size()) return bad("a call whose operands lack their strengths");
        for (const CallOperand& operand : call.operands) {
            if (operand.kind == CallOperand::Kind::kTensor) {
                FLEXOR_TRY(read_tensor(operand.tensor, state));
            } else if (operand.kind != CallOperand::Kind::kNone) {
                FLEXOR_TRY(read_slot(operand.slot, state));
            }
        }
        for (const CallDim& dim : call.dims) FLEXOR_TRY(read_slot(dim.slot, state));
        return {};
    }

    // A value that leaves the block.
    Expected<void> read_value(const OutValue& value, const Defined& state, const std::vector<bool>& arena) const {
        switch (value.kind) {
            case OutValue::Kind::kTensor:
                FLEXOR_TRY(read_tensor(value.tensor, state));
                if (arena[value.tensor.buffer])
                    return bad("buffer " + std::to_string(value.tensor.buffer) + " leaves its block from the arena");
                if (executable_.sources[value.tensor.buffer].kind == BufferSource::Kind::kPackedWeight)
                    return bad("a packed weight leaves the region");
                return {};
            case OutValue::Kind::kInt:
            case OutValue::Kind::kBool:
            case OutValue::Kind::kFloat: return read_slot(value.slot, state);
            case OutValue::Kind::kList:
                for (const OutValue& element : value.elements) FLEXOR_TRY(read_value(element, state, arena));
                return {};
            case OutValue::Kind::kRunList: return read_list(value.list, state);
            case OutValue::Kind::kArgument:
                if (value.argument >= tensors_)
                    return bad("a value names argument tensor " + std::to_string(value.argument));
                return {};
            case OutValue::Kind::kOpaque:
                if (value.argument >= executable_.signature.values.size())
                    return bad("a value names live value " + std::to_string(value.argument));
                return {};
            case OutValue::Kind::kUnset:
            case OutValue::Kind::kNone:
            case OutValue::Kind::kString:
            case OutValue::Kind::kFunction: return {};
        }
        return {};
    }

    Expected<void> step(const Step& step, Defined& state, const std::vector<bool>& arena) const {
        const Executable& e = executable_;
        switch (step.kind) {
            case Step::Kind::kLaunch: {
                if (step.index >= e.launches.size()) return bad("a step names no launch");
                const Launch& launch = e.launches[step.index];
                if (launch.kernel >= e.kernels.size()) return bad("a launch names no kernel");
                const loopir::Kernel& kernel = e.kernels[launch.kernel].ir;
                if (launch.buffers.size() != kernel.buffers.size() || launch.params.size() != kernel.param_count)
                    return bad("launch of " + kernel.name + " has other parameters than the kernel");
                if (launch.fault > e.failures.size()) return bad("a launch names no failure");
                if (launch.pack > e.packs || (launch.pack != 0 && !kernel.contraction))
                    return bad("a launch has no right side to pack");
                for (BufferSlot buffer : launch.buffers) FLEXOR_TRY(read_buffer(buffer, state));
                for (Slot slot : launch.params) FLEXOR_TRY(read_slot(slot, state));
                for (const TensorRef& target : launch.writes) FLEXOR_TRY(read_tensor(target, state));
                return {};
            }
            case Step::Kind::kCallSizes: {
                if (step.index >= e.calls.size()) return bad("a step names no call");
                const Call& call = e.calls[step.index];
                if (call.sizes.empty() || call.op->data_sizes == nullptr) return bad("a call that makes no sizes");
                FLEXOR_TRY(read_operands(call, state));
                for (Slot slot : call.sizes) FLEXOR_TRY(write_slot(slot, state));
                return {};
            }
            case Step::Kind::kCall: {
                if (step.index >= e.calls.size()) return bad("a step names no call");
                const Call& call = e.calls[step.index];
                FLEXOR_TRY(read_operands(call, state));
                for (Slot slot : call.sizes) FLEXOR_TRY(read_slot(slot, state));
                for (const TensorRef& result : call.results) FLEXOR_TRY(read_tensor(result, state));
                return {};
            }
            case Step::Kind::kGrow:
                FLEXOR_TRY(read_buffer(step.from, state));
                FLEXOR_TRY(read_slot(step.kept, state));
                FLEXOR_TRY(read_slot(step.slot, state));
                if (step.output || arena[step.from]) return bad("memory that cannot grow");
                [[fallthrough]];
            case Step::Kind::kAllocate:
                FLEXOR_TRY(read_slot(step.bytes, state));
                if (step.buffer >= e.buffer_slots) return bad("an allocation names no buffer");
                if (e.sources[step.buffer].kind != BufferSource::Kind::kNone)
                    return bad("an allocation replaces an argument or weight");
                state.buffers[step.buffer] = true;
                return {};
            case Step::Kind::kFrame:
                if (step.index >= e.frames.size()) return bad("a step names no frame program");
                return program(e.frames[step.index], state);
            case Step::Kind::kCheck:
                if (step.index >= e.checks.size()) return bad("a step names no check");
                return read_check(e.checks[step.index], state, true);
            case Step::Kind::kReadInt:
            case Step::Kind::kReadFloat:
                FLEXOR_TRY(read_buffer(step.buffer, state));
                if (step.offset != kNoSlot) FLEXOR_TRY(read_slot(step.offset, state));
                if ((step.kind == Step::Kind::kReadFloat) != is_floating(step.dtype))
                    return bad("a read step has a dtype of the other kind");
                return write_slot(step.slot, state);
            case Step::Kind::kRelease:
                FLEXOR_TRY(read_buffer(step.buffer, state));
                if (e.sources[step.buffer].kind != BufferSource::Kind::kNone)
                    return bad("a release names an argument or weight");
                state.buffers[step.buffer] = false;
                return {};
            case Step::Kind::kList:
                if (step.index >= e.lists.size()) return bad("a step names no list step");
                return list_step(e.lists[step.index], state, arena);
        }
        return {};
    }

    Expected<void> block(const Block& block, Defined& state) const {
        const Executable& e = executable_;
        Defined call_frame{std::vector<bool>(e.frame_slots), state.buffers, state.lists};
        for (std::uint32_t i = 0; i < e.signature.frame_size(); ++i) call_frame.slots[i] = true;
        FLEXOR_TRY(program(block.once, call_frame));
        for (const FrameInst& inst : block.once.insts) {
            if (inst.dst < e.signature.frame_size()) return bad("the call frame is overwritten");
            state.slots[inst.dst] = true;
        }
        FLEXOR_TRY(program(block.frame, state));
        std::vector<bool> arena(e.buffer_slots);
        if (block.arena_bytes != kNoSlot) {
            FLEXOR_TRY(read_slot(block.arena_bytes, state));
        } else if (!block.arena.empty()) {
            return bad("a block plans buffers without an arena");
        }
        for (const Planned& planned : block.arena) {
            if (planned.buffer >= e.buffer_slots || e.sources[planned.buffer].kind != BufferSource::Kind::kNone)
                return bad("the plan names a buffer that it may not set");
            FLEXOR_TRY(read_slot(planned.offset, state));
            FLEXOR_TRY(read_slot(planned.bytes, state));
            arena[planned.buffer] = true;
            state.buffers[planned.buffer] = true;
        }
        for (const Step& s : block.steps) FLEXOR_TRY(step(s, state, arena));

        const Terminator& end = block.terminator;
        const std::size_t jumps =
            end.kind == Terminator::Kind::kBranch ? 2 : (end.kind == Terminator::Kind::kJump ? 1 : 0);
        if (end.jumps.size() != jumps) return bad("a terminator has the wrong number of targets");
        if (end.kind == Terminator::Kind::kBranch) FLEXOR_TRY(read_slot(end.condition, state));
        for (const Jump& jump : end.jumps) {
            if (jump.block >= e.blocks.size()) return bad("a jump names no block");
            for (const Move& move : jump.buffers) {
                FLEXOR_TRY(read_buffer(move.from, state));
                if (move.to >= e.buffer_slots || e.sources[move.to].kind != BufferSource::Kind::kNone)
                    return bad("a jump replaces an argument or weight");
                if (arena[move.from])
                    return bad("buffer " + std::to_string(move.from) + " leaves its block from the arena");
            }
            for (const ListMove& move : jump.lists) {
                FLEXOR_TRY(read_list(move.from, state));
                if (move.to >= e.list_slots) return bad("a jump names no list");
            }
            for (const SlotMove& move : jump.slots) {
                FLEXOR_TRY(read_slot(move.from, state));
                if (move.to >= e.frame_slots) return bad("a jump names no slot");
            }
        }
        if (end.kind == Terminator::Kind::kReturn) {
            for (const OutValue& value : end.values) FLEXOR_TRY(read_value(value, state, arena));
        }
        if (end.kind == Terminator::Kind::kExit) {
            if (end.exit >= e.exits.size()) return bad("a terminator names no exit");
            const Exit& exit = e.exits[end.exit];
            if (exit.locals.size() != e.signature.local_count) return bad("an exit has another number of locals");
            for (const OutValue& value : exit.locals) FLEXOR_TRY(read_value(value, state, arena));
            for (const OutValue& value : exit.stack) FLEXOR_TRY(read_value(value, state, arena));
        }
        // Arena memory ends with the block.
        for (std::size_t i = 0; i < arena.size(); ++i) {
            if (arena[i]) state.buffers[i] = false;
        }
        return {};
    }

    const Executable& executable_;
    std::uint32_t tensors_ = 0;
};

}  // namespace

Expected<void> verify(const Executable& executable) { return Verifier(executable).run(); }

}  // namespace flexor::executable
