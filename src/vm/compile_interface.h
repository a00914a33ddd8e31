#pragma once
// What the VM asks of whoever compiles. driver/ implements it; a build without code generation passes none.
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bytecode/module.h"
#include "executable/executable.h"
#include "support/diagnostic.h"
#include "support/expected.h"

namespace flexor::vm {

struct CompileRequest {
    bytecode::ModuleRef module;
    std::int32_t function = 0;
    std::int32_t pc = 0;
    const executable::Signature* signature = nullptr;
    std::span<const std::int64_t> frame;  // call frame of the call at hand: the hints
    bool exact_only = false;              // every dim a constant
    bool generalise = false;              // entries of this signature failed by proposed guards: propose none
};

// What the record of a fallback calls the refusal of a compilation.
inline std::string fallback_reason(const Diagnostic& refusal) {
    if (refusal.id() != DiagnosticId::kOpNotCompiled) return "compile_failed " + refusal.code();
    return refusal.found().empty() ? "not_compiled" : refusal.found();
}

class Compiler {
public:
    virtual ~Compiler() = default;
    virtual Expected<std::shared_ptr<const executable::Executable>> compile(const CompileRequest& request) = 0;
};

}  // namespace flexor::vm
