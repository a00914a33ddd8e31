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
#include "vm/device_run.h"

namespace flexor::vm {

// Symbols of attributes; asked only when an attribute names one.
using SymbolSource = std::function<Expected<const SymbolValues*>()>;

// Appends the results. Fresh results lie in pool memory; beyond the hard limit the error names the tensor. With a device,
// what lies there is worked on as a copy on the host, and results go there, unless all operands are the host's.
Expected<void> call_op(const bytecode::CallSite& site, std::span<const Value> operands, types::Promotion promotion,
                       const SymbolSource& symbols, runtime::Pool& pool, DeviceRun* device,
                       std::vector<Value>& results);

}  // namespace flexor::vm
