#include "lower/units.h"

#include <algorithm>
#include <utility>

#include "ops/rules.h"
#include "specialised/alias.h"
#include "specialised/visit.h"
#include "support/diagnostic.h"

namespace flexor::lower {

bool is_reduce(const Inst& inst) {
    return inst.kind == InstKind::kOp && std::holds_alternative<ops::ReduceLower>(inst.op->lower.value);
}

bool is_view(const Program& program, const Inst& inst) {
    return inst.kind == InstKind::kOp && inst.op->effects.value == ops::Effects::kPure && !inst.results.empty() &&
           program.registers[inst.results[0]].root != inst.results[0];
}

bool is_copy(const Program& program, const Inst& inst) {
    return inst.kind == InstKind::kOp && std::holds_alternative<ops::ViewLower>(inst.op->lower.value) &&
           !is_view(program, inst);
}

bool is_write(const Inst& inst) {
    return inst.kind == InstKind::kOp && inst.op->effects.value == ops::Effects::kWritesFirst;
}

namespace {

// Whether each point of a kernel reads its operands at that point, or along its own row.
bool reads_in_place(const Inst& inst) {
    if (inst.kind != InstKind::kOp) return false;
    const ops::LowerRule& rule = inst.op->lower.value;
    return std::holds_alternative<ops::MapLower>(rule) || std::holds_alternative<ops::ReduceLower>(rule) ||
           std::holds_alternative<ops::WriteLower>(rule);
}

}  // namespace

const std::vector<Dim>& walked_shape(const Program& program, const Inst& inst) {
    const Reg reg = is_reduce(inst) || is_copy(program, inst) || is_write(inst) ? inst.operands[0] : inst.results[0];
    return program.registers[reg].type.type.sizes;
}

std::vector<bool> reduced_axes(const Program& program, const Inst& inst) {
    const int rank = program.registers[inst.operands[0]].type.type.rank();
    std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
    for (const int axis : ops::rules::reduced_axes(inst.attrs, rank)) reduced[static_cast<std::size_t>(axis)] = true;
    return reduced;
}

Grouper::Grouper(Program& program, std::size_t block, const Loops& loops, bool fuse, bool prologues)
    : program_(program),
      block_(program.blocks[block]),
      index_(block),
      loops_(loops),
      fuse_(fuse),
      prologues_(fuse && prologues) {
    out_.unit_of.resize(program.registers.size());
    out_.member_of.resize(program.registers.size());
    out_.stored.assign(program.registers.size(), false);
}

std::vector<int> Grouper::form_dims(const Unit& unit, Form form) const {
    std::vector<int> dims;
    for (std::size_t d = 0; d < unit.space.size(); ++d) {
        const bool reduced = !unit.reduced.empty() && unit.reduced[d];
        if (form == Form::kFull || !reduced) {
            dims.push_back(static_cast<int>(d));
        } else if (form == Form::kRowKeep) {
            dims.push_back(-1);
        }
    }
    return dims;
}

std::optional<Form> Grouper::form_of(const Unit& unit, const std::vector<Dim>& sizes) const {
    const auto fits = [&](Form form) {
        const std::vector<int> dims = form_dims(unit, form);
        if (dims.size() != sizes.size()) return false;
        for (std::size_t a = 0; a < dims.size(); ++a) {
            if (dims[a] < 0 ? !equal(sizes[a], 1) : !equal(sizes[a], unit.space[static_cast<std::size_t>(dims[a])]))
                return false;
        }
        return true;
    };
    if (fits(Form::kFull)) return Form::kFull;
    if (unit.reduced.empty()) return std::nullopt;
    if (fits(Form::kRowKeep)) return Form::kRowKeep;
    if (fits(Form::kRowDrop)) return Form::kRowDrop;
    return std::nullopt;
}

std::optional<std::vector<int>> Grouper::axis_map(const Unit& unit, Form form, const std::vector<Dim>& result,
                                                  Reg reg) const {
    const std::vector<Dim>& sizes = type(reg).sizes;
    const std::vector<int> dims = form_dims(unit, form);
    if (sizes.size() > result.size() || dims.size() != result.size()) return std::nullopt;
    const std::size_t shift = result.size() - sizes.size();
    std::vector<int> map(sizes.size(), -1);
    for (std::size_t a = 0; a < sizes.size(); ++a) {
        if (sizes[a].is_constant(1)) continue;
        if (!equal(sizes[a], result[a + shift])) return std::nullopt;
        map[a] = dims[a + shift];
    }
    return map;
}

std::optional<std::vector<int>> Grouper::root_axes(Reg view) const {
    const Reg root = program_.registers[view].root;
    const types::TensorType& v = type(view);
    const types::TensorType& r = type(root);
    std::vector<int> axes(r.sizes.size(), -1);
    if (view == root) {
        for (std::size_t a = 0; a < axes.size(); ++a) axes[a] = static_cast<int>(a);
        return axes;
    }
    if (!equal(v.offset, r.offset)) return std::nullopt;
    std::vector<bool> taken(v.sizes.size(), false);
    for (std::size_t a = 0; a < axes.size(); ++a) {
        if (r.sizes[a].is_constant(1)) continue;
        for (std::size_t b = 0; b < v.sizes.size() && axes[a] < 0; ++b) {
            if (!taken[b] && equal(v.strides[b], r.strides[a]) && equal(v.sizes[b], r.sizes[a])) {
                axes[a] = static_cast<int>(b);
                taken[b] = true;
            }
        }
        if (axes[a] < 0) return std::nullopt;
    }
    for (std::size_t b = 0; b < v.sizes.size(); ++b) {
        if (!taken[b] && !v.sizes[b].is_constant(1) && !equal(v.strides[b], 0)) return std::nullopt;
    }
    return axes;
}

bool Grouper::reaches(std::size_t from, std::size_t to) const {
    std::vector<bool> seen(out_.units.size(), false);
    std::vector<std::size_t> work{from};
    while (!work.empty()) {
        const std::size_t u = work.back();
        work.pop_back();
        if (u == to) return true;
        if (seen[u]) continue;
        seen[u] = true;
        for (std::size_t n : out_.units[u].needs) work.push_back(n);
    }
    return false;
}

// Whether a member with this form may read its operands: values made in the unit must be read at the point where they
// are made, values made elsewhere must not depend on the unit.
bool Grouper::reads_fit(std::size_t index, Form form, const Inst& inst, const std::vector<Dim>& shape) const {
    const Unit& unit = out_.units[index];
    const bool indexed = inst.kind == InstKind::kOp && std::holds_alternative<ops::IndexLower>(inst.op->lower.value);
    for (std::size_t o = 0; o < inst.operands.size(); ++o) {
        const Reg reg = inst.operands[o];
        if (reg == kNoReg || scalar(reg)) continue;
        if (is_write(inst) && o == 0) continue;  // the destination
        const Reg root = program_.registers[reg].root;
        const auto owner = out_.unit_of[root];
        if (!owner) continue;
        if (*owner != index) {
            if (reaches(*owner, index)) return false;
            continue;
        }
        if (indexed || !out_.member_of[root]) return false;
        if (unit.kind == UnitKind::kContraction && !std::holds_alternative<ops::MapLower>(inst.op->lower.value))
            return false;
        const auto reading = axis_map(unit, form, shape, reg);
        const auto axes = root_axes(reg);
        if (!reading || !axes) return false;
        const Member& made = *out_.member_of[root];
        if (is_copy(program_, block_.insts[made.inst]) || is_write(block_.insts[made.inst])) return false;
        const std::vector<int> dims = form_dims(unit, made.form);
        for (std::size_t a = 0; a < axes->size(); ++a) {
            const int made_at = dims[a];
            const int read_at = (*axes)[a] < 0 ? -1 : (*reading)[static_cast<std::size_t>((*axes)[a])];
            if (made_at < 0 || type(root).sizes[a].is_constant(1)) continue;
            if (made_at != read_at) return false;
        }
        // A full value may not be read by a row value except through a reduce.
        if (made.form == Form::kFull && form != Form::kFull) return false;
    }
    return true;
}

// W3: a write may share a kernel with loads of memory that overlaps its destination only at identical geometry.
bool Grouper::write_conflicts(std::size_t index, const Inst& write) const {
    const Unit& unit = out_.units[index];
    const Reg destination = write.operands[0];
    const Reg root = program_.registers[destination].root;
    // Memory made here must be written where it is made, or two points of the kernel meet in one element.
    if (out_.unit_of[root] && !(type(destination) == type(root))) return true;
    const auto conflicts = [&](const Inst& inst, Reg reg) {
        if (reg == kNoReg || scalar(reg)) return false;
        const Reg other = program_.registers[reg].root;
        if (out_.unit_of[other] == index || !specialised::may_overlap(program_, root, other)) return false;
        return other != root || !(type(destination) == type(reg)) || !reads_in_place(inst);
    };
    for (const Member& m : unit.members) {
        const Inst& inst = block_.insts[m.inst];
        for (Reg reg : inst.operands) {
            if (conflicts(inst, reg)) return true;
        }
    }
    return conflicts(write, write.operands[1]);
}

void Grouper::find_write_sources() {
    write_sources_.assign(program_.registers.size(), false);
    for (std::size_t at = block_.insts.size(); at-- > 0;) {
        const Inst& inst = block_.insts[at];
        bool feeds = is_write(inst);
        for (Reg r : inst.results) feeds = feeds || write_sources_[program_.registers[r].root];
        if (!feeds) continue;
        for (std::size_t o = is_write(inst) ? 1 : 0; o < inst.operands.size(); ++o) {
            if (inst.operands[o] != kNoReg) write_sources_[program_.registers[inst.operands[o]].root] = true;
        }
    }
}

// The operands of an instruction as a member of the unit: what a write has left in memory, as the unit computes it.
// Only a write of the whole operand, each element to a place of its own, leaves exactly that value.
std::vector<Reg> Grouper::forwarded(std::size_t index, const Inst& inst) const {
    std::vector<Reg> operands = inst.operands;
    for (Reg& reg : operands) {
        if (reg == kNoReg || scalar(reg)) continue;
        const Reg root = program_.registers[reg].root;
        const auto last = std::find_if(writes_.rbegin(), writes_.rend(), [&](const Write& w) {
            return specialised::may_overlap(program_, root, program_.registers[block_.insts[w.inst].operands[0]].root);
        });
        if (last == writes_.rend()) continue;
        const Inst& write = block_.insts[last->inst];
        if (specialised::runs_whole(write)) continue;  // leaves more than one of its operands
        const Reg value = write.operands[1];
        if (program_.registers[write.operands[0]].root != root || !(type(write.operands[0]) == type(reg))) continue;
        if (scalar(value) || program_.registers[value].root != value || out_.unit_of[value] != index) continue;
        const types::TensorType& from = type(value);
        const types::TensorType& to = type(reg);
        bool same = from.dtype == to.dtype && from.sizes.size() == to.sizes.size() &&
                    ops::rules::is_row_major(program_.env, to);
        for (std::size_t a = 0; same && a < to.sizes.size(); ++a) same = equal(from.sizes[a], to.sizes[a]);
        if (same) reg = value;
    }
    return operands;
}

// Whether an instruction may run with a unit of an earlier epoch: no write in between touches what it reads, and it
// neither raises nor is the reason for a write, which would then read it from memory.
bool Grouper::may_rise(std::size_t index, const Inst& inst) const {
    const Unit& unit = out_.units[index];
    if (unit.epoch < lowest_epoch_ || is_write(inst) || specialised::may_raise(program_, inst)) return false;
    if (inst.op->effects.value != ops::Effects::kPure) return false;
    for (Reg r : inst.results) {
        if (write_sources_[program_.registers[r].root]) return false;
    }
    for (Reg reg : inst.operands) {
        if (reg == kNoReg || scalar(reg)) continue;
        const Reg root = program_.registers[reg].root;
        const auto owner = out_.unit_of[root];
        for (const Write& w : writes_) {
            const Reg written = program_.registers[block_.insts[w.inst].operands[0]].root;
            if (w.epoch >= unit.epoch && specialised::may_overlap(program_, root, written)) return false;
            // The unit that writes is the last of its epoch.
            if (owner && *owner != index && w.epoch == unit.epoch && out_.units[*owner].epoch == unit.epoch &&
                std::any_of(out_.units[*owner].members.begin(), out_.units[*owner].members.end(),
                            [&](const Member& m) { return m.inst == w.inst; }))
                return false;
        }
        if (owner && out_.units[*owner].epoch > unit.epoch) return false;
    }
    return true;
}

bool Grouper::join_forwarded(std::size_t index, std::size_t at) {
    Inst& inst = block_.insts[at];
    std::vector<Reg> own = std::exchange(inst.operands, forwarded(index, inst));
    if (join(index, at)) return true;
    inst.operands = std::move(own);
    return false;
}

void Grouper::link(std::size_t unit, const Inst& inst) {
    for (Reg reg : inst.operands) {
        if (reg == kNoReg) continue;
        const auto owner = out_.unit_of[program_.registers[reg].root];
        if (owner && *owner != unit) out_.units[unit].needs.push_back(*owner);
    }
}

bool Grouper::join(std::size_t index, std::size_t at) {
    const Inst& inst = block_.insts[at];
    Unit& unit = out_.units[index];
    if (unit.epoch != epoch_ && !may_rise(index, inst)) return false;
    if (unit.kind != UnitKind::kRow && unit.kind != UnitKind::kContraction) return false;
    const bool map = std::holds_alternative<ops::MapLower>(inst.op->lower.value);
    if (unit.kind == UnitKind::kContraction && !map) return false;
    // A product that no pass changes stays alone, so that it is computed once.
    if (unit.kind == UnitKind::kContraction && loops_.is_invariant(index_, unit.members[0].inst) &&
        !loops_.is_invariant(index_, at))
        return false;
    const std::vector<Dim>& shape = walked_shape(program_, inst);
    auto form = form_of(unit, shape);
    if (!form) return false;
    if (is_reduce(inst)) {
        if (*form != Form::kFull) return false;
        const std::vector<bool> reduced = reduced_axes(program_, inst);
        if (!unit.reduced.empty() && unit.reduced != reduced) return false;
        if (!reads_fit(index, Form::kFull, inst, shape)) return false;
        unit.reduced = reduced;
        const bool keep = type(inst.results[0]).rank() == static_cast<int>(unit.space.size());
        form = keep ? Form::kRowKeep : Form::kRowDrop;
    } else {
        if (is_write(inst)) {
            if (*form != Form::kFull || write_conflicts(index, inst)) return false;
            // The write is the last of its epoch: nothing of it may come after.
            for (std::size_t u = 0; u < out_.units.size(); ++u) {
                if (u != index && out_.units[u].epoch == epoch_ && reaches(u, index)) return false;
            }
        }
        if (is_copy(program_, inst) && *form != Form::kFull) return false;
        if (!reads_fit(index, *form, inst, shape)) return false;
    }
    unit.members.push_back({at, *form});
    link(index, inst);
    for (Reg r : inst.results) {
        if (program_.registers[r].root != r) continue;
        out_.unit_of[r] = index;
        out_.member_of[r] = Member{at, *form};
    }
    return true;
}

// Two row units of one space become one if nothing between them needs the one and is needed by the other.
bool Grouper::try_merge(std::size_t into, std::size_t other) {
    Unit& a = out_.units[into];
    Unit& b = out_.units[other];
    if (into == other || a.kind != UnitKind::kRow || b.kind != UnitKind::kRow) return false;
    if (a.epoch != epoch_ || b.epoch != epoch_) return false;
    if (a.space.size() != b.space.size() || a.space.empty()) return false;
    for (std::size_t d = 0; d < a.space.size(); ++d) {
        if (!equal(a.space[d], b.space[d])) return false;
    }
    if (!a.reduced.empty() && !b.reduced.empty() && a.reduced != b.reduced) return false;
    for (std::size_t n : a.needs) {
        if (n != other && reaches(n, other)) return false;
    }
    for (std::size_t n : b.needs) {
        if (n != into && reaches(n, into)) return false;
    }
    // Every value of `other` that `into` reads must be read where it is made.
    const std::vector<bool> reduced = a.reduced.empty() ? b.reduced : a.reduced;
    const auto saved_unit = out_.unit_of;
    const auto saved_reduced = a.reduced;
    a.reduced = reduced;
    for (const Member& m : b.members) {
        for (Reg r : block_.insts[m.inst].results) {
            if (out_.unit_of[r] == other) out_.unit_of[r] = into;
        }
    }
    for (const Member& m : a.members) {
        const Inst& inst = block_.insts[m.inst];
        if (!reads_fit(into, is_reduce(inst) ? Form::kFull : m.form, inst, walked_shape(program_, inst))) {
            out_.unit_of = saved_unit;
            a.reduced = saved_reduced;
            return false;
        }
    }
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    std::sort(a.members.begin(), a.members.end(), [](const Member& x, const Member& y) { return x.inst < y.inst; });
    a.needs.insert(a.needs.end(), b.needs.begin(), b.needs.end());
    std::erase_if(a.needs, [&](std::size_t n) { return n == into || n == other; });
    for (Unit& u : out_.units) {
        for (std::size_t& n : u.needs) {
            if (n == other) n = into;
        }
    }
    b.members.clear();
    b.needs.clear();
    b.absorbed = true;
    return true;
}

void Grouper::add_alone(std::size_t at, UnitKind kind) {
    const Inst& inst = block_.insts[at];
    Unit unit;
    unit.kind = kind;
    unit.epoch = epoch_;
    Member member{at, Form::kFull};
    if (kind == UnitKind::kRow) {
        unit.space = walked_shape(program_, inst);
        if (is_reduce(inst)) {
            unit.reduced = reduced_axes(program_, inst);
            member.form =
                type(inst.results[0]).rank() == static_cast<int>(unit.space.size()) ? Form::kRowKeep : Form::kRowDrop;
        }
    }
    if (kind == UnitKind::kContraction) unit.space = type(inst.results[0]).sizes;
    unit.members.push_back(member);
    const std::size_t index = out_.units.size();
    out_.units.push_back(std::move(unit));
    link(index, inst);
    for (Reg r : inst.results) {
        if (program_.registers[r].root != r) continue;
        out_.unit_of[r] = index;
        if (kind == UnitKind::kRow || kind == UnitKind::kContraction) out_.member_of[r] = member;
    }
}

void Grouper::add(std::size_t at) {
    const Inst& inst = block_.insts[at];
    if (fuse_) {
        // The units that make the operands, a contraction first, then the latest.
        std::vector<std::size_t> candidates;
        for (std::size_t o = 0; o < inst.operands.size(); ++o) {
            const Reg reg = inst.operands[o];
            if (reg == kNoReg || (is_write(inst) && o == 0)) continue;
            const auto offer = [&](const std::optional<std::size_t>& unit) {
                if (unit && std::find(candidates.begin(), candidates.end(), *unit) == candidates.end())
                    candidates.push_back(*unit);
            };
            offer(out_.unit_of[program_.registers[reg].root]);
            for (const Write& w : writes_) {
                const Inst& write = block_.insts[w.inst];
                if (program_.registers[write.operands[0]].root == program_.registers[reg].root &&
                    !specialised::runs_whole(write))
                    offer(out_.unit_of[program_.registers[write.operands[1]].root]);
            }
        }
        std::sort(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
            const bool ca = out_.units[a].kind == UnitKind::kContraction;
            const bool cb = out_.units[b].kind == UnitKind::kContraction;
            return ca != cb ? ca : a > b;
        });
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (!join_forwarded(candidates[i], at)) continue;
            if (out_.units[candidates[i]].kind == UnitKind::kRow) {
                for (std::size_t j = 0; j < candidates.size(); ++j) {
                    if (j != i) try_merge(candidates[i], candidates[j]);
                }
            }
            return;
        }
    }
    add_alone(at, UnitKind::kRow);
}

// Float arithmetic waits for the reads that it depends on and for nothing else, so that it parts no kernels. What may
// raise keeps its place among the effects.
void Grouper::add_scalar(std::size_t at) {
    const Inst& inst = block_.insts[at];
    add_alone(at, UnitKind::kScalar);
    if (inst.real == specialised::RealOp::kDiv || inst.real == specialised::RealOp::kOfInt) return;
    int earliest = 0;
    for (Reg r : inst.operands) {
        const auto unit = out_.unit_of[r];
        if (!unit) continue;
        const Unit& producer = out_.units[*unit];
        earliest = std::max(earliest, producer.epoch + (producer.kind == UnitKind::kRead ? 1 : 0));
    }
    out_.units.back().epoch = earliest;
}

Expected<BlockUnits> Grouper::run() {
    find_write_sources();
    for (std::size_t at = 0; at < block_.insts.size(); ++at) {
        const Inst& inst = block_.insts[at];
        switch (inst.kind) {
            case InstKind::kArgument:
            case InstKind::kWeight:
            case InstKind::kConst:
            case InstKind::kDimScalar: continue;
            case InstKind::kCheck:
            case InstKind::kAssert:
                add_alone(at, UnitKind::kCheck);
                lowest_epoch_ = epoch_;
                continue;
            case InstKind::kListOf:
            case InstKind::kListAppend:
            case InstKind::kListGet:
            case InstKind::kListJoin: add_alone(at, UnitKind::kList); continue;
            case InstKind::kListQuery:
            case InstKind::kReadInt:
            case InstKind::kReadFloat:
                add_alone(at, UnitKind::kRead);
                lowest_epoch_ = ++epoch_;
                continue;
            case InstKind::kReal: add_scalar(at); continue;
            case InstKind::kOp: break;
        }
        if (is_view(program_, inst)) continue;
        const ops::LowerRule& rule = inst.op->lower.value;
        if (specialised::runs_whole(inst)) {
            add_alone(at, UnitKind::kCall);
            if (!inst.sizes.empty()) lowest_epoch_ = ++epoch_;
            if (is_write(inst)) writes_.push_back({at, epoch_++});
        } else if (std::holds_alternative<ops::ContractionLower>(rule)) {
            add_alone(at, UnitKind::kContraction);
        } else if (std::holds_alternative<ops::AttentionLower>(rule)) {
            add_alone(at, UnitKind::kAttention);
        } else if (std::holds_alternative<ops::ConcatLower>(rule)) {
            add_alone(at, UnitKind::kConcat);
        } else if (std::holds_alternative<ops::ExternLower>(rule)) {
            add_alone(at, UnitKind::kExtern);
        } else if (std::holds_alternative<ops::CompositeLower>(rule)) {
            return Diagnostic(DiagnosticId::kOpNotCompiled)
                .op(std::string(inst.op->name.value))
                .found("an op without a kernel");
        } else {
            add(at);
            if (is_write(inst)) writes_.push_back({at, epoch_++});
        }
    }
    mark_stored();
    absorb_prologues();
    schedule();
    return std::move(out_);
}

void Grouper::mark_stored() {
    const auto store = [&](Reg r) {
        if (r != kNoReg && !scalar(r)) out_.stored[program_.registers[r].root] = true;
    };
    std::vector<bool> read(program_.registers.size(), false);
    for (const Inst& inst : block_.insts) {
        for (Reg reg : inst.operands) {
            if (reg != kNoReg) read[program_.registers[reg].root] = true;
        }
    }
    for (std::size_t u = 0; u < out_.units.size(); ++u) {
        const Unit& unit = out_.units[u];
        for (const Member& m : unit.members) {
            const Inst& inst = block_.insts[m.inst];
            // What nobody reads is there to raise: it must run.
            if (!inst.results.empty() && !read[inst.results[0]] && specialised::may_raise(program_, inst))
                store(inst.results[0]);
            for (std::size_t o = 0; o < inst.operands.size(); ++o) {
                const Reg reg = inst.operands[o];
                if (reg == kNoReg || scalar(reg)) continue;
                const Reg root = program_.registers[reg].root;
                const bool inside = out_.unit_of[root] == u && out_.member_of[root] && !(is_write(inst) && o == 0);
                if (!inside) store(reg);
            }
            const bool plain = unit.kind == UnitKind::kRow && !is_copy(program_, inst);
            if (!plain && !(unit.kind == UnitKind::kContraction && unit.members.size() > 1)) {
                for (Reg r : inst.results) store(r);
            }
        }
    }
    // A register of this block that a later block names is stored too.
    for (const specialised::Block& block : program_.blocks) {
        specialised::for_each_terminator_reg(program_, block, store);
        if (&block == &block_) continue;
        for (const Inst& inst : block.insts) {
            for (Reg r : inst.operands) store(r);
        }
    }
    // Memory of the caller, a weight, another block or an element of a list is there already; a list is none.
    for (std::size_t r = 0; r < out_.stored.size(); ++r) {
        const auto unit = out_.unit_of[r];
        if (!unit || program_.registers[r].list ||
            block_.insts[out_.units[*unit].members[0].inst].kind == InstKind::kListGet)
            out_.stored[r] = false;
    }
}

// The left operand of a contraction is computed row by row inside it when nobody else needs it.
void Grouper::absorb_prologues() {
    if (!prologues_) return;
    for (std::size_t c = 0; c < out_.units.size(); ++c) {
        Unit& unit = out_.units[c];
        if (unit.kind != UnitKind::kContraction) continue;
        const Inst& inst = block_.insts[unit.members[0].inst];
        const Reg a = inst.operands[0];
        if (a == kNoReg || program_.registers[a].root != a) continue;
        const auto owner = out_.unit_of[a];
        if (!owner || out_.units[*owner].kind != UnitKind::kRow || out_.units[*owner].epoch != unit.epoch) continue;
        Unit& rows = out_.units[*owner];
        if (type(a).dtype != DType::kF32) continue;
        // Only `a` leaves the unit, in full form, and only this contraction reads it.
        bool fits = out_.member_of[a] && out_.member_of[a]->form == Form::kFull;
        for (const Member& m : rows.members) {
            const Inst& member = block_.insts[m.inst];
            if (is_write(member) || is_copy(program_, member)) fits = false;
            for (Reg r : member.results) {
                if (r != a && out_.stored[r]) fits = false;
            }
        }
        for (std::size_t d = 0; d + 1 < rows.space.size() && !rows.reduced.empty(); ++d)
            fits = fits && !rows.reduced[d];
        int uses = 0;
        for (const Inst& other : block_.insts) {
            for (Reg r : other.operands) {
                const bool inside = r != kNoReg && program_.registers[r].root == a;
                bool member_use = false;
                for (const Member& m : rows.members) member_use = member_use || &block_.insts[m.inst] == &other;
                if (inside && !member_use && !is_view(program_, other)) ++uses;
            }
        }
        const auto count = [&](Reg r) { uses += r != kNoReg && program_.registers[r].root == a ? 1 : 0; };
        for (const specialised::Block& block : program_.blocks) {
            specialised::for_each_terminator_reg(program_, block, count);
            if (&block == &block_) continue;
            for (const Inst& other : block.insts) {
                for (Reg r : other.operands) count(r);
            }
        }
        // Batch dims of `a` are those of the result, or a is recomputed for nothing.
        const std::vector<Dim>& result = unit.space;
        fits = fits && uses == 1 && rows.space.size() == result.size() && rows.space.size() >= 2;
        for (std::size_t d = 0; fits && d + 1 < result.size(); ++d) fits = equal(rows.space[d], result[d]);
        if (!fits) continue;
        for (std::size_t n : rows.needs) fits = fits && !reaches(n, c);
        if (!fits) continue;
        unit.prologue = *owner;
        rows.absorbed = true;
        unit.needs.insert(unit.needs.end(), rows.needs.begin(), rows.needs.end());
        std::erase(unit.needs, *owner);
        out_.stored[a] = false;
    }
}

bool Grouper::ends_epoch(const Unit& unit) const {
    if (unit.kind == UnitKind::kRead) return true;
    return std::ranges::any_of(unit.members, [&](const Member& m) {
        const Inst& inst = block_.insts[m.inst];
        return is_write(inst) || !inst.sizes.empty();
    });
}

// Epochs in order; inside one, scalars and then checks as early as what they need allows, then by first instruction.
void Grouper::schedule() {
    std::vector<bool> done(out_.units.size(), false);
    std::size_t remaining = 0;
    for (std::size_t u = 0; u < out_.units.size(); ++u) {
        if (out_.units[u].absorbed) {
            done[u] = true;
        } else {
            ++remaining;
        }
    }
    const auto first = [&](std::size_t u) { return out_.units[u].members[0].inst; };
    while (remaining > 0) {
        std::optional<std::size_t> best;
        int epoch = 1 << 30;
        for (std::size_t u = 0; u < out_.units.size(); ++u) {
            if (!done[u]) epoch = std::min(epoch, out_.units[u].epoch);
        }
        for (std::size_t u = 0; u < out_.units.size(); ++u) {
            if (done[u] || out_.units[u].epoch != epoch) continue;
            bool ready = true;
            for (std::size_t n : out_.units[u].needs) ready = ready && done[n];
            // A write, or what defines the symbols of the next epoch, comes after everything of its epoch that stands before it.
            if (ends_epoch(out_.units[u])) {
                for (std::size_t o = 0; o < out_.units.size(); ++o)
                    ready = ready && (o == u || done[o] || out_.units[o].epoch != epoch);
            }
            // Kernels may rely on what the checks of their epoch establish; checks keep their order.
            const bool check = out_.units[u].kind == UnitKind::kCheck;
            if (check) {
                for (std::size_t o = 0; o < out_.units.size(); ++o) {
                    const Unit& other = out_.units[o];
                    if (other.kind == UnitKind::kCheck && first(o) < first(u)) ready = ready && done[o];
                }
            }
            if (!ready) continue;
            const auto rank = [&](std::size_t unit) {
                const UnitKind kind = out_.units[unit].kind;
                return kind == UnitKind::kScalar ? 0 : kind == UnitKind::kCheck ? 1 : 2;
            };
            const bool sooner = !best || (rank(u) != rank(*best) ? rank(u) < rank(*best) : first(u) < first(*best));
            if (sooner) best = u;
        }
        done[*best] = true;
        --remaining;
        out_.order.push_back(*best);
    }
}

}  // namespace flexor::lower
