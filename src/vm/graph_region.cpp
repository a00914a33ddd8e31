#include "vm/graph_region.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "loopir/slots.h"
#include "support/diagnostic.h"

namespace flexor::vm {

using executable::Block;
using executable::Executable;
using executable::FrameInst;
using executable::FrameOp;
using executable::Slot;
using executable::Step;
using runtime::cuda::GraphNumber;

namespace {

constexpr std::int64_t kStep = 32;
constexpr std::int64_t kMostDivisor = std::int64_t{1} << 30;

// Slots of sizes of tensors, among those that are needed. `next` is the slot of the value's first number.
void add_sizes(const executable::LiveSignature& value, Slot& next, const std::vector<bool>& needed,
               std::vector<Slot>& out) {
    const Slot first = next;
    if (value.kind == executable::LiveKind::kList) {
        for (const executable::LiveSignature& element : value.elements) add_sizes(element, next, needed, out);
        return;
    }
    next += executable::frame_size(value);
    if (value.kind != executable::LiveKind::kTensor) return;
    for (Slot slot = first; slot < first + value.rank; ++slot) {
        if (needed[slot]) out.push_back(slot);
    }
}

// Of the region's only block, in the order in which they run.
std::vector<const executable::FrameProgram*> programs(const Executable& e) {
    const Block& block = e.blocks[0];
    std::vector<const executable::FrameProgram*> out{&block.once, &block.frame};
    for (const Step& step : block.steps) {
        if (step.kind == Step::Kind::kFrame) out.push_back(&e.frames[step.index]);
    }
    return out;
}

std::int64_t magnitude(std::int64_t value) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return value < 0 ? -std::max(value, -kMost) : value;
}

// Whether a launch writes to what the caller holds.
bool writes_arguments(const Executable& e) {
    for (const executable::Launch& launch : e.launches) {
        const loopir::Kernel& kernel = e.kernels[launch.kernel].ir;
        for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
            if (kernel.buffers[b].written &&
                e.sources[launch.buffers[b]].kind == executable::BufferSource::Kind::kArgument)
                return true;
        }
    }
    return false;
}

std::int64_t divisor_of(const FrameInst& inst, const std::vector<std::int64_t>& divisors) {
    const std::int64_t a = divisors[inst.a], b = divisors[inst.b];
    switch (inst.op) {
        case FrameOp::kConst:
            return inst.immediate == 0 ? kMostDivisor : std::min(magnitude(inst.immediate), kMostDivisor);
        case FrameOp::kMove: return a;
        case FrameOp::kMul: return a > kMostDivisor / b ? std::max(a, b) : a * b;
        case FrameOp::kAdd:
        case FrameOp::kSub:
        case FrameOp::kMin:
        case FrameOp::kMax:
        case FrameOp::kBroadcast: return std::gcd(a, b);
        case FrameOp::kAlignUp: return std::min(inst.immediate, kMostDivisor);
        default: return 1;
    }
}

}  // namespace

std::int64_t bucket_end(std::int64_t n) {
    if (n < 0) return n == std::numeric_limits<std::int64_t>::min() ? n : -bucket_end(-n);
    if (n > std::numeric_limits<std::int64_t>::max() / 2) return n;
    const auto unsigned_n = static_cast<std::uint64_t>(n);
    if (n <= kStep) return n == 0 ? 0 : static_cast<std::int64_t>(std::bit_ceil(unsigned_n));
    const std::int64_t step = std::max(kStep, static_cast<std::int64_t>(std::bit_floor(unsigned_n)) / 8);
    return (n + step - 1) / step * step;
}

std::string GraphRegion::refusal(const Executable& e, std::size_t least) {
    if (e.blocks.size() != 1) return "the region branches";
    if (e.launches.size() < least) return "too few launches";
    std::vector<bool> set(e.frame_slots, false), made(e.buffer_slots, false);
    std::fill_n(set.begin(), e.signature.frame_size(), true);
    for (const executable::FrameProgram* program : programs(e)) {
        for (const FrameInst& inst : program->insts) {
            if (set[inst.dst]) return "a number is set twice";
            set[inst.dst] = true;
        }
    }
    bool launched = false;
    for (const Step& step : e.blocks[0].steps) {
        switch (step.kind) {
            case Step::Kind::kLaunch:
                if (step.unless_grown) return "memory grows";
                launched = true;
                break;
            case Step::Kind::kAllocate:
                if (made[step.buffer]) return "a buffer is made twice";
                made[step.buffer] = true;
                break;
            case Step::Kind::kFrame: break;
            case Step::Kind::kCheck:
                // What was written before is seen where the check fails.
                if (launched && writes_arguments(e)) return "a check behind a write";
                break;
            case Step::Kind::kRelease: break;
            case Step::Kind::kCall:
            case Step::Kind::kCallSizes: return std::string(e.calls[step.index].op->name.value) + " runs on the host";
            case Step::Kind::kReadInt:
            case Step::Kind::kReadFloat: return "the host reads an element";
            case Step::Kind::kGrow: return "memory grows";
            case Step::Kind::kList: return "lists of the run";
        }
    }
    return "";
}

GraphRegion::GraphRegion(std::shared_ptr<const Executable> executable) : executable_(std::move(executable)) {
    const Executable& e = *executable_;
    fixed_.assign(e.frame_slots + 1, false);
    divisors_.assign(e.frame_slots + 1, 1);
    const auto pass = [&](const FrameInst& inst) {
        const bool constant = inst.op == FrameOp::kConst;
        fixed_[inst.dst] = constant || (fixed_[inst.a] && (executable::is_unary(inst.op) || fixed_[inst.b]));
        divisors_[inst.dst] = divisor_of(inst, divisors_);
    };
    for (const FrameInst& inst : e.guard_frame.insts) pass(inst);
    // A guard that holds a number to another one.
    for (const executable::Check& guard : e.guards) {
        if (guard.relation != ops::Relation::kEq || guard.or_one) continue;
        for (const auto& [number, known] : {std::pair{guard.a, guard.b}, std::pair{guard.b, guard.a}}) {
            if (fixed_[number] || !fixed_[known]) continue;
            fixed_[number] = true;
            divisors_[number] = divisors_[known];
        }
    }
    const auto all = programs(e);
    for (const executable::FrameProgram* program : all) {
        for (const FrameInst& inst : program->insts) pass(inst);
    }
    // Backwards from what graphs take for granted.
    std::vector<bool> needed(e.frame_slots + 1, false);
    for (const executable::Launch& launch : e.launches) {
        const std::vector<bool> places = loopir::place_slots(e.kernels[launch.kernel].ir);
        for (std::size_t i = 0; i < launch.params.size(); ++i) {
            if (places[i]) needed[launch.params[i]] = true;
        }
    }
    for (const executable::Planned& planned : e.blocks[0].arena) needed[planned.bytes] = needed[planned.offset] = true;
    for (auto program = all.rbegin(); program != all.rend(); ++program) {
        for (auto inst = (*program)->insts.rbegin(); inst != (*program)->insts.rend(); ++inst) {
            if (!needed[inst->dst] || inst->op == FrameOp::kConst) continue;
            needed[inst->a] = true;
            if (!executable::is_unary(inst->op)) needed[inst->b] = true;
        }
    }
    for (Slot slot = 0; slot < e.signature.frame_size(); ++slot) {
        if (needed[slot] && !fixed_[slot]) deciding_.push_back(slot);
    }
    Slot next = 0;
    for (const executable::LiveSignature& value : e.signature.values) add_sizes(value, next, needed, sizes_);
}

bool GraphRegion::run(std::vector<std::int64_t>& frame) const {
    for (const executable::FrameProgram* program : programs(*executable_)) {
        if (!executable::run_frame(*program, frame.data(), true)) return false;
    }
    return true;
}

Expected<GraphRegion::Frames> GraphRegion::frames(std::vector<std::int64_t> call_frame) const {
    Frames out;
    out.now = std::move(call_frame);
    out.now.resize(executable_->frame_slots + 1, 0);
    out.most = out.now;
    for (const Slot slot : deciding_) out.most[slot] = bucket_end(out.most[slot]);
    if (!run(out.now) || !run(out.most))
        return Diagnostic(DiagnosticId::kSizeOverflow).operand("the largest sizes of a graph");
    return out;
}

GraphNumber GraphRegion::number(Slot slot, const Frames& frames, runtime::cuda::GraphFrame& frame) const {
    const std::int64_t now = frames.now[slot], most = frames.most[slot];
    if (fixed_[slot]) return GraphNumber::of(now);
    GraphNumber out;
    out.word = frame.slot(slot);
    out.now = now;
    out.most = magnitude(most);
    // Not every number grows with the sizes.
    if (magnitude(now) > out.most)
        out.most = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(magnitude(now))));
    out.divisor = divisors_[slot];
    return out;
}

}  // namespace flexor::vm
