#include "bytecode/verify.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>

#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "bytecode/type_flow.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

constexpr std::size_t kMaxFlowBits = std::size_t{1} << 31;  // blocks x locals

std::string some(std::int64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

Diagnostic limit(std::string found, std::int64_t most) {
    return Diagnostic(DiagnosticId::kFileSizeLimit).found(std::move(found)).expected("at most " + std::to_string(most));
}

// The first name that stands twice, or null.
template <class Names, class Projection>
const std::string* duplicate(const Names& names, Projection projection) {
    std::set<std::string_view> seen;
    for (const auto& item : names) {
        const std::string& name = std::invoke(projection, item);
        if (!seen.insert(name).second) return &name;
    }
    return nullptr;
}

class Verifier {
public:
    explicit Verifier(Module& module) : module_(module) {}

    Status verify() {
        FLEXOR_TRY(check_tables());
        for (Function& function : module_.functions) FLEXOR_TRY(check_head(function));
        for (Function& function : module_.functions) {
            function_ = &function;
            FLEXOR_TRY(check_instructions());
            FLEXOR_TRY(check_flow());
        }
        for (Function& function : module_.functions) {
            if (const auto frozen = frozen_on_data(module_, function)) {
                function_ = &module_.functions[static_cast<std::size_t>(frozen->function)];
                const Instruction& instruction = function_->code[static_cast<std::size_t>(frozen->pc)];
                return at(frozen->pc, Diagnostic(DiagnosticId::kFrozenDataDependent)
                                          .found("FROZEN on axis " + std::to_string(instruction.a)));
            }
        }
        return {};
    }

private:
    // ------------------------------------------------------------ the module

    Status check_tables() const {
        const auto twice = [](std::string_view what, const std::string* name) {
            return Diagnostic(DiagnosticId::kDuplicateName).found(std::string(what) + " " + quoted(*name));
        };
        if (const auto* name = duplicate(module_.functions, &Function::name)) return twice("function", name);
        if (const auto* name = duplicate(module_.symbols, &SymbolDecl::name)) return twice("symbol", name);
        if (const auto* name = duplicate(module_.weights, &Weight::name)) return twice("weight", name);
        if (const auto* name = duplicate(module_.hooks, std::identity())) return twice("hook", name);
        if (module_.find_function("main") < 0) {
            return Diagnostic(DiagnosticId::kUnknownName).found("no function 'main'").hint("the entry is called main");
        }
        for (const SymbolDecl& symbol : module_.symbols) {
            if (!is_identifier(symbol.name) || is_reserved_word(symbol.name)) {
                return Diagnostic(DiagnosticId::kUnexpectedToken)
                    .found("the symbol name " + support::quote(symbol.name))
                    .expected("an identifier that is not reserved");
            }
            const types::Range range = symbol.range;
            if (range.lo < 0 || range.hi < range.lo || range.hi > types::kDimInfinity) {
                return Diagnostic(DiagnosticId::kBadSymbolRange)
                    .operand(symbol.name)
                    .found(std::to_string(range.lo) + ".." + std::to_string(range.hi));
            }
        }
        for (const Weight& weight : module_.weights) {
            const Tensor& tensor = weight.tensor;
            if (!tensor.defined() || !tensor.is_contiguous() || tensor.device().kind != DeviceKind::kCpu) {
                return Diagnostic(DiagnosticId::kBadOperand)
                    .operand(weight.name)
                    .expected("a contiguous tensor in host memory");
            }
        }
        return {};
    }

    Status check_dim(const types::Dim& dim) const {
        std::vector<types::SymbolId> used;
        dim.collect_symbols(used);
        for (const types::SymbolId id : used) {
            if (id >= module_.symbols.size()) {
                return Diagnostic(DiagnosticId::kIndexOutOfRange).found("symbol " + std::to_string(id));
            }
        }
        return {};
    }

    Status check_head(const Function& function) const {
        const auto refuse = [&](DiagnosticId id) { return Diagnostic(id).function(function.name); };
        if (function.code.size() > kMaxCode) return limit(some(std::ssize(function.code), "instruction"), kMaxCode);
        if (function.locals.size() > kMaxLocals) return limit(some(std::ssize(function.locals), "local"), kMaxLocals);
        bool begins = function.locals.size() >= function.params.size();
        for (std::size_t i = 0; begins && i < function.params.size(); ++i) {
            begins = function.locals[i] == function.params[i].name;
        }
        if (!begins) return refuse(DiagnosticId::kIndexOutOfRange).expected("locals that begin with the parameters");
        if (const auto* name = duplicate(function.locals, std::identity())) {
            return refuse(DiagnosticId::kDuplicateName).found("local " + quoted(*name));
        }
        if (function.result_count < 0 ||
            (!function.result_names.empty() && std::ssize(function.result_names) != function.result_count)) {
            return refuse(DiagnosticId::kWrongResultCount)
                .found(some(std::ssize(function.result_names), "result name"))
                .expected(some(function.result_count, "result"));
        }
        for (const ParamDecl& param : function.params) {
            if (param.kind != ParamKind::kTensor || param.any_rank) {
                if (param.dims.empty() && param.frozen.empty()) continue;
                return refuse(DiagnosticId::kBadOperand).operand(param.name).expected("no dims");
            }
            if (param.dims.size() > kMaxRank || param.frozen.size() != param.dims.size()) {
                return refuse(DiagnosticId::kBadOperand).operand(param.name).expected("a rank of at most 12");
            }
            for (const types::Dim& dim : param.dims) {
                if (Status status = check_dim(dim); !status) {
                    return std::move(status).error().function(function.name).operand(param.name);
                }
            }
        }
        const SourcePosition* before = nullptr;
        for (const SourcePosition& position : function.positions) {
            const bool inside = position.pc >= 0 && position.pc < std::ssize(function.code) && position.line >= 0;
            const bool ascends = before == nullptr || position.pc > before->pc;
            const bool differs =
                before == nullptr ? position.line > 0 : position.line != before->line || position.file != before->file;
            if (!inside || !ascends || !differs) {
                return refuse(DiagnosticId::kIndexOutOfRange)
                    .pc(position.pc)
                    .expected("source positions that ascend, change and lie inside the code");
            }
            before = &position;
        }
        return {};
    }

    // ------------------------------------------------------------ single instructions

    Diagnostic at(std::int32_t pc, Diagnostic diagnostic) const {
        const auto& positions = function_->positions;
        const auto after = std::ranges::upper_bound(positions, pc, {}, &SourcePosition::pc);
        if (after != positions.begin() && std::prev(after)->line > 0) {
            diagnostic.source(std::prev(after)->file + ":" + std::to_string(std::prev(after)->line));
        }
        return std::move(diagnostic.function(function_->name).pc(pc));
    }

    Diagnostic refuse(std::int32_t pc, DiagnosticId id, std::string found) const {
        return at(pc, Diagnostic(id).found(std::move(found)));
    }

    template <class Table>
    Status check_index(std::int32_t pc, std::string_view what, std::int32_t index, const Table& table) const {
        if (index >= 0 && index < std::ssize(table)) return {};
        return refuse(pc, DiagnosticId::kIndexOutOfRange, std::string(what) + " " + std::to_string(index))
            .expected("0.." + std::to_string(std::ssize(table) - 1));
    }

    Status check_count(std::int32_t pc, std::int32_t count, std::int32_t least) const {
        if (count >= least && count <= kMaxStackDepth) return {};
        return refuse(pc, DiagnosticId::kBadOperand, std::to_string(count))
            .expected("a count from " + std::to_string(least) + " to " + std::to_string(kMaxStackDepth));
    }

    Status check_instructions() {
        next_site_ = 0;
        for (std::int32_t pc = 0; pc < std::ssize(function_->code); ++pc) FLEXOR_TRY(check_instruction(pc));
        if (next_site_ != std::ssize(function_->sites)) {
            return Diagnostic(DiagnosticId::kIndexOutOfRange)
                .function(function_->name)
                .found(some(std::ssize(function_->sites), "call site"))
                .expected(some(next_site_, "call site") + ", one for each CALL_OP");
        }
        return {};
    }

    Status check_instruction(std::int32_t pc) {
        const Instruction& instruction = function_->code[static_cast<std::size_t>(pc)];
        if (!is_opcode(static_cast<std::uint8_t>(instruction.op))) {
            return refuse(pc, DiagnosticId::kUnknownOpcode, std::to_string(static_cast<int>(instruction.op)));
        }
        const std::int32_t a = instruction.a;
        const OperandFormat format = opcode_info(instruction.op).format;
        const bool has_b = format == OperandFormat::kFunctionCount || format == OperandFormat::kHookCount;
        if ((!has_b && instruction.b != 0) || (format == OperandFormat::kNone && a != 0)) {
            return refuse(pc, DiagnosticId::kBadOperand, "an operand that the opcode does not have").expected("0");
        }
        switch (format) {
            case OperandFormat::kNone: return {};
            case OperandFormat::kConst: return check_constant(pc, instruction);
            case OperandFormat::kLocal: return check_index(pc, "local", a, function_->locals);
            case OperandFormat::kWeight: return check_index(pc, "weight", a, module_.weights);
            case OperandFormat::kSite:
                FLEXOR_TRY(check_index(pc, "call site", a, function_->sites));
                return check_site(pc, a);
            case OperandFormat::kFunctionCount: {
                FLEXOR_TRY(check_index(pc, "function", a, module_.functions));
                const Function& callee = module_.functions[static_cast<std::size_t>(a)];
                if (instruction.b == std::ssize(callee.params)) return {};
                return refuse(pc, DiagnosticId::kWrongArgumentCount, some(instruction.b, "argument"))
                    .operand(callee.name)
                    .expected(some(std::ssize(callee.params), "argument"));
            }
            case OperandFormat::kHookCount:
                FLEXOR_TRY(check_index(pc, "hook", a, module_.hooks));
                return check_count(pc, instruction.b, 0);
            case OperandFormat::kTarget: return check_target(pc, a);
            case OperandFormat::kCount: return check_count(pc, a, instruction.op == Opcode::kRotate ? 1 : 0);
            case OperandFormat::kAxis:
                if (a >= -kMaxRank && a < kMaxRank) return {};
                return refuse(pc, DiagnosticId::kBadOperand, "axis " + std::to_string(a)).expected("-12..11");
            case OperandFormat::kScalarOp:
                if (a >= 0 && a < kScalarOperatorCount) return {};
                return refuse(pc, DiagnosticId::kBadOperand, "scalar operator " + std::to_string(a));
        }
        FLEXOR_UNREACHABLE();
    }

    Status check_constant(std::int32_t pc, const Instruction& instruction) const {
        FLEXOR_TRY(check_index(pc, "constant", instruction.a, module_.constants));
        if (instruction.op == Opcode::kLoadConst) return {};
        const Constant& constant = module_.constants[static_cast<std::size_t>(instruction.a)];
        const auto* text = std::get_if<std::string>(&constant);
        if (text == nullptr) return refuse(pc, DiagnosticId::kBadOperand, "the constant").expected("a text");
        if (instruction.op == Opcode::kLoadFunction && module_.find_function(*text) < 0) {
            std::vector<std::string_view> names;
            for (const Function& function : module_.functions) names.push_back(function.name);
            return refuse(pc, DiagnosticId::kUnknownName, "function " + quoted(*text))
                .hint(support::near_miss_hint(*text, names));
        }
        return {};
    }

    Status check_target(std::int32_t pc, std::int32_t target) const {
        if (target < 0 || target >= std::ssize(function_->code)) {
            return refuse(pc, DiagnosticId::kBadBranchTarget, "target " + std::to_string(target));
        }
        if (target <= pc && function_->code[static_cast<std::size_t>(target)].op != Opcode::kLoopHead) {
            return refuse(pc, DiagnosticId::kMissingLoopHead, "target " + std::to_string(target))
                .hint("put LOOP_HEAD where the loop begins");
        }
        return {};
    }

    Status check_site(std::int32_t pc, std::int32_t index) {
        if (index != next_site_) {
            return refuse(pc, DiagnosticId::kIndexOutOfRange, "call site " + std::to_string(index))
                .expected("call site " + std::to_string(next_site_) + ": each is used once, in the order of the code");
        }
        ++next_site_;
        CallSite& site = function_->sites[static_cast<std::size_t>(index)];
        site.definition = ops::find_op(site.op);
        if (site.definition == nullptr) {
            const std::string_view nearest = ops::nearest_op_name(site.op);
            Diagnostic diagnostic = refuse(pc, DiagnosticId::kUnknownOp, quoted(site.op));
            if (!nearest.empty()) diagnostic.hint("did you mean '" + std::string(nearest) + "'?");
            return diagnostic;
        }
        for (const auto& [name, value] : site.attrs.items()) FLEXOR_TRY(check_attr_dims(pc, name, value));
        Expected<types::Attrs> attrs = ops::check_attrs(*site.definition, site.attrs);
        if (!attrs) return at(pc, std::move(attrs).error().op(site.op));
        site.attrs = *std::move(attrs);
        FLEXOR_TRY(check_operands(pc, site));
        if (ops::result_count(*site.definition, site.attrs) < 0) {
            return refuse(pc, DiagnosticId::kBadAttribute, "sizes taken from the stack")
                .op(site.op)
                .expected("a list: it decides how many results the op has");
        }
        return {};
    }

    Status check_attr_dims(std::int32_t pc, const std::string& name, const types::AttrValue& value) const {
        Status status;
        if (const auto* dim = std::get_if<types::Dim>(&value)) status = check_dim(*dim);
        if (const auto* list = std::get_if<types::DimList>(&value)) {
            for (const types::Dim& dim : *list) {
                if (status) status = check_dim(dim);
            }
        }
        if (status) return {};
        return at(pc, std::move(status).error().operand(name));
    }

    Status check_operands(std::int32_t pc, const CallSite& site) const {
        FLEXOR_TRY(check_count(pc, site.operand_count, 0));
        std::set<std::int64_t> from_stack;
        for (const auto& [name, value] : site.attrs.items()) {
            if (const auto* ref = std::get_if<types::OperandRef>(&value)) from_stack.insert(ref->index);
        }
        const std::int64_t given = site.operand_count - std::ssize(from_stack);
        if (!from_stack.empty() && (*from_stack.begin() != given || *from_stack.rbegin() != site.operand_count - 1)) {
            return refuse(pc, DiagnosticId::kBadAttribute, "$" + std::to_string(*from_stack.begin()))
                .op(site.op)
                .expected("attributes from the stack name the operands that follow the tensors, each of them");
        }
        const OperandBounds bounds = operand_bounds(*site.definition);
        if (given >= bounds.least && given <= bounds.most) return {};
        std::string expected = std::to_string(bounds.least);
        if (bounds.most == std::numeric_limits<std::int32_t>::max()) {
            expected += " or more";
        } else if (bounds.most != bounds.least) {
            expected += ".." + std::to_string(bounds.most);
        }
        return refuse(pc, DiagnosticId::kWrongOperandCount, some(given, "operand")).op(site.op).expected(expected);
    }

    // ------------------------------------------------------------ paths

    // State at the first instruction of a block.
    struct State {
        std::int32_t depth = 0;
        std::vector<bool> maybe_set;  // locals that some path has set
    };

    // Enters `state` at `pc`; false with a refusal if the depths differ.
    Status enter(std::int32_t from, std::int32_t pc, const State& state) {
        auto& known = blocks_[static_cast<std::size_t>(block_of_[static_cast<std::size_t>(pc)])];
        if (!known) {
            known = state;
            work_.push_back(pc);
            return {};
        }
        if (known->depth != state.depth) {
            return refuse(from, DiagnosticId::kStackDepthMismatch, some(state.depth, "value"))
                .expected(some(known->depth, "value") + " at pc " + std::to_string(pc));
        }
        bool grows = false;
        for (std::size_t i = 0; i < state.maybe_set.size(); ++i) {
            if (state.maybe_set[i] && !known->maybe_set[i]) {
                known->maybe_set[i] = true;
                grows = true;
            }
        }
        if (grows) work_.push_back(pc);
        return {};
    }

    Status check_flow() {
        const auto size = static_cast<std::int32_t>(function_->code.size());
        if (size == 0) return refuse(0, DiagnosticId::kMissingReturn, "no code");
        block_of_.assign(static_cast<std::size_t>(size), -1);
        std::int32_t blocks = 0;
        const auto leader = [&](std::int32_t pc) {
            if (pc < size && block_of_[static_cast<std::size_t>(pc)] < 0)
                block_of_[static_cast<std::size_t>(pc)] = blocks++;
        };
        leader(0);
        for (std::int32_t pc = 0; pc < size; ++pc) {
            const OpcodeInfo& info = opcode_info(function_->code[static_cast<std::size_t>(pc)].op);
            if (info.has_target()) leader(function_->code[static_cast<std::size_t>(pc)].a);
            if (info.ends_block()) leader(pc + 1);
        }
        if (static_cast<std::size_t>(blocks) * function_->locals.size() > kMaxFlowBits) {
            return limit(some(blocks, "block") + " with " + some(std::ssize(function_->locals), "local"),
                         static_cast<std::int64_t>(kMaxFlowBits / function_->locals.size()));
        }
        blocks_.assign(static_cast<std::size_t>(blocks), std::nullopt);
        work_.clear();
        function_->max_stack = 0;
        State entry;
        entry.maybe_set.assign(function_->locals.size(), false);
        std::fill_n(entry.maybe_set.begin(), function_->params.size(), true);
        FLEXOR_TRY(enter(0, 0, entry));
        while (!work_.empty()) {
            const std::int32_t pc = work_.back();
            work_.pop_back();
            FLEXOR_TRY(follow(pc));
        }
        return {};
    }

    // From the first instruction of a block to its end.
    Status follow(std::int32_t pc) {
        State state = *blocks_[static_cast<std::size_t>(block_of_[static_cast<std::size_t>(pc)])];
        for (;;) {
            const Instruction& instruction = function_->code[static_cast<std::size_t>(pc)];
            const OpcodeInfo& info = opcode_info(instruction.op);
            FLEXOR_TRY(step(pc, instruction, state));
            if (info.has_target()) FLEXOR_TRY(enter(pc, instruction.a, state));
            if (info.never_falls_through()) return {};
            if (++pc == std::ssize(function_->code)) {
                return refuse(pc - 1, DiagnosticId::kMissingReturn, std::string(info.mnemonic));
            }
            if (block_of_[static_cast<std::size_t>(pc)] >= 0) return enter(pc - 1, pc, state);
        }
    }

    Status step(std::int32_t pc, const Instruction& instruction, State& state) {
        const std::optional<StackEffect> effect = stack_effect(module_, *function_, instruction);
        FLEXOR_CHECK(effect.has_value());
        if (state.depth < effect->pops) {
            return refuse(pc, DiagnosticId::kStackUnderflow, some(state.depth, "value") + " on the stack")
                .expected(some(effect->pops, "value") + " for " + std::string(opcode_info(instruction.op).mnemonic));
        }
        state.depth += effect->pushes - effect->pops;
        if (state.depth > kMaxStackDepth) {
            return at(pc, limit("a stack of " + some(state.depth, "value"), kMaxStackDepth));
        }
        function_->max_stack = std::max(function_->max_stack, state.depth);
        const auto local = static_cast<std::size_t>(instruction.a);
        switch (instruction.op) {
            case Opcode::kLoadLocal:
                if (!state.maybe_set[local]) {
                    return refuse(pc, DiagnosticId::kUndefinedLocal, quoted(function_->locals[local]));
                }
                break;
            case Opcode::kStoreLocal: state.maybe_set[local] = true; break;
            case Opcode::kDeleteLocal: state.maybe_set[local] = false; break;
            case Opcode::kReturn:
                if (instruction.a != function_->result_count) {
                    return refuse(pc, DiagnosticId::kWrongResultCount, some(instruction.a, "value"))
                        .expected(some(function_->result_count, "result"));
                }
                if (state.depth != 0) {
                    return refuse(pc, DiagnosticId::kUnusedStackValues, some(state.depth, "value") + " left")
                        .expected("none");
                }
                break;
            default: break;
        }
        return {};
    }

    Module& module_;
    Function* function_ = nullptr;
    std::int32_t next_site_ = 0;
    std::vector<std::int32_t> block_of_;  // per pc: block that it begins, or -1
    std::vector<std::optional<State>> blocks_;
    std::vector<std::int32_t> work_;
};

}  // namespace

Expected<ModuleRef> verify(Module module) {
    static std::atomic<std::uint64_t> next_id{1};
    FLEXOR_TRY(Verifier(module).verify());
    // A Builder may make several Modules, which then share their weights.
    for (Weight& weight : module.weights) {
        if (!weight.tensor.is_read_only()) weight.tensor.refuse_writes(DiagnosticId::kReadOnlyArgument);
    }
    module.id = next_id.fetch_add(1, std::memory_order_relaxed);
    module.verified = true;
    return ModuleRef(std::make_shared<const Module>(std::move(module)));
}

}  // namespace flexor::bytecode
