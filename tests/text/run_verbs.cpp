// The verbs that need a Session: what the compiler says, and what the engines compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bytecode/public_module.h"
#include "driver/example.h"
#include "elements.h"
#include "fake/device_values.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "support/text.h"
#include "tensor/element.h"
#include "text/verbs.h"

namespace flexor::tests {
namespace {

std::vector<std::string> marked(const std::string& source, std::string_view mark) {
    std::vector<std::string> out;
    for (const std::string_view line : support::split(source, '\n')) {
        const std::size_t at = line.find(mark);
        if (at != std::string_view::npos) out.emplace_back(support::trim(line.substr(at + mark.size())));
    }
    return out;
}

// The sizes that a line "N=3, M=5" names, and example sizes for the other symbols.
std::vector<std::int64_t> sizes_of(const bytecode::Module& module, std::string_view line) {
    driver::FixedSizes fixed;
    for (const std::string_view piece : support::split(line, ',')) {
        const std::size_t equals = piece.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string name(support::trim(piece.substr(0, equals)));
        const auto size = support::int_from_text(support::trim(piece.substr(equals + 1)));
        EXPECT_TRUE(size.has_value()) << piece;
        bool found = false;
        for (std::size_t i = 0; i < module.symbols.size(); ++i) {
            if (module.symbols[i].name != name) continue;
            fixed[static_cast<types::SymbolId>(i)] = size.value_or(0);
            found = true;
        }
        EXPECT_TRUE(found) << "no symbol '" << name << "'";
    }
    return driver::example_sizes(module, module.find_function("main"), fixed);
}

void bind_hooks(Session& session, const bytecode::Module& module) {
    for (const std::string& hook : module.hooks) {
        session.bind(hook, [](std::span<const Value>) -> Expected<Value> { return Value(); });
    }
}

Status explained(const TextCase& text, bool kernels) {
    FLEXOR_ASSIGN(const Module module, Module::from_text(text.source, text.name));
    const bytecode::Module& parts = *bytecode::module_ref(module);
    Session session({}, StressOptions{.evaluate_kernels = true});
    bind_hooks(session, parts);
    const std::vector<std::string> chosen = marked(text.source, "; sizes:");
    const std::vector<std::int64_t> sizes = sizes_of(parts, chosen.empty() ? "" : chosen.front());
    FLEXOR_ASSIGN(const std::vector<Value> arguments,
                  driver::make_arguments(parts, Session::function_index(module, "main"), sizes));
    FLEXOR_ASSIGN(const Explanation explanation, session.explain(module, arguments));
    const std::string& whole = explanation.text;
    // One part per region: what stands before "kernels of" is the specialiser's.
    std::string part;
    bool inside = false;
    for (const std::string_view line : support::split(whole, '\n')) {
        if (line.starts_with("specialised ")) inside = !kernels;
        if (line.starts_with("kernels of ")) inside = kernels;
        if (inside) part += std::string(line) + "\n";
    }
    for (const std::string& wanted : marked(text.source, kernels ? "; lower:" : "; specialize:"))
        EXPECT_NE(part.find(wanted), std::string::npos) << "expected '" << wanted << "' in\n" << part;
    for (const std::string& never : marked(text.source, "; never:"))
        EXPECT_EQ(part.find(never), std::string::npos) << "did not expect '" << never << "' in\n" << part;
    if (kernels) {
        for (const std::string& count : marked(text.source, "; kernels:")) {
            std::size_t found = 0;
            for (const std::string_view line : support::split(part, '\n'))
                found += line.starts_with("  kernel ") ? 1 : 0;
            EXPECT_EQ(std::to_string(found), count) << part;
        }
    }
    return {};
}

double tolerance(DType dtype) {
    switch (dtype) {
        case DType::kF64: return 1e-11;
        case DType::kF32: return 1e-4;
        case DType::kF16: return 4e-3;
        case DType::kBF16: return 3e-2;
        default: return 0;
    }
}

void expect_same(const Value& found, const Value& wanted, const std::string& what) {
    ASSERT_EQ(found.kind(), wanted.kind()) << what;
    if (found.is_list()) {
        ASSERT_EQ(found.elements().size(), wanted.elements().size()) << what;
        for (std::size_t i = 0; i < found.elements().size(); ++i)
            expect_same(found.elements()[i], wanted.elements()[i], what + "[" + std::to_string(i) + "]");
        return;
    }
    if (!found.is_tensor()) {
        EXPECT_EQ(found.describe(), wanted.describe()) << what;
        return;
    }
    const Tensor& a = found.tensor();
    const Tensor& b = wanted.tensor();
    ASSERT_EQ(found.describe(), wanted.describe()) << what;
    const std::vector<double> x = elements(a);
    const std::vector<double> y = elements(b);
    double scale = 1;
    for (const double value : y) {
        if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(y[i]) && std::isnan(x[i])) continue;
        if (x[i] == y[i]) continue;
        ASSERT_LE(std::fabs(x[i] - y[i]), tolerance(a.dtype()) * scale) << what << ", element " << i;
    }
}

struct Engine {
    std::string name;
    SessionOptions options = {};
    StressOptions stress = {};
    bool on_device = false;
};

std::vector<Engine> engines() {
    std::vector<Engine> out = {
        {"interpreter", {.compile = false}},
        {"evaluator", {}, {.evaluate_kernels = true}},
        {"evaluator, unfused", {}, {.fuse = false, .evaluate_kernels = true}},
        {"evaluator, every guard fails", {}, {.evaluate_kernels = true, .fail_guards = true}},
        {"evaluator, every region ends at once", {}, {.evaluate_kernels = true, .end_at_once = true}},
    };
    for (const bool fuse : {true, false}) {
        Engine device{fuse ? "device" : "device, unfused"};
        device.stress.fuse = fuse;
        device.on_device = true;
        out.push_back(device);
    }
    out.push_back({"device, graphs", {}, {.graphs_at_once = true}, true});
    out.push_back({"device, graphs, unfused", {}, {.fuse = false, .graphs_at_once = true}, true});
    out.push_back({"device, every region ends at once", {}, {.end_at_once = true}, true});
    out.push_back({"device, products of the library", {}, {.product_library = FLEXOR_FAKE_CUBLASLT}, true});
    out.push_back({"device, interpreter", {.compile = false}, {}, true});
    for (Engine& engine : out) {
        if (!engine.on_device) continue;
        engine.stress.evaluate_kernels = true;
        engine.stress.device_driver = FLEXOR_FAKE_CUDA;
    }
    if (Session::has_code_generator()) {
        out.insert(out.end(), {
                                  {"generated code"},
                                  {"generated code, unfused", {}, {.fuse = false}},
                                  {"generated code, every guard fails", {}, {.fail_guards = true}},
                                  {"generated code, every region ends at once", {}, {.end_at_once = true}},
                                  {"generated code, exact", {.exact_only = true}},
                                  {"generated code, one entry", {.exact_capacity = 1, .entry_capacity = 1}},
                                  {"generated code, no memory kept", {.soft_limit = 1}},
                              });
    }
    for (Engine& engine : out) engine.stress.poison = true;
    return out;
}

// With the arguments as copies on the device, which come back as they are afterwards.
Expected<std::vector<Value>> run_on_device(Session& session, const Module& module, std::vector<Value>& arguments) {
    static const DeviceValues values(FLEXOR_FAKE_CUDA);
    std::vector<Value> given;
    for (const Value& argument : arguments) given.push_back(values.to_device(argument));
    CallOptions call;
    call.device = kFakeDevice;
    FLEXOR_ASSIGN(std::vector<Value> results, session.run(module, given, call));
    FLEXOR_TRY(session.synchronize(kFakeDevice));
    for (Value& result : results) {
        EXPECT_TRUE(DeviceValues::all_on_device(result)) << result.describe();
        result = values.to_host(result);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i] = values.to_host(given[i]);
    return results;
}

}  // namespace

Status specialize_verb(const TextCase& text) { return explained(text, false); }

Status lower_verb(const TextCase& text) { return explained(text, true); }

Status run_verb(const TextCase& text) {
    FLEXOR_ASSIGN(const Module module, Module::from_text(text.source, text.name));
    const bytecode::Module& parts = *bytecode::module_ref(module);
    const std::int32_t main = Session::function_index(module, "main");
    std::vector<std::string> lines = marked(text.source, "; sizes:");
    if (lines.empty()) lines.emplace_back();
    // By line: results, then arguments after the call, of the first engine; none if it raised. And what it raised.
    std::vector<std::optional<std::vector<Value>>> wanted(lines.size());
    std::vector<std::optional<Diagnostic>> raised(lines.size());
    bool first = true;
    for (const Engine& engine : engines()) {
        Session session(engine.options, engine.stress);
        bind_hooks(session, parts);
        // Twice: the second time every size is known.
        for (std::size_t i = 0; i < 2 * lines.size(); ++i) {
            const std::size_t line = i % lines.size();
            FLEXOR_ASSIGN(std::vector<Value> arguments,
                          driver::make_arguments(parts, main, sizes_of(parts, lines[line])));
            Expected<std::vector<Value>> results =
                engine.on_device ? run_on_device(session, module, arguments) : session.run(module, arguments);
            const std::string what = engine.name + ", sizes " + lines[line];
            if (results) results->insert(results->end(), arguments.begin(), arguments.end());
            if (first && i < lines.size()) {
                if (results)
                    wanted[line] = std::move(*results);
                else
                    raised[line] = std::move(results).error();
                continue;
            }
            EXPECT_EQ(results ? "nothing" : results.error().code(), raised[line] ? raised[line]->code() : "nothing")
                << "what " << what << " raises" << (results ? "" : "\n" + results.error().to_string());
            if (!results || !wanted[line]) continue;
            EXPECT_EQ(results->size(), wanted[line]->size());
            for (std::size_t v = 0; v < results->size(); ++v)
                expect_same((*results)[v], (*wanted[line])[v], what + ", value " + std::to_string(v));
        }
        first = false;
    }
    // A program that raises says so, and one that does not say so has a result for one choice of sizes at least.
    const bool all_raised = std::ranges::all_of(raised, [](const auto& error) { return error.has_value(); });
    if (!all_raised && marked(text.source, "; error:").empty()) return {};
    for (std::optional<Diagnostic>& error : raised) {
        if (error) return *std::move(error);
    }
    return {};
}

}  // namespace flexor::tests
