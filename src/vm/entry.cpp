#include "vm/entry.h"

#include <algorithm>

namespace flexor::vm {

using executable::Block;
using executable::BufferSource;
using executable::Executable;
using executable::OutValue;
using executable::Step;
using executable::TensorRef;

namespace {

const TensorRef* find_result(const std::vector<OutValue>& values, executable::BufferSlot buffer) {
    for (const OutValue& value : values) {
        if (value.kind == OutValue::Kind::kTensor && value.tensor.buffer == buffer &&
            value.tensor.offset == executable::kNoSlot)
            return &value.tensor;
        if (const TensorRef* inner = find_result(value.elements, buffer)) return inner;
    }
    return nullptr;
}

// By slot: the step of the block that sets it first, or 0 where none does.
std::vector<std::size_t> setting_steps(const Executable& e, const Block& block) {
    std::vector<std::size_t> out(e.frame_slots + 1, 0);
    for (std::size_t i = block.steps.size(); i-- > 0;) {
        const Step& step = block.steps[i];
        if (step.kind == Step::Kind::kReadInt || step.kind == Step::Kind::kReadFloat) out[step.slot] = i;
        if (step.kind == Step::Kind::kCallSizes) {
            for (const executable::Slot slot : e.calls[step.index].sizes) out[slot] = i;
        }
        if (step.kind == Step::Kind::kFrame) {
            for (const executable::FrameInst& inst : e.frames[step.index].insts) out[inst.dst] = i;
        }
    }
    return out;
}

// Whether the geometry is known before the step.
bool known_before(const TensorRef& ref, std::size_t step, const std::vector<std::size_t>& setting) {
    const auto known = [&](executable::Slot slot) { return setting[slot] <= step; };
    return std::ranges::all_of(ref.sizes, known) && std::ranges::all_of(ref.strides, known);
}

}  // namespace

void Entry::prepare(const bytecode::Module& module) {
    const Executable& e = *executable;
    buffers.assign(e.buffer_slots, nullptr);
    owners.assign(e.buffer_slots, kNoOwner);
    arguments.clear();
    std::vector<bool> argument_memory(e.buffer_slots, false);
    for (std::uint32_t slot = 0; slot < e.sources.size(); ++slot) {
        const BufferSource& source = e.sources[slot];
        switch (source.kind) {
            case BufferSource::Kind::kNone: break;
            case BufferSource::Kind::kArgument:
                arguments.push_back({slot, source.index});
                owners[slot] = source_owner(slot);
                argument_memory[slot] = true;
                break;
            case BufferSource::Kind::kWeight:
                buffers[slot] =
                    (e.device_weights.empty() ? module.weights[source.index].tensor : e.device_weights[source.index])
                        .data();
                owners[slot] = source_owner(slot);
                break;
            case BufferSource::Kind::kPackedWeight:
                buffers[slot] = const_cast<void*>(e.packed[source.index].data.get());
                break;
        }
    }
    // A slot that a jump sets, or that names an element of a list, may hold an argument.
    for (const executable::ListStep& step : e.lists) {
        if (step.kind == executable::ListStep::Kind::kGet) argument_memory[step.buffer] = true;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const Block& block : e.blocks) {
            for (const executable::Jump& jump : block.terminator.jumps) {
                max_moves = std::max({max_moves, static_cast<std::uint32_t>(jump.buffers.size()),
                                      static_cast<std::uint32_t>(jump.slots.size())});
                for (const executable::Move& move : jump.buffers) {
                    if (argument_memory[move.from] && !argument_memory[move.to])
                        argument_memory[move.to] = changed = true;
                }
            }
        }
    }
    writes_source.assign(e.launches.size(), false);
    for (std::size_t i = 0; i < e.launches.size(); ++i) {
        const executable::Launch& launch = e.launches[i];
        const loopir::Kernel& kernel = e.kernels[launch.kernel].ir;
        for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
            if (kernel.buffers[b].written && argument_memory[launch.buffers[b]]) writes_source[i] = true;
        }
        max_params = std::max(max_params, static_cast<std::uint32_t>(launch.params.size()));
        max_buffers = std::max(max_buffers, static_cast<std::uint32_t>(launch.buffers.size()));
    }
    if (e.signature.device.kind != DeviceKind::kCpu) prefetched.reset(new std::atomic<bool>[e.blocks.size()] {});
    outputs.clear();
    for (const Block& block : e.blocks) {
        if (block.arena_bytes != executable::kNoSlot) uses_arena = true;
        std::vector<const TensorRef*>& refs = outputs.emplace_back(block.steps.size(), nullptr);
        const executable::Terminator& end = block.terminator;
        const std::vector<std::size_t> setting = setting_steps(e, block);
        for (std::size_t i = 0; i < block.steps.size(); ++i) {
            const Step& step = block.steps[i];
            if (step.kind != Step::Kind::kAllocate || !step.output) continue;
            if (end.kind == executable::Terminator::Kind::kReturn) refs[i] = find_result(end.values, step.buffer);
            if (end.kind == executable::Terminator::Kind::kExit) {
                refs[i] = find_result(e.exits[end.exit].stack, step.buffer);
                if (refs[i] == nullptr) refs[i] = find_result(e.exits[end.exit].locals, step.buffer);
            }
            if (refs[i] != nullptr && !known_before(*refs[i], i, setting)) refs[i] = nullptr;
        }
    }
}

}  // namespace flexor::vm
