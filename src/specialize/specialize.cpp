#include "specialize/specialize.h"

#include "specialize/specializer.h"
#include "support/diagnostic.h"

namespace flexor::specialize {

Expected<specialised::Program> specialize(const Region& region) {
    // Each restart widens at least one more carried dim or keeps one more call, so the attempts are bounded by their
    // number.
    constexpr int kMaxAttempts = 256;
    Knowledge knowledge;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
        Specializer specializer(region, knowledge);
        if (specializer.run()) return specializer.take();
        if (specializer.error()) return std::move(*specializer.error());
        if (!specializer.must_restart()) break;
    }
    return Diagnostic(DiagnosticId::kOpNotCompiled).found("types at a loop head do not settle");
}

}  // namespace flexor::specialize
