// Prints the reference page of the ops from the running registry; tools/generate.py writes it to docs/reference/ops.md.

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_def.h"
#include "support/check.h"
#include "support/text.h"

namespace {

using namespace flexor;

struct TitleOf {
    std::string_view operator()(const ops::MapLower&) const { return "Element by element"; }
    std::string_view operator()(const ops::ReduceLower&) const { return "Reductions"; }
    std::string_view operator()(const ops::ViewLower&) const { return "Views"; }
    std::string_view operator()(const ops::IndexLower&) const { return "Indexing and creation"; }
    std::string_view operator()(const ops::ConcatLower&) const { return "Concatenation"; }
    std::string_view operator()(const ops::CompositeLower&) const { return "Composites of other ops"; }
    std::string_view operator()(const ops::ContractionLower&) const { return "Contractions"; }
    std::string_view operator()(const ops::AttentionLower&) const { return "Attention"; }
    std::string_view operator()(const ops::WriteLower&) const { return "Writes"; }
    std::string_view operator()(const ops::ExternLower&) const { return "Library kernels"; }
};

std::string_view kind_of(types::AttrKind kind) {
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
    FLEXOR_UNREACHABLE();
}

// "softmax(x, axis: int, keepdim: bool = false)"
std::string signature(const ops::OpDef& op) {
    std::vector<std::string> parts;
    for (const ops::OperandSpec& operand : op.operands.value) {
        std::string text(operand.name);
        if (operand.kind == ops::OperandKind::kOptionalTensor) text += "?";
        if (operand.kind == ops::OperandKind::kTensorList) text = "[" + text + "...]";
        parts.push_back(std::move(text));
    }
    for (const ops::AttrSpec& attr : op.attrs.value) {
        std::string text = std::string(attr.name) + ": " + std::string(kind_of(attr.kind));
        const bool absent = std::holds_alternative<std::monostate>(attr.fallback);
        if (!absent || kind_of(attr.kind).ends_with('?')) {
            text += " = " + types::to_string(attr.fallback, [](types::SymbolId) { return std::string("?"); });
        }
        parts.push_back(std::move(text));
    }
    return std::string(op.name.value) + "(" + support::join(parts, ", ") + ")";
}

std::string behaviour(const ops::OpDef& op) {
    std::vector<std::string> parts;
    if (op.effects.value == ops::Effects::kWritesFirst) parts.push_back("writes its first operand");
    if (op.effects.value == ops::Effects::kRandom) parts.push_back("random");
    if (op.effects.value == ops::Effects::kOpaque) parts.push_back("opaque");
    if (op.alias.value == ops::Alias::kView) parts.push_back("view");
    if (op.alias.value == ops::Alias::kViewIfStridesAllow) parts.push_back("view if the strides allow, else a copy");
    if (op.results != 1) {
        parts.push_back(op.results < 0 ? "one result an element of `sizes`" : std::to_string(op.results) + " results");
    }
    return support::join(parts, "; ");
}

void print_op(const ops::OpDef& op) {
    std::printf("### `%.*s`\n\n", static_cast<int>(op.name.value.size()), op.name.value.data());
    std::printf("`%s`\n\n%.*s\n", signature(op).c_str(), static_cast<int>(op.summary.value.size()),
                op.summary.value.data());
    if (const std::string text = behaviour(op); !text.empty()) std::printf("\n*%s*\n", text.c_str());
    int number = 0;
    for (const auto& constraint : op.constraints.value) {
        const std::string_view text = constraint;
        std::printf("%s- C%d: %.*s\n", number == 0 ? "\n" : "", number + 1, static_cast<int>(text.size()), text.data());
        ++number;
    }
    const ops::Names& names = op.names.value;
    std::vector<std::string> spellings;
    for (const auto& [where, name] : {std::pair{"torch", names.torch}, {"NumPy", names.numpy}, {"ONNX", names.onnx}}) {
        if (!name.empty()) spellings.push_back(std::string(where) + " `" + std::string(name) + "`");
    }
    if (!spellings.empty()) std::printf("\nElsewhere: %s.\n", support::join(spellings, ", ").c_str());
    std::printf("\n");
}

}  // namespace

int main() {
    std::map<std::size_t, std::vector<const ops::OpDef*>> families;  // by the alternative of `lower`
    for (const ops::OpDef* op : ops::all_ops()) families[op->lower.value.index()].push_back(op);
    std::printf(
        "# Ops\n\nWhat `CALL_OP` may name: %zu ops, from the registry. `x?` may be none; an attribute with a default "
        "may be "
        "left out.\n\n",
        ops::all_ops().size());
    for (const auto& [index, members] : families) {
        const std::string_view title = std::visit(TitleOf{}, members.front()->lower.value);
        std::printf("## %.*s\n\n", static_cast<int>(title.size()), title.data());
        for (const ops::OpDef* op : members) print_op(*op);
    }
    return 0;
}
