#pragma once
// What `explain` prints.
#include <span>
#include <string>
#include <vector>

#include "flexor/telemetry.h"
#include "vm/engine.h"

namespace flexor::driver {

std::string explain_text(const bytecode::Module& module, std::int32_t function, std::span<const Value> arguments,
                         const vm::Trace& trace, const Stats& before, const Stats& after,
                         const std::vector<Event>& events, const Diagnostic* error);

}  // namespace flexor::driver
