#include "codegen/triton/compile_request.h"

#include "codegen/triton/expression.h"
#include "support/check.h"

namespace flexor::codegen::triton {

namespace {

std::string signature_type(const loopir::Kernel& kernel, const Argument& argument, bool narrow) {
    switch (argument.kind) {
        case ArgumentKind::kBuffer: return "*" + std::string(pointee_text(kernel.buffers[argument.index].dtype));
        case ArgumentKind::kFault: return "*i32";
        case ArgumentKind::kExtent:
        case ArgumentKind::kPlace: return narrow ? "i32" : "i64";
        case ArgumentKind::kNumber: return "i64";
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace

CompileRequest row_request(const loopir::Kernel& kernel, const RowSource& source, const RowLaunch& launch,
                           const std::vector<bool>& divisible) {
    FLEXOR_CHECK(divisible.size() == source.arguments.size());
    CompileRequest out;
    out.function = source.function;
    out.source = source.text;
    for (std::size_t i = 0; i < source.arguments.size(); ++i) {
        const Argument& argument = source.arguments[i];
        out.signature.emplace_back(argument_name(argument), signature_type(kernel, argument, launch.narrow));
        if (divisible[i]) out.divisible.push_back(argument_name(argument));
    }
    for (int axis = 0; axis < 2; ++axis) out.constants.emplace_back(kBlockNames[axis], launch.block[axis]);
    if (launch.block_k > 0) out.constants.emplace_back(kBlockNames[2], launch.block_k);
    out.warps = launch.warps;
    return out;
}

}  // namespace flexor::codegen::triton
