// ops: the registry.
#include <algorithm>

#include "commands.h"
#include "faults.h"
#include "flexor/ops.h"
#include "program.h"

namespace flexor::cli {
namespace {

std::string op_signature(const OpInfo& op) {
    std::string out;
    for (const OperandInfo& operand : op.operands) {
        out += (out.empty() ? "" : ", ") + operand.name;
        if (operand.kind.starts_with("optional")) out += "?";
    }
    for (const AttributeInfo& attribute : op.attributes) {
        out += (out.empty() ? "" : ", ") + attribute.name + "=" +
               (attribute.fallback.empty() ? "<" + attribute.kind + ">" : attribute.fallback);
    }
    return op.name + "(" + out + ")";
}

std::string dtype_names(const OpInfo& op) {
    std::string out;
    for (const DType dtype : op.dtypes) out += (out.empty() ? "" : ", ") + std::string(dtype_name(dtype));
    return out;
}

std::string description(const OpInfo& op) {
    std::string out = op_signature(op) + "\n  " + op.summary + "\n  family: " + op.family + "\n";
    if (!op.operands.empty()) out += "  operands:\n";
    for (const OperandInfo& operand : op.operands) {
        out += "    " + operand.name + ": " + operand.kind + (operand.scalar_ok ? " or scalar" : "") + "\n";
    }
    if (!op.attributes.empty()) out += "  attributes:\n";
    for (const AttributeInfo& attribute : op.attributes) {
        out += "    " + attribute.name + ": " + attribute.kind +
               (attribute.fallback.empty() ? "" : " = " + attribute.fallback) + "\n";
    }
    if (!op.operands.empty()) out += "  dtypes: " + dtype_names(op) + "\n";
    if (!op.constraints.empty()) out += "  constraints:\n";
    for (std::size_t i = 0; i < op.constraints.size(); ++i) {
        out += "    C" + std::to_string(i + 1) + ": " + op.constraints[i] + "\n";
    }
    if (op.writes_first) out += "  writes its first operand\n";
    const std::pair<const char*, const std::string*> names[] = {
        {"torch", &op.torch}, {"numpy", &op.numpy}, {"onnx", &op.onnx}};
    for (const auto& [where, name] : names) {
        if (!name->empty()) out += "  " + std::string(where) + ": " + *name + "\n";
    }
    return out;
}

void write_op(JsonWriter& json, const OpInfo& op) {
    json.begin_object().key("name").string(op.name).key("family").string(op.family).key("summary").string(op.summary);
    json.key("constraints").begin_array();
    for (const std::string& constraint : op.constraints) json.string(constraint);
    json.end_array().key("operands").begin_array();
    for (const OperandInfo& operand : op.operands) {
        json.begin_object().key("name").string(operand.name).key("kind").string(operand.kind);
        json.key("scalar_ok").boolean(operand.scalar_ok).end_object();
    }
    json.end_array().key("attributes").begin_array();
    for (const AttributeInfo& attribute : op.attributes) {
        json.begin_object().key("name").string(attribute.name).key("kind").string(attribute.kind).key("default");
        attribute.fallback.empty() ? json.null() : json.string(attribute.fallback);
        json.end_object();
    }
    json.end_array().key("dtypes").begin_array();
    for (const DType dtype : op.dtypes) json.string(dtype_name(dtype));
    json.end_array().key("results").integer(op.results).key("writes_first").boolean(op.writes_first);
    json.key("torch").string(op.torch).key("numpy").string(op.numpy).key("onnx").string(op.onnx).end_object();
}

}  // namespace

Outcome ops_command(const Options& options) {
    JsonWriter json;
    if (!options.file.empty()) {
        CLI_ASSIGN(const OpInfo op, find_op_info(options.file));
        write_op(json, op);
        emit(options, description(op), json);
        return Exit::kDone;
    }
    const std::vector<OpInfo> ops = list_ops();
    std::size_t width = 0;
    for (const OpInfo& op : ops) width = std::max(width, op.name.size());
    std::string text;
    json.begin_array();
    for (const OpInfo& op : ops) {
        text += op.name + std::string(width + 2 - op.name.size(), ' ') + op.summary + "\n";
        write_op(json, op);
    }
    json.end_array();
    emit(options, text, json);
    return Exit::kDone;
}

}  // namespace flexor::cli
