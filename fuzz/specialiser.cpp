// Verified programs compute the same on the interpreter and compiled: results, written arguments, what is raised.
// Kernels run in their evaluator; one program in eight also runs generated code, whose making takes long.
#include "common/laws.h"
#include "common/runs.h"
#include "common/text_mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::optional<bytecode::Module> module = fuzz::assembled(text);
    if (!module) return 0;
    if (const bytecode::ModuleRef sound = fuzz::verified(*std::move(module))) fuzz::compare_engines(sound, text);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    return flexor::fuzz::mutate_text(data, size, most, seed, {.wild = 1});
}
