// Programs that verify accepts survive their text, their file, and every description.
#include "common/laws.h"
#include "common/text_mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor;
    std::optional<bytecode::Module> module = fuzz::assembled({reinterpret_cast<const char*>(data), size});
    if (!module) return 0;
    if (const bytecode::ModuleRef sound = fuzz::verified(*std::move(module))) {
        fuzz::check_descriptions(sound);
        fuzz::check_round_trip(*sound);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    return flexor::fuzz::mutate_text(data, size, most, seed, {.wild = 10});
}
