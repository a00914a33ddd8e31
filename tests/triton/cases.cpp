#include "triton/cases.h"

#include <map>

#include "codegen/triton/compile_request.h"
#include "codegen/triton/row_layout.h"
#include "loopir/loopir.h"
#include "support/check.h"

namespace flexor::tests {

using namespace codegen::triton;
using nlohmann::json;

namespace {

json bytes_json(const Memory& memory) {
    constexpr char kDigits[] = "0123456789abcdef";
    json out = json::array();
    for (const auto& bytes : memory) {
        std::string text;
        for (const std::uint8_t b : bytes) {
            text += kDigits[b >> 4];
            text += kDigits[b & 15];
        }
        out.push_back(text);
    }
    return out;
}

RowSource source_of(const loopir::Kernel& kernel, const RowLayout& layout, const RowLaunch& launch) {
    return kernel.contraction ? write_contraction(kernel, layout) : write_row_kernel(kernel, layout, launch.form);
}

const char* form_name(RowForm form) { return form == RowForm::kLooped ? "looped" : "resident"; }

}  // namespace

bool is_written(const loopir::Kernel& kernel) {
    return kernel.kind == loopir::KernelKind::kRow ||
           (kernel.kind == loopir::KernelKind::kContraction && !kernel.contraction->prologue);
}

Written planned(const loopir::Kernel& kernel, const std::vector<std::int64_t>& params) {
    if (kernel.kind == loopir::KernelKind::kContraction) {
        RowLayout layout = lay_out_epilogue(kernel);
        RowLaunch launch = plan_contraction(*kernel.contraction, layout, params.data());
        return {std::move(layout), std::move(launch)};
    }
    RowLayout layout = lay_out(kernel.body);
    RowLaunch launch = plan_launch(layout, params.data());
    return {std::move(layout), std::move(launch)};
}

json compile_case(const std::string& name, const loopir::Kernel& kernel, const RowLayout& layout,
                  const RowLaunch& launch) {
    const RowSource source = source_of(kernel, layout, launch);
    json out{{"name", name + "/" + form_name(launch.form)}, {"function", source.function}, {"source", source.text}};
    const CompileRequest request =
        row_request(kernel, source, launch, std::vector<bool>(source.arguments.size(), false));
    out["warps"] = request.warps;
    out["constants"] = json(std::map<std::string, std::int64_t>(request.constants.begin(), request.constants.end()));
    out["signature"] = request.signature;
    return out;
}

namespace {

json launch_arguments(const RowSource& source, const RowLaunch& launch, const std::vector<std::int64_t>& params) {
    json out = json::array();
    for (const Argument& argument : source.arguments) {
        switch (argument.kind) {
            case ArgumentKind::kBuffer: out.push_back({{"buffer", argument.index}}); break;
            case ArgumentKind::kFault: out.push_back({{"fault", 0}}); break;
            case ArgumentKind::kExtent: out.push_back({{"value", launch.extents[argument.index]}}); break;
            default: out.push_back({{"value", params[argument.index]}}); break;
        }
    }
    return out;
}

// Bytes of the elements that an access reaches.
std::int64_t reached_bytes(const KernelRun& run, const RowLayout& layout, const loopir::Access& access) {
    const auto value = [&](const loopir::IntRef& ref) {
        return ref.is_constant ? ref.value : run.params[static_cast<std::size_t>(ref.value)];
    };
    auto bytes = static_cast<std::int64_t>(dtype_size(run.kernel.buffers[access.buffer].dtype));
    for (std::uint32_t dim = 0; dim < layout.body.rank(); ++dim) {
        if (value(access.strides[dim]) != 0) bytes *= value(layout.body.extents[dim]);
    }
    return bytes;
}

}  // namespace

std::vector<json> timed_cases() {
    struct Size {
        const char* name;
        std::int64_t rows, columns;
    };
    constexpr Size kSizes[] = {
        {"add_relu_sum", 16384, 768}, {"softmax", 16384, 768},        {"softmax", 2048, 16384},
        {"softmax", 65536, 64},       {"column_sum", 4096, 4096},     {"layer_norm_in_place", 16384, 768},
        {"full_max", 4096, 4096},     {"transposed_add", 4096, 4096}, {"concat", 16384, 768}};
    std::vector<json> out;
    for (const Size& size : kSizes) {
        const KernelRun run = text_kernel(size.name, size.rows, size.columns);
        const RowLayout layout = lay_out(run.kernel.body);
        const RowLaunch launch = plan_launch(layout, run.params.data());
        json one = compile_case(run.name, run.kernel, layout, launch);
        one["tiles"] = launch.tiles;
        one["arguments"] = launch_arguments(source_of(run.kernel, layout, launch), launch, run.params);
        std::vector<std::int64_t> bytes(run.kernel.buffers.size(), 16);
        std::int64_t traffic = 0;
        for_each_access(layout.body, [&](const loopir::Access& access) {
            const std::int64_t reached = reached_bytes(run, layout, access);
            bytes[access.buffer] = std::max(bytes[access.buffer], reached + 64);
            traffic += reached;
        });
        one["bytes"] = bytes;
        one["traffic"] = traffic;
        out.push_back(std::move(one));
    }
    return out;
}

std::vector<json> run_cases(const KernelRun& run) {
    const auto [layout, planned_launch] = planned(run.kernel, run.params);
    Memory after = run.memory;
    std::vector<void*> pointers;
    for (auto& bytes : after) pointers.push_back(bytes.data());
    loopir::EvalArgs args{pointers.data(), run.params.data()};
    loopir::evaluate(run.kernel, args);

    std::vector<RowLaunch> launches{planned_launch};
    RowLaunch small = launches[0];
    if (run.small_tiles && small.tiles > 0) {
        if (!layout.elementwise) small.form = RowForm::kLooped;
        small.block[0] = std::min(small.block[0], 2);
        small.block[1] = std::min(small.block[1], 8);
        small.narrow = false;
        launches.push_back(small);
    }
    std::vector<json> out;
    for (const RowLaunch& launch : launches) {
        json one = compile_case(run.name, run.kernel, layout, launch);
        if (&launch != &launches[0]) one["name"] = one["name"].get<std::string>() + "/small";
        one["tiles"] = launch.tiles;
        one["arguments"] = launch_arguments(source_of(run.kernel, layout, launch), launch, run.params);
        one["dtypes"] = json::array();
        for (const loopir::BufferParam& buffer : run.kernel.buffers) one["dtypes"].push_back(dtype_name(buffer.dtype));
        one["before"] = bytes_json(run.memory);
        one["after"] = bytes_json(after);
        one["fault"] = args.fault;
        one["kernel"] = loopir::print(run.kernel);
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace flexor::tests
