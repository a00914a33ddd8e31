#pragma once
// What an engine knows of a Module: facts about its functions, and the safe points at which its regions begin.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bytecode/module.h"
#include "types/dim.h"
#include "vm/ladder.h"

namespace flexor::vm {

// Facts about a function that every call needs.
struct FunctionFacts {
    bool writes = false;                   // it, or what it calls, writes to tensors
    bool grows_lists = false;              // it has a loop, and appends to lists
    std::vector<types::SymbolId> symbols;  // of the module, that attributes name
    std::vector<std::uint32_t> numbers;    // number_parameters()
};

// Shared by all threads: the safe points of one Module.
struct ModuleState {
    explicit ModuleState(const bytecode::ModuleRef& of);

    const std::uint64_t id;
    const std::weak_ptr<const bytecode::Module> module;
    const std::vector<FunctionFacts> facts;  // by function
    std::mutex mutex;
    std::vector<std::vector<std::unique_ptr<EntryPoint>>> points;  // by function and pc; made on first use
    std::map<std::pair<std::int32_t, std::int32_t>, bytecode::ModuleRef> one_op;  // by function and site; null: none

    EntryPoint* point(std::int32_t function, std::int32_t pc);
    // A Module whose main is that call site alone, so that one op can run as a region; null where an attribute names a
    // symbol or the number of results is not known.
    bytecode::ModuleRef one_op_module(const bytecode::Module& owner, std::int32_t function, std::int32_t site);
};

// The same as one thread sees it.
struct ThreadModule {
    explicit ThreadModule(std::shared_ptr<ModuleState> of);

    const std::shared_ptr<ModuleState> state;
    std::vector<std::vector<std::unique_ptr<ThreadEntryPoint>>> points;

    ThreadEntryPoint& point(std::int32_t function, std::int32_t pc) {
        auto& at = points[static_cast<std::size_t>(function)][static_cast<std::size_t>(pc)];
        if (at == nullptr) {
            auto made = std::make_unique<ThreadEntryPoint>();
            made->shared = state->point(function, pc);
            at = std::move(made);
        }
        return *at;
    }
};

}  // namespace flexor::vm
