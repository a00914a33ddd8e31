#pragma once
// Checks of programs that are linked with the library alone, without a test framework.
#include <cstdio>
#include <string>

inline int failures = 0;

inline void expect(bool holds, const std::string& what) {
    if (holds) return;
    std::printf("FAILED: %s\n", what.c_str());
    ++failures;
}
