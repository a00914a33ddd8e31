#include "driver/pipeline.h"

#include "support/diagnostic.h"

namespace flexor::driver {

bool Pipeline::available() { return false; }

Expected<std::shared_ptr<const executable::Executable>> Pipeline::compile(const vm::CompileRequest&) {
    return Diagnostic(DiagnosticId::kNoCodeGenerator);
}

void Pipeline::describe(const executable::Executable& executable, EntryStats& stats) {
    std::lock_guard lock(mutex_);
    const auto found = times_.find(&executable);
    if (found == times_.end()) return;
    const StageTimes& times = found->second;
    stats.specialize_seconds = times.specialize;
    stats.transform_seconds = times.transform;
    stats.lower_seconds = times.lower;
    stats.codegen_seconds = times.codegen;
    stats.pack_seconds = times.pack;
    stats.kernels_built = times.kernels_built;
    stats.code_bytes = times.code_bytes;
    times_.erase(found);
}

}  // namespace flexor::driver
