#include "vm/interpreter.h"

#include <algorithm>

#include "bytecode/scalar.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "vm/op_call.h"

namespace flexor::vm {

using bytecode::Instruction;
using bytecode::Opcode;

namespace {

// Safe points that the opcode table states ("safe point after it").
constexpr bool safe_point_after(Opcode op) {
    switch (op) {
#define X(enumerator, number, format, pops, pushes, flags, sentence) \
    case Opcode::enumerator: return ((flags) & 4) != 0;
#include "bytecode/opcodes.def"
#undef X
    }
    return false;
}

Value constant_value(const bytecode::Constant& constant) {
    return std::visit(
        [](const auto& value) -> Value {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, bytecode::None>) {
                return Value();
            } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
                ValueList elements;
                for (const std::int64_t element : value) elements.emplace_back(element);
                return Value::list(std::move(elements));
            } else {
                return Value(value);
            }
        },
        constant);
}

}  // namespace

Interpreter::Interpreter(Engine& engine, Engine::Run& run, std::int32_t function)
    : engine_(engine),
      run_(run),
      module_(*run.module),
      function_(run.module->functions[static_cast<std::size_t>(function)]),
      function_index_(function) {}

void Interpreter::begin(std::span<const Value> arguments, std::string reason) {
    locals_.assign(arguments.begin(), arguments.end());
    locals_.resize(function_.locals.size(), Value::unset());
    stack_.reserve(static_cast<std::size_t>(std::max(function_.max_stack, 0)));
    reason_ = std::move(reason);
    // Not needed where run() has bound them already; cheap beside interpretation.
    if (!run_.thread_module->state->facts[static_cast<std::size_t>(function_index_)].symbols.empty())
        arguments_.assign(arguments.begin(), arguments.end());
}

void Interpreter::resume(TapeResult tape, std::int32_t entry_pc) {
    const bool moved = tape.pc != entry_pc;
    locals_ = std::move(tape.locals);
    locals_.resize(function_.locals.size(), Value::unset());
    stack_ = std::move(tape.stack);
    pc_ = tape.pc;
    reason_ = *tape.reason;
    // A planned safe point (a loop head) is another region's beginning; elsewhere the instruction at pc is what the
    // region could not do.
    const bool loop_head = function_.code[static_cast<std::size_t>(pc_)].op == Opcode::kLoopHead;
    tried_ = !(moved && loop_head);
    try_next_ = tried_;
}

void Interpreter::suspend(std::uint64_t refused_bytes, const std::string& why) {
    suspended_ = true;
    if (!why.empty()) {
        reason_ = why;
        return;
    }
    reason_ = "hard_limit";
    Event event;
    event.kind = "hard_limit";
    event.function = function_.name;
    event.line = function_.line_at(pc_);
    event.bytes = refused_bytes;
    event.text = "the region is run op by op: the pool refused " + support::text_from_bytes(refused_bytes);
    engine_.telemetry_->record_event(std::move(event));
}

Value Interpreter::pop() {
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
}

const std::string& Interpreter::text_constant(std::int32_t index) const {
    return std::get<std::string>(module_.constants[static_cast<std::size_t>(index)]);
}

Diagnostic Interpreter::wrong_kind(const Value& value, std::string expected) const {
    return Diagnostic(DiagnosticId::kValueKindMismatch).found(value.describe()).expected(std::move(expected));
}

std::string Interpreter::fallback_reason() const {
    if (engine_.compiler_ == nullptr) return "compile_off";
    return reason_.empty() ? "not_compiled" : reason_;
}

void Interpreter::record(std::string_view op, std::string_view reason, std::uint64_t start) const {
    engine_.telemetry_->record_fallback(*run_.context.shard, op, reason, function_.name, function_.line_at(pc_),
                                        runtime::now_ns() - start);
}

Expected<const SymbolValues*> Interpreter::symbols() {
    if (!symbols_) {
        FLEXOR_ASSIGN(symbols_, check_arguments(module_, function_, arguments_,
                                                run_.device != nullptr ? run_.device->place() : Device{}));
    }
    return &*symbols_;
}

// ---------------------------------------------------------------- the loop

Expected<void> Interpreter::run(std::vector<Value>& results) {
    for (;;) {
        const Opcode op = function_.code[static_cast<std::size_t>(pc_)].op;
        const bool compiles = engine_.compiler_ != nullptr && !suspended_ && !waits_;
        if (op == Opcode::kLoopHead && run_.stop->poll()) {
            return located(Diagnostic(DiagnosticId::kInterrupted), module_, function_index_, pc_);
        }
        if (compiles && !tried_ && (try_next_ || op == Opcode::kLoopHead || (pc_ == 0 && stack_.empty()))) {
            try_next_ = false;
            auto flow = try_region(results);
            if (!flow) return std::move(flow).error();
            if (*flow == Flow::kReturned) return {};
            continue;
        }
        tried_ = false;
        const std::int32_t at = pc_;
        auto flow = step(results);
        if (!flow) return located(std::move(flow).error(), module_, function_index_, at);
        if (*flow == Flow::kReturned) return {};
        // An op that had to be interpreted, and whatever the table names, end at a safe point.
        if (op != Opcode::kLoopHead && safe_point_after(op)) waits_ = false;
        if (op == Opcode::kCallOp || op == Opcode::kCall || (op != Opcode::kLoopHead && safe_point_after(op)))
            try_next_ = true;
    }
}

Expected<Interpreter::Flow> Interpreter::try_region(std::vector<Value>& results) {
    TapeResult tape;
    const std::int32_t entry_pc = pc_;
    {
        ScratchLease scratch(run_.context);
        const auto& facts = run_.thread_module->state->facts[static_cast<std::size_t>(function_index_)];
        LiveValues live{locals_, stack_,       static_cast<std::uint32_t>(function_.locals.size()),
                        {},      facts.writes, entry_pc != 0 && facts.grows_lists};
        if (run_.device != nullptr) live.device = run_.device->place();
        if (!facts.symbols.empty() && entry_pc != 0) {
            FLEXOR_ASSIGN(const SymbolValues* values, symbols());
            // A region knows all of them or none: the interpreter refuses those that no argument binds.
            const bool all = std::ranges::all_of(facts.symbols, [&](types::SymbolId id) { return values->bound[id]; });
            if (all) live.symbols = values->values;
        }
        Engine::Found found;
        engine_.look_up(run_, function_index_, pc_, live, *scratch, found);
        if (found.error != nullptr) return std::move(*found.error);
        if (found.entry == nullptr || found.entry->executable == nullptr) {
            if (found.entry != nullptr) reason_ = found.entry->reason;
            waits_ = found.waits;
            if (waits_) reason_ = "being_compiled";
            tried_ = true;
            try_next_ = true;  // law E3: one instruction, then again
            return Flow::kNext;
        }
        TapeContext context{&run_.context.cache,
                            &run_.context.arena,
                            &run_.context.workspace,
                            run_.context.shard.get(),
                            run_.one_op ? nullptr : engine_.telemetry_,
                            run_.module.get(),
                            function_index_,
                            &run_.call,
                            run_.stop,
                            run_.one_op ? engine_.pool_.get() : nullptr,
                            {},
                            run_.device,
                            run_.profile(),
                            run_.journal};
        run_tape(*found.entry, live, *scratch, context, results, tape);
        if (tape.end != TapeEnd::kRefused && !run_.one_op)
            run_.context.shard->compiled_ops.add(found.entry->executable->op_count);
    }
    switch (tape.end) {
        case TapeEnd::kReturned: return Flow::kReturned;
        case TapeEnd::kFailed: return std::move(*tape.error);
        case TapeEnd::kRefused: suspend(tape.refused_bytes, tape.refusal); return Flow::kNext;
        case TapeEnd::kExited:
            run_.context.shard->region_exits.add();
            resume(std::move(tape), entry_pc);
            return Flow::kNext;
    }
    FLEXOR_UNREACHABLE();
}

Expected<Interpreter::Flow> Interpreter::step(std::vector<Value>& results) {
    const Instruction inst = function_.code[static_cast<std::size_t>(pc_)];
    const auto index = static_cast<std::size_t>(inst.a);
    std::int32_t next = pc_ + 1;
    switch (inst.op) {
        case Opcode::kNop:
        case Opcode::kLoopHead:
        case Opcode::kFrozen: break;
        case Opcode::kLoadConst: push(constant_value(module_.constants[index])); break;
        case Opcode::kLoadLocal:
            if (locals_[index].is_unset()) {
                return Diagnostic(DiagnosticId::kUndefinedLocal).operand(function_.locals[index]);
            }
            push(locals_[index]);
            break;
        case Opcode::kStoreLocal: locals_[index] = pop(); break;
        case Opcode::kDeleteLocal: locals_[index] = Value::unset(); break;
        case Opcode::kLoadWeight:
            if (run_.device == nullptr) {
                push(Value(module_.weights[index].tensor));
            } else {
                FLEXOR_ASSIGN(Tensor weight, run_.device->weight(module_, static_cast<std::uint32_t>(index)));
                push(Value(std::move(weight)));
            }
            break;
        case Opcode::kLoadNone: push(Value()); break;
        case Opcode::kPop: stack_.pop_back(); break;
        case Opcode::kDup: push(stack_.back()); break;
        case Opcode::kSwap: std::swap(stack_[stack_.size() - 1], stack_[stack_.size() - 2]); break;
        case Opcode::kRotate:
            if (index > 1) std::rotate(stack_.end() - inst.a, stack_.end() - 1, stack_.end());
            break;
        case Opcode::kCallOp: FLEXOR_TRY(call_site(inst.a)); break;
        case Opcode::kCall: FLEXOR_TRY(call_function(inst.a, static_cast<std::size_t>(inst.b))); break;
        case Opcode::kCallForeign: FLEXOR_TRY(call_foreign(inst.a, static_cast<std::size_t>(inst.b))); break;
        case Opcode::kCallValue: FLEXOR_TRY(call_value(index)); break;
        case Opcode::kGetAttribute: FLEXOR_TRY(get_attribute(text_constant(inst.a))); break;
        case Opcode::kJump: next = inst.a; break;
        case Opcode::kBranchIfTrue:
        case Opcode::kBranchIfFalse: {
            FLEXOR_TRY(fetch_top());
            FLEXOR_ASSIGN(const bool condition, bytecode::truth(stack_.back()));
            stack_.pop_back();
            if (condition == (inst.op == Opcode::kBranchIfTrue)) next = inst.a;
            break;
        }
        case Opcode::kBranchIfNull:
        case Opcode::kBranchIfNotNull: {
            const bool none = pop().is_none();
            if (none == (inst.op == Opcode::kBranchIfNull)) next = inst.a;
            break;
        }
        case Opcode::kReturn:
            results.insert(results.end(), std::make_move_iterator(stack_.end() - inst.a),
                           std::make_move_iterator(stack_.end()));
            return Flow::kReturned;
        case Opcode::kBuildList: {
            ValueList elements(std::make_move_iterator(stack_.end() - inst.a), std::make_move_iterator(stack_.end()));
            stack_.resize(stack_.size() - index);
            push(Value::list(std::move(elements)));
            break;
        }
        case Opcode::kListAppend:
        case Opcode::kListGet:
        case Opcode::kListSet:
        case Opcode::kListLength:
        case Opcode::kUnpack: FLEXOR_TRY(list_op(inst)); break;
        case Opcode::kBuildDict: {
            ValueDict items;
            const std::size_t first = stack_.size() - 2 * index;
            for (std::size_t i = 0; i < index; ++i) {
                Value& key = stack_[first + 2 * i];
                if (!key.is_string()) return wrong_kind(key, "a string as key");
                const auto same = std::find_if(items.begin(), items.end(),
                                               [&](const auto& item) { return item.first == key.text(); });
                if (same != items.end())
                    same->second = std::move(stack_[first + 2 * i + 1]);
                else
                    items.emplace_back(key.text(), std::move(stack_[first + 2 * i + 1]));
            }
            stack_.resize(first);
            push(Value::dict(std::move(items)));
            break;
        }
        case Opcode::kDictGet: {
            const Value dict = pop();
            if (!dict.is_dict()) return wrong_kind(dict, "a dict");
            const std::string& key = text_constant(inst.a);
            const Value* value = dict.find(key);
            if (value == nullptr) {
                std::vector<std::string_view> names;
                for (const auto& item : dict.items()) names.emplace_back(item.first);
                return Diagnostic(DiagnosticId::kUnknownName)
                    .operand("key")
                    .found(support::quote(key))
                    .hint(support::near_miss_hint(key, names));
            }
            push(*value);
            break;
        }
        case Opcode::kGetDim:
        case Opcode::kGetRank:
        case Opcode::kGetShape: FLEXOR_TRY(shape_op(inst)); break;
        case Opcode::kItem: {
            FLEXOR_TRY(fetch_top());
            FLEXOR_ASSIGN(Value value, bytecode::item(stack_.back()));
            stack_.back() = std::move(value);
            break;
        }
        case Opcode::kScalar: FLEXOR_TRY(scalar(static_cast<bytecode::ScalarOperator>(inst.a))); break;
        case Opcode::kAssert: {
            FLEXOR_TRY(fetch_top());
            const Value condition = pop();
            FLEXOR_ASSIGN(const bool holds, bytecode::truth(condition));
            if (!holds) return Diagnostic(DiagnosticId::kAssertionFailed).expected(text_constant(inst.a));
            break;
        }
        case Opcode::kLoadFunction: push(Value::function(text_constant(inst.a))); break;
        case Opcode::kLoadForeign: {
            Value value;
            const std::string& name = text_constant(inst.a);
            if (!engine_.hooks_->value(name, &value))
                return Diagnostic(DiagnosticId::kMissingHook).operand(name).hint("bind_value supplies it");
            push(std::move(value));
            break;
        }
    }
    pc_ = next;
    return Flow::kNext;
}

// ---------------------------------------------------------------- calls

Expected<bool> Interpreter::call_one_op(std::int32_t index, std::span<const Value> operands,
                                        std::vector<Value>& results) {
    if (!suspended_ || run_.one_op) return false;
    const bytecode::ModuleRef module = run_.thread_module->state->one_op_module(module_, function_index_, index);
    if (module == nullptr) return false;
    static const CallOptions kPlain{};
    Engine::Run inner{
        module,     engine_.thread_module(run_.context, module), run_.context, kPlain, run_.stop, nullptr, true, {},
        run_.device};
    auto done = engine_.call_function(inner, 0, operands, results);
    if (done) return true;
    // The place is this function's, not that of the function made for the op.
    return std::move(done).error().function(function_.name).pc(pc_).source("");
}

namespace {

// The tensor that the op writes to; null: none.
const Tensor* written_operand(const bytecode::CallSite& site, std::span<const Value> operands) {
    if (site.definition->effects.value != ops::Effects::kWritesFirst || operands.empty() || !operands[0].is_tensor())
        return nullptr;
    return &operands[0].tensor();
}

}  // namespace

// A Module is immutable and shared: its weights are no target of a write, nor is memory that its owner relies on.
// Compiled regions leave such writes to this check.
Expected<void> Interpreter::refuse_fixed_write(const bytecode::CallSite& site, std::span<const Value> operands) const {
    const Tensor* target = written_operand(site, operands);
    if (target == nullptr || target->storage()->write_refusal == DiagnosticId{}) return {};
    for (const bytecode::Weight& weight : module_.weights) {
        if (weight.tensor.storage() != target->storage()) continue;
        return Diagnostic(DiagnosticId::kBadOperand)
            .op(site.op)
            .found("weight " + weight.name)
            .expected("memory that the Module does not own")
            .hint("write to a clone of the weight");
    }
    return Diagnostic(target->storage()->write_refusal)
        .op(site.op)
        .hint(target->is_read_only() ? "pass a copy" : "pass a clone, or call under torch.inference_mode()");
}

Expected<void> Interpreter::call_site(std::int32_t index) {
    const bytecode::CallSite& site = function_.sites[static_cast<std::size_t>(index)];
    const std::uint64_t start = runtime::now_ns();
    const auto count = static_cast<std::size_t>(site.operand_count);
    std::vector<Value> results;
    const SymbolSource source = [this] { return symbols(); };
    const std::span<const Value> operands(stack_.data() + stack_.size() - count, count);
    FLEXOR_TRY(refuse_fixed_write(site, operands));
    if (const Tensor* target = run_.journal != nullptr ? written_operand(site, operands) : nullptr) {
        if (!run_.journal->keep(*target)) return Diagnostic(DiagnosticId::kOutOfMemory).op(site.op);
    }
    FLEXOR_ASSIGN(const bool compiled, call_one_op(index, operands, results));
    if (!compiled) {
        const runtime::StopScope scope(run_.stop, runtime::StopScope::Role::kOwner);
        FLEXOR_TRY(vm::call_op(site, operands, module_.promotion, source, *engine_.pool_, run_.device, results));
        if (const Tensor* written = written_operand(site, operands)) written->note_write();
    }
    stack_.resize(stack_.size() - count);
    for (Value& result : results) push(std::move(result));
    if (!run_.one_op) record(site.op, fallback_reason(), start);
    if (run_.stop->poll()) return Diagnostic(DiagnosticId::kInterrupted);
    return {};
}

Expected<void> Interpreter::call_function(std::int32_t function, std::size_t count) {
    ThreadContext& context = run_.context;
    if (context.call_depth >= engine_.options_.max_call_depth) {
        return Diagnostic(DiagnosticId::kCallDepthLimit)
            .operand(module_.functions[static_cast<std::size_t>(function)].name)
            .expected("at most " + std::to_string(engine_.options_.max_call_depth) + " nested calls");
    }
    struct Depth {
        std::uint32_t& depth;
        explicit Depth(std::uint32_t& d) : depth(d) { ++depth; }
        ~Depth() { --depth; }
    } depth(context.call_depth);
    std::vector<Value> results;
    const std::span<const Value> arguments(stack_.data() + stack_.size() - count, count);
    FLEXOR_TRY(engine_.call_function(run_, function, arguments, results));
    stack_.resize(stack_.size() - count);
    for (Value& result : results) push(std::move(result));
    return {};
}

Expected<void> Interpreter::call_foreign(std::int32_t hook, std::size_t count) {
    const std::string& name = module_.hooks[static_cast<std::size_t>(hook)];
    const auto bound = engine_.hooks_->function(name);
    if (bound == nullptr) {
        return Diagnostic(DiagnosticId::kMissingHook).operand(name).hint("bind supplies it");
    }
    const std::uint64_t start = runtime::now_ns();
    auto result = bound->function(std::span<const Value>(stack_.data() + stack_.size() - count, count));
    if (bound->is_typed)
        run_.context.shard->typed_calls.add();
    else
        record("foreign " + name, "foreign", start);
    if (!result) return std::move(result).error();
    stack_.resize(stack_.size() - count);
    push(std::move(*result));
    return {};
}

Expected<void> Interpreter::call_value(std::size_t count) {
    const std::size_t at = stack_.size() - count - 1;
    const Value callee = stack_[at];
    if (callee.is_function()) {
        const std::int32_t function = module_.find_function(callee.text());
        if (function < 0) return Diagnostic(DiagnosticId::kUnknownName).operand("function").found(callee.text());
        const bytecode::Function& f = module_.functions[static_cast<std::size_t>(function)];
        if (f.params.size() != count) {
            return Diagnostic(DiagnosticId::kWrongArgumentCount)
                .operand(f.name)
                .found(std::to_string(count) + " arguments")
                .expected(std::to_string(f.params.size()));
        }
        FLEXOR_TRY(call_function(function, count));
        // The callee lies below its results; one result is itself, more are a list.
        const std::size_t results = stack_.size() - at - 1;
        Value result;
        if (results == 1) {
            result = pop();
        } else if (results > 1) {
            ValueList elements(std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(at) + 1),
                               std::make_move_iterator(stack_.end()));
            result = Value::list(std::move(elements));
        }
        stack_.resize(at);
        push(std::move(result));
        return {};
    }
    if (!callee.is_foreign()) return wrong_kind(callee, "a function or foreign value");
    const std::shared_ptr<Foreign> object = callee.foreign_object();
    const std::uint64_t start = runtime::now_ns();
    auto result = object->call(std::span<const Value>(stack_.data() + at + 1, count));
    record(object->describe(), "foreign", start);
    if (!result) return std::move(result).error();
    stack_.resize(at);
    push(std::move(*result));
    return {};
}

Expected<void> Interpreter::get_attribute(const std::string& name) {
    const Value value = pop();
    if (!value.is_foreign()) return wrong_kind(value, "a foreign value");
    const std::uint64_t start = runtime::now_ns();
    auto result = value.foreign_object()->attribute(name);
    record("foreign ." + name, "foreign", start);
    if (!result) return std::move(result).error();
    push(std::move(*result));
    return {};
}

// ---------------------------------------------------------------- scalars, lists, shapes

// What is about to be read as a scalar lies in host memory.
Expected<void> Interpreter::fetch_top() {
    Value& top = stack_.back();
    if (run_.device == nullptr || !top.is_tensor() || top.tensor().numel() != 1) return {};
    FLEXOR_ASSIGN(Tensor fetched, run_.device->to_host(top.tensor()));
    top = Value(std::move(fetched));
    return {};
}

Expected<void> Interpreter::scalar(bytecode::ScalarOperator op) {
    if (is_unary(op)) {
        FLEXOR_TRY(fetch_top());
        FLEXOR_ASSIGN(Value result, bytecode::scalar_unary(op, stack_.back()));
        stack_.back() = std::move(result);
        return {};
    }
    const std::size_t top = stack_.size();
    FLEXOR_ASSIGN(Value result, bytecode::scalar_binary(op, stack_[top - 2], stack_[top - 1]));
    stack_.pop_back();
    stack_.back() = std::move(result);
    return {};
}

Expected<std::size_t> Interpreter::list_index(const ValueList& list, const Value& index) const {
    if (!index.is_int() && !index.is_bool()) return wrong_kind(index, "an integer index");
    const auto size = static_cast<std::int64_t>(list.size());
    const std::int64_t at = index.integer() < 0 ? index.integer() + size : index.integer();
    if (at < 0 || at >= size) {
        return Diagnostic(DiagnosticId::kElementIndexOutOfRange)
            .operand("list")
            .found(index.describe())
            .expected("an index of a list of " + std::to_string(size));
    }
    return static_cast<std::size_t>(at);
}

Expected<void> Interpreter::list_op(const Instruction& inst) {
    switch (inst.op) {
        case Opcode::kListAppend: {
            Value value = pop();
            Value& list = stack_.back();
            if (!list.is_list()) return wrong_kind(list, "a list");
            list.mutable_elements().push_back(std::move(value));
            return {};
        }
        case Opcode::kListGet: {
            const Value index = pop();
            const Value list = pop();
            if (!list.is_list()) return wrong_kind(list, "a list");
            FLEXOR_ASSIGN(const std::size_t at, list_index(list.elements(), index));
            push(list.elements()[at]);
            return {};
        }
        case Opcode::kListSet: {
            Value value = pop();
            const Value index = pop();
            Value& list = stack_.back();
            if (!list.is_list()) return wrong_kind(list, "a list");
            FLEXOR_ASSIGN(const std::size_t at, list_index(list.elements(), index));
            list.mutable_elements()[at] = std::move(value);
            return {};
        }
        case Opcode::kListLength: {
            const Value list = pop();
            if (!list.is_list()) return wrong_kind(list, "a list");
            push(Value(static_cast<std::int64_t>(list.elements().size())));
            return {};
        }
        case Opcode::kUnpack: {
            const Value list = pop();
            if (!list.is_list()) return wrong_kind(list, "a list");
            if (list.elements().size() != static_cast<std::size_t>(inst.a)) {
                return Diagnostic(DiagnosticId::kValueKindMismatch)
                    .found("a list of " + std::to_string(list.elements().size()))
                    .expected("a list of " + std::to_string(inst.a));
            }
            for (const Value& element : list.elements()) push(element);
            return {};
        }
        default: FLEXOR_UNREACHABLE();
    }
}

Expected<void> Interpreter::shape_op(const Instruction& inst) {
    const Value value = pop();
    if (!value.is_tensor()) return wrong_kind(value, "a tensor");
    const Tensor& tensor = value.tensor();
    if (inst.op == Opcode::kGetRank) {
        push(Value(static_cast<std::int64_t>(tensor.rank())));
        return {};
    }
    if (inst.op == Opcode::kGetShape) {
        ValueList sizes;
        for (const std::int64_t size : tensor.sizes()) sizes.emplace_back(size);
        push(Value::list(std::move(sizes)));
        return {};
    }
    const std::int32_t axis = inst.a < 0 ? inst.a + tensor.rank() : inst.a;
    if (axis < 0 || axis >= tensor.rank()) {
        return Diagnostic(DiagnosticId::kAxisOutOfRange)
            .found("axis " + std::to_string(inst.a))
            .expected("an axis of " + value.describe());
    }
    push(Value(tensor.size(axis)));
    return {};
}

}  // namespace flexor::vm
