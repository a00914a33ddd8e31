#include "flexor/session.h"

#include <algorithm>

#include "bytecode/public_module.h"
#include "driver/device_kernels.h"
#include "driver/example.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "driver/prepare.h"
#include "driver/report.h"
#include "flexor/stress.h"
#include "runtime/floor.h"
#include "runtime/pool.h"
#include "runtime/thread_pool.h"
#include "support/diagnostic.h"
#include "support/expected.h"
#include "support/no_memory.h"
#include "support/text.h"
#include "vm/engine.h"
#include "vm/profile.h"

namespace flexor {

namespace {

void fill_pool_stats(const runtime::Pool& pool, PoolStats& stats) {
    const runtime::PoolGauges gauges = pool.gauges();
    stats.live_bytes = gauges.live_bytes;
    stats.reserved_bytes = gauges.reserved_bytes;
    stats.peak_live_bytes = gauges.peak_live_bytes;
    stats.peak_reserved_bytes = gauges.peak_reserved_bytes;
    stats.soft_limit = pool.options().soft_limit;
    stats.hard_limit = pool.options().hard_limit;
    stats.growth_events = gauges.growth_events;
    stats.over_soft_events = gauges.over_soft_events;
    stats.hard_limit_events = gauges.hard_limit_events;
    stats.shrunk_bytes = gauges.shrunk_bytes;
    stats.reuses = gauges.reuses;
}

void add_pool_stats(const runtime::cuda::DevicePool& pool, PoolStats& stats) {
    const runtime::PoolGauges gauges = pool.gauges();
    stats.live_bytes += gauges.live_bytes;
    stats.reserved_bytes += gauges.reserved_bytes;
    stats.peak_live_bytes += gauges.peak_live_bytes;
    stats.peak_reserved_bytes += gauges.peak_reserved_bytes;
    stats.soft_limit = pool.options().soft_limit;
    stats.hard_limit = pool.options().hard_limit;
    stats.growth_events += gauges.growth_events;
    stats.over_soft_events += gauges.over_soft_events;
    stats.hard_limit_events += gauges.hard_limit_events;
    stats.shrunk_bytes += gauges.shrunk_bytes;
    stats.reuses += gauges.reuses;
}

Event pool_event(const runtime::PoolEvent& pool) {
    Event event;
    event.bytes = pool.bytes;
    const std::string reserved = support::text_from_bytes(pool.reserved) + " reserved";
    switch (pool.kind) {
        case runtime::PoolEvent::Kind::kGrowth:
            event.kind = "pool_growth";
            event.text = "the pool grew by " + support::text_from_bytes(pool.bytes) + ", " + reserved;
            break;
        case runtime::PoolEvent::Kind::kOverSoft:
            event.kind = "over_soft_limit";
            event.text = "the pool passed its soft limit, " + reserved;
            break;
        case runtime::PoolEvent::Kind::kHardLimit:
            event.kind = "hard_limit";
            event.text = "the pool refused " + support::text_from_bytes(pool.bytes) + ", " + reserved;
            break;
    }
    return event;
}

}  // namespace

struct Session::Impl {
    // `refused`: why no run is taken; the options are then the default ones.
    Impl(const SessionOptions& given, const StressOptions& stress, std::unique_ptr<Diagnostic> refused)
        : options(given),
          error(std::move(refused)),
          pool(runtime::Pool::create({given.soft_limit, given.hard_limit, stress.poison, given.allocator.allocate,
                                      given.allocator.release, given.allocator.context})),
          own_devices(stress.device_driver.empty() ? nullptr
                                                   : std::make_unique<runtime::cuda::Devices>(stress.device_driver)),
          devices(own_devices != nullptr ? *own_devices : runtime::cuda::Devices::system()),
          pipeline({stress.fuse, stress.evaluate_kernels, stress.end_at_once, stress.product_library}, &telemetry,
                   &devices),
          engine({given.exact_only, given.exact_capacity, given.entry_capacity, given.max_call_depth,
                  stress.fail_guards, given.compile_behind, given.device_graphs, stress.graphs_at_once},
                 given.compile && (driver::Pipeline::available() || stress.evaluate_kernels) ? &pipeline : nullptr,
                 pool, &telemetry, &hooks) {
        if (given.threads > 0) runtime::set_thread_count(given.threads);
        engine.set_describe(
            [](void* context, const executable::Executable& executable, EntryStats& stats) {
                static_cast<driver::Pipeline*>(context)->describe(executable, stats);
            },
            &pipeline);
        // The soft limit of a host is no measure of a device: unless one was asked for, the device's size decides.
        const bool standard = given.soft_limit == SessionOptions().soft_limit;
        engine.devices().open(&devices, {standard ? 0 : given.soft_limit, given.hard_limit, false});
        pool->set_listener([this](const runtime::PoolEvent& event) { telemetry.record_event(pool_event(event)); });
    }
    ~Impl() { pool->set_listener(nullptr); }

    SessionOptions options;
    std::unique_ptr<Diagnostic> error;
    runtime::Telemetry telemetry;
    std::shared_ptr<runtime::Pool> pool;
    vm::Hooks hooks;
    std::unique_ptr<runtime::cuda::Devices> own_devices;  // of a driver of the tests
    runtime::cuda::Devices& devices;
    driver::Pipeline pipeline;
    vm::Engine engine;
};

Session::Session(SessionOptions options) : Session(options, StressOptions{}) {}
Session::Session(SessionOptions options, const StressOptions& stress) {
    auto effective = driver::checked(options);
    auto refused = effective ? nullptr : std::make_unique<Diagnostic>(std::move(effective).error());
    impl_ = std::make_unique<Impl>(refused == nullptr ? *effective : SessionOptions(), stress, std::move(refused));
}
Session::~Session() = default;
const Diagnostic* Session::error() const { return impl_->error.get(); }

Expected<std::vector<Value>> Session::run(const Module& module, std::span<const Value> arguments,
                                          const CallOptions& call) {
    return run_function(module, "main", arguments, call);
}

Expected<std::vector<Value>> Session::run(const Module& module, std::initializer_list<Value> arguments,
                                          const CallOptions& call) {
    return run_function(module, "main", {arguments.begin(), arguments.size()}, call);
}

Expected<std::vector<Value>> Session::run_function(const Module& module, std::string_view function,
                                                   std::span<const Value> arguments, const CallOptions& call) {
    const std::int32_t index = function_index(module, function);
    if (index < 0) {
        std::vector<std::string_view> names;
        for (const bytecode::Function& f : bytecode::module_ref(module)->functions) names.emplace_back(f.name);
        return Diagnostic(DiagnosticId::kUnknownName)
            .operand("function")
            .found(std::string(function))
            .hint(support::near_miss_hint(function, names));
    }
    std::vector<Value> results;
    FLEXOR_TRY(run_into(module, index, arguments, results, call));
    return results;
}

Expected<void> Session::run_into(const Module& module, std::int32_t function, std::span<const Value> arguments,
                                 std::vector<Value>& results, const CallOptions& call) {
    results.clear();
    return support::or_out_of_memory([&]() -> Expected<void> {
        if (impl_->error != nullptr) return *impl_->error;
        return impl_->engine.run(bytecode::module_ref(module), function, arguments, results, call);
    });
}

Expected<void> Session::run_into(const Module& module, std::int32_t function, std::span<const Value> arguments,
                                 std::span<const Tensor> outputs, const CallOptions& call) {
    return support::or_out_of_memory([&]() -> Expected<void> {
        if (impl_->error != nullptr) return *impl_->error;
        return impl_->engine.run_into(bytecode::module_ref(module), function, arguments, outputs, call);
    });
}

std::int32_t Session::function_index(const Module& module, std::string_view function) {
    return bytecode::module_ref(module)->find_function(function);
}

void Session::bind(std::string name, ForeignFunction function, bool is_typed) {
    impl_->hooks.bind(std::move(name), std::move(function), is_typed);
}

void Session::settle() {
    impl_->engine.settle();
    if (impl_->engine.devices().pools().empty()) return;
    driver::DeviceKernels::instance().settle();
    impl_->engine.devices().settle_graphs();
}

void Session::bind_value(std::string name, Value value) { impl_->hooks.bind_value(std::move(name), std::move(value)); }

Expected<Explanation> Session::explain(const Module& module, std::span<const Value> arguments,
                                       std::string_view function) {
    return explain(module, arguments, ExplainOptions{.function = function});
}

Expected<Explanation> Session::explain(const Module& module, std::span<const Value> arguments,
                                       const ExplainOptions& options) {
    const std::string_view function = options.function;
    const std::int32_t index = function_index(module, function);
    if (impl_->error != nullptr) return *impl_->error;
    if (index < 0) return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(std::string(function));
    const bytecode::ModuleRef& ref = bytecode::module_ref(module);
    vm::Profile profile;
    vm::Trace trace;
    if (options.profile) {
        trace.profile = &profile;
        if (options.call.device.kind == DeviceKind::kCpu) profile.set_floor(runtime::host_floor());
    }
    std::vector<Value> results;
    const Stats before = stats();
    auto done = impl_->engine.run(ref, index, arguments, results, options.call, &trace);
    Explanation out;
    out.kernels = profile.rows();
    if (!done) out.refusal = std::move(done).error();
    out.text = driver::explain_text(*ref, index, arguments, trace, before, stats(), events(),
                                    out.refusal ? &*out.refusal : nullptr);
    return out;
}

Expected<Explanation> Session::explain(const Module& module, std::string_view function) {
    FLEXOR_ASSIGN(const std::vector<Value> arguments, example_arguments(module, function));
    return explain(module, arguments, function);
}

Expected<std::vector<Value>> Session::example_arguments(const Module& module, std::string_view function) {
    const std::int32_t index = function_index(module, function);
    if (index < 0) return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(std::string(function));
    const bytecode::Module& ref = *bytecode::module_ref(module);
    return driver::make_arguments(ref, index, driver::example_sizes(ref, index));
}

Expected<void> Session::prepare(const Module& module, std::span<const SizeRange> ranges, std::string_view function,
                                int other_threads) {
    return prepare(module, ranges, PrepareOptions{.function = function, .other_threads = other_threads});
}

Expected<void> Session::prepare(const Module& module, std::span<const SizeRange> ranges,
                                const PrepareOptions& options) {
    const std::string_view function = options.function;
    const CallOptions& call = options.call;
    const bool on_device = call.device.kind != DeviceKind::kCpu;
    const std::int32_t index = function_index(module, function);
    if (index < 0) return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(std::string(function));
    if (impl_->error != nullptr) return *impl_->error;
    const bytecode::ModuleRef& ref = bytecode::module_ref(module);
    if (!ref->hooks.empty()) {
        return Diagnostic(DiagnosticId::kMissingHook)
            .operand(ref->hooks.front())
            .hint("a program that calls its host cannot be run ahead of time");
    }
    FLEXOR_ASSIGN(const driver::Preparation preparation, driver::Preparation::of(*ref, index, ranges));
    const driver::PreparedRun run = [&](std::span<const Value> arguments) -> Expected<bool> {
        std::vector<Value> results, placed(arguments.begin(), arguments.end());
        if (on_device) {
            for (Value& value : placed) {
                FLEXOR_ASSIGN(value, impl_->engine.to_device(value, call));
            }
        }
        const std::uint64_t before = impl_->telemetry.compilations();
        for (std::uint64_t seen = before;;) {
            FLEXOR_TRY(run_into(module, index, placed, results, call));
            settle();
            const std::uint64_t now = impl_->telemetry.compilations();
            // What is compiled beside the calls is there for the next one, which may meet more.
            if (!impl_->options.compile_behind || now == seen) return now != before;
            seen = now;
        }
    };
    runtime::start_workers();
    FLEXOR_TRY(preparation.compile(run));
    if (on_device) {
        FLEXOR_TRY(preparation.sweep(run));
        settle();
    }
    return driver::on_threads(options.other_threads + 1, [&]() -> Expected<void> {
        FLEXOR_TRY(preparation.touch(run));
        impl_->engine.settle_thread(ref);
        return {};
    });
}

Expected<void> Session::require_hooks(const Module& module) const {
    std::vector<std::string> missing;
    Value value;
    for (const std::string& hook : module.hooks()) {
        if (!impl_->hooks.value(hook, &value)) missing.push_back(hook);
    }
    if (missing.empty()) return {};
    return Diagnostic(DiagnosticId::kMissingHook)
        .operand(missing.front())
        .found("no function or value bound under " + support::join(missing, ", "))
        .hint("bind them before the program is loaded");
}

Expected<Module> Session::load(const std::string& path) const {
    FLEXOR_ASSIGN(Module module, Module::load(path));
    FLEXOR_TRY(require_hooks(module));
    return module;
}

Stats Session::stats() const {
    Stats stats = impl_->telemetry.snapshot();
    fill_pool_stats(*impl_->pool, stats.pool);
    for (const auto& pool : impl_->engine.devices().pools()) add_pool_stats(*pool, stats.device_pool);
    return stats;
}

std::vector<Event> Session::events(std::uint64_t after_sequence) const {
    return impl_->telemetry.events(after_sequence);
}

void Session::reset_stats() {
    impl_->telemetry.reset();
    impl_->pool->reset_peaks();
    for (const auto& pool : impl_->engine.devices().pools()) pool->reset_peaks();
}

void Session::set_event_sink(std::function<void(const Event&)> sink) { impl_->telemetry.set_sink(std::move(sink)); }
void Session::interrupt() noexcept { impl_->engine.interrupt(); }
Expected<void> Session::synchronize(Device device, void* stream) {
    if (impl_->error != nullptr) return *impl_->error;
    return impl_->engine.synchronize(device, stream);
}
std::uint64_t Session::trim() {
    std::uint64_t bytes = impl_->pool->trim();
    impl_->engine.devices().drop_graphs();
    for (const auto& pool : impl_->engine.devices().pools()) bytes += pool->trim();
    return bytes;
}
void Session::clear_cache() { impl_->engine.clear(); }
const SessionOptions& Session::options() const { return impl_->options; }
void Session::set_device_compiler(std::vector<std::string> command) {
    driver::DeviceKernels::instance().set_compiler(std::move(command));
}

std::string Session::doctor() {
    return "processor  " +
           std::string(has_code_generator() ? "kernels are compiled"
                                            : "kernels are interpreted: a build without LLVM") +
           "\n" + runtime::cuda::device_report() + driver::DeviceKernels::instance().compiler_report() +
           runtime::cuda::CublasLt::report();
}

bool Session::has_code_generator() { return driver::Pipeline::available(); }

Session& Session::default_session() {
    // Never destroyed: calls may run while the process ends.
    static Session* session = new Session();
    return *session;
}

}  // namespace flexor
