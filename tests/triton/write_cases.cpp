// write_cases numeric            every kernel to run, with what it must leave, one JSON object a line
// write_cases rows|products|attention   large kernels in several tilings, to time
// write_cases programs FILE...   the distinct kernels of those programs, to compile
#include <iostream>
#include <string_view>

#include "codegen/triton/generator.h"
#include "loopir/kernel.h"
#include "triton/cases.h"

namespace flexor::tests {

using namespace codegen::triton;

namespace {

void write_programs(int count, char** paths) {
    std::vector<loopir::Kernel> kernels;
    for (int i = 0; i < count; ++i) {
        for (loopir::Kernel& kernel : kernels_of_program(paths[i])) {
            bool known = false;
            for (const loopir::Kernel& other : kernels) known = known || loopir::structurally_equal(kernel, other);
            if (!known) kernels.push_back(std::move(kernel));
        }
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const loopir::Kernel& kernel = kernels[i];
        const std::string name = std::to_string(i) + ":" + kernel.name;
        const auto generator = Generator::create(kernel);
        if (!generator) {
            std::cout << nlohmann::json{{"name", name}, {"kind", static_cast<int>(kernel.kind)}} << "\n";
            continue;
        }
        LaunchPlan plan = *generator->plan(std::vector<std::int64_t>(kernel.param_count, 64).data(), kProcessors);
        std::cout << compile_case(name, *generator, plan) << "\n";
        if (i % 4 == 1) {
            const auto one = graph_case(name, *generator, std::vector<std::int64_t>(kernel.param_count, 64),
                                        i % 8 == 1 ? Successor::kWhenBegun : Successor::kWhenEnded);
            if (one) std::cout << *one << "\n";
        }
        if (kernel.kind != loopir::KernelKind::kRow || generator->layout()->elementwise) continue;
        // The other form, and wide indices, of one in three: its parts are the same.
        if (i % 3 != 0) continue;
        plan.form = Form::kLooped;
        plan.chunks = 1;
        plan.narrow = false;
        std::cout << compile_case(name, *generator, plan) << "\n";
    }
}

}  // namespace
}  // namespace flexor::tests

int main(int argc, char** argv) {
    using namespace flexor::tests;
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "numeric") {
        std::size_t number = 0;
        for (const KernelRun& run : numeric_runs()) {
            for (const auto& one : run_cases(run, number++ % 5 == 0)) std::cout << one << "\n";
        }
        return 0;
    }
    if (what == "rows" || what == "products" || what == "attention") {
        const auto cases = what == "rows" ? timed_rows() : what == "products" ? timed_products() : timed_attention();
        for (const auto& one : cases) std::cout << one << "\n";
        return 0;
    }
    if (what == "programs") {
        write_programs(argc - 2, argv + 2);
        return 0;
    }
    std::cerr << "write_cases numeric | rows | products | attention | programs FILE...\n";
    return 2;
}
