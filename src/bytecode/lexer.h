#pragma once
// Tokens of the text form, and the expressions that the text form and the .flx reader share.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_def.h"
#include "support/expected.h"
#include "types/attr.h"

namespace flexor::bytecode {

enum class TokenKind : std::uint8_t { kName, kDirective, kInt, kFloat, kString, kPunctuation, kNewline, kEnd };

struct Token {
    TokenKind kind = TokenKind::kEnd;
    std::string_view text;  // a piece of the source; strings with their quotes
    std::int32_t line = 0;
    bool space_before = false;
};

// Newlines inside brackets are dropped. The views point into `source`. The last token is kEnd.
Expected<std::vector<Token>> tokenize(std::string_view source, std::string_view file_name);

bool is_identifier(std::string_view text);     // one kName token
bool is_reserved_word(std::string_view text);  // has a meaning inside attributes and dims: no symbol may take it
inline std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }  // in messages
std::string spell_name(std::string_view name);                                              // as it is, or quoted

// Reads tokens; every error names file and line.
class Cursor {
public:
    Cursor(const std::vector<Token>& tokens, std::string file_name)
        : tokens_(&tokens), file_name_(std::move(file_name)) {}

    const Token& peek(std::size_t ahead = 0) const { return (*tokens_)[std::min(index_ + ahead, tokens_->size() - 1)]; }
    const Token& next();
    bool at(std::string_view punctuation) const;
    bool at_name(std::string_view name) const;
    bool at_line_end() const { return peek().kind == TokenKind::kNewline || peek().kind == TokenKind::kEnd; }
    bool accept(std::string_view punctuation);
    std::size_t index() const { return index_; }
    void seek(std::size_t index) { index_ = index; }
    void skip_line();

    Status expect(std::string_view punctuation);
    Status expect_line_end();
    Expected<std::string> name(std::string_view what);      // identifier or "text"
    Expected<std::int64_t> integer(std::string_view what);  // with sign
    Expected<double> number(std::string_view what);         // integer or float, with sign; inf, nan
    Expected<std::string> string(std::string_view what);

    std::string where(std::int32_t line) const { return file_name_ + ":" + std::to_string(line); }
    std::string where() const { return where(peek().line); }
    const std::string& file_name() const { return file_name_; }
    Diagnostic unexpected(std::string_view expected) const;

private:
    const std::vector<Token>* tokens_;
    std::string file_name_;
    std::size_t index_ = 0;
};

// Finds a symbol by its name, or refuses.
using SymbolLookup = std::function<Expected<types::SymbolId>(const std::string& name)>;

// Bounded in depth and in terms, so that no text can exhaust stack or memory.
Expected<types::Dim> parse_dim(Cursor& cursor, const SymbolLookup& symbols);
// One attribute value. `spec` may be null; it only lets a bare word stand for a string.
Expected<types::AttrValue> parse_attr_value(Cursor& cursor, const SymbolLookup& symbols, const ops::AttrSpec* spec);
// "name=value, name=value" up to the end of the line or a closing brace.
Expected<types::Attrs> parse_attrs(Cursor& cursor, const SymbolLookup& symbols, const ops::OpDef* definition);

// What parse_attrs reads back, in name order.
std::string spell_attrs(const types::Attrs& attrs, const ops::OpDef* leave_out_defaults_of,
                        const std::function<std::string(types::SymbolId)>& name);

}  // namespace flexor::bytecode
