#pragma once
// Weights in the text form: initialisers, inline numbers, .npy files.
#include <string>

#include "bytecode/lexer.h"
#include "flexor/tensor.h"
#include "support/expected.h"

namespace flexor::bytecode {

// What stands after `=` in a .weight line. `folder` is where relative file names are looked up; null refuses files.
// Takes what the weight needs from `budget` bytes.
Expected<Tensor> parse_weight(Cursor& cursor, DType dtype, std::span<const std::int64_t> sizes,
                              const std::string* folder, std::uint64_t* budget);

// The text that parse_weight reads back to the same bits: zeros, a list of numbers, or hex.
std::string spell_weight(const Tensor& tensor);

// A C-ordered, little-endian .npy file of a dtype that Flexor has.
Expected<Tensor> read_npy(const std::string& path);

}  // namespace flexor::bytecode
