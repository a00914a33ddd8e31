#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "bytecode/text.h"
#include "bytecode/type_text.h"
#include "bytecode/weight_text.h"
#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

bool is_upper(std::string_view text) {
    return std::ranges::none_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

// What is read of one function in the first pass.
struct Body {
    std::vector<std::size_t> lines;  // token index of each line of code
    bool counted = false;            // the header states the results
    std::int32_t line = 0;
};

struct Fixup {
    std::size_t pc;
    std::string label;
    std::int32_t line;
};

class Assembler {
public:
    Assembler(const std::vector<Token>& tokens, std::string file_name, AssembleOptions options)
        : cursor_(tokens, std::move(file_name)), options_(options) {
        const std::size_t slash = cursor_.file_name().rfind('/');
        if (slash != std::string::npos) folder_ = cursor_.file_name().substr(0, slash);
        symbols_ = [this](const std::string& name) { return symbol(name, false); };
        type_symbols_.named = [this](const std::string& name) { return symbol(name, true); };
        type_symbols_.fresh = [this](std::string name) {
            while (std::ranges::find(module_.symbols, name, &SymbolDecl::name) != module_.symbols.end()) name += "_";
            module_.symbols.push_back({std::move(name), {}});
            return static_cast<types::SymbolId>(module_.symbols.size() - 1);
        };
    }

    Expected<Module> assemble() {
        FLEXOR_TRY(read_declarations());
        for (std::size_t i = 0; i < bodies_.size(); ++i) FLEXOR_TRY(read_function(i));
        return std::move(module_);
    }

private:
    Diagnostic refuse(DiagnosticId id, std::string found, std::int32_t line) const {
        return Diagnostic(id).source(cursor_.where(line)).found(std::move(found));
    }

    template <class Names>
    Diagnostic unknown(std::string_view what, const std::string& name, std::int32_t line, const Names& names) const {
        std::vector<std::string_view> candidates(names.begin(), names.end());
        return refuse(DiagnosticId::kUnknownName, std::string(what) + " " + quoted(name), line)
            .hint(support::near_miss_hint(name, candidates));
    }

    // ------------------------------------------------------------ pass 1: what the module declares

    Status read_declarations() {
        Body* body = nullptr;
        while (cursor_.peek().kind != TokenKind::kEnd) {
            if (cursor_.at_line_end()) {
                cursor_.next();
                continue;
            }
            const std::size_t start = cursor_.index();
            const Token& first = cursor_.peek();
            const std::string_view word = first.text;
            const bool of_body = first.kind != TokenKind::kDirective || word == ".local" || word == ".line";
            if (of_body) {
                if (body == nullptr) return cursor_.unexpected("a directive: code stands inside a .func");
                body->lines.push_back(start);
                cursor_.skip_line();
                continue;
            }
            cursor_.next();
            if (word == ".func") {
                FLEXOR_TRY(read_header());
                body = &bodies_.back();
            } else if (word == ".end") {
                if (body == nullptr)
                    return refuse(DiagnosticId::kUnexpectedToken, "'.end' outside a .func", first.line);
                body = nullptr;
            } else {
                FLEXOR_TRY(read_declaration(word, first.line));
            }
            FLEXOR_TRY(cursor_.expect_line_end());
        }
        return {};
    }

    Status read_declaration(std::string_view word, std::int32_t line) {
        if (word == ".symbol") return read_symbol();
        if (word == ".weight") return read_weight();
        if (word == ".const") {
            FLEXOR_ASSIGN(Constant constant, literal());
            module_.constants.push_back(std::move(constant));
            return {};
        }
        if (word == ".meta") {
            FLEXOR_ASSIGN(std::string key, cursor_.name("a key"));
            std::string value;
            if (cursor_.peek().kind == TokenKind::kString) {
                FLEXOR_ASSIGN(value, cursor_.string("a text"));
            } else {
                const std::size_t start = cursor_.index();
                while (!cursor_.at_line_end()) {
                    const bool space = cursor_.index() > start && cursor_.peek().space_before;
                    value += (space ? " " : "") + std::string(cursor_.next().text);
                }
            }
            if (!module_.metadata.emplace(key, std::move(value)).second) {
                return refuse(DiagnosticId::kDuplicateName, "metadata key " + quoted(key), line);
            }
            return {};
        }
        if (word == ".hook") {
            FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a foreign hook"));
            if (std::ranges::find(module_.hooks, name) != module_.hooks.end()) {
                return refuse(DiagnosticId::kDuplicateName, "hook " + quoted(name), line);
            }
            module_.hooks.push_back(std::move(name));
            return {};
        }
        if (word == ".promotion") {
            FLEXOR_ASSIGN(const std::string rule, cursor_.name("torch or numpy"));
            if (rule != "torch" && rule != "numpy") {
                return refuse(DiagnosticId::kBadLiteral, quoted(rule), line).expected("torch or numpy");
            }
            module_.promotion = rule == "numpy" ? types::Promotion::kNumpy : types::Promotion::kTorch;
            return {};
        }
        static constexpr std::string_view kWords[] = {".func", ".end",  ".symbol", ".weight", ".const",
                                                      ".meta", ".hook", ".local",  ".line",   ".promotion"};
        return refuse(DiagnosticId::kUnknownMnemonic, quoted(word), line).hint(support::near_miss_hint(word, kWords));
    }

    Expected<types::SymbolId> symbol(const std::string& name, bool declare) {
        const std::int32_t line = cursor_.peek().line;
        if (is_reserved_word(name)) {
            return refuse(DiagnosticId::kUnexpectedToken, "the reserved word " + quoted(name), line)
                .expected("a symbol");
        }
        const auto found = std::ranges::find(module_.symbols, name, &SymbolDecl::name);
        if (found != module_.symbols.end()) return static_cast<types::SymbolId>(found - module_.symbols.begin());
        if (!declare) {
            std::vector<std::string> names;
            for (const SymbolDecl& declared : module_.symbols) names.push_back(declared.name);
            return unknown("symbol", name, line, names);
        }
        module_.symbols.push_back({name, {}});
        return static_cast<types::SymbolId>(module_.symbols.size() - 1);
    }

    Status read_symbol() {
        const std::int32_t line = cursor_.peek().line;
        if (cursor_.peek().kind != TokenKind::kName) return cursor_.unexpected("the name of a symbol");
        const std::string name(cursor_.peek().text);
        FLEXOR_ASSIGN(const types::SymbolId id, symbol(name, true));
        cursor_.next();
        if (!declared_symbols_.insert(name).second) {
            return refuse(DiagnosticId::kDuplicateName, "symbol " + quoted(name), line);
        }
        if (!cursor_.at_name("in")) return {};
        cursor_.next();
        types::Range range;
        FLEXOR_ASSIGN(range.lo, cursor_.integer("the lower end of the range"));
        FLEXOR_TRY(cursor_.expect(".."));
        if (cursor_.at_name("inf")) {
            cursor_.next();
        } else {
            FLEXOR_ASSIGN(range.hi, cursor_.integer("the upper end of the range or inf"));
        }
        if (range.lo < 0 || range.hi < range.lo || range.hi > types::kDimInfinity) {
            return refuse(DiagnosticId::kBadSymbolRange, std::to_string(range.lo) + ".." + std::to_string(range.hi),
                          line)
                .operand(name);
        }
        module_.symbols[id].range = range;
        return {};
    }

    Status read_weight() {
        const std::int32_t line = cursor_.peek().line;
        FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a weight"));
        if (std::ranges::find(module_.weights, name, &Weight::name) != module_.weights.end()) {
            return refuse(DiagnosticId::kDuplicateName, "weight " + quoted(name), line);
        }
        FLEXOR_ASSIGN(const DType type, parse_dtype(cursor_));
        FLEXOR_TRY(cursor_.expect("["));
        std::vector<std::int64_t> sizes;
        while (!cursor_.at("]")) {
            if (sizes.size() == kMaxRank) return cursor_.unexpected("a rank of at most " + std::to_string(kMaxRank));
            FLEXOR_ASSIGN(const std::int64_t size, cursor_.integer("a size"));
            if (size < 0) return refuse(DiagnosticId::kBadLiteral, std::to_string(size), line).expected("a size");
            sizes.push_back(size);
            if (!cursor_.accept(",")) break;
        }
        FLEXOR_TRY(cursor_.expect("]"));
        FLEXOR_TRY(cursor_.expect("="));
        FLEXOR_ASSIGN(Tensor tensor, parse_weight(cursor_, type, sizes, options_.read_files ? &folder_ : nullptr,
                                                  &options_.weight_bytes));
        module_.weights.push_back({std::move(name), std::move(tensor)});
        return {};
    }

    Status read_header() {
        Function function;
        const std::int32_t line = cursor_.peek().line;
        FLEXOR_ASSIGN(function.name, cursor_.name("the name of a function"));
        if (module_.find_function(function.name) >= 0) {
            return refuse(DiagnosticId::kDuplicateName, "function " + quoted(function.name), line);
        }
        FLEXOR_TRY(cursor_.expect("("));
        while (!cursor_.at(")")) {
            FLEXOR_ASSIGN(ParamDecl param, read_param());
            if (std::ranges::find(function.locals, param.name) != function.locals.end()) {
                return refuse(DiagnosticId::kDuplicateName, "parameter " + quoted(param.name), line);
            }
            function.locals.push_back(param.name);
            function.params.push_back(std::move(param));
            if (!cursor_.accept(",")) break;
        }
        FLEXOR_TRY(cursor_.expect(")"));
        Body body;
        body.line = line;
        if (cursor_.accept("->")) {
            body.counted = true;
            if (cursor_.accept("(")) {
                while (!cursor_.at(")")) {
                    FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a result"));
                    function.result_names.push_back(std::move(name));
                    if (!cursor_.accept(",")) break;
                }
                FLEXOR_TRY(cursor_.expect(")"));
                function.result_count = static_cast<std::int32_t>(function.result_names.size());
            } else {
                FLEXOR_ASSIGN(function.result_count, count("the number of results"));
            }
        }
        module_.functions.push_back(std::move(function));
        bodies_.push_back(std::move(body));
        return {};
    }

    Expected<ParamDecl> read_param() {
        ParamDecl param;
        FLEXOR_ASSIGN(param.name, cursor_.name("a parameter"));
        if (cursor_.accept(":")) FLEXOR_TRY(parse_param_type(cursor_, type_symbols_, &param));
        return param;
    }

    // ------------------------------------------------------------ literals

    Expected<std::int32_t> count(std::string_view what) {
        const std::string where = cursor_.where();
        FLEXOR_ASSIGN(const std::int64_t value, cursor_.integer(what));
        if (value < 0 || value > 0x7FFFFFFF) {
            return Diagnostic(DiagnosticId::kBadLiteral)
                .source(where)
                .found(std::to_string(value))
                .expected(std::string(what));
        }
        return static_cast<std::int32_t>(value);
    }

    Expected<Constant> literal() {
        if (cursor_.peek().kind == TokenKind::kString) {
            FLEXOR_ASSIGN(std::string text, cursor_.string("a text"));
            return Constant(std::move(text));
        }
        if (cursor_.at_name("none")) {
            cursor_.next();
            return Constant(None{});
        }
        if (cursor_.at_name("true") || cursor_.at_name("false")) return Constant(cursor_.next().text == "true");
        if (cursor_.accept("[")) {
            std::vector<std::int64_t> list;
            while (!cursor_.at("]")) {
                FLEXOR_ASSIGN(const std::int64_t item, cursor_.integer("an integer"));
                list.push_back(item);
                if (!cursor_.accept(",")) break;
            }
            FLEXOR_TRY(cursor_.expect("]"));
            return Constant(std::move(list));
        }
        if (cursor_.peek(cursor_.at("-") ? 1 : 0).kind == TokenKind::kInt) {
            FLEXOR_ASSIGN(const std::int64_t value, cursor_.integer("a literal"));
            return Constant(value);
        }
        FLEXOR_ASSIGN(const double value, cursor_.number("a literal: number, text, true, false, none or [integers]"));
        return Constant(value);
    }

    std::int32_t intern(Constant constant) {
        auto& pool = module_.constants;
        const auto found = std::ranges::find_if(pool, [&](const Constant& c) { return same_constant(c, constant); });
        const auto index = static_cast<std::int32_t>(found - pool.begin());
        if (found == pool.end()) pool.push_back(std::move(constant));
        return index;
    }

    // ------------------------------------------------------------ pass 2: code

    Status read_function(std::size_t index) {
        function_ = &module_.functions[index];
        Body& body = bodies_[index];
        labels_.clear();
        fixups_.clear();
        outputs_.clear();
        explicit_position_ = false;
        position_ = {0, 0, cursor_.file_name()};
        for (const std::size_t line : body.lines) FLEXOR_TRY(declare_locals(line));
        for (const std::size_t line : body.lines) {
            cursor_.seek(line);
            FLEXOR_TRY(read_code_line());
            FLEXOR_TRY(cursor_.expect_line_end());
        }
        FLEXOR_TRY(finish(body));
        for (const Fixup& fixup : fixups_) {
            const auto found = labels_.find(fixup.label);
            if (found == labels_.end()) {
                std::vector<std::string_view> names;
                for (const auto& [name, pc] : labels_) names.push_back(name);
                return refuse(DiagnosticId::kUndefinedLabel, quoted(fixup.label), fixup.line)
                    .hint(support::near_miss_hint(fixup.label, names));
            }
            function_->code[fixup.pc].a = found->second;
        }
        return {};
    }

    // Stored outputs become results; a function without RETURN returns them.
    Status finish(Body& body) {
        const auto& code = function_->code;
        const auto returns = std::ranges::find(code, Opcode::kReturn, &Instruction::op);
        const auto outputs = static_cast<std::int32_t>(outputs_.size());
        if (!outputs_.empty() && returns == code.end()) {
            if (body.counted && function_->result_count != outputs) {
                return refuse(DiagnosticId::kWrongResultCount, std::to_string(outputs) + " stored outputs", body.line)
                    .function(function_->name)
                    .expected(std::to_string(function_->result_count) + " results");
            }
            for (const std::string& name : outputs_) {
                FLEXOR_ASSIGN(const std::int32_t local, find_local(name, body.line));
                emit(Opcode::kLoadLocal, local);
            }
            emit(Opcode::kReturn, outputs);
            function_->result_count = outputs;
            if (function_->result_names.empty()) function_->result_names = outputs_;
        } else if (!body.counted && returns != code.end()) {
            function_->result_count = returns->a;
        }
        return {};
    }

    // Locals are known to the whole body: a loop may read what a later line stores.
    Status declare_locals(std::size_t line) {
        cursor_.seek(line);
        if (cursor_.peek().kind == TokenKind::kInt) cursor_.next();
        if (cursor_.peek().kind == TokenKind::kDirective && cursor_.peek().text == ".local") {
            cursor_.next();
            while (!cursor_.at_line_end()) {
                const std::int32_t at = cursor_.peek().line;
                FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a local"));
                if (std::ranges::find(function_->locals, name) != function_->locals.end()) {
                    return refuse(DiagnosticId::kDuplicateName, "local " + quoted(name), at);
                }
                function_->locals.push_back(std::move(name));
                cursor_.accept(",");
            }
            return {};
        }
        if (!cursor_.at_name("STORE_LOCAL") && !cursor_.at_name("STORE_TENSOR")) return {};
        cursor_.next();
        FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a local"));
        if (std::ranges::find(function_->locals, name) == function_->locals.end()) {
            function_->locals.push_back(std::move(name));
        }
        return {};
    }

    Status read_code_line() {
        if (cursor_.peek().kind == TokenKind::kDirective) {
            if (cursor_.next().text == ".line") return read_line_directive();
            while (!cursor_.at_line_end()) cursor_.next();  // .local, read before
            return {};
        }
        const bool label = cursor_.peek().kind == TokenKind::kName && cursor_.peek(1).kind == TokenKind::kPunctuation &&
                           cursor_.peek(1).text == ":";
        if (label) {
            const Token& name = cursor_.next();
            cursor_.next();
            const auto pc = static_cast<std::int32_t>(function_->code.size());
            if (!labels_.emplace(name.text, pc).second) {
                return refuse(DiagnosticId::kDuplicateName, "label " + quoted(name.text), name.line);
            }
            if (cursor_.at_line_end()) return {};
        }
        if (cursor_.peek().kind == TokenKind::kInt) cursor_.next();
        if (cursor_.peek().kind != TokenKind::kName) return cursor_.unexpected("an instruction");
        const Token& token = cursor_.next();
        if (!explicit_position_) position_.line = token.line;
        return read_instruction(token.text, token.line);
    }

    Status read_line_directive() {
        FLEXOR_ASSIGN(const std::int32_t line, count("a line number"));
        if (!explicit_position_) position_.file.clear();
        explicit_position_ = true;
        position_.line = line;
        if (cursor_.peek().kind == TokenKind::kString) {
            FLEXOR_ASSIGN(position_.file, cursor_.string("a file name"));
        }
        return {};
    }

    void emit(Opcode op, std::int32_t a = 0, std::int32_t b = 0) {
        auto& positions = function_->positions;
        const bool same = positions.empty()
                              ? position_.line == 0
                              : positions.back().line == position_.line && positions.back().file == position_.file;
        if (!same) {
            position_.pc = static_cast<std::int32_t>(function_->code.size());
            positions.push_back(position_);
        }
        function_->code.push_back({op, a, b});
    }

    Expected<std::int32_t> find_local(const std::string& name, std::int32_t line) const {
        const auto found = std::ranges::find(function_->locals, name);
        if (found == function_->locals.end()) return unknown("local", name, line, function_->locals);
        return static_cast<std::int32_t>(found - function_->locals.begin());
    }

    Expected<std::int32_t> find_weight(const std::string& name, std::int32_t line) const {
        const auto found = std::ranges::find(module_.weights, name, &Weight::name);
        if (found != module_.weights.end()) return static_cast<std::int32_t>(found - module_.weights.begin());
        std::vector<std::string> names;
        for (const Weight& weight : module_.weights) names.push_back(weight.name);
        return unknown("weight", name, line, names);
    }

    Status read_instruction(std::string_view mnemonic, std::int32_t line) {
        if (const std::optional<Opcode> op = opcode_from_mnemonic(mnemonic)) return read_operands(*op, line);
        if (mnemonic == "LOAD_TENSOR") {
            FLEXOR_ASSIGN(const std::string name, cursor_.name("the name of a local or weight"));
            const bool weight = std::ranges::find(function_->locals, name) == function_->locals.end() &&
                                std::ranges::find(module_.weights, name, &Weight::name) != module_.weights.end();
            if (weight) {
                FLEXOR_ASSIGN(const std::int32_t index, find_weight(name, line));
                emit(Opcode::kLoadWeight, index);
            } else {
                FLEXOR_ASSIGN(const std::int32_t index, find_local(name, line));
                emit(Opcode::kLoadLocal, index);
            }
            return {};
        }
        if (mnemonic == "STORE_TENSOR") {
            FLEXOR_ASSIGN(std::string name, cursor_.name("the name of an output"));
            FLEXOR_ASSIGN(const std::int32_t index, find_local(name, line));
            emit(Opcode::kStoreLocal, index);
            if (std::ranges::find(outputs_, name) == outputs_.end()) outputs_.push_back(std::move(name));
            return {};
        }
        if (mnemonic == "CONST_SCALAR") return read_operands(Opcode::kLoadConst, line);
        if (is_upper(mnemonic)) {
            std::string name = lower(mnemonic);
            for (const std::string_view prefix : {"binary_", "unary_"}) {
                if (name.starts_with(prefix)) name.erase(0, prefix.size());
            }
            if (const ops::OpDef* op = ops::find_op(name)) return read_site(std::move(name), op);
        }
        return unknown_mnemonic(mnemonic, line);
    }

    Diagnostic unknown_mnemonic(std::string_view mnemonic, std::int32_t line) const {
        std::vector<std::string> names = {"LOAD_TENSOR", "STORE_TENSOR", "CONST_SCALAR"};
        for (const OpcodeInfo& row : all_opcodes()) names.emplace_back(row.mnemonic);
        for (const ops::OpDef* op : ops::all_ops()) {
            std::string name(op->name.value);
            for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
            names.push_back(std::move(name));
        }
        const std::vector<std::string_view> candidates(names.begin(), names.end());
        return refuse(DiagnosticId::kUnknownMnemonic, quoted(mnemonic), line)
            .hint(support::near_miss_hint(mnemonic, candidates));
    }

    Status read_site(std::string name, const ops::OpDef* op) {
        CallSite site;
        if (cursor_.peek().kind == TokenKind::kInt) {
            FLEXOR_ASSIGN(site.operand_count, count("the number of operands"));
        } else if (op == nullptr || operand_bounds(*op).most == std::numeric_limits<std::int32_t>::max()) {
            return cursor_.unexpected("the number of operands");
        } else {
            site.operand_count = operand_bounds(*op).least;
        }
        const bool braces = cursor_.accept("{");
        FLEXOR_ASSIGN(site.attrs, parse_attrs(cursor_, symbols_, op));
        if (braces) FLEXOR_TRY(cursor_.expect("}"));
        site.op = std::move(name);
        emit(Opcode::kCallOp, static_cast<std::int32_t>(function_->sites.size()));
        function_->sites.push_back(std::move(site));
        return {};
    }

    Status read_operands(Opcode op, std::int32_t line) {
        std::int32_t a = 0;
        std::int32_t b = 0;
        switch (opcode_info(op).format) {
            case OperandFormat::kNone: break;
            case OperandFormat::kConst: {
                if (cursor_.accept("#")) {
                    FLEXOR_ASSIGN(a, count("the number of a constant"));
                    break;
                }
                const bool word = op != Opcode::kLoadConst && cursor_.peek().kind == TokenKind::kName;
                if (word) {  // LOAD_FUNCTION f, GET_ATTRIBUTE shape
                    a = intern(std::string(cursor_.next().text));
                    break;
                }
                FLEXOR_ASSIGN(Constant constant, literal());
                a = intern(std::move(constant));
                break;
            }
            case OperandFormat::kLocal: {
                FLEXOR_ASSIGN(const std::string name, cursor_.name("the name of a local"));
                FLEXOR_ASSIGN(a, find_local(name, line));
                break;
            }
            case OperandFormat::kWeight: {
                FLEXOR_ASSIGN(const std::string name, cursor_.name("the name of a weight"));
                FLEXOR_ASSIGN(a, find_weight(name, line));
                break;
            }
            case OperandFormat::kSite: {
                FLEXOR_ASSIGN(std::string name, cursor_.name("the name of an op"));
                const ops::OpDef* definition = ops::find_op(name);
                return read_site(std::move(name), definition);
            }
            case OperandFormat::kFunctionCount: {
                FLEXOR_ASSIGN(const std::string name, cursor_.name("the name of a function"));
                a = module_.find_function(name);
                if (a < 0) {
                    std::vector<std::string> names;
                    for (const Function& function : module_.functions) names.push_back(function.name);
                    return unknown("function", name, line, names);
                }
                if (cursor_.at_line_end()) {
                    b = static_cast<std::int32_t>(module_.functions[static_cast<std::size_t>(a)].params.size());
                } else {
                    FLEXOR_ASSIGN(b, count("the number of arguments"));
                }
                break;
            }
            case OperandFormat::kHookCount: {
                FLEXOR_ASSIGN(std::string name, cursor_.name("the name of a foreign hook"));
                FLEXOR_ASSIGN(b, count("the number of arguments"));
                auto& hooks = module_.hooks;
                a = static_cast<std::int32_t>(std::ranges::find(hooks, name) - hooks.begin());
                if (a == static_cast<std::int32_t>(hooks.size())) hooks.push_back(std::move(name));
                break;
            }
            case OperandFormat::kTarget: {
                if (cursor_.peek().kind != TokenKind::kName) return cursor_.unexpected("a label");
                fixups_.push_back({function_->code.size(), std::string(cursor_.next().text), line});
                break;
            }
            case OperandFormat::kCount: {
                FLEXOR_ASSIGN(a, count("a number of values"));
                break;
            }
            case OperandFormat::kAxis: {
                FLEXOR_ASSIGN(const std::int64_t axis, cursor_.integer("an axis"));
                if (axis < -kMaxRank || axis >= kMaxRank) {
                    return refuse(DiagnosticId::kBadLiteral, std::to_string(axis), line).expected("an axis");
                }
                a = static_cast<std::int32_t>(axis);
                break;
            }
            case OperandFormat::kScalarOp: {
                FLEXOR_ASSIGN(const std::string name, cursor_.name("a scalar operator"));
                const auto found = scalar_operator_from_name(name);
                if (!found) {
                    std::vector<std::string_view> names;
                    for (int i = 0; i < kScalarOperatorCount; ++i) {
                        names.push_back(scalar_operator_name(static_cast<ScalarOperator>(i)));
                    }
                    return unknown("scalar operator", name, line, names);
                }
                a = static_cast<std::int32_t>(*found);
                break;
            }
        }
        emit(op, a, b);
        return {};
    }

    Cursor cursor_;
    AssembleOptions options_;
    std::string folder_;
    SymbolLookup symbols_;
    TypeSymbols type_symbols_;
    Module module_;
    std::vector<Body> bodies_;
    std::set<std::string> declared_symbols_;
    // Of the function being read.
    Function* function_ = nullptr;
    std::map<std::string, std::int32_t, std::less<>> labels_;
    std::vector<Fixup> fixups_;
    std::vector<std::string> outputs_;
    SourcePosition position_;
    bool explicit_position_ = false;
};

}  // namespace

Expected<Module> assemble(std::string_view text, std::string file_name, AssembleOptions options) {
    FLEXOR_ASSIGN(const std::vector<Token> tokens, tokenize(text, file_name));
    return Assembler(tokens, std::move(file_name), options).assemble();
}

}  // namespace flexor::bytecode
