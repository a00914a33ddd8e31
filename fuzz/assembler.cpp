// Texts, wild ones too: refused with file and line, or a program that verify can judge.
#include "common/laws.h"
#include "common/text_mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor;
    if (std::optional<bytecode::Module> module = fuzz::assembled({reinterpret_cast<const char*>(data), size}))
        (void)fuzz::verified(*std::move(module));
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    return flexor::fuzz::mutate_text(data, size, most, seed, {.wild = 60});
}
