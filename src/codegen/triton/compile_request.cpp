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

// Lines that give an argument its value from the frame.
std::string from_frame(const loopir::Kernel& kernel, const Argument& argument, bool narrow, bool divisible) {
    const std::string name = argument_name(argument);
    const std::string word = "tl.load(frame + " + name + "_at)";
    const auto pointer = [&](std::string_view to) {
        return "tl.cast(" + word + ", tl.pointer_type(" + std::string(to) + "))";
    };
    std::string value = word;
    switch (argument.kind) {
        case ArgumentKind::kBuffer: {
            const DType dtype = kernel.buffers[argument.index].dtype;
            value = pointer(dtype == DType::kBool ? "tl.uint8" : dtype_text(dtype));
            break;
        }
        case ArgumentKind::kExtent:
        case ArgumentKind::kPlace:
            if (narrow) value = "tl.cast(" + word + ", tl.int32)";
            break;
        case ArgumentKind::kNumber: break;
        default: FLEXOR_UNREACHABLE();
    }
    std::string out = "    " + name + " = " + value + "\n";
    if (divisible) out += "    " + name + " = tl.multiple_of(" + name + ", 16)\n";
    return out;
}

}  // namespace

CompileRequest make_request(const loopir::Kernel& kernel, const KernelSource& source, const LaunchPlan& plan,
                            const std::vector<bool>& divisible, const std::vector<bool>& indirect,
                            Successor successor) {
    FLEXOR_CHECK(divisible.size() == source.arguments.size());
    CompileRequest out;
    out.function = source.function;
    out.source = source.text;
    std::string head, lines;
    if (!indirect.empty()) {
        head = "frame";
        out.signature.emplace_back("frame", "*i64");
        out.divisible.emplace_back("frame");
    }
    for (std::size_t i = 0; i < source.arguments.size(); ++i) {
        const Argument& argument = source.arguments[i];
        if (!indirect.empty()) head += ", " + argument_name(argument);
        if (!indirect.empty() && indirect[i]) {
            head += "_at";
            lines += from_frame(kernel, argument, plan.narrow, divisible[i]);
            out.signature.emplace_back(argument_name(argument) + "_at", "i32");
            continue;
        }
        out.signature.emplace_back(argument_name(argument), signature_type(kernel, source, argument, plan.narrow));
        if (divisible[i]) out.divisible.push_back(argument_name(argument));
    }
    for (const std::string& name : source.constants) {
        out.constants.emplace_back(name, plan.constant(name));
        if (!indirect.empty()) head += ", " + name + ": tl.constexpr";
    }
    if (!indirect.empty()) {
        // No kernel writes the frame, so it may be read before the kernels in front have ended.
        if (successor != Successor::kWhenEnded) lines += "    tl.extra.cuda.gdc_wait()\n";
        if (successor == Successor::kWhenBegun) lines += "    tl.extra.cuda.gdc_launch_dependents()\n";
        out.source = source.text.substr(0, source.head) + head + "):\n" + lines + source.text.substr(source.body);
    }
    out.warps = plan.warps;
    out.stages = plan.stages;
    return out;
}

}  // namespace flexor::codegen::triton
