// Control flow: leaders in reverse post-order, joins, loops, inlined calls, exits.
#include "specialize/specializer.h"

#include <algorithm>

namespace flexor::specialize {

using bytecode::Instruction;
using bytecode::Opcode;

namespace {
constexpr int kMaxInlineDepth = 16;
constexpr std::size_t kMaxInstructions = 100000;  // per region, inlined calls included
}  // namespace

std::uint32_t Specializer::new_block() {
    program_.blocks.emplace_back();
    return static_cast<std::uint32_t>(program_.blocks.size() - 1);
}

bool Specializer::run() {
    const bytecode::Function& function = module_.functions[static_cast<std::size_t>(region_.function)];
    program_.function = function.name;
    program_.pc = region_.pc;
    State entry = build_entry();
    if (stopped()) return false;
    new_block();
    walk(function, region_.function, std::move(entry), region_.pc, nullptr);
    if (stopped()) return false;
    auto& first = program_.blocks[0].insts;
    first.insert(first.begin(), prologue_.begin(), prologue_.end());
    return true;
}

void Specializer::walk(const bytecode::Function& function, std::int32_t function_index, State entry, std::int32_t start,
                       std::vector<Returned>* returns) {
    const bytecode::Function* outer_function = function_;
    const std::int32_t outer_index = function_index_;
    const Flow* outer_flow = flow_;
    auto outer_pending = std::move(pending_);
    auto* outer_returns = returns_;

    const Flow flow = analyse_flow(function, start);
    function_ = &function;
    function_index_ = function_index;
    flow_ = &flow;
    pending_.clear();
    returns_ = returns;
    call_stack_.push_back(function_index);
    ++depth_;

    bool first = true;
    for (std::int32_t leader : flow.order) {
        if (stopped()) break;
        State state;
        if (first) {
            first = false;
            state = std::move(entry);
            if (flow.loops.count(leader) != 0) open_loop(leader, state);
        } else {
            auto found = pending_.find(leader);
            if (found == pending_.end()) continue;  // the facts decided that nothing comes here
            std::vector<Incoming> incoming = std::move(found->second);
            pending_.erase(found);
            if (!open_leader(leader, incoming, state)) continue;
        }
        run_block(leader, state);
    }

    for (auto it = loops_.begin(); it != loops_.end();)
        it = it->first.first == depth_ ? loops_.erase(it) : std::next(it);
    --depth_;
    call_stack_.pop_back();
    function_ = outer_function;
    function_index_ = outer_index;
    flow_ = outer_flow;
    pending_ = std::move(outer_pending);
    returns_ = outer_returns;
}

// Chooses the block that continues at `leader` and the state there. False: every path left the region.
bool Specializer::open_leader(std::int32_t leader, std::vector<Incoming>& incoming, State& state) {
    if (incoming.size() == 1) {
        Incoming& only = incoming[0];
        Terminator& terminator = program_.blocks[only.block].terminator;
        if (terminator.kind == Terminator::Kind::kJump && flow_->loops.count(leader) == 0) {
            // Straight on: the jump disappears.
            terminator = Terminator{};
            block_ = only.block;
        } else {
            block_ = new_block();
            program_.blocks[only.block].terminator.targets[only.target].block = block_;
        }
        state = std::move(only.state);
    } else if (!join(leader, incoming, state)) {
        return false;
    }
    if (flow_->loops.count(leader) != 0) open_loop(leader, state);
    return true;
}

void Specializer::run_block(std::int32_t leader, State& state) {
    std::int32_t pc = leader;
    while (!stopped()) {
        const Instruction& instruction = function_->code[static_cast<std::size_t>(pc)];
        if (++steps_ > kMaxInstructions) return leave(pc, state, "the region is longer than the limit");
        if (region_.end_at_once && ends_at_once(pc)) return leave(pc, state, "ends_at_once");
        switch (instruction.op) {
            case Opcode::kJump:
                block().terminator.kind = Terminator::Kind::kJump;
                block().terminator.targets.resize(1);
                return send(instruction.a, block_, 0, state);
            case Opcode::kBranchIfTrue:
            case Opcode::kBranchIfFalse:
            case Opcode::kBranchIfNull:
            case Opcode::kBranchIfNotNull: return branch(pc, state);
            case Opcode::kReturn: {
                const auto count = static_cast<std::size_t>(instruction.a);
                std::vector<LiveValue> values(state.stack.end() - static_cast<std::ptrdiff_t>(count),
                                              state.stack.end());
                if (returns_ != nullptr) {
                    block().terminator.kind = Terminator::Kind::kJump;
                    block().terminator.targets.resize(1);
                    returns_->push_back({block_, std::move(values), {}});
                } else {
                    block().terminator.kind = Terminator::Kind::kReturn;
                    block().terminator.values = std::move(values);
                }
                return;
            }
            case Opcode::kCall:
                if (!call(instruction.a, instruction.b, pc, state)) {
                    if (stopped()) return;
                    return leave(pc, state, reason_);
                }
                break;
            default:
                if (!step(instruction, pc, state)) {
                    if (stopped()) return;
                    return leave(pc, state, reason_);
                }
                break;
        }
        ++pc;
        if (flow_->is_leader(pc)) {
            block().terminator.kind = Terminator::Kind::kJump;
            block().terminator.targets.resize(1);
            return send(pc, block_, 0, state);
        }
    }
}

void Specializer::send(std::int32_t to, std::uint32_t from, std::size_t target, const State& state) {
    const auto open = loops_.find({depth_, to});
    if (open != loops_.end()) return close_loop(to, from, target, state);
    pending_[to].push_back({from, target, state});
}

void Specializer::branch(std::int32_t pc, State& state) {
    const Instruction& instruction = function_->code[static_cast<std::size_t>(pc)];
    const LiveValue value = state.stack.back();
    const bool on_null = instruction.op == Opcode::kBranchIfNull || instruction.op == Opcode::kBranchIfNotNull;
    const bool wanted = instruction.op == Opcode::kBranchIfTrue || instruction.op == Opcode::kBranchIfNull;
    std::optional<bool> decided;  // value of the condition
    specialised::Condition condition;
    if (on_null) {
        decided = value.kind == LiveValue::Kind::kNone;
    } else {
        switch (value.kind) {
            case LiveValue::Kind::kInt:
            case LiveValue::Kind::kBool: {
                const Dim d = program_.env.simplify(value.integer);
                const Truth zero = program_.env.eq(d, 0);
                if (zero != Truth::kUnknown) {
                    decided = zero == Truth::kFalse;
                    if (!value.integer.is_constant()) {
                        program_.events.push_back("branch at " + function_->name + "@" + std::to_string(pc) +
                                                  " decided " + (*decided ? "true" : "false") + " by " +
                                                  program_.env.to_string(value.integer));
                    }
                } else {
                    condition.relation =
                        ops::Requirement{ops::Requirement::Kind::kCheck, ops::Relation::kNe, d, 0, 0, false};
                }
                break;
            }
            case LiveValue::Kind::kFloat: decided = value.real != 0; break;
            case LiveValue::Kind::kReg: {
                const types::TensorType& type = program_.registers[value.reg].type.type;
                require({ops::Requirement::Kind::kCheck, ops::Relation::kEq, type.numel(), 1, 0, false}, nullptr, pc);
                condition.reg = value.reg;
                break;
            }
            default: return leave(pc, state, "a branch on a value of this kind");  // the interpreter refuses it
        }
    }
    state.stack.pop_back();
    if (decided) {
        block().terminator.kind = Terminator::Kind::kJump;
        block().terminator.targets.resize(1);
        return send(*decided == wanted ? instruction.a : pc + 1, block_, 0, state);
    }
    Terminator& terminator = block().terminator;
    terminator.kind = Terminator::Kind::kBranch;
    terminator.condition = condition;
    terminator.targets.resize(2);
    straight_ = false;
    const std::uint32_t from = block_;
    send(wanted ? instruction.a : pc + 1, from, 0, state);
    send(wanted ? pc + 1 : instruction.a, from, 1, state);
}

void Specializer::leave(std::int32_t pc, const State& state, std::string reason) {
    if (depth_ > 1) {
        // An exit inside an inlined call would need the caller's frame too: the call is kept instead.
        restart_ = true;
        known_.kept_calls.insert({call_stack_[0], -1});
        return;
    }
    if (block_ == 0 && pc == region_.pc && program_.blocks[0].insts.empty()) {
        fail(Diagnostic(DiagnosticId::kOpNotCompiled).function(function_->name).pc(pc).found(std::move(reason)));
        return;
    }
    program_.events.push_back("region ends at " + function_->name + "@" + std::to_string(pc) + ": " + reason);
    block().terminator.kind = Terminator::Kind::kExit;
    block().terminator.exit = static_cast<std::uint32_t>(program_.exits.size());
    program_.exits.push_back({pc, state.locals, state.stack, std::move(reason)});
}

// Exits stand in the outermost function only, so an inlined call is over before the region may end.
bool Specializer::ends_at_once(std::int32_t pc) const {
    if (depth_ > 1 || pc == region_.pc) return false;
    if (function_->code[static_cast<std::size_t>(pc)].op == Opcode::kLoopHead) return true;
    const auto is_op = [](const Inst& inst) { return inst.kind == specialised::InstKind::kOp; };
    return std::any_of(program_.blocks.begin(), program_.blocks.end(),
                       [&](const Block& block) { return std::any_of(block.insts.begin(), block.insts.end(), is_op); });
}

// The arguments of an inlined call as its function declares them; its symbols are bound by them alone. False: nobody
// knows before the run that they are so, or they are not, which the interpreter tells.
bool Specializer::bind_parameters(const bytecode::Function& function, State& inner, std::int32_t pc) {
    using bytecode::ParamKind;
    using Kind = LiveValue::Kind;
    std::map<types::SymbolId, Dim> symbols;
    std::vector<DeferredDim> expressions;
    const auto equal = [&](const Dim& a, const Dim& b) { return program_.env.eq(a, b) == Truth::kTrue; };
    const auto has_dims = [&](const bytecode::ParamDecl& param, const types::TensorType& type) {
        if (!param.any_dtype && param.dtype != type.dtype) return false;
        if (param.any_rank) return true;
        if (param.dims.size() != type.sizes.size()) return false;
        for (std::size_t axis = 0; axis < param.dims.size(); ++axis) {
            const Dim& declared = param.dims[axis];
            const Dim& size = type.sizes[axis];
            if (!declared.is_symbol()) {
                expressions.push_back({declared, size});
                continue;
            }
            const auto [known, fresh] = symbols.emplace(declared.symbol_id(), size);
            const types::Range range = program_.env.range(size);
            const types::Range wanted = module_.symbols[declared.symbol_id()].range;
            const bool inside = std::max<std::int64_t>(range.lo, 0) >= wanted.lo &&
                                (range.hi <= wanted.hi || wanted.hi >= types::kDimInfinity);
            if (fresh ? !inside : !equal(known->second, size)) return false;
        }
        return true;
    };
    for (std::size_t i = 0; i < function.params.size(); ++i) {
        const bytecode::ParamDecl& param = function.params[i];
        LiveValue& value = inner.locals[i];
        if (param.kind == ParamKind::kAny || (param.optional && value.kind == Kind::kNone)) continue;
        const bool integer = value.kind == Kind::kInt || value.kind == Kind::kBool;
        bool fits = false;
        switch (param.kind) {
            case ParamKind::kTensor:
                fits = value.kind == Kind::kReg && !is_float(value) &&
                       has_dims(param, program_.registers[value.reg].type.type);
                break;
            case ParamKind::kInt:
                fits = integer;
                if (fits) value.kind = Kind::kInt;
                break;
            case ParamKind::kFloat:
                fits = integer || is_float(value);
                if (integer) value = as_float(value, pc);
                break;
            case ParamKind::kBool: fits = value.kind == Kind::kBool; break;
            case ParamKind::kString: fits = value.kind == Kind::kString; break;
            case ParamKind::kAny: fits = true; break;
        }
        if (!fits) return false;
    }
    std::swap(module_symbols_, symbols);
    const bool fit = std::ranges::all_of(expressions, [&](const DeferredDim& d) {
        return unbound(d.declared).empty() && equal(over_entry(d.declared), d.size);
    });
    if (!fit) std::swap(module_symbols_, symbols);
    return fit;
}

bool Specializer::call(std::int32_t callee, std::int32_t count, std::int32_t pc, State& state) {
    if (known_.kept_calls.count({function_index_, pc}) != 0) return refuse("a call whose body leaves the region");
    for (std::int32_t active : call_stack_) {
        if (active == callee) return refuse("a recursive call");
    }
    if (depth_ >= kMaxInlineDepth) return refuse("calls nested deeper than the limit");
    const bytecode::Function& function = module_.functions[static_cast<std::size_t>(callee)];

    State inner;
    inner.locals.assign(state.stack.end() - count, state.stack.end());
    inner.locals.resize(function.locals.size());
    const std::map<types::SymbolId, Dim> own_symbols = module_symbols_;
    if (!bind_parameters(function, inner, pc)) return refuse("a call whose arguments are not known to be as declared");
    std::vector<Returned> returns;
    walk(function, callee, std::move(inner), 0, &returns);
    module_symbols_ = own_symbols;
    if (restart_ && known_.kept_calls.erase({call_stack_[0], -1}) != 0) {
        // The innermost call that left is the one to keep.
        known_.kept_calls.insert({function_index_, pc});
    }
    if (stopped()) return false;

    state.stack.resize(state.stack.size() - static_cast<std::size_t>(count));
    if (returns.empty()) return refuse("a call that never returns");
    if (returns.size() == 1) {
        block_ = returns[0].block;
        block().terminator = Terminator{};
        for (LiveValue& v : returns[0].values) state.stack.push_back(std::move(v));
        return true;
    }
    std::vector<Incoming> incoming;
    for (Returned& r : returns) {
        State merged = state;
        for (LiveValue& v : r.values) merged.stack.push_back(std::move(v));
        incoming.push_back({r.block, 0, std::move(merged)});
    }
    State joined;
    if (!join(pc + 1, incoming, joined)) return !stopped() && refuse("results of different kinds");
    state = std::move(joined);
    return true;
}

}  // namespace flexor::specialize
