#pragma once

// Small text work that the printers, parsers and diagnostics share.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flexor::support {

// The piece without white space at both ends.
std::string_view trim(std::string_view text);

// Pieces between separators; an empty text has one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

// "a, b, c" from any range and a function that prints one item.
template <typename Range, typename Print>
std::string join(const Range& range, std::string_view separator, Print print) {
    std::string out;
    bool first = true;
    for (const auto& item : range) {
        if (!first) out += separator;
        first = false;
        out += print(item);
    }
    return out;
}
std::string join(std::span<const std::string> items, std::string_view separator);

// The shortest text that reads back as the same double; always with '.', 'e', "inf" or "nan", so that it never reads as
// an integer.
std::string text_from_double(double value);

// The whole text as a number, or nothing. Accepts "inf", "-inf" and "nan" for doubles; decimal only for integers.
std::optional<double> double_from_text(std::string_view text);
std::optional<std::int64_t> int_from_text(std::string_view text);

// "text" with \n, \t, \", \\ and \xNN, and back. unquote takes the text with its quotes.
std::string quote(std::string_view text);
std::optional<std::string> unquote(std::string_view text);

// "1.5 MiB", "12 B".
std::string text_from_bytes(std::uint64_t bytes);

// Number of single-letter edits (insert, remove, replace, swap of neighbours) between two words.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to a misspelt name, or nothing if none is near (at most a third of its letters, at least one).
std::optional<std::string> closest_name(std::string_view name, std::span<const std::string_view> candidates);

// "did you mean 'relu'?" for Diagnostic::hint, or an empty text.
std::string near_miss_hint(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace flexor::support
