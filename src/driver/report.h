#pragma once
// What `explain` prints, and arguments made up from declarations.
#include <span>
#include <string>
#include <vector>

#include "flexor/telemetry.h"
#include "vm/engine.h"

namespace flexor::driver {

std::string explain_text(const bytecode::Module& module, std::int32_t function, std::span<const Value> arguments,
                         const vm::Trace& trace, const Stats& before, const Stats& after,
                         const std::vector<Event>& events, const Diagnostic* error);

// A size for every symbol, inside its declared range.
std::vector<std::int64_t> example_sizes(const bytecode::Module& module);
// Arguments of those sizes with fixed contents.
Expected<std::vector<Value>> make_arguments(const bytecode::Module& module, std::int32_t function,
                                            const std::vector<std::int64_t>& symbols);

}  // namespace flexor::driver
