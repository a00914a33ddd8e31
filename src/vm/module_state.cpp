#include "vm/module_state.h"

#include <algorithm>
#include <string>

#include "bytecode/verify.h"
#include "vm/arguments.h"

namespace flexor::vm {

using bytecode::Opcode;

namespace {

// Appends the symbols that the attribute names, without duplicates.
void collect_symbols(const types::AttrValue& value, std::vector<types::SymbolId>& out) {
    if (const auto* dim = std::get_if<types::Dim>(&value)) dim->collect_symbols(out);
    if (const auto* list = std::get_if<types::DimList>(&value)) {
        for (const types::Dim& dim : *list) dim.collect_symbols(out);
    }
}

// main(p0, ...) = the op of `site`.
Expected<bytecode::ModuleRef> make_one_op(const bytecode::Module& owner, const bytecode::CallSite& site, int results) {
    bytecode::Module module;
    module.promotion = owner.promotion;
    bytecode::Function function;
    function.name = "main";
    function.result_count = results;
    function.sites.push_back(site);
    for (std::int32_t i = 0; i < site.operand_count; ++i) {
        bytecode::ParamDecl param;
        param.name = "p";
        param.name += std::to_string(i);
        function.locals.push_back(param.name);
        function.params.push_back(std::move(param));
        function.code.push_back({Opcode::kLoadLocal, i, 0});
    }
    function.code.push_back({Opcode::kCallOp, 0, 0});
    function.code.push_back({Opcode::kReturn, results, 0});
    module.functions.push_back(std::move(function));
    return bytecode::verify(std::move(module));
}

std::vector<FunctionFacts> find_facts(const bytecode::Module& module) {
    std::vector<FunctionFacts> facts(module.functions.size());
    for (std::size_t i = 0; i < facts.size(); ++i) {
        facts[i].numbers = number_parameters(module.functions[i]);
        const auto has = [&](Opcode op) {
            return std::ranges::any_of(module.functions[i].code, [&](const auto& inst) { return inst.op == op; });
        };
        facts[i].grows_lists = has(Opcode::kLoopHead) && has(Opcode::kListAppend);
        for (const bytecode::CallSite& site : module.functions[i].sites) {
            if (site.definition != nullptr && site.definition->effects.value == ops::Effects::kWritesFirst)
                facts[i].writes = true;
            for (const auto& [name, value] : site.attrs.items()) collect_symbols(value, facts[i].symbols);
        }
    }
    const bool any_writes = std::any_of(facts.begin(), facts.end(), [](const FunctionFacts& f) { return f.writes; });
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (facts[i].writes) continue;
            for (const bytecode::Instruction& inst : module.functions[i].code) {
                if ((inst.op == Opcode::kCall && facts[static_cast<std::size_t>(inst.a)].writes) ||
                    (inst.op == Opcode::kCallValue && any_writes))
                    facts[i].writes = changed = true;
            }
        }
    }
    return facts;
}

}  // namespace

ModuleState::ModuleState(const bytecode::ModuleRef& of) : id(of->id), module(of), facts(find_facts(*of)) {
    for (const bytecode::Function& function : of->functions) points.emplace_back(function.code.size() + 1);
}

ThreadModule::ThreadModule(std::shared_ptr<ModuleState> of) : state(std::move(of)) {
    for (const auto& function : state->points) points.emplace_back(function.size());
}

EntryPoint* ModuleState::point(std::int32_t function, std::int32_t pc) {
    std::lock_guard lock(mutex);
    auto& at = points[static_cast<std::size_t>(function)][static_cast<std::size_t>(pc)];
    if (at == nullptr) {
        at = std::make_unique<EntryPoint>();
        at->function = function;
        at->pc = pc;
    }
    return at.get();
}

bytecode::ModuleRef ModuleState::one_op_module(const bytecode::Module& owner, std::int32_t function,
                                               std::int32_t site) {
    const bytecode::CallSite& call =
        owner.functions[static_cast<std::size_t>(function)].sites[static_cast<std::size_t>(site)];
    std::lock_guard lock(mutex);
    const auto [at, fresh] = one_op.try_emplace({function, site});
    if (!fresh) return at->second;
    std::vector<types::SymbolId> symbols;
    for (const auto& [name, value] : call.attrs.items()) collect_symbols(value, symbols);
    if (!symbols.empty()) return nullptr;
    const int results = ops::result_count(*call.definition, call.attrs);
    if (results < 0) return nullptr;
    auto made = make_one_op(owner, call, results);
    if (made) at->second = std::move(*made);
    return at->second;
}

}  // namespace flexor::vm
