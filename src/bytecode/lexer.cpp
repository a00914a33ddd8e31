#include "bytecode/lexer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

using types::Dim;

constexpr int kMaxDepth = 100;           // nesting of dim expressions
constexpr std::size_t kMaxTerms = 1024;  // terms of a product
constexpr std::size_t kMaxListItems = 65536;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of the name that starts at `at`; dots are part of a name where a letter or digit follows.
std::size_t name_length(std::string_view source, std::size_t at) {
    std::size_t end = at;
    while (end < source.size()) {
        const char c = source[end];
        const bool dot = c == '.' && end > at && end + 1 < source.size() &&
                         (is_letter(source[end + 1]) || is_digit(source[end + 1]));
        if (!is_letter(c) && !(is_digit(c) && end > at) && !dot) break;
        ++end;
    }
    return end - at;
}

std::size_t number_length(std::string_view source, std::size_t at, bool* is_float) {
    std::size_t end = at;
    const auto digits = [&] {
        while (end < source.size() && is_digit(source[end])) ++end;
    };
    digits();
    *is_float = false;
    const bool range = end + 1 < source.size() && source[end] == '.' && source[end + 1] == '.';
    if (end < source.size() && source[end] == '.' && !range) {
        *is_float = true;
        ++end;
        digits();
    }
    if (end < source.size() && (source[end] == 'e' || source[end] == 'E')) {
        std::size_t exponent = end + 1;
        if (exponent < source.size() && (source[exponent] == '+' || source[exponent] == '-')) ++exponent;
        if (exponent < source.size() && is_digit(source[exponent])) {
            *is_float = true;
            end = exponent;
            digits();
        }
    }
    return end - at;
}

constexpr std::array<std::string_view, 13> kReserved = {
    "true", "false", "none", "all", "inf", "nan", "min", "max", "mod", "any", "trunc_div", "broadcast", "FROZEN"};

}  // namespace

Expected<std::vector<Token>> tokenize(std::string_view source, std::string_view file_name) {
    std::vector<Token> out;
    std::int32_t line = 1;
    int brackets = 0;
    bool space = false;
    const auto push = [&](TokenKind kind, std::size_t at, std::size_t length) {
        out.push_back({kind, source.substr(at, length), line, space});
        space = false;
    };
    std::size_t i = 0;
    while (i < source.size()) {
        const char c = source[i];
        if (c == '\n') {
            if (brackets == 0) push(TokenKind::kNewline, i, 1);
            ++line;
            ++i;
            space = true;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++i;
            space = true;
        } else if (c == ';') {
            while (i < source.size() && source[i] != '\n') ++i;
        } else if (is_letter(c)) {
            const std::size_t length = name_length(source, i);
            push(TokenKind::kName, i, length);
            i += length;
        } else if (c == '.' && i + 1 < source.size() && is_letter(source[i + 1])) {
            const std::size_t length = 1 + name_length(source, i + 1);
            push(TokenKind::kDirective, i, length);
            i += length;
        } else if (is_digit(c) || (c == '.' && i + 1 < source.size() && is_digit(source[i + 1]))) {
            bool is_float = false;
            const std::size_t length = number_length(source, i, &is_float);
            push(is_float ? TokenKind::kFloat : TokenKind::kInt, i, length);
            i += length;
        } else if (c == '"') {
            std::size_t end = i + 1;
            while (end < source.size() && source[end] != '"' && source[end] != '\n') {
                end += source[end] == '\\' && end + 1 < source.size() && source[end + 1] != '\n' ? 2 : 1;
            }
            if (end >= source.size() || source[end] != '"') {
                return Diagnostic(DiagnosticId::kBadLiteral)
                    .source(std::string(file_name) + ":" + std::to_string(line))
                    .found("a text without its closing quote");
            }
            push(TokenKind::kString, i, end + 1 - i);
            i = end + 1;
        } else {
            std::size_t length = 1;
            for (const std::string_view punctuation : {"...", "..", "->", "//"}) {
                if (source.substr(i).starts_with(punctuation)) {
                    length = punctuation.size();
                    break;
                }
            }
            constexpr std::string_view kSingles = "()[]{},:=?+-*/%$#";
            if (length == 1 && kSingles.find(c) == std::string_view::npos) {
                return Diagnostic(DiagnosticId::kUnexpectedToken)
                    .source(std::string(file_name) + ":" + std::to_string(line))
                    .found("the character " + support::quote(std::string_view(&c, 1)));
            }
            if (c == '(' || c == '[' || c == '{') ++brackets;
            if ((c == ')' || c == ']' || c == '}') && brackets > 0) --brackets;
            push(TokenKind::kPunctuation, i, length);
            i += length;
        }
    }
    out.push_back({TokenKind::kEnd, {}, line, true});
    return out;
}

bool is_identifier(std::string_view text) {
    return !text.empty() && is_letter(text[0]) && name_length(text, 0) == text.size();
}

bool is_reserved_word(std::string_view text) {
    if (std::ranges::find(kReserved, text) != kReserved.end()) return true;
    bool dtype = false;
#define X(enumerator, short_name, framework, bytes) dtype = dtype || text == (short_name);
    FLEXOR_DTYPES(X)
#undef X
    return dtype;
}

std::string spell_name(std::string_view name) { return is_identifier(name) ? std::string(name) : support::quote(name); }

// ---------------------------------------------------------------- cursor

const Token& Cursor::next() {
    const Token& token = peek();
    if (index_ + 1 < tokens_->size()) ++index_;
    return token;
}

bool Cursor::at(std::string_view punctuation) const {
    return peek().kind == TokenKind::kPunctuation && peek().text == punctuation;
}

bool Cursor::at_name(std::string_view name) const { return peek().kind == TokenKind::kName && peek().text == name; }

bool Cursor::accept(std::string_view punctuation) {
    if (!at(punctuation)) return false;
    next();
    return true;
}

void Cursor::skip_line() {
    while (!at_line_end()) next();
    if (peek().kind == TokenKind::kNewline) next();
}

Diagnostic Cursor::unexpected(std::string_view expected) const {
    const Token& token = peek();
    std::string found = quoted(token.text);
    if (token.kind == TokenKind::kNewline) found = "the end of the line";
    if (token.kind == TokenKind::kEnd) found = "the end of the text";
    return Diagnostic(DiagnosticId::kUnexpectedToken).source(where()).found(found).expected(std::string(expected));
}

Status Cursor::expect(std::string_view punctuation) {
    if (accept(punctuation)) return {};
    return unexpected(quoted(punctuation));
}

Status Cursor::expect_line_end() {
    if (peek().kind == TokenKind::kEnd) return {};
    if (peek().kind != TokenKind::kNewline) return unexpected("the end of the line");
    next();
    return {};
}

Expected<std::string> Cursor::name(std::string_view what) {
    if (peek().kind == TokenKind::kName) return std::string(next().text);
    if (peek().kind == TokenKind::kString) return string(what);
    return unexpected(what);
}

Expected<std::string> Cursor::string(std::string_view what) {
    if (peek().kind != TokenKind::kString) return unexpected(what);
    std::optional<std::string> text = support::unquote(peek().text);
    if (!text) return Diagnostic(DiagnosticId::kBadLiteral).source(where()).found(std::string(peek().text));
    next();
    return *std::move(text);
}

Expected<std::int64_t> Cursor::integer(std::string_view what) {
    const std::size_t start = index_;
    std::string text = accept("-") ? "-" : "";
    if (peek().kind != TokenKind::kInt) {
        index_ = start;
        return unexpected(what);
    }
    text += peek().text;
    const auto value = support::int_from_text(text);
    if (!value) {
        return Diagnostic(DiagnosticId::kBadLiteral).source(where()).found(text).expected("an integer of 64 bits");
    }
    next();
    return *value;
}

Expected<double> Cursor::number(std::string_view what) {
    const std::size_t start = index_;
    const bool minus = accept("-");
    const Token& token = peek();
    const bool word = token.kind == TokenKind::kName && (token.text == "inf" || token.text == "nan");
    if (!word && token.kind != TokenKind::kInt && token.kind != TokenKind::kFloat) {
        index_ = start;
        return unexpected(what);
    }
    std::optional<double> value = support::double_from_text(token.text);
    if (!value) {
        return Diagnostic(DiagnosticId::kBadLiteral)
            .source(where())
            .found(std::string(token.text))
            .expected("a number within the range of double");
    }
    next();
    return minus ? -*value : *value;
}

// ---------------------------------------------------------------- dims

namespace {

class DimParser {
public:
    DimParser(Cursor& cursor, const SymbolLookup& symbols) : cursor_(cursor), symbols_(symbols) {}

    Expected<Dim> sum() {
        FLEXOR_TRY(enter());
        FLEXOR_ASSIGN(Dim left, product());
        while (cursor_.at("+") || cursor_.at("-")) {
            const bool minus = cursor_.next().text == "-";
            FLEXOR_ASSIGN(const Dim right, product());
            left = minus ? left - right : left + right;
            if (terms(left) > kMaxTerms) return too_large();
        }
        --depth_;
        return left;
    }

private:
    static std::size_t terms(const Dim& d) { return d.op() == types::DimOp::kAdd ? d.operands().size() : 1; }

    Diagnostic too_large() const {
        return Diagnostic(DiagnosticId::kBadLiteral)
            .source(cursor_.where())
            .found("a dim expression with more terms or nesting than " + std::to_string(kMaxTerms));
    }

    Status enter() {
        if (++depth_ > kMaxDepth) return too_large();
        return {};
    }

    Expected<Dim> product() {
        FLEXOR_ASSIGN(Dim left, factor());
        for (;;) {
            if (cursor_.accept("*")) {
                FLEXOR_ASSIGN(const Dim right, factor());
                if (terms(left) * terms(right) > kMaxTerms) return too_large();
                left = left * right;
            } else if (cursor_.accept("//")) {
                FLEXOR_ASSIGN(const Dim right, factor());
                left = Dim::floor_div(left, right);
            } else if (cursor_.accept("%")) {
                FLEXOR_ASSIGN(const Dim right, factor());
                left = Dim::mod(left, right);
            } else {
                return left;
            }
        }
    }

    Expected<Dim> factor() {
        const Token& token = cursor_.peek();
        if (cursor_.at("-")) {
            if (cursor_.peek(1).kind == TokenKind::kInt) {
                FLEXOR_ASSIGN(const std::int64_t value, cursor_.integer("an integer"));
                return Dim(value);
            }
            cursor_.next();
            FLEXOR_TRY(enter());
            FLEXOR_ASSIGN(const Dim inner, factor());
            --depth_;
            return -inner;
        }
        if (cursor_.accept("(")) {
            FLEXOR_ASSIGN(const Dim inner, sum());
            FLEXOR_TRY(cursor_.expect(")"));
            return inner;
        }
        if (token.kind == TokenKind::kInt) {
            FLEXOR_ASSIGN(const std::int64_t value, cursor_.integer("an integer"));
            return Dim(value);
        }
        if (token.kind != TokenKind::kName) return cursor_.unexpected("a dim: an integer, a symbol or an expression");
        const std::string name(token.text);
        const bool call = cursor_.peek(1).kind == TokenKind::kPunctuation && cursor_.peek(1).text == "(";
        if (call) return function(name);
        FLEXOR_ASSIGN(const types::SymbolId id, symbols_(name));
        cursor_.next();
        return Dim::symbol(id);
    }

    Expected<Dim> function(const std::string& name) {
        using Combine = Dim (*)(const Dim&, const Dim&);
        Combine combine = nullptr;
        if (name == "min") combine = Dim::min;
        if (name == "max") combine = Dim::max;
        if (name == "mod") combine = Dim::mod;
        if (name == "floor_div") combine = Dim::floor_div;
        if (name == "trunc_div") combine = Dim::trunc_div;
        if (name == "broadcast") combine = Dim::broadcast;
        if (combine == nullptr) return cursor_.unexpected("min, max, mod, floor_div, trunc_div or broadcast");
        cursor_.next();
        cursor_.next();
        FLEXOR_ASSIGN(Dim value, sum());
        do {
            FLEXOR_TRY(cursor_.expect(","));
            FLEXOR_ASSIGN(const Dim right, sum());
            value = combine(value, right);
        } while (cursor_.at(","));
        FLEXOR_TRY(cursor_.expect(")"));
        return value;
    }

    Cursor& cursor_;
    const SymbolLookup& symbols_;
    int depth_ = 0;
};

}  // namespace

Expected<Dim> parse_dim(Cursor& cursor, const SymbolLookup& symbols) { return DimParser(cursor, symbols).sum(); }

// ---------------------------------------------------------------- attributes

Expected<types::AttrValue> parse_attr_value(Cursor& cursor, const SymbolLookup& symbols, const ops::AttrSpec* spec) {
    using types::AttrValue;
    const Token& token = cursor.peek();
    if (cursor.accept("$")) {
        FLEXOR_ASSIGN(const std::int64_t index, cursor.integer("the number of a stack operand"));
        if (index < 0 || index > std::numeric_limits<std::int32_t>::max()) {
            return Diagnostic(DiagnosticId::kBadLiteral).source(cursor.where()).found("$" + std::to_string(index));
        }
        return AttrValue(types::OperandRef{static_cast<std::uint32_t>(index)});
    }
    if (cursor.accept("[")) {
        types::DimList list;
        while (!cursor.at("]")) {
            FLEXOR_ASSIGN(types::Dim item, parse_dim(cursor, symbols));
            list.push_back(std::move(item));
            if (list.size() > kMaxListItems) return cursor.unexpected("a shorter list");
            if (!cursor.accept(",")) break;
        }
        FLEXOR_TRY(cursor.expect("]"));
        return AttrValue(std::move(list));
    }
    if (token.kind == TokenKind::kString) {
        FLEXOR_ASSIGN(std::string text, cursor.string("a text"));
        return AttrValue(std::move(text));
    }
    const std::size_t number_at = cursor.at("-") ? 1 : 0;
    const Token& number = cursor.peek(number_at);
    const bool special = number.kind == TokenKind::kName && (number.text == "inf" || number.text == "nan");
    if (number.kind == TokenKind::kFloat || special) {
        FLEXOR_ASSIGN(const double value, cursor.number("a number"));
        return AttrValue(value);
    }
    if (token.kind == TokenKind::kName) {
        const bool operand_of_expression =
            cursor.peek(1).kind == TokenKind::kPunctuation && !cursor.peek(1).text.empty() &&
            std::string_view("+-*/%(").find(cursor.peek(1).text[0]) != std::string_view::npos;
        if (!operand_of_expression) {
            if (token.text == "true" || token.text == "false") return AttrValue(cursor.next().text == "true");
            if (token.text == "none" || token.text == "all") {
                cursor.next();
                return AttrValue();
            }
#define X(enumerator, short_name, framework, bytes) \
    if (token.text == (short_name)) {               \
        cursor.next();                              \
        return AttrValue(DType::enumerator);        \
    }
            FLEXOR_DTYPES(X)
#undef X
            if (spec != nullptr && spec->kind == types::AttrKind::kString) {
                return AttrValue(std::string(cursor.next().text));
            }
        }
    }
    FLEXOR_ASSIGN(types::Dim value, parse_dim(cursor, symbols));
    return AttrValue(std::move(value));
}

Expected<types::Attrs> parse_attrs(Cursor& cursor, const SymbolLookup& symbols, const ops::OpDef* definition) {
    types::Attrs attrs;
    while (!cursor.at_line_end() && !cursor.at("}")) {
        FLEXOR_ASSIGN(std::string name, cursor.name("an attribute: NAME=value"));
        FLEXOR_TRY(cursor.expect("="));
        if (attrs.find(name) != nullptr) {
            return Diagnostic(DiagnosticId::kDuplicateName).source(cursor.where()).found("attribute " + quoted(name));
        }
        const ops::AttrSpec* spec = nullptr;
        if (definition != nullptr) {
            const auto& specs = definition->attrs.value;
            const auto found = std::ranges::find(specs, name, &ops::AttrSpec::name);
            if (found != specs.end()) spec = &*found;
        }
        FLEXOR_ASSIGN(types::AttrValue value, parse_attr_value(cursor, symbols, spec));
        attrs.set(std::move(name), std::move(value));
        if (!cursor.accept(",") && !cursor.at_line_end() && !cursor.at("}")) {
            return cursor.unexpected("',' or the end of the line");
        }
    }
    return attrs;
}

std::string spell_attrs(const types::Attrs& attrs, const ops::OpDef* leave_out_defaults_of,
                        const std::function<std::string(types::SymbolId)>& name) {
    std::string out;
    for (const auto& [key, value] : attrs.items()) {
        if (leave_out_defaults_of != nullptr) {
            const auto& specs = leave_out_defaults_of->attrs.value;
            const auto spec = std::ranges::find(specs, key, &ops::AttrSpec::name);
            if (spec != specs.end() && spec->fallback == value) continue;
        }
        if (!out.empty()) out += ", ";
        out += spell_name(key) + "=" + types::to_string(value, name);
    }
    return out;
}

}  // namespace flexor::bytecode
