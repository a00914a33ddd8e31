#include <algorithm>

#include "bytecode/builder_access.h"
#include "bytecode/opcodes.h"
#include "bytecode/type_text.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::bytecode {

using Kind = StaticType::Kind;
using types::Dim;

namespace {

constexpr const char* kNoValue = "a handle without value";

}  // namespace

SymbolicInt BuilderAccess::known(std::shared_ptr<ModuleState> module, Dim dim) {
    if (dim.is_constant()) return SymbolicInt(dim.constant());
    SymbolicInt out;
    out.impl_ = std::make_shared<SymbolicInt::Impl>(SymbolicInt::Impl{std::move(module), std::move(dim), {}});
    return out;
}

std::optional<Dim> BuilderAccess::dim(const SymbolicInt& value) {
    if (value.impl_ == nullptr) return Dim(value.constant_);
    if (value.impl_->value.valid()) return std::nullopt;
    return value.impl_->dim;
}

Diagnostic of_another_builder(const SymbolicInt& integer) {
    return Diagnostic(DiagnosticId::kUnknownName)
        .found("the integer " + integer.to_string() + " of another Builder")
        .expected("an integer of this Builder");
}

Line Scribe::line_of(const ModuleState& module, const std::source_location& where) {
    if (module.location) return *module.location;
    std::string_view file = where.file_name();
    file = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
    return {std::string(file), static_cast<std::int32_t>(where.line())};
}

Scribe::Scribe(std::shared_ptr<FunctionState> function, const std::source_location& where)
    : function_(std::move(function)), module_(function_->module.lock()) {
    FLEXOR_CHECK(module_ != nullptr);  // the handle that led here shares it
    line_ = line_of(*module_, where);
}

void Scribe::fail(Diagnostic diagnostic) {
    if (diagnostic.where().function.empty()) diagnostic.function(function_->name);
    module_->fail(std::move(diagnostic), line_);
}

ValueId Scribe::add_value(StaticType type, std::optional<Leaf> leaf) {
    function_->values.push_back({std::move(type), function_->open.back()->id, std::move(leaf)});
    return static_cast<ValueId>(function_->values.size() - 1);
}

ValueId Scribe::constant(Constant constant) {
    StaticType type = static_type(constant);
    Leaf leaf{Opcode::kLoadConst, std::move(constant)};
    if (std::holds_alternative<None>(leaf.constant)) leaf.op = Opcode::kLoadNone;
    return add_value(std::move(type), std::move(leaf));
}

ValueId Scribe::value(const Var& var) {
    if (BuilderAccess::state(var) != function_) {
        fail(Diagnostic(DiagnosticId::kUndefinedLocal)
                 .found(!var.valid()
                            ? kNoValue
                            : "a value of function '" + BuilderAccess::state(var)->name +
                                  (BuilderAccess::state(var)->module.lock() == module_ ? "'" : "' of another Builder"))
                 .expected("a value of function '" + function_->name + "'"));
        return constant(None{});
    }
    const ValueId id = BuilderAccess::id(var);
    const BuiltValue& known = function_->values[id];
    const bool in_scope = known.leaf || std::ranges::any_of(function_->open, [&](const Block* block) {
                              return block->id == known.block;
                          });
    if (in_scope) return id;
    fail(Diagnostic(DiagnosticId::kUndefinedLocal)
             .found("a value made inside a branch or loop that is over")
             .hint("return it from the branch, or carry it through the loop"));
    return constant(None{});
}

// Nothing: only the run knows the integer. An integer that this Builder does not have is refused, and gives 0.
std::optional<Dim> Scribe::dim(const SymbolicInt& integer) {
    const auto* const impl = BuilderAccess::impl(integer);
    if (impl == nullptr) return Dim(integer.constant());
    if (impl->value.valid()) return std::nullopt;
    if (impl->module == module_) return impl->dim;
    fail(impl->module == nullptr ? Diagnostic(DiagnosticId::kUndefinedLocal).found(kNoValue)
                                 : of_another_builder(integer));
    return Dim(0);
}

std::optional<Dim> Scribe::declared_size(const SymbolicInt& size) {
    std::optional<Dim> known = dim(size);
    if (known && !(known->is_constant() && known->constant() < 0)) return known;
    fail(Diagnostic(DiagnosticId::kBadOperand)
             .found("the size " + size.to_string())
             .expected("a constant or an expression over symbols"));
    return std::nullopt;
}

ValueId Scribe::value(const SymbolicInt& integer) {
    const std::optional<Dim> known = dim(integer);
    return known ? value(*known) : value(BuilderAccess::impl(integer)->value);
}

ValueId Scribe::arithmetic(ScalarOperator op, ValueId a, ValueId b) {
    const StaticType both[] = {type(a), type(b)};
    return simple(Opcode::kScalar, {a, b}, infer_scalar(op, both), static_cast<std::int32_t>(op));
}

// Sizes of which each is 1 or that of the others: a is b where it is 1.
ValueId Scribe::broadcast_value(std::span<const Dim> sizes) {
    ValueId out = value(sizes[0]);
    for (const Dim& size : sizes.subspan(1)) {
        const ValueId other = value(size);
        const ValueId above = arithmetic(ScalarOperator::kSub, out, constant(std::int64_t{1}));
        const ValueId below = arithmetic(ScalarOperator::kSub, constant(std::int64_t{1}), out);
        const ValueId distance = arithmetic(ScalarOperator::kMax, above, below);
        const ValueId is_other = arithmetic(ScalarOperator::kMin, distance, constant(std::int64_t{1}));
        const ValueId difference = arithmetic(ScalarOperator::kSub, out, other);
        out = arithmetic(ScalarOperator::kAdd, other, arithmetic(ScalarOperator::kMul, difference, is_other));
    }
    return out;
}

// Writes the expression; symbols are read from the argument that has them as a size, or solved for.
ValueId Scribe::value(const Dim& dim) {
    if (dim.is_constant()) return constant(dim.constant());
    if (dim.is_symbol()) {
        for (std::size_t p = 0; p < function_->params.size(); ++p) {
            const ParamDecl& param = function_->params[p];
            if (param.optional) continue;
            const auto found = std::ranges::find(param.dims, dim);
            if (found == param.dims.end()) continue;
            return simple(Opcode::kGetDim, {function_->arguments[p]}, StaticType::integer(dim),
                          static_cast<std::int32_t>(found - param.dims.begin()));
        }
        for (std::size_t p = 0; p < function_->params.size(); ++p) {
            const ParamDecl& param = function_->params[p];
            for (std::size_t axis = 0; axis < param.dims.size() && !param.optional; ++axis) {
                const auto form = types::linear_in(param.dims[axis], dim.symbol_id());
                if (!form || !form->coefficient.is_constant() || form->coefficient.is_constant(0)) continue;
                if (!form->rest.is_constant()) continue;
                const ValueId size = simple(Opcode::kGetDim, {function_->arguments[p]},
                                            StaticType::integer(param.dims[axis]), static_cast<std::int32_t>(axis));
                const ValueId scaled = arithmetic(ScalarOperator::kSub, size, constant(form->rest.constant()));
                return arithmetic(ScalarOperator::kFloorDiv, scaled, constant(form->coefficient.constant()));
            }
        }
        fail(Diagnostic(DiagnosticId::kUnknownName)
                 .found("symbol " + module_->spell(dim) + " as a value")
                 .expected("the size of an argument of function '" + function_->name + "'"));
        return constant(std::int64_t{0});
    }
    ScalarOperator op = ScalarOperator::kAdd;
    switch (dim.op()) {
        case types::DimOp::kAdd: break;
        case types::DimOp::kMul: op = ScalarOperator::kMul; break;
        case types::DimOp::kFloorDiv: op = ScalarOperator::kFloorDiv; break;
        case types::DimOp::kMod: op = ScalarOperator::kMod; break;
        case types::DimOp::kMin: op = ScalarOperator::kMin; break;
        case types::DimOp::kMax: op = ScalarOperator::kMax; break;
        case types::DimOp::kBroadcast: return broadcast_value(dim.operands());
        default:
            fail(Diagnostic(DiagnosticId::kBadOperand)
                     .found(module_->spell(dim) + " as a value")
                     .hint("read the size from the tensor that has it"));
            return constant(std::int64_t{0});
    }
    const std::span<const Dim> parts = dim.operands();
    ValueId out = value(parts[0]);
    for (const Dim& part : parts.subspan(1)) {
        out = arithmetic(op, out, value(part));
    }
    return out;
}

ValueId Scribe::value(const Operand& operand) {
    struct Visitor {
        Scribe& scribe;
        ValueId operator()(std::monostate) const { return scribe.constant(None{}); }
        ValueId operator()(bool v) const { return scribe.constant(v); }
        ValueId operator()(std::int64_t v) const { return scribe.constant(v); }
        ValueId operator()(double v) const { return scribe.constant(v); }
        ValueId operator()(const std::string& v) const { return scribe.constant(v); }
        ValueId operator()(const SymbolicInt& v) const { return scribe.value(v); }
        ValueId operator()(const Var& v) const { return scribe.value(v); }
        ValueId operator()(const std::vector<Var>& list) const {
            std::vector<ValueId> items;
            StaticType type = StaticType::of(Kind::kList);
            for (const Var& item : list) {
                items.push_back(scribe.value(item));
                type.items.push_back(scribe.type(items.back()));
            }
            const auto count = static_cast<std::int32_t>(items.size());
            return scribe.simple(Opcode::kBuildList, std::move(items), std::move(type), count);
        }
    };
    return std::visit(Visitor{*this}, BuilderAccess::value(operand));
}

std::vector<ValueId> Scribe::values(const std::vector<Operand>& operands) {
    std::vector<ValueId> out;
    for (const Operand& operand : operands) out.push_back(value(operand));
    return out;
}

std::vector<ValueId> Scribe::spread(const std::vector<Operand>& operands) {
    std::vector<ValueId> out;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const auto* list = std::get_if<std::vector<Var>>(&BuilderAccess::value(operands[i]));
        if (list != nullptr && i + 1 == operands.size() && !list->empty()) {
            for (const Var& item : *list) out.push_back(value(item));
        } else {
            out.push_back(value(operands[i]));
        }
    }
    return out;
}

Statement& Scribe::add(Statement statement) {
    if (function_->is_unstructured() && function_->open.size() == 1) {
        fail(
            Diagnostic(DiagnosticId::kBadOperand).found("code outside of a basic block").expected("place() before it"));
    }
    statement.line = line_;
    auto& statements = function_->open.back()->statements;
    statements.push_back(std::move(statement));
    return statements.back();
}

ValueId Scribe::simple(Opcode op, std::vector<ValueId> operands, StaticType type, std::int32_t a, std::string name) {
    Statement statement;
    statement.op = op;
    statement.a = a;
    statement.name = std::move(name);
    statement.operands = std::move(operands);
    const ValueId result = add_value(std::move(type));
    statement.results = {result};
    add(std::move(statement));
    return result;
}

ParamDecl Scribe::parsed_type(std::string_view text, NewSizes sizes, const std::string& operand) {
    ModuleState& module = *module_;
    const auto find = [&](const std::string& symbol) -> std::optional<types::SymbolId> {
        for (types::SymbolId id = 0; id < module.module_symbol.size(); ++id) {
            if (module.module_symbol[id] && module.env.name(id) == symbol) return id;
        }
        return std::nullopt;
    };
    const auto fresh = [&](std::string stem) {
        if (sizes == NewSizes::kOfTheRun) return module.fresh_symbol();
        while (find(stem)) stem += "_";
        return module.add_symbol(std::move(stem), {});
    };
    TypeSymbols symbols;
    symbols.named = [&](const std::string& symbol) -> Expected<types::SymbolId> {
        if (is_reserved_word(symbol)) {
            return Diagnostic(DiagnosticId::kUnexpectedToken).found("the reserved word '" + symbol + "'");
        }
        const auto known = find(symbol);
        return known ? *known : fresh(symbol);
    };
    symbols.fresh = fresh;
    ParamDecl param;
    const auto parse = [&]() -> Status {
        FLEXOR_ASSIGN(const std::vector<Token> tokens, tokenize(text, "type"));
        Cursor cursor(tokens, "type");
        FLEXOR_TRY(parse_param_type(cursor, symbols, &param));
        return cursor.expect_line_end();
    };
    if (Status status = parse(); !status) fail(std::move(status).error().operand(operand));
    return param;
}

// ---------------------------------------------------------------- ops

// The value of an attribute; what only the run knows becomes a further operand.
std::optional<types::AttrValue> Scribe::attribute(const Attribute& attribute, std::vector<ValueId>& operands) {
    struct Visitor {
        Scribe& scribe;
        std::vector<ValueId>& operands;
        types::AttrValue from_stack(ValueId id) const {
            operands.push_back(id);
            return types::OperandRef{static_cast<std::uint32_t>(operands.size() - 1)};
        }
        types::AttrValue operator()(std::monostate) const { return {}; }
        types::AttrValue operator()(bool v) const { return v; }
        types::AttrValue operator()(double v) const { return v; }
        types::AttrValue operator()(const std::string& v) const { return v; }
        types::AttrValue operator()(DType v) const { return v; }
        types::AttrValue operator()(const Var& v) const { return from_stack(scribe.value(v)); }
        types::AttrValue operator()(const SymbolicInt& v) const {
            if (std::optional<Dim> dim = scribe.dim(v)) return *dim;
            return from_stack(scribe.value(v));
        }
        types::AttrValue operator()(const std::vector<SymbolicInt>& list) const {
            types::DimList dims;
            for (const SymbolicInt& item : list) {
                if (std::optional<Dim> dim = scribe.dim(item)) dims.push_back(*dim);
            }
            if (dims.size() == list.size()) return dims;
            std::vector<ValueId> items;
            StaticType type = StaticType::of(Kind::kList);
            for (const SymbolicInt& item : list) {
                items.push_back(scribe.value(item));
                type.items.push_back(scribe.type(items.back()));
            }
            const auto count = static_cast<std::int32_t>(items.size());
            return from_stack(scribe.simple(Opcode::kBuildList, std::move(items), std::move(type), count));
        }
    };
    return std::visit(Visitor{*this, operands}, BuilderAccess::value(attribute));
}

std::vector<ValueId> Scribe::call_op(std::string_view name, std::vector<ValueId> operands,
                                     const Attributes& attributes) {
    CallSite site;
    site.op = name;
    const auto tensors = static_cast<std::int32_t>(operands.size());
    const auto refuse = [&](Diagnostic diagnostic) {
        fail(std::move(diagnostic.op(std::string(name))));
        return std::vector<ValueId>{add_value({})};
    };
    const ops::OpDef* const op = ops::find_op(name);
    if (op == nullptr) {
        const std::string_view nearest = ops::nearest_op_name(name);
        Diagnostic diagnostic(DiagnosticId::kUnknownOp);
        diagnostic.found("'" + std::string(name) + "'");
        if (!nearest.empty()) diagnostic.hint("did you mean '" + std::string(nearest) + "'?");
        return refuse(std::move(diagnostic));
    }
    const OperandBounds bounds = operand_bounds(*op);
    if (tensors < bounds.least || tensors > bounds.most) {
        return refuse(Diagnostic(DiagnosticId::kWrongOperandCount)
                          .found(std::to_string(tensors) + " operands")
                          .expected(std::to_string(bounds.least) + (bounds.most == bounds.least ? "" : " or more")));
    }
    for (const auto& [key, value] : attributes) {
        if (site.attrs.find(key) != nullptr) {
            return refuse(Diagnostic(DiagnosticId::kDuplicateName).found("attribute '" + key + "'"));
        }
        std::optional<types::AttrValue> converted = attribute(value, operands);
        site.attrs.set(key, *std::move(converted));
    }
    site.operand_count = static_cast<std::int32_t>(operands.size());
    Expected<types::Attrs> checked = ops::check_attrs(*op, site.attrs);
    if (!checked) return refuse(std::move(checked).error());
    site.attrs = *std::move(checked);
    if (ops::result_count(*op, site.attrs) < 0) {
        return refuse(Diagnostic(DiagnosticId::kBadAttribute)
                          .found("sizes that only the run knows")
                          .expected("a list: it decides how many results the op has"));
    }
    std::vector<StaticType> types;
    for (const ValueId operand : operands) types.push_back(type(operand));
    Expected<std::vector<StaticType>> results = infer_site(*op, site, types, module_->env, module_->module.promotion);
    if (!results) return refuse(std::move(results).error());
    Statement statement;
    statement.op = Opcode::kCallOp;
    statement.site = std::move(site);
    statement.operands = std::move(operands);
    for (StaticType& result : *results) statement.results.push_back(add_value(std::move(result)));
    return add(std::move(statement)).results;
}

}  // namespace flexor::bytecode
