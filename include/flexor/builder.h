#pragma once
// Builder: writes a Module from C++.
//
//   flexor::Builder b;
//   const auto B = b.symbol("B"), S = b.symbol("S", 1, 4096);
//   auto f = b.function("main");
//   const auto x = f.input("x", flexor::DType::kF32, {B, S, 768});
//   f.output("out", f.op("reduce_sum", {f.op("relu", {f.op("add", {x, 1.0})})}, {{"axes", {-1}}, {"keepdim", false}}));
//   flexor::Expected<flexor::Module> module = b.build();
//
// Types are inferred while building: what the shape rule of an op refuses for certain is refused at the line that wrote
// it. The first refusal is kept: error() shows it at once, build() returns it, later calls do nothing harmful.
// A Builder and what it hands out belong to one thread at a time; each keeps the whole alive.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "flexor/error.h"
#include "flexor/export.h"
#include "flexor/module.h"
#include "flexor/tensor.h"

namespace flexor {

namespace bytecode {
struct FunctionState;
struct ModuleState;
struct BuilderAccess;
}  // namespace bytecode

class SymbolicInt;
class Operand;

// A value of a function under construction. A handle: copies mean the same value.
class FLEXOR_API Var {
public:
    Var() = default;
    bool valid() const { return state_ != nullptr; }
    std::string type() const;            // "f32[B, S, 768]", "int", "?" where nothing is known before the run
    std::optional<DType> dtype() const;  // of a tensor whose type is known
    int rank() const;                    // -1: not a tensor, or not known
    // The size of an axis; negative counts from the end. Known before the run where it is an expression over symbols,
    // else read at run time.
    SymbolicInt size(int axis, std::source_location where = std::source_location::current()) const;
    std::vector<SymbolicInt> shape() const;  // the rank must be known

private:
    friend struct bytecode::BuilderAccess;
    std::shared_ptr<bytecode::FunctionState> state_;
    std::uint32_t id_ = 0;
};

// An integer in a program: a constant, an expression over symbols, or a run-time value.
class FLEXOR_API SymbolicInt {
public:
    SymbolicInt(std::int64_t value = 0) : constant_(value) {}  // NOLINT: implicit on purpose
    SymbolicInt(int value) : constant_(value) {}               // NOLINT: implicit on purpose
    explicit SymbolicInt(const Var& value);                    // an integer of the program
    bool is_constant() const { return impl_ == nullptr; }
    bool is_known() const;  // a constant or an expression over symbols
    std::int64_t constant() const { return constant_; }
    std::string to_string() const;

    friend FLEXOR_API SymbolicInt operator+(const SymbolicInt& a, const SymbolicInt& b);
    friend FLEXOR_API SymbolicInt operator-(const SymbolicInt& a, const SymbolicInt& b);
    friend FLEXOR_API SymbolicInt operator*(const SymbolicInt& a, const SymbolicInt& b);
    friend FLEXOR_API SymbolicInt operator%(const SymbolicInt& a, const SymbolicInt& b);  // sign of b
    friend FLEXOR_API SymbolicInt floor_div(const SymbolicInt& a, const SymbolicInt& b);
    friend FLEXOR_API SymbolicInt min(const SymbolicInt& a, const SymbolicInt& b);
    friend FLEXOR_API SymbolicInt max(const SymbolicInt& a, const SymbolicInt& b);

private:
    friend struct bytecode::BuilderAccess;
    struct Impl;
    std::shared_ptr<const Impl> impl_;
    std::int64_t constant_ = 0;
};

struct InputDim {
    SymbolicInt size;
    bool is_frozen = false;
    InputDim(SymbolicInt s) : size(std::move(s)) {}  // NOLINT: implicit on purpose
    InputDim(int s) : size(s) {}                     // NOLINT: implicit on purpose
    InputDim(std::int64_t s) : size(s) {}            // NOLINT: implicit on purpose
};
// One compilation per value of this size.
inline InputDim frozen(SymbolicInt size) {
    InputDim dim(std::move(size));
    dim.is_frozen = true;
    return dim;
}

// What an op takes: a value, a scalar, none, or a list of values.
class FLEXOR_API Operand {
public:
    Operand(std::nullptr_t) {}                                        // NOLINT: none
    Operand(bool value) : value_(value) {}                            // NOLINT
    Operand(int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT
    Operand(std::int64_t value) : value_(value) {}                    // NOLINT
    Operand(double value) : value_(value) {}                          // NOLINT
    Operand(float value) : value_(static_cast<double>(value)) {}      // NOLINT
    Operand(const char* text) : value_(std::string(text)) {}          // NOLINT
    Operand(std::string text) : value_(std::move(text)) {}            // NOLINT
    Operand(SymbolicInt value) : value_(std::move(value)) {}          // NOLINT
    Operand(Var value) : value_(std::move(value)) {}                  // NOLINT
    Operand(std::vector<Var> list) : value_(std::move(list)) {}       // NOLINT

private:
    friend struct bytecode::BuilderAccess;
    std::variant<std::monostate, bool, std::int64_t, double, std::string, SymbolicInt, Var, std::vector<Var>> value_;
};

// A place in the code of a function that jumps lead to, and a cell that its basic blocks share. Handles of one function.
class FLEXOR_API Label {
public:
    Label() = default;

private:
    friend struct bytecode::BuilderAccess;
    [[maybe_unused]] const bytecode::FunctionState* function_ = nullptr;
    [[maybe_unused]] std::uint32_t id_ = 0;
};
class FLEXOR_API Variable {
public:
    Variable() = default;

private:
    friend struct bytecode::BuilderAccess;
    [[maybe_unused]] const bytecode::FunctionState* function_ = nullptr;
    [[maybe_unused]] std::uint32_t id_ = 0;
};

// The value of an attribute. Integers may be symbolic; an integer, a float or a list may be a value of the program.
class FLEXOR_API Attribute {
public:
    Attribute(std::nullptr_t) {}                                                                    // NOLINT: none
    Attribute(bool value) : value_(value) {}                                                        // NOLINT
    Attribute(int value) : value_(SymbolicInt(value)) {}                                            // NOLINT
    Attribute(std::int64_t value) : value_(SymbolicInt(value)) {}                                   // NOLINT
    Attribute(SymbolicInt value) : value_(std::move(value)) {}                                      // NOLINT
    Attribute(double value) : value_(value) {}                                                      // NOLINT
    Attribute(const char* text) : value_(std::string(text)) {}                                      // NOLINT
    Attribute(std::string text) : value_(std::move(text)) {}                                        // NOLINT
    Attribute(DType dtype) : value_(dtype) {}                                                       // NOLINT
    Attribute(std::initializer_list<SymbolicInt> list) : value_(std::vector<SymbolicInt>(list)) {}  // NOLINT
    Attribute(std::vector<SymbolicInt> list) : value_(std::move(list)) {}                           // NOLINT
    Attribute(Var value) : value_(std::move(value)) {}                                              // NOLINT

private:
    friend struct bytecode::BuilderAccess;
    std::variant<std::monostate, bool, SymbolicInt, double, std::string, DType, std::vector<SymbolicInt>, Var> value_;
};
using Attributes = std::vector<std::pair<std::string, Attribute>>;

// One function under construction. A handle: copies mean the same function.
class FLEXOR_API FunctionBuilder {
public:
    using Where = std::source_location;

    // Arguments, in order.
    Var input(std::string name, DType dtype, std::vector<InputDim> dims, bool optional = false,
              Where where = Where::current());
    // By the text form of a type: "f32[B, FROZEN S, 768]?", "any[...]", "int", "any". New symbols are declared.
    Var input(std::string name, std::string_view type, Where where = Where::current());
    // Refuses what no declaration takes as a size: an integer of another Builder, or one that only the run knows.
    void require_size(const SymbolicInt& size, Where where = Where::current());
    Var weight(std::string_view name, Where where = Where::current());
    Var constant(const Operand& value, Where where = Where::current());

    Var op(std::string_view name, std::vector<Operand> operands, Attributes attributes = {},
           Where where = Where::current());
    std::vector<Var> ops(std::string_view name, std::vector<Operand> operands, Attributes attributes = {},
                         Where where = Where::current());  // every result
    // Python arithmetic on scalars: "add", "true_div", "floor_div", "mod", "lt", "not", "to_int", ... (ScalarOperator).
    Var scalar(std::string_view operation, std::vector<Operand> operands, Where where = Where::current());
    Var frozen(const Var& tensor, int axis, Where where = Where::current());  // the tensor, its axis marked FROZEN
    Var item(const Var& tensor, Where where = Where::current());
    Var size(const Var& tensor, int axis, Where where = Where::current());  // as a value; Var::size gives an expression
    void require(const Operand& condition, std::string message, Where where = Where::current());

    Var list(std::vector<Operand> elements, Where where = Where::current());
    Var append(const Var& list, const Operand& element, Where where = Where::current());
    // `promise`: the type of an element that is not known from the list, in text form.
    Var get(const Var& list, const Operand& index, std::string_view promise = "any", Where where = Where::current());
    // States the type, in text form, of a value that nothing is known of: the result of an op on a list whose length only
    // the run knows. A value whose type is known keeps it.
    void promise(const Var& value, std::string_view type, Where where = Where::current());
    Var set(const Var& list, const Operand& index, const Operand& element, Where where = Where::current());
    Var length(const Var& list, Where where = Where::current());
    std::vector<Var> unpack(const Var& list, int count, Where where = Where::current());
    Var dict(std::vector<std::pair<std::string, Operand>> items, Where where = Where::current());
    Var dict_get(const Var& dict, std::string key, Where where = Where::current());

    // Calls a function of this Module, which may be this one; `results` counts where it has no outputs yet.
    std::vector<Var> call(std::string_view function, std::vector<Operand> arguments, int results = 1,
                          Where where = Where::current());
    // `promise`: the type of what the host gives, in text form; a '?' is a size that only the run knows.
    Var call_foreign(std::string hook, std::vector<Operand> arguments, std::string_view promise = "any",
                     Where where = Where::current());
    Var function_value(std::string name, Where where = Where::current());
    Var foreign_value(std::string name, Where where = Where::current());
    Var attribute_of(const Var& foreign, std::string name, Where where = Where::current());
    Var call_value(const Var& callee, std::vector<Operand> arguments, Where where = Where::current());

    // Both branches give the same number of values.
    std::vector<Var> if_else(const Operand& condition, const std::function<std::vector<Operand>()>& then,
                             const std::function<std::vector<Operand>()>& otherwise, Where where = Where::current());
    // As if_else on `value is none`.
    std::vector<Var> if_none(const Operand& value, const std::function<std::vector<Operand>()>& then,
                             const std::function<std::vector<Operand>()>& otherwise, Where where = Where::current());
    // while condition(carried): carried = body(carried). Returns the carried values after the loop. The functions may
    // be called more than once: a type that changes from one round to the next is widened and the loop written again.
    std::vector<Var> while_loop(std::vector<Operand> initial,
                                const std::function<Operand(std::span<const Var>)>& condition,
                                const std::function<std::vector<Operand>(std::span<const Var>)>& body,
                                Where where = Where::current());

    void output(std::string name, const Operand& value, Where where = Where::current());

    // Unstructured code, for front ends that read jumps. Such a function consists of basic blocks alone: place() begins
    // one, jump(), branch() or give() ends it. The first that is placed is the entry; the order of the others is free.
    // Arguments, weights and constants may be used everywhere, other values in the block that made them; what must
    // outlive it goes through a variable.
    Label label();
    void place(const Label& label, Where where = Where::current());
    void jump(const Label& target, Where where = Where::current());
    void branch(const Operand& condition, const Label& then, const Label& otherwise, Where where = Where::current());
    void branch_none(const Operand& value, const Label& then, const Label& otherwise, Where where = Where::current());
    void give(std::vector<Operand> results, Where where = Where::current());  // returns; as many from every block
    Variable variable(std::string name, Where where = Where::current());
    void store(const Variable& variable, const Operand& value, Where where = Where::current());
    // The value of a variable, which is unset then. It has the kind, dtype and rank of `like`, a value of any block:
    // every store that reaches here promises that. A handle without value: nothing is known.
    Var take(const Variable& variable, const Var& like, Where where = Where::current());

private:
    friend struct bytecode::BuilderAccess;
    friend class Builder;
    std::shared_ptr<bytecode::FunctionState> state_;
};

class FLEXOR_API Builder {
public:
    using Where = std::source_location;

    Builder();
    SymbolicInt symbol(std::string name, std::int64_t lo = 0, std::int64_t hi = kUnboundedDim,
                       Where where = Where::current());
    // Names a weight; functions reach it by FunctionBuilder::weight. The tensor is copied: the Module owns its weights.
    void weight(std::string name, const Tensor& tensor, Where where = Where::current());
    FunctionBuilder function(std::string name, Where where = Where::current());  // "main" is the entry
    void metadata(std::string key, std::string value);
    void numpy_promotion();  // the default is torch's

    // What follows comes from this line of another language, until clear_location().
    void set_location(std::string file, int line);
    void clear_location();

    const Diagnostic* error() const;  // the first refusal, or null
    Expected<Module> build();         // verified; the Builder may go on

private:
    friend struct bytecode::BuilderAccess;
    std::shared_ptr<bytecode::ModuleState> state_;
};

}  // namespace flexor
