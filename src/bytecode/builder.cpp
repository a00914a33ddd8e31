#include "flexor/builder.h"

#include <algorithm>

#include "bytecode/builder_access.h"
#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "bytecode/public_module.h"
#include "bytecode/verify.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor {

using bytecode::BuilderAccess;
using bytecode::Opcode;
using bytecode::ParamDecl;
using bytecode::ParamKind;
using bytecode::ScalarOperator;
using bytecode::Scribe;
using bytecode::Statement;
using bytecode::StaticType;
using bytecode::ValueId;
using types::Dim;
using Kind = StaticType::Kind;

namespace {

const StaticType* type_of(const Var& var) {
    if (!var.valid()) return nullptr;
    return &BuilderAccess::state(var)->values[BuilderAccess::id(var)].type;
}

// A handle that was made from no value; whatever takes it refuses it.
bool is_empty(const SymbolicInt& integer) {
    const auto* const impl = BuilderAccess::impl(integer);
    return impl != nullptr && impl->module == nullptr && !impl->value.valid();
}

// An operation on two integers: on expressions where both are known, else written into the program.
SymbolicInt combine(const SymbolicInt& a, const SymbolicInt& b, Dim (*known)(const Dim&, const Dim&),
                    ScalarOperator op) {
    if (is_empty(a) || is_empty(b)) return is_empty(a) ? a : b;
    const std::optional<Dim> left = BuilderAccess::dim(a);
    const std::optional<Dim> right = BuilderAccess::dim(b);
    const auto* const some = a.is_constant() ? BuilderAccess::impl(b) : BuilderAccess::impl(a);
    if (left && right) {
        if (!a.is_constant() && !b.is_constant() && BuilderAccess::impl(b)->module != some->module) {
            // Neither Builder has both integers.
            const auto here = std::source_location::current();
            for (const auto& [own, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
                bytecode::ModuleState& module = *BuilderAccess::impl(*own)->module;
                module.fail(bytecode::of_another_builder(*other), Scribe::line_of(module, here));
            }
            return a;
        }
        return BuilderAccess::known(some == nullptr ? nullptr : some->module, known(*left, *right));
    }
    const Var& run_time = left ? BuilderAccess::impl(b)->value : BuilderAccess::impl(a)->value;
    Scribe scribe(BuilderAccess::state(run_time), std::source_location::current());
    const std::vector<ValueId> operands = {scribe.value(a), scribe.value(b)};
    const StaticType both[] = {scribe.type(operands[0]), scribe.type(operands[1])};
    return SymbolicInt(scribe.var(
        scribe.simple(Opcode::kScalar, operands, bytecode::infer_scalar(op, both), static_cast<std::int32_t>(op))));
}

}  // namespace

// ---------------------------------------------------------------- Var, SymbolicInt

std::string Var::type() const {
    const StaticType* type = type_of(*this);
    if (type == nullptr) return "?";
    const auto module = state_->module.lock();
    return to_string(*type, [&](types::SymbolId id) { return module->env.name(id); });
}

std::optional<DType> Var::dtype() const {
    const StaticType* type = type_of(*this);
    if (type == nullptr || type->kind != Kind::kTensor) return std::nullopt;
    return type->tensor.dtype;
}

int Var::rank() const {
    const StaticType* type = type_of(*this);
    return type == nullptr || type->kind != Kind::kTensor ? -1 : type->tensor.rank();
}

namespace {

// The size of an axis as the type has it; nothing where no type is known, or there is no such axis, which is refused.
std::optional<Dim> size_in_type(Scribe& scribe, const Var& tensor, int axis) {
    const StaticType& type = *type_of(tensor);
    if (type.kind != Kind::kTensor) return std::nullopt;
    const int rank = type.tensor.rank();
    if (axis < -rank || axis >= rank) {
        scribe.fail(Diagnostic(DiagnosticId::kAxisOutOfRange)
                        .found("axis " + std::to_string(axis))
                        .expected("an axis of " + tensor.type()));
        return std::nullopt;
    }
    return scribe.module().env.simplify(type.tensor.sizes[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
}

Var read_size(Scribe& scribe, const Var& tensor, int axis, const std::optional<Dim>& dim) {
    StaticType type = dim ? StaticType::integer(*dim) : StaticType::of(Kind::kInt);
    return scribe.var(scribe.simple(Opcode::kGetDim, {scribe.value(tensor)}, std::move(type), axis));
}

}  // namespace

SymbolicInt Var::size(int axis, std::source_location where) const {
    if (!valid()) return {};
    Scribe scribe(state_, where);
    const std::optional<Dim> dim = size_in_type(scribe, *this, axis);
    if (dim && scribe.module().is_declared(*dim)) return BuilderAccess::known(scribe.module_ref(), *dim);
    return SymbolicInt(read_size(scribe, *this, axis, dim));
}

Var FunctionBuilder::size(const Var& tensor, int axis, Where where) {
    Scribe scribe(state_, where);
    if (!tensor.valid()) return scribe.var(scribe.value(tensor));
    return read_size(scribe, tensor, axis, size_in_type(scribe, tensor, axis));
}

std::vector<SymbolicInt> Var::shape() const {
    std::vector<SymbolicInt> out;
    if (valid() && rank() < 0) {
        Scribe(state_, std::source_location::current())
            .fail(Diagnostic(DiagnosticId::kWrongRank).found(type()).expected("a tensor of known rank"));
    }
    for (int axis = 0; axis < rank(); ++axis) out.push_back(size(axis));
    return out;
}

SymbolicInt::SymbolicInt(const Var& value) : impl_(std::make_shared<Impl>(Impl{nullptr, {}, value})) {
    const StaticType* type = type_of(value);
    // An integer whose value is known to be an expression over symbols is that expression.
    if (type == nullptr || !type->value) return;
    const auto module = BuilderAccess::state(value)->module.lock();
    if (module->is_declared(*type->value)) *this = BuilderAccess::known(module, *type->value);
}

bool SymbolicInt::is_known() const { return BuilderAccess::dim(*this).has_value(); }

std::string SymbolicInt::to_string() const {
    if (impl_ == nullptr) return std::to_string(constant_);
    return impl_->module == nullptr ? "?" : impl_->module->spell(impl_->dim);
}

SymbolicInt operator+(const SymbolicInt& a, const SymbolicInt& b) {
    return combine(a, b, [](const Dim& x, const Dim& y) { return x + y; }, ScalarOperator::kAdd);
}
SymbolicInt operator-(const SymbolicInt& a, const SymbolicInt& b) {
    return combine(a, b, [](const Dim& x, const Dim& y) { return x - y; }, ScalarOperator::kSub);
}
SymbolicInt operator*(const SymbolicInt& a, const SymbolicInt& b) {
    return combine(a, b, [](const Dim& x, const Dim& y) { return x * y; }, ScalarOperator::kMul);
}
SymbolicInt operator%(const SymbolicInt& a, const SymbolicInt& b) {
    return combine(a, b, Dim::mod, ScalarOperator::kMod);
}
SymbolicInt floor_div(const SymbolicInt& a, const SymbolicInt& b) {
    return combine(a, b, Dim::floor_div, ScalarOperator::kFloorDiv);
}
SymbolicInt min(const SymbolicInt& a, const SymbolicInt& b) { return combine(a, b, Dim::min, ScalarOperator::kMin); }
SymbolicInt max(const SymbolicInt& a, const SymbolicInt& b) { return combine(a, b, Dim::max, ScalarOperator::kMax); }

// ---------------------------------------------------------------- arguments, weights, constants

namespace {

Var add_input(Scribe& scribe, ParamDecl param) {
    bytecode::FunctionState& function = scribe.function();
    if (std::ranges::find(function.params, param.name, &ParamDecl::name) != function.params.end()) {
        scribe.fail(Diagnostic(DiagnosticId::kDuplicateName).found("argument '" + param.name + "'"));
    }
    bytecode::Leaf leaf{Opcode::kLoadLocal, {}, static_cast<std::int32_t>(function.params.size())};
    const ValueId id = scribe.add_value(bytecode::static_type(param), std::move(leaf));
    function.params.push_back(std::move(param));
    function.arguments.push_back(id);
    return scribe.var(id);
}

}  // namespace

Var FunctionBuilder::input(std::string name, DType dtype, std::vector<InputDim> dims, bool optional, Where where) {
    Scribe scribe(state_, where);
    ParamDecl param;
    param.name = std::move(name);
    param.kind = ParamKind::kTensor;
    param.dtype = dtype;
    param.optional = optional;
    for (const InputDim& dim : dims) {
        std::optional<Dim> size = scribe.declared_size(dim.size);
        if (size && param.dims.size() == kMaxRank) {
            scribe.fail(Diagnostic(DiagnosticId::kBadOperand).operand(param.name).expected("a rank of at most 12"));
            size.reset();
        }
        if (!size) continue;
        param.dims.push_back(*std::move(size));
        param.frozen.push_back(dim.is_frozen);
    }
    return add_input(scribe, std::move(param));
}

Var FunctionBuilder::input(std::string name, std::string_view type, Where where) {
    Scribe scribe(state_, where);
    ParamDecl param = scribe.parsed_type(type, Scribe::NewSizes::kDeclared, name);
    param.name = std::move(name);
    return add_input(scribe, std::move(param));
}

void FunctionBuilder::require_size(const SymbolicInt& size, Where where) {
    static_cast<void>(Scribe(state_, where).declared_size(size));
}

Var FunctionBuilder::weight(std::string_view name, Where where) {
    Scribe scribe(state_, where);
    const auto& weights = scribe.module().module.weights;
    const auto found = std::ranges::find(weights, name, &bytecode::Weight::name);
    if (found == weights.end()) {
        std::vector<std::string_view> names;
        for (const bytecode::Weight& weight : weights) names.push_back(weight.name);
        scribe.fail(Diagnostic(DiagnosticId::kUnknownName)
                        .found("weight '" + std::string(name) + "'")
                        .hint(support::near_miss_hint(name, names)));
        return scribe.var(scribe.add_value({}, bytecode::Leaf{Opcode::kLoadNone}));
    }
    bytecode::Leaf leaf{Opcode::kLoadWeight, {}, static_cast<std::int32_t>(found - weights.begin())};
    return scribe.var(scribe.add_value(bytecode::static_type(found->tensor), std::move(leaf)));
}

Var FunctionBuilder::constant(const Operand& value, Where where) {
    Scribe scribe(state_, where);
    return scribe.var(scribe.value(value));
}

// ---------------------------------------------------------------- ops

std::vector<Var> FunctionBuilder::ops(std::string_view name, std::vector<Operand> operands, Attributes attributes,
                                      Where where) {
    Scribe scribe(state_, where);
    const ops::OpDef* const op = ops::find_op(name);
    const bool list =
        op != nullptr && !op->operands.value.empty() && op->operands.value.back().kind == ops::OperandKind::kTensorList;
    std::vector<ValueId> values = list ? scribe.spread(operands) : scribe.values(operands);
    return scribe.vars(scribe.call_op(name, std::move(values), attributes));
}

Var FunctionBuilder::op(std::string_view name, std::vector<Operand> operands, Attributes attributes, Where where) {
    std::vector<Var> results = ops(name, std::move(operands), std::move(attributes), where);
    if (results.size() == 1) return results[0];
    Scribe scribe(state_, where);
    scribe.fail(Diagnostic(DiagnosticId::kWrongResultCount)
                    .op(std::string(name))
                    .found(std::to_string(results.size()) + " results")
                    .expected("1 result")
                    .hint("ops() gives every result"));
    return results.empty() ? scribe.var(scribe.constant(bytecode::None{})) : results[0];
}

Var FunctionBuilder::scalar(std::string_view operation, std::vector<Operand> operands, Where where) {
    Scribe scribe(state_, where);
    const std::optional<ScalarOperator> op = bytecode::scalar_operator_from_name(operation);
    std::vector<ValueId> values = scribe.values(operands);
    if (!op || values.size() != (bytecode::is_unary(*op) ? 1U : 2U)) {
        std::vector<std::string_view> names;
        for (int i = 0; i < bytecode::kScalarOperatorCount; ++i) {
            names.push_back(bytecode::scalar_operator_name(static_cast<ScalarOperator>(i)));
        }
        scribe.fail(Diagnostic(op ? DiagnosticId::kWrongOperandCount : DiagnosticId::kUnknownName)
                        .found("scalar operator '" + std::string(operation) + "' with " +
                               std::to_string(values.size()) + " operands")
                        .hint(support::near_miss_hint(operation, names)));
        return scribe.var(scribe.constant(std::int64_t{0}));
    }
    std::vector<StaticType> types;
    for (const ValueId value : values) types.push_back(scribe.type(value));
    return scribe.var(scribe.simple(Opcode::kScalar, std::move(values), bytecode::infer_scalar(*op, types),
                                    static_cast<std::int32_t>(*op)));
}

Var FunctionBuilder::frozen(const Var& tensor, int axis, Where where) {
    Scribe scribe(state_, where);
    const ValueId value = scribe.value(tensor);
    const StaticType type = scribe.type(value);
    if (type.kind == Kind::kTensor) {
        const int rank = type.tensor.rank();
        if (axis < -rank || axis >= rank) {
            scribe.fail(Diagnostic(DiagnosticId::kAxisOutOfRange).found("axis " + std::to_string(axis)));
            return tensor;
        }
        if (!scribe.module().is_declared(type.tensor.sizes[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)])) {
            scribe.fail(Diagnostic(DiagnosticId::kFrozenDataDependent)
                            .found("axis " + std::to_string(axis) + " of " + tensor.type()));
            return tensor;
        }
    }
    return scribe.var(scribe.simple(Opcode::kFrozen, {value}, type, axis));
}

Var FunctionBuilder::item(const Var& tensor, Where where) {
    Scribe scribe(state_, where);
    const ValueId value = scribe.value(tensor);
    StaticType type;
    if (scribe.type(value).kind == Kind::kTensor) {
        const DType dtype = scribe.type(value).tensor.dtype;
        type = StaticType::of(dtype == DType::kBool ? Kind::kBool : is_integer(dtype) ? Kind::kInt : Kind::kFloat);
    }
    return scribe.var(scribe.simple(Opcode::kItem, {value}, std::move(type)));
}

void FunctionBuilder::require(const Operand& condition, std::string message, Where where) {
    Scribe scribe(state_, where);
    Statement statement;
    statement.op = Opcode::kAssert;
    statement.operands = {scribe.value(condition)};
    statement.name = std::move(message);
    scribe.add(std::move(statement));
}

// ---------------------------------------------------------------- lists and dicts

Var FunctionBuilder::list(std::vector<Operand> elements, Where where) {
    Scribe scribe(state_, where);
    std::vector<ValueId> items = scribe.values(elements);
    StaticType type = StaticType::of(Kind::kList);
    for (const ValueId item : items) type.items.push_back(scribe.type(item));
    const auto count = static_cast<std::int32_t>(items.size());
    return scribe.var(scribe.simple(Opcode::kBuildList, std::move(items), std::move(type), count));
}

Var FunctionBuilder::append(const Var& list, const Operand& element, Where where) {
    Scribe scribe(state_, where);
    const ValueId base = scribe.value(list);
    const ValueId item = scribe.value(element);
    StaticType type = scribe.type(base);
    if (type.kind == Kind::kList) type.items.push_back(scribe.type(item));
    return scribe.var(scribe.simple(Opcode::kListAppend, {base, item}, std::move(type)));
}

namespace {

// The element of a list whose length and position are known.
const StaticType* known_item(const StaticType& list, const StaticType& index) {
    if (list.kind != Kind::kList || !index.value || !index.value->is_constant()) return nullptr;
    const std::int64_t size = std::ssize(list.items);
    const std::int64_t at = index.value->constant() + (index.value->constant() < 0 ? size : 0);
    return at >= 0 && at < size ? &list.items[static_cast<std::size_t>(at)] : nullptr;
}

}  // namespace

Var FunctionBuilder::get(const Var& list, const Operand& index, std::string_view promise, Where where) {
    Scribe scribe(state_, where);
    const ValueId base = scribe.value(list);
    const ValueId at = scribe.value(index);
    const StaticType* item = known_item(scribe.type(base), scribe.type(at));
    StaticType type = item != nullptr
                          ? *item
                          : bytecode::static_type(scribe.parsed_type(promise, Scribe::NewSizes::kOfTheRun, "promise"));
    return scribe.var(scribe.simple(Opcode::kListGet, {base, at}, std::move(type)));
}

void FunctionBuilder::promise(const Var& value, std::string_view type, Where where) {
    Scribe scribe(state_, where);
    const ValueId id = scribe.value(value);
    StaticType stated = bytecode::static_type(scribe.parsed_type(type, Scribe::NewSizes::kOfTheRun, "promise"));
    if (scribe.type(id).kind == Kind::kUnknown) scribe.promise(id, std::move(stated));
}

Var FunctionBuilder::set(const Var& list, const Operand& index, const Operand& element, Where where) {
    Scribe scribe(state_, where);
    const ValueId base = scribe.value(list);
    const ValueId at = scribe.value(index);
    const ValueId item = scribe.value(element);
    StaticType type;
    if (const StaticType* old = known_item(scribe.type(base), scribe.type(at))) {
        const std::ptrdiff_t place = old - scribe.type(base).items.data();
        type = scribe.type(base);
        type.items[static_cast<std::size_t>(place)] = scribe.type(item);
    }
    return scribe.var(scribe.simple(Opcode::kListSet, {base, at, item}, std::move(type)));
}

Var FunctionBuilder::length(const Var& list, Where where) {
    Scribe scribe(state_, where);
    const ValueId base = scribe.value(list);
    const StaticType& type = scribe.type(base);
    StaticType result =
        type.kind == Kind::kList ? StaticType::integer(std::ssize(type.items)) : StaticType::of(Kind::kInt);
    return scribe.var(scribe.simple(Opcode::kListLength, {base}, std::move(result)));
}

std::vector<Var> FunctionBuilder::unpack(const Var& list, int count, Where where) {
    Scribe scribe(state_, where);
    Statement statement;
    statement.op = Opcode::kUnpack;
    statement.operands = {scribe.value(list)};
    const StaticType type = scribe.type(statement.operands[0]);
    const bool known = type.kind == Kind::kList;
    if (count < 0 || (known && std::ssize(type.items) != count)) {
        scribe.fail(
            Diagnostic(DiagnosticId::kBadOperand).found(list.type()).expected("a list of " + std::to_string(count)));
        count = std::max(count, 0);
    }
    statement.a = count;
    for (int i = 0; i < count; ++i) {
        const bool has = known && i < std::ssize(type.items);
        statement.results.push_back(scribe.add_value(has ? type.items[static_cast<std::size_t>(i)] : StaticType{}));
    }
    return scribe.vars(scribe.add(std::move(statement)).results);
}

Var FunctionBuilder::dict(std::vector<std::pair<std::string, Operand>> items, Where where) {
    Scribe scribe(state_, where);
    std::vector<ValueId> values;
    for (const auto& [key, item] : items) {
        values.push_back(scribe.constant(key));
        values.push_back(scribe.value(item));
    }
    return scribe.var(scribe.simple(Opcode::kBuildDict, std::move(values), StaticType::of(Kind::kDict),
                                    static_cast<std::int32_t>(items.size())));
}

Var FunctionBuilder::dict_get(const Var& dict, std::string key, Where where) {
    Scribe scribe(state_, where);
    return scribe.var(scribe.simple(Opcode::kDictGet, {scribe.value(dict)}, {}, 0, std::move(key)));
}

void FunctionBuilder::output(std::string name, const Operand& value, Where where) {
    Scribe scribe(state_, where);
    bytecode::FunctionState& function = scribe.function();
    if (function.open.size() != 1 || function.is_unstructured()) {
        scribe.fail(
            Diagnostic(DiagnosticId::kBadOperand)
                .operand(name)
                .found("an output inside a branch, loop or basic block")
                .hint("return the value from the branch and declare it as an output after it; a block gives its "
                      "results"));
        return;
    }
    function.body.results.push_back(scribe.value(value));
    function.output_names.push_back(std::move(name));
}

// ---------------------------------------------------------------- Builder

Builder::Builder() : state_(std::make_shared<bytecode::ModuleState>()) {}

SymbolicInt Builder::symbol(std::string name, std::int64_t lo, std::int64_t hi, Where where) {
    const bytecode::Line line = Scribe::line_of(*state_, where);
    const types::Range range{lo, std::min(hi, types::kDimInfinity)};
    if (!bytecode::is_identifier(name) || bytecode::is_reserved_word(name)) {
        state_->fail(Diagnostic(DiagnosticId::kUnexpectedToken)
                         .found("the symbol name " + support::quote(name))
                         .expected("an identifier that is not reserved"),
                     line);
    }
    if (std::ranges::find(state_->module.symbols, name, &bytecode::SymbolDecl::name) != state_->module.symbols.end()) {
        state_->fail(Diagnostic(DiagnosticId::kDuplicateName).found("symbol '" + name + "'"), line);
    }
    if (lo < 0 || range.hi < lo) {
        state_->fail(Diagnostic(DiagnosticId::kBadSymbolRange)
                         .operand(name)
                         .found(std::to_string(lo) + ".." + std::to_string(hi)),
                     line);
        return 0;
    }
    return BuilderAccess::known(state_, Dim::symbol(state_->add_symbol(std::move(name), range)));
}

void Builder::weight(std::string name, const Tensor& tensor, Where where) {
    const bytecode::Line line = Scribe::line_of(*state_, where);
    auto& weights = state_->module.weights;
    if (std::ranges::find(weights, name, &bytecode::Weight::name) != weights.end()) {
        return state_->fail(Diagnostic(DiagnosticId::kDuplicateName).found("weight '" + name + "'"), line);
    }
    if (!tensor.defined() || tensor.device().kind != DeviceKind::kCpu) {
        return state_->fail(Diagnostic(DiagnosticId::kBadOperand).operand(name).expected("a tensor in host memory"),
                            line);
    }
    // What the caller does to the tensor later must not reach the Module, nor the packed forms of its weights.
    Tensor own = tensor.clone();
    if (!own.defined()) return state_->fail(Diagnostic(DiagnosticId::kOutOfMemory).operand(name), line);
    weights.push_back({std::move(name), std::move(own)});
}

FunctionBuilder Builder::function(std::string name, Where where) {
    const bytecode::Line line = Scribe::line_of(*state_, where);
    if (state_->find_function(name) != nullptr) {
        state_->fail(Diagnostic(DiagnosticId::kDuplicateName).found("function '" + name + "'"), line);
    }
    state_->functions.push_back(std::make_unique<bytecode::FunctionState>());
    bytecode::FunctionState* const function = state_->functions.back().get();
    function->module = state_;
    function->name = std::move(name);
    function->line = line;
    function->open = {&function->body};
    FunctionBuilder out;
    out.state_ = std::shared_ptr<bytecode::FunctionState>(state_, function);
    return out;
}

void Builder::metadata(std::string key, std::string value) {
    state_->module.metadata[std::move(key)] = std::move(value);
}

void Builder::numpy_promotion() { state_->module.promotion = types::Promotion::kNumpy; }

void Builder::set_location(std::string file, int line) { state_->location = bytecode::Line{std::move(file), line}; }

void Builder::clear_location() { state_->location.reset(); }

const Diagnostic* Builder::error() const { return state_->error ? &*state_->error : nullptr; }

Expected<Module> Builder::build() {
    if (state_->error) return Diagnostic(*state_->error);
    bytecode::Module module = state_->module;
    for (const auto& function : state_->functions) {
        if (std::optional<Diagnostic> refusal = bytecode::unfinished(*function)) return *std::move(refusal);
        module.functions.push_back(bytecode::emit_function(*state_, *function, module));
    }
    FLEXOR_ASSIGN(bytecode::ModuleRef verified, bytecode::verify(std::move(module)));
    return bytecode::public_module(std::move(verified));
}

}  // namespace flexor
