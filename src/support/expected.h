#pragma once

// Expected<T> and Status for the inside of the library, with the two macros that hand an error on.

#include "flexor/error.h"

#define FLEXOR_CONCAT_INNER(a, b) a##b
#define FLEXOR_CONCAT(a, b) FLEXOR_CONCAT_INNER(a, b)

// FLEXOR_TRY(status_or_expected): returns the Diagnostic to the caller if there is one.
#define FLEXOR_TRY(expression)                                                                          \
    do {                                                                                                \
        if (auto flexor_result = (expression); !flexor_result) return std::move(flexor_result).error(); \
    } while (false)

// FLEXOR_ASSIGN(auto x, expected): declares or assigns x, or returns the Diagnostic. Two statements: not for an if
// without braces.
#define FLEXOR_ASSIGN(target, expression) \
    FLEXOR_ASSIGN_INNER(FLEXOR_CONCAT(flexor_result_, __COUNTER__), target, expression)
#define FLEXOR_ASSIGN_INNER(result, target, expression) \
    auto result = (expression);                         \
    if (!result) return std::move(result).error();      \
    target = std::move(result).value()
