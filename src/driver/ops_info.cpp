// The public listing of the op registry.
#include "flexor/ops.h"

#include <algorithm>

#include "ops/op_def.h"
#include "support/diagnostic.h"

namespace flexor {

namespace {

std::string operand_kind(ops::OperandKind kind) {
    switch (kind) {
        case ops::OperandKind::kTensor: return "tensor";
        case ops::OperandKind::kOptionalTensor: return "optional tensor";
        case ops::OperandKind::kTensorList: return "tensor list";
    }
    return "?";
}

std::string attribute_kind(types::AttrKind kind) {
    switch (kind) {
        case types::AttrKind::kBool: return "bool";
        case types::AttrKind::kInt: return "int";
        case types::AttrKind::kFloat: return "float";
        case types::AttrKind::kString: return "string";
        case types::AttrKind::kDType: return "dtype";
        case types::AttrKind::kIntList: return "int list";
        case types::AttrKind::kOptionalInt: return "int?";
        case types::AttrKind::kOptionalIntList: return "int list?";
        case types::AttrKind::kOptionalDType: return "dtype?";
        case types::AttrKind::kOptionalFloat: return "float?";
    }
    return "?";
}

bool may_be_none(types::AttrKind kind) {
    return kind == types::AttrKind::kOptionalInt || kind == types::AttrKind::kOptionalIntList ||
           kind == types::AttrKind::kOptionalDType || kind == types::AttrKind::kOptionalFloat;
}

// The text of a default as the text form writes it; empty where the attribute is required.
std::string fallback_text(const ops::AttrSpec& spec) {
    if (std::holds_alternative<std::monostate>(spec.fallback)) return may_be_none(spec.kind) ? "none" : "";
    const std::string text = types::to_string(types::Attrs{{"x", spec.fallback}},
                                              [](types::SymbolId id) { return "s" + std::to_string(id); });
    return text.substr(2);
}

OpInfo describe(const ops::OpDef& op) {
    OpInfo info;
    info.name = op.name.value;
    info.family = ops::family(op.lower.value);
    info.summary = op.summary.value;
    for (const auto& constraint : op.constraints.value) info.constraints.emplace_back(constraint.text);
    for (const ops::OperandSpec& operand : op.operands.value)
        info.operands.push_back({std::string(operand.name), operand_kind(operand.kind), operand.scalar_ok});
    for (const ops::AttrSpec& attribute : op.attrs.value)
        info.attributes.push_back(
            {std::string(attribute.name), attribute_kind(attribute.kind), fallback_text(attribute)});
    info.results = op.results;
    info.dtypes.assign(op.samples.value.dtypes.begin(), op.samples.value.dtypes.end());
    std::ranges::sort(info.dtypes);
    info.writes_first = op.effects.value == ops::Effects::kWritesFirst;
    info.torch = op.names.value.torch;
    info.numpy = op.names.value.numpy;
    info.onnx = op.names.value.onnx;
    return info;
}

}  // namespace

std::vector<OpInfo> list_ops() {
    std::vector<OpInfo> out;
    for (const ops::OpDef* op : ops::all_ops()) out.push_back(describe(*op));
    return out;
}

Expected<OpInfo> find_op_info(std::string_view name) {
    const ops::OpDef* op = ops::find_op(name);
    if (op != nullptr) return describe(*op);
    Diagnostic diagnostic(DiagnosticId::kUnknownOp);
    diagnostic.op(std::string(name));
    const std::string_view nearest = ops::nearest_op_name(name);
    if (!nearest.empty()) diagnostic.hint("did you mean '" + std::string(nearest) + "'?");
    return diagnostic;
}

}  // namespace flexor
