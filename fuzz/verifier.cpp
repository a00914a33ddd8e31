// Modules that no text gives: the last line of an input, "; edits: KIND WHERE OTHER VALUE ...", changes the assembled
// program before it is verified. What verify accepts is printed, survives its forms, and runs on the interpreter
// without breaking a law.
#include "bytecode/verify.h"

#include "common/laws.h"
#include "common/runs.h"
#include "common/text_mutation.h"
#include "support/text.h"

namespace flexor::fuzz {
namespace {

using bytecode::Function;
using bytecode::Instruction;
using bytecode::Module;

template <class T>
T* at(std::vector<T>& items, std::int64_t index) {
    if (items.empty()) return nullptr;
    return &items[static_cast<std::size_t>(static_cast<std::uint64_t>(index) % items.size())];
}

void edit_code(Function& function, std::int64_t kind, std::int64_t where, std::int64_t other, std::int32_t value) {
    std::vector<Instruction>& code = function.code;
    Instruction* instruction = at(code, where);
    Instruction* second = at(code, other);
    if (instruction == nullptr) return;
    switch (kind) {
        case 0: instruction->op = static_cast<bytecode::Opcode>(value); break;
        case 1: instruction->a = value; break;
        case 2: instruction->b = value; break;
        case 3: std::swap(*instruction, *second); break;
        case 4: code.erase(code.begin() + (instruction - code.data())); break;
        default: {
            const Instruction copy = *second;
            code.insert(code.begin() + (instruction - code.data()), copy);
        }
    }
}

void edit_tables(Module& module, Function& function, std::int64_t kind, std::int64_t where, std::int64_t value) {
    switch (kind) {
        case 6: function.result_count = static_cast<std::int32_t>(value); break;
        case 7:
            if (std::string* local = at(function.locals, where)) *local = function.locals.front();
            break;
        case 8:
            if (bytecode::CallSite* site = at(function.sites, where))
                site->operand_count = static_cast<std::int32_t>(value);
            break;
        case 9:
            if (bytecode::CallSite* site = at(function.sites, where); site != nullptr && !site->attrs.items().empty()) {
                const std::string name =
                    site->attrs.items()[static_cast<std::uint64_t>(value) % site->attrs.items().size()].first;
                site->attrs.set(name, types::OperandRef{static_cast<std::uint32_t>(value)});
            }
            break;
        case 10:
            if (bytecode::ParamDecl* param = at(function.params, where)) {
                param->dims.emplace_back(types::Dim::symbol(static_cast<types::SymbolId>(value)));
                param->frozen.push_back(value % 2 == 0);
            }
            break;
        case 11:
            if (bytecode::SymbolDecl* symbol = at(module.symbols, where)) symbol->range = {value, value + where};
            break;
        case 12:
            if (bytecode::SourcePosition* position = at(function.positions, where))
                position->pc = static_cast<std::int32_t>(value);
            break;
        case 13:
            if (bytecode::ParamDecl* param = at(function.params, where)) param->kind = bytecode::ParamKind::kAny;
            break;
        case 14: function.sites.emplace_back(function.sites.empty() ? bytecode::CallSite{} : function.sites[0]); break;
        case 15: function.locals.resize(static_cast<std::uint64_t>(value) % (function.locals.size() + 1)); break;
        default: break;
    }
}

void edit(Module& module, std::string_view text) {
    constexpr std::string_view kMark = "; edits:";
    const std::size_t begin = text.rfind(kMark);
    if (begin == std::string_view::npos || module.functions.empty()) return;
    std::vector<std::int64_t> numbers;
    for (const std::string_view piece : support::split(text.substr(begin + kMark.size()), ' ')) {
        if (const auto number = support::int_from_text(support::trim(piece))) numbers.push_back(*number);
    }
    constexpr std::int64_t kKinds = 16;
    for (std::size_t i = 0; i + 4 <= numbers.size(); i += 4) {
        Function& function = *at(module.functions, numbers[i] / kKinds);
        const std::int64_t kind = static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[i]) % kKinds);
        if (kind < 6)
            edit_code(function, kind, numbers[i + 1], numbers[i + 2], static_cast<std::int32_t>(numbers[i + 3]));
        else
            edit_tables(module, function, kind, numbers[i + 1], numbers[i + 3] % (std::int64_t{1} << 40));
    }
}

}  // namespace
}  // namespace flexor::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::optional<bytecode::Module> module = fuzz::assembled(text);
    if (!module) return 0;
    fuzz::edit(*module, text);
    const bytecode::ModuleRef sound = fuzz::verified(*std::move(module));
    if (sound == nullptr) return 0;
    fuzz::check_descriptions(sound);
    fuzz::check_round_trip(*sound);
    fuzz::run_interpreted(sound);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    return flexor::fuzz::mutate_text(data, size, most, seed, {.wild = 5, .edits = 50});
}
