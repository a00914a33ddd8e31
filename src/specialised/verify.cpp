#include <set>

#include "specialised/program.h"
#include "support/diagnostic.h"

namespace flexor::specialised {

namespace {

// Walks blocks with the registers and symbols that every path to them defines.
class Verifier {
public:
    explicit Verifier(const Program& program) : program_(program) {}

    Expected<void> run() {
        if (program_.blocks.empty()) return bug("a program without blocks");
        if (!program_.blocks[0].params.empty() || !program_.blocks[0].symbols.empty())
            return bug("the entry block has parameters");
        for (const ops::Requirement& g : program_.guards) {
            if (g.kind != ops::Requirement::Kind::kGuard) return bug("a check among the guards");
            for (const Dim* d : {&g.a, &g.b}) FLEXOR_TRY(entry_symbols_only(*d));
        }
        for (const Block& block : program_.blocks) {
            for (Reg r : block.params) FLEXOR_TRY(define(r));
            for (const Inst& inst : block.insts) {
                for (Reg r : inst.results) FLEXOR_TRY(define(r));
            }
        }
        // Definitions that hold on every path: a forward fixed point over the blocks.
        in_.assign(program_.blocks.size(), std::nullopt);
        in_[0].emplace();
        bool changed = true;
        while (changed) {
            changed = false;
            for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
                if (!in_[b]) continue;
                std::set<Reg> defined = *in_[b];
                const Block& block = program_.blocks[b];
                defined.insert(block.params.begin(), block.params.end());
                for (const Inst& inst : block.insts) defined.insert(inst.results.begin(), inst.results.end());
                for (const Target& t : block.terminator.targets) changed = flow(t.block, defined) || changed;
            }
        }
        for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
            if (in_[b]) FLEXOR_TRY(check_block(b));
        }
        return {};
    }

private:
    static Diagnostic bug(std::string text) { return Diagnostic(DiagnosticId::kInternalError).found(std::move(text)); }

    Expected<void> entry_symbols_only(const Dim& d) const {
        std::vector<SymbolId> symbols;
        d.collect_symbols(symbols);
        for (SymbolId s : symbols) {
            bool found = false;
            for (const EntrySymbol& e : program_.entry_symbols) found = found || e.symbol == s;
            if (!found) return bug("a guard on a symbol that the call frame does not hold");
        }
        return {};
    }

    Expected<void> define(Reg r) {
        if (r >= program_.registers.size()) return bug("a register that does not exist");
        if (!defined_.insert(r).second) return bug("a register defined twice: %" + std::to_string(r));
        return {};
    }

    bool flow(std::uint32_t to, const std::set<Reg>& defined) {
        if (to >= program_.blocks.size()) return false;
        if (!in_[to]) {
            in_[to] = defined;
            return true;
        }
        std::set<Reg> both;
        for (Reg r : *in_[to]) {
            if (defined.count(r) != 0) both.insert(r);
        }
        if (both.size() == in_[to]->size()) return false;
        in_[to] = std::move(both);
        return true;
    }

    Expected<void> use(const std::set<Reg>& defined, Reg r) const {
        if (r == kNoReg) return {};
        if (defined.count(r) == 0) return bug("a register used before its definition: %" + std::to_string(r));
        const Reg root = program_.registers[r].root;
        if (root != r && defined.count(root) == 0)
            return bug("a view of a register that is not defined: %" + std::to_string(r));
        return {};
    }

    Expected<void> use_live(const std::set<Reg>& defined, const LiveValue& v) const {
        if (v.kind == LiveValue::Kind::kReg) FLEXOR_TRY(use(defined, v.reg));
        for (const LiveValue& e : v.elements) FLEXOR_TRY(use_live(defined, e));
        return {};
    }

    Expected<void> check_block(std::size_t b) const {
        const Block& block = program_.blocks[b];
        std::set<Reg> defined = *in_[b];
        defined.insert(block.params.begin(), block.params.end());
        for (const Inst& inst : block.insts) {
            for (Reg r : inst.operands) FLEXOR_TRY(use(defined, r));
            defined.insert(inst.results.begin(), inst.results.end());
            if (inst.kind == InstKind::kOp && inst.op == nullptr) return bug("an op instruction without an op");
            if (inst.kind == InstKind::kCheck && !inst.requirement) return bug("a check without a requirement");
            if (inst.kind == InstKind::kReal) FLEXOR_TRY(check_real(inst));
        }
        const Terminator& t = block.terminator;
        if (t.kind == Terminator::Kind::kBranch && t.condition.reg != kNoReg) FLEXOR_TRY(use(defined, t.condition.reg));
        for (const Target& target : t.targets) {
            if (target.block >= program_.blocks.size()) return bug("a jump to a block that does not exist");
            const Block& to = program_.blocks[target.block];
            if (target.args.size() != to.params.size() || target.symbols.size() != to.symbols.size()) {
                return bug("a jump with another number of arguments than its block takes");
            }
            for (std::size_t i = 0; i < target.args.size(); ++i) {
                FLEXOR_TRY(use(defined, target.args[i]));
                const types::TensorType& from = program_.registers[target.args[i]].type.type;
                const types::TensorType& param = program_.registers[to.params[i]].type.type;
                if (from.dtype != param.dtype || from.rank() != param.rank())
                    return bug("a block argument of another type");
            }
        }
        for (const LiveValue& v : t.values) FLEXOR_TRY(use_live(defined, v));
        if (t.kind == Terminator::Kind::kExit) {
            if (t.exit >= program_.exits.size()) return bug("an exit that does not exist");
            for (const LiveValue& v : program_.exits[t.exit].locals) FLEXOR_TRY(use_live(defined, v));
            for (const LiveValue& v : program_.exits[t.exit].stack) FLEXOR_TRY(use_live(defined, v));
        }
        return {};
    }

    Expected<void> check_real(const Inst& inst) const {
        const std::size_t count = inst.real == RealOp::kOfInt ? 0 : inst.real == RealOp::kNeg ? 1 : 2;
        if (inst.operands.size() != count || inst.results.size() != (is_comparison(inst.real) ? 0u : 1u))
            return bug("float arithmetic with another number of operands or results");
        std::vector<Reg> all = inst.operands;
        all.insert(all.end(), inst.results.begin(), inst.results.end());
        for (Reg r : all) {
            const ops::ArgType& t = program_.registers[r].type;
            if (t.strength != types::Strength::kScalar || t.type.dtype != DType::kF64)
                return bug("float arithmetic on a register that is no float");
        }
        return {};
    }

    const Program& program_;
    std::set<Reg> defined_;
    std::vector<std::optional<std::set<Reg>>> in_;
};

}  // namespace

Expected<void> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace flexor::specialised
