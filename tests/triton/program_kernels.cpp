#include <fstream>
#include <sstream>

#include "bytecode/public_module.h"
#include "driver/example.h"
#include "driver/pipeline.h"
#include "flexor/module.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "loopir/loopir.h"
#include "support/check.h"
#include "support/text.h"
#include "triton/cases.h"

namespace flexor::tests {

namespace {

Expected<Module> read_program(const std::string& path) {
    if (path.ends_with(".flx")) return Module::load(path);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return Module::from_text(text.str(), path);
}

Expected<std::string> explained(const std::string& path) {
    FLEXOR_ASSIGN(const Module module, read_program(path));
    const bytecode::Module& parts = *bytecode::module_ref(module);
    Session session({}, StressOptions{.evaluate_kernels = !driver::Pipeline::available()});
    for (const std::string& hook : parts.hooks)
        session.bind(hook, [](std::span<const Value>) -> Expected<Value> { return Value(); });
    const std::vector<std::int64_t> sizes = driver::example_sizes(parts, parts.find_function("main"), {});
    FLEXOR_ASSIGN(const std::vector<Value> arguments,
                  driver::make_arguments(parts, Session::function_index(module, "main"), sizes));
    FLEXOR_ASSIGN(const Explanation explanation, session.explain(module, arguments));
    return explanation.text;
}

}  // namespace

std::vector<loopir::Kernel> kernels_of_program(const std::string& path) {
    std::vector<loopir::Kernel> out;
    const Expected<std::string> text = explained(path);
    if (!text) return out;  // a program that is to be refused
    std::string kernel;
    for (const std::string_view line : support::split(*text, '\n')) {
        if (line.starts_with("  kernel ")) kernel = "";
        if (line.starts_with("  kernel ") || !kernel.empty()) kernel += std::string(line) + "\n";
        if (kernel.empty() || !line.starts_with("  ; reads ")) continue;
        Expected<loopir::Kernel> parsed = loopir::parse(kernel);
        FLEXOR_CHECK(parsed.has_value());
        out.push_back(*std::move(parsed));
        kernel = "";
    }
    return out;
}

}  // namespace flexor::tests
