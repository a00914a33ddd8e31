// Files with their checksums put right, so that the change reaches the readers of the sections.
#include "bytecode/flx.h"

#include "bytecode/flx_format.h"
#include "common/laws.h"
#include "support/diagnostic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor;
    const auto bytes = std::as_bytes(std::span(data, size));
    std::vector<std::byte> file(bytes.begin(), bytes.end());
    bytecode::flx::seal(file);
    Expected<bytecode::Module> module = bytecode::read_flx(file, nullptr);
    if (!module) {
        if (module.error().to_string().empty()) fuzz::broken("a refusal has a text", module.error().code());
        return 0;
    }
    if (fuzz::weight_bytes(*module) > fuzz::kMostWeightBytes) return 0;
    if (const bytecode::ModuleRef sound = fuzz::verified(*std::move(module))) {
        fuzz::check_descriptions(sound);
        fuzz::check_round_trip(*sound);
    }
    return 0;
}
