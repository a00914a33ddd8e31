#pragma once
// An op where it stands: an instruction of a Module, and what it is given there.
#include <compare>
#include <cstdint>

namespace flexor::types {

struct OpSite {
    std::int32_t function = 0;
    std::int32_t pc = 0;
    std::uint64_t operands = 0;  // hash of their dtypes and ranks; sizes do not count
    auto operator<=>(const OpSite&) const = default;
};

}  // namespace flexor::types
