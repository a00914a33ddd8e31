#pragma once
// Arguments of a function from the words of the command line:
//   [name=]file.npy                    an array
//   [name=]file.npz[:key]              one array of an archive; without a name and a key: every array by its name
//   [name=]file.safetensors[:key]      likewise
//   [name=]3 | 1.5 | true | none       a scalar; for a declared tensor of rank 0 or of any rank a tensor of rank 0
//   [name=][[1, 2], [3, 4]]            a tensor, written out
//   [name=]f32[8,128]                  a tensor of that shape with fixed pseudo-random contents
//   [name=]text                        for a declared string: the text itself
// Words without a name fill the declared inputs in order.
#include <span>
#include <string>
#include <vector>

#include "flexor/module.h"
#include "flexor/value.h"

namespace flexor::cli {

Expected<std::vector<Value>> read_inputs(const Module& module, const std::string& function,
                                         std::span<const std::string> words);

}  // namespace flexor::cli
