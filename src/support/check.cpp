#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace flexor::support {

void check_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "flexor: %s:%d: check failed: %s\n", file, line, condition);
    std::abort();
}

void check_failed(const char* condition, const char* file, int line, std::string_view detail) {
    std::fprintf(stderr, "flexor: %.*s\n", static_cast<int>(detail.size()), detail.data());
    check_failed(condition, file, line);
}

}  // namespace flexor::support
