#pragma once
// The compiler behind the VM: the stages in order, with the time of each.
#include <map>
#include <memory>
#include <mutex>

#include "runtime/telemetry.h"
#include "vm/compile_interface.h"

namespace flexor::driver {

struct StageTimes {
    double specialize = 0, transform = 0, lower = 0, codegen = 0, pack = 0;
    std::uint32_t kernels_built = 0;
    std::uint64_t code_bytes = 0;
};

struct PipelineOptions {
    bool fuse = true;               // false: one kernel per op (a stress switch)
    bool evaluate_kernels = false;  // kernels run in the loop-IR evaluator (a stress switch; needs no code generator)
    bool end_at_once = false;       // regions end behind their first op (a stress switch)
};

class Pipeline : public vm::Compiler {
public:
    Pipeline(const PipelineOptions& options, runtime::Telemetry* telemetry)
        : options_(options), telemetry_(telemetry) {}

    Expected<std::shared_ptr<const executable::Executable>> compile(const vm::CompileRequest& request) override;

    // Completes the record of an entry that this pipeline compiled.
    void describe(const executable::Executable& executable, EntryStats& stats);

    static bool available();  // false in a build without a code generator

private:
    Expected<void> build_kernels(executable::Executable& executable, StageTimes& times);
    Expected<void> pack_weights(executable::Executable& executable, const bytecode::Module& module);

    PipelineOptions options_;
    runtime::Telemetry* telemetry_;
    std::mutex mutex_;
    std::map<const executable::Executable*, StageTimes> times_;  // until described
};

}  // namespace flexor::driver
