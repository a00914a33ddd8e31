#include <algorithm>
#include <set>

#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "bytecode/text.h"
#include "bytecode/weight_text.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

std::string spell_constant_operand(const Module& module, std::int32_t index) {
    const auto& pool = module.constants;
    const Constant& constant = pool[static_cast<std::size_t>(index)];
    const auto first =
        std::ranges::find_if(pool, [&](const Constant& other) { return same_constant(constant, other); });
    if (first - pool.begin() != index) return "#" + std::to_string(index);
    return to_string(constant);
}

// True if reading the constants inline, in the order of the listing, makes this very pool.
bool pool_follows_from_use(const Module& module) {
    std::size_t next = 0;
    std::set<std::int32_t> seen;
    for (const Function& function : module.functions) {
        for (const Instruction& instruction : function.code) {
            if (opcode_info(instruction.op).format != OperandFormat::kConst) continue;
            if (!seen.insert(instruction.a).second) continue;
            if (instruction.a != static_cast<std::int32_t>(next)) return false;
            if (spell_constant_operand(module, instruction.a).starts_with('#')) return false;
            ++next;
        }
    }
    return next == module.constants.size();
}

// True if the names of the locals follow from the parameters and the order of the stores.
bool locals_follow_from_use(const Function& function) {
    std::size_t next = function.params.size();
    std::set<std::int32_t> seen;
    for (const Instruction& instruction : function.code) {
        if (instruction.op != Opcode::kStoreLocal) continue;
        if (instruction.a < static_cast<std::int32_t>(function.params.size()) || !seen.insert(instruction.a).second) {
            continue;
        }
        if (instruction.a != static_cast<std::int32_t>(next)) return false;
        ++next;
    }
    return next == function.locals.size();
}

std::string spell_range(types::Range range) {
    return std::to_string(range.lo) + ".." + (range.hi >= types::kDimInfinity ? "inf" : std::to_string(range.hi));
}

class Printer {
public:
    Printer(const Module& module, DisassembleOptions options) : module_(module), options_(options) {}

    std::string print() {
        if (module_.promotion == types::Promotion::kNumpy) line(".promotion numpy");
        for (const auto& [key, value] : module_.metadata) {
            line(".meta " + spell_name(key) + " " + support::quote(value));
        }
        for (const SymbolDecl& symbol : module_.symbols) {
            line(".symbol " + symbol.name + " in " + spell_range(symbol.range));
        }
        for (const std::string& hook : module_.hooks) line(".hook " + spell_name(hook));
        for (const Weight& weight : module_.weights) print_weight(weight);
        if (!pool_follows_from_use(module_)) {
            for (const Constant& constant : module_.constants) line(".const " + to_string(constant));
        }
        for (const Function& function : module_.functions) print_function(function);
        return std::move(out_);
    }

private:
    void line(std::string_view text) {
        out_ += text;
        out_ += '\n';
    }

    void print_weight(const Weight& weight) {
        const Tensor& tensor = weight.tensor;
        std::string text = ".weight " + spell_name(weight.name) + " " + std::string(dtype_name(tensor.dtype())) + "[" +
                           support::join(tensor.sizes(), ", ", [](std::int64_t n) { return std::to_string(n); }) +
                           "] = ";
        const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.numel()) * dtype_size(tensor.dtype());
        if (bytes > options_.weight_bytes) {
            line(text + "omitted  ; " + support::text_from_bytes(bytes));
        } else {
            line(text + spell_weight(tensor));
        }
    }

    void print_position(const SourcePosition& position, std::string* file) {
        std::string text = "  .line " + std::to_string(position.line);
        if (position.file != *file) text += " " + support::quote(position.file);
        *file = position.file;
        line(text);
    }

    void print_function(const Function& function) {
        if (!out_.empty()) line("");
        std::string head = ".func " + spell_name(function.name) + "(";
        head += support::join(function.params, ", ", [&](const ParamDecl& p) { return to_string(module_, p); });
        if (function.result_names.empty()) {
            head += ") -> " + std::to_string(function.result_count);
        } else {
            head += ") -> (" + support::join(function.result_names, ", ", spell_name) + ")";
        }
        line(head);
        if (!locals_follow_from_use(function)) {
            const std::span<const std::string> extra = std::span(function.locals).subspan(function.params.size());
            if (!extra.empty()) line("  .local " + support::join(extra, " ", spell_name));
        }
        std::set<std::int32_t> targets;
        for (const Instruction& instruction : function.code) {
            if (opcode_info(instruction.op).has_target()) targets.insert(instruction.a);
        }
        auto position = function.positions.begin();
        std::string file;
        if (options_.positions && (position == function.positions.end() || position->pc > 0)) line("  .line 0");
        for (std::int32_t pc = 0; pc < static_cast<std::int32_t>(function.code.size()); ++pc) {
            if (targets.contains(pc)) line("L" + std::to_string(pc) + ":");
            for (; position != function.positions.end() && position->pc <= pc; ++position) {
                if (options_.positions) print_position(*position, &file);
            }
            std::string text = "  ";
            if (options_.pcs) {
                const std::string number = std::to_string(pc);
                text += std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + "  ";
            }
            line(text + to_string(module_, function, pc));
        }
    }

    const Module& module_;
    DisassembleOptions options_;
    std::string out_;
};

}  // namespace

std::string to_string(const Constant& constant) {
    struct Speller {
        std::string operator()(None) const { return "none"; }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return support::text_from_double(number); }
        std::string operator()(const std::string& text) const { return support::quote(text); }
        std::string operator()(const std::vector<std::int64_t>& list) const {
            return "[" + support::join(list, ", ", [](std::int64_t n) { return std::to_string(n); }) + "]";
        }
    };
    return std::visit(Speller{}, constant);
}

std::string tensor_text(std::optional<DType> dtype, const std::optional<std::vector<std::string>>& dims) {
    std::string text(dtype ? dtype_name(*dtype) : std::string_view("any"));
    return text + "[" + (dims ? support::join(*dims, ", ") : "...") + "]";
}

std::string type_text(const Module& module, const ParamDecl& param) {
    std::string text;
    switch (param.kind) {
        case ParamKind::kInt: text = "int"; break;
        case ParamKind::kFloat: text = "float"; break;
        case ParamKind::kBool: text = "bool"; break;
        case ParamKind::kString: text = "str"; break;
        case ParamKind::kAny: text = "any"; break;
        case ParamKind::kTensor: {
            std::optional<std::vector<std::string>> dims;
            if (!param.any_rank) dims.emplace();
            for (std::size_t i = 0; dims && i < param.dims.size(); ++i) {
                const bool frozen = i < param.frozen.size() && param.frozen[i];
                dims->push_back((frozen ? "FROZEN " : "") + param.dims[i].to_string(symbol_names(module)));
            }
            text = tensor_text(param.any_dtype ? std::nullopt : std::optional(param.dtype), dims);
            break;
        }
    }
    return param.optional ? text + "?" : text;
}

std::string to_string(const Module& module, const ParamDecl& param) {
    return spell_name(param.name) + ": " + type_text(module, param);
}

std::string to_string(const Module& module, const Function& function, std::int32_t pc) {
    const Instruction& instruction = function.code[static_cast<std::size_t>(pc)];
    const OpcodeInfo& info = opcode_info(instruction.op);
    std::string text(info.mnemonic);
    const auto index = static_cast<std::size_t>(instruction.a);
    if (info.format == OperandFormat::kNone) return text;
    if (text.size() < 12) text.append(12 - text.size(), ' ');
    text += ' ';
    switch (info.format) {
        case OperandFormat::kNone: break;
        case OperandFormat::kConst: text += spell_constant_operand(module, instruction.a); break;
        case OperandFormat::kLocal: text += spell_name(function.locals[index]); break;
        case OperandFormat::kWeight: text += spell_name(module.weights[index].name); break;
        case OperandFormat::kSite: {
            const CallSite& site = function.sites[index];
            text += spell_name(site.op) + " " + std::to_string(site.operand_count);
            const std::string attrs = spell_attrs(site.attrs, site.definition, symbol_names(module));
            if (!attrs.empty()) text += " " + attrs;
            break;
        }
        case OperandFormat::kFunctionCount:
            text += spell_name(module.functions[index].name) + " " + std::to_string(instruction.b);
            break;
        case OperandFormat::kHookCount:
            text += spell_name(module.hooks[index]) + " " + std::to_string(instruction.b);
            break;
        case OperandFormat::kTarget: text += "L" + std::to_string(instruction.a); break;
        case OperandFormat::kCount:
        case OperandFormat::kAxis: text += std::to_string(instruction.a); break;
        case OperandFormat::kScalarOp: text += scalar_operator_name(static_cast<ScalarOperator>(instruction.a)); break;
    }
    return text;
}

std::string disassemble(const Module& module, DisassembleOptions options) { return Printer(module, options).print(); }

}  // namespace flexor::bytecode
