#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace flexor::support {

void check_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "flexor: %s:%d: check failed: %s\n", file, line, condition);
    std::abort();
}

}  // namespace flexor::support
