#include "vm/arguments.h"

#include "bytecode/text.h"
#include "support/diagnostic.h"

namespace flexor::vm {

using bytecode::Function;
using bytecode::Module;
using bytecode::ParamDecl;
using bytecode::ParamKind;

std::vector<types::SymbolId> SymbolValues::unbound(const types::Dim& dim) const {
    std::vector<types::SymbolId> symbols;
    dim.collect_symbols(symbols);
    std::erase_if(symbols, [&](types::SymbolId id) { return id < bound.size() && bound[id]; });
    return symbols;
}

std::optional<std::int64_t> SymbolValues::evaluate(const types::Dim& dim) const {
    if (dim.is_constant()) return dim.constant();
    if (!unbound(dim).empty()) return std::nullopt;
    const types::Evaluated result = dim.evaluate(values);
    if (result.status != types::EvalStatus::kOk) return std::nullopt;
    return result.value;
}

namespace {

// Arguments that a call must give.
std::size_t required_count(const Function& function) {
    std::size_t count = function.params.size();
    while (count > 0 && function.params[count - 1].optional) --count;
    return count;
}

Diagnostic wrong_count(const Function& function, std::size_t given) {
    const std::size_t least = required_count(function);
    const std::string most = std::to_string(function.params.size());
    return Diagnostic(DiagnosticId::kWrongArgumentCount)
        .function(function.name)
        .found(std::to_string(given) + (given == 1 ? " argument" : " arguments"))
        .expected(least == function.params.size() ? most : std::to_string(least) + " to " + most);
}

class ArgumentCheck {
public:
    ArgumentCheck(const Module& module, const Function& function, Device device)
        : module_(module), function_(function), device_(device) {
        symbols_.values.assign(module.symbols.size(), 0);
        symbols_.bound.assign(module.symbols.size(), false);
        for (const bytecode::SymbolDecl& symbol : module.symbols) symbols_.names.push_back(symbol.name);
    }

    Expected<SymbolValues> run(std::span<const Value> arguments) {
        const std::size_t count = function_.params.size();
        if (arguments.size() != count) return wrong_count(function_, arguments.size());
        // Plain symbols bind first, whatever the order; then expressions bind what they alone name.
        for (std::size_t i = 0; i < count; ++i) FLEXOR_TRY(check(function_.params[i], arguments[i]));
        for (bool bound = true; bound;) {
            bound = false;
            for (std::size_t i = 0; i < count; ++i) {
                FLEXOR_ASSIGN(const bool some, solve(function_.params[i], arguments[i]));
                bound = bound || some;
            }
        }
        for (std::size_t i = 0; i < count; ++i) FLEXOR_TRY(check_expressions(function_.params[i], arguments[i]));
        return std::move(symbols_);
    }

private:
    Diagnostic refuse(DiagnosticId id, const ParamDecl& param, std::string found) const {
        return Diagnostic(id)
            .function(function_.name)
            .operand(param.name)
            .found(std::move(found))
            .expected(bytecode::type_text(module_, param));
    }

    Expected<void> check(const ParamDecl& param, const Value& value) {
        if (value.is_unset() || value.is_none()) {
            if (param.optional || (param.kind == ParamKind::kAny && value.is_none())) return {};
            return refuse(DiagnosticId::kMissingArgument, param, "none");
        }
        if (value.is_tensor()) {
            if (!value.tensor().defined())
                return refuse(DiagnosticId::kMissingArgument, param, "a tensor without memory");
            if (value.tensor().device() != Device{} && value.tensor().device() != device_)
                return refuse(DiagnosticId::kDeviceMismatch, param,
                              value.describe() + " on a device where the call is not");
        }
        switch (param.kind) {
            case ParamKind::kAny: return {};
            case ParamKind::kInt:
                return value.is_int() || value.is_bool() ? Expected<void>() : wrong_kind(param, value);
            case ParamKind::kFloat: return value.is_scalar() ? Expected<void>() : wrong_kind(param, value);
            case ParamKind::kBool: return value.is_bool() ? Expected<void>() : wrong_kind(param, value);
            case ParamKind::kString: return value.is_string() ? Expected<void>() : wrong_kind(param, value);
            case ParamKind::kTensor: return value.is_tensor() ? check_tensor(param, value) : wrong_kind(param, value);
        }
        return {};
    }

    Diagnostic wrong_kind(const ParamDecl& param, const Value& value) const {
        return refuse(DiagnosticId::kValueKindMismatch, param, value.describe());
    }

    Expected<void> check_tensor(const ParamDecl& param, const Value& value) {
        const Tensor& tensor = value.tensor();
        if (!param.any_dtype && tensor.dtype() != param.dtype)
            return refuse(DiagnosticId::kArgumentDTypeMismatch, param, value.describe());
        if (param.any_rank) return {};
        if (tensor.rank() != static_cast<int>(param.dims.size()))
            return refuse(DiagnosticId::kArgumentRankMismatch, param, value.describe());
        for (int axis = 0; axis < tensor.rank(); ++axis) {
            const types::Dim& dim = param.dims[static_cast<std::size_t>(axis)];
            const std::int64_t size = tensor.size(axis);
            if (dim.is_constant()) {
                if (dim.constant() != size) return refuse(DiagnosticId::kArgumentSizeMismatch, param, value.describe());
            } else if (dim.is_symbol()) {
                const types::SymbolId id = dim.symbol_id();
                if (!symbols_.bound[id]) {
                    FLEXOR_TRY(bind(param, value, id, size));
                } else if (symbols_.values[id] != size) {
                    return refuse(DiagnosticId::kArgumentSizeMismatch, param, value.describe())
                        .hint(module_.symbols[id].name + " is " + std::to_string(symbols_.values[id]) +
                              " by an earlier argument");
                }
            }
        }
        return {};
    }

    Expected<void> bind(const ParamDecl& param, const Value& value, types::SymbolId id, std::int64_t number) {
        const bytecode::SymbolDecl& symbol = module_.symbols[id];
        if (number < symbol.range.lo || number > symbol.range.hi) {
            return refuse(DiagnosticId::kOutOfDeclaredRange, param,
                          value.describe() + ", " + symbol.name + " = " + std::to_string(number))
                .hint(symbol.name + " is declared in " + std::to_string(symbol.range.lo) + ".." +
                      (symbol.range.hi >= types::kDimInfinity ? "" : std::to_string(symbol.range.hi)));
        }
        symbols_.bound[id] = true;
        symbols_.values[id] = number;
        return {};
    }

    static bool has_expressions(const ParamDecl& param, const Value& value) {
        return param.kind == ParamKind::kTensor && !param.any_rank && value.is_tensor();
    }

    // Binds the symbols that expressions of the argument alone name, where they are linear in them. Whether there were
    // any.
    Expected<bool> solve(const ParamDecl& param, const Value& value) {
        bool bound = false;
        for (std::size_t axis = 0; has_expressions(param, value) && axis < param.dims.size(); ++axis) {
            const types::Dim& dim = param.dims[axis];
            if (dim.is_constant() || dim.is_symbol()) continue;
            const std::vector<types::SymbolId> unknown = symbols_.unbound(dim);
            const auto form = unknown.size() == 1 ? types::linear_in(dim, unknown[0]) : std::nullopt;
            if (!form) continue;
            const auto coefficient = symbols_.evaluate(form->coefficient);
            const auto rest = symbols_.evaluate(form->rest);
            const std::int64_t size = value.tensor().size(static_cast<int>(axis));
            std::int64_t scaled = 0;
            if (!coefficient || !rest || __builtin_sub_overflow(size, *rest, &scaled)) continue;
            if (*coefficient == 0 ? scaled != 0 : scaled % *coefficient != 0) {
                return refuse(DiagnosticId::kArgumentSizeMismatch, param, value.describe())
                    .hint(spell(dim) + " is " + std::to_string(size) + " for no integer " +
                          module_.symbols[unknown[0]].name);
            }
            if (*coefficient == 0) continue;  // any number would do
            FLEXOR_TRY(bind(param, value, unknown[0], scaled / *coefficient));
            bound = true;
        }
        return bound;
    }

    Expected<void> check_expressions(const ParamDecl& param, const Value& value) const {
        for (std::size_t axis = 0; has_expressions(param, value) && axis < param.dims.size(); ++axis) {
            const types::Dim& dim = param.dims[axis];
            if (dim.is_constant() || dim.is_symbol()) continue;
            const auto expected = symbols_.evaluate(dim);
            const std::int64_t size = value.tensor().size(static_cast<int>(axis));
            if (expected && *expected != size) {
                return refuse(DiagnosticId::kArgumentSizeMismatch, param, value.describe())
                    .hint(spell(dim) + " is " + std::to_string(*expected));
            }
        }
        return {};
    }

    std::string spell(const types::Dim& dim) const {
        return dim.to_string([&](types::SymbolId id) { return module_.symbols[id].name; });
    }

    const Module& module_;
    const Function& function_;
    Device device_;
    SymbolValues symbols_;
};

}  // namespace

Expected<std::vector<Value>> complete_arguments(const Function& function, std::span<const Value> arguments) {
    if (arguments.size() > function.params.size() || arguments.size() < required_count(function))
        return wrong_count(function, arguments.size());
    std::vector<Value> out(arguments.begin(), arguments.end());
    out.resize(function.params.size());
    return out;
}

Expected<SymbolValues> check_arguments(const Module& module, const Function& function, std::span<const Value> arguments,
                                       Device device) {
    return ArgumentCheck(module, function, device).run(arguments);
}

std::vector<std::uint32_t> number_parameters(const Function& function) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < function.params.size(); ++i) {
        const ParamKind kind = function.params[i].kind;
        if (kind == ParamKind::kInt || kind == ParamKind::kFloat) out.push_back(i);
    }
    return out;
}

std::span<const Value> as_declared(const Function& function, std::span<const std::uint32_t> numbers,
                                   std::span<const Value> arguments, std::vector<Value>& storage) {
    for (const std::uint32_t i : numbers) {
        if (i >= arguments.size()) break;
        const bool to_float = function.params[i].kind == ParamKind::kFloat;
        const Value& given = arguments[i];
        if (!given.is_bool() && !(to_float && given.is_int())) continue;
        if (storage.empty()) storage.assign(arguments.begin(), arguments.end());
        storage[i] = to_float ? Value(static_cast<double>(given.integer())) : Value(given.integer());
    }
    return storage.empty() ? arguments : std::span<const Value>(storage);
}

}  // namespace flexor::vm
