#include "executable/signature.h"

#include "support/text.h"

namespace flexor::executable {

std::uint32_t frame_size(const LiveSignature& value) {
    switch (value.kind) {
        case LiveKind::kTensor: return 2u * value.rank;
        case LiveKind::kInt:
        case LiveKind::kBool:
        case LiveKind::kFloat:
        case LiveKind::kRunList: return 1;
        case LiveKind::kList: {
            std::uint32_t total = 0;
            for (const LiveSignature& element : value.elements) total += frame_size(element);
            return total;
        }
        case LiveKind::kUnset:
        case LiveKind::kNone:
        case LiveKind::kString:
        case LiveKind::kFunction:
        case LiveKind::kForeign:
        case LiveKind::kDynamic: return 0;
    }
    return 0;
}

std::uint32_t Signature::frame_size() const {
    std::uint32_t total = 0;
    for (const LiveSignature& value : values) total += executable::frame_size(value);
    return total;
}

std::string to_string(const LiveSignature& value) {
    switch (value.kind) {
        case LiveKind::kUnset: return "unset";
        case LiveKind::kNone: return "none";
        case LiveKind::kInt: return "int";
        case LiveKind::kBool: return "bool";
        case LiveKind::kFloat: return "float";
        case LiveKind::kString: return support::quote(value.text);
        case LiveKind::kFunction: return "function " + value.text;
        case LiveKind::kForeign: return "foreign";
        case LiveKind::kDynamic: return "dynamic";
        case LiveKind::kList: {
            std::string list = "[";
            list +=
                support::join(value.elements, ", ", [](const LiveSignature& element) { return to_string(element); });
            return list + "]";
        }
        case LiveKind::kRunList:
        case LiveKind::kTensor: break;
    }
    std::string out = value.kind == LiveKind::kRunList ? "list of " : "";
    out += dtype_name(value.dtype);
    out += " r" + std::to_string(value.rank);
    out += value.device.kind == DeviceKind::kCpu ? " cpu" : " cuda:" + std::to_string(value.device.index);
    out += ' ';
    out += types::to_string(value.layout);
    if (value.alias_group != 0) {
        out += " alias" + std::to_string(value.alias_group);
        if (value.exact_alias) out += " same";
    }
    if (value.fixed) out += " fixed";
    return out;
}

std::string to_string(const Signature& signature) {
    std::string out;
    for (std::size_t i = 0; i < signature.values.size(); ++i) {
        if (i > 0)
            out += i == signature.local_count ? " | " : ", ";
        else if (signature.local_count == 0)
            out += "| ";
        out += to_string(signature.values[i]);
    }
    const std::string where =
        signature.device.kind == DeviceKind::kCpu ? "" : " on cuda:" + std::to_string(signature.device.index);
    return "(" + out + ")" + where;
}

}  // namespace flexor::executable
