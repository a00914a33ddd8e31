#include <algorithm>
#include <set>

#include "specialised/program.h"
#include "support/diagnostic.h"
#include "support/expected.h"

namespace flexor::specialised {

namespace {

#define FLEXOR_PROMISE(promise, condition, text)        \
    do {                                                \
        if (!(condition)) return broken(promise, text); \
    } while (false)

// What is known to be defined where control stands.
struct Defined {
    std::set<Reg> registers;
    std::set<SymbolId> symbols;

    // Keeps what both know; true if something was lost.
    bool meet(const Defined& other) {
        return std::erase_if(registers, [&](Reg r) { return other.registers.count(r) == 0; }) +
                   std::erase_if(symbols, [&](SymbolId s) { return other.symbols.count(s) == 0; }) !=
               0;
    }
};

class Verifier {
public:
    explicit Verifier(const Program& program) : program_(program) {}

    Status run() {
        FLEXOR_PROMISE("V2", !program_.blocks.empty(), "a program without blocks");
        FLEXOR_PROMISE("V2", program_.blocks[0].params.empty() && program_.blocks[0].symbols.empty(),
                       "an entry block with parameters");
        for (std::size_t r = 0; r < program_.registers.size(); ++r) {
            const Reg root = program_.registers[r].root;
            FLEXOR_PROMISE("V5", root < program_.registers.size() && program_.registers[root].root == root,
                           "a view of what is no root: " + name(static_cast<Reg>(r)));
        }
        for (const EntrySymbol& entry : program_.entry_symbols) FLEXOR_TRY(define_symbol(entry.symbol));
        entry_ = symbols_;
        for (const ops::Requirement& guard : program_.guards) {
            FLEXOR_PROMISE("V6", guard.kind == ops::Requirement::Kind::kGuard, "a check among the guards");
            for (const Dim* d : {&guard.a, &guard.b})
                FLEXOR_PROMISE("V6", unknown(*d, entry_).empty(), "a guard on " + unknown(*d, entry_));
        }
        for (const Block& block : program_.blocks) {
            for (Reg r : block.params) FLEXOR_TRY(define(r));
            for (SymbolId s : block.symbols) FLEXOR_TRY(define_symbol(s));
            for (const Inst& inst : block.insts) {
                for (Reg r : inst.results) FLEXOR_TRY(define(r));
                for (SymbolId s : defined_symbols(inst)) FLEXOR_TRY(define_symbol(s));
            }
        }
        // Definitions that hold on every path: a forward fixed point over the blocks.
        in_.assign(program_.blocks.size(), std::nullopt);
        in_[0] = Defined{{}, entry_};
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
                if (!in_[b]) continue;
                const Block& block = program_.blocks[b];
                Defined out = *in_[b];
                enter(block, out);
                for (const Inst& inst : block.insts) leave(inst, out);
                for (const Target& target : block.terminator.targets) changed = flow(target.block, out) || changed;
            }
        }
        for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
            if (in_[b]) FLEXOR_TRY(check_block(program_.blocks[b], *in_[b]));
        }
        return {};
    }

private:
    static Diagnostic broken(const char* promise, std::string found) {
        return Diagnostic(DiagnosticId::kInternalError)
            .operand("specialised program")
            .constraint(promise)
            .found(std::move(found));
    }
    static std::string name(Reg r) { return "%" + std::to_string(r); }
    std::string name_of_symbol(SymbolId s) const {
        return s < program_.env.symbol_count() ? program_.env.name(s) : "symbol " + std::to_string(s);
    }

    // The first symbol of `d` that is not among `known`, or "".
    std::string unknown(const Dim& d, const std::set<SymbolId>& known) const {
        if (d.is_constant()) return "";
        std::vector<SymbolId> symbols;
        d.collect_symbols(symbols);
        const auto found = std::ranges::find_if(symbols, [&](SymbolId s) { return known.count(s) == 0; });
        return found == symbols.end() ? "" : name_of_symbol(*found);
    }

    Status define(Reg r) {
        FLEXOR_PROMISE("V1", r < program_.registers.size(), "a register that does not exist: " + name(r));
        FLEXOR_PROMISE("V1", registers_.insert(r).second, "a register that is defined twice: " + name(r));
        return {};
    }
    Status define_symbol(SymbolId s) {
        FLEXOR_PROMISE("V3", s < program_.env.symbol_count(), "a symbol that does not exist: " + std::to_string(s));
        FLEXOR_PROMISE("V3", symbols_.insert(s).second, "a symbol that is defined twice: " + name_of_symbol(s));
        return {};
    }

    static void enter(const Block& block, Defined& defined) {
        defined.registers.insert(block.params.begin(), block.params.end());
        defined.symbols.insert(block.symbols.begin(), block.symbols.end());
    }
    static void leave(const Inst& inst, Defined& defined) {
        defined.registers.insert(inst.results.begin(), inst.results.end());
        const std::span<const SymbolId> symbols = defined_symbols(inst);
        defined.symbols.insert(symbols.begin(), symbols.end());
    }
    bool flow(std::uint32_t to, const Defined& defined) {
        if (to >= in_.size()) return false;  // refused where the jump is checked
        if (in_[to]) return in_[to]->meet(defined);
        in_[to] = defined;
        return true;
    }

    Status use(Reg r, const Defined& defined) const {
        if (r == kNoReg) return {};
        FLEXOR_PROMISE("V1", defined.registers.count(r) != 0, "a register used before its definition: " + name(r));
        FLEXOR_PROMISE("V5", defined.registers.count(program_.registers[r].root) != 0,
                       "a view whose root is not defined: " + name(r));
        return {};
    }
    Status use(const Dim& d, const Defined& defined, std::string_view what) const {
        if (const std::string symbol = unknown(d, defined.symbols); !symbol.empty())
            return broken("V3", std::string(what) + " over " + symbol + ", which is not defined there");
        return {};
    }
    Status use(const ops::Requirement& requirement, const Defined& defined) const {
        FLEXOR_TRY(use(requirement.a, defined, "a check"));
        return use(requirement.b, defined, "a check");
    }
    Status use(const LiveValue& value, const Defined& defined) const {
        switch (value.kind) {
            case LiveValue::Kind::kReg:
                FLEXOR_PROMISE("V1", value.reg != kNoReg, "a live value without its register");
                FLEXOR_TRY(use(value.reg, defined));
                break;
            case LiveValue::Kind::kRunList:
                FLEXOR_PROMISE("V1", value.reg < program_.registers.size() && program_.registers[value.reg].list,
                               "a live list without its register");
                FLEXOR_TRY(use(value.reg, defined));
                FLEXOR_TRY(use(value.integer, defined, "the length of a list"));
                break;
            case LiveValue::Kind::kInt:
            case LiveValue::Kind::kBool: FLEXOR_TRY(use(value.integer, defined, "a live value")); break;
            default: break;
        }
        for (const LiveValue& element : value.elements) FLEXOR_TRY(use(element, defined));
        return {};
    }

    Status check_type(Reg r, const Defined& defined) const {
        const types::TensorType& type = program_.registers[r].type.type;
        for (const Dim& d : type.sizes) FLEXOR_TRY(use(d, defined, "a size of " + name(r)));
        for (const Dim& d : type.strides) FLEXOR_TRY(use(d, defined, "a stride of " + name(r)));
        return use(type.offset, defined, "the offset of " + name(r));
    }

    Status check_attrs(const Inst& inst, const Defined& defined) const {
        const std::string op(inst.op->name.value);
        for (const auto& [attribute, value] : inst.attrs.items()) {
            const std::string what = "attribute " + attribute + " of " + op;
            FLEXOR_PROMISE("V4", !std::holds_alternative<types::OperandRef>(value), what + " names an operand");
            if (const auto* dim = std::get_if<Dim>(&value)) FLEXOR_TRY(use(*dim, defined, what));
            if (const auto* list = std::get_if<types::DimList>(&value)) {
                for (const Dim& d : *list) FLEXOR_TRY(use(d, defined, what));
            }
        }
        const auto checked = ops::check_attrs(*inst.op, inst.attrs);
        FLEXOR_PROMISE("V4", checked, "attributes of " + op + ": " + checked.error().to_string());
        FLEXOR_PROMISE("V4", *checked == inst.attrs, "attributes of " + op + " that are not complete");
        return {};
    }

    Status check_parts(const Inst& inst) const {
        const auto shape = [&](std::size_t operands, std::size_t results) {
            return inst.operands.size() == operands && inst.results.size() == results;
        };
        switch (inst.kind) {
            case InstKind::kOp:
                FLEXOR_PROMISE("V7", inst.op != nullptr, "an op instruction without an op");
                FLEXOR_PROMISE("V7", inst.dtypes.results.size() == inst.results.size(),
                               "an op with another number of results than its dtypes");
                FLEXOR_PROMISE("V7", inst.sizes.empty() || inst.op->data_sizes != nullptr,
                               "sizes made by data of an op that makes none");
                FLEXOR_PROMISE("V7", !inst.whole || inst.op->effects.value == ops::Effects::kPure,
                               "an op with effects on whole tensors");
                return {};
            case InstKind::kArgument:
            case InstKind::kWeight:
                FLEXOR_PROMISE("V7", shape(0, 1), "an argument or weight of another form");
                return {};
            case InstKind::kConst:
                FLEXOR_PROMISE("V7", shape(0, 1) && inst.constant, "a constant without its value");
                return {};
            case InstKind::kDimScalar: FLEXOR_PROMISE("V7", shape(0, 1), "a dim scalar of another form"); return {};
            case InstKind::kReadInt:
                FLEXOR_PROMISE("V7", shape(1, 0), "a read of an integer of another form");
                return {};
            case InstKind::kReadFloat:
                FLEXOR_PROMISE("V7", shape(1, 1), "a read of a float of another form");
                return {};
            case InstKind::kReal: return check_real(inst);
            case InstKind::kCheck:
                FLEXOR_PROMISE("V7", shape(0, 0) && inst.requirement, "a check without a requirement");
                return {};
            case InstKind::kAssert:
                FLEXOR_PROMISE("V7", shape(inst.requirement ? 0 : 1, 0), "an assertion without one condition");
                return {};
            case InstKind::kListOf:
            case InstKind::kListAppend:
            case InstKind::kListGet:
            case InstKind::kListQuery:
            case InstKind::kListJoin: return check_list(inst);
        }
        return {};
    }

    // Whether the register may stand where a list of this type is expected, or a tensor if none is.
    bool is_list_as(Reg r, const std::optional<ElementType>& wanted) const {
        const std::optional<ElementType>& list = program_.registers[r].list;
        if (!list || !wanted) return !list && !wanted;
        return list->dtype == wanted->dtype && list->rank == wanted->rank && (list->contiguous || !wanted->contiguous);
    }

    Status check_list(const Inst& inst) const {
        const bool makes = inst.kind == InstKind::kListOf || inst.kind == InstKind::kListAppend;
        const std::size_t lists = inst.kind == InstKind::kListOf ? 0 : 1;
        FLEXOR_PROMISE("V7", inst.results.size() == (inst.kind == InstKind::kListQuery ? 0 : 1),
                       "an instruction of lists with another number of results");
        FLEXOR_PROMISE("V7", inst.kind == InstKind::kListOf || inst.operands.size() == (makes ? std::size_t{2} : lists),
                       "an instruction of lists with another number of operands");
        const auto exists = [&](Reg r) { return r < program_.registers.size(); };
        FLEXOR_PROMISE("V1", std::ranges::all_of(inst.operands, exists), "an instruction of lists without an operand");
        if (lists == 1)
            FLEXOR_PROMISE("V7", program_.registers[inst.operands[0]].list, "an instruction of lists without a list");
        if (!makes) {
            FLEXOR_PROMISE("V7", inst.results.empty() || !program_.registers[inst.results[0]].list,
                           "a list in the place of a tensor");
            return {};
        }
        const std::optional<ElementType>& type = program_.registers[inst.results[0]].list;
        FLEXOR_PROMISE("V7", type, "an instruction of lists that gives no list");
        if (lists == 1) FLEXOR_PROMISE("V7", is_list_as(inst.operands[0], type), "a list of another type");
        for (std::size_t i = lists; i < inst.operands.size(); ++i) {
            const Register& element = program_.registers[inst.operands[i]];
            FLEXOR_PROMISE("V7", !element.list && element.type.strength != types::Strength::kScalar,
                           "a list of something else than tensors");
            FLEXOR_PROMISE("V7", element.type.type.dtype == type->dtype && element.type.type.rank() == type->rank,
                           "an element of another type than its list");
        }
        return {};
    }

    Status check_real(const Inst& inst) const {
        const std::size_t count = inst.real == RealOp::kOfInt ? 0 : inst.real == RealOp::kNeg ? 1 : 2;
        FLEXOR_PROMISE("V7", inst.operands.size() == count && inst.results.size() == (is_comparison(inst.real) ? 0 : 1),
                       "float arithmetic with another number of operands or results");
        for (const std::vector<Reg>* registers : {&inst.operands, &inst.results}) {
            for (Reg r : *registers) {
                FLEXOR_PROMISE("V1", r < program_.registers.size(), "float arithmetic without an operand");
                const ops::ArgType& type = program_.registers[r].type;
                FLEXOR_PROMISE("V7", type.strength == types::Strength::kScalar && type.type.dtype == DType::kF64,
                               "float arithmetic on a register that is no float");
            }
        }
        return {};
    }

    Status check_terminator(const Terminator& terminator, const Defined& defined) const {
        using Kind = Terminator::Kind;
        const std::size_t targets = terminator.kind == Kind::kBranch ? 2 : terminator.kind == Kind::kJump ? 1 : 0;
        FLEXOR_PROMISE("V2", terminator.targets.size() == targets, "a terminator with another number of targets");
        if (terminator.kind == Kind::kBranch) {
            const Condition& condition = terminator.condition;
            FLEXOR_PROMISE("V2", (condition.reg == kNoReg) == condition.relation.has_value(),
                           "a branch without one condition");
            FLEXOR_TRY(use(condition.reg, defined));
            if (condition.relation) FLEXOR_TRY(use(*condition.relation, defined));
        }
        for (const Target& target : terminator.targets) {
            FLEXOR_PROMISE("V2", target.block < program_.blocks.size(), "a jump to a block that does not exist");
            const Block& to = program_.blocks[target.block];
            FLEXOR_PROMISE("V2", target.args.size() == to.params.size() && target.symbols.size() == to.symbols.size(),
                           "a jump with another number of arguments than its block takes");
            for (std::size_t i = 0; i < target.args.size(); ++i) {
                FLEXOR_PROMISE("V1", target.args[i] != kNoReg, "a jump without an argument");
                FLEXOR_TRY(use(target.args[i], defined));
                const types::TensorType& from = program_.registers[target.args[i]].type.type;
                const types::TensorType& param = program_.registers[to.params[i]].type.type;
                FLEXOR_PROMISE("V2",
                               from.dtype == param.dtype && from.rank() == param.rank() &&
                                   is_list_as(target.args[i], program_.registers[to.params[i]].list),
                               "a jump argument of another type: " + name(target.args[i]));
            }
            for (const Dim& d : target.symbols) FLEXOR_TRY(use(d, defined, "a jump argument"));
        }
        for (const LiveValue& value : terminator.values) FLEXOR_TRY(use(value, defined));
        if (terminator.kind == Kind::kExit) {
            FLEXOR_PROMISE("V2", terminator.exit < program_.exits.size(), "an exit that does not exist");
            const Exit& exit = program_.exits[terminator.exit];
            for (const LiveValue& value : exit.locals) FLEXOR_TRY(use(value, defined));
            for (const LiveValue& value : exit.stack) FLEXOR_TRY(use(value, defined));
        }
        return {};
    }

    Status check_block(const Block& block, Defined defined) const {
        enter(block, defined);
        for (Reg r : block.params) FLEXOR_TRY(check_type(r, defined));
        for (const Inst& inst : block.insts) {
            FLEXOR_TRY(check_parts(inst));
            for (Reg r : inst.operands) FLEXOR_TRY(use(r, defined));
            FLEXOR_TRY(use(inst.dim, defined, "a dim scalar"));
            if (inst.requirement) FLEXOR_TRY(use(*inst.requirement, defined));
            if (inst.kind == InstKind::kOp) FLEXOR_TRY(check_attrs(inst, defined));
            leave(inst, defined);
            for (Reg r : inst.results) FLEXOR_TRY(check_type(r, defined));
        }
        return check_terminator(block.terminator, defined);
    }

    const Program& program_;
    std::set<Reg> registers_;     // defined anywhere
    std::set<SymbolId> symbols_;  // likewise
    std::set<SymbolId> entry_;
    std::vector<std::optional<Defined>> in_;
};

}  // namespace

Expected<void> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace flexor::specialised
