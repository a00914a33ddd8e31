#pragma once
// What a Builder holds: functions as trees of statements over values. Every value is written once; emit_function turns
// the tree into stack code.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bytecode/module.h"
#include "bytecode/type_flow.h"
#include "support/diagnostic.h"
#include "types/shape_env.h"

namespace flexor::bytecode {

using ValueId = std::uint32_t;
using BlockId = std::uint32_t;

struct Line {
    std::string file;
    std::int32_t number = 0;
    friend bool operator==(const Line&, const Line&) = default;
};

// A value that costs one instruction to make is made anew at each use.
struct Leaf {
    Opcode op;
    Constant constant{};     // kLoadConst, kLoadFunction, kLoadForeign
    std::int32_t index = 0;  // kLoadWeight, kLoadLocal (parameters)
};

struct BuiltValue {
    StaticType type;
    BlockId block = 0;
    std::optional<Leaf> leaf;
};

struct Block;

struct Statement {
    enum class Kind : std::uint8_t { kSimple, kIf, kIfNone, kWhile, kBasicBlock };
    Kind kind = Kind::kSimple;
    Opcode op =
        Opcode::kNop;  // kSimple; kBasicBlock: its end, one of JUMP, BRANCH_IF_FALSE, BRANCH_IF_NOT_NULL, RETURN
    std::int32_t a =
        0;  // kSimple: the operand; of LOAD_LOCAL, STORE_LOCAL and DELETE_LOCAL a variable. kBasicBlock: its label
    std::optional<CallSite> site;  // kCallOp
    std::string name;              // callee, hook, message, key
    // kSimple: as popped. kIf, kIfNone: the condition. kWhile: the initial values.
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    std::unique_ptr<Block> first;   // then; the condition of a loop; a basic block, its condition or results at the end
    std::unique_ptr<Block> second;  // else; the body of a loop
    std::vector<ValueId> carried;   // kWhile: the values that condition and body see
    std::vector<std::uint32_t> targets;  // kBasicBlock: labels; of a branch where it is taken, then where not
    Line line;
};

struct Block {
    BlockId id = 0;
    std::vector<Statement> statements;
    std::vector<ValueId> results;  // what it hands to the statement that holds it
};

struct ModuleState;

struct FunctionState {
    std::weak_ptr<ModuleState> module;
    std::string name;
    std::vector<ParamDecl> params;   // dims over the symbols of ModuleState::env
    std::vector<ValueId> arguments;  // one per parameter
    std::vector<BuiltValue> values;
    Block body;
    std::vector<Block*> open;  // innermost last
    BlockId next_block = 1;
    std::vector<std::string> output_names;
    // Unstructured code
    std::vector<std::string> variables;
    std::uint32_t label_count = 0;
    std::optional<std::uint32_t> placed;      // the label of the basic block that is open
    std::optional<std::size_t> result_count;  // of the first give()
    Line line;

    bool is_unstructured() const { return label_count > 0; }
};

struct ModuleState {
    Module module;  // symbols, weights, metadata, promotion; functions are emitted into a copy
    // Symbols of the Module and sizes made by data, in the order in which they came up.
    types::ShapeEnv env;
    std::vector<std::optional<types::SymbolId>> module_symbol;  // per symbol of env
    // Handles share the ModuleState, and with it every function.
    std::vector<std::unique_ptr<FunctionState>> functions;
    std::optional<Line> location;  // set_location
    std::optional<Diagnostic> error;

    types::SymbolId add_symbol(std::string name, types::Range range);  // of the Module; gives the id in env
    types::SymbolId fresh_symbol();                                    // a size that only the run knows
    types::Dim fresh_dim() { return types::Dim::symbol(fresh_symbol()); }
    bool is_declared(const types::Dim& dim) const;      // over symbols of the Module only
    types::Dim to_module(const types::Dim& dim) const;  // from ids of env to ids of the Module
    std::string spell(const types::Dim& dim) const;
    FunctionState* find_function(std::string_view name) const;
    void fail(Diagnostic diagnostic, const Line& line);
};

// What keeps the basic blocks of a function from being whole: a jump to a label that is placed nowhere, a block without
// end. Nothing for other functions.
std::optional<Diagnostic> unfinished(const FunctionState& function);

// Stack code of a function; constants and hooks are added to `module`.
Function emit_function(const ModuleState& state, const FunctionState& function, Module& module);

}  // namespace flexor::bytecode
