#include "support/diagnostic.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace flexor {
namespace support {
namespace {

constexpr auto kRows = std::to_array<DiagnosticRow>({
#define FLEXOR_DIAGNOSTIC(number, name, sentence) {DiagnosticId::k##name, #name, sentence},
#include "support/diagnostics.def"
#undef FLEXOR_DIAGNOSTIC
});

static_assert(std::ranges::is_sorted(kRows, std::ranges::less_equal{}, &DiagnosticRow::id) || kRows.size() < 2);
static_assert(std::ranges::adjacent_find(kRows, std::ranges::equal_to{}, &DiagnosticRow::id) == kRows.end());

const DiagnosticRow& row_of(DiagnosticId id) {
    const auto row = std::ranges::lower_bound(kRows, id, {}, &DiagnosticRow::id);
    FLEXOR_CHECK(row != kRows.end() && row->id == id);
    return *row;
}

void append(std::string& out, int depth, std::string_view label, std::string_view text) {
    if (text.empty()) return;
    out.append("\n").append(static_cast<std::size_t>(2 * depth), ' ').append(label).append(text);
}

std::string text_of(const Where& where) {
    std::string out;
    const auto part = [&out](std::string_view label, std::string_view text) {
        if (text.empty()) return;
        if (!out.empty()) out += ", ";
        out.append(label).append(text);
    };
    part("", where.source);
    part("function ", where.function);
    if (where.pc >= 0) part("pc ", std::to_string(where.pc));
    part("op ", where.op);
    part("operand ", where.operand);
    part("constraint ", where.constraint);
    return out;
}

struct Hint {
    DiagnosticId id;
    std::string_view text;
};
constexpr auto kHints = std::to_array<Hint>({
#define FLEXOR_HINT(name, text) {DiagnosticId::k##name, text},
#include "support/hints.def"
#undef FLEXOR_HINT
});

// What is told of a refusal that has no hint of its own.
std::string general_hint(const Diagnostic& diagnostic) {
    constexpr std::string_view kOp = "%op";
    const auto row = std::ranges::find(kHints, diagnostic.id(), &Hint::id);
    if (row == kHints.end()) return {};
    std::string text(row->text);
    const std::size_t place = text.find(kOp);
    if (place == std::string::npos) return text;
    if (diagnostic.where().op.empty()) return {};
    return text.replace(place, kOp.size(), diagnostic.where().op);
}

void print(std::string& out, const Diagnostic& diagnostic, int depth) {
    out.append(diagnostic.code()).append(" ").append(diagnostic.sentence());
    append(out, depth + 1, "at ", text_of(diagnostic.where()));
    append(out, depth + 1, "found ", diagnostic.found());
    append(out, depth + 1, "expected ", diagnostic.expected());
    const bool outermost = depth == 0;
    append(out, depth + 1,
           "hint: ", diagnostic.hint().empty() && outermost ? general_hint(diagnostic) : diagnostic.hint());
    for (const Diagnostic& inner : diagnostic.causes()) {
        out.append("\n").append(static_cast<std::size_t>(2 * (depth + 1)), ' ').append("because ");
        print(out, inner, depth + 1);
    }
}

}  // namespace

std::span<const DiagnosticRow> diagnostic_rows() { return kRows; }

std::string diagnostic_code(DiagnosticId id) {
    const std::string digits = std::to_string(static_cast<int>(id));
    std::string code = "E";
    code.append(4 - std::min<std::size_t>(4, digits.size()), '0');
    return code + digits;
}

std::string_view to_string(DiagnosticKind kind) {
    switch (kind) {
        case DiagnosticKind::kUserError: return "user error";
        case DiagnosticKind::kLimit: return "limit";
        case DiagnosticKind::kNotSupported: return "not supported";
        case DiagnosticKind::kBug: return "bug";
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace support

std::string Diagnostic::code() const { return support::diagnostic_code(id_); }

std::string_view Diagnostic::name() const { return support::row_of(id_).name; }

std::string_view Diagnostic::sentence() const { return support::row_of(id_).sentence; }

DiagnosticKind Diagnostic::kind() const {
    switch (static_cast<int>(id_) / 100) {
        case 6: return DiagnosticKind::kLimit;
        case 7: return DiagnosticKind::kNotSupported;
        case 9: return DiagnosticKind::kBug;
        default: return DiagnosticKind::kUserError;
    }
}

Diagnostic& Diagnostic::cause(Diagnostic inner) & {
    causes_.push_back(std::move(inner));
    return *this;
}

std::string Diagnostic::to_string() const {
    std::string out;
    support::print(out, *this, 0);
    return out;
}

namespace detail {

void no_value(const Diagnostic* why) {
    FLEXOR_FATAL("the value of an Expected that holds " + (why == nullptr ? "nothing" : why->to_string()));
}

void no_error() { FLEXOR_FATAL("the error of an Expected that holds a value"); }

}  // namespace detail

}  // namespace flexor
