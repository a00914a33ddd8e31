// The listing of an executable: guards, frame programs, tape, memory plan, exits.
#include "executable/executable.h"
#include "support/text.h"

namespace flexor::executable {

namespace {

std::string slot_text(Slot slot) { return slot == kNoSlot ? "-" : "s" + std::to_string(slot); }
std::string buffer_text(BufferSlot buffer) { return "b" + std::to_string(buffer); }
std::string list_text(ListSlot list) { return "l" + std::to_string(list); }

std::string inst_text(const FrameInst& inst) {
    const std::string a = slot_text(inst.a);
    const std::string b = slot_text(inst.b);
    std::string right;
    switch (inst.op) {
        case FrameOp::kConst: right = std::to_string(inst.immediate); break;
        case FrameOp::kMove: right = a; break;
        case FrameOp::kAdd: right = a + " + " + b; break;
        case FrameOp::kSub: right = a + " - " + b; break;
        case FrameOp::kMul: right = a + " * " + b; break;
        case FrameOp::kFloorDiv: right = a + " // " + b; break;
        case FrameOp::kTruncDiv: right = "trunc_div(" + a + ", " + b + ")"; break;
        case FrameOp::kMod: right = a + " % " + b; break;
        case FrameOp::kMin: right = "min(" + a + ", " + b + ")"; break;
        case FrameOp::kMax: right = "max(" + a + ", " + b + ")"; break;
        case FrameOp::kBroadcast: right = "broadcast(" + a + ", " + b + ")"; break;
        case FrameOp::kAlignUp: right = "align_up(" + a + ", " + std::to_string(inst.immediate) + ")"; break;
        case FrameOp::kRealOfInt: right = "real(" + a + ")"; break;
        case FrameOp::kRealNeg: right = "-." + a; break;
        case FrameOp::kRealAdd: right = a + " +. " + b; break;
        case FrameOp::kRealSub: right = a + " -. " + b; break;
        case FrameOp::kRealMul: right = a + " *. " + b; break;
        case FrameOp::kRealDiv: right = a + " /. " + b; break;
        case FrameOp::kRealEq: right = a + " ==. " + b; break;
        case FrameOp::kRealLt: right = a + " <. " + b; break;
        case FrameOp::kRealLe: right = a + " <=. " + b; break;
    }
    return slot_text(inst.dst) + " = " + right;
}

std::string program_text(const FrameProgram& program) { return support::join(program.insts, "; ", inst_text); }

std::string check_text(const Check& check) {
    std::string out = slot_text(check.a) + std::string(ops::spelling(check.relation)) + slot_text(check.b);
    if (check.or_one) out += " or one";
    return out;
}

std::string tensor_text(const TensorRef& tensor) {
    std::string out(dtype_name(tensor.dtype));
    out += "[" + support::join(tensor.sizes, ",", slot_text) + "] " + buffer_text(tensor.buffer);
    if (!tensor.strides.empty()) out += " strides [" + support::join(tensor.strides, ",", slot_text) + "]";
    if (tensor.offset != kNoSlot) out += " + " + slot_text(tensor.offset);
    return out;
}

std::string value_text(const OutValue& value) {
    switch (value.kind) {
        case OutValue::Kind::kUnset: return "unset";
        case OutValue::Kind::kNone: return "none";
        case OutValue::Kind::kTensor: return tensor_text(value.tensor);
        case OutValue::Kind::kInt: return "int " + slot_text(value.slot);
        case OutValue::Kind::kBool: return "bool " + slot_text(value.slot);
        case OutValue::Kind::kFloat: return "float " + slot_text(value.slot);
        case OutValue::Kind::kString: return support::quote(value.text);
        case OutValue::Kind::kList: return "[" + support::join(value.elements, ", ", value_text) + "]";
        case OutValue::Kind::kFunction: return "function " + value.text;
        case OutValue::Kind::kArgument: return "argument tensor " + std::to_string(value.argument);
        case OutValue::Kind::kOpaque: return "live value " + std::to_string(value.argument);
        case OutValue::Kind::kRunList: return list_text(value.list);
    }
    return "?";
}

std::string jump_text(const Jump& jump) {
    std::string out = "block " + std::to_string(jump.block);
    std::vector<std::string> moves;
    for (const Move& move : jump.buffers) moves.push_back(buffer_text(move.to) + " = " + buffer_text(move.from));
    for (const ListMove& move : jump.lists) moves.push_back(list_text(move.to) + " = " + list_text(move.from));
    for (const SlotMove& move : jump.slots) moves.push_back(slot_text(move.to) + " = " + slot_text(move.from));
    if (!moves.empty()) out += " (" + support::join(moves, ", ") + ")";
    return out;
}

std::string list_step_text(const ListStep& step) {
    using Kind = ListStep::Kind;
    const std::string list = list_text(step.list);
    const std::string at = list + "[" + slot_text(step.at) + "]";
    const std::string axis = " axis " + std::to_string(step.axis);
    const std::string elements = support::join(step.elements, ", ", tensor_text);
    switch (step.kind) {
        case Kind::kArgument:
            return "list     " + list_text(step.result) + " = live value " + std::to_string(step.argument);
        case Kind::kBuild: return "list     " + list_text(step.result) + " = [" + elements + "]";
        case Kind::kAppend: return "list     " + list_text(step.result) + " = " + list + " + [" + elements + "]";
        case Kind::kGet: return "element  " + buffer_text(step.buffer) + " = " + at;
        case Kind::kSize: return "query    " + slot_text(step.slot) + " = size of " + at + axis;
        case Kind::kStride: return "query    " + slot_text(step.slot) + " = stride of " + at + axis;
        case Kind::kTotal: return "query    " + slot_text(step.slot) + " = total of " + list + axis;
        case Kind::kAlike: return "query    " + slot_text(step.slot) + " = alike but for" + axis + ", " + list;
        case Kind::kJoin:
            return std::string(step.new_axis ? "stack    " : "join     ") + tensor_text(step.joined) + " = " + list +
                   axis;
    }
    return "?";
}

std::string operand_text(const CallOperand& operand) {
    switch (operand.kind) {
        case CallOperand::Kind::kNone: return "none";
        case CallOperand::Kind::kTensor: return tensor_text(operand.tensor);
        case CallOperand::Kind::kBool: return "bool " + slot_text(operand.slot);
        case CallOperand::Kind::kInt: return "int " + slot_text(operand.slot);
        case CallOperand::Kind::kFloat: return "float " + slot_text(operand.slot);
    }
    return "?";
}

std::string call_text(const Call& call) {
    return std::string(call.op->name.value) + " (" + support::join(call.operands, ", ", operand_text) + ")";
}

std::string step_text(const Executable& executable, const Step& step) {
    switch (step.kind) {
        case Step::Kind::kLaunch: {
            const Launch& launch = executable.launches[step.index];
            std::string out = "launch   " + executable.kernels[launch.kernel].ir.name + " (" +
                              support::join(launch.buffers, ", ", buffer_text);
            if (!launch.params.empty()) out += "; " + support::join(launch.params, ", ", slot_text);
            out += ")";
            if (launch.fault != 0) out += " may fault";
            if (launch.pack != 0) out += " packs once";
            if (step.unless_grown) out += " unless grown";
            if (step.once) out += " once";
            return out;
        }
        case Step::Kind::kCallSizes: {
            const Call& call = executable.calls[step.index];
            return "sizes    " + support::join(call.sizes, ", ", slot_text) + " = " + call_text(call);
        }
        case Step::Kind::kCall: {
            const Call& call = executable.calls[step.index];
            return "call     " + support::join(call.results, ", ", tensor_text) + " = " + call_text(call) +
                   (call.fallback.empty() ? "" : "   ; " + call.fallback);
        }
        case Step::Kind::kAllocate:
            return (step.output ? "output   " : "allocate ") + buffer_text(step.buffer) + " " + slot_text(step.bytes) +
                   " bytes" + (step.once ? " once" : "");
        case Step::Kind::kGrow:
            return "grow     " + buffer_text(step.buffer) + " " + slot_text(step.bytes) + " bytes from " +
                   buffer_text(step.from) + " of " + slot_text(step.kept) + " if " + slot_text(step.slot) + " is 1";
        case Step::Kind::kFrame: return "frame    " + program_text(executable.frames[step.index]);
        case Step::Kind::kCheck: {
            const Check& check = executable.checks[step.index];
            const Failure& failure = executable.failures[check.diagnostic];
            std::string out = (step.once ? "once     " : "check    ") + check_text(check);
            if (!failure.op.empty()) out += "   ; " + failure.op + " " + failure.constraint;
            if (!failure.expected.empty()) out += ": " + failure.expected;
            return out;
        }
        case Step::Kind::kReadInt:
            return "read_int " + slot_text(step.slot) + " = " + std::string(dtype_name(step.dtype)) + " " +
                   buffer_text(step.buffer) + (step.offset == kNoSlot ? "" : " + " + slot_text(step.offset));
        case Step::Kind::kReadFloat:
            return "read_float " + slot_text(step.slot) + " = " + std::string(dtype_name(step.dtype)) + " " +
                   buffer_text(step.buffer) + (step.offset == kNoSlot ? "" : " + " + slot_text(step.offset));
        case Step::Kind::kRelease: return "release  " + buffer_text(step.buffer);
        case Step::Kind::kList: return list_step_text(executable.lists[step.index]);
    }
    return "?";
}

}  // namespace

std::string print(const Executable& executable) {
    std::string out = "executable " + executable.function + "@" + std::to_string(executable.pc) + ", " +
                      std::to_string(executable.frame_slots) + " slots, " + std::to_string(executable.buffer_slots) +
                      " buffers\n";
    out += "signature  " + to_string(executable.signature) + "\n";
    out += "guards     " +
           (executable.guard_texts.empty() ? std::string("true") : support::join(executable.guard_texts, " and ")) +
           "\n";
    if (!executable.guards.empty()) {
        if (!executable.guard_frame.insts.empty()) out += "  frame    " + program_text(executable.guard_frame) + "\n";
        out += "  holds    " + support::join(executable.guards, ", ", check_text) + "\n";
    }
    for (std::size_t i = 0; i < executable.sources.size(); ++i) {
        const BufferSource& source = executable.sources[i];
        std::string from;
        switch (source.kind) {
            case BufferSource::Kind::kNone: continue;
            case BufferSource::Kind::kArgument: from = "argument tensor " + std::to_string(source.index); break;
            case BufferSource::Kind::kWeight: from = "weight " + std::to_string(source.index); break;
            case BufferSource::Kind::kPackedWeight: {
                const PackedWeight& packed = executable.packed[source.index];
                from = "packed weight " + std::to_string(packed.weight) + " k=" + std::to_string(packed.k) +
                       " n=" + std::to_string(packed.n);
                break;
            }
        }
        out += "buffer     " + buffer_text(static_cast<BufferSlot>(i)) + " = " + from + "\n";
    }
    for (std::size_t i = 0; i < executable.blocks.size(); ++i) {
        const Block& block = executable.blocks[i];
        out += "block " + std::to_string(i) + (block.loop_head ? " (loop head)" : "") + "\n";
        if (!block.once.insts.empty()) out += "  once     " + program_text(block.once) + "\n";
        if (!block.frame.insts.empty()) out += "  frame    " + program_text(block.frame) + "\n";
        if (block.arena_bytes != kNoSlot) {
            out += "  arena    " + slot_text(block.arena_bytes) + " bytes";
            for (const Planned& planned : block.arena) {
                out += ", " + buffer_text(planned.buffer) + " at " + slot_text(planned.offset) + " steps " +
                       std::to_string(planned.first_step) + ".." + std::to_string(planned.last_step);
            }
            out += "\n";
        }
        for (const Step& step : block.steps) out += "  " + step_text(executable, step) + "\n";
        const Terminator& end = block.terminator;
        switch (end.kind) {
            case Terminator::Kind::kJump: out += "  jump     " + jump_text(end.jumps[0]) + "\n"; break;
            case Terminator::Kind::kBranch:
                out += "  branch   " + slot_text(end.condition) + (end.float_condition ? " (float)" : "") + " ? " +
                       jump_text(end.jumps[0]) + " : " + jump_text(end.jumps[1]) + "\n";
                break;
            case Terminator::Kind::kReturn:
                out += "  return   " + support::join(end.values, ", ", value_text) + "\n";
                break;
            case Terminator::Kind::kExit: out += "  exit     " + std::to_string(end.exit) + "\n"; break;
        }
    }
    for (std::size_t i = 0; i < executable.exits.size(); ++i) {
        const Exit& exit = executable.exits[i];
        out += "exit " + std::to_string(i) + " at pc " + std::to_string(exit.pc);
        if (!exit.reason.empty()) out += " (" + exit.reason + ")";
        out += ": locals [" + support::join(exit.locals, ", ", value_text) + "] stack [" +
               support::join(exit.stack, ", ", value_text) + "]\n";
    }
    if (executable.exits.empty()) out += "exits      none\n";
    return out;
}

}  // namespace flexor::executable
