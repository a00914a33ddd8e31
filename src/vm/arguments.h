#pragma once
// Arguments of a function against its declaration.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bytecode/module.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::vm {

// Values of the module's symbols, as the arguments of one call bind them.
struct SymbolValues {
    std::vector<std::int64_t> values;
    std::vector<bool> bound;
    // None if a symbol is not bound or the arithmetic overflows.
    std::optional<std::int64_t> evaluate(const types::Dim& dim) const;
};

// Kinds, dtypes, ranks, sizes (equal for equal symbols, inside the declared ranges). Binds symbols on the way.
Expected<SymbolValues> check_arguments(const bytecode::Module& module, const bytecode::Function& function,
                                       std::span<const Value> arguments);

}  // namespace flexor::vm
