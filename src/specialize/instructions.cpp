// The abstract meaning of each opcode that is not control flow.
#include <algorithm>
#include <cmath>

#include "ops/compaction.h"
#include "ops/write.h"
#include "specialize/specializer.h"
#include "support/hash.h"

namespace flexor::specialize {

using bytecode::Constant;
using bytecode::Instruction;
using bytecode::Opcode;
using Kind = LiveValue::Kind;

namespace {

LiveValue none() {
    LiveValue v;
    v.kind = Kind::kNone;
    return v;
}

LiveValue integer(Dim d) {
    LiveValue v;
    v.kind = Kind::kInt;
    v.integer = std::move(d);
    return v;
}

LiveValue boolean(Dim d) {
    LiveValue v = integer(std::move(d));
    v.kind = Kind::kBool;
    return v;
}

LiveValue from_constant(const Constant& constant) {
    LiveValue v;
    if (std::holds_alternative<bytecode::None>(constant)) return none();
    if (const auto* b = std::get_if<bool>(&constant)) return boolean(*b ? 1 : 0);
    if (const auto* i = std::get_if<std::int64_t>(&constant)) return integer(*i);
    if (const auto* d = std::get_if<double>(&constant)) {
        v.kind = Kind::kFloat;
        v.real = *d;
        return v;
    }
    if (const auto* s = std::get_if<std::string>(&constant)) {
        v.kind = Kind::kString;
        v.text = *s;
        return v;
    }
    v.kind = Kind::kList;
    for (std::int64_t i : std::get<std::vector<std::int64_t>>(constant)) v.elements.push_back(integer(i));
    return v;
}

LiveValue pop(State& state) {
    LiveValue v = std::move(state.stack.back());
    state.stack.pop_back();
    return v;
}

LiveValue of_register(Reg reg) {
    LiveValue v;
    v.kind = Kind::kReg;
    v.reg = reg;
    return v;
}

// Whether a step of the tape may call the kernel of the registry: it fills memory of its own.
bool can_run_whole(const ops::OpDef& op, const ops::Inferred& inferred) {
    return op.effects.value == ops::Effects::kPure &&
           std::ranges::all_of(inferred.results, [](const ops::ResultType& r) { return r.view_of < 0; });
}

std::uint64_t operand_kinds(const std::vector<ops::ArgType>& args) {
    std::uint64_t hash = args.size();
    for (const ops::ArgType& arg : args) {
        hash = support::hash_combine(hash, arg.present ? 1 + static_cast<std::uint64_t>(arg.strength) : 0);
        hash = support::hash_combine(hash, static_cast<std::uint64_t>(arg.type.dtype));
        hash = support::hash_combine(hash, arg.type.sizes.size());
    }
    return hash;
}

}  // namespace

Reg Specializer::new_register(ops::ArgType type, Reg root) {
    Register r;
    r.type = std::move(type);
    const Reg reg = static_cast<Reg>(program_.registers.size());
    r.root = root == kNoReg ? reg : root;
    program_.registers.push_back(std::move(r));
    if (root == kNoReg) memory_[reg].block = block_;
    return reg;
}

Inst& Specializer::emit(Inst inst, std::int32_t pc) {
    inst.pc = pc;
    inst.line = line_at(pc);
    const bool writes = inst.kind == InstKind::kOp && inst.op->effects.value == ops::Effects::kWritesFirst;
    if (writes) {
        first_new_symbol_ = static_cast<std::uint32_t>(program_.env.symbol_count());
        counts_.clear();
    }
    if (const auto symbols = specialised::defined_symbols(inst); !symbols.empty()) first_new_symbol_ = symbols.front();
    if (inst.kind == InstKind::kReadFloat) first_new_symbol_ = static_cast<std::uint32_t>(program_.env.symbol_count());
    block().insts.push_back(std::move(inst));
    return block().insts.back();
}

void Specializer::require(const ops::Requirement& requirement, const ops::OpDef* op, std::int32_t pc) {
    const Dim a = program_.env.simplify(requirement.a);
    const Dim b = program_.env.simplify(requirement.b);
    if (ops::ask(program_.env, requirement.relation, a, b) == Truth::kTrue) return;
    Inst inst;
    inst.kind = InstKind::kCheck;
    inst.op = op;
    inst.requirement = requirement;
    emit(std::move(inst), pc);
    // Everything after a check on the straight path is dominated by it. What comes before must not rely on it: lowering
    // runs the checks of a stretch without effects first, and after an effect only facts on newer symbols are kept.
    if (!straight_ || requirement.or_one) return;
    std::vector<types::SymbolId> symbols;
    a.collect_symbols(symbols);
    b.collect_symbols(symbols);
    const auto newest = std::max_element(symbols.begin(), symbols.end());
    if (newest == symbols.end() || *newest < first_new_symbol_) return;
    ops::assume(program_.env, requirement.relation, a, b);
}

Reg Specializer::weight(std::int32_t index) {
    const auto found = weights_.find(index);
    if (found != weights_.end()) return found->second;
    const bytecode::Weight& w = module_.weights[static_cast<std::size_t>(index)];
    ops::ArgType type;
    std::vector<Dim> sizes(w.tensor.sizes().begin(), w.tensor.sizes().end());
    type.type = types::contiguous_type(w.tensor.dtype(), std::move(sizes), w.tensor.device());
    type.strength = w.tensor.rank() == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
    const Reg reg = new_register(std::move(type));
    program_.registers[reg].name = w.name;
    Inst inst;
    inst.kind = InstKind::kWeight;
    inst.index = static_cast<std::uint32_t>(index);
    inst.results = {reg};
    prologue_.push_back(std::move(inst));
    weights_[index] = reg;
    Memory memory;
    memory.outer = memory.fixed = true;
    bind_outer(reg, std::move(memory));
    return reg;
}

// The register of an op operand; scalars become weak scalar registers. kNoReg for none.
Reg Specializer::operand(const LiveValue& value, std::int32_t pc) {
    if (value.kind == Kind::kReg) return value.reg;
    if (value.kind == Kind::kNone) return kNoReg;
    ops::ArgType type;
    type.strength = types::Strength::kScalar;
    Inst inst;
    if (value.kind == Kind::kFloat) {
        type.type.dtype = DType::kF64;
        inst.kind = InstKind::kConst;
        inst.constant = ConstScalar{value.real};
    } else {
        type.type.dtype = value.kind == Kind::kBool ? DType::kBool : DType::kI64;
        const Dim d = program_.env.simplify(value.integer);
        if (d.is_constant()) {
            inst.kind = InstKind::kConst;
            if (value.kind == Kind::kBool) {
                inst.constant = ConstScalar{d.constant() != 0};
            } else {
                inst.constant = ConstScalar{d.constant()};
            }
        } else {
            inst.kind = InstKind::kDimScalar;
            inst.dim = d;
        }
    }
    const Reg reg = new_register(std::move(type));
    inst.results = {reg};
    emit(std::move(inst), pc);
    return reg;
}

// Replaces OperandRefs by the stack operands they name; `first` is the stack position of operand 0.
bool Specializer::resolve_attrs(const bytecode::CallSite& site, std::size_t first, const State& state,
                                types::Attrs& attrs) {
    for (const auto& [name, value] : site.attrs.items()) {
        const auto* ref = std::get_if<types::OperandRef>(&value);
        if (ref == nullptr) {
            // Dims of attributes are over module symbols.
            const auto translate = [&](const Dim& d) -> std::optional<Dim> {
                if (!unbound(d).empty()) return std::nullopt;
                return over_entry(d);
            };
            if (const auto* d = std::get_if<Dim>(&value)) {
                const auto translated = translate(*d);
                if (!translated) return refuse("an attribute names a symbol that no argument binds");
                attrs.set(name, *translated);
            } else if (const auto* list = std::get_if<types::DimList>(&value)) {
                types::DimList out;
                for (const Dim& item : *list) {
                    const auto translated = translate(item);
                    if (!translated) return refuse("an attribute names a symbol that no argument binds");
                    out.push_back(*translated);
                }
                attrs.set(name, std::move(out));
            } else {
                attrs.set(name, value);
            }
            continue;
        }
        const LiveValue& source = state.stack[first + ref->index];
        switch (source.kind) {
            case Kind::kInt: attrs.set(name, program_.env.simplify(source.integer)); break;
            case Kind::kBool: {
                const Dim d = program_.env.simplify(source.integer);
                if (!d.is_constant()) return refuse("an attribute is a bool known only at run time");
                attrs.set(name, d.constant() != 0);
                break;
            }
            case Kind::kFloat: attrs.set(name, source.real); break;
            case Kind::kString: attrs.set(name, source.text); break;
            case Kind::kNone: attrs.set(name, std::monostate{}); break;
            case Kind::kList: {
                types::DimList list;
                for (const LiveValue& e : source.elements) {
                    if (e.kind != Kind::kInt && e.kind != Kind::kBool)
                        return refuse("an attribute list holds something else than integers");
                    list.push_back(program_.env.simplify(e.integer));
                }
                attrs.set(name, std::move(list));
                break;
            }
            default: return refuse("an attribute is a value known only at run time");
        }
    }
    return true;
}

bool Specializer::call_op(const bytecode::CallSite& site, std::int32_t pc, State& state) {
    const ops::OpDef* op = site.definition != nullptr ? site.definition : ops::find_op(site.op);
    if (op == nullptr) return refuse("op '" + site.op + "' is not in the registry");
    const auto count = static_cast<std::size_t>(site.operand_count);
    const std::size_t first = state.stack.size() - count;
    std::size_t refs = 0;
    for (const auto& [name, value] : site.attrs.items())
        refs += std::holds_alternative<types::OperandRef>(value) ? 1 : 0;
    types::Attrs given;
    if (!resolve_attrs(site, first, state, given)) return false;
    auto attrs = ops::check_attrs(*op, given);
    if (!attrs) return refuse("the attributes do not fit: " + attrs.error().code());
    if (count == refs + 1 && state.stack[first].kind == Kind::kRunList) return join_list(*op, first, *attrs, pc, state);

    // Lists are flattened; everything must be a value an op can take before anything is emitted.
    std::vector<const LiveValue*> values;
    for (std::size_t i = 0; i + refs < count; ++i) {
        const LiveValue& v = state.stack[first + i];
        if (v.kind == Kind::kList) {
            for (const LiveValue& e : v.elements) values.push_back(&e);
        } else {
            values.push_back(&v);
        }
    }
    for (const LiveValue* v : values) {
        const bool usable = v->kind == Kind::kReg || v->kind == Kind::kNone || v->kind == Kind::kFloat ||
                            v->kind == Kind::kInt || v->kind == Kind::kBool;
        if (!usable) return refuse("op '" + site.op + "' takes a value of another kind");
    }

    if (op->effects.value == ops::Effects::kWritesFirst && !values.empty() && values[0]->kind == Kind::kReg) {
        // The interpreter looks whose memory it is, and with strides at hand whether elements share it.
        const Reg root = program_.registers[values[0]->reg].root;
        if (maybe(root, &Memory::fixed)) return refuse("a write to what may be a weight or read-only");
        if (maybe(root, &Memory::overlaps)) return refuse("a write to memory in which elements may overlap");
        if (ops::copies(*op) && values[1]->kind == Kind::kReg && is_same_view(values[0]->reg, values[1]->reg)) {
            state.stack.resize(first + 1);
            return true;
        }
        const bool is_torch = module_.promotion == types::Promotion::kTorch, apart = ops::writes_by_index(*op);
        for (std::size_t i = 1; i < values.size() && is_torch; ++i) {
            if (values[i]->kind == Kind::kReg && overlaps(values[0]->reg, values[i]->reg, apart))
                return refuse("a write that may share memory with what it reads");
        }
    }

    const std::size_t mark = block().insts.size();
    Inst inst;
    inst.op = op;
    inst.attrs = *attrs;
    std::vector<ops::ArgType> args;
    for (const LiveValue* v : values) {
        const Reg reg = operand(*v, pc);
        inst.operands.push_back(reg);
        ops::ArgType arg;
        if (reg == kNoReg) {
            arg.present = false;
        } else {
            arg = program_.registers[reg].type;
        }
        args.push_back(std::move(arg));
    }
    const auto& specs = op->operands.value;
    for (std::size_t i = args.size(); i < specs.size() && specs[i].kind == ops::OperandKind::kOptionalTensor; ++i) {
        inst.operands.push_back(kNoReg);
        ops::ArgType absent;
        absent.present = false;
        args.push_back(absent);
    }

    inst.site = {function_index_, pc, operand_kinds(args)};
    if (region_.refused != nullptr) {
        if (const auto refused = region_.refused->find(inst.site); refused != region_.refused->end()) {
            inst.whole = true;
            inst.text = refused->second;
        }
    }

    // A proposed guard is a fact in the environment at once; a guard that cannot be kept takes its fact along.
    const types::ShapeEnv before = program_.env;
    std::vector<ops::Requirement> requirements;
    const auto run = [&](bool guards, bool layout_guards) {
        requirements.clear();
        return ops::infer(*op, args, inst.attrs, program_.env, requirements, module_.promotion, guards, layout_guards);
    };
    const bool guards_wanted = !region_.generalise || region_.exact_only;
    const auto first_size = static_cast<types::SymbolId>(program_.env.symbol_count());
    auto inferred = run(guards_wanted, true);
    const auto guardable = [&] {
        for (const ops::Requirement& r : requirements) {
            if (r.kind == ops::Requirement::Kind::kGuard && (!entry_only(r.a) || !entry_only(r.b))) return false;
        }
        return true;
    };
    if (inferred && !guardable()) {
        program_.env = before;
        inferred = run(false, true);
    }
    std::vector<ops::IntegerBound> bounds;
    if (inferred && inferred->dtypes.bounds) bounds = *inferred->dtypes.bounds;
    if (std::ranges::any_of(bounds, [&](const auto& b) { return values[b.operand]->kind != Kind::kInt; })) {
        inst.whole = true;
        inst.text = "the integers of a tensor must be looked at";
    }
    std::string why;
    if (!inferred) {
        why = "the operands do not fit: " + inferred.error().code();
    } else if (!guardable()) {
        why = "the rank or the strides of the result depend on data";
    } else if (inst.whole && !can_run_whole(*op, *inferred)) {
        why = inst.text;
    }
    if (!why.empty()) {
        // The interpreter raises it, with concrete shapes and values, if the run gets here.
        program_.env = before;
        block().insts.resize(mark);
        return refuse(std::move(why));
    }
    for (const ops::Requirement& r : requirements) {
        if (r.kind == ops::Requirement::Kind::kCheck) {
            require(r, op, pc);
            continue;
        }
        program_.guards.push_back(r);
        program_.events.push_back("guard proposed by " + std::string(op->name.value) + " at " + function_->name + "@" +
                                  std::to_string(pc));
    }
    for (const ops::IntegerBound& bound : bounds) {
        if (inst.whole) break;  // the call looks at them
        const Dim& value = values[bound.operand]->integer;
        const auto check = [&](const Dim& low, const Dim& high) {
            require({ops::Requirement::Kind::kCheck, ops::Relation::kLe, low, high, 0, false,
                     DiagnosticId::kIntegerOutOfRange},
                    op, pc);
        };
        check(bound.lo, value);
        check(value, bound.hi);
    }
    inst.dtypes = std::move(inferred->dtypes);
    if (op->data_sizes != nullptr) {
        for (auto s = first_size; s < program_.env.symbol_count(); ++s) inst.sizes.push_back(s);
        if (const int counted = ops::counted_operand(*op); counted >= 0) {
            const auto [known, fresh] =
                counts_.try_emplace({block_, inst.operands[static_cast<std::size_t>(counted)]}, inst.sizes.front());
            if (!fresh) program_.env.assume_eq(Dim::symbol(inst.sizes.front()), Dim::symbol(known->second));
        }
    }
    std::vector<LiveValue> results;
    for (ops::ResultType& result : inferred->results) {
        ops::ArgType type;
        for (Dim& d : result.type.sizes) d = program_.env.simplify(d);
        for (Dim& d : result.type.strides) d = program_.env.simplify(d);
        result.type.offset = program_.env.simplify(result.type.offset);
        type.type = std::move(result.type);
        type.strength = type.type.rank() == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
        Reg root = kNoReg;
        if (result.view_of >= 0)
            root = program_.registers[inst.operands[static_cast<std::size_t>(result.view_of)]].root;
        const Reg reg = new_register(std::move(type), root);
        inst.results.push_back(reg);
        const bool is_operand =
            result.is_operand && args[static_cast<std::size_t>(result.view_of)].strength != types::Strength::kScalar;
        results.push_back(of_register(is_operand ? inst.operands[static_cast<std::size_t>(result.view_of)] : reg));
    }
    emit(std::move(inst), pc);
    state.stack.resize(first);
    for (LiveValue& r : results) state.stack.push_back(std::move(r));
    return true;
}

bool Specializer::item(std::int32_t pc, State& state) {
    const LiveValue value = state.stack.back();
    if (value.kind == Kind::kInt || value.kind == Kind::kBool || value.kind == Kind::kFloat) return true;
    if (value.kind != Kind::kReg) return refuse("ITEM of something else than a tensor");
    const ops::ArgType type = program_.registers[value.reg].type;
    if (type.strength == types::Strength::kScalar) return true;
    require({ops::Requirement::Kind::kCheck, ops::Relation::kEq, type.type.numel(), 1, 0, false}, nullptr, pc);
    Inst inst;
    inst.operands = {value.reg};
    state.stack.pop_back();
    if (is_floating(type.type.dtype)) {
        inst.kind = InstKind::kReadFloat;
        const Reg reg = float_register();
        inst.results = {reg};
        emit(std::move(inst), pc);
        state.stack.push_back(of_register(reg));
        return true;
    }
    const bool is_bool = type.type.dtype == DType::kBool;
    inst.kind = InstKind::kReadInt;
    inst.symbol =
        program_.env.add_symbol("item" + std::to_string(pc),
                                is_bool ? types::Range{0, 1} : types::Range{-types::kDimInfinity, types::kDimInfinity});
    const Dim symbol = Dim::symbol(inst.symbol);
    emit(std::move(inst), pc);
    state.stack.push_back(is_bool ? boolean(symbol) : integer(symbol));
    return true;
}

bool Specializer::frozen(std::int32_t axis, std::int32_t, State& state) {
    const LiveValue& value = state.stack.back();
    if (value.kind != Kind::kReg) return refuse("FROZEN on something else than a tensor");
    const types::TensorType& type = program_.registers[value.reg].type.type;
    const int rank = type.rank();
    const int a = axis < 0 ? axis + rank : axis;
    if (a < 0 || a >= rank) return refuse("FROZEN on an axis that the tensor does not have");
    const Dim d = program_.env.simplify(type.sizes[static_cast<std::size_t>(a)]);
    if (d.is_constant()) return true;
    const auto hint = program_.env.hint(d);
    if (!entry_only(d) || !hint) return refuse("FROZEN on a size that depends on data");
    guard(ops::Relation::kEq, d, *hint);
    program_.env.assume_eq(d, *hint);
    program_.events.push_back("FROZEN on " + program_.env.to_string(d) + ": entry for " + std::to_string(*hint));
    return true;
}

bool Specializer::assertion(std::int32_t text, std::int32_t pc, State& state) {
    const LiveValue value = state.stack.back();
    Inst inst;
    inst.kind = InstKind::kAssert;
    inst.text = std::get<std::string>(module_.constants[static_cast<std::size_t>(text)]);
    if (value.kind == Kind::kInt || value.kind == Kind::kBool) {
        const Dim d = program_.env.simplify(value.integer);
        if (program_.env.eq(d, 0) == Truth::kFalse) {
            state.stack.pop_back();
            return true;
        }
        inst.requirement = ops::Requirement{ops::Requirement::Kind::kCheck, ops::Relation::kNe, d, 0, 0, false};
    } else if (value.kind == Kind::kReg) {
        inst.operands = {value.reg};
    } else {
        return refuse("ASSERT on a value of this kind");
    }
    emit(std::move(inst), pc);
    state.stack.pop_back();
    return true;
}

bool Specializer::step(const Instruction& instruction, std::int32_t pc, State& state) {
    auto& stack = state.stack;
    const auto local = [&]() -> LiveValue& { return state.locals[static_cast<std::size_t>(instruction.a)]; };
    switch (instruction.op) {
        case Opcode::kNop:
        case Opcode::kLoopHead: return true;
        case Opcode::kLoadConst:
            stack.push_back(from_constant(module_.constants[static_cast<std::size_t>(instruction.a)]));
            return true;
        case Opcode::kLoadNone: stack.push_back(none()); return true;
        case Opcode::kLoadLocal:
            if (local().kind == Kind::kUnset) return refuse("a local that may be unset");
            stack.push_back(local());
            return true;
        case Opcode::kStoreLocal:
            local() = pop(state);
            if (local().kind == Kind::kReg && program_.registers[local().reg].name.empty()) {
                program_.registers[local().reg].name = function_->locals[static_cast<std::size_t>(instruction.a)];
            }
            return true;
        case Opcode::kDeleteLocal: local() = LiveValue{}; return true;
        case Opcode::kLoadWeight: stack.push_back(of_register(weight(instruction.a))); return true;
        case Opcode::kPop: stack.pop_back(); return true;
        case Opcode::kDup: stack.push_back(LiveValue(stack.back())); return true;
        case Opcode::kSwap: std::swap(stack[stack.size() - 1], stack[stack.size() - 2]); return true;
        case Opcode::kRotate: {
            LiveValue top = pop(state);
            stack.insert(stack.end() - (instruction.a - 1), std::move(top));
            return true;
        }
        case Opcode::kCallOp: return call_op(function_->sites[static_cast<std::size_t>(instruction.a)], pc, state);
        case Opcode::kBuildList:
        case Opcode::kListAppend:
        case Opcode::kListGet:
        case Opcode::kListSet:
        case Opcode::kListLength:
        case Opcode::kUnpack: return list_step(instruction, pc, state);
        case Opcode::kGetDim: {
            if (stack.back().kind != Kind::kReg) return refuse("a size of something else than a tensor");
            const types::TensorType& type = program_.registers[stack.back().reg].type.type;
            const int axis = instruction.a < 0 ? instruction.a + type.rank() : instruction.a;
            if (axis < 0 || axis >= type.rank()) return refuse("an axis that the tensor does not have");
            Dim size = program_.env.simplify(type.sizes[static_cast<std::size_t>(axis)]);
            stack.back() = integer(std::move(size));
            return true;
        }
        case Opcode::kGetRank: {
            if (stack.back().kind != Kind::kReg) return refuse("the rank of something else than a tensor");
            const std::int64_t rank = program_.registers[stack.back().reg].type.type.rank();
            stack.back() = integer(rank);
            return true;
        }
        case Opcode::kGetShape: {
            if (stack.back().kind != Kind::kReg) return refuse("the shape of something else than a tensor");
            const types::TensorType& type = program_.registers[stack.back().reg].type.type;
            LiveValue list;
            list.kind = Kind::kList;
            for (const Dim& d : type.sizes) list.elements.push_back(integer(program_.env.simplify(d)));
            stack.back() = std::move(list);
            return true;
        }
        case Opcode::kItem: return item(pc, state);
        case Opcode::kScalar: return scalar(static_cast<bytecode::ScalarOperator>(instruction.a), pc, state);
        case Opcode::kFrozen: return frozen(instruction.a, pc, state);
        case Opcode::kAssert: return assertion(instruction.a, pc, state);
        case Opcode::kLoadFunction: {
            LiveValue v;
            v.kind = Kind::kFunction;
            v.text = std::get<std::string>(module_.constants[static_cast<std::size_t>(instruction.a)]);
            stack.push_back(std::move(v));
            return true;
        }
        case Opcode::kCallForeign:
        case Opcode::kGetAttribute:
        case Opcode::kLoadForeign: return refuse("a foreign call");
        case Opcode::kCallValue: {
            const std::size_t callee = stack.size() - static_cast<std::size_t>(instruction.a) - 1;
            if (stack[callee].kind != Kind::kFunction) return refuse("a foreign call");
            const std::int32_t index = module_.find_function(stack[callee].text);
            if (index < 0) return refuse("a function that the module does not have");
            State attempt = state;
            attempt.stack.erase(attempt.stack.begin() + static_cast<std::ptrdiff_t>(callee));
            if (!call(index, instruction.a, pc, attempt)) return false;
            state = std::move(attempt);
            return true;
        }
        case Opcode::kBuildDict:
        case Opcode::kDictGet: return refuse("a dict");
        case Opcode::kJump:
        case Opcode::kBranchIfTrue:
        case Opcode::kBranchIfFalse:
        case Opcode::kBranchIfNull:
        case Opcode::kBranchIfNotNull:
        case Opcode::kReturn:
        case Opcode::kCall: break;  // control flow, handled by the walk
    }
    return refuse("an instruction that the specialiser does not know");
}

}  // namespace flexor::specialize
