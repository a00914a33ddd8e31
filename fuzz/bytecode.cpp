// The first byte chooses the form: text, or binary with its checksums put right. What is read survives the other form,
// verification and printing; a verified Module reads back as the same program.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "bytecode/flx.h"
#include "bytecode/flx_format.h"
#include "bytecode/text.h"
#include "bytecode/type_flow.h"
#include "bytecode/verify.h"

using namespace flexor::bytecode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    std::vector<std::byte> file(bytes.begin(), bytes.end());
    flx::seal(file);
    flexor::Expected<Module> module = data[0] % 2 == 0
                                          ? assemble(text, "fuzz", {.read_files = false, .weight_bytes = 1 << 20})
                                          : read_flx(file, nullptr);
    if (!module) {
        if (module.error().to_string().empty()) std::abort();
        return 0;
    }
    std::uint64_t weights = 0;
    for (const Weight& weight : module->weights) {
        weights += static_cast<std::uint64_t>(weight.tensor.numel()) * flexor::dtype_size(weight.tensor.dtype());
    }
    if (weights > (1 << 20)) return 0;
    flexor::Expected<ModuleRef> verified = verify(*std::move(module));
    if (!verified) return 0;
    for (const Function& function : (*verified)->functions) {
        flexor::types::ShapeEnv env = module_env(**verified);
        if (result_types(**verified, function, env).size() != static_cast<std::size_t>(function.result_count))
            std::abort();
    }
    const auto again = assemble(disassemble(**verified, {.weight_bytes = 1 << 20}), "listing", {.read_files = false});
    if (!again) std::abort();
    const auto again_verified = verify(*again);
    if (!again_verified || !same_program(**again_verified, **verified)) std::abort();
    const auto binary = read_flx(write_flx(**verified), nullptr);
    if (!binary || !same_program(*binary, **verified)) std::abort();
    return 0;
}
