#pragma once
// Turns a Module that anybody may have written into one that the engine can rely on.
#include "bytecode/module.h"
#include "support/expected.h"

namespace flexor::bytecode {

inline constexpr std::int32_t kMaxStackDepth = 1 << 16;
inline constexpr std::size_t kMaxLocals = 1 << 16;
inline constexpr std::size_t kMaxCode = std::size_t{1} << 24;

// What a verified Module promises. Every promise about code holds for unreachable code too, but for V5, V6 and V7.
//
//  V1   Opcodes are known.
//  V2   Every operand names an entry of its table and has a value that its opcode takes: locals, weights, functions,
//       hooks, sites, constants of the right kind (texts for ASSERT, DICT_GET, GET_ATTRIBUTE, LOAD_FUNCTION,
//       LOAD_FOREIGN), counts that are not negative, axes within -12..11, scalar operators. An operand that the opcode
//       does not have is 0.
//  V3   Branch targets lie inside the function.
//  V4   Control never runs off the end of a function.
//  V5   The stack never holds fewer values than an instruction pops; where paths meet, its depths agree; it never holds
//       more than Function::max_stack values, which verify computes, nor more than kMaxStackDepth.
//  V6   RETURN returns result_count values and leaves none behind.
//  V7   No local is read that no path has set. A local that only some paths have set is allowed: reading it unset is an
//       error of the run.
//  V8   Call sites: the op exists (CallSite::definition is set), its operand count fits, its attributes are checked and
//       complete (defaults filled in). Attributes taken from the stack ($n) name exactly the operands that follow the
//       tensors. Sites are used once each, in the order of the code.
//  V9   Symbols have identifiers for names, none of them reserved, and ranges that are not empty and not negative.
//       Every dim in parameters and attributes is an expression over declared symbols.
//  V10  Names are unique: functions, symbols, weights, hooks, the locals of a function. Locals begin with the
//       parameters. There is a function "main".
//  V11  FROZEN does not stand on a size made by data, as far as types are known without running.
//  V12  A branch backwards lands on LOOP_HEAD.
//  V13  CALL passes as many arguments as the function has parameters. Recursion is allowed.
//  V14  Weights are defined, contiguous, read-only tensors in host memory.
//  V15  Source positions ascend strictly, lie inside the code, and each differs from the one before.
//
// Sets CallSite::definition and attrs, Function::max_stack, Module::id and verified; marks the weights, whose memory
// nobody else may hold, as read-only.
Expected<ModuleRef> verify(Module module);

}  // namespace flexor::bytecode
