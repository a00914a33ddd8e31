#pragma once
// What a Session may be asked for.
#include "flexor/session.h"
#include "support/expected.h"

namespace flexor::driver {

// The options as they take effect (the default soft limit gives way to a smaller hard limit). BadOption for one that
// makes no sense, and for such a value of an environment variable.
Expected<SessionOptions> checked(const SessionOptions& options);

}  // namespace flexor::driver
