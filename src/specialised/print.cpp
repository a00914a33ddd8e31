#include <cctype>
#include <sstream>

#include "specialised/program.h"

namespace flexor::specialised {

namespace {

class Printer {
public:
    explicit Printer(const Program& program) : program_(program) {}

    std::string run() {
        out_ << "region " << program_.function << "@" << program_.pc << ", facts " << program_.env.facts_to_string()
             << "\n";
        for (const ops::Requirement& g : program_.guards) out_ << "  guard " << relation(g) << "\n";
        for (std::size_t b = 0; b < program_.blocks.size(); ++b) block(b);
        return out_.str();
    }

private:
    std::string dim(const Dim& d) const { return program_.env.to_string(d); }

    std::string relation(const ops::Requirement& r) const {
        std::string text = dim(r.a) + std::string(ops::spelling(r.relation)) + dim(r.b);
        if (r.or_one) text += " (or one of them 1)";
        return text;
    }

    std::string reg(Reg r) const { return r == kNoReg ? "none" : "%" + std::to_string(r); }

    std::string type(Reg r) const {
        const Register& info = program_.registers[r];
        if (info.list) {
            return "list of " + std::string(dtype_name(info.list->dtype)) + " r" + std::to_string(info.list->rank) +
                   (info.list->contiguous ? " contiguous" : "");
        }
        if (info.type.strength == types::Strength::kScalar)
            return std::string(dtype_name(info.type.type.dtype)) + " (weak)";
        std::string text = types::to_string(info.type.type, [&](SymbolId s) { return program_.env.name(s); });
        if (info.root != r) text += " view of " + reg(info.root);
        return text;
    }

    std::string live(const LiveValue& v) const {
        switch (v.kind) {
            case LiveValue::Kind::kUnset: return "unset";
            case LiveValue::Kind::kNone: return "none";
            case LiveValue::Kind::kReg: return reg(v.reg);
            case LiveValue::Kind::kRunList: return reg(v.reg) + " of " + dim(v.integer);
            case LiveValue::Kind::kInt: return dim(v.integer);
            case LiveValue::Kind::kBool: return "bool(" + dim(v.integer) + ")";
            case LiveValue::Kind::kFloat: {
                std::ostringstream text;
                text << v.real;
                return text.str();
            }
            case LiveValue::Kind::kString: return "\"" + v.text + "\"";
            case LiveValue::Kind::kFunction: return "function " + v.text;
            case LiveValue::Kind::kOpaque: return "live value " + std::to_string(v.reg);
            case LiveValue::Kind::kList: {
                std::string text = "[";
                for (std::size_t i = 0; i < v.elements.size(); ++i) text += (i == 0 ? "" : ", ") + live(v.elements[i]);
                return text + "]";
            }
        }
        return "?";
    }

    void target(const Target& t) {
        out_ << "b" << t.block;
        if (t.args.empty() && t.symbols.empty()) return;
        out_ << "(";
        bool first = true;
        for (Reg r : t.args) out_ << (first ? "" : ", ") << reg(r), first = false;
        for (const Dim& d : t.symbols) out_ << (first ? "" : ", ") << dim(d), first = false;
        out_ << ")";
    }

    static std::string upper(std::string_view name) {
        std::string text(name);
        for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        return text;
    }

    void inst(const Inst& i) {
        out_ << "  ";
        switch (i.kind) {
            case InstKind::kOp: {
                out_ << upper(i.op->name.value);
                for (std::size_t r = 0; r < i.results.size(); ++r) out_ << (r == 0 ? " " : ", ") << reg(i.results[r]);
                for (std::size_t o = 0; o < i.operands.size(); ++o) out_ << (o == 0 ? " " : ", ") << reg(i.operands[o]);
                const std::string attrs = types::to_string(i.attrs, [&](SymbolId s) { return program_.env.name(s); });
                if (!attrs.empty()) out_ << " " << attrs;
                break;
            }
            case InstKind::kArgument: out_ << "ARGUMENT " << reg(i.results[0]) << " " << i.index; break;
            case InstKind::kWeight: out_ << "WEIGHT " << reg(i.results[0]) << " " << i.index; break;
            case InstKind::kConst:
                out_ << "CONST " << reg(i.results[0]) << " ";
                std::visit([&](auto v) { out_ << v; }, i.constant->value);
                break;
            case InstKind::kDimScalar: out_ << "DIM " << reg(i.results[0]) << " " << dim(i.dim); break;
            case InstKind::kReadInt: out_ << "READ " << program_.env.name(i.symbol) << " " << reg(i.operands[0]); break;
            case InstKind::kReadFloat: out_ << "READ " << reg(i.results[0]) << " " << reg(i.operands[0]); break;
            case InstKind::kReal: real(i); break;
            case InstKind::kCheck:
                out_ << "CHECK " << relation(*i.requirement);
                if (i.op != nullptr) out_ << " (C" << i.requirement->constraint << " of " << i.op->name.value << ")";
                break;
            case InstKind::kAssert:
                out_ << "ASSERT " << (i.requirement ? relation(*i.requirement) : reg(i.operands[0])) << " \"" << i.text
                     << "\"";
                break;
            case InstKind::kListOf:
            case InstKind::kListAppend:
                out_ << (i.kind == InstKind::kListOf ? "LIST_OF " : "LIST_APPEND ") << reg(i.results[0]);
                for (Reg r : i.operands) out_ << " " << reg(r);
                break;
            case InstKind::kListGet:
                out_ << "LIST_GET " << reg(i.results[0]) << " " << reg(i.operands[0]) << "[" << dim(i.dim) << "]";
                break;
            case InstKind::kListQuery: query(i); break;
            case InstKind::kListJoin:
                out_ << "LIST_JOIN " << reg(i.results[0]) << " " << reg(i.operands[0])
                     << (i.new_axis ? " new axis=" : " axis=") << i.index;
                break;
        }
        for (std::size_t r = 0; r < i.results.size(); ++r) out_ << (r == 0 ? " : " : ", ") << type(i.results[r]);
        if (!i.results.empty() && !program_.registers[i.results[0]].name.empty()) {
            out_ << "  ; " << program_.registers[i.results[0]].name;
        }
        out_ << "\n";
    }

    void query(const Inst& i) {
        static constexpr std::array kNames = {"SIZE", "STRIDE", "TOTAL", "ALIKE"};
        const bool of_element = i.query == ListQuery::kSize || i.query == ListQuery::kStride;
        out_ << "LIST_" << kNames[static_cast<std::size_t>(i.query)] << " " << program_.env.name(i.symbol) << " "
             << reg(i.operands[0]) << (of_element ? "[" + dim(i.dim) + "]" : "") << " axis=" << i.index;
    }

    void real(const Inst& i) {
        static constexpr std::array kNames = {"OF_INT", "NEG", "ADD", "SUB", "MUL", "DIV", "EQ", "LT", "LE"};
        out_ << "REAL_" << kNames[static_cast<std::size_t>(i.real)] << " "
             << (is_comparison(i.real) ? program_.env.name(i.symbol) : reg(i.results[0]));
        if (i.real == RealOp::kOfInt) out_ << " " << dim(i.dim);
        for (Reg r : i.operands) out_ << " " << reg(r);
    }

    void block(std::size_t b) {
        const Block& block = program_.blocks[b];
        out_ << "b" << b << "(";
        bool first = true;
        for (Reg r : block.params) out_ << (first ? "" : ", ") << reg(r) << ": " << type(r), first = false;
        for (SymbolId s : block.symbols) out_ << (first ? "" : ", ") << program_.env.name(s), first = false;
        out_ << ")" << (block.loop_head ? " loop" : "") << ":\n";
        for (const Inst& i : block.insts) inst(i);
        const Terminator& t = block.terminator;
        out_ << "  ";
        switch (t.kind) {
            case Terminator::Kind::kJump:
                out_ << "jump ";
                target(t.targets[0]);
                break;
            case Terminator::Kind::kBranch:
                out_ << "branch " << (t.condition.relation ? relation(*t.condition.relation) : reg(t.condition.reg))
                     << ", ";
                target(t.targets[0]);
                out_ << ", ";
                target(t.targets[1]);
                break;
            case Terminator::Kind::kReturn:
                out_ << "return";
                for (std::size_t i = 0; i < t.values.size(); ++i) out_ << (i == 0 ? " " : ", ") << live(t.values[i]);
                break;
            case Terminator::Kind::kExit: {
                const Exit& exit = program_.exits[t.exit];
                out_ << "exit at " << exit.pc << " (" << exit.reason << ")";
                break;
            }
        }
        out_ << "\n";
    }

    const Program& program_;
    std::ostringstream out_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace flexor::specialised
