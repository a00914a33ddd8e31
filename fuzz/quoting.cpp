// Quoted text and numbers: what is read back equals what was written, and no input crashes the readers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "support/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flexor::support;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (unquote(quote(text)) != text) std::abort();
    if (const auto raw = unquote(text); raw && unquote(quote(*raw)) != raw) std::abort();
    if (const auto value = double_from_text(text); value && *value == *value) {
        if (double_from_text(text_from_double(*value)) != value) std::abort();
    }
    if (size < 64) (void)edit_distance(text, trim(text));
    return 0;
}
