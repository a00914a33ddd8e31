#include "inputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "faults.h"
#include "flexor/session.h"
#include "literal.h"
#include "npy.h"
#include "npz.h"
#include "safetensors.h"

namespace flexor::cli {
namespace {

bool is_archive(std::string_view path) { return path.ends_with(".npz") || path.ends_with(".safetensors"); }

// "data.npz:x" → ("data.npz", "x").
std::pair<std::string, std::string> split_key(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || !is_archive(std::string_view(text).substr(0, colon))) return {text, ""};
    return {text.substr(0, colon), text.substr(colon + 1)};
}

Expected<NamedTensors> read_archive(const std::string& path) {
    CLI_ASSIGN(const Bytes file, open_file(path));
    return path.ends_with(".npz") ? read_npz(file) : read_safetensors(file);
}

template <class Rows>
std::string names_of(const Rows& rows) {
    std::string out;
    for (const auto& row : rows) {
        if (!out.empty()) out += ", ";
        if constexpr (requires { row.first; }) {
            out += row.first;
        } else {
            out += row.to_string();
        }
    }
    return out.empty() ? "none" : out;
}

Value scalar_value(const Number& number) {
    switch (number.kind) {
        case Number::Kind::kBool: return Value(number.integer != 0);
        case Number::Kind::kInt: return Value(number.integer);
        case Number::Kind::kReal: break;
    }
    return Value(number.real);
}

class Binder {
public:
    Binder(std::string function, std::vector<ArgumentInfo> inputs)
        : function_(std::move(function)), inputs_(std::move(inputs)), values_(inputs_.size()) {}

    Status add(const std::string& word) {
        const std::size_t equals = word.find('=');
        if (equals != std::string::npos && !std::filesystem::exists(word)) {
            const std::string name = word.substr(0, equals);
            const auto index = find(name);
            if (!index) return unknown(name);
            CLI_ASSIGN(Value value, read(inputs_[*index], word.substr(equals + 1)));
            return bind(*index, std::move(value));
        }
        if (is_archive(word)) return add_all(word);
        const auto free = std::ranges::find_if(values_, [](const auto& value) { return !value; });
        if (free == values_.end()) {
            return fault(Fault::kWrongArgumentCount)
                .function(function_)
                .found("one input too many: " + word)
                .expected(names_of(inputs_));
        }
        const auto index = static_cast<std::size_t>(free - values_.begin());
        CLI_ASSIGN(Value value, read(inputs_[index], word));
        return bind(index, std::move(value));
    }

    Expected<std::vector<Value>> finish() {
        std::vector<Value> out;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (!values_[i] && !inputs_[i].optional) {
                return fault(Fault::kMissingArgument)
                    .function(function_)
                    .operand(inputs_[i].name)
                    .expected(inputs_[i].to_string());
            }
            out.push_back(values_[i] ? *std::move(values_[i]) : Value());
        }
        return out;
    }

private:
    std::optional<std::size_t> find(std::string_view name) const {
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (inputs_[i].name == name) return i;
        }
        return std::nullopt;
    }

    Diagnostic unknown(const std::string& name) const {
        return fault(Fault::kUnknownName).function(function_).operand(name).expected("an input: " + names_of(inputs_));
    }

    Status bind(std::size_t index, Value value) {
        if (values_[index]) {
            return fault(Fault::kBadOption)
                .function(function_)
                .operand(inputs_[index].name)
                .found("the input is given twice");
        }
        values_[index] = std::move(value);
        return {};
    }

    // Every array of an archive by its name. numpy.savez names arrays that have none arr_0, arr_1, ...: these go by
    // position.
    Status add_all(const std::string& path) {
        CLI_ASSIGN(NamedTensors tensors, read_archive(path));
        for (auto& [name, tensor] : tensors) {
            auto index = find(name);
            for (std::size_t i = 0; !index && i < inputs_.size(); ++i) {
                if (name == "arr_" + std::to_string(i)) index = i;
            }
            if (!index) return unknown(name).hint("pick arrays one by one: NAME=" + path + ":" + name);
            CLI_TRY(bind(*index, Value(std::move(tensor))));
        }
        return {};
    }

    Expected<Value> read(const ArgumentInfo& input, const std::string& text) const {
        if (input.kind == "str") return Value(text);
        if (text == "none" || text == "None") return Value();
        const auto [path, key] = split_key(text);
        if (is_archive(path)) return pick(input, path, key);
        if (text.ends_with(".npy")) {
            CLI_ASSIGN(const Bytes file, open_file(text));
            CLI_ASSIGN(Tensor tensor, read_npy(file));
            return Value(std::move(tensor));
        }
        if (const auto number = parse_number(text)) {
            if (input.kind != "tensor" || !(input.any_rank || input.dims.empty())) return scalar_value(*number);
            const DType natural = number->kind == Number::Kind::kBool  ? DType::kBool
                                  : number->kind == Number::Kind::kInt ? DType::kI64
                                                                       : DType::kF32;
            CLI_ASSIGN(Tensor tensor, tensor_of_number(*number, input.dtype.value_or(natural)));
            return Value(std::move(tensor));
        }
        if (text.starts_with("[")) {
            CLI_ASSIGN(Tensor tensor, parse_tensor(text, input.dtype));
            return Value(std::move(tensor));
        }
        if (auto shaped = parse_shape(text)) {
            CLI_ASSIGN(Tensor tensor, *std::move(shaped));
            return Value(std::move(tensor));
        }
        return fault(Fault::kBadLiteral)
            .function(function_)
            .operand(input.name)
            .found(text)
            .expected(
                "a .npy, .npz or .safetensors file, a scalar, a list like [[1, 2], [3, 4]] or a shape like f32[8,128]");
    }

    Expected<Value> pick(const ArgumentInfo& input, const std::string& path, const std::string& key) const {
        CLI_ASSIGN(NamedTensors tensors, read_archive(path));
        for (auto& [name, tensor] : tensors) {
            if (name == (key.empty() ? input.name : key)) return Value(std::move(tensor));
        }
        if (key.empty() && tensors.size() == 1) return Value(std::move(tensors.front().second));
        return fault(Fault::kUnknownName)
            .operand(path + ":" + (key.empty() ? input.name : key))
            .expected("an array of the file: " + names_of(tensors));
    }

    std::string function_;
    std::vector<ArgumentInfo> inputs_;
    std::vector<std::optional<Value>> values_;
};

}  // namespace

Expected<std::vector<Value>> read_inputs(const Module& module, const std::string& function,
                                         std::span<const std::string> words) {
    Binder binder(function, module.inputs(function));
    for (const std::string& word : words) CLI_TRY(binder.add(word));
    return binder.finish();
}

}  // namespace flexor::cli
