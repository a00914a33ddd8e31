// Basic blocks, jumps and variables of the Builder.
#include "bytecode/builder_access.h"
#include "flexor/builder.h"
#include "support/check.h"

namespace flexor {

using bytecode::Block;
using bytecode::BuilderAccess;
using bytecode::Opcode;
using bytecode::Scribe;
using bytecode::Statement;
using bytecode::StaticType;
using bytecode::ValueId;
using Kind = StaticType::Kind;

namespace {

void refuse(Scribe& scribe, std::string found, std::string expected) {
    scribe.fail(Diagnostic(DiagnosticId::kBadOperand).found(std::move(found)).expected(std::move(expected)));
}

template <class Handle>
std::optional<std::uint32_t> id_of(Scribe& scribe, const Handle& handle) {
    const std::optional<std::uint32_t> id = BuilderAccess::id(handle, scribe.function());
    if (!id) refuse(scribe, "a handle of another function, or of none", "one of '" + scribe.function().name + "'");
    return id;
}

// Ends the open block; `results` stand on the stack then, and `op` takes them.
void end_block(Scribe& scribe, Opcode op, std::vector<ValueId> results, std::vector<std::uint32_t> targets) {
    bytecode::FunctionState& function = scribe.function();
    if (!function.placed || function.open.size() != 2) {
        return refuse(scribe, "a jump outside of a basic block, or inside a branch or loop", "place() before it");
    }
    Statement& block = function.body.statements.back();
    FLEXOR_CHECK(block.first.get() == function.open.back());
    block.op = op;
    block.line = scribe.line();
    block.targets = std::move(targets);
    block.first->results = std::move(results);
    function.open.pop_back();
    function.placed.reset();
}

void end_with_branch(Scribe& scribe, Opcode op, const Operand& condition, const Label& then, const Label& otherwise) {
    const std::optional<std::uint32_t> first = id_of(scribe, then);
    const std::optional<std::uint32_t> second = id_of(scribe, otherwise);
    if (first && second) end_block(scribe, op, {scribe.value(condition)}, {*first, *second});
}

// What holds of any value that a variable may have where it had `like` once.
StaticType loosened(bytecode::ModuleState& module, const StaticType& like) {
    if (like.kind == Kind::kList) return {};
    if (like.kind != Kind::kTensor) return StaticType::of(like.kind);
    std::vector<types::Dim> sizes;
    for (std::size_t i = 0; i < like.tensor.sizes.size(); ++i) sizes.push_back(module.fresh_dim());
    return StaticType::of(types::contiguous_type(like.tensor.dtype, std::move(sizes)));
}

}  // namespace

std::optional<Diagnostic> bytecode::unfinished(const FunctionState& function) {
    const auto refusal = [&](const char* what) {
        return Diagnostic(DiagnosticId::kBadOperand).function(function.name).found(what);
    };
    if (function.placed) return refusal("a basic block without end").expected("jump(), branch() or give()");
    std::vector<bool> is_placed(function.label_count, false);
    for (const Statement& block : function.body.statements) {
        if (function.is_unstructured()) is_placed[static_cast<std::size_t>(block.a)] = true;
    }
    for (const Statement& block : function.body.statements) {
        for (const std::uint32_t target : block.targets) {
            if (!is_placed[target]) return refusal("a jump to a label that is not placed").expected("place()");
        }
    }
    if (function.is_unstructured() && function.body.statements.empty()) return refusal("labels without code");
    return std::nullopt;
}

Label FunctionBuilder::label() { return BuilderAccess::handle<Label>(*state_, state_->label_count++); }

void FunctionBuilder::place(const Label& label, Where where) {
    Scribe scribe(state_, where);
    bytecode::FunctionState& function = scribe.function();
    const std::optional<std::uint32_t> id = id_of(scribe, label);
    if (!id) return;
    auto& blocks = function.body.statements;
    if (function.open.size() != 1 || (!blocks.empty() && blocks.back().kind != Statement::Kind::kBasicBlock)) {
        return refuse(scribe, "a label behind code that does not end in a jump", "a function of basic blocks alone");
    }
    for (const Statement& block : blocks) {
        if (block.a == static_cast<std::int32_t>(*id)) return refuse(scribe, "a label placed twice", "one place");
    }
    Statement statement;
    statement.kind = Statement::Kind::kBasicBlock;
    statement.a = static_cast<std::int32_t>(*id);
    statement.first = std::make_unique<Block>();
    statement.first->id = function.next_block++;
    Block* const block = statement.first.get();
    blocks.push_back(std::move(statement));
    function.open.push_back(block);
    function.placed = id;
}

void FunctionBuilder::jump(const Label& target, Where where) {
    Scribe scribe(state_, where);
    if (const auto id = id_of(scribe, target)) end_block(scribe, Opcode::kJump, {}, {*id});
}

void FunctionBuilder::branch(const Operand& condition, const Label& then, const Label& otherwise, Where where) {
    Scribe scribe(state_, where);
    end_with_branch(scribe, Opcode::kBranchIfFalse, condition, then, otherwise);
}

void FunctionBuilder::branch_none(const Operand& value, const Label& then, const Label& otherwise, Where where) {
    Scribe scribe(state_, where);
    end_with_branch(scribe, Opcode::kBranchIfNotNull, value, then, otherwise);
}

void FunctionBuilder::give(std::vector<Operand> results, Where where) {
    Scribe scribe(state_, where);
    auto& count = scribe.function().result_count;
    if (!count) count = results.size();
    if (*count != results.size()) {
        return scribe.fail(Diagnostic(DiagnosticId::kWrongResultCount)
                               .found(std::to_string(results.size()) + " results")
                               .expected(std::to_string(*count) + ", as another block of the function gives"));
    }
    end_block(scribe, Opcode::kReturn, scribe.values(results), {});
}

Variable FunctionBuilder::variable(std::string name, Where where) {
    Scribe scribe(state_, where);
    auto& variables = scribe.function().variables;
    variables.push_back(std::move(name));
    return BuilderAccess::handle<Variable>(*state_, static_cast<std::uint32_t>(variables.size() - 1));
}

void FunctionBuilder::store(const Variable& variable, const Operand& value, Where where) {
    Scribe scribe(state_, where);
    const auto id = id_of(scribe, variable);
    if (!id) return;
    Statement statement;
    statement.op = Opcode::kStoreLocal;
    statement.a = static_cast<std::int32_t>(*id);
    statement.operands = {scribe.value(value)};
    scribe.add(std::move(statement));
}

Var FunctionBuilder::take(const Variable& variable, const Var& like, Where where) {
    Scribe scribe(state_, where);
    const auto id = id_of(scribe, variable);
    if (!id) return scribe.var(scribe.constant(bytecode::None{}));
    StaticType type;
    if (like.valid()) {
        if (BuilderAccess::state(like) != state_) {
            refuse(scribe, "the type of a value of another function", "a value of '" + state_->name + "'");
        } else {
            type = loosened(scribe.module(), scribe.type(BuilderAccess::id(like)));
        }
    }
    const auto local = static_cast<std::int32_t>(*id);
    const ValueId value = scribe.simple(Opcode::kLoadLocal, {}, std::move(type), local);
    Statement clear;
    clear.op = Opcode::kDeleteLocal;
    clear.a = local;
    scribe.add(std::move(clear));
    return scribe.var(value);
}

}  // namespace flexor
