#pragma once
// What every input must leave true. A broken law aborts, which libFuzzer reports with the input.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bytecode/module.h"
#include "support/expected.h"

namespace flexor::fuzz {

[[noreturn]] void broken(std::string_view law, const std::string& details);

// The text as a Module that has not been verified; nothing if it is refused. A refusal names file and line (T2).
std::optional<bytecode::Module> assembled(std::string_view text);

// The verified Module, or nothing. A refusal has an id, and its text is not empty.
bytecode::ModuleRef verified(bytecode::Module module);

// T1, B2: the Module survives its text and its file.
void check_round_trip(const bytecode::Module& module);

// Printing, type flow and the public descriptions of a verified Module.
void check_descriptions(const bytecode::ModuleRef& module);

// Bytes of all weights, as the Module declares them.
std::uint64_t weight_bytes(const bytecode::Module& module);

// Weights of more bytes are not worth the time of a fuzzer.
inline constexpr std::uint64_t kMostWeightBytes = 1 << 20;

}  // namespace flexor::fuzz
