// asm, dis, verify: programs as files.
#include <cstdio>

#include "commands.h"
#include "faults.h"
#include "flexor/module.h"
#include "program.h"

namespace flexor::cli {
namespace {

void write_arguments(JsonWriter& json, const std::vector<ArgumentInfo>& arguments) {
    json.begin_array();
    for (const ArgumentInfo& argument : arguments) {
        json.begin_object().key("name").string(argument.name).key("kind").string(argument.kind);
        json.key("optional").boolean(argument.optional).key("text").string(argument.to_string());
        if (argument.kind == "tensor") {
            json.key("dtype");
            argument.dtype ? json.string(dtype_name(*argument.dtype)) : json.null();
            json.key("any_rank").boolean(argument.any_rank).key("dims").begin_array();
            for (const DimInfo& dim : argument.dims) {
                json.begin_object().key("text").string(dim.text).key("lo").integer(dim.lo).key("hi");
                dim.hi >= kUnboundedDim ? json.null() : json.integer(dim.hi);
                json.key("frozen").boolean(dim.frozen).end_object();
            }
            json.end_array();
        }
        json.end_object();
    }
    json.end_array();
}

void write_module(JsonWriter& json, const Module& module) {
    json.key("functions").begin_array();
    for (const FunctionInfo& function : module.functions()) {
        json.begin_object().key("name").string(function.name);
        json.key("instructions").count(function.instructions).key("results").integer(function.results);
        json.key("inputs");
        write_arguments(json, module.inputs(function.name));
        json.key("outputs");
        write_arguments(json, module.outputs(function.name));
        json.end_object();
    }
    json.end_array().key("symbols").begin_array();
    for (const SymbolInfo& symbol : module.symbols()) {
        json.begin_object().key("name").string(symbol.name).key("lo").integer(symbol.lo).key("hi");
        symbol.hi >= kUnboundedDim ? json.null() : json.integer(symbol.hi);
        json.end_object();
    }
    json.end_array().key("weights").begin_array();
    for (const WeightInfo& weight : module.weights()) {
        json.begin_object().key("name").string(weight.name).key("dtype").string(dtype_name(weight.dtype));
        json.key("sizes").begin_array();
        for (const std::int64_t size : weight.sizes) json.integer(size);
        json.end_array().key("bytes").count(weight.bytes).end_object();
    }
    json.end_array().key("hooks").begin_array();
    for (const std::string& hook : module.hooks()) json.string(hook);
    json.end_array().key("metadata").begin_object();
    for (const auto& [key, value] : module.metadata()) json.key(key).string(value);
    json.end_object();
}

std::string function_signature(const Module& module, const FunctionInfo& function) {
    const auto list = [](const std::vector<ArgumentInfo>& arguments) {
        std::string out;
        for (const ArgumentInfo& argument : arguments) out += (out.empty() ? "" : ", ") + argument.to_string();
        return "(" + out + ")";
    };
    return function.name + list(module.inputs(function.name)) + " -> " + list(module.outputs(function.name));
}

std::string replaced_extension(const std::string& path, const std::string& extension) {
    return (path.ends_with(".fasm") ? path.substr(0, path.size() - 5) : path) + extension;
}

}  // namespace

Outcome asm_command(const Options& options) {
    CLI_ASSIGN(const Module module, Module::load(options.file));
    const std::string output = options.output.empty() ? replaced_extension(options.file, ".flx") : options.output;
    CLI_TRY(module.save(output));
    JsonWriter json;
    json.begin_object().key("output").string(output);
    write_module(json, module);
    json.end_object();
    emit(options, "", json);
    return Exit::kDone;
}

Outcome dis_command(const Options& options) {
    CLI_ASSIGN(const Module module, Module::load(options.file));
    const std::string text =
        module.disassemble({.positions = options.positions, .pcs = options.pcs, .weight_bytes = options.weight_bytes});
    JsonWriter json;
    json.begin_object().key("text").string(text);
    write_module(json, module);
    json.end_object();
    emit(options, text, json);
    return Exit::kDone;
}

Outcome verify_command(const Options& options) {
    CLI_ASSIGN(const Module module, Module::load(options.file));
    std::string text = options.file + ": verified\n";
    for (const FunctionInfo& function : module.functions()) {
        text += "  " + function_signature(module, function) + ": " + std::to_string(function.instructions) +
                " instructions\n";
    }
    for (const std::string& hook : module.hooks()) text += "  calls the foreign function " + hook + "\n";
    JsonWriter json;
    json.begin_object().key("verified").boolean(true);
    write_module(json, module);
    json.end_object();
    emit(options, text, json);
    return Exit::kDone;
}

}  // namespace flexor::cli
