// From an LLVM module to callable code, and from object bytes to callable code.
//
// emit_object turns one module into a relocatable object; load_object links its bytes into the process. One LLJIT serves the whole process and is never destroyed (generated code may run in a static
// destructor). Both functions may be called from many threads at once; each compile owns its context.
//
// Laws of generated code: no global constructors, no thread-local data, no exceptions, no calls to compiler support
// routines (__truncsfbf2 and its like do not exist everywhere): an object that needs an undefined symbol is refused.
#pragma once

#include <llvm-c/Core.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace flexor::codegen::cpu_llvm {

// A context with one empty module that has the host's triple and data layout. Movable; frees both.
class ModuleBuilder {
public:
    explicit ModuleBuilder(const char* name);
    ~ModuleBuilder();
    ModuleBuilder(ModuleBuilder&& other) noexcept;
    ModuleBuilder& operator=(ModuleBuilder&&) = delete;

    LLVMContextRef context() const { return context_; }
    LLVMModuleRef module() const { return module_; }
    LLVMBuilderRef builder() const { return builder_; }

private:
    LLVMContextRef context_;
    LLVMModuleRef module_;
    LLVMBuilderRef builder_;
};

// Runs the pass pipeline on the module (in place) and emits machine code for the host. Refuses a module that the LLVM
// verifier refuses. `passes` overrides the default pipeline, which is the cheapest one that removes the redundancy our
// generators leave.
inline constexpr const char* kDefaultPasses = "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg)";
Expected<std::vector<char>> emit_object(LLVMModuleRef module, const char* passes = kDefaultPasses);

// A linked object. Its code is unmapped when the last LoadedObject that shares it dies.
class LoadedObject {
public:
    LoadedObject() = default;

    // The address of a symbol the object defines, or null.
    void* lookup(std::string_view symbol) const;
    template <typename Function>
    Function* function(std::string_view symbol) const {
        return reinterpret_cast<Function*>(lookup(symbol));
    }
    explicit operator bool() const { return state_ != nullptr; }

private:
    friend Expected<LoadedObject> load_object(std::span<const char> bytes);
    struct State;
    std::shared_ptr<const State> state_;
};

// Links `bytes` (copied). An object that needs a symbol it does not define is refused. All symbols the object
// defines are resolved before this returns, so a bad object fails here and not at its first use.
Expected<LoadedObject> load_object(std::span<const char> bytes);

// emit_object and load_object in one step.
Expected<LoadedObject> compile(LLVMModuleRef module, const char* passes = kDefaultPasses);

// The module's text (for tests and FLEXOR_DUMP_IR).
std::string print_module(LLVMModuleRef module);

}  // namespace flexor::codegen::cpu_llvm
