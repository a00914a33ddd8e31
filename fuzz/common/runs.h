#pragma once
// Running verified programs on arguments made up from their declarations.
//
// Programs are compared by what rounding does to them: the interpreter runs with rounding up and with rounding down.
// Where both give the same, nothing was rounded, and every engine must give just that; else they may differ by a
// multiple of the distance. Ops whose code is not the reference rounded (exp, attention, ...) are given a tolerance,
// and none is compared by value when something in the program jumps (comparisons, floor, sort, ...).
#include <string_view>

#include "bytecode/module.h"

namespace flexor::fuzz {

// Runs "main" on the interpreter; what it raises is no matter.
void run_interpreted(const bytecode::ModuleRef& module);

// Runs "main" on the interpreter and compiled, with several sizes, layouts and values that follow from the text, and
// aborts where they differ.
void compare_engines(const bytecode::ModuleRef& module, std::string_view text);

}  // namespace flexor::fuzz
