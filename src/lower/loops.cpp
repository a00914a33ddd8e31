#include "lower/loops.h"

#include <algorithm>
#include <set>

#include "specialised/alias.h"
#include "specialised/visit.h"

namespace flexor::lower {

using specialised::Block;
using specialised::Inst;
using specialised::InstKind;
using specialised::kNoReg;
using specialised::Program;
using specialised::Reg;

Loops::Loops(const Program& program) : program_(program) {
    const std::size_t count = program_.blocks.size();
    repeated_.assign(count, false);
    home_.assign(program_.registers.size(), 0);
    for (std::size_t b = 0; b < count; ++b) {
        for (Reg r : program_.blocks[b].params) home_[r] = b;
        for (const Inst& inst : program_.blocks[b].insts) {
            for (Reg r : inst.results) home_[r] = b;
        }
        std::vector<bool> seen(count, false);
        std::vector<std::size_t> work{b};
        while (!work.empty() && !repeated_[b]) {
            const std::size_t at = work.back();
            work.pop_back();
            for (const auto& target : program_.blocks[at].terminator.targets) {
                if (target.block == b) repeated_[b] = true;
                if (!seen[target.block]) work.push_back(target.block);
                seen[target.block] = true;
            }
        }
    }
    find_invariants();
}

bool Loops::is_written(Reg root) const {
    const auto writes = [&](const Inst& inst) {
        return inst.kind == InstKind::kOp && inst.op->effects.value != ops::Effects::kPure && !inst.operands.empty() &&
               specialised::may_overlap(program_, root, program_.registers[inst.operands[0]].root);
    };
    return std::ranges::any_of(program_.blocks, [&](const Block& b) { return std::ranges::any_of(b.insts, writes); });
}

bool Loops::leave_unchanged(Reg root) const { return !repeated_[home_[root]] && !is_written(root); }

void Loops::find_invariants() {
    std::set<types::SymbolId> entry;
    for (const auto& s : program_.entry_symbols) entry.insert(s.symbol);
    const auto of_entry = [&](const types::Dim& d) {
        std::vector<types::SymbolId> symbols;
        d.collect_symbols(symbols);
        return std::ranges::all_of(symbols, [&](types::SymbolId s) { return entry.count(s) != 0; });
    };
    const auto has_entry_type = [&](Reg r) {
        const types::TensorType& t = program_.registers[r].type.type;
        return std::ranges::all_of(t.sizes, of_entry) && std::ranges::all_of(t.strides, of_entry) && of_entry(t.offset);
    };
    const auto has_entry_attrs = [&](const Inst& inst) {
        return std::ranges::all_of(inst.attrs.items(), [&](const auto& item) {
            if (const auto* d = std::get_if<types::Dim>(&item.second)) return of_entry(*d);
            const auto* list = std::get_if<types::DimList>(&item.second);
            return list == nullptr || std::ranges::all_of(*list, of_entry);
        });
    };
    // What others hold on to.
    std::vector<bool> kept(program_.registers.size(), false);
    const auto keep = [&](Reg r) {
        if (r != kNoReg) kept[program_.registers[r].root] = true;
    };
    for (const Block& b : program_.blocks) {
        specialised::for_each_terminator_reg(program_, b, keep);
        for (const Inst& inst : b.insts) {
            if (specialised::is_list_inst(inst.kind)) std::ranges::for_each(inst.operands, keep);
        }
    }
    std::vector<bool> same(program_.registers.size(), false);  // invariant values, by register
    invariant_.resize(program_.blocks.size());
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
        const std::vector<Inst>& insts = program_.blocks[b].insts;
        invariant_[b].assign(insts.size(), false);
        if (!repeated_[b]) continue;
        for (std::size_t at = 0; at < insts.size(); ++at) {
            const Inst& inst = insts[at];
            if (inst.kind == InstKind::kConst || inst.kind == InstKind::kDimScalar) {
                same[inst.results[0]] = of_entry(inst.dim);
                continue;
            }
            if (inst.kind != InstKind::kOp || inst.op->effects.value != ops::Effects::kPure || inst.results.empty() ||
                specialised::may_raise(program_, inst) || !has_entry_attrs(inst))
                continue;
            const bool given = std::ranges::all_of(inst.operands, [&](Reg r) {
                if (r == kNoReg || same[r]) return true;
                if (program_.registers[r].type.strength == types::Strength::kScalar) return !repeated_[home_[r]];
                return has_entry_type(r) && leave_unchanged(program_.registers[r].root);
            });
            const bool own = std::ranges::all_of(inst.results, [&](Reg r) {
                const Reg root = program_.registers[r].root;
                return has_entry_type(r) && (root != r || (!kept[root] && !is_written(root)));
            });
            if (!given || !own) continue;
            invariant_[b][at] = true;
            for (Reg r : inst.results) same[r] = true;
        }
    }
}

// No way from behind the instruction reads the memory before it is set anew.
bool Loops::is_dead_after(std::size_t block, const Inst& inst, Reg root) const {
    const auto names = [&](Reg r) { return r != kNoReg && program_.registers[r].root == root; };
    const auto reads = [&](const Block& b, std::size_t from) {
        bool found = false;
        for (std::size_t i = from; i < b.insts.size(); ++i) found |= std::ranges::any_of(b.insts[i].operands, names);
        specialised::for_each_terminator_reg(program_, b, [&](Reg r) { found |= names(r); });
        return found;
    };
    const Block& own = program_.blocks[block];
    if (reads(own, static_cast<std::size_t>(&inst - own.insts.data()) + 1)) return false;
    std::vector<bool> seen(program_.blocks.size(), false);
    std::vector<std::size_t> work{block};
    while (!work.empty()) {
        const std::size_t at = work.back();
        work.pop_back();
        for (const auto& target : program_.blocks[at].terminator.targets) {
            const Block& to = program_.blocks[target.block];
            const bool set_anew = std::ranges::find(to.params, root) != to.params.end();
            if (set_anew || seen[target.block]) continue;
            if (reads(to, 0)) return false;
            seen[target.block] = true;
            work.push_back(target.block);
        }
    }
    return true;
}

bool Loops::may_grow(std::size_t block, const Inst& concat) const {
    const Reg old = concat.operands[0];
    if (!repeated_[block] || old == kNoReg || program_.registers[old].root != old) return false;
    const types::TensorType& from = program_.registers[old].type.type;
    const types::TensorType& to = program_.registers[concat.results[0]].type.type;
    const bool dense = from.offset.is_constant(0) && from.strides == types::contiguous_strides(from.sizes) &&
                       to.strides == types::contiguous_strides(to.sizes);
    if (!dense || from.dtype != to.dtype || from.rank() != to.rank()) return false;
    const std::vector<Reg>& params = program_.blocks[home_[old]].params;
    if (std::ranges::find(params, old) == params.end()) return false;
    const auto names = [&](Reg r) { return r != kNoReg && program_.registers[r].root == old; };
    return std::ranges::count_if(concat.operands, names) == 1 && is_dead_after(block, concat, old);
}

}  // namespace flexor::lower
