#pragma once
// One registry op on concrete values, through its native kernel or its reference: the floor under every fallback.
#include <functional>
#include <span>
#include <vector>

#include "bytecode/module.h"
#include "flexor/value.h"
#include "runtime/pool.h"
#include "support/expected.h"
#include "vm/arguments.h"

namespace flexor::vm {

// Symbols of attributes; asked only when an attribute names one.
using SymbolSource = std::function<Expected<const SymbolValues*>()>;

// Appends the results. Fresh results lie in pool memory; beyond the hard limit the error names the tensor.
Expected<void> call_op(const bytecode::CallSite& site, std::span<const Value> operands, types::Promotion promotion,
                       const SymbolSource& symbols, runtime::Pool& pool, std::vector<Value>& results);

}  // namespace flexor::vm
