#include "common/laws.h"

#include <cstdio>
#include <cstdlib>

#include "bytecode/flx.h"
#include "bytecode/public_module.h"
#include "bytecode/text.h"
#include "bytecode/type_flow.h"
#include "bytecode/verify.h"
#include "support/diagnostic.h"

namespace flexor::fuzz {

void broken(std::string_view law, const std::string& details) {
    std::fprintf(stderr, "BROKEN LAW: %.*s\n%s\n", static_cast<int>(law.size()), law.data(), details.c_str());
    std::abort();
}

std::optional<bytecode::Module> assembled(std::string_view text) {
    Expected<bytecode::Module> module =
        bytecode::assemble(text, "fuzz", {.read_files = false, .weight_bytes = kMostWeightBytes});
    if (module) return *std::move(module);
    const Diagnostic& refusal = module.error();
    if (!refusal.where().source.starts_with("fuzz:")) broken("T2: a refusal names file and line", refusal.to_string());
    return std::nullopt;
}

bytecode::ModuleRef verified(bytecode::Module module) {
    Expected<bytecode::ModuleRef> out = bytecode::verify(std::move(module));
    if (out) return *std::move(out);
    if (out.error().to_string().empty() || out.error().code().size() != 5)
        broken("a refusal has an id and a text", out.error().to_string());
    return nullptr;
}

void check_round_trip(const bytecode::Module& module) {
    const std::string listing = bytecode::disassemble(module, {.weight_bytes = kMostWeightBytes});
    const Expected<bytecode::Module> again = bytecode::assemble(listing, "listing", {.read_files = false});
    if (!again) broken("T1: a listing assembles", again.error().to_string() + "\n" + listing);
    Expected<bytecode::ModuleRef> second = bytecode::verify(*again);
    if (!second) broken("T1: a listing verifies", second.error().to_string() + "\n" + listing);
    if (!bytecode::same_program(**second, module)) broken("T1: the listing is the same program", listing);
    const std::vector<std::byte> bytes = bytecode::write_flx(module);
    const Expected<bytecode::Module> read = bytecode::read_flx(bytes, nullptr);
    if (!read) broken("B2: a file that was written reads", read.error().to_string() + "\n" + listing);
    if (!bytecode::same_program(*read, module)) broken("B2: the file is the same program", listing);
    if (bytecode::write_flx(*read) != bytes) broken("B2: equal Modules give equal bytes", listing);
}

void check_descriptions(const bytecode::ModuleRef& module) {
    for (const bytecode::Function& function : module->functions) {
        types::ShapeEnv env = bytecode::module_env(*module);
        if (bytecode::result_types(*module, function, env).size() != static_cast<std::size_t>(function.result_count))
            broken("type flow knows every result", bytecode::disassemble(*module));
    }
    const Module shown = bytecode::public_module(module);
    for (const FunctionInfo& function : shown.functions()) {
        for (const ArgumentInfo& argument : shown.inputs(function.name)) (void)argument.to_string();
        for (const ArgumentInfo& result : shown.outputs(function.name)) (void)result.to_string();
    }
}

std::uint64_t weight_bytes(const bytecode::Module& module) {
    std::uint64_t bytes = 0;
    for (const bytecode::Weight& weight : module.weights)
        bytes += static_cast<std::uint64_t>(weight.tensor.numel()) * dtype_size(weight.tensor.dtype());
    return bytes;
}

}  // namespace flexor::fuzz
