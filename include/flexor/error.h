#pragma once

// How the library says no: Expected<T> holds a value or a Diagnostic. Nothing inside the library throws; the Python
// binding turns a Diagnostic into an exception of its kind.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "flexor/export.h"

namespace flexor {

// The four kinds are kept apart, because each asks for another act: mend the call, raise a limit or shrink the input,
// choose another way, report a bug.
enum class DiagnosticKind : std::uint8_t { kUserError, kLimit, kNotSupported, kBug };

// A stable number, written E0301. The enumerators stand in src/support/diagnostics.def; users compare code() or name().
enum class DiagnosticId : std::uint16_t;

// Where a diagnostic arose; every part may be absent.
struct Where {
    std::string source;      // "model.py:12", "attention.fasm:4"
    std::string function;    // name of the bytecode function
    std::int64_t pc = -1;    // instruction inside it
    std::string op;          // registry name of the op
    std::string operand;     // name of the operand, argument, symbol, option or section
    std::string constraint;  // "C2": the number of the constraint in the op's entry
};

// One refusal. `found` and `expected` carry symbolic and concrete shapes where both are known.
class FLEXOR_API Diagnostic {
public:
    explicit Diagnostic(DiagnosticId id) : id_(id) {}

    DiagnosticId id() const { return id_; }
    std::string code() const;           // "E0301"
    std::string_view name() const;      // "ShapeMismatch"
    std::string_view sentence() const;  // the sentence of diagnostics.def
    DiagnosticKind kind() const;

    const Where& where() const { return where_; }
    const std::string& found() const { return found_; }
    const std::string& expected() const { return expected_; }
    const std::string& hint() const { return hint_; }
    // What led here: the inner story of a fallback, the first of two errors.
    const std::vector<Diagnostic>& causes() const { return causes_; }

    // Each returns the diagnostic itself, so that a refusal is one expression:
    //   return Diagnostic(DiagnosticId::kShapeMismatch).op("add").operand("y").found("[3]").expected("[4]");
    Diagnostic& source(std::string text) & { return where_.source = std::move(text), *this; }
    Diagnostic& function(std::string text) & { return where_.function = std::move(text), *this; }
    Diagnostic& pc(std::int64_t value) & { return where_.pc = value, *this; }
    Diagnostic& op(std::string text) & { return where_.op = std::move(text), *this; }
    Diagnostic& operand(std::string text) & { return where_.operand = std::move(text), *this; }
    Diagnostic& constraint(std::string text) & { return where_.constraint = std::move(text), *this; }
    Diagnostic& found(std::string text) & { return found_ = std::move(text), *this; }
    Diagnostic& expected(std::string text) & { return expected_ = std::move(text), *this; }
    Diagnostic& hint(std::string text) & { return hint_ = std::move(text), *this; }
    Diagnostic& cause(Diagnostic inner) &;

    Diagnostic&& source(std::string text) && { return std::move(source(std::move(text))); }
    Diagnostic&& function(std::string text) && { return std::move(function(std::move(text))); }
    Diagnostic&& pc(std::int64_t value) && { return std::move(pc(value)); }
    Diagnostic&& op(std::string text) && { return std::move(op(std::move(text))); }
    Diagnostic&& operand(std::string text) && { return std::move(operand(std::move(text))); }
    Diagnostic&& constraint(std::string text) && { return std::move(constraint(std::move(text))); }
    Diagnostic&& found(std::string text) && { return std::move(found(std::move(text))); }
    Diagnostic&& expected(std::string text) && { return std::move(expected(std::move(text))); }
    Diagnostic&& hint(std::string text) && { return std::move(hint(std::move(text))); }
    Diagnostic&& cause(Diagnostic inner) && { return std::move(cause(std::move(inner))); }

    // One line for each part that is present: "E0301 ...", "  at ...", "  found ...", "  expected ...", "  hint: ...".
    std::string to_string() const;

private:
    DiagnosticId id_;
    Where where_;
    std::string found_;
    std::string expected_;
    std::string hint_;
    std::vector<Diagnostic> causes_;
};

// Gets the library's last words before it aborts: a law of its own that does not hold, or the absent side of an Expected
// that was asked for. Without a sink they go to stderr, and nothing else ever does.
FLEXOR_API void set_fatal_sink(void (*sink)(void* context, std::string_view text), void* context);

namespace detail {
// What asking for the absent side of an Expected ends in: a line on stderr, then abort.
[[noreturn]] FLEXOR_API void no_value(const Diagnostic* why);
[[noreturn]] FLEXOR_API void no_error();
}  // namespace detail

// A value or the reason why there is none. Move-only when T is. Asking for the absent side is an error of the program:
// it aborts, with a line on stderr.
template <typename T>
class [[nodiscard]] Expected {
public:
    Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Expected(Diagnostic diagnostic)
        : state_(std::in_place_index<1>, std::make_unique<Diagnostic>(std::move(diagnostic))) {}
    template <typename U>
        requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
                 !std::is_same_v<std::remove_cvref_t<U>, Diagnostic> &&
                 !std::is_same_v<std::remove_cvref_t<U>, Expected>)
    Expected(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T& value() & { return require_value(), *std::get_if<0>(&state_); }
    const T& value() const& { return require_value(), *std::get_if<0>(&state_); }
    T&& value() && { return require_value(), std::move(*std::get_if<0>(&state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Diagnostic& error() const& { return *require_error(); }
    Diagnostic& error() & { return *require_error(); }
    Diagnostic&& error() && { return std::move(*require_error()); }

private:
    void require_value() const {
        if (has_value()) return;
        const std::unique_ptr<Diagnostic>* why = std::get_if<1>(&state_);
        detail::no_value(why == nullptr ? nullptr : why->get());
    }
    Diagnostic* require_error() const {
        const std::unique_ptr<Diagnostic>* held = std::get_if<1>(&state_);
        if (held == nullptr || *held == nullptr) detail::no_error();
        return held->get();
    }
    std::variant<T, std::unique_ptr<Diagnostic>> state_;
};

template <>
class [[nodiscard]] Expected<void> {
public:
    Expected() = default;
    Expected(Diagnostic diagnostic) : error_(std::make_unique<Diagnostic>(std::move(diagnostic))) {}

    bool has_value() const { return error_ == nullptr; }
    explicit operator bool() const { return has_value(); }

    const Diagnostic& error() const& { return *require_error(); }
    Diagnostic& error() & { return *require_error(); }
    Diagnostic&& error() && { return std::move(*require_error()); }

private:
    Diagnostic* require_error() const {
        if (error_ == nullptr) detail::no_error();
        return error_.get();
    }
    std::unique_ptr<Diagnostic> error_;
};

// Success, or why not.
using Status = Expected<void>;

}  // namespace flexor
