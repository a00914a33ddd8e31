#pragma once

// The catalogue of refusals. A diagnostic's number, name and sentence stand once, in diagnostics.def; its kind follows
// from the hundred its number lies in.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "flexor/error.h"

namespace flexor {

enum class DiagnosticId : std::uint16_t {
#define FLEXOR_DIAGNOSTIC(number, name, sentence) k##name = number,
#include "support/diagnostics.def"
#undef FLEXOR_DIAGNOSTIC
};

namespace support {

struct DiagnosticRow {
    DiagnosticId id;
    std::string_view name;
    std::string_view sentence;
};

// Every row of diagnostics.def, in order.
std::span<const DiagnosticRow> diagnostic_rows();

// "E0301".
std::string diagnostic_code(DiagnosticId id);

std::string_view to_string(DiagnosticKind kind);

}  // namespace support
}  // namespace flexor
