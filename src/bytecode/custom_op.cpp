// Ops that users register: a signature in the text form becomes the rules of a registry entry.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "bytecode/lexer.h"
#include "bytecode/type_text.h"
#include "flexor/op.h"
#include "ops/native.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor {

struct OpCall::Impl {
    const ops::ReferenceContext& context;
};

bool OpCall::flag(std::string_view attribute) const { return impl_.context.attrs.flag(attribute); }
std::int64_t OpCall::integer(std::string_view attribute) const {
    return impl_.context.attrs.integer(attribute).constant();
}
double OpCall::real(std::string_view attribute) const { return impl_.context.attrs.real(attribute); }
std::string_view OpCall::text(std::string_view attribute) const { return impl_.context.attrs.text(attribute); }
bool OpCall::stop_requested() const { return ops::stopped(impl_.context); }
void OpCall::parallel(void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context,
                      std::int64_t count, std::int64_t grain) const {
    ops::parallel(impl_.context, count, std::max<std::int64_t>(grain, 1),
                  [&](std::int64_t begin, std::int64_t end) { body(context, begin, end); });
}

namespace bytecode {
namespace {

using types::Dim;

// Rules of the registry are plain functions, so each op gets a set of them from a table.
constexpr std::size_t kMostCustomOps = 128;

struct CustomOp {
    flexor::OpDef op;
    std::vector<ParamDecl> operands, results;
    std::vector<std::string> symbols;
    std::vector<bool> attribute;  // by symbol: the value of an integer attribute
    // Views of these live in the entry.
    std::vector<std::string> texts;
};
std::array<std::atomic<const CustomOp*>, kMostCustomOps> custom_ops{};

Dim substitute(const Dim& dim, const std::vector<std::optional<Dim>>& bound) {
    return dim.substitute([&](types::SymbolId id) { return bound[id] ? &*bound[id] : nullptr; });
}

// Constraints of operand i: C(2i + 1) its rank, C(2i + 2) its sizes.
bool shape_of(const CustomOp& custom, ops::ShapeContext& context, std::vector<ops::ShapeResult>& results) {
    std::vector<std::optional<Dim>> bound(custom.symbols.size());
    for (std::size_t s = 0; s < bound.size(); ++s) {
        if (custom.attribute[s]) bound[s] = context.attrs().integer(custom.symbols[s]);
    }
    const auto each = [&](bool symbols_alone) {
        for (std::size_t i = 0; i < custom.operands.size(); ++i) {
            const ParamDecl& param = custom.operands[i];
            if (!context.args()[i].present || param.any_rank) continue;
            const std::vector<Dim>& sizes = context.type(i).sizes;
            if (sizes.size() != param.dims.size()) return context.fail(static_cast<int>(2 * i + 1));
            for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
                const Dim& dim = param.dims[axis];
                if (dim.is_symbol() != symbols_alone) continue;
                if (dim.is_symbol() && !bound[dim.symbol_id()])
                    bound[dim.symbol_id()] = sizes[axis];
                else if (!context.require_eq(sizes[axis], substitute(dim, bound), static_cast<int>(2 * i + 2)))
                    return false;
            }
        }
        return true;
    };
    if (!each(true) || !each(false)) return false;
    for (const ParamDecl& param : custom.results) {
        ops::ShapeResult& result = results.emplace_back();
        if (param.any_rank) {
            for (std::size_t i = 0; i < custom.operands.size(); ++i) {
                if (!custom.operands[i].any_rank) continue;
                result.sizes = context.type(i).sizes;
                break;
            }
        } else {
            for (const Dim& dim : param.dims) result.sizes.push_back(substitute(dim, bound));
        }
    }
    return true;
}

Expected<ops::DTypes> dtypes_of(const CustomOp& custom, std::span<const ops::ArgType> args) {
    ops::DTypes out;
    std::optional<DType> any;
    for (std::size_t i = 0; i < custom.operands.size(); ++i) {
        const ParamDecl& param = custom.operands[i];
        const DType given = args[i].present ? args[i].type.dtype : param.dtype;
        const DType wanted = param.any_dtype ? any.value_or(given) : param.dtype;
        if (args[i].present && given != wanted) {
            return Diagnostic(DiagnosticId::kDTypeMismatch)
                .op(custom.op.name)
                .operand(param.name)
                .found(std::string(dtype_name(given)))
                .expected(std::string(dtype_name(wanted)));
        }
        if (args[i].present && param.any_dtype) any = given;
        out.operands.push_back(given);
    }
    for (const ParamDecl& param : custom.results) out.results.push_back(param.any_dtype ? *any : param.dtype);
    return out;
}

Expected<void> run_custom(const CustomOp& custom, ops::ReferenceContext& context) {
    std::vector<Tensor> inputs(context.inputs.begin(), context.inputs.end());
    std::vector<Tensor> outputs(context.outputs.begin(), context.outputs.end());
    const auto no_memory = [&] { return Diagnostic(DiagnosticId::kOutOfMemory).op(custom.op.name); };
    for (Tensor& input : inputs) {
        if (!input.defined()) continue;
        input = input.contiguous();
        if (!input.defined()) return no_memory();
    }
    for (const Tensor& output : outputs) FLEXOR_CHECK(output.is_contiguous());
    const OpCall::Impl impl{context};
    auto done = custom.op.run(OpCall(impl, inputs, outputs));
    if (ops::stopped(context)) return ops::interrupted();
    return done;
}

template <std::size_t kSlot>
struct Rules {
    static const CustomOp& custom() { return *custom_ops[kSlot].load(std::memory_order_acquire); }
    static bool shape(ops::ShapeContext& context, std::vector<ops::ShapeResult>& results) {
        return shape_of(custom(), context, results);
    }
    static Expected<ops::DTypes> dtype(std::span<const ops::ArgType> args, const types::Attrs&, types::Promotion) {
        return dtypes_of(custom(), args);
    }
    static Expected<void> run(ops::ReferenceContext& context) { return run_custom(custom(), context); }
};
struct Row {
    ops::ShapeRule shape;
    ops::DTypeRule dtype;
    ops::Reference run;
};
template <std::size_t... kSlots>
constexpr std::array<Row, sizeof...(kSlots)> rows(std::index_sequence<kSlots...>) {
    return {{{Rules<kSlots>::shape, Rules<kSlots>::dtype, Rules<kSlots>::run}...}};
}
constexpr std::array<Row, kMostCustomOps> kRows = rows(std::make_index_sequence<kMostCustomOps>());

Diagnostic refuse(const std::string& what, std::string found, std::string expected) {
    return Diagnostic(DiagnosticId::kBadOption).operand(what).found(std::move(found)).expected(std::move(expected));
}

// "x: f32[B, N], scale: f32[N]? -> f32[B, N], i64[B]"
Expected<void> parse_signature(CustomOp& custom) {
    FLEXOR_ASSIGN(const std::vector<Token> tokens, tokenize(custom.op.signature, custom.op.name));
    Cursor cursor(tokens, custom.op.name);
    const auto symbol = [&](const std::string& name) -> types::SymbolId {
        for (std::size_t s = 0; s < custom.symbols.size(); ++s) {
            if (custom.symbols[s] == name) return static_cast<types::SymbolId>(s);
        }
        custom.symbols.push_back(name);
        return static_cast<types::SymbolId>(custom.symbols.size() - 1);
    };
    const TypeSymbols symbols{[&](const std::string& name) -> Expected<types::SymbolId> { return symbol(name); },
                              symbol};
    const auto type = [&](ParamDecl& param) -> Expected<void> {
        FLEXOR_TRY(parse_param_type(cursor, symbols, &param));
        for (const bool frozen : param.frozen) {
            if (frozen) return refuse(custom.op.name, "FROZEN in the signature", "sizes that may vary");
        }
        if (param.kind != ParamKind::kTensor) return refuse(custom.op.name, "a scalar in the signature", "tensors");
        return {};
    };
    while (!cursor.at("->")) {
        ParamDecl& param = custom.operands.emplace_back();
        FLEXOR_ASSIGN(param.name, cursor.name("an operand"));
        FLEXOR_TRY(cursor.expect(":"));
        FLEXOR_TRY(type(param));
        if (!cursor.accept(",")) break;
    }
    FLEXOR_TRY(cursor.expect("->"));
    do {
        FLEXOR_TRY(type(custom.results.emplace_back()));
    } while (cursor.accept(","));
    return cursor.expect_line_end();
}

// Every symbol has a value whenever the op is called.
Expected<void> check_symbols(CustomOp& custom) {
    custom.attribute.assign(custom.symbols.size(), false);
    std::vector<bool> bound(custom.symbols.size(), false);
    for (std::size_t s = 0; s < custom.symbols.size(); ++s) {
        for (const OpAttribute& attribute : custom.op.attributes) {
            if (attribute.name == custom.symbols[s] && attribute.kind == OpAttributeKind::kInt)
                custom.attribute[s] = bound[s] = true;
        }
    }
    bool any_dtype = false, any_rank = false;
    for (const ParamDecl& param : custom.operands) {
        if (param.optional) continue;
        any_dtype = any_dtype || param.any_dtype;
        any_rank = any_rank || param.any_rank;
        for (const Dim& dim : param.dims) {
            if (dim.is_symbol()) bound[dim.symbol_id()] = true;
        }
    }
    const auto check = [&](const ParamDecl& param) -> Expected<void> {
        std::vector<types::SymbolId> used;
        for (const Dim& dim : param.dims) dim.collect_symbols(used);
        for (const types::SymbolId id : used) {
            if (!bound[id])
                return refuse(custom.op.name, custom.symbols[id] + " has no value",
                              "a symbol that is a size of an operand which is not "
                              "optional, or an integer attribute");
        }
        return {};
    };
    for (const ParamDecl& param : custom.operands) {
        ParamDecl expressions = param;
        std::erase_if(expressions.dims, [](const Dim& dim) { return dim.is_symbol(); });
        FLEXOR_TRY(check(expressions));
    }
    for (const ParamDecl& param : custom.results) {
        FLEXOR_TRY(check(param));
        if (param.optional) return refuse(custom.op.name, "a result that may be none", "tensors");
        if ((param.any_dtype && !any_dtype) || (param.any_rank && !any_rank))
            return refuse(custom.op.name, "a result of any type",
                          "the same of an operand that is not optional, whose type it takes");
    }
    return {};
}

Expected<types::AttrValue> fallback_of(const std::string& op, const OpAttribute& attribute) {
    const std::string& text = attribute.fallback;
    if (text.empty()) return types::AttrValue();
    switch (attribute.kind) {
        case OpAttributeKind::kBool:
            if (text == "true" || text == "false") return types::AttrValue(text == "true");
            break;
        case OpAttributeKind::kInt:
            if (const auto value = support::int_from_text(text)) return types::AttrValue(Dim(*value));
            break;
        case OpAttributeKind::kFloat:
            if (const auto value = support::double_from_text(text)) return types::AttrValue(*value);
            break;
        case OpAttributeKind::kString: return types::AttrValue(text);
    }
    return refuse(op, "the default " + support::quote(text) + " of " + attribute.name, "a value of its kind");
}

types::AttrKind kind_of(OpAttributeKind kind) {
    switch (kind) {
        case OpAttributeKind::kBool: return types::AttrKind::kBool;
        case OpAttributeKind::kInt: return types::AttrKind::kInt;
        case OpAttributeKind::kFloat: return types::AttrKind::kFloat;
        case OpAttributeKind::kString: return types::AttrKind::kString;
    }
    FLEXOR_UNREACHABLE();
}

std::vector<ops::Sample> no_samples() { return {}; }

}  // namespace

Expected<void> register_custom_op(flexor::OpDef given) {
    auto custom = std::make_unique<CustomOp>();
    custom->op = std::move(given);
    const flexor::OpDef& op = custom->op;
    if (!is_identifier(op.name) || op.name.find('.') != std::string::npos)
        return refuse("name", support::quote(op.name), "letters, digits and '_'");
    if (op.run == nullptr) return refuse(op.name, "no run", "a function");
    FLEXOR_TRY(parse_signature(*custom));
    FLEXOR_TRY(check_symbols(*custom));

    std::vector<ops::OperandSpec> operands;
    std::vector<ops::Constraint> constraints;
    for (const ParamDecl& param : custom->operands)
        custom->texts.push_back(param.name + " is as declared: " + op.signature);
    for (std::size_t i = 0; i < custom->operands.size(); ++i) {
        const ParamDecl& param = custom->operands[i];
        operands.push_back(
            {param.name, param.optional ? ops::OperandKind::kOptionalTensor : ops::OperandKind::kTensor, false});
        constraints.push_back({custom->texts[i], DiagnosticId::kWrongRank, static_cast<int>(i)});
        constraints.push_back({custom->texts[i], DiagnosticId::kShapeMismatch, static_cast<int>(i)});
    }
    std::vector<ops::AttrSpec> attributes;
    for (const OpAttribute& attribute : op.attributes) {
        FLEXOR_ASSIGN(types::AttrValue fallback, fallback_of(op.name, attribute));
        attributes.push_back({attribute.name, kind_of(attribute.kind), std::move(fallback)});
    }

    static std::mutex mutex;
    static std::size_t count = 0;
    const std::lock_guard lock(mutex);
    if (count == kMostCustomOps) return refuse(op.name, "more ops", "at most " + std::to_string(kMostCustomOps));
    const Row& row = kRows[count];
    custom_ops[count].store(custom.get(), std::memory_order_release);
    const ops::OpDef entry{
        .name = std::string_view(op.name),
        .summary = std::string_view(op.summary),
        .constraints = std::span<const ops::Constraint>(constraints),
        .operands = std::span<const ops::OperandSpec>(operands),
        .attrs = std::span<const ops::AttrSpec>(attributes),
        .dtype = row.dtype,
        .shape = row.shape,
        .effects = ops::Effects::kPure,
        .alias = ops::Alias::kFresh,
        .layout = ops::Layout::kContiguous,
        .reference = row.run,
        .lower = ops::LowerRule(ops::ExternLower{}),
        .samples = ops::Samples{{}, no_samples},
        .names = ops::Names{},
        .results = static_cast<int>(custom->results.size()),
        .raises = true,
    };
    if (ops::register_op(entry) == nullptr)
        return Diagnostic(DiagnosticId::kDuplicateName).operand("op").found(op.name);
    (void)custom.release();  // as long as the registry
    ++count;
    return {};
}

}  // namespace bytecode

Expected<void> register_op(OpDef op) { return bytecode::register_custom_op(std::move(op)); }

}  // namespace flexor
