#include "bytecode/public_module.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "bytecode/flx.h"
#include "bytecode/text.h"
#include "bytecode/type_flow.h"
#include "bytecode/verify.h"
#include "support/diagnostic.h"
#include "support/no_memory.h"
#include "support/text.h"

namespace flexor {
namespace {

using bytecode::StaticType;

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

Diagnostic file_error(DiagnosticId id, const std::string& path) {
    return Diagnostic(id).operand(path).found(std::strerror(errno));
}

Expected<std::string> read_file(const std::string& path) {
    const File file(std::fopen(path.c_str(), "rb"));
    if (file == nullptr) return file_error(DiagnosticId::kFileNotReadable, path);
    std::string text;
    char buffer[65536];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;) text.append(buffer, n);
    if (std::ferror(file.get()) != 0) return file_error(DiagnosticId::kFileNotReadable, path);
    return text;
}

Status write_file(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".tmp";
    File file(std::fopen(temporary.c_str(), "wb"));
    if (file == nullptr) return file_error(DiagnosticId::kFileNotWritable, path);
    bool good = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    good = std::fclose(file.release()) == 0 && good;
    if (good && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
    Diagnostic diagnostic = file_error(DiagnosticId::kFileNotWritable, path);
    std::remove(temporary.c_str());
    return diagnostic;
}

Expected<Module> verified(Expected<bytecode::Module> module) {
    if (!module) return std::move(module).error();
    FLEXOR_ASSIGN(bytecode::ModuleRef ref, bytecode::verify(*std::move(module)));
    return bytecode::public_module(std::move(ref));
}

std::string range_text(std::int64_t lo, std::int64_t hi) {
    return std::to_string(lo) + ".." + (hi >= kUnboundedDim ? "inf" : std::to_string(hi));
}

// Sizes made by data have names of the analysis; a user sees their range.
DimInfo dim_info(const bytecode::Module& module, const types::ShapeEnv& env, const types::Dim& dim, bool frozen) {
    DimInfo info;
    info.frozen = frozen;
    const types::Dim simple = env.simplify(dim);
    const types::Range range = env.range(simple);
    info.lo = std::max<std::int64_t>(range.lo, 0);
    info.hi = std::max(info.lo, std::min(range.hi, kUnboundedDim));
    std::vector<types::SymbolId> used;
    simple.collect_symbols(used);
    const bool declared = std::ranges::all_of(used, [&](types::SymbolId id) { return id < module.symbols.size(); });
    info.text = declared ? simple.to_string(bytecode::symbol_names(module)) : "?";
    return info;
}

std::string_view kind_name(const StaticType& type) {
    switch (type.kind) {
        case StaticType::Kind::kTensor: return "tensor";
        case StaticType::Kind::kInt: return "int";
        case StaticType::Kind::kFloat: return "float";
        case StaticType::Kind::kBool: return "bool";
        case StaticType::Kind::kString: return "str";
        case StaticType::Kind::kNone: return "none";
        case StaticType::Kind::kList: return "list";
        case StaticType::Kind::kDict: return "dict";
        default: return "any";
    }
}

ArgumentInfo argument_info(const bytecode::Module& module, const types::ShapeEnv& env,
                           const bytecode::ParamDecl& param) {
    static constexpr std::string_view kKinds[] = {"tensor", "int", "float", "bool", "str", "any"};
    ArgumentInfo info;
    info.name = param.name;
    info.kind = kKinds[static_cast<std::size_t>(param.kind)];
    info.optional = param.optional;
    if (param.kind != bytecode::ParamKind::kTensor) return info;
    if (!param.any_dtype) info.dtype = param.dtype;
    info.any_rank = param.any_rank;
    for (std::size_t i = 0; i < param.dims.size(); ++i) {
        info.dims.push_back(dim_info(module, env, param.dims[i], param.frozen[i]));
    }
    return info;
}

}  // namespace

std::string ArgumentInfo::to_string() const {
    std::string text = name.empty() ? "" : name + ": ";
    if (kind != "tensor") return text + kind + (optional ? "?" : "");
    std::optional<std::vector<std::string>> spelt;
    if (!any_rank) spelt.emplace();
    for (std::size_t i = 0; spelt && i < dims.size(); ++i) {
        const DimInfo& dim = dims[i];
        std::string& one = spelt->emplace_back(dim.frozen ? "FROZEN " : "");
        one += dim.text;
        if (!dim.is_constant() && (dim.lo > 0 || dim.hi < kUnboundedDim)) one += " in " + range_text(dim.lo, dim.hi);
    }
    text += bytecode::tensor_text(dtype, spelt);
    return optional ? text + "?" : text;
}

namespace {

Expected<Module> load_module(const std::string& path) {
    std::byte magic[8]{};
    {
        const File file(std::fopen(path.c_str(), "rb"));
        if (file == nullptr) return file_error(DiagnosticId::kFileNotReadable, path);
        static_cast<void>(std::fread(magic, 1, sizeof magic, file.get()));
    }
    if (bytecode::is_flx(magic)) return verified(bytecode::load_flx(path));
    if (path.ends_with(".flx")) return Diagnostic(DiagnosticId::kNotAFlxFile).operand(path);
    FLEXOR_ASSIGN(const std::string text, read_file(path));
    if (text.find('\0') != std::string::npos) {
        return Diagnostic(DiagnosticId::kNotAFlxFile).operand(path).found("a binary file of another kind");
    }
    return Module::from_text(text, path);
}

}  // namespace

Expected<Module> Module::load(const std::string& path) {
    return support::or_out_of_memory([&] { return load_module(path); });
}

Expected<Module> Module::from_text(std::string_view text, std::string name, bool read_files) {
    return support::or_out_of_memory(
        [&] { return verified(bytecode::assemble(text, std::move(name), {.read_files = read_files})); });
}

Expected<Module> Module::from_bytes(std::span<const std::byte> bytes) {
    return support::or_out_of_memory([&] { return verified(bytecode::read_flx(bytes, nullptr)); });
}

Expected<void> Module::save(const std::string& path) const {
    return support::or_out_of_memory([&]() -> Expected<void> {
        if (!path.ends_with(".fasm")) return bytecode::save_flx(*impl_->module, path);
        return write_file(path, bytecode::disassemble(*impl_->module, {.weight_bytes = std::uint64_t{1} << 40}));
    });
}

std::vector<std::byte> Module::to_bytes() const { return bytecode::write_flx(*impl_->module); }

std::string Module::disassemble(DisassembleOptions options) const {
    return bytecode::disassemble(*impl_->module, {options.positions, options.pcs, options.weight_bytes});
}

std::vector<ArgumentInfo> Module::inputs(std::string_view function) const {
    const bytecode::Module& module = *impl_->module;
    const std::int32_t index = module.find_function(function);
    std::vector<ArgumentInfo> out;
    if (index < 0) return out;
    const types::ShapeEnv env = bytecode::module_env(module);
    for (const bytecode::ParamDecl& param : module.functions[static_cast<std::size_t>(index)].params) {
        out.push_back(argument_info(module, env, param));
    }
    return out;
}

std::vector<ArgumentInfo> Module::outputs(std::string_view function) const {
    const bytecode::Module& module = *impl_->module;
    const std::int32_t index = module.find_function(function);
    std::vector<ArgumentInfo> out;
    if (index < 0) return out;
    const bytecode::Function& body = module.functions[static_cast<std::size_t>(index)];
    types::ShapeEnv env = bytecode::module_env(module);
    const std::vector<StaticType> types = bytecode::result_types(module, body, env);
    for (std::size_t i = 0; i < types.size(); ++i) {
        ArgumentInfo info;
        if (i < body.result_names.size()) info.name = body.result_names[i];
        info.kind = kind_name(types[i]);
        if (types[i].kind == StaticType::Kind::kTensor) {
            info.dtype = types[i].tensor.dtype;
            for (const types::Dim& dim : types[i].tensor.sizes) info.dims.push_back(dim_info(module, env, dim, false));
        }
        out.push_back(std::move(info));
    }
    return out;
}

std::vector<FunctionInfo> Module::functions() const {
    std::vector<FunctionInfo> out;
    for (const bytecode::Function& f : impl_->module->functions) out.push_back({f.name, f.code.size(), f.result_count});
    return out;
}

std::vector<SymbolInfo> Module::symbols() const {
    std::vector<SymbolInfo> out;
    for (const bytecode::SymbolDecl& s : impl_->module->symbols) out.push_back({s.name, s.range.lo, s.range.hi});
    return out;
}

const std::map<std::string, std::string>& Module::metadata() const { return impl_->module->metadata; }

std::vector<WeightInfo> Module::weights() const {
    std::vector<WeightInfo> out;
    for (const bytecode::Weight& weight : impl_->module->weights) {
        const Tensor& tensor = weight.tensor;
        out.push_back({weight.name,
                       tensor.dtype(),
                       {tensor.sizes().begin(), tensor.sizes().end()},
                       static_cast<std::uint64_t>(tensor.numel()) * dtype_size(tensor.dtype())});
    }
    return out;
}

Tensor Module::weight(std::string_view name) const {
    const auto found = std::ranges::find(impl_->module->weights, name, &bytecode::Weight::name);
    return found == impl_->module->weights.end() ? Tensor() : found->tensor;
}

const std::vector<std::string>& Module::hooks() const { return impl_->module->hooks; }

bool Module::writes_arguments() const {
    for (const bytecode::Function& function : impl_->module->functions) {
        for (const bytecode::CallSite& site : function.sites) {
            if (site.definition != nullptr && site.definition->effects.value == ops::Effects::kWritesFirst) return true;
        }
    }
    return false;
}

std::uint64_t Module::id() const { return impl_->module->id; }

flexor::Module bytecode::public_module(ModuleRef module) {
    return flexor::Module(std::make_shared<flexor::Module::Impl>(flexor::Module::Impl{std::move(module)}));
}

}  // namespace flexor
