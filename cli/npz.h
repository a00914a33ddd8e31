#pragma once
// NumPy's .npz form: a zip archive of .npy entries. Stored entries are used where they lie in the file, deflated ones
// are expanded; every entry's checksum is compared.
#include <string>
#include <utility>
#include <vector>

#include "bytes.h"

namespace flexor::cli {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

Expected<NamedTensors> read_npz(const Bytes& file);
// Stored, as numpy.savez writes it.
Status write_npz(const NamedTensors& tensors, const Sink& sink);

}  // namespace flexor::cli
