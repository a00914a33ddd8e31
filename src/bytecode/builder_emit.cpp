// Statements to stack code.
//
// Laws
//  S1  Statements run in the order in which they were written; each runs once.
//  S2  A value that is used once, by a later statement of its own block, stays on the stack if the values above it are
//      used up by then; every other value that is used lives in a local.
//  S3  Where control splits, and at every loop head, the stack is empty.
//  S4  A local is deleted at the last use of its value, so that memory can be released there; parameters are the
//      caller's and are not deleted.
#include <algorithm>
#include <set>

#include "bytecode/builder_state.h"
#include "bytecode/opcodes.h"
#include "support/check.h"

namespace flexor::bytecode {
namespace {

// Ops that do nothing but give their result, and cannot fail where the Builder wrote them.
bool is_free_of_effects(const Statement& statement) {
    if (statement.kind != Statement::Kind::kSimple) return false;
    switch (statement.op) {
        case Opcode::kGetDim:
        case Opcode::kGetRank:
        case Opcode::kGetShape:
        case Opcode::kBuildList:
        case Opcode::kBuildDict: return true;
        default: return false;
    }
}

class Emitter {
public:
    Emitter(const ModuleState& state, const FunctionState& source, Module& module)
        : state_(state), source_(source), module_(module), uses_(source.values.size(), 0) {}

    Function emit() {
        out_.name = source_.name;
        for (const ParamDecl& param : source_.params) {
            out_.params.push_back(param);
            for (types::Dim& dim : out_.params.back().dims) dim = state_.to_module(dim);
            out_.locals.push_back(param.name);
        }
        for (const std::string& name : source_.variables) out_.locals.push_back(free_name(name));
        out_.result_names = source_.output_names;
        out_.result_count = static_cast<std::int32_t>(source_.result_count.value_or(source_.body.results.size()));
        drop_unused(source_.body);
        locals_.assign(source_.values.size(), -1);
        on_stack_.assign(source_.values.size(), false);
        line_ = source_.line;
        if (source_.is_unstructured()) {
            emit_basic_blocks();
            return std::move(out_);
        }
        emit_block(source_.body);
        emit_results(source_.body);
        emit(Opcode::kReturn, out_.result_count);
        return std::move(out_);
    }

private:
    // ------------------------------------------------------------ what is used

    // Counts the uses of every value; statements without effect whose results nobody uses are dropped. Uses stand after
    // what they use, so one pass from the end suffices.
    void drop_unused(const Block& block) {
        for (const ValueId value : block.results) ++uses_[value];
        for (auto statement = block.statements.rbegin(); statement != block.statements.rend(); ++statement) {
            const bool used = std::ranges::any_of(statement->results, [&](ValueId value) { return uses_[value] > 0; });
            if (!used && is_free_of_effects(*statement)) {
                dropped_.insert(&*statement);
                continue;
            }
            if (statement->second) drop_unused(*statement->second);
            if (statement->first) drop_unused(*statement->first);
            for (const ValueId value : statement->operands) ++uses_[value];
        }
    }

    bool is_leaf(ValueId value) const { return source_.values[value].leaf.has_value(); }

    void mark_reads(const Block& block, std::size_t at, std::map<ValueId, std::size_t>& last) const {
        for (const ValueId value : block.results) last[value] = at;
        for (const Statement& statement : block.statements) {
            if (!dropped_.contains(&statement)) mark_reads(statement, at, last);
        }
    }
    void mark_reads(const Statement& statement, std::size_t at, std::map<ValueId, std::size_t>& last) const {
        for (const ValueId value : statement.operands) last[value] = at;
        if (statement.first) mark_reads(*statement.first, at, last);
        if (statement.second) mark_reads(*statement.second, at, last);
    }

    // ------------------------------------------------------------ what stays on the stack

    struct Plan {
        std::size_t from_stack = 0;  // leading operands that lie on the stack already
        bool swap = false;           // the second of two operands lies on the stack, the first is loaded above it
    };

    // Decides on_stack_ for the values of a block (S2) and how each statement finds its operands.
    std::vector<Plan> plan(const Block& block) {
        std::vector<Plan> plans(block.statements.size() + 1);
        std::vector<ValueId> stack;
        const auto spill = [&](std::size_t at) {
            on_stack_[stack[at]] = false;
            stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(at));
        };
        const auto spill_value = [&](ValueId value) {
            const auto found = std::ranges::find(stack, value);
            if (found != stack.end()) spill(static_cast<std::size_t>(found - stack.begin()));
        };
        const auto take = [&](std::span<const ValueId> operands, Plan& plan) {
            if (operands.size() == 2 && !stack.empty() && stack.back() == operands[1] &&
                std::ranges::find(stack, operands[0]) == stack.end()) {
                plan.swap = true;
                stack.pop_back();
                return;
            }
            std::vector<std::size_t> places;
            for (const ValueId operand : operands) {
                const auto found = std::ranges::find(stack, operand);
                if (found == stack.end()) break;
                const auto place = static_cast<std::size_t>(found - stack.begin());
                if (!places.empty() && place <= places.back()) break;
                places.push_back(place);
            }
            for (const ValueId operand : operands.subspan(places.size())) spill_value(operand);
            plan.from_stack = places.size();
            if (places.empty()) return;
            // Values between and above the operands go to locals.
            std::vector<ValueId> leading(operands.begin(),
                                         operands.begin() + static_cast<std::ptrdiff_t>(places.size()));
            const auto first = static_cast<std::size_t>(std::ranges::find(stack, leading[0]) - stack.begin());
            for (std::size_t i = stack.size(); i-- > first;) {
                if (std::ranges::find(leading, stack[i]) == leading.end()) spill(i);
            }
            stack.resize(first);
        };
        for (std::size_t i = 0; i < block.statements.size(); ++i) {
            const Statement& statement = block.statements[i];
            if (dropped_.contains(&statement)) continue;
            take(statement.operands, plans[i]);
            if (statement.kind != Statement::Kind::kSimple) {
                while (!stack.empty()) spill(stack.size() - 1);
                continue;
            }
            if (statement.results.size() != 1 || uses_[statement.results[0]] != 1) continue;
            on_stack_[statement.results[0]] = true;
            stack.push_back(statement.results[0]);
        }
        take(block.results, plans.back());
        while (!stack.empty()) spill(stack.size() - 1);
        return plans;
    }

    // ------------------------------------------------------------ locals

    std::int32_t allocate() {
        if (!free_.empty()) {
            const std::int32_t local = *free_.begin();
            free_.erase(free_.begin());
            return local;
        }
        const auto local = static_cast<std::int32_t>(out_.locals.size());
        out_.locals.push_back(free_name("v" + std::to_string(local - std::ssize(source_.params))));
        return local;
    }

    std::string free_name(std::string name) const {
        while (std::ranges::find(out_.locals, name) != out_.locals.end()) name += "_";
        return name;
    }

    void release(ValueId value) {
        const std::int32_t local = locals_[value];
        emit(Opcode::kDeleteLocal, local);
        if (!pinned_.contains(local)) free_.insert(local);
    }

    // A result that lies on top of the stack.
    void settle(ValueId value) {
        if (uses_[value] == 0) {
            emit(Opcode::kPop);
        } else if (!on_stack_[value]) {
            locals_[value] = allocate();
            emit(Opcode::kStoreLocal, locals_[value]);
        }
    }

    // ------------------------------------------------------------ code

    void emit(Opcode op, std::int32_t a = 0, std::int32_t b = 0) {
        auto& positions = out_.positions;
        const bool same = positions.empty()
                              ? line_.number == 0
                              : positions.back().line == line_.number && positions.back().file == line_.file;
        if (!same) positions.push_back({static_cast<std::int32_t>(out_.code.size()), line_.number, line_.file});
        out_.code.push_back({op, a, b});
    }

    std::int32_t intern(const Constant& constant) {
        auto& pool = module_.constants;
        const auto found = std::ranges::find_if(pool, [&](const Constant& c) { return same_constant(c, constant); });
        const auto index = static_cast<std::int32_t>(found - pool.begin());
        if (found == pool.end()) pool.push_back(constant);
        return index;
    }

    std::int32_t hook(const std::string& name) {
        auto& hooks = module_.hooks;
        const auto index = static_cast<std::int32_t>(std::ranges::find(hooks, name) - hooks.begin());
        if (index == std::ssize(hooks)) hooks.push_back(name);
        return index;
    }

    void load(ValueId value) {
        const std::optional<Leaf>& leaf = source_.values[value].leaf;
        if (!leaf) {
            FLEXOR_CHECK(locals_[value] >= 0);
            emit(Opcode::kLoadLocal, locals_[value]);
            return;
        }
        const bool constant = opcode_info(leaf->op).format == OperandFormat::kConst;
        emit(leaf->op, constant ? intern(leaf->constant) : leaf->index);
    }

    // Brings operands to the top of the stack. `last` holds values whose local is used here for the last time.
    void load_operands(std::span<const ValueId> operands, const Plan& plan, std::set<ValueId>& last) {
        const auto load_one = [&](std::size_t i) {
            const ValueId value = operands[i];
            load(value);
            const bool again = std::ranges::find(operands.subspan(i + 1), value) != operands.end();
            if (!again && last.erase(value) > 0) release(value);
        };
        if (plan.swap) {
            load_one(0);
            emit(Opcode::kSwap);
            return;
        }
        for (std::size_t i = plan.from_stack; i < operands.size(); ++i) load_one(i);
    }

    std::int32_t branch(Opcode op) {
        emit(op);
        return static_cast<std::int32_t>(out_.code.size()) - 1;
    }
    void land(std::int32_t branch_pc) {
        out_.code[static_cast<std::size_t>(branch_pc)].a = static_cast<std::int32_t>(out_.code.size());
    }

    // The statements of a block. Its results are left to emit_results.
    void emit_block(const Block& block) {
        Scope scope;
        scope.plans = plan(block);
        for (std::size_t i = 0; i < block.statements.size(); ++i) {
            if (!dropped_.contains(&block.statements[i])) mark_reads(block.statements[i], i, scope.last);
        }
        for (const ValueId value : block.results) scope.last[value] = block.statements.size();
        for (std::size_t i = 0; i < block.statements.size(); ++i) {
            const Statement& statement = block.statements[i];
            if (dropped_.contains(&statement)) continue;
            line_ = statement.line;
            std::set<ValueId> last = last_uses(block, scope, i);
            emit_statement(statement, scope.plans[i], last);
            for (const ValueId value : last) release(value);
        }
        scopes_[block.id] = std::move(scope);
    }

    // Brings the results of a block to the stack.
    void emit_results(const Block& block) {
        const Scope& scope = scopes_.at(block.id);
        std::set<ValueId> last = last_uses(block, scope, block.statements.size());
        load_operands(block.results, scope.plans.back(), last);
        scopes_.erase(block.id);
    }

    struct Scope {
        std::vector<Plan> plans;
        std::map<ValueId, std::size_t> last;  // index of the statement that reads a value last
    };

    // Values of this block with a local that statement `at` reads last.
    std::set<ValueId> last_uses(const Block& block, const Scope& scope, std::size_t at) const {
        std::set<ValueId> out;
        const auto consider = [&](ValueId value) {
            if (locals_[value] < 0 || source_.values[value].block != block.id || on_stack_[value]) return;
            const auto found = scope.last.find(value);
            if (found != scope.last.end() && found->second == at) out.insert(value);
        };
        if (at == block.statements.size()) {
            for (const ValueId value : block.results) consider(value);
        } else {
            std::map<ValueId, std::size_t> read;
            mark_reads(block.statements[at], at, read);
            for (const auto& [value, index] : read) consider(value);
        }
        return out;
    }

    void emit_statement(const Statement& statement, const Plan& plan, std::set<ValueId>& last) {
        switch (statement.kind) {
            case Statement::Kind::kSimple: return emit_simple(statement, plan, last);
            case Statement::Kind::kIf:
            case Statement::Kind::kIfNone: return emit_if(statement, plan, last);
            case Statement::Kind::kWhile: return emit_while(statement, plan, last);
            case Statement::Kind::kBasicBlock: break;  // emit_basic_blocks
        }
        FLEXOR_UNREACHABLE();
    }

    void emit_simple(const Statement& statement, const Plan& plan, std::set<ValueId>& last) {
        load_operands(statement.operands, plan, last);
        std::int32_t a = statement.a;
        std::int32_t b = 0;
        switch (opcode_info(statement.op).format) {
            case OperandFormat::kSite: {
                a = static_cast<std::int32_t>(out_.sites.size());
                CallSite site = *statement.site;
                types::Attrs attrs;
                for (const auto& [name, value] : site.attrs.items()) attrs.set(name, to_module(value));
                site.attrs = std::move(attrs);
                out_.sites.push_back(std::move(site));
                break;
            }
            case OperandFormat::kFunctionCount: {
                const auto& functions = state_.functions;
                a = static_cast<std::int32_t>(
                    std::ranges::find(functions, statement.name, [](const auto& f) { return f->name; }) -
                    functions.begin());
                b = static_cast<std::int32_t>(statement.operands.size());
                break;
            }
            case OperandFormat::kHookCount:
                a = hook(statement.name);
                b = static_cast<std::int32_t>(statement.operands.size());
                break;
            case OperandFormat::kConst: a = intern(statement.name); break;
            case OperandFormat::kLocal: a += static_cast<std::int32_t>(source_.params.size()); break;
            default: break;
        }
        emit(statement.op, a, b);
        for (auto result = statement.results.rbegin(); result != statement.results.rend(); ++result) settle(*result);
    }

    types::AttrValue to_module(const types::AttrValue& value) const {
        if (const auto* dim = std::get_if<types::Dim>(&value)) return state_.to_module(*dim);
        if (const auto* list = std::get_if<types::DimList>(&value)) {
            types::DimList out;
            for (const types::Dim& dim : *list) out.push_back(state_.to_module(dim));
            return out;
        }
        return value;
    }

    // Stores the values on top of the stack.
    void store(std::span<const std::int32_t> locals) {
        for (auto local = locals.rbegin(); local != locals.rend(); ++local) {
            emit(*local < 0 ? Opcode::kPop : Opcode::kStoreLocal, std::max(*local, 0));
        }
    }

    void emit_if(const Statement& statement, const Plan& plan, std::set<ValueId>& last) {
        std::set<ValueId> after = last;  // a branch may read them too
        load_operands(statement.operands, plan, last_of_condition(statement, last, after));
        last = std::move(after);
        const bool none = statement.kind == Statement::Kind::kIfNone;
        const std::int32_t to_else = branch(none ? Opcode::kBranchIfNotNull : Opcode::kBranchIfFalse);
        std::vector<std::int32_t> locals;
        for (const ValueId result : statement.results) {
            locals_[result] = uses_[result] > 0 ? allocate() : -1;
            locals.push_back(locals_[result]);
        }
        const Line line = line_;
        emit_block(*statement.first);
        emit_results(*statement.first);
        store(locals);
        const bool empty_else = statement.second->statements.empty() && statement.results.empty();
        if (empty_else) {
            land(to_else);
            return;
        }
        line_ = line;
        const std::int32_t to_end = branch(Opcode::kJump);
        land(to_else);
        emit_block(*statement.second);
        emit_results(*statement.second);
        store(locals);
        land(to_end);
    }

    // Splits `last` into what the condition alone reads, which may go at once, and the rest.
    std::set<ValueId>& last_of_condition(const Statement& statement, const std::set<ValueId>& last,
                                         std::set<ValueId>& after) {
        std::map<ValueId, std::size_t> nested;
        mark_reads(*statement.first, 0, nested);
        mark_reads(*statement.second, 0, nested);
        condition_last_.clear();
        for (const ValueId value : last) {
            if (nested.contains(value)) continue;
            condition_last_.insert(value);
            after.erase(value);
        }
        return condition_last_;
    }

    void emit_while(const Statement& statement, const Plan& plan, std::set<ValueId>& last) {
        std::set<ValueId> after = last;
        load_operands(statement.operands, plan, last_of_condition(statement, last, after));
        last = std::move(after);
        std::vector<std::int32_t> locals;
        for (std::size_t i = 0; i < statement.carried.size(); ++i) {
            const std::int32_t local = allocate();
            pinned_.insert(local);
            locals.push_back(local);
            locals_[statement.carried[i]] = local;
            locals_[statement.results[i]] = local;
        }
        store(locals);
        const Line line = line_;
        const auto head = static_cast<std::int32_t>(out_.code.size());
        emit(Opcode::kLoopHead);
        emit_block(*statement.first);
        emit_results(*statement.first);
        line_ = line;
        const std::int32_t to_end = branch(Opcode::kBranchIfFalse);
        emit_block(*statement.second);
        emit_results(*statement.second);
        store(locals);
        line_ = line;
        emit(Opcode::kJump, head);
        land(to_end);
        for (std::size_t i = 0; i < locals.size(); ++i) {
            pinned_.erase(locals[i]);
            if (uses_[statement.results[i]] == 0) release(statement.results[i]);
        }
    }

    // ------------------------------------------------------------ basic blocks

    // Blocks that control reaches, each before those that it leads to, but for the jumps that close a loop.
    std::vector<const Statement*> in_order() const {
        std::vector<const Statement*> at(source_.label_count, nullptr);
        for (const Statement& statement : source_.body.statements)
            at[static_cast<std::size_t>(statement.a)] = &statement;
        std::vector<const Statement*> order;
        std::vector<bool> seen(at.size(), false);
        std::vector<std::pair<const Statement*, std::size_t>> path;  // with the targets that are done
        const auto enter = [&](const Statement* block) {
            if (seen[static_cast<std::size_t>(block->a)]) return;
            seen[static_cast<std::size_t>(block->a)] = true;
            path.emplace_back(block, 0);
        };
        enter(&source_.body.statements.front());
        while (!path.empty()) {
            auto& [block, done] = path.back();
            if (done < block->targets.size()) {
                enter(at[block->targets[block->targets.size() - ++done]]);  // the last target first: it comes last
                continue;
            }
            order.push_back(block);
            path.pop_back();
        }
        std::ranges::reverse(order);
        return order;
    }

    void emit_basic_blocks() {
        const std::vector<const Statement*> order = in_order();
        std::vector<std::size_t> place(source_.label_count, 0);
        for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i]->a)] = i;
        std::vector<bool> is_loop_head(order.size(), false);
        for (std::size_t i = 0; i < order.size(); ++i) {
            for (const std::uint32_t target : order[i]->targets) {
                if (place[target] <= i) is_loop_head[place[target]] = true;
            }
        }
        std::vector<std::int32_t> pc_of(order.size(), -1);
        std::vector<std::pair<std::int32_t, std::size_t>> jumps;  // a jump, and the block it leads to
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Statement& block = *order[i];
            pc_of[i] = static_cast<std::int32_t>(out_.code.size());
            if (is_loop_head[i]) emit(Opcode::kLoopHead);
            emit_block(*block.first);
            line_ = block.line;
            emit_results(*block.first);
            if (block.op == Opcode::kReturn) {
                emit(Opcode::kReturn, out_.result_count);
                continue;
            }
            if (block.targets.size() == 2) jumps.emplace_back(branch(block.op), place[block.targets[1]]);
            if (place[block.targets[0]] != i + 1) jumps.emplace_back(branch(Opcode::kJump), place[block.targets[0]]);
        }
        for (const auto& [pc, target] : jumps) out_.code[static_cast<std::size_t>(pc)].a = pc_of[target];
    }

    const ModuleState& state_;
    const FunctionState& source_;
    Module& module_;
    Function out_;
    std::vector<std::uint32_t> uses_;
    std::set<const Statement*> dropped_;
    std::vector<bool> on_stack_;
    std::vector<std::int32_t> locals_;  // per value, -1: none
    std::set<std::int32_t> free_;
    std::set<std::int32_t> pinned_;  // of loops that are open
    std::map<BlockId, Scope> scopes_;
    std::set<ValueId> condition_last_;
    Line line_;
};

}  // namespace

Function emit_function(const ModuleState& state, const FunctionState& function, Module& module) {
    return Emitter(state, function, module).emit();
}

}  // namespace flexor::bytecode
