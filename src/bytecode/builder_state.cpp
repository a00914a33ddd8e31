#include "bytecode/builder_state.h"

#include <algorithm>

namespace flexor::bytecode {

types::SymbolId ModuleState::add_symbol(std::string name, types::Range range) {
    const types::SymbolId id = env.add_symbol(name, range);
    module_symbol.resize(id + 1);
    module_symbol[id] = static_cast<types::SymbolId>(module.symbols.size());
    module.symbols.push_back({std::move(name), range});
    return id;
}

types::SymbolId ModuleState::fresh_symbol() {
    const types::SymbolId id = env.add_symbol("u" + std::to_string(env.symbol_count()), {});
    module_symbol.resize(id + 1);
    return id;
}

bool ModuleState::is_declared(const types::Dim& dim) const {
    std::vector<types::SymbolId> used;
    dim.collect_symbols(used);
    // Shape rules add symbols to the environment on their own: those have no entry here.
    return std::ranges::all_of(
        used, [&](types::SymbolId id) { return id < module_symbol.size() && module_symbol[id].has_value(); });
}

types::Dim ModuleState::to_module(const types::Dim& dim) const {
    types::Dim replacement;
    return dim.substitute([&](types::SymbolId id) -> const types::Dim* {
        replacement = types::Dim::symbol(module_symbol[id].value());
        return &replacement;
    });
}

std::string ModuleState::spell(const types::Dim& dim) const {
    return dim.to_string([this](types::SymbolId id) { return env.name(id); });
}

FunctionState* ModuleState::find_function(std::string_view name) const {
    const auto found = std::ranges::find_if(functions, [&](const auto& f) { return f->name == name; });
    return found == functions.end() ? nullptr : found->get();
}

void ModuleState::fail(Diagnostic diagnostic, const Line& line) {
    if (error) return;
    if (line.number > 0) diagnostic.source(line.file + ":" + std::to_string(line.number));
    error = std::move(diagnostic);
}

}  // namespace flexor::bytecode
