#pragma once
// The inside of the public handles, and what the parts of the Builder share.
#include <source_location>
#include <span>

#include "bytecode/builder_state.h"
#include "flexor/builder.h"

namespace flexor {

struct SymbolicInt::Impl {
    std::shared_ptr<bytecode::ModuleState> module;
    types::Dim dim;  // over the symbols of ModuleState::env, where `value` is not valid
    Var value;       // an integer that only the run knows
};

namespace bytecode {

struct BuilderAccess {
    static const std::shared_ptr<FunctionState>& state(const Var& var) { return var.state_; }
    static ValueId id(const Var& var) { return var.id_; }
    static const std::shared_ptr<FunctionState>& state(const FunctionBuilder& f) { return f.state_; }
    static Var var(std::shared_ptr<FunctionState> state, ValueId id) {
        Var out;
        out.state_ = std::move(state);
        out.id_ = id;
        return out;
    }
    // Of Label or Variable; nothing where it is of another function.
    template <class Handle>
    static std::optional<std::uint32_t> id(const Handle& handle, const FunctionState& function) {
        if (handle.function_ != &function) return std::nullopt;
        return handle.id_;
    }
    template <class Handle>
    static Handle handle(const FunctionState& function, std::uint32_t id) {
        Handle out;
        out.function_ = &function;
        out.id_ = id;
        return out;
    }
    static const auto& value(const Operand& operand) { return operand.value_; }
    static const auto& value(const Attribute& attribute) { return attribute.value_; }
    static const SymbolicInt::Impl* impl(const SymbolicInt& value) { return value.impl_.get(); }
    static SymbolicInt known(std::shared_ptr<ModuleState> module, types::Dim dim);
    static std::optional<types::Dim> dim(const SymbolicInt& value);  // nothing: only the run knows
};

// The refusal of an integer that another Builder made.
Diagnostic of_another_builder(const SymbolicInt& integer);

// Writes statements into a function; one object per call of the public surface. `line` is the user's.
class Scribe {
public:
    Scribe(std::shared_ptr<FunctionState> function, const std::source_location& where);
    static Line line_of(const ModuleState& module, const std::source_location& where);

    ModuleState& module() { return *module_; }
    const std::shared_ptr<ModuleState>& module_ref() const { return module_; }
    FunctionState& function() { return *function_; }
    const Line& line() const { return line_; }
    void fail(Diagnostic diagnostic);

    Var var(ValueId id) const { return BuilderAccess::var(function_, id); }
    std::vector<Var> vars(const std::vector<ValueId>& ids) const {
        std::vector<Var> out;
        for (const ValueId id : ids) out.push_back(var(id));
        return out;
    }
    const StaticType& type(ValueId id) const { return function_->values[id].type; }
    void promise(ValueId id, StaticType type) { function_->values[id].type = std::move(type); }
    ValueId add_value(StaticType type, std::optional<Leaf> leaf = std::nullopt);
    ValueId constant(Constant constant);
    // A value of this function, in scope; refuses others and gives none in their place.
    ValueId value(const Var& var);
    std::optional<types::Dim> dim(const SymbolicInt& integer);
    // A size that a declaration takes; refuses others.
    std::optional<types::Dim> declared_size(const SymbolicInt& size);
    ValueId value(const SymbolicInt& integer);
    ValueId value(const Operand& operand);
    ValueId value(const types::Dim& dim);
    ValueId broadcast_value(std::span<const types::Dim> sizes);
    std::vector<ValueId> values(const std::vector<Operand>& operands);
    // As values, with list operands that stand last spread.
    std::vector<ValueId> spread(const std::vector<Operand>& operands);

    Statement& add(Statement statement);  // into the innermost open block
    ValueId simple(Opcode op, std::vector<ValueId> operands, StaticType type, std::int32_t a = 0,
                   std::string name = {});

    // A type in text form. Symbols that it names first, and those that a '?' stands for, are declared in the Module, or
    // are sizes that only the run knows. What cannot be read is refused, with `operand`, and gives a type of anything.
    enum class NewSizes : std::uint8_t { kDeclared, kOfTheRun };
    ParamDecl parsed_type(std::string_view text, NewSizes sizes, const std::string& operand);

    // An op call; the types of its results are inferred.
    std::vector<ValueId> call_op(std::string_view name, std::vector<ValueId> operands, const Attributes& attributes);

private:
    ValueId arithmetic(ScalarOperator op, ValueId a, ValueId b);
    std::optional<types::AttrValue> attribute(const Attribute& attribute, std::vector<ValueId>& operands);

    std::shared_ptr<FunctionState> function_;
    std::shared_ptr<ModuleState> module_;
    Line line_;
};

}  // namespace bytecode
}  // namespace flexor
