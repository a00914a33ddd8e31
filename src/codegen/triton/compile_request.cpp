#include "codegen/triton/compile_request.h"

#include "codegen/triton/expression.h"
#include "support/check.h"

namespace flexor::codegen::triton {

namespace {

std::string signature_type(const loopir::Kernel& kernel, const KernelSource& source, const Argument& argument,
                           bool narrow) {
    switch (argument.kind) {
        case ArgumentKind::kBuffer: return "*" + std::string(pointee_text(kernel.buffers[argument.index].dtype));
        case ArgumentKind::kFault:
        case ArgumentKind::kCounters: return "*i32";
        case ArgumentKind::kScratch: return "*" + std::string(pointee_text(source.scratch[argument.index]));
        case ArgumentKind::kExtent:
        case ArgumentKind::kPlace: return narrow ? "i32" : "i64";
        case ArgumentKind::kNumber: return "i64";
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace

CompileRequest make_request(const loopir::Kernel& kernel, const KernelSource& source, const LaunchPlan& plan,
                            const std::vector<bool>& divisible) {
    FLEXOR_CHECK(divisible.size() == source.arguments.size());
    CompileRequest out;
    out.function = source.function;
    out.source = source.text;
    for (std::size_t i = 0; i < source.arguments.size(); ++i) {
        const Argument& argument = source.arguments[i];
        out.signature.emplace_back(argument_name(argument), signature_type(kernel, source, argument, plan.narrow));
        if (divisible[i]) out.divisible.push_back(argument_name(argument));
    }
    for (const std::string& name : source.constants) out.constants.emplace_back(name, plan.constant(name));
    out.warps = plan.warps;
    out.stages = plan.stages;
    return out;
}

}  // namespace flexor::codegen::triton
