#pragma once
// Arguments of a function against its declaration.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bytecode/module.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::vm {

// Values of the module's symbols, as the arguments of one call bind them.
struct SymbolValues {
    std::vector<std::int64_t> values;
    std::vector<bool> bound;
    std::vector<std::string_view> names;  // of the module
    // The symbols of `dim` that are not bound.
    std::vector<types::SymbolId> unbound(const types::Dim& dim) const;
    // None if a symbol is not bound or the arithmetic overflows.
    std::optional<std::int64_t> evaluate(const types::Dim& dim) const;
};

// The arguments of a call from outside with those that it leaves out: optional ones at the end, which become none.
Expected<std::vector<Value>> complete_arguments(const bytecode::Function& function, std::span<const Value> arguments);

// Kinds, dtypes, ranks, sizes (equal for equal symbols, inside the declared ranges). Binds symbols on the way: those
// that are a size, and those that one size is linear in. Tensors lie on the host or on `device`.
Expected<SymbolValues> check_arguments(const bytecode::Module& module, const bytecode::Function& function,
                                       std::span<const Value> arguments, Device device = {});

// Parameters declared `int` or `float`.
std::vector<std::uint32_t> number_parameters(const bytecode::Function& function);

// The arguments with numbers as `number_parameters` declare them: an int or bool given for a float is that float, a
// bool given for an int that int. `storage`, empty before, holds them if any differs.
std::span<const Value> as_declared(const bytecode::Function& function, std::span<const std::uint32_t> numbers,
                                   std::span<const Value> arguments, std::vector<Value>& storage);

}  // namespace flexor::vm
