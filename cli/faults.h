#pragma once
// The diagnostics that the program itself raises, by their stable numbers (src/support/diagnostics.def).
#include <cstdint>
#include <string>

#include "flexor/error.h"

namespace flexor::cli {

enum class Fault : std::uint16_t {
    kUnknownName = 112,
    kFileNotReadable = 201,
    kFileTruncated = 203,
    kChecksumMismatch = 204,
    kBadSection = 205,
    kFileNotWritable = 206,
    kSizeOverflow = 309,
    kWrongArgumentCount = 501,
    kMissingArgument = 506,
    kBadOption = 507,
    kInterrupted = 509,
    kOutOfMemory = 602,
    kUnsupportedTensor = 704,
    kBadLiteral = 803,
    kInternalError = 901,
};

inline Diagnostic fault(Fault id) { return Diagnostic(static_cast<DiagnosticId>(id)); }

// Binds `name` to the value of an Expected, or returns its diagnostic.
#define CLI_JOIN_INNER(a, b) a##b
#define CLI_JOIN(a, b) CLI_JOIN_INNER(a, b)
#define CLI_ASSIGN_INNER(temporary, name, expression)                \
    auto temporary = (expression);                                   \
    if (!temporary.has_value()) return std::move(temporary).error(); \
    name = *std::move(temporary)
#define CLI_ASSIGN(name, expression) CLI_ASSIGN_INNER(CLI_JOIN(expected_, __LINE__), name, expression)
#define CLI_TRY(expression)                                                                       \
    do {                                                                                          \
        if (auto status_ = (expression); !status_.has_value()) return std::move(status_).error(); \
    } while (false)

}  // namespace flexor::cli
