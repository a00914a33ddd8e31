#pragma once
// The environment variables of environment.def that take numbers. Unset and empty ones are absent; others are refused
// with BadOption if their value is none that they take.
#include <optional>
#include <string>
#include <vector>

#include "support/expected.h"

namespace flexor::support {

inline constexpr int kMaxThreads = 1024;

Expected<std::optional<int>> threads_from_environment();      // FLEXOR_NUM_THREADS: 1 to kMaxThreads
Expected<std::optional<int>> vector_bits_from_environment();  // FLEXOR_VECTOR_BITS: 128, 256 or 512
Expected<bool> stand_ins_from_environment();                  // FLEXOR_STAND_INS: 0 or 1, which it is unset
std::vector<std::string> kernel_compiler_from_environment();  // FLEXOR_KERNEL_COMPILER, by spaces
Expected<std::optional<std::string>> library_products_from_environment();  // FLEXOR_CUBLASLT: measured, never or always
Expected<std::optional<std::string>>
dependent_launch_from_environment();      // FLEXOR_DEPENDENT_LAUNCH: never, late or early
std::string profiler_from_environment();  // NVTX_INJECTION64_PATH
Expected<void> check_environment();       // the first refusal of them all

}  // namespace flexor::support
