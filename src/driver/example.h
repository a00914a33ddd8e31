#pragma once
// Arguments made up from declarations.
#include <cstdint>
#include <map>
#include <vector>

#include "bytecode/module.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::driver {

// Sizes that are given beforehand.
using FixedSizes = std::map<types::SymbolId, std::int64_t>;

// A size for every symbol: the fixed one, else one of the declared range, and such that the ops of the function take
// the arguments, as far as that follows from symbols alone. Sizes differ where they may, which shows more.
std::vector<std::int64_t> example_sizes(const bytecode::Module& module, std::int32_t function,
                                        const FixedSizes& fixed = {});

// Arguments of those sizes with fixed contents.
Expected<std::vector<Value>> make_arguments(const bytecode::Module& module, std::int32_t function,
                                            const std::vector<std::int64_t>& symbols);

}  // namespace flexor::driver
