// Calls, branches and loops of the Builder.
#include <algorithm>

#include "bytecode/builder_access.h"
#include "flexor/builder.h"
#include "support/check.h"

namespace flexor {

using bytecode::Block;
using bytecode::BuilderAccess;
using bytecode::Leaf;
using bytecode::Opcode;
using bytecode::Scribe;
using bytecode::Statement;
using bytecode::StaticType;
using bytecode::ValueId;
using types::Dim;
using Kind = StaticType::Kind;

namespace {

// A type that both fit: sizes that differ become sizes that only the run knows. `loose` holds such sizes of earlier
// rounds, which fit everything.
StaticType join(bytecode::ModuleState& module, const StaticType& a, const StaticType& b,
                std::vector<Dim>* loose = nullptr) {
    if (a == b) return a;
    if (a.kind != b.kind) return {};
    if (a.kind == Kind::kTensor) {
        if (a.tensor.dtype != b.tensor.dtype || a.tensor.rank() != b.tensor.rank()) return {};
        std::vector<Dim> sizes;
        for (std::size_t i = 0; i < a.tensor.sizes.size(); ++i) {
            const Dim& size = a.tensor.sizes[i];
            const bool fits =
                size == b.tensor.sizes[i] || (loose != nullptr && std::ranges::find(*loose, size) != loose->end());
            sizes.push_back(fits ? size : module.fresh_dim());
            if (!fits && loose != nullptr) loose->push_back(sizes.back());
        }
        return StaticType::of(types::contiguous_type(a.tensor.dtype, std::move(sizes)));
    }
    if (a.kind == Kind::kList) return {};
    return StaticType::of(a.kind);  // scalars of unknown value
}

// Runs `write` with a new innermost block.
template <class Write>
std::unique_ptr<Block> write_block(Scribe& scribe, const Write& write) {
    bytecode::FunctionState& function = scribe.function();
    auto block = std::make_unique<Block>();
    block->id = function.next_block++;
    // Closed also when a host function that writes the block throws.
    struct Open {
        explicit Open(std::vector<Block*>& blocks, Block* block) : stack(blocks) { stack.push_back(block); }
        ~Open() { stack.pop_back(); }
        std::vector<Block*>& stack;
    } open(function.open, block.get());
    write(*block);
    return block;
}

std::vector<Var> two_sided(const std::shared_ptr<bytecode::FunctionState>& state, Statement::Kind kind,
                           const Operand& condition, const std::function<std::vector<Operand>()>& then,
                           const std::function<std::vector<Operand>()>& otherwise, const std::source_location& where) {
    Scribe scribe(state, where);
    Statement statement;
    statement.kind = kind;
    statement.operands = {scribe.value(condition)};
    statement.first = write_block(scribe, [&](Block& block) { block.results = scribe.values(then()); });
    statement.second = write_block(scribe, [&](Block& block) { block.results = scribe.values(otherwise()); });
    auto& first = statement.first->results;
    auto& second = statement.second->results;
    if (first.size() != second.size()) {
        scribe.fail(Diagnostic(DiagnosticId::kWrongResultCount)
                        .found(std::to_string(first.size()) + " and " + std::to_string(second.size()) + " values")
                        .expected("as many values from both branches"));
        first.resize(std::min(first.size(), second.size()));
        second.resize(first.size());
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
        statement.results.push_back(
            scribe.add_value(join(scribe.module(), scribe.type(first[i]), scribe.type(second[i]))));
    }
    return scribe.vars(scribe.add(std::move(statement)).results);
}

// Result types of a call: those of the function with the sizes of its parameters replaced by those of the arguments.
std::vector<StaticType> call_types(const Scribe& caller, const bytecode::FunctionState& callee,
                                   const std::vector<ValueId>& arguments) {
    std::vector<std::pair<Dim, Dim>> sizes;
    for (std::size_t p = 0; p < callee.params.size() && p < arguments.size(); ++p) {
        const auto& dims = callee.params[p].dims;
        const StaticType& type = caller.type(arguments[p]);
        if (type.kind != Kind::kTensor || type.tensor.sizes.size() != dims.size()) continue;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            if (dims[i].is_symbol()) sizes.emplace_back(dims[i], type.tensor.sizes[i]);
        }
    }
    std::vector<StaticType> out;
    for (const ValueId result : callee.body.results) {
        StaticType type = callee.values[result].type;
        bool bound = type.kind != Kind::kList;
        const auto replace = [&](Dim& dim) {
            dim = dim.substitute([&](types::SymbolId id) -> const Dim* {
                const auto found = std::ranges::find(sizes, Dim::symbol(id), &std::pair<Dim, Dim>::first);
                bound = bound && found != sizes.end();
                return found == sizes.end() ? nullptr : &found->second;
            });
        };
        for (Dim& size : type.tensor.sizes) replace(size);
        if (type.value) replace(*type.value);
        if (type.kind == Kind::kTensor) {
            type = StaticType::of(types::contiguous_type(type.tensor.dtype, std::move(type.tensor.sizes)));
        }
        out.push_back(bound ? std::move(type) : StaticType{});
    }
    return out;
}

}  // namespace

std::vector<Var> FunctionBuilder::call(std::string_view name, std::vector<Operand> arguments, int results,
                                       Where where) {
    Scribe scribe(state_, where);
    Statement statement;
    statement.op = Opcode::kCall;
    statement.name = name;
    statement.operands = scribe.values(arguments);
    const bytecode::FunctionState* const callee = scribe.module().find_function(name);
    if (callee == nullptr) {
        scribe.fail(Diagnostic(DiagnosticId::kUnknownName)
                        .found("function '" + std::string(name) + "'")
                        .hint("begin it with Builder::function before it is called"));
        return std::vector<Var>(static_cast<std::size_t>(std::max(results, 0)),
                                scribe.var(scribe.constant(bytecode::None{})));
    }
    if (callee != state_.get() && arguments.size() != callee->params.size()) {
        scribe.fail(Diagnostic(DiagnosticId::kWrongArgumentCount)
                        .operand(callee->name)
                        .found(std::to_string(arguments.size()) + " arguments")
                        .expected(std::to_string(callee->params.size()) + " arguments"));
    }
    std::vector<StaticType> types;
    if (!callee->body.results.empty()) types = call_types(scribe, *callee, statement.operands);
    if (types.empty()) types.resize(static_cast<std::size_t>(std::max(results, 0)));
    for (StaticType& type : types) statement.results.push_back(scribe.add_value(std::move(type)));
    return scribe.vars(scribe.add(std::move(statement)).results);
}

Var FunctionBuilder::call_foreign(std::string hook, std::vector<Operand> arguments, std::string_view promise,
                                  Where where) {
    Scribe scribe(state_, where);
    StaticType type = bytecode::static_type(scribe.parsed_type(promise, Scribe::NewSizes::kOfTheRun, hook));
    return scribe.var(
        scribe.simple(Opcode::kCallForeign, scribe.values(arguments), std::move(type), 0, std::move(hook)));
}

Var FunctionBuilder::function_value(std::string name, Where where) {
    Scribe scribe(state_, where);
    return scribe.var(scribe.add_value(StaticType::of(Kind::kFunction), Leaf{Opcode::kLoadFunction, std::move(name)}));
}

Var FunctionBuilder::foreign_value(std::string name, Where where) {
    Scribe scribe(state_, where);
    return scribe.var(scribe.add_value(StaticType::of(Kind::kForeign), Leaf{Opcode::kLoadForeign, std::move(name)}));
}

Var FunctionBuilder::attribute_of(const Var& foreign, std::string name, Where where) {
    Scribe scribe(state_, where);
    return scribe.var(scribe.simple(Opcode::kGetAttribute, {scribe.value(foreign)}, {}, 0, std::move(name)));
}

Var FunctionBuilder::call_value(const Var& callee, std::vector<Operand> arguments, Where where) {
    Scribe scribe(state_, where);
    std::vector<ValueId> operands = {scribe.value(callee)};
    for (const Operand& argument : arguments) operands.push_back(scribe.value(argument));
    return scribe.var(
        scribe.simple(Opcode::kCallValue, std::move(operands), {}, static_cast<std::int32_t>(arguments.size())));
}

std::vector<Var> FunctionBuilder::if_else(const Operand& condition, const std::function<std::vector<Operand>()>& then,
                                          const std::function<std::vector<Operand>()>& otherwise, Where where) {
    return two_sided(state_, Statement::Kind::kIf, condition, then, otherwise, where);
}

std::vector<Var> FunctionBuilder::if_none(const Operand& value, const std::function<std::vector<Operand>()>& then,
                                          const std::function<std::vector<Operand>()>& otherwise, Where where) {
    return two_sided(state_, Statement::Kind::kIfNone, value, then, otherwise, where);
}

std::vector<Var> FunctionBuilder::while_loop(std::vector<Operand> initial,
                                             const std::function<Operand(std::span<const Var>)>& condition,
                                             const std::function<std::vector<Operand>(std::span<const Var>)>& body,
                                             Where where) {
    constexpr int kRounds = 3;
    Scribe scribe(state_, where);
    Statement statement;
    statement.kind = Statement::Kind::kWhile;
    statement.operands = scribe.values(initial);
    std::vector<StaticType> types;
    for (const ValueId value : statement.operands) types.push_back(scribe.type(value));
    std::vector<Dim> loose;
    for (int round = 1;; ++round) {
        statement.carried.clear();
        for (const StaticType& type : types) statement.carried.push_back(scribe.add_value(type));
        const std::vector<Var> carried = scribe.vars(statement.carried);
        const auto move_to = [&](const Block& block) {
            for (const ValueId value : statement.carried) scribe.function().values[value].block = block.id;
        };
        statement.first = write_block(scribe, [&](Block& block) {
            move_to(block);
            block.results = {scribe.value(condition(carried))};
        });
        statement.second = write_block(scribe, [&](Block& block) {
            move_to(block);
            block.results = scribe.values(body(carried));
        });
        auto& results = statement.second->results;
        if (results.size() != types.size()) {
            scribe.fail(Diagnostic(DiagnosticId::kWrongResultCount)
                            .found(std::to_string(results.size()) + " values from the body of the loop")
                            .expected(std::to_string(types.size()) + " carried values"));
            results.resize(types.size(), statement.carried.empty() ? 0 : statement.carried[0]);
        }
        bool settled = true;
        for (std::size_t i = 0; i < types.size(); ++i) {
            if (types[i].kind == Kind::kUnknown) continue;
            const StaticType& next = scribe.type(results[i]);
            // What still changes after some rounds is not known, so the rounds end.
            StaticType joined = types[i] == next  ? types[i]
                                : round < kRounds ? join(scribe.module(), types[i], next, &loose)
                                                  : StaticType{};
            settled = settled && joined == types[i];
            types[i] = std::move(joined);
        }
        if (settled || scribe.module().error) break;
    }
    for (const StaticType& type : types) statement.results.push_back(scribe.add_value(type));
    return scribe.vars(scribe.add(std::move(statement)).results);
}

}  // namespace flexor
