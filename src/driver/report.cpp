#include "driver/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>

#include "bytecode/text.h"
#include "executable/executable.h"
#include "loopir/loopir.h"
#include "runtime/cuda/launcher.h"
#include "support/diagnostic.h"
#include "support/expected.h"
#include "support/text.h"
#include "vm/profile.h"

namespace flexor::driver {

namespace {

std::string padded(std::string text, std::size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

std::string indent(const std::string& text, const std::string& by) {
    std::string out;
    for (std::string_view line : support::split(text, '\n')) {
        if (line.empty()) continue;
        out += by;
        out += line;
        out += "\n";
    }
    return out;
}

// Buffers that the kernel's first launch writes and that neither leave the region nor belong to an argument.
int intermediate_writes(const executable::Executable& executable, std::uint32_t kernel) {
    std::set<executable::BufferSlot> results;
    for (const executable::Block& block : executable.blocks) {
        for (const executable::Step& step : block.steps) {
            if (step.kind == executable::Step::Kind::kAllocate && step.output) results.insert(step.buffer);
        }
    }
    for (const executable::Launch& launch : executable.launches) {
        if (launch.kernel != kernel) continue;
        std::set<executable::BufferSlot> written;
        for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
            const executable::BufferSlot buffer = launch.buffers[i];
            if (executable.kernels[kernel].ir.buffers[i].written && results.count(buffer) == 0 &&
                executable.sources[buffer].kind == executable::BufferSource::Kind::kNone)
                written.insert(buffer);
        }
        return static_cast<int>(written.size());
    }
    return 0;
}

std::string kernel_text(const executable::Executable& executable, std::uint32_t index) {
    const executable::KernelSlot& kernel = executable.kernels[index];
    std::string text = loopir::print(kernel.ir);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text + "\n; reads " + std::to_string(loopir::traffic(kernel.ir).reads) + ", intermediate writes " +
           std::to_string(intermediate_writes(executable, index)) + "\n" +
           (kernel.launcher == nullptr || kernel.launcher->note().empty() ? "" : "; " + kernel.launcher->note() + "\n");
}

std::string rate_text(double per_second, double unit, const char* name) {
    return support::text_from_double(std::round(per_second / unit)) + " " + name;
}

std::string profile_text(const vm::Profile& profile) {
    const runtime::Floor& floor = profile.floor();
    std::string out = "profile: the floor is " + rate_text(floor.bytes_per_second, 1e9, "GB/s copied, measured");
    if (floor.operations_per_second > 0) {
        out += ", and " + rate_text(floor.operations_per_second, 1e12, "TFLOP/s") + " (products of 16 bits " +
               rate_text(floor.products_16_per_second, 1e12, "TFLOP/s)");
    }
    out += "\n";
    std::vector<std::vector<std::string>> rows{
        {"  kernel", "launches", "MB", "MFLOP", "us", "floor us", "% of the floor"}};
    std::vector<KernelTime> kernels = profile.rows();
    std::ranges::stable_sort(kernels, std::greater<>(), &KernelTime::seconds);
    const auto number = [](double value, int digits) {
        char text[32];
        std::snprintf(text, sizeof text, "%.*f", digits, value);
        return std::string(text);
    };
    KernelTime sum;
    sum.kernel = "all";
    for (const KernelTime& one : kernels) {
        sum.launches += one.launches;
        sum.bytes += one.bytes;
        sum.operations += one.operations;
        sum.seconds += one.seconds;
        sum.floor_seconds += one.floor_seconds;
    }
    kernels.push_back(sum);
    for (const KernelTime& one : kernels) {
        const bool known = one.floor_seconds > 0 && one.seconds > 0;
        rows.push_back({"  " + one.kernel, std::to_string(one.launches), number(one.bytes * 1e-6, 3),
                        number(one.operations * 1e-6, 3), number(one.seconds * 1e6, 1),
                        known ? number(one.floor_seconds * 1e6, 1) : "-",
                        known ? number(100 * one.floor_seconds / one.seconds, 0) : "-"});
    }
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows) {
        std::string line = padded(row[0], widths[0]);
        for (std::size_t i = 1; i < row.size(); ++i)
            line += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
        out += line + "\n";
    }
    return out;
}

}  // namespace

std::string explain_text(const bytecode::Module& module, std::int32_t function, std::span<const Value> arguments,
                         const vm::Trace& trace, const Stats& before, const Stats& after,
                         const std::vector<Event>& events, const Diagnostic* error) {
    const bytecode::Function& f = module.functions[static_cast<std::size_t>(function)];
    std::string out;
    const auto step = [&](std::string_view name, const std::string& text) {
        out += padded(std::string(name), 14) + text + "\n";
    };
    step("load", "function " + f.name + "(" +
                     support::join(f.params, ", ", [&](const auto& p) { return bytecode::to_string(module, p); }) +
                     "), " + std::to_string(f.code.size()) + " instructions, " + std::to_string(f.sites.size()) +
                     " ops, " + std::to_string(module.weights.size()) + " weights");
    step("arguments", support::join(arguments, ", ", [](const Value& v) { return v.describe(); }));
    for (const vm::Trace::Line& line : trace.lines) step(line.phase, line.text);

    std::vector<std::shared_ptr<const executable::Executable>> seen;
    for (const auto& executable : trace.executables) {
        if (std::find(seen.begin(), seen.end(), executable) == seen.end()) seen.push_back(executable);
    }
    for (const bytecode::ParamDecl& param : f.params) {
        for (std::size_t axis = 0; axis < param.frozen.size(); ++axis) {
            if (!param.frozen[axis]) continue;
            const auto versions =
                std::count_if(after.entries.begin(), after.entries.end(),
                              [&](const EntryStats& entry) { return entry.function == f.name && entry.pc == 0; });
            step("frozen", "FROZEN on " + param.name + "[" + std::to_string(axis) + "] made " +
                               std::to_string(versions) + (versions == 1 ? " version" : " versions"));
        }
    }
    const std::uint64_t compiled = after.compiled_ops - before.compiled_ops;
    const std::uint64_t interpreted = after.interpreted_ops - before.interpreted_ops;
    step("run", std::to_string(compiled) + " ops in compiled regions, " + std::to_string(interpreted) + " outside, " +
                    std::to_string(after.kernel_launches - before.kernel_launches) + " launches, " +
                    std::to_string(after.region_exits - before.region_exits) + " exits to the interpreter");
    for (const FallbackRow& row : after.fallbacks) {
        std::uint64_t earlier = 0;
        for (const FallbackRow& old : before.fallbacks) {
            if (old.op == row.op && old.reason == row.reason && old.function == row.function && old.line == row.line)
                earlier = old.count;
        }
        if (row.count == earlier) continue;
        step("fallback", row.function + " line " + std::to_string(row.line) + ": " + row.op + " " +
                             std::to_string(row.count - earlier) + " times, " + row.reason);
    }
    for (const Event& event : events) {
        if (event.seconds >= before.uptime_seconds &&
            (event.kind == "pool_growth" || event.kind == "hard_limit" || event.kind == "over_soft_limit"))
            step("memory", event.text);
    }
    if (error != nullptr) step("raised", error->to_string());
    if (trace.profile != nullptr) out += "\n" + profile_text(*trace.profile);

    for (const auto& executable : seen) {
        const std::string name = executable->function + "@" + std::to_string(executable->pc);
        if (!executable->listing.empty()) out += "\nspecialised " + name + "\n" + indent(executable->listing, "  ");
        out += "\nkernels of " + name + "\n";
        for (std::uint32_t i = 0; i < executable->kernels.size(); ++i) out += indent(kernel_text(*executable, i), "  ");
        out += "\n" + executable::print(*executable);
    }
    return out;
}

}  // namespace flexor::driver
