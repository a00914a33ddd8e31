#include "bytecode/type_flow.h"

#include <algorithm>
#include <map>

#include "bytecode/opcodes.h"
#include "ops/write.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

using Kind = StaticType::Kind;
using types::Dim;

constexpr int kMaxCallDepth = 8;
constexpr std::int64_t kMaxSteps = 4'000'000;  // values looked at in one analysis, calls included
constexpr std::size_t kMaxItems = 256;         // items of a list, nested ones included; larger lists are unknown
constexpr std::size_t kMaxDimSize = 64;        // symbols in an integer; larger expressions are unknown

bool made_by_data(const Dim& dim, const Module& module) {
    std::vector<types::SymbolId> used;
    dim.collect_symbols(used);
    return std::ranges::any_of(used, [&](types::SymbolId id) { return id >= module.symbols.size(); });
}

ops::ArgType argument(const StaticType& type) {
    ops::ArgType out;
    switch (type.kind) {
        case Kind::kTensor:
            out.type = type.tensor;
            out.strength = type.tensor.rank() == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
            break;
        case Kind::kNone: out.present = false; break;
        default:
            out.type.dtype = type.kind == Kind::kBool  ? DType::kBool
                             : type.kind == Kind::kInt ? DType::kI64
                                                       : DType::kF64;
            out.strength = types::Strength::kScalar;
    }
    return out;
}

// Leaves of the expression, counted up to `most`.
std::size_t dim_size(const Dim& dim, std::size_t most) {
    if (dim.is_constant() || dim.is_symbol()) return 1;
    std::size_t size = 0;
    for (const Dim& operand : dim.operands()) {
        if (size > most) break;
        size += dim_size(operand, most - size);
    }
    return size;
}

std::size_t item_count(const StaticType& list) {
    std::size_t count = list.items.size();
    for (const StaticType& item : list.items) count += item_count(item);
    return count;
}

// A list, or unknown if that would be too large to follow.
StaticType list_of(std::vector<StaticType> items) {
    StaticType list = StaticType::of(Kind::kList);
    list.items = std::move(items);
    return item_count(list) <= kMaxItems ? list : StaticType{};
}

// Join of what two paths know.
bool merge(StaticType& into, const StaticType& from) {
    if (into == from || into.kind == Kind::kUnknown) return false;
    StaticType joined;
    if (into.kind == from.kind && into.is_scalar()) {
        joined = StaticType::of(into.kind);
        joined.read = into.read || from.read;
        if (into == joined) return false;
    }
    into = std::move(joined);
    return true;
}

class Flow {
public:
    Flow(const Module& module, types::ShapeEnv& env, std::vector<ops::Requirement>* requirements = nullptr)
        : module_(module), env_(env), requirements_(requirements) {}

    std::vector<StaticType> run(const Function& function, std::vector<StaticType> arguments, int depth) {
        Frame frame{function, {}, {}, {}, {}, depth};
        State entry;
        entry.locals = std::move(arguments);
        entry.locals.resize(function.locals.size());
        std::vector<bool>& leaders = frame.leaders;
        leaders.assign(function.code.size() + 1, false);
        for (std::size_t pc = 0; pc < function.code.size(); ++pc) {
            const OpcodeInfo& info = opcode_info(function.code[pc].op);
            if (info.has_target()) leaders[static_cast<std::size_t>(function.code[pc].a)] = true;
            if (info.ends_block()) leaders[pc + 1] = true;
        }
        enter(frame, 0, entry);
        while (!frame.work.empty()) {
            const std::int32_t pc = frame.work.back();
            frame.work.pop_back();
            follow(frame, pc);
        }
        const auto unknown = std::vector<StaticType>(static_cast<std::size_t>(function.result_count));
        return frame.results && steps_ <= kMaxSteps ? *frame.results : unknown;
    }

    const std::optional<FrozenOnData>& frozen_on_data() const { return frozen_on_data_; }

private:
    struct State {
        std::vector<StaticType> locals;
        std::vector<StaticType> stack;
    };
    struct Frame {
        const Function& function;
        std::vector<bool> leaders;
        std::map<std::int32_t, State> blocks;
        std::vector<std::int32_t> work;
        std::optional<std::vector<StaticType>> results;
        int depth;
    };

    void enter(Frame& frame, std::int32_t pc, const State& state) {
        steps_ += static_cast<std::int64_t>(state.locals.size() + state.stack.size());
        if (steps_ > kMaxSteps) return;
        const auto [known, fresh] = frame.blocks.emplace(pc, state);
        bool changed = fresh;
        if (!fresh) {
            State& into = known->second;
            for (std::size_t i = 0; i < into.locals.size(); ++i) changed |= merge(into.locals[i], state.locals[i]);
            for (std::size_t i = 0; i < into.stack.size(); ++i) changed |= merge(into.stack[i], state.stack[i]);
        }
        if (changed) frame.work.push_back(pc);
    }

    void follow(Frame& frame, std::int32_t pc) {
        State state = frame.blocks.at(pc);
        for (;;) {
            if (++steps_ > kMaxSteps) return;
            const Instruction& instruction = frame.function.code[static_cast<std::size_t>(pc)];
            const OpcodeInfo& info = opcode_info(instruction.op);
            step(frame, pc, instruction, state);
            if (info.has_target()) enter(frame, instruction.a, state);
            if (info.never_falls_through()) return;
            if (frame.leaders[static_cast<std::size_t>(++pc)]) return enter(frame, pc, state);
        }
    }

    static std::vector<StaticType> pop(State& state, std::size_t count) {
        FLEXOR_CHECK(state.stack.size() >= count);
        std::vector<StaticType> out(state.stack.end() - static_cast<std::ptrdiff_t>(count), state.stack.end());
        state.stack.resize(state.stack.size() - count);
        return out;
    }

    void step(Frame& frame, std::int32_t pc, const Instruction& instruction, State& state) {
        const Function& function = frame.function;
        const std::optional<StackEffect> effect = stack_effect(module_, function, instruction);
        FLEXOR_CHECK(effect.has_value());
        const auto index = static_cast<std::size_t>(instruction.a);
        std::vector<StaticType> popped = pop(state, static_cast<std::size_t>(effect->pops));
        std::vector<StaticType> pushed;
        switch (instruction.op) {
            case Opcode::kLoadConst: pushed = {static_type(module_.constants[index])}; break;
            case Opcode::kLoadNone: pushed = {StaticType::of(Kind::kNone)}; break;
            case Opcode::kLoadFunction: pushed = {StaticType::of(Kind::kFunction)}; break;
            case Opcode::kLoadForeign: pushed = {StaticType::of(Kind::kForeign)}; break;
            case Opcode::kLoadLocal: pushed = {state.locals[index]}; break;
            case Opcode::kStoreLocal: state.locals[index] = std::move(popped[0]); break;
            case Opcode::kDeleteLocal: state.locals[index] = {}; break;
            case Opcode::kLoadWeight: pushed = {static_type(module_.weights[index].tensor)}; break;
            case Opcode::kDup: pushed = {popped[0], popped[0]}; break;
            case Opcode::kSwap: pushed = {popped[1], popped[0]}; break;
            case Opcode::kRotate:
                pushed = std::move(popped);
                std::rotate(pushed.begin(), pushed.end() - 1, pushed.end());
                break;
            case Opcode::kCallOp: {
                const CallSite& site = function.sites[index];
                Expected<std::vector<StaticType>> results =
                    infer_site(*site.definition, site, popped, env_, module_.promotion, requirements_);
                if (results) pushed = *std::move(results);
                break;
            }
            case Opcode::kCall:
                if (frame.depth < kMaxCallDepth && steps_ <= kMaxSteps) {
                    pushed = run(module_.functions[index], std::move(popped), frame.depth + 1);
                }
                break;
            case Opcode::kReturn:
                if (!frame.results) {
                    frame.results = std::move(popped);
                } else {
                    for (std::size_t i = 0; i < popped.size(); ++i) merge((*frame.results)[i], popped[i]);
                }
                break;
            case Opcode::kBuildList: pushed = {list_of(std::move(popped))}; break;
            case Opcode::kListAppend:
                if (popped[0].kind == Kind::kList) {
                    popped[0].items.push_back(std::move(popped[1]));
                    pushed = {list_of(std::move(popped[0].items))};
                }
                break;
            case Opcode::kListGet: pushed = {list_item(popped[0], popped[1])}; break;
            case Opcode::kListLength:
                pushed = {popped[0].kind == Kind::kList ? StaticType::integer(std::ssize(popped[0].items))
                                                        : StaticType::of(Kind::kInt)};
                break;
            case Opcode::kUnpack:
                if (popped[0].kind == Kind::kList && popped[0].items.size() == index)
                    pushed = std::move(popped[0].items);
                break;
            case Opcode::kGetDim:
                pushed = {StaticType::of(Kind::kInt)};
                if (const Dim* dim = axis_of(popped[0], instruction.a)) pushed = {StaticType::integer(*dim)};
                break;
            case Opcode::kGetRank:
                pushed = {popped[0].kind == Kind::kTensor ? StaticType::integer(popped[0].tensor.rank())
                                                          : StaticType::of(Kind::kInt)};
                break;
            case Opcode::kGetShape:
                if (popped[0].kind == Kind::kTensor) {
                    pushed = {StaticType::of(Kind::kList)};
                    for (const Dim& dim : popped[0].tensor.sizes) pushed[0].items.push_back(StaticType::integer(dim));
                }
                break;
            case Opcode::kItem:
                if (popped[0].kind == Kind::kTensor) {
                    const DType dtype = popped[0].tensor.dtype;
                    if (dtype == DType::kBool) pushed = {StaticType::of(Kind::kBool)};
                    if (is_integer(dtype)) pushed = {read_integer()};
                    if (is_floating(dtype)) pushed = {StaticType::of(Kind::kFloat)}, pushed[0].read = true;
                } else if (popped[0].is_scalar()) {
                    pushed = std::move(popped);
                }
                break;
            case Opcode::kScalar: {
                pushed = {infer_scalar(static_cast<ScalarOperator>(instruction.a), popped)};
                const bool read = std::ranges::any_of(popped, [&](const StaticType& type) { return is_read(type); });
                if (read && pushed[0].kind == Kind::kInt && !pushed[0].value) pushed = {read_integer()};
                pushed[0].read = read && pushed[0].kind == Kind::kFloat;
                break;
            }
            case Opcode::kFrozen: {
                const Dim* dim = axis_of(popped[0], instruction.a);
                if (dim != nullptr && made_by_data(*dim, module_) && !frozen_on_data_)
                    frozen_on_data_ = {static_cast<std::int32_t>(&function - module_.functions.data()), pc};
                pushed = std::move(popped);
                break;
            }
            case Opcode::kBuildDict: pushed = {StaticType::of(Kind::kDict)}; break;
            default: break;
        }
        pushed.resize(static_cast<std::size_t>(effect->pushes));
        for (StaticType& type : pushed) state.stack.push_back(std::move(type));
    }

    // An integer that only the run knows: a symbol of its own at each look.
    StaticType read_integer() {
        return StaticType::integer(Dim::symbol(env_.add_symbol("item", {-types::kDimInfinity, types::kDimInfinity})));
    }
    bool is_read(const StaticType& type) const {
        return type.read || (type.value && made_by_data(*type.value, module_));
    }

    static StaticType list_item(const StaticType& list, const StaticType& position) {
        if (list.kind != Kind::kList || !position.value || !position.value->is_constant()) return {};
        std::int64_t at = position.value->constant();
        if (at < 0) at += std::ssize(list.items);
        return at >= 0 && at < std::ssize(list.items) ? list.items[static_cast<std::size_t>(at)] : StaticType{};
    }

    static const Dim* axis_of(const StaticType& type, std::int32_t axis) {
        if (type.kind != Kind::kTensor) return nullptr;
        if (axis < 0) axis += type.tensor.rank();
        return axis >= 0 && axis < type.tensor.rank() ? &type.tensor.sizes[static_cast<std::size_t>(axis)] : nullptr;
    }

    const Module& module_;
    types::ShapeEnv& env_;
    std::vector<ops::Requirement>* requirements_;
    std::int64_t steps_ = 0;
    std::optional<FrozenOnData> frozen_on_data_;
};

std::vector<StaticType> parameter_types(const Function& function) {
    std::vector<StaticType> out;
    for (const ParamDecl& param : function.params) out.push_back(static_type(param));
    return out;
}

}  // namespace

std::string to_string(const StaticType& type, const std::function<std::string(types::SymbolId)>& name) {
    switch (type.kind) {
        case Kind::kUnknown: return "?";
        case Kind::kTensor: return types::to_string(type.tensor, name);
        case Kind::kNone: return "none";
        case Kind::kBool: return "bool";
        case Kind::kInt: return type.value ? "int " + type.value->to_string(name) : "int";
        case Kind::kFloat: return "float";
        case Kind::kString: return "str";
        case Kind::kList: return "list of " + std::to_string(type.items.size());
        case Kind::kDict: return "dict";
        case Kind::kFunction: return "function";
        case Kind::kForeign: return "foreign";
    }
    FLEXOR_UNREACHABLE();
}

StaticType static_type(const ParamDecl& param) {
    if (param.optional) return {};
    switch (param.kind) {
        case ParamKind::kTensor: {
            if (param.any_dtype || param.any_rank) return {};
            // Strides of arguments are not declared; row-major stands for them, which no result type depends on but in
            // its strides.
            return StaticType::of(types::contiguous_type(param.dtype, param.dims));
        }
        case ParamKind::kInt: return StaticType::of(Kind::kInt);
        case ParamKind::kFloat: return StaticType::of(Kind::kFloat);
        case ParamKind::kBool: return StaticType::of(Kind::kBool);
        case ParamKind::kString: return StaticType::of(Kind::kString);
        case ParamKind::kAny: return {};
    }
    FLEXOR_UNREACHABLE();
}

StaticType static_type(const Constant& constant) {
    struct Visitor {
        StaticType operator()(None) const { return StaticType::of(Kind::kNone); }
        StaticType operator()(bool) const { return StaticType::of(Kind::kBool); }
        StaticType operator()(std::int64_t value) const { return StaticType::integer(value); }
        StaticType operator()(double) const { return StaticType::of(Kind::kFloat); }
        StaticType operator()(const std::string&) const { return StaticType::of(Kind::kString); }
        StaticType operator()(const std::vector<std::int64_t>& list) const {
            if (list.size() > kMaxItems) return {};
            StaticType out = StaticType::of(Kind::kList);
            for (const std::int64_t item : list) out.items.push_back(StaticType::integer(item));
            return out;
        }
    };
    return std::visit(Visitor{}, constant);
}

StaticType static_type(const Tensor& tensor) {
    return StaticType::of(
        types::contiguous_type(tensor.dtype(), std::vector<Dim>(tensor.sizes().begin(), tensor.sizes().end())));
}

types::ShapeEnv module_env(const Module& module) {
    types::ShapeEnv env;
    for (const SymbolDecl& symbol : module.symbols) env.add_symbol(symbol.name, symbol.range);
    return env;
}

std::optional<SiteArguments> site_arguments(const ops::OpDef& op, const CallSite& site,
                                            std::span<const StaticType> operands, types::ShapeEnv& env) {
    SiteArguments out;
    const auto integer = [&](const StaticType& operand) {
        if (operand.value) return *operand.value;
        return Dim::symbol(
            env.add_symbol("n" + std::to_string(env.symbol_count()), {-types::kDimInfinity, types::kDimInfinity}));
    };
    std::size_t from_stack = 0;
    for (const auto& [name, value] : site.attrs.items()) {
        const auto* ref = std::get_if<types::OperandRef>(&value);
        if (ref == nullptr) {
            out.attrs.set(name, value);
            continue;
        }
        ++from_stack;
        if (ref->index >= operands.size()) return std::nullopt;
        const StaticType& operand = operands[ref->index];
        if (operand.kind == Kind::kInt) {
            out.attrs.set(name, integer(operand));
        } else if (operand.kind == Kind::kNone) {
            out.attrs.set(name, std::monostate());
        } else if (operand.kind == Kind::kList) {
            types::DimList list;
            for (const StaticType& item : operand.items) {
                if (item.kind != Kind::kInt) return std::nullopt;
                list.push_back(integer(item));
            }
            out.attrs.set(name, std::move(list));
        } else {
            return std::nullopt;
        }
    }
    if (from_stack > operands.size()) return std::nullopt;
    operands = operands.first(operands.size() - from_stack);
    for (std::size_t i = 0; i < op.operands.value.size(); ++i) {
        if (op.operands.value[i].kind == ops::OperandKind::kTensorList) {
            for (std::size_t j = i; j < operands.size(); ++j) {
                const std::span<const StaticType> list =
                    operands[j].kind == Kind::kList ? std::span(operands[j].items) : operands.subspan(j, 1);
                for (const StaticType& item : list) {
                    if (item.kind != Kind::kTensor && !item.is_scalar()) return std::nullopt;
                    out.args.push_back(argument(item));
                }
            }
            return out;
        }
        if (i >= operands.size()) {
            out.args.push_back({.present = false, .type = {}});
            continue;
        }
        const StaticType& operand = operands[i];
        if (operand.kind != Kind::kTensor && operand.kind != Kind::kNone && !operand.is_scalar()) return std::nullopt;
        out.args.push_back(argument(operand));
    }
    return out;
}

Expected<std::vector<StaticType>> infer_site(const ops::OpDef& op, const CallSite& site,
                                             std::span<const StaticType> operands, types::ShapeEnv& env,
                                             types::Promotion promotion, std::vector<ops::Requirement>* requirements) {
    const std::optional<SiteArguments> arguments = site_arguments(op, site, operands, env);
    std::vector<StaticType> out;
    if (arguments && ops::copies(op) && arguments->args[0].type == arguments->args[1].type) {
        out.push_back(StaticType::of(arguments->args[0].type));  // the run knows whether the two are one
    } else if (arguments) {
        std::vector<ops::Requirement> stated;
        FLEXOR_ASSIGN(const types::Attrs attrs, ops::check_attrs(op, arguments->attrs));
        FLEXOR_ASSIGN(const ops::Inferred inferred,
                      ops::infer(op, arguments->args, attrs, env, stated, promotion, false));
        if (requirements != nullptr) requirements->insert(requirements->end(), stated.begin(), stated.end());
        for (const ops::ResultType& result : inferred.results) out.push_back(StaticType::of(result.type));
    }
    out.resize(static_cast<std::size_t>(std::max(0, ops::result_count(op, site.attrs))));
    return out;
}

StaticType infer_scalar(ScalarOperator op, std::span<const StaticType> operands) {
    for (const StaticType& operand : operands) {
        if (!operand.is_scalar()) return {};
    }
    const auto both_integer = [&] {
        return std::ranges::all_of(operands, [](const StaticType& t) { return t.kind != Kind::kFloat; });
    };
    const auto number = [&](Dim (*combine)(const Dim&, const Dim&)) {
        if (!both_integer()) return StaticType::of(Kind::kFloat);
        if (!operands[0].value || !operands[1].value) return StaticType::of(Kind::kInt);
        const std::size_t left = dim_size(*operands[0].value, kMaxDimSize);
        const std::size_t right = dim_size(*operands[1].value, kMaxDimSize);
        if (left * right > kMaxDimSize) return StaticType::of(Kind::kInt);
        return StaticType::integer(combine(*operands[0].value, *operands[1].value));
    };
    switch (op) {
        case ScalarOperator::kAdd: return number([](const Dim& a, const Dim& b) { return a + b; });
        case ScalarOperator::kSub: return number([](const Dim& a, const Dim& b) { return a - b; });
        case ScalarOperator::kMul: return number([](const Dim& a, const Dim& b) { return a * b; });
        case ScalarOperator::kTrueDiv: return StaticType::of(Kind::kFloat);
        case ScalarOperator::kFloorDiv: return number(Dim::floor_div);
        case ScalarOperator::kMod: return number(Dim::mod);
        case ScalarOperator::kMin:
            return operands[0].kind == operands[1].kind && operands[0].kind == Kind::kInt ? number(Dim::min)
                                                                                          : StaticType{};
        case ScalarOperator::kMax:
            return operands[0].kind == operands[1].kind && operands[0].kind == Kind::kInt ? number(Dim::max)
                                                                                          : StaticType{};
        case ScalarOperator::kEq:
        case ScalarOperator::kNe:
        case ScalarOperator::kLt:
        case ScalarOperator::kLe:
        case ScalarOperator::kGt:
        case ScalarOperator::kGe:
        case ScalarOperator::kNot:
        case ScalarOperator::kToBool: return StaticType::of(Kind::kBool);
        case ScalarOperator::kNeg:
            if (operands[0].kind == Kind::kFloat) return operands[0];
            return operands[0].value ? StaticType::integer(-*operands[0].value) : StaticType::of(Kind::kInt);
        case ScalarOperator::kToInt: return operands[0].kind == Kind::kInt ? operands[0] : StaticType::of(Kind::kInt);
        case ScalarOperator::kToFloat: return StaticType::of(Kind::kFloat);
        case ScalarOperator::kPow:  // an int to a negative power is a float
        case ScalarOperator::kAnd:  // either operand
        case ScalarOperator::kOr: return {};
    }
    FLEXOR_UNREACHABLE();
}

std::vector<StaticType> result_types(const Module& module, const Function& function, types::ShapeEnv& env) {
    return Flow(module, env).run(function, parameter_types(function), 0);
}

std::vector<ops::Requirement> required_of_symbols(const Module& module, const Function& function) {
    std::vector<StaticType> arguments;
    for (ParamDecl param : function.params) {
        param.optional = false;
        // Sizes are asked for: any dtype does.
        if (param.any_dtype) param.dtype = DType::kF32;
        param.any_dtype = false;
        arguments.push_back(static_type(param));
    }
    types::ShapeEnv env = module_env(module);
    std::vector<ops::Requirement> stated;
    Flow flow(module, env, &stated);
    static_cast<void>(flow.run(function, std::move(arguments), 0));
    std::vector<ops::Requirement> out;
    for (ops::Requirement& requirement : stated) {
        requirement.a = env.simplify(requirement.a);
        requirement.b = env.simplify(requirement.b);
        if (requirement.kind != ops::Requirement::Kind::kCheck || made_by_data(requirement.a, module) ||
            made_by_data(requirement.b, module))
            continue;
        out.push_back(std::move(requirement));
    }
    return out;
}

std::optional<FrozenOnData> frozen_on_data(const Module& module, const Function& function) {
    const bool frozen = std::ranges::any_of(module.functions, [](const Function& f) {
        return std::ranges::find(f.code, Opcode::kFrozen, &Instruction::op) != f.code.end();
    });
    if (!frozen) return std::nullopt;
    types::ShapeEnv env = module_env(module);
    Flow flow(module, env);
    static_cast<void>(flow.run(function, parameter_types(function), 0));
    return flow.frozen_on_data();
}

}  // namespace flexor::bytecode
