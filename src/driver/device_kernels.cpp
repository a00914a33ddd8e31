#include "driver/device_kernels.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "codegen/triton/compiler_pool.h"
#include "codegen/triton/device_launcher.h"
#include "driver/host_function.h"
#include "loopir/loopir.h"
#include "loopir/slots.h"
#include "runtime/telemetry.h"
#include "support/diagnostic.h"
#include "support/environment.h"

namespace flexor::driver {

using runtime::cuda::CudaPointer;
using runtime::cuda::CudaStream;
using runtime::cuda::GraphArgument;
using runtime::cuda::GraphFrame;
using runtime::cuda::GraphLaunch;
using runtime::cuda::GraphNode;
using runtime::cuda::GraphNumber;
using runtime::cuda::Launcher;
using runtime::cuda::LaunchReport;

struct DeviceKernels::Compiler : codegen::triton::CompilerPool {
    using CompilerPool::CompilerPool;
};

namespace {

Expected<codegen::triton::LauncherOptions> launcher_options() {
    using codegen::triton::Successor;
    codegen::triton::LauncherOptions options;
    FLEXOR_ASSIGN(options.stand_ins, support::stand_ins_from_environment());
    FLEXOR_ASSIGN(const std::optional<std::string> dependent, support::dependent_launch_from_environment());
    if (dependent == "late") options.successor = Successor::kWhenEnding;
    if (dependent == "early") options.successor = Successor::kWhenBegun;
    return options;
}

// A kernel that the compiler has refused is refused again without asking it.
class CompiledLauncher final : public Launcher {
public:
    explicit CompiledLauncher(std::shared_ptr<codegen::triton::DeviceLauncher> launcher)
        : launcher_(std::move(launcher)) {}

    Expected<LaunchReport> launch(std::span<const CudaPointer> buffers, const std::int64_t* params, CudaPointer fault,
                                  CudaStream stream) override {
        if (refused_.load(std::memory_order_acquire)) return Diagnostic(*refusal_);
        auto done = launcher_->launch(buffers, params, fault, stream);
        if (done || done.error().id() != DiagnosticId::kKernelCompilerFailed) return done;
        const std::lock_guard lock(mutex_);
        if (refusal_ == nullptr) refusal_ = std::make_unique<Diagnostic>(done.error());
        refused_.store(true, std::memory_order_release);
        return done;
    }
    std::uint32_t prefetch(std::span<const CudaPointer> buffers, const std::int64_t* params) override {
        return launcher_->prefetch(buffers, params);
    }
    void settle() override { launcher_->settle(); }

    Expected<GraphNode> graph_node(const GraphLaunch& launch, GraphFrame& frame) override {
        return launcher_->graph_node(launch, frame);
    }

private:
    std::shared_ptr<codegen::triton::DeviceLauncher> launcher_;
    std::atomic<bool> refused_{false};
    std::mutex mutex_;
    std::unique_ptr<Diagnostic> refusal_;
};

}  // namespace

DeviceKernels& DeviceKernels::instance() {
    static auto* kernels = new DeviceKernels();  // never destroyed: code may run while the process ends
    return *kernels;
}

void DeviceKernels::set_compiler(std::vector<std::string> command) {
    const std::lock_guard lock(mutex_);
    if (command == command_) return;
    command_ = std::move(command);
    compiler_ = nullptr;
}

void DeviceKernels::end() {
    std::shared_ptr<Compiler> last;
    {
        const std::lock_guard lock(mutex_);
        last = compiler_;
    }
    if (last != nullptr) last->close();
}

void DeviceKernels::settle() {
    std::vector<std::shared_ptr<Launcher>> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [hash, item] : items_) all.push_back(item.launcher);
    }
    for (const auto& launcher : all) launcher->settle();
}

std::shared_ptr<DeviceKernels::Compiler> DeviceKernels::compiler() {
    if (compiler_ != nullptr) return compiler_;
    std::vector<std::string> command = support::kernel_compiler_from_environment();
    if (command.empty()) command = command_;
    if (command.empty()) return nullptr;
    compiler_ = std::make_shared<Compiler>(std::move(command));
    // Threads that load machine code must not outlive what they load it into.
    static const int registered = std::atexit([] { instance().end(); });
    std::ignore = registered;
    return compiler_;
}

Expected<KernelCache::Built> DeviceKernels::fill(std::span<executable::KernelSlot> kernels,
                                                 const std::shared_ptr<const runtime::cuda::Device>& device) {
    KernelCache::Built built;
    std::optional<Diagnostic> error;
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Compiler> compiler = this->compiler();
    if (compiler == nullptr) {
        return Diagnostic(DiagnosticId::kNoKernelCompiler)
            .found("no command that compiles kernels")
            .hint("FLEXOR_KERNEL_COMPILER or Session::set_device_compiler names one; the Python package does");
    }
    FLEXOR_ASSIGN(const codegen::triton::LauncherOptions options, launcher_options());
    for (executable::KernelSlot& slot : kernels) {
        const std::size_t hash = loopir::structural_hash(slot.ir);
        const auto [begin, end] = items_.equal_range(hash);
        for (auto it = begin; it != end && slot.launcher == nullptr; ++it) {
            if (it->second.device == device.get() && loopir::structurally_equal(it->second.kernel, slot.ir))
                slot.launcher = it->second.launcher;
        }
        if (slot.launcher != nullptr) {
            ++built.hits;
            continue;
        }
        auto made = codegen::triton::DeviceLauncher::create(slot.ir, device, compiler, options);
        if (!made) {
            error = std::move(made).error();
            continue;
        }
        slot.launcher = products_.choose(slot.ir, device, std::make_shared<CompiledLauncher>(*std::move(made)),
                                         [&](const loopir::Kernel& kernel) -> DeviceProducts::Made {
                                             auto launcher = codegen::triton::DeviceLauncher::create(kernel, device,
                                                                                                     compiler, options);
                                             if (!launcher) return nullptr;
                                             return std::make_shared<CompiledLauncher>(*std::move(launcher));
                                         });
        items_.emplace(hash, Item{slot.ir, device.get(), slot.launcher});
        ++built.compiled;
    }
    // Its launches will want them in a moment.
    if (built.compiled > 0) compiler->expect(built.compiled);
    if (error) return *std::move(error);
    return built;
}

std::string DeviceKernels::compiler_report() {
    std::shared_ptr<Compiler> asked;
    {
        const std::lock_guard lock(mutex_);
        asked = compiler();
    }
    if (asked == nullptr)
        return "compiler   missing: no command that compiles kernels for devices; FLEXOR_KERNEL_COMPILER names one\n";
    codegen::triton::CompileRequest request;
    request.function = "probe";
    request.source =
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef probe(to):\n    tl.store(to, 1)\n";
    request.signature = {{"to", "*i32"}};
    const std::uint64_t start = runtime::now_ns();
    const auto code = asked->compile(request);
    if (!code) return "compiler   missing: " + code.error().found() + "\n";
    const std::uint64_t milliseconds = (runtime::now_ns() - start) / 1'000'000;
    return "compiler   Triton, a kernel for compute capability 9.0 in " + std::to_string(milliseconds) + " ms\n";
}

// ---------------------------------------------------------------- kernels on the host

namespace {

// Arguments are buffers, the fault word, and parameters. In a graph the address of the frame comes first, then for each of them
// what it is: a value, or a word of the frame.
class EvaluatedCode {
public:
    explicit EvaluatedCode(loopir::Kernel kernel) : kernel_(std::move(kernel)) {}
    const loopir::Kernel& ir() const { return kernel_; }
    std::size_t arguments() const { return kernel_.buffers.size() + 1 + kernel_.param_count; }

    static void run(void* context, const std::uint64_t* arguments, std::uint64_t (*)(std::uint64_t)) {
        static_cast<EvaluatedCode*>(context)->evaluate(arguments);
    }
    static void run_in_graph(void* context, const std::uint64_t* arguments, std::uint64_t (*to_host)(std::uint64_t)) {
        const auto* kernel = static_cast<EvaluatedCode*>(context);
        const auto* frame = reinterpret_cast<const std::uint64_t*>(arguments[0]);
        std::vector<std::uint64_t> words;
        for (std::size_t i = 0; i < kernel->arguments(); ++i) {
            const bool indirect = arguments[1 + 2 * i] != 0;
            words.push_back(indirect ? to_host(frame[arguments[2 + 2 * i]]) : arguments[2 + 2 * i]);
        }
        kernel->evaluate(words.data());
    }

private:
    void evaluate(const std::uint64_t* arguments) const {
        std::vector<void*> buffers;
        for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
            buffers.push_back(reinterpret_cast<void*>(arguments[i]));
        const std::uint64_t* rest = arguments + kernel_.buffers.size();
        const std::vector<std::int64_t> params(rest + 1, rest + 1 + kernel_.param_count);
        loopir::EvalArgs eval{};
        eval.buffers = buffers.data();
        eval.params = params.data();
        loopir::evaluate(kernel_, eval);
        if (eval.fault) *reinterpret_cast<std::int32_t*>(rest[0]) = 1;
    }

    loopir::Kernel kernel_;
};

class EvaluatedLauncher final : public Launcher {
public:
    EvaluatedLauncher(const loopir::Kernel& kernel, std::shared_ptr<const runtime::cuda::Device> device)
        : kernel_(std::make_shared<EvaluatedCode>(kernel)), device_(std::move(device)) {}

    Expected<LaunchReport> launch(std::span<const CudaPointer> buffers, const std::int64_t* params, CudaPointer fault,
                                  CudaStream stream) override {
        std::vector<std::uint64_t> words(buffers.begin(), buffers.end());
        words.push_back(fault);
        for (std::size_t i = 0; i < kernel_->ir().param_count; ++i)
            words.push_back(static_cast<std::uint64_t>(params[i]));
        HostFunction function{EvaluatedCode::run, kernel_.get(), words.size()};
        std::vector<void*> pointers;
        for (std::uint64_t& word : words) pointers.push_back(&word);
        const auto& driver = device_->driver();
        FLEXOR_TRY(driver.check(driver.launch(reinterpret_cast<runtime::cuda::CudaFunction>(&function), 1, 1, 1, 1, 1,
                                              1, 0, stream, pointers.data(), nullptr),
                                "cuLaunchKernel", "kernel " + kernel_->ir().name));
        return LaunchReport{};
    }

    Expected<GraphNode> graph_node(const GraphLaunch& launch, GraphFrame& frame) override {
        struct Held {
            std::shared_ptr<EvaluatedCode> kernel;
            HostFunction function;
        };
        GraphNode out;
        out.name = kernel_->ir().name;
        out.programs = out.threads = 1;
        out.arguments.push_back({GraphArgument::Kind::kFrame, 0});
        const auto add = [&](const GraphNumber& number) {
            out.arguments.push_back({GraphArgument::Kind::kValue, !number.fixed()});
            out.arguments.push_back(
                {GraphArgument::Kind::kValue, number.fixed() ? static_cast<std::uint64_t>(number.now) : number.word});
        };
        for (const GraphNumber& buffer : launch.buffers) add(buffer);
        add(GraphNumber::of(static_cast<std::int64_t>(launch.fault)));
        for (const GraphNumber& param : launch.params) add(param);
        // Extents have the bounds that compiled kernels have.
        for (const loopir::IntRef& ref : loopir::walked_extents(kernel_->ir())) {
            const GraphNumber extent =
                ref.is_constant ? GraphNumber::of(ref.value) : launch.params[static_cast<std::size_t>(ref.value)];
            if (extent.most < 1) return Diagnostic(DiagnosticId::kNoCodeGenerator).found("nothing to compute");
            frame.bound(extent, 1);
        }
        auto held =
            std::make_shared<Held>(Held{kernel_, {EvaluatedCode::run_in_graph, kernel_.get(), out.arguments.size()}});
        out.function = reinterpret_cast<runtime::cuda::CudaFunction>(&held->function);
        out.keeps = held;
        return out;
    }

private:
    std::shared_ptr<EvaluatedCode> kernel_;
    std::shared_ptr<const runtime::cuda::Device> device_;
};

}  // namespace

std::shared_ptr<Launcher> evaluated_launcher(const loopir::Kernel& kernel,
                                             std::shared_ptr<const runtime::cuda::Device> device) {
    if (kernel.kind == loopir::KernelKind::kExtern) return nullptr;
    return std::make_shared<EvaluatedLauncher>(kernel, std::move(device));
}

}  // namespace flexor::driver
