#pragma once
// One function invocation on the stack machine.
#include <optional>
#include <string>

#include "vm/engine.h"

namespace flexor::vm {

class Interpreter {
public:
    Interpreter(Engine& engine, Engine::Run& run, std::int32_t function);

    // Locals from arguments; `reason` says why this function is interpreted ("": a region may be tried).
    void begin(std::span<const Value> arguments, std::string reason);
    void bind(SymbolValues symbols) { symbols_ = std::move(symbols); }
    void skip_first_look_up() { tried_ = try_next_ = true; }
    // Goes on where a region stopped. `entry_pc` is where the region began.
    void resume(TapeResult tape, std::int32_t entry_pc);
    // The pool refused memory, or `why`: no region is tried in this invocation.
    void suspend(std::uint64_t refused_bytes, const std::string& why);

    // The region is being compiled: none is tried before the next call of the host, where it may end.
    void wait() { waits_ = true; }

    Expected<void> run(std::vector<Value>& results);

private:
    enum class Flow : std::uint8_t { kNext, kReturned };

    Expected<Flow> step(std::vector<Value>& results);
    // Tries a region at pc_. kReturned: results are there. Otherwise the frame is where interpretation goes on.
    Expected<Flow> try_region(std::vector<Value>& results);
    Expected<void> call_site(std::int32_t index);
    Expected<void> refuse_fixed_write(const bytecode::CallSite& site, std::span<const Value> operands) const;
    // The op as a compiled region of its own; false: there is none.
    Expected<bool> call_one_op(std::int32_t index, std::span<const Value> operands, std::vector<Value>& results);
    Expected<void> call_function(std::int32_t function, std::size_t count);
    Expected<void> call_foreign(std::int32_t hook, std::size_t count);
    Expected<void> call_value(std::size_t count);
    Expected<void> get_attribute(const std::string& name);
    Expected<void> fetch_top();
    Expected<void> scalar(bytecode::ScalarOperator op);
    Expected<void> list_op(const bytecode::Instruction& inst);
    Expected<void> shape_op(const bytecode::Instruction& inst);
    Expected<const SymbolValues*> symbols();

    Value pop();
    void push(Value value) { stack_.push_back(std::move(value)); }
    Expected<std::size_t> list_index(const ValueList& list, const Value& index) const;
    Diagnostic wrong_kind(const Value& value, std::string expected) const;
    std::string fallback_reason() const;
    void record(std::string_view op, std::string_view reason, std::uint64_t start) const;
    const std::string& text_constant(std::int32_t index) const;

    Engine& engine_;
    Engine::Run& run_;
    const bytecode::Module& module_;
    const bytecode::Function& function_;
    std::int32_t function_index_;
    std::vector<Value> locals_, stack_;
    std::vector<Value> arguments_;  // kept only where symbols may have to be bound later
    std::optional<SymbolValues> symbols_;
    std::int32_t pc_ = 0;
    std::string reason_;  // why the next instructions are interpreted
    bool tried_ = false;  // a region was tried at pc_ already
    bool suspended_ = false;
    bool waits_ = false;
    bool try_next_ = false;  // a region is tried after the next instruction
};

}  // namespace flexor::vm
