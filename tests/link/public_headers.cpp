// Every public header compiles alone in a program that sees include/ only, and the library loads and answers.

#include "flexor/error.h"

#if __has_include("support/diagnostic.h")
#error "a private header is visible to users"
#endif

#if defined(FLEXOR_INSTALLED) && __has_include("flexor/stress.h")
#error "the switches of the tests are installed"
#endif

int main() {
    const flexor::Diagnostic diagnostic(static_cast<flexor::DiagnosticId>(301));
    return diagnostic.code() == "E0301" && diagnostic.kind() == flexor::DiagnosticKind::kUserError ? 0 : 1;
}
