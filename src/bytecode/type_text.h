#pragma once
// Types of parameters in the text form.
#include <functional>

#include "bytecode/lexer.h"
#include "bytecode/module.h"

namespace flexor::bytecode {

Expected<DType> parse_dtype(Cursor& cursor);

// How types name symbols: `named` finds or declares one; `fresh` declares one that nothing else names, with a name made
// from the stem.
struct TypeSymbols {
    SymbolLookup named;
    std::function<types::SymbolId(const std::string& stem)> fresh;
};

// "f32[B, FROZEN S, ?]?", "any[...]", "int": fills all of `param` but its name.
Status parse_param_type(Cursor& cursor, const TypeSymbols& symbols, ParamDecl* param);

}  // namespace flexor::bytecode
