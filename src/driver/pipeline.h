#pragma once
// The compiler behind the VM: the stages in order, with the time of each.
//
// Laws
//  P1  An op that no kernel can be made for is tried once, not once per region that reaches it: regions end before it.
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/device_products.h"
#include "runtime/cuda/devices.h"
#include "runtime/telemetry.h"
#include "specialize/specialize.h"
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
    std::string product_library = {};  // with evaluate_kernels computes what products it can (a stress switch)
};

class Pipeline : public vm::Compiler {
public:
    // `devices` outlive the pipeline; null: it compiles for the host alone.
    Pipeline(const PipelineOptions& options, runtime::Telemetry* telemetry, runtime::cuda::Devices* devices = nullptr)
        : options_(options),
          telemetry_(telemetry),
          devices_(devices),
          products_(
              options.product_library.empty() ? codegen::product::Policy::kNever : codegen::product::Policy::kAlways,
              options.product_library) {}

    Expected<std::shared_ptr<const executable::Executable>> compile(const vm::CompileRequest& request) override;

    // Completes the record of an entry that this pipeline compiled.
    void describe(const executable::Executable& executable, EntryStats& stats);

    static bool available();  // false in a build without a code generator

private:
    using Compiled = Expected<std::shared_ptr<const executable::Executable>>;
    // On failure `refused` gets the ops that have no kernel, if it is theirs.
    Compiled compile_once(const vm::CompileRequest& request, const specialize::RefusedOps& known, bool fuse,
                          std::vector<types::OpSite>* refused);
    Expected<void> build_kernels(executable::Executable& executable, StageTimes& times);
    Expected<void> build_for_device(executable::Executable& executable, const bytecode::Module& module,
                                    StageTimes& times, std::vector<types::OpSite>* refused);
    Expected<void> pack_weights(executable::Executable& executable, const bytecode::Module& module);

    PipelineOptions options_;
    runtime::Telemetry* telemetry_;
    runtime::cuda::Devices* devices_;
    DeviceProducts products_;  // of evaluated kernels
    std::mutex mutex_;
    std::map<const executable::Executable*, StageTimes> times_;  // until described
    struct Refusals {
        std::weak_ptr<const bytecode::Module> module;
        specialize::RefusedOps ops;
    };
    std::map<std::pair<std::uint64_t, DeviceKind>, Refusals> refused_;  // by Module id and where the run is
};

}  // namespace flexor::driver
