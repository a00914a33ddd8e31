// Selections by a mask, without what nobody needs of them.
#include <algorithm>
#include <optional>

#include "ops/rules.h"
#include "specialised/visit.h"
#include "transform/transform.h"

namespace flexor::transform {

using specialised::Block;
using specialised::ConstScalar;
using specialised::Inst;
using specialised::InstKind;
using specialised::kNoReg;
using specialised::Program;
using specialised::Reg;
using specialised::Register;
using types::Dim;
using types::TensorType;

namespace {

bool is_op(const Inst& inst, std::string_view name) {
    return inst.kind == InstKind::kOp && !inst.whole && inst.op->name.value == name;
}

class Selections {
public:
    Selections(Program& program, types::Promotion promotion) : program_(program), promotion_(promotion) {}

    void run() {
        for (Block& block : program_.blocks) {
            block_ = &block;
            for (std::size_t at = 0; at < block.insts.size();) at = select_by_mask(at) ? 0 : at + 1;
            for (std::size_t at = 0; at < block.insts.size(); ++at) at += sum_where(at);
        }
    }

private:
    const TensorType& type(Reg reg) const { return program_.registers[reg].type.type; }
    Reg root(Reg reg) const { return program_.registers[reg].root; }
    bool equal(const Dim& a, const Dim& b) const { return program_.env.eq(a, b) == types::Truth::kTrue; }
    bool whole_axis(const Inst& inst, Reg reg) const {
        return ops::rules::normal_axis(inst.attrs.integer("axis"), type(reg).rank()) == 0;
    }

    // The instruction of the block before `end` that makes `reg`; none: another block, an argument or a weight.
    std::optional<std::size_t> maker(Reg reg, std::size_t end) const {
        for (std::size_t at = end; at-- > 0;) {
            if (std::ranges::count(block_->insts[at].results, reg) != 0) return at;
        }
        return std::nullopt;
    }
    // Whether `reg` has its value where instruction `at` stands.
    bool is_there(Reg reg, std::size_t at) const {
        const auto made = maker(reg, block_->insts.size());
        return !made || *made < at;
    }
    bool writes_between(std::size_t from, std::size_t to) const {
        return std::any_of(block_->insts.begin() + static_cast<std::ptrdiff_t>(from),
                           block_->insts.begin() + static_cast<std::ptrdiff_t>(to), [](const Inst& inst) {
                               return inst.kind == InstKind::kOp && inst.op->effects.value != ops::Effects::kPure;
                           });
    }
    // Whether instruction `user` of the block alone reads the memory of `memory`; views of it read nothing.
    bool only_user(Reg memory, const Inst& user) const {
        bool only = true;
        for (Block& block : program_.blocks) {
            for (const Inst& inst : block.insts) {
                const bool view = !inst.results.empty() && root(inst.results[0]) == memory;
                for (Reg r : inst.operands) {
                    if (r != kNoReg && root(r) == memory && !view && &inst != &user) only = false;
                }
            }
            for_each_terminator_reg(program_, block, [&](Reg& r) { only = only && root(r) != memory; });
        }
        return only;
    }

    // x[nonzero(mask)[:, 0]] is x[mask]: no array of places.
    bool select_by_mask(std::size_t at) {
        const Inst& take = block_->insts[at];
        if (!is_op(take, "take") && !is_op(take, "index_select")) return false;
        const Reg x = take.operands[0], places = take.operands[1];
        if (!whole_axis(take, x) || type(places).rank() != 1) return false;
        const auto made = maker(root(places), at);
        if (!made || !is_op(block_->insts[*made], "nonzero")) return false;
        const Inst& nonzero = block_->insts[*made];
        const Reg mask = nonzero.operands[0], rows = nonzero.results[0];
        if (type(mask).dtype != DType::kBool || type(mask).rank() != 1 || type(x).rank() < 1) return false;
        const bool column = type(places).offset.is_constant(0) &&
                            equal(type(places).strides[0], type(rows).strides[0]) &&
                            equal(type(places).sizes[0], type(rows).sizes[0]);
        if (!column || !equal(type(x).sizes[0], type(mask).sizes[0])) return false;
        if (!is_there(x, *made) || !is_there(root(x), *made) || writes_between(*made, at)) return false;
        if (!only_user(rows, take)) return false;

        Inst select;
        select.op = ops::find_op("mask_select");
        select.attrs = *ops::check_attrs(*select.op, {});
        select.operands = {x, mask};
        select.results = take.results;
        select.dtypes = {{type(x).dtype, DType::kBool}, {type(x).dtype}};
        select.sizes = nonzero.sizes;
        select.site = take.site;
        select.pc = take.pc;
        select.line = take.line;
        program_.events.push_back("a selection by the places of a mask is one by the mask");
        block_->insts[at] = std::move(select);
        std::swap(block_->insts[*made], block_->insts[at]);
        // What stood there goes, with the views of its result.
        std::erase_if(block_->insts,
                      [&](const Inst& inst) { return !inst.results.empty() && root(inst.results[0]) == rows; });
        return true;
    }

    // The sum (product) of x[mask] is that of where(mask, x, 0) (1): nothing is selected. Returns how many instructions
    // it has added.
    std::size_t sum_where(std::size_t at) {
        const bool sum = is_op(block_->insts[at], "reduce_sum");
        if (!sum && !is_op(block_->insts[at], "reduce_prod")) return 0;
        const Reg selected = block_->insts[at].operands[0];
        const auto made = maker(selected, at);
        if (!made || !is_op(block_->insts[*made], "mask_select")) return 0;
        const Reg x = block_->insts[*made].operands[0], mask = block_->insts[*made].operands[1];
        const types::Attrs& attrs = block_->insts[at].attrs;
        if (type(x).rank() != type(mask).rank() || (type(x).rank() != 1 && attrs.flag("keepdim"))) return 0;
        if (ops::rules::reduced_axes(attrs, 1).empty()) return 0;
        if (writes_between(*made, at) || !only_user(selected, block_->insts[at])) return 0;

        Inst constant = like(block_->insts[at]);
        constant.kind = InstKind::kConst;
        constant.constant = ConstScalar{std::int64_t{sum ? 0 : 1}};
        ops::ArgType number;
        number.type.dtype = DType::kI64;
        number.strength = types::Strength::kScalar;
        Inst where = like(block_->insts[at]);
        where.op = ops::find_op("where");
        where.attrs = *ops::check_attrs(*where.op, {});
        const ops::ArgType args[] = {program_.registers[mask].type, program_.registers[x].type, number};
        std::vector<ops::Requirement> requirements;
        auto inferred = ops::infer(*where.op, args, where.attrs, program_.env, requirements, promotion_, false);
        if (!inferred || !requirements.empty() || inferred->results[0].type.dtype != type(x).dtype) return 0;

        constant.results = {add(std::move(number))};
        where.operands = {mask, x, constant.results[0]};
        where.dtypes = std::move(inferred->dtypes);
        ops::ArgType chosen;
        chosen.type = std::move(inferred->results[0].type);
        where.results = {add(std::move(chosen))};
        Inst& reduce = block_->insts[at];
        reduce.operands[0] = where.results[0];
        if (type(x).rank() != 1) reduce.attrs.set("axes", std::monostate{});
        program_.events.push_back("a sum of selected elements selects nothing");
        const auto place = block_->insts.begin() + static_cast<std::ptrdiff_t>(at);
        block_->insts.insert(place, {std::move(constant), std::move(where)});
        return 2;
    }

    static Inst like(const Inst& inst) {
        Inst made;
        made.site = inst.site;
        made.pc = inst.pc;
        made.line = inst.line;
        return made;
    }
    Reg add(ops::ArgType type) {
        Register reg;
        reg.type = std::move(type);
        reg.root = static_cast<Reg>(program_.registers.size());
        program_.registers.push_back(reg);
        return reg.root;
    }

    Program& program_;
    types::Promotion promotion_;
    Block* block_ = nullptr;
};

}  // namespace

void simplify_selections(Program& program, types::Promotion promotion) { Selections(program, promotion).run(); }

}  // namespace flexor::transform
