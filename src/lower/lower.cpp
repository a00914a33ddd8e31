#include "lower/lowerer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "lower/contraction.h"
#include "lower/frame_slots.h"
#include "lower/kernel_builder.h"
#include "lower/loops.h"
#include "lower/plan.h"
#include "specialised/visit.h"
#include "support/diagnostic.h"

namespace flexor::lower {

FrameProgram& Lowerer::frame() {
    if (!after_read_) return block().frame;
    if (!late_frame_) {
        late_frame_ = exe_.frames.size();
        exe_.frames.emplace_back();
        step(Step::Kind::kFrame).index = static_cast<std::uint32_t>(*late_frame_);
    }
    return exe_.frames[*late_frame_];
}

BufferSlot Lowerer::buffer_slot(Reg root) {
    const auto [it, inserted] = buffers_.try_emplace(root, exe_.buffer_slots);
    if (!inserted) return it->second;
    ++exe_.buffer_slots;
    BufferSource from;
    const Inst* producer = producers_[root];
    if (producer != nullptr && producer->kind == InstKind::kArgument) {
        from = {BufferSource::Kind::kArgument, producer->index};
    } else if (producer != nullptr && producer->kind == InstKind::kWeight) {
        from = {BufferSource::Kind::kWeight, producer->index};
    }
    exe_.sources.resize(exe_.buffer_slots);
    exe_.sources[it->second] = from;
    return it->second;
}

Slot Lowerer::scalar_slot(Reg reg) {
    const auto found = scalar_slots_.find(reg);
    if (found != scalar_slots_.end()) return found->second;
    const Inst* producer = producers_[reg];
    if (producer != nullptr && producer->kind == InstKind::kConst) {
        // Constants belong to the block that computes them, as other expressions do.
        const auto* real = std::get_if<double>(&producer->constant->value);
        return constant(std::bit_cast<std::int64_t>(real != nullptr ? *real : 0.0));
    }
    const Slot slot = producer != nullptr && producer->kind == InstKind::kArgument ? producer->index : slots_.fresh();
    scalar_slots_[reg] = slot;
    return slot;
}

ListSlot Lowerer::list_slot(Reg reg) {
    const auto [it, inserted] = list_slots_.try_emplace(reg, exe_.list_slots);
    if (inserted) ++exe_.list_slots;
    return it->second;
}

TensorRef Lowerer::tensor_ref(Reg reg) {
    TensorRef ref;
    const types::TensorType& t = type(reg);
    ref.buffer = buffer_slot(program_.registers[reg].root);
    ref.dtype = t.dtype;
    ref.is_view = program_.registers[reg].root != reg;
    for (const Dim& d : t.sizes) ref.sizes.push_back(value(d));
    for (const Dim& d : t.strides) ref.strides.push_back(value(d));
    if (!t.offset.is_constant(0)) ref.offset = value(t.offset);
    return ref;
}

std::vector<TensorRef> Lowerer::written_tensors(const Unit& unit) {
    std::vector<TensorRef> targets;
    if (exe_.signature.device.kind != DeviceKind::kCpu) return targets;
    for (const Member& m : unit.members) {
        const Inst& inst = source().insts[m.inst];
        if (is_write(inst)) targets.push_back(tensor_ref(inst.operands[0]));
    }
    return targets;
}

OutValue Lowerer::out_value(const LiveValue& live) {
    OutValue out;
    switch (live.kind) {
        case LiveValue::Kind::kUnset: out.kind = OutValue::Kind::kUnset; break;
        case LiveValue::Kind::kNone: out.kind = OutValue::Kind::kNone; break;
        case LiveValue::Kind::kReg: {
            const specialised::Register& reg = program_.registers[live.reg];
            if (reg.type.strength == types::Strength::kScalar) {
                out.kind = OutValue::Kind::kFloat;
                out.slot = scalar_slot(live.reg);
                break;
            }
            const Inst* producer = producers_[reg.root];
            if (reg.root == live.reg && producer != nullptr && producer->kind == InstKind::kArgument) {
                out.kind = OutValue::Kind::kArgument;
                out.argument = producer->index;
                break;
            }
            out.kind = OutValue::Kind::kTensor;
            out.tensor = tensor_ref(live.reg);
            break;
        }
        case LiveValue::Kind::kInt:
        case LiveValue::Kind::kBool:
            out.kind = live.kind == LiveValue::Kind::kInt ? OutValue::Kind::kInt : OutValue::Kind::kBool;
            out.slot = value(live.integer);
            break;
        case LiveValue::Kind::kFloat:
            out.kind = OutValue::Kind::kFloat;
            out.slot = constant(std::bit_cast<std::int64_t>(live.real));
            break;
        case LiveValue::Kind::kString:
        case LiveValue::Kind::kFunction:
            out.kind = live.kind == LiveValue::Kind::kString ? OutValue::Kind::kString : OutValue::Kind::kFunction;
            out.text = live.text;
            break;
        case LiveValue::Kind::kList:
            out.kind = OutValue::Kind::kList;
            for (const LiveValue& e : live.elements) out.elements.push_back(out_value(e));
            break;
        case LiveValue::Kind::kOpaque:
            out.kind = OutValue::Kind::kOpaque;
            out.argument = live.reg;
            break;
        case LiveValue::Kind::kRunList:
            out.kind = OutValue::Kind::kRunList;
            out.list = list_slot(live.reg);
            break;
    }
    return out;
}

std::vector<types::OpSite> Lowerer::sites_of(const Unit& unit) const {
    std::vector<types::OpSite> sites;
    for (const Member& m : unit.members) {
        const Inst& inst = source().insts[m.inst];
        if (inst.kind == InstKind::kOp) sites.push_back(inst.site);
    }
    if (unit.prologue) {
        for (const types::OpSite& site : sites_of(units_.units[*unit.prologue])) sites.push_back(site);
    }
    return sites;
}

// Decides for every stored root of the block whether it lies in the arena or is allocated.
void Lowerer::place_buffers() {
    std::map<Reg, std::pair<std::size_t, std::size_t>> life;  // positions in the order
    const auto use = [&](Reg reg, std::size_t at) {
        if (reg == kNoReg) return;
        const Reg root = program_.registers[reg].root;
        if (!units_.stored[root]) return;
        const auto [it, inserted] = life.try_emplace(root, at, at);
        if (!inserted) it->second = {std::min(it->second.first, at), std::max(it->second.second, at)};
    };
    const auto use_unit = [&](const auto& self, const Unit& unit, std::size_t at) -> void {
        for (const Member& m : unit.members) {
            const Inst& inst = source().insts[m.inst];
            for (Reg r : inst.operands) use(r, at);
            for (Reg r : inst.results) use(r, at);
        }
        if (unit.prologue) self(self, units_.units[*unit.prologue], at);
    };
    for (std::size_t at = 0; at < units_.order.size(); ++at) use_unit(use_unit, units_.units[units_.order[at]], at);

    // What leaves the block.
    std::set<Reg> leaving;
    const auto leave = [&](Reg reg, bool region) {
        const Reg root = program_.registers[reg].root;
        if (!units_.stored[root]) return;
        leaving.insert(root);
        leaves_region_[root] = leaves_region_[root] || region;
    };
    const auto leave_region = [&](const LiveValue& value) {
        specialised::for_each_reg(value, [&](Reg reg) {
            if (program_.registers[reg].type.strength != types::Strength::kScalar) leave(reg, true);
        });
    };
    for (const specialised::Block& b : program_.blocks) {
        const bool own = &b == &source();
        for (const Inst& inst : b.insts) {
            // What is put into a list outlives the block.
            if (own && inst.kind != InstKind::kListOf && inst.kind != InstKind::kListAppend) continue;
            for (Reg r : inst.operands) {
                if (r != kNoReg) leave(r, false);
            }
        }
        if (!own && b.terminator.condition.reg != kNoReg) leave(b.terminator.condition.reg, false);
        for (const auto& target : b.terminator.targets) {
            for (Reg r : target.args) leave(r, false);
        }
        for (const LiveValue& v : b.terminator.values) leave_region(v);
    }
    for (const auto& exit : program_.exits) {
        for (const LiveValue& v : exit.locals) leave_region(v);
        for (const LiveValue& v : exit.stack) leave_region(v);
    }
    if (source().terminator.condition.reg != kNoReg) {
        // Read at the very end of the block.
        const Reg reg = source().terminator.condition.reg;
        if (program_.registers[reg].type.strength != types::Strength::kScalar) use(reg, units_.order.size());
    }

    // What is made at the first pass is there at the next.
    for (std::size_t u : units_.order) {
        if (!is_once(units_.units[u])) continue;
        for (const Member& m : units_.units[u].members) {
            for (Reg r : source().insts[m.inst].results) leave(r, false);
        }
    }

    allocate_before_.clear();
    std::vector<PlanItem> items;
    std::vector<Reg> item_roots;
    for (const auto& [root, span] : life) {
        const types::TensorType& t = type(root);
        const Dim bytes = program_.env.simplify(t.numel() * Dim(static_cast<std::int64_t>(dtype_size(t.dtype))));
        if (leaving.count(root) != 0 || depends_on_reads(bytes)) {
            allocate_before_[root] = span.first;
            continue;
        }
        items.push_back({bytes, {span.first, span.second}});
        item_roots.push_back(root);
    }
    if (items.empty()) return;
    const Plan plan = plan_arena(items, program_.env);
    // The environment does not know the symbols of the plan: nothing of it is simplified.
    const auto planned_value = [&](const Dim& d) { return slots_.value(d, frame()); };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const PlanStep& step = plan.steps[i];
        Slot slot = planned_value(step.of[0]);
        if (step.kind == PlanStep::Kind::kAlignUp)
            slot = slots_.emit(FrameOp::kAlignUp, slot, slot, kArenaAlignment, frame());
        for (std::size_t k = 1; k < step.of.size(); ++k)
            slot = slots_.emit(FrameOp::kMax, slot, planned_value(step.of[k]), 0, frame());
        slots_.bind_symbol(static_cast<types::SymbolId>(program_.env.symbol_count() + i), slot);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        executable::Planned planned;
        planned.buffer = buffer_slot(item_roots[i]);
        planned.bytes = value(items[i].bytes);
        planned.offset = planned_value(plan.offsets[i]);
        planned.first_step = static_cast<std::uint32_t>(items[i].life.first);
        planned.last_step = static_cast<std::uint32_t>(items[i].life.last);
        block().arena.push_back(planned);
    }
    block().arena_bytes = planned_value(plan.total);
}

std::string Lowerer::kernel_name(const Unit& unit) const {
    constexpr std::size_t kMaxOps = 6;
    std::string name = program_.function + ":" + std::to_string(source().insts[unit.members[0].inst].line) + ":";
    std::size_t count = 0;
    const auto append = [&](const Unit& u) {
        for (const Member& m : u.members) {
            if (count == kMaxOps) name += "_etc";
            if (count++ >= kMaxOps) continue;
            if (name.back() != ':') name += "_";
            name += source().insts[m.inst].op->name.value;
        }
    };
    if (unit.prologue) append(units_.units[*unit.prologue]);
    append(unit);
    return name;
}

Expected<void> Lowerer::launch(KernelBuilder& builder, const Inst& inst) {
    loopir::Kernel& kernel = builder.kernel;
    builder.finish();
    executable::Launch launch;
    for (std::size_t i = 0; i < builder.roots.size(); ++i) {
        launch.buffers.push_back(builder.roots[i] == kNoReg ? 0 : buffer_slot(builder.roots[i]));
    }
    for (const Param& p : builder.params) launch.params.push_back(p.dim ? value(*p.dim) : scalar_slot(p.scalar));
    std::uint32_t index = 0;
    for (; index < exe_.kernels.size(); ++index) {
        if (loopir::structurally_equal(exe_.kernels[index].ir, kernel)) break;
    }
    if (index == exe_.kernels.size()) {
        executable::KernelSlot slot;
        slot.ir = kernel;
        exe_.kernels.push_back(std::move(slot));
    }
    launch.kernel = index;
    const auto gathers = [](const Body& body) {
        return std::any_of(body.accesses.begin(), body.accesses.end(),
                           [](const Access& a) { return !a.gathers.empty(); });
    };
    const bool prologue_faults =
        kernel.contraction && kernel.contraction->prologue && loopir::may_fault(*kernel.contraction->prologue);
    if (loopir::may_fault(kernel.body) || prologue_faults) {
        const bool gathered = gathers(kernel.body) || (prologue_faults && gathers(*kernel.contraction->prologue));
        launch.fault =
            failure(gathered ? DiagnosticId::kElementIndexOutOfRange : DiagnosticId::kDivisionByZero, inst, 0, "") + 1;
    }
    step(Step::Kind::kLaunch).index = static_cast<std::uint32_t>(exe_.launches.size());
    exe_.launches.push_back(std::move(launch));
    return {};
}

Expected<void> Lowerer::lower_unit(const Unit& unit, std::size_t position) {
    const Inst& first = source().insts[unit.members[0].inst];
    if (unit.kind == UnitKind::kCheck) return lower_check(first), Expected<void>{};
    if (unit.kind == UnitKind::kRead) {
        first.kind == InstKind::kListQuery ? lower_list(first) : lower_read(first);
        return {};
    }
    if (unit.kind == UnitKind::kScalar) return lower_real(first), Expected<void>{};
    if (unit.kind == UnitKind::kCall) begin_call(first);

    for (const auto& [root, at] : allocate_before_) {
        if (at != position) continue;
        const types::TensorType& t = type(root);
        const Slot bytes = value(t.numel() * Dim(static_cast<std::int64_t>(dtype_size(t.dtype))));
        const BufferSlot buffer = buffer_slot(root);
        Step s;
        s.kind = Step::Kind::kAllocate;
        s.buffer = buffer;
        s.bytes = bytes;
        s.dtype = t.dtype;
        s.output = leaves_region_[root];
        if (unit.kind == UnitKind::kConcat && !s.output && loops_.may_grow(block_, first)) {
            const types::TensorType& old = type(first.operands[0]);
            Dim outer = 1;
            for (std::size_t a = 0; a < concat_axis(first); ++a) outer = outer * old.sizes[a];
            s.kind = Step::Kind::kGrow;
            s.from = buffer_slot(first.operands[0]);
            s.kept = value(old.numel() * Dim(static_cast<std::int64_t>(dtype_size(old.dtype))));
            s.slot = value(outer);
        }
        block().steps.push_back(s);
    }

    if (unit.kind == UnitKind::kCall) return finish_call(first), Expected<void>{};
    if (unit.kind == UnitKind::kList) return lower_list(first), Expected<void>{};

    KernelBuilder builder(program_, source(), units_, *grouper_, producers_);
    builder.kernel.name = kernel_name(unit);
    switch (unit.kind) {
        case UnitKind::kRow: {
            builder.kernel.kind = loopir::KernelKind::kRow;
            builder.kernel.body = builder.row_body(unit, kNoReg);
            builder.collapse(builder.kernel.body);
            std::vector<TensorRef> writes = written_tensors(unit);
            FLEXOR_TRY(launch(builder, first));
            exe_.launches.back().writes = std::move(writes);
            return {};
        }
        case UnitKind::kContraction: {
            auto packed = build_contraction(builder, program_, source(), units_, unit, producers_);
            if (!packed) return std::move(packed).error();
            FLEXOR_TRY(launch(builder, first));
            const loopir::Contraction& c = *builder.kernel.contraction;
            const bool one_matrix = std::ranges::all_of(c.b.batch_strides, [](const IntRef& s) { return s.is(0); });
            if (!*packed && loops_.contain(block_) && !is_once(unit) && one_matrix && is_floating(c.b_dtype) &&
                loops_.leave_unchanged(program_.registers[first.operands[1]].root))
                exe_.launches.back().pack = ++exe_.packs;
            if (*packed) {
                const executable::PackedWeight& p = **packed;
                const auto key =
                    std::make_pair(p.weight, std::vector<std::int64_t>{p.k, p.n, p.row_stride, p.col_stride, p.offset});
                const auto [it, inserted] = packed_.try_emplace(key, static_cast<std::uint32_t>(exe_.packed.size()));
                if (inserted) {
                    exe_.packed.push_back(p);
                    packed_slots_[it->second] = exe_.buffer_slots++;
                    exe_.sources.resize(exe_.buffer_slots);
                    exe_.sources.back() = {BufferSource::Kind::kPackedWeight, it->second};
                }
                auto& buffers = exe_.launches.back().buffers;
                for (std::size_t i = 0; i < builder.roots.size(); ++i) {
                    if (builder.roots[i] == kNoReg) buffers[i] = packed_slots_[it->second];
                }
            }
            return {};
        }
        case UnitKind::kAttention: build_attention(builder, program_, first); return launch(builder, first);
        case UnitKind::kConcat: {
            const Reg result = first.results[0];
            types::TensorType target = type(result);
            target.offset = program_.env.simplify(target.offset);
            Dim step = 0;  // from one operand's place to the next one's
            const std::size_t axis = concat_axis(first);
            const bool grows = std::ranges::any_of(block().steps, [&](const Step& s) {
                return s.kind == Step::Kind::kGrow && s.buffer == buffer_slot(result);
            });
            for (Reg operand : first.operands) {
                if (operand == kNoReg) continue;
                if (type(operand).rank() != target.rank()) continue;  // torch's empty rank-1 operand
                const Dim offset = program_.env.simplify(target.offset + step);
                slots_.value_of_sum(offset, target.offset, step, frame());
                target.offset = offset;
                KernelBuilder copy(program_, source(), units_, *grouper_, producers_);
                copy.kernel.name = builder.kernel.name;
                copy.kernel.kind = loopir::KernelKind::kRow;
                types::TensorType slice = target;
                slice.sizes = type(operand).sizes;
                copy.kernel.body = copy.copy_body(operand, result, slice);
                copy.collapse(copy.kernel.body);
                FLEXOR_TRY(launch(copy, first));
                block().steps.back().unless_grown = grows && operand == first.operands[0];
                step = program_.env.simplify(target.strides[axis] * type(operand).sizes[axis]);
            }
            return {};
        }
        case UnitKind::kExtern: return lower_extern(builder, first);
        case UnitKind::kList:
        case UnitKind::kCall:
        case UnitKind::kRead:
        case UnitKind::kScalar:
        case UnitKind::kCheck: break;
    }
    return {};
}

void Lowerer::lower_terminator(const specialised::Block& from) {
    const specialised::Terminator& t = from.terminator;
    executable::Terminator out;
    const auto jump = [&](const specialised::Target& target) {
        executable::Jump j;
        j.block = target.block;
        const specialised::Block& to = program_.blocks[target.block];
        for (std::size_t i = 0; i < target.args.size(); ++i) {
            const Reg param = to.params[i];
            const Reg arg = target.args[i];
            if (program_.registers[param].list) {
                j.lists.push_back({list_slot(arg), list_slot(param)});
            } else if (program_.registers[param].type.strength == types::Strength::kScalar) {
                j.slots.push_back({scalar_slot(arg), scalar_slot(param)});
            } else {
                const Reg root = program_.registers[arg].root;
                j.buffers.push_back({buffer_slot(root), buffer_slot(param), root != arg});
            }
        }
        for (std::size_t i = 0; i < target.symbols.size(); ++i) {
            j.slots.push_back({value(target.symbols[i]), slots_.symbol(to.symbols[i])});
        }
        return j;
    };
    switch (t.kind) {
        case specialised::Terminator::Kind::kJump:
            out.kind = executable::Terminator::Kind::kJump;
            out.jumps.push_back(jump(t.targets[0]));
            break;
        case specialised::Terminator::Kind::kBranch: {
            out.kind = executable::Terminator::Kind::kBranch;
            if (t.condition.relation) {
                out.condition = value(t.condition.relation->a);  // "a != 0"
            } else {
                const specialised::Register& r = program_.registers[t.condition.reg];
                if (r.type.strength == types::Strength::kScalar) {
                    out.condition = scalar_slot(t.condition.reg);
                    out.float_condition = true;
                } else {
                    Step s;
                    out.float_condition = is_floating(r.type.type.dtype);
                    s.kind = out.float_condition ? Step::Kind::kReadFloat : Step::Kind::kReadInt;
                    s.buffer = buffer_slot(r.root);
                    s.dtype = r.type.type.dtype;
                    if (!r.type.type.offset.is_constant(0)) s.offset = value(r.type.type.offset);
                    s.slot = slots_.fresh();
                    out.condition = s.slot;
                    block().steps.push_back(s);
                }
            }
            out.jumps.push_back(jump(t.targets[0]));
            out.jumps.push_back(jump(t.targets[1]));
            break;
        }
        case specialised::Terminator::Kind::kReturn:
            out.kind = executable::Terminator::Kind::kReturn;
            for (const LiveValue& v : t.values) out.values.push_back(out_value(v));
            break;
        case specialised::Terminator::Kind::kExit: {
            out.kind = executable::Terminator::Kind::kExit;
            out.exit = static_cast<std::uint32_t>(exe_.exits.size());
            const specialised::Exit& exit = program_.exits[t.exit];
            executable::Exit e;
            e.pc = exit.pc;
            e.reason = exit.reason;
            for (const LiveValue& v : exit.locals) e.locals.push_back(out_value(v));
            for (const LiveValue& v : exit.stack) e.stack.push_back(out_value(v));
            exe_.exits.push_back(std::move(e));
            break;
        }
    }
    block().terminator = std::move(out);
}

// Whether the kernel of a unit gives the same at every pass of its loop.
bool Lowerer::is_once(const Unit& unit) const {
    const auto same = [&](const Unit& u) {
        return std::ranges::all_of(u.members, [&](const Member& m) { return loops_.is_invariant(block_, m.inst); });
    };
    const bool makes = unit.kind == UnitKind::kRow || unit.kind == UnitKind::kContraction ||
                       unit.kind == UnitKind::kAttention || unit.kind == UnitKind::kConcat;
    return makes && same(unit) && (!unit.prologue || same(units_.units[*unit.prologue]));
}

// What a block of a loop computes and checks over the call frame alone is the same at every pass.
void Lowerer::part_invariants(executable::Block& block) {
    std::vector<bool> same(slots_.count(), false);
    std::fill_n(same.begin(), exe_.signature.frame_size(), true);
    FrameProgram varying;
    for (const executable::FrameInst& inst : block.frame.insts) {
        const bool constant = inst.op == FrameOp::kConst;
        const bool moves = constant || (same[inst.a] && (executable::is_unary(inst.op) || same[inst.b]));
        same[inst.dst] = moves;
        (moves ? block.once : varying).insts.push_back(inst);
    }
    block.frame = std::move(varying);
    for (Step& s : block.steps) {
        if (s.kind != Step::Kind::kCheck) continue;
        const executable::Check& check = exe_.checks[s.index];
        s.once = same[check.a] && same[check.b];
    }
}

Expected<void> Lowerer::lower_block(std::size_t index) {
    block_ = index;
    after_read_ = false;
    late_frame_.reset();
    slots_.open_scope();
    block().loop_head = source().loop_head;
    Grouper grouper(program_, index, loops_, options_.fuse, options_.prologues);
    auto units = grouper.run();
    if (!units) return std::move(units).error();
    units_ = std::move(*units);
    grouper_ = &grouper;
    for (const Inst& inst : source().insts) {
        if (inst.kind == InstKind::kArgument && program_.registers[inst.results[0]].list) lower_list(inst);
    }
    place_buffers();
    for (std::size_t at = 0; at < units_.order.size(); ++at) {
        const Unit& unit = units_.units[units_.order[at]];
        const std::size_t before = exe_.launches.size();
        const std::size_t first_step = block().steps.size();
        if (auto lowered = lower_unit(unit, at); !lowered) {
            *refused_ = sites_of(unit);
            return std::move(lowered).error();
        }
        for (std::size_t i = first_step; is_once(unit) && i < block().steps.size(); ++i)
            block().steps[i].once |= block().steps[i].kind != Step::Kind::kFrame;
        for (std::size_t i = before; i < exe_.launches.size(); ++i) {
            std::vector<types::OpSite>& sites = exe_.kernels[exe_.launches[i].kernel].sites;
            for (const types::OpSite& site : sites_of(unit)) sites.push_back(site);
        }
    }
    lower_terminator(source());
    if (loops_.contain(index)) part_invariants(block());
    std::set<std::int32_t> pcs;
    for (const Inst& inst : source().insts) {
        if (inst.kind == InstKind::kOp && !inst.whole) pcs.insert(inst.pc);
    }
    exe_.op_count += static_cast<std::uint32_t>(pcs.size());
    return {};
}

Expected<Executable> Lowerer::run() {
    exe_.function = program_.function;
    exe_.pc = program_.pc;
    exe_.events = program_.events;
    producers_.assign(program_.registers.size(), nullptr);
    read_symbols_.resize(program_.blocks.size());
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
        for (const Inst& inst : program_.blocks[b].insts) {
            for (Reg r : inst.results) producers_[r] = &inst;
            const auto symbols = specialised::defined_symbols(inst);
            read_symbols_[b].insert(symbols.begin(), symbols.end());
        }
    }
    for (const auto& s : program_.entry_symbols) slots_.bind_symbol(s.symbol, s.slot);
    // Every argument and weight has its buffer, used or not: an exit may hand it back.
    for (const Inst& inst : program_.blocks[0].insts) {
        const bool tensor = !inst.results.empty() && !program_.registers[inst.results[0]].list &&
                            program_.registers[inst.results[0]].type.strength != types::Strength::kScalar;
        if (inst.kind == InstKind::kArgument && tensor) buffer_slot(inst.results[0]);
    }
    lower_guards();
    exe_.blocks.resize(program_.blocks.size());
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) FLEXOR_TRY(lower_block(b));
    exe_.frame_slots = slots_.count();
    exe_.sources.resize(exe_.buffer_slots);
    return std::move(exe_);
}

Expected<Executable> lower(const Program& program, const executable::Signature& signature, const Options& options,
                           std::vector<types::OpSite>* refused) {
    return Lowerer(program, signature, options, refused).run();
}

}  // namespace flexor::lower
