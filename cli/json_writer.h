#pragma once
// Writes JSON text. Members and elements are separated by the writer; the caller balances begin and end.
#include <cstdint>
#include <string>
#include <string_view>

namespace flexor::cli {

class JsonWriter {
public:
    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return close(']'); }
    JsonWriter& key(std::string_view name);

    JsonWriter& string(std::string_view text);
    JsonWriter& integer(std::int64_t value) { return raw(std::to_string(value)); }
    JsonWriter& count(std::uint64_t value) { return raw(std::to_string(value)); }
    JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
    JsonWriter& null() { return raw("null"); }
    // JSON has no NaN and no infinities: they become the strings "nan", "inf", "-inf".
    JsonWriter& real(double value);
    JsonWriter& raw(std::string_view json);  // a whole value

    const std::string& text() const { return text_; }

private:
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);
    void separate();

    std::string text_;
    bool first_ = true;       // no element of the innermost bracket is written yet
    bool after_key_ = false;  // the next value belongs to a key
};

// Quotes text of any origin: what is no UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);
std::string valid_utf8(std::string_view text);

}  // namespace flexor::cli
