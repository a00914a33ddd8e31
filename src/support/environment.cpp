#include "support/environment.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::support {
namespace {

template <typename Takes>
Expected<std::optional<int>> number(const char* name, std::string expected, Takes takes) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') return std::optional<int>();
    const std::optional<std::int64_t> value = int_from_text(text);
    if (value && takes(*value)) return std::optional<int>(static_cast<int>(*value));
    return Diagnostic(DiagnosticId::kBadOption).operand(name).found(quote(text)).expected(std::move(expected));
}

Expected<std::optional<std::string>> word(const char* name, const std::vector<std::string>& known) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') return std::optional<std::string>();
    if (std::ranges::find(known, text) != known.end()) return std::optional<std::string>(text);
    return Diagnostic(DiagnosticId::kBadOption)
        .operand(name)
        .found(quote(text))
        .expected("one of " + join(known, ", ", [](const std::string& k) { return k; }));
}

}  // namespace

Expected<std::optional<int>> threads_from_environment() {
    return number("FLEXOR_NUM_THREADS", "1 to " + std::to_string(kMaxThreads),
                  [](std::int64_t value) { return value >= 1 && value <= kMaxThreads; });
}

Expected<std::optional<int>> vector_bits_from_environment() {
    return number("FLEXOR_VECTOR_BITS", "128, 256 or 512",
                  [](std::int64_t value) { return value == 128 || value == 256 || value == 512; });
}

Expected<bool> stand_ins_from_environment() {
    FLEXOR_ASSIGN(const std::optional<int> value,
                  number("FLEXOR_STAND_INS", "0 or 1", [](std::int64_t value) { return value == 0 || value == 1; }));
    return value.value_or(1) == 1;
}

std::vector<std::string> kernel_compiler_from_environment() {
    const char* const text = std::getenv("FLEXOR_KERNEL_COMPILER");
    std::vector<std::string> words;
    for (const std::string_view word : split(text == nullptr ? "" : text, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

Expected<std::optional<std::string>> library_products_from_environment() {
    return word("FLEXOR_CUBLASLT", {"measured", "never", "always"});
}

Expected<std::optional<std::string>> dependent_launch_from_environment() {
    return word("FLEXOR_DEPENDENT_LAUNCH", {"never", "late", "early"});
}

std::string profiler_from_environment() {
    const char* const text = std::getenv("NVTX_INJECTION64_PATH");
    return text == nullptr ? "" : text;
}

Expected<void> check_environment() {
    FLEXOR_TRY(threads_from_environment());
    FLEXOR_TRY(vector_bits_from_environment());
    FLEXOR_TRY(stand_ins_from_environment());
    FLEXOR_TRY(library_products_from_environment());
    FLEXOR_TRY(dependent_launch_from_environment());
    return {};
}

}  // namespace flexor::support
