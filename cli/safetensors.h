#pragma once
// The safetensors form: a JSON header, then the elements. Used where they lie in the file.
#include "npz.h"

namespace flexor::cli {

Expected<NamedTensors> read_safetensors(const Bytes& file);
Status write_safetensors(const NamedTensors& tensors, const Sink& sink);

}  // namespace flexor::cli
