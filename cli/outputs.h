#pragma once
// Results of a run as files.
#include <string>
#include <vector>

#include "flexor/module.h"
#include "flexor/value.h"

namespace flexor::cli {

// The declared name of each result; out0, out1, ... where there is none (out, if it is the only one).
std::vector<std::string> result_names(const Module& module, const std::string& function, std::size_t count);

// path.npz, path.safetensors: all results. path.npy: the only one. Anything else: a directory that gets one .npy per
// result. Scalars become tensors of rank 0, elements of lists and dicts get names like "out.0"; none is left out.
Status write_outputs(const std::string& path, const std::vector<std::string>& names, const std::vector<Value>& results);

}  // namespace flexor::cli
