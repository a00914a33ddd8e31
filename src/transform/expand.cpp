#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "specialised/alias.h"
#include "specialised/visit.h"
#include "support/diagnostic.h"
#include "support/hash.h"
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

namespace {

class Expander final : public ops::GraphBuilder {
public:
    Expander(Program& program, types::Promotion promotion) : program_(program), promotion_(promotion) {}

    Expected<void> run(std::vector<types::OpSite>* refused) {
        // Memory that is handed out or written is nobody else's.
        owned_.assign(program_.registers.size(), false);
        for (Block& block : program_.blocks) {
            for_each_terminator_reg(program_, block, [&](Reg& r) { owned_[program_.registers[r].root] = true; });
            for (const Inst& inst : block.insts) {
                if (inst.kind == InstKind::kOp && inst.op->effects.value == ops::Effects::kWritesFirst)
                    owned_[program_.registers[inst.operands[0]].root] = true;
                if (inst.kind == InstKind::kListOf || inst.kind == InstKind::kListAppend) {
                    for (Reg r : inst.operands) owned_[program_.registers[r].root] = true;
                }
            }
        }
        for (Block& block : program_.blocks) {
            std::vector<Inst> old = std::move(block.insts);
            out_.clear();
            shared_.clear();
            for (Inst& inst : old) {
                for (Reg& r : inst.operands) r = resolve(r);
                const types::OpSite site = inst.site;
                place(std::move(inst));
                if (!error_) continue;
                refused->push_back(site);
                return std::move(*error_);
            }
            block.insts = std::move(out_);
        }
        // Terminators may name registers that a composite passed through.
        for (Block& block : program_.blocks) {
            for_each_terminator_reg(program_, block, [&](Reg& r) { r = resolve(r); });
        }
        for (Register& r : program_.registers) {
            // A value of its own may have become a view of another.
            for (Reg root = resolve(r.root); root != r.root; root = resolve(program_.registers[r.root].root))
                r.root = root;
        }
        return {};
    }

    ops::GraphValue op(std::string_view name, std::span<const ops::GraphValue> args, types::Attrs attrs) override {
        static const ops::GraphValue kNothing = 0;
        if (error_) return kNothing;
        const ops::OpDef* definition = ops::find_op(name);
        if (definition == nullptr) return fail(Diagnostic(DiagnosticId::kUnknownOp).op(std::string(name))), kNothing;
        auto checked = ops::check_attrs(*definition, attrs);
        if (!checked) return fail(std::move(checked).error()), kNothing;
        Inst inst;
        inst.op = definition;
        inst.attrs = std::move(*checked);
        inst.site = source_->site;
        inst.pc = source_->pc;
        inst.line = source_->line;
        std::vector<ops::ArgType> types;
        for (ops::GraphValue v : args) {
            const Reg r = v == kNone ? kNoReg : resolve(v);
            inst.operands.push_back(r);
            types.push_back(type(r == kNoReg ? kNone : r));
        }
        const auto& specs = definition->operands.value;
        for (std::size_t i = types.size(); i < specs.size() && specs[i].kind == ops::OperandKind::kOptionalTensor;
             ++i) {
            inst.operands.push_back(kNoReg);
            types.push_back(type(kNone));
        }
        std::vector<ops::Requirement> requirements;
        auto inferred = ops::infer(*definition, types, inst.attrs, program_.env, requirements, promotion_, false);
        if (!inferred) return fail(std::move(inferred).error()), kNothing;
        for (const ops::Requirement& r : requirements) {
            if (r.kind == ops::Requirement::Kind::kGuard) {
                return fail(Diagnostic(DiagnosticId::kOpNotCompiled)
                                .op(std::string(name))
                                .found("a guard inside a composite")),
                       kNothing;
            }
            // A composite states its own constraints; its parts repeat them.
            Inst check;
            check.kind = InstKind::kCheck;
            check.op = source_->op;
            check.requirement = r;
            check.pc = source_->pc;
            check.line = source_->line;
            out_.push_back(std::move(check));
        }
        inst.dtypes = std::move(inferred->dtypes);
        for (ops::ResultType& result : inferred->results) {
            Register reg;
            reg.type.type = std::move(result.type);
            reg.type.strength = reg.type.type.rank() == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
            const Reg id = static_cast<Reg>(program_.registers.size());
            reg.root = result.view_of >= 0
                           ? program_.registers[inst.operands[static_cast<std::size_t>(result.view_of)]].root
                           : id;
            program_.registers.push_back(std::move(reg));
            inst.results.push_back(id);
        }
        const Reg first = inst.results[0];
        ++depth_;
        place(std::move(inst));
        --depth_;
        return error_ ? kNothing : resolve(first);
    }

    ops::GraphValue scalar(double value) override {
        Inst inst;
        inst.kind = InstKind::kConst;
        inst.constant = ConstScalar{value};
        return leaf(std::move(inst), DType::kF64);
    }

    ops::GraphValue dim(const Dim& value) override {
        Inst inst;
        const Dim d = program_.env.simplify(value);
        if (d.is_constant()) {
            inst.kind = InstKind::kConst;
            inst.constant = ConstScalar{d.constant()};
        } else {
            inst.kind = InstKind::kDimScalar;
            inst.dim = d;
        }
        return leaf(std::move(inst), DType::kI64);
    }

    ops::GraphValue none() override { return kNone; }

    const ops::ArgType& type(ops::GraphValue value) const override {
        static const ops::ArgType kAbsent = [] {
            ops::ArgType t;
            t.present = false;
            return t;
        }();
        return value == kNone ? kAbsent : program_.registers[value].type;
    }

    DType result_dtype() const override { return composite_->dtypes.results[0]; }

private:
    static constexpr ops::GraphValue kNone = kNoReg;
    static constexpr int kMaxDepth = 32;  // composites nest a few levels; deeper is a composite that names itself

    ops::GraphValue leaf(Inst inst, DType dtype) {
        Register reg;
        reg.type.type.dtype = dtype;
        reg.type.strength = types::Strength::kScalar;
        const Reg id = static_cast<Reg>(program_.registers.size());
        reg.root = id;
        program_.registers.push_back(std::move(reg));
        inst.results = {id};
        inst.site = source_->site;
        inst.pc = source_->pc;
        inst.line = source_->line;
        place(std::move(inst));
        return resolve(id);
    }

    Reg resolve(Reg r) const {
        for (auto it = renamed_.find(r); r != kNoReg && it != renamed_.end(); it = renamed_.find(r)) r = it->second;
        return r;
    }

    void fail(Diagnostic d) {
        if (!error_) error_ = std::move(d);
    }

    // Puts an instruction into the block: expands composites, shares equal pure ones.
    void place(Inst inst) {
        if (error_) return;
        if (inst.kind == InstKind::kOp && !inst.whole) {
            if (const auto* composite = std::get_if<ops::CompositeLower>(&inst.op->lower.value))
                return expand(*composite, std::move(inst));
        }
        if (inst.kind == InstKind::kOp && std::holds_alternative<ops::WriteLower>(inst.op->lower.value)) separate(inst);
        if (share(inst)) return;
        out_.push_back(std::move(inst));
    }

    // A write reads its source as if whole before the first element is written: a source that may overlap is copied.
    void separate(Inst& write) {
        const Reg to = write.operands[0];
        const Reg from = write.operands[1];
        if (from == kNoReg || program_.registers[from].type.strength == types::Strength::kScalar) return;
        const Reg to_root = resolve(program_.registers[to].root);
        const Reg from_root = resolve(program_.registers[from].root);
        if (!specialised::may_overlap(program_, to_root, from_root)) return;
        if (to_root == from_root && program_.registers[to].type.type == program_.registers[from].type.type) return;
        const Inst* outer = source_;
        if (source_ == nullptr) source_ = &write;
        const ops::GraphValue copy = op("clone", std::span<const ops::GraphValue>(&from, 1), {});
        source_ = outer;
        write.operands[1] = copy;
    }

    void expand(ops::CompositeLower lower, Inst inst) {
        if (depth_ > kMaxDepth)
            return fail(Diagnostic(DiagnosticId::kInternalError)
                            .op(std::string(inst.op->name.value))
                            .found("a composite that contains itself"));
        const Inst* outer_source = source_;
        const Inst* outer_composite = composite_;
        if (depth_ == 0) source_ = &inst;
        composite_ = &inst;
        std::vector<ops::GraphValue> args(inst.operands.begin(), inst.operands.end());
        const auto before = static_cast<Reg>(program_.registers.size());
        const bool outer_own = own_;
        for (Reg r : inst.results) own_ = own_ || is_owned(program_.registers[r].root);
        ++depth_;
        const std::vector<ops::GraphValue> results = lower(*this, args, inst.attrs);
        --depth_;
        own_ = outer_own;
        source_ = outer_source;
        composite_ = outer_composite;
        if (error_) return;
        for (std::size_t i = 0; i < inst.results.size(); ++i) {
            const Reg declared = inst.results[i];
            const Reg made = resolve(results[i]);
            // Fresh memory takes the declared register with its strides; a view or an operand handed on replaces it.
            const bool fresh = program_.registers[made].root == made && program_.registers[declared].root == declared;
            Inst* producer = nullptr;
            for (std::size_t k = out_.size(); fresh && k-- > 0;) {
                for (Reg r : out_[k].results) {
                    if (r == made) producer = &out_[k];
                }
                if (producer != nullptr) break;
            }
            const bool pinned = is_owned(made);
            if (fresh && producer != nullptr && producer->kind == InstKind::kOp && !pinned && !is_shared(made)) {
                for (Reg& r : producer->results) {
                    if (r == made) r = declared;
                }
                renamed_[made] = declared;
            } else if (program_.registers[declared].root != declared ||
                       (!is_anothers(made, before, declared) && same_geometry(declared, made))) {
                renamed_[declared] = made;
            } else {
                // Views of the declared value name its own strides.
                Inst copy;
                copy.op = ops::find_op("clone");
                copy.operands = {made};
                copy.results = {declared};
                copy.attrs = *ops::check_attrs(*copy.op, {});
                copy.dtypes = {{program_.registers[made].type.type.dtype},
                               {program_.registers[declared].type.type.dtype}};
                copy.site = inst.site;
                copy.pc = inst.pc;
                copy.line = inst.line;
                out_.push_back(std::move(copy));
            }
        }
    }

    // Memory that was there before the composite, and that is not merely shared with an equal instruction.
    bool is_anothers(Reg made, Reg before, Reg declared) const {
        const Reg root = resolve(program_.registers[made].root);
        return root < before && (is_owned(declared) || !is_shared(root));
    }

    bool same_geometry(Reg a, Reg b) const {
        const types::TensorType& x = program_.registers[a].type.type;
        const types::TensorType& y = program_.registers[b].type.type;
        bool same = x.rank() == y.rank() && program_.env.eq(x.offset, y.offset) == types::Truth::kTrue;
        for (std::size_t i = 0; same && i < x.strides.size(); ++i)
            same = program_.env.eq(x.strides[i], y.strides[i]) == types::Truth::kTrue;
        return same;
    }

    // A register that an equal instruction may have handed out twice keeps its own strides.
    bool is_shared(Reg r) const { return reused_.count(r) != 0; }

    bool is_owned(Reg root) const { return root < owned_.size() && owned_[root]; }

    bool is_shareable_view(const Inst& inst) const {
        return program_.registers[inst.results[0]].root != inst.results[0] &&
               !is_owned(program_.registers[inst.results[0]].root);
    }

    bool share(Inst& inst) {
        const bool pure = (inst.kind == InstKind::kOp && inst.op->effects.value == ops::Effects::kPure) ||
                          inst.kind == InstKind::kConst || inst.kind == InstKind::kDimScalar;
        if (!pure) {
            if (inst.kind == InstKind::kOp) shared_.clear();  // memory may have changed
            return false;
        }
        // What an equal instruction would be replaced by has sizes of its own.
        if (!inst.sizes.empty()) return false;
        for (Reg r : inst.results) {
            if (is_owned(program_.registers[r].root)) return false;
        }
        if (own_ && inst.kind == InstKind::kOp && !is_shareable_view(inst)) return false;
        std::uint64_t h =
            support::hash_combine(static_cast<std::uint64_t>(inst.kind), reinterpret_cast<std::uintptr_t>(inst.op));
        for (Reg r : inst.operands) h = support::hash_combine(h, r);
        h = support::hash_combine(h, inst.attrs.hash());
        h = support::hash_combine(h, inst.dim.hash());
        for (auto [it, end] = shared_.equal_range(h); it != end; ++it) {
            const Inst& other = it->second;
            if (other.kind == inst.kind && other.op == inst.op && other.operands == inst.operands &&
                other.attrs == inst.attrs && other.dim == inst.dim && other.whole == inst.whole &&
                same_constant(other, inst) && other.results.size() == inst.results.size()) {
                for (std::size_t i = 0; i < inst.results.size(); ++i) {
                    renamed_[inst.results[i]] = resolve(other.results[i]);
                    reused_[resolve(other.results[i])] = true;
                }
                return true;
            }
        }
        shared_.emplace(h, inst);
        return false;
    }

    static bool same_constant(const Inst& a, const Inst& b) {
        if (a.constant.has_value() != b.constant.has_value()) return false;
        if (!a.constant) return true;
        if (a.constant->value.index() != b.constant->value.index()) return false;
        if (const auto* x = std::get_if<double>(&a.constant->value)) {
            return std::bit_cast<std::uint64_t>(*x) ==
                   std::bit_cast<std::uint64_t>(std::get<double>(b.constant->value));
        }
        return a.constant->value == b.constant->value;
    }

    Program& program_;
    types::Promotion promotion_;
    std::vector<Inst> out_;
    std::vector<bool> owned_;  // by root register
    bool own_ = false;         // a composite whose result is owned is being expanded
    std::unordered_multimap<std::uint64_t, Inst> shared_;
    std::unordered_map<Reg, Reg> renamed_;
    std::unordered_map<Reg, bool> reused_;
    const Inst* source_ = nullptr;     // the bytecode op that everything placed now comes from
    const Inst* composite_ = nullptr;  // the composite being expanded
    int depth_ = 0;
    std::optional<Diagnostic> error_;
};

}  // namespace

Expected<void> expand(Program& program, types::Promotion promotion, std::vector<types::OpSite>* refused) {
    return Expander(program, promotion).run(refused);
}

void remove_dead_code(Program& program) {
    std::vector<bool> used(program.registers.size(), false);
    std::vector<bool> used_symbols(program.env.symbol_count(), false);
    const auto use_dim = [&](const Dim& dim) {
        std::vector<types::SymbolId> symbols;
        dim.collect_symbols(symbols);
        bool changed = false;
        for (const types::SymbolId s : symbols) {
            if (!used_symbols[s]) used_symbols[s] = changed = true;
        }
        return changed;
    };
    std::vector<std::vector<bool>> kept;  // whatever becomes of its results
    for (Block& block : program.blocks) {
        for_each_terminator_reg(program, block, [&](Reg& r) { used[r] = true; });
        auto& flags = kept.emplace_back();
        for (const Inst& inst : block.insts) {
            const bool effect = inst.kind == InstKind::kOp && inst.op->effects.value != ops::Effects::kPure;
            // A division of numbers may raise; a comparison of them defines a symbol.
            const bool real = inst.kind == InstKind::kReal &&
                              (inst.real == specialised::RealOp::kDiv || specialised::is_comparison(inst.real));
            flags.push_back(effect || real || inst.kind == InstKind::kCheck || inst.kind == InstKind::kAssert ||
                            inst.kind == InstKind::kReadInt || inst.kind == InstKind::kListQuery ||
                            inst.kind == InstKind::kArgument || specialised::may_raise(program, inst));
        }
    }
    // Symbols in the types of what a program passes on between its blocks and out of it.
    for (Block& block : program.blocks) {
        for_each_terminator_dim(program, block, use_dim);
        for (Reg r : block.params) specialised::for_each_dim(program.registers[r].type.type, use_dim);
    }
    const auto needed = [&](std::size_t block, std::size_t at) {
        const Inst& inst = program.blocks[block].insts[at];
        return kept[block][at] || std::ranges::any_of(inst.results, [&](Reg r) { return used[r]; }) ||
               std::ranges::any_of(inst.sizes, [&](types::SymbolId s) { return used_symbols[s]; });
    };
    // Blocks backwards, twice the number of blocks at most: uses only grow.
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t block = program.blocks.size(); block-- > 0;) {
            const std::vector<Inst>& insts = program.blocks[block].insts;
            for (std::size_t at = insts.size(); at-- > 0;) {
                if (!needed(block, at)) continue;
                for (Reg r : insts[at].operands) {
                    if (r != kNoReg && !used[r]) used[r] = changed = true;
                }
                specialised::for_each_dim(program, insts[at], [&](const Dim& d) { changed = use_dim(d) || changed; });
            }
        }
    }
    for (std::size_t block = 0; block < program.blocks.size(); ++block) {
        std::vector<Inst> insts;
        for (std::size_t at = 0; at < program.blocks[block].insts.size(); ++at) {
            if (needed(block, at)) insts.push_back(program.blocks[block].insts[at]);
        }
        program.blocks[block].insts = std::move(insts);
    }
}

}  // namespace flexor::transform
