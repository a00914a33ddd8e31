#include "driver/options.h"

#include <algorithm>
#include <string>

#include "support/diagnostic.h"
#include "support/environment.h"
#include "support/text.h"

namespace flexor::driver {

namespace {

// A call takes some kilobytes of the stack of its thread.
constexpr std::uint32_t kMaxCallDepth = 1000;

Diagnostic refuse(std::string option, std::string found, std::string expected) {
    return Diagnostic(DiagnosticId::kBadOption)
        .operand(std::move(option))
        .found(std::move(found))
        .expected(std::move(expected));
}

}  // namespace

Expected<SessionOptions> checked(const SessionOptions& options) {
    FLEXOR_TRY(support::check_environment());
    if (options.threads < 0 || options.threads > support::kMaxThreads) {
        return refuse("threads", std::to_string(options.threads),
                      "1 to " + std::to_string(support::kMaxThreads) + ", or 0 for as many as before");
    }
    if ((options.allocator.allocate == nullptr) != (options.allocator.release == nullptr))
        return refuse("allocator", "one function", "both functions, or none");
    if (options.max_call_depth < 1 || options.max_call_depth > kMaxCallDepth) {
        return refuse("max_call_depth", std::to_string(options.max_call_depth),
                      "1 to " + std::to_string(kMaxCallDepth));
    }
    SessionOptions effective = options;
    if (options.hard_limit == 0) return effective;
    if (options.soft_limit == SessionOptions().soft_limit)
        effective.soft_limit = std::min(options.soft_limit, options.hard_limit);
    if (effective.soft_limit > options.hard_limit) {
        return refuse("soft_limit", support::text_from_bytes(options.soft_limit),
                      "at most the hard limit of " + support::text_from_bytes(options.hard_limit));
    }
    return effective;
}

}  // namespace flexor::driver
