#include "outputs.h"

#include <filesystem>
#include <system_error>

#include "element.h"
#include "faults.h"
#include "literal.h"
#include "npy.h"
#include "npz.h"
#include "safetensors.h"

namespace flexor::cli {
namespace {

Status collect(const std::string& name, const Value& value, NamedTensors& out) {
    switch (value.kind()) {
        case ValueKind::kNone: return {};
        case ValueKind::kTensor: out.emplace_back(name, value.tensor()); return {};
        case ValueKind::kBool:
        case ValueKind::kInt:
        case ValueKind::kFloat: {
            const Number number = value.is_float()  ? Number{Number::Kind::kReal, 0, value.real()}
                                  : value.is_bool() ? Number{Number::Kind::kBool, value.integer(), 0}
                                                    : Number{Number::Kind::kInt, value.integer(), 0};
            const DType dtype = value.is_float() ? DType::kF64 : value.is_bool() ? DType::kBool : DType::kI64;
            CLI_ASSIGN(Tensor tensor, tensor_of_number(number, dtype));
            out.emplace_back(name, std::move(tensor));
            return {};
        }
        case ValueKind::kList: {
            std::size_t i = 0;
            for (const Value& element : value.elements()) {
                CLI_TRY(collect(name + "." + std::to_string(i++), element, out));
            }
            return {};
        }
        case ValueKind::kDict:
            for (const auto& [key, element] : value.items()) CLI_TRY(collect(name + "." + key, element, out));
            return {};
        default:
            return fault(Fault::kUnsupportedTensor)
                .operand(name)
                .found(value.describe())
                .expected("tensors and scalars")
                .hint("leave --output out: the value is printed");
    }
}

Status write_directory(const std::string& path, const NamedTensors& tensors) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return fault(Fault::kFileNotWritable).operand(path).found(error.message());
    for (const auto& [name, tensor] : tensors) {
        if (name.find('/') != std::string::npos) {
            return fault(Fault::kFileNotWritable).operand(name).found("a name with a slash").hint("write a .npz file");
        }
        CLI_TRY(write_file(path + "/" + name + ".npy", [&, &name = name, &tensor = tensor](const Sink& sink) {
            return write_npy(tensor, name, sink);
        }));
    }
    return {};
}

}  // namespace

std::vector<std::string> result_names(const Module& module, const std::string& function, std::size_t count) {
    const std::vector<ArgumentInfo> outputs = module.outputs(function);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
        if (i < outputs.size() && !outputs[i].name.empty()) {
            names.push_back(outputs[i].name);
        } else {
            names.push_back(count == 1 ? "out" : "out" + std::to_string(i));
        }
    }
    return names;
}

Status write_outputs(const std::string& path, const std::vector<std::string>& names,
                     const std::vector<Value>& results) {
    NamedTensors tensors;
    for (std::size_t i = 0; i < results.size(); ++i) CLI_TRY(collect(names[i], results[i], tensors));
    if (path.ends_with(".npz")) return write_file(path, [&](const Sink& sink) { return write_npz(tensors, sink); });
    if (path.ends_with(".safetensors")) {
        return write_file(path, [&](const Sink& sink) { return write_safetensors(tensors, sink); });
    }
    if (!path.ends_with(".npy")) return write_directory(path, tensors);
    if (tensors.size() != 1) {
        return fault(Fault::kBadOption)
            .operand("--output")
            .found(std::to_string(tensors.size()) + " results for one .npy file")
            .hint("write a .npz file or a directory");
    }
    return write_file(path, [&](const Sink& sink) { return write_npy(tensors.front().second, names.front(), sink); });
}

}  // namespace flexor::cli
