#pragma once

// Checks of our own laws. They say nothing to a user: what a user can cause is a Diagnostic.

#include <string_view>

namespace flexor::support {

// Tells the fatal sink (flexor/error.h) and aborts.
[[noreturn]] void die(std::string_view text);

// The same with the condition and its place.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// The same with what a third party said about it.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view detail);

}  // namespace flexor::support

// Always on.
#define FLEXOR_CHECK(condition)                          \
    (static_cast<bool>(condition) ? static_cast<void>(0) \
                                  : ::flexor::support::check_failed(#condition, __FILE__, __LINE__))

// Compiled out of release builds: for inner loops.
#ifdef NDEBUG
#define FLEXOR_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define FLEXOR_DCHECK(condition) FLEXOR_CHECK(condition)
#endif

// For a law that a third party broke: the process cannot go on.
#define FLEXOR_FATAL(detail) ::flexor::support::check_failed("fatal", __FILE__, __LINE__, detail)

// The end of an exhaustive switch.
#define FLEXOR_UNREACHABLE() ::flexor::support::check_failed("unreachable", __FILE__, __LINE__)
