#include "triton/cases.h"

#include <map>

#include "codegen/triton/generator.h"
#include "codegen/triton/graph_kernels.h"
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

const char* form_name(Form form) {
    return form == Form::kLooped ? "looped" : form == Form::kSplit ? "split" : "resident";
}

}  // namespace

namespace {

void add_grid(json& out, const KernelSource& source, const LaunchPlan& plan) {
    out["tiles"] = plan.tiles;
    out["per_processor"] = plan.per_processor;
    out["counters"] = plan.counters;
    out["scratch"] = json::array();
    for (std::size_t i = 0; i < source.scratch.size(); ++i) {
        out["scratch"].push_back(
            {{"dtype", dtype_name(source.scratch[i])}, {"bytes", i < plan.scratch.size() ? plan.scratch[i] : 0}});
    }
}

json request_case(const std::string& name, const LaunchPlan& plan, const CompileRequest& request) {
    json out{{"name", name + "/" + form_name(plan.form)}, {"function", request.function}, {"source", request.source}};
    out["warps"] = request.warps;
    out["stages"] = request.stages;
    out["constants"] = json(std::map<std::string, std::int64_t>(request.constants.begin(), request.constants.end()));
    out["signature"] = request.signature;
    return out;
}

}  // namespace

json compile_case(const std::string& name, const Generator& generator, const LaunchPlan& plan) {
    const KernelSource source = generator.write(plan.form, plan.chunks);
    return request_case(name, plan, generator.request(source, plan, std::vector<bool>(source.arguments.size(), false)));
}

std::optional<json> graph_case(const std::string& name, const Generator& generator,
                               const std::vector<std::int64_t>& params, Successor successor) {
    using runtime::cuda::GraphArgument;
    using runtime::cuda::GraphNumber;
    runtime::cuda::GraphFrame frame;
    const std::size_t count = generator.kernel().buffers.size();
    std::vector<GraphNumber> buffers, numbers;
    for (std::uint32_t b = 0; b < count; ++b) buffers.push_back({frame.address(b), 0, 0, 1});
    for (std::uint32_t i = 0; i < params.size(); ++i) {
        const std::int64_t size = params[i] < 0 ? -(params[i] + 1) : params[i];  // or bits of a double
        numbers.push_back({frame.slot(i), params[i], size < (std::int64_t{1} << 40) ? 2 * size + 2 : size, 1});
    }
    const auto variant = plan_for_graph(generator, kProcessors, {buffers, numbers, 0}, frame);
    if (!variant) return std::nullopt;
    json out = request_case(
        name + "/graph", variant->plan,
        generator.request(variant->source, variant->plan, variant->divisible, variant->indirect, successor));
    // Addresses are told by the number of the buffer.
    std::vector<void*> which;
    for (std::uintptr_t b = 0; b < count; ++b) which.push_back(reinterpret_cast<void*>(b));
    std::vector<std::int64_t> words(frame.words());
    if (!frame.fill(params.data(), which.data(), words.data())) return std::nullopt;
    out["frame"] = json::array();
    for (std::size_t i = 0; i < words.size(); ++i) out["frame"].push_back({{i < count ? "buffer" : "value", words[i]}});
    out["arguments"] = json::array();
    for (std::size_t i = 0; i < variant->arguments.size(); ++i) {
        switch (variant->arguments[i].kind) {
            case GraphArgument::Kind::kFrame: out["arguments"].push_back({{"frame", 0}}); break;
            case GraphArgument::Kind::kCounters: out["arguments"].push_back({{"counters", 0}}); break;
            case GraphArgument::Kind::kScratch:
                out["arguments"].push_back({{"scratch", variant->source.arguments[i - 1].index}});
                break;
            case GraphArgument::Kind::kValue:
                if (variant->source.arguments[i - 1].kind == ArgumentKind::kFault)
                    out["arguments"].push_back({{"fault", 0}});
                else
                    out["arguments"].push_back({{"value", variant->arguments[i].value}});
                break;
        }
    }
    add_grid(out, variant->source, variant->plan);
    return out;
}

namespace {

// What a launch takes beside the code.
void add_launch(json& out, const Generator& generator, const LaunchPlan& plan,
                const std::vector<std::int64_t>& params) {
    const KernelSource source = generator.write(plan.form, plan.chunks);
    json arguments = json::array();
    for (const Argument& argument : source.arguments) {
        switch (argument.kind) {
            case ArgumentKind::kBuffer: arguments.push_back({{"buffer", argument.index}}); break;
            case ArgumentKind::kFault: arguments.push_back({{"fault", 0}}); break;
            case ArgumentKind::kScratch: arguments.push_back({{"scratch", argument.index}}); break;
            case ArgumentKind::kCounters: arguments.push_back({{"counters", 0}}); break;
            case ArgumentKind::kExtent: arguments.push_back({{"value", plan.extents[argument.index]}}); break;
            default: arguments.push_back({{"value", params[argument.index]}}); break;
        }
    }
    out["arguments"] = arguments;
    add_grid(out, source, plan);
}

}  // namespace

Generator generator_of(const loopir::Kernel& kernel) {
    auto out = Generator::create(kernel);
    FLEXOR_CHECK(out.has_value());
    return *std::move(out);
}

json launch_case(const std::string& name, const Generator& generator, const LaunchPlan& plan,
                 const std::vector<std::int64_t>& params) {
    json out = compile_case(name, generator, plan);
    add_launch(out, generator, plan, params);
    return out;
}

std::vector<json> run_cases(const KernelRun& run, bool in_graph) {
    const Generator generator = generator_of(run.kernel);
    Memory after = run.memory;
    std::vector<void*> pointers;
    for (auto& bytes : after) pointers.push_back(bytes.data());
    loopir::EvalArgs args{pointers.data(), run.params.data()};
    loopir::evaluate(run.kernel, args);

    std::vector<std::pair<const char*, LaunchPlan>> plans;
    plans.emplace_back("", *generator.plan(run.params.data(), kProcessors));
    if (run.small_tiles && plans[0].second.tiles > 0) {
        Forced small;
        small.row.walk = true;
        small.row.most_0 = 2;
        small.row.most_1 = 8;
        constexpr GemmTile kGemm{16, 16, 16, 4, 2, 3, 2};
        constexpr AttentionTile kAttention{16, 16, 4, 1, 2};
        small.gemm = &kGemm;
        small.attention = &kAttention;
        plans.emplace_back("/small", *generator.plan(run.params.data(), kProcessors, small));
        plans.back().second.narrow = false;
        if (run.kernel.kind == loopir::KernelKind::kContraction) {
            constexpr GemmTile kWide{16, 32, 16, 4, 2, 2, 2, 16};
            small.gemm = &kWide;
            plans.emplace_back("/wide", *generator.plan(run.params.data(), kProcessors, small));
            constexpr GemmTile kRow{1, 16, 16, 4, 2, 2, 2};
            small.gemm = &kRow;
            if (sums_row_by_row(*run.kernel.contraction))
                plans.emplace_back("/rows", *generator.plan(run.params.data(), kProcessors, small));
        }
        if (run.kernel.kind == loopir::KernelKind::kRow && may_split(*generator.layout())) {
            small.row.parts = 4;
            plans.emplace_back("/parts", *generator.plan(run.params.data(), kProcessors, small));
        }
    }
    std::vector<json> out;
    for (const auto& [label, plan] : plans) {
        out.push_back(launch_case(run.name, generator, plan, run.params));
        out.back()["name"] = out.back()["name"].get<std::string>() + label;
    }
    if (in_graph) {
        if (auto one = graph_case(run.name, generator, run.params)) out.push_back(*std::move(one));
    }
    for (json& one : out) {
        one["dtypes"] = json::array();
        for (const loopir::BufferParam& buffer : run.kernel.buffers) one["dtypes"].push_back(dtype_name(buffer.dtype));
        one["before"] = bytes_json(run.memory);
        one["after"] = bytes_json(after);
        one["fault"] = args.fault;
        one["kernel"] = loopir::print(run.kernel);
    }
    return out;
}

}  // namespace flexor::tests
