#pragma once
// NumPy's .npy form. Read without copying where the file's layout allows it.
#include <string>

#include "bytes.h"

namespace flexor::cli {

Expected<Tensor> read_npy(const Bytes& file);
// Magic, version and header of a row-major array. bfloat16 has no .npy form: refused with a hint.
Expected<std::string> npy_header(const Tensor& tensor, const std::string& name);
// The elements in row-major order.
Status write_elements(const Tensor& tensor, const Sink& sink);
Status write_npy(const Tensor& tensor, const std::string& name, const Sink& sink);

}  // namespace flexor::cli
