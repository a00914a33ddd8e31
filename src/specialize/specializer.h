#pragma once
// The state of one specialisation attempt. entry.cpp builds the entry, walk.cpp follows control flow, merge.cpp joins
// states, instructions.cpp, lists.cpp and scalars.cpp give each opcode its abstract meaning.
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "specialize/flow.h"
#include "specialize/specialize.h"
#include "support/diagnostic.h"

namespace flexor::specialize {

using specialised::Block;
using specialised::ConstScalar;
using specialised::ElementType;
using specialised::Inst;
using specialised::InstKind;
using specialised::kNoReg;
using specialised::LiveValue;
using specialised::Program;
using specialised::Reg;
using specialised::Register;
using specialised::Target;
using specialised::Terminator;
using types::Dim;
using types::Truth;

inline bool is_integral(const LiveValue& v) {
    return v.kind == LiveValue::Kind::kInt || v.kind == LiveValue::Kind::kBool;
}

// Abstract VM frame.
struct State {
    std::vector<LiveValue> locals;
    std::vector<LiveValue> stack;
};

// A state that arrives at a leader: terminator target `target` of block `block` is still to be filled.
struct Incoming {
    std::uint32_t block;
    std::size_t target;
    State state;
};

// Decisions that hold over restarts of the attempt.
struct Knowledge {
    std::set<std::string> widened;                               // "leader/path/what": carried dims that became symbols
    std::set<std::pair<std::int32_t, std::int32_t>> kept_calls;  // (function, pc) of calls that are not inlined
    std::map<std::string, specialised::ElementType> lists;       // "leader/path": lists that grow in the loop
};

struct Returned {
    std::uint32_t block;
    std::vector<LiveValue> values;
    State caller;
};

class Specializer {
public:
    Specializer(const Region& region, Knowledge& knowledge)
        : region_(region), module_(*region.module), known_(knowledge) {}

    // False when the attempt must restart with what `knowledge` has learned, or failed (error()).
    bool run();
    bool must_restart() const { return restart_; }
    std::optional<Diagnostic>& error() { return error_; }
    Program take() { return std::move(program_); }

private:
    // entry.cpp
    State build_entry();
    LiveValue entry_value(const executable::LiveSignature& signature, const bytecode::ParamDecl* decl,
                          const std::string& name, std::uint32_t& slot, std::uint32_t& ordinal);
    Dim entry_size(const bytecode::ParamDecl* decl, std::size_t axis, const std::string& name, std::uint32_t slot);
    Dim slot_symbol(const std::string& name, std::uint32_t slot, types::Range range);
    void guard(ops::Relation relation, const Dim& a, const Dim& b);
    struct DeferredDim {
        Dim declared, size;
    };
    void bind_deferred_dims();
    bool bind_by_solving(const DeferredDim& dim);
    std::vector<types::SymbolId> unbound(const Dim& declared) const;  // symbols of the module that nothing has bound
    Dim over_entry(const Dim& declared) const;                        // a dim over bound symbols of the module

    // walk.cpp
    void walk(const bytecode::Function& function, std::int32_t function_index, State entry, std::int32_t start,
              std::vector<Returned>* returns);
    bool open_leader(std::int32_t leader, std::vector<Incoming>& incoming, State& state);
    void run_block(std::int32_t leader, State& state);
    void send(std::int32_t to, std::uint32_t block, std::size_t target, const State& state);
    void branch(std::int32_t pc, State& state);
    void leave(std::int32_t pc, const State& state, std::string reason);
    bool ends_at_once(std::int32_t pc) const;
    bool call(std::int32_t callee, std::int32_t count, std::int32_t pc, State& state);
    bool bind_parameters(const bytecode::Function& function, State& inner, std::int32_t pc);
    std::uint32_t new_block();

    // merge.cpp
    bool join(std::int32_t leader, std::vector<Incoming>& incoming, State& state);
    void open_loop(std::int32_t leader, State& state);
    void close_loop(std::int32_t leader, std::uint32_t block, std::size_t target, const State& state);
    bool same(const LiveValue& a, const LiveValue& b) const;
    bool join_value(const std::string& path, std::vector<Incoming>& incoming,
                    const std::vector<const LiveValue*>& values, std::uint32_t block, LiveValue& out);
    LiveValue carry(const std::string& path, const LiveValue& value, std::uint32_t block, Target& entry);
    bool feed(const LiveValue& carried, const LiveValue& value, const std::string& path, std::uint32_t block,
              Target& out);
    Reg as_register(const LiveValue& value,
                    std::uint32_t block);  // constants become instructions at the end of `block`

    // memory.cpp
    // Whose memory a root register names. Memory made by an instruction of the region is nobody else's.
    struct Memory {
        bool outer = false;            // an argument or weight
        bool fixed = false;            // a weight of the module, or read-only
        bool overlaps = false;         // elements of its own may share memory
        int argument = -1;             // position among the arguments
        std::uint8_t exact_group = 0;  // arguments of one group are one and the same view
        bool param = false;            // whatever the jumps to its block pass on:
        std::vector<Reg> from;         //   roots that were there before the block
        bool made = false;             //   what an earlier pass of the loop made
        bool any = false;              //   anything
        std::uint32_t block = 0;       // where the register is defined
    };
    const Memory& memory(Reg root) const;
    void bind_outer(Reg reg, Memory memory) { memory_[reg] = std::move(memory); }
    void bind_param(Reg reg, std::uint32_t to, std::span<const Reg> sources, const std::string& path);
    void feed_param(Reg param, Reg value, const std::string& path);
    bool covers(Reg param, Reg root) const;
    bool brings_made(Reg param, Reg root) const;
    bool may_share(Reg a, Reg b) const;
    bool maybe(Reg root, bool Memory::* what) const;  // false: proven that it is not
    Truth is_dense(const types::TensorType& type) const;
    bool overlaps(Reg target, Reg source, bool apart) const;  // false: proven that it does not
    bool is_same_view(Reg a, Reg b) const;                    // proven to be the same elements in the same places
    bool module_writes() const;

    // instructions.cpp
    // False: the instruction cannot be expressed; reason_ says why and the state is unchanged.
    bool step(const bytecode::Instruction& instruction, std::int32_t pc, State& state);
    bool call_op(const bytecode::CallSite& site, std::int32_t pc, State& state);
    bool item(std::int32_t pc, State& state);
    bool frozen(std::int32_t axis, std::int32_t pc, State& state);
    bool assertion(std::int32_t text, std::int32_t pc, State& state);
    bool resolve_attrs(const bytecode::CallSite& site, std::size_t first, const State& state, types::Attrs& attrs);
    Reg weight(std::int32_t index);
    Reg operand(const LiveValue& value, std::int32_t pc);
    Inst& emit(Inst inst, std::int32_t pc);
    Reg new_register(ops::ArgType type, Reg root = kNoReg);
    void require(const ops::Requirement& requirement, const ops::OpDef* op, std::int32_t pc);

    // lists.cpp
    bool list_step(const bytecode::Instruction& instruction, std::int32_t pc, State& state);
    bool append(std::int32_t pc, State& state);
    bool get_element(std::int32_t pc, State& state);
    bool set_element(State& state);
    bool unpack(std::size_t count, std::int32_t pc, State& state);
    LiveValue run_element(const LiveValue& list, std::span<const LiveValue> known, const Dim& position,
                          std::int32_t pc);
    bool join_list(const ops::OpDef& op, std::size_t first, const types::Attrs& attrs, std::int32_t pc, State& state);
    std::optional<ElementType> element_type(const LiveValue& list) const;
    std::optional<ElementType> common_element(std::span<const LiveValue* const> lists) const;
    LiveValue as_run_list(const LiveValue& list, const ElementType& type, std::uint32_t block);
    Reg list_register(const ElementType& type);
    Dim ask_list(specialised::ListQuery query, Reg list, const Dim& position, std::size_t axis, types::Range range,
                 std::int32_t pc);

    // scalars.cpp
    bool scalar(bytecode::ScalarOperator op, std::int32_t pc, State& state);
    std::optional<LiveValue> integral_scalar(bytecode::ScalarOperator op, std::span<const LiveValue> operands);
    std::optional<LiveValue> real_scalar(bytecode::ScalarOperator op, std::span<const LiveValue> operands,
                                         std::int32_t pc);
    LiveValue real(specialised::RealOp op, std::span<const LiveValue> operands, std::int32_t pc);
    Reg real_operand(const LiveValue& value, std::int32_t pc);
    LiveValue as_float(const LiveValue& integer, std::int32_t pc);
    Reg float_register();
    bool is_float(const LiveValue& value) const;  // constant or known at run time
    Dim truth(const LiveValue& value) const;      // 0 or 1; value must be kInt, kBool
    static Dim less_equal(const Dim& a, const Dim& b);
    static Dim equal(const Dim& a, const Dim& b);

    bool entry_only(const Dim& d) const;
    bool refuse(std::string reason) { return reason_ = std::move(reason), false; }
    void fail(Diagnostic diagnostic) {
        if (!error_) error_ = std::move(diagnostic);
    }
    bool stopped() const { return restart_ || error_.has_value(); }
    Block& block() { return program_.blocks[block_]; }
    int line_at(std::int32_t pc) const { return function_->line_at(pc); }

    const Region& region_;
    const bytecode::Module& module_;
    Knowledge& known_;
    Program program_;
    std::vector<Inst> prologue_;  // weights, put before block 0
    std::map<std::int32_t, Reg> weights_;
    std::map<Reg, Memory> memory_;          // of roots
    std::uint32_t entry_symbol_limit_ = 0;  // symbols below are read from the call frame
    std::map<types::SymbolId, Dim> module_symbols_;
    std::vector<DeferredDim> deferred_;
    std::uint32_t live_index_ = 0;  // value of the signature that is being built

    // Of the walk at hand; saved and restored around inlined calls.
    const bytecode::Function* function_ = nullptr;
    std::int32_t function_index_ = 0;
    const Flow* flow_ = nullptr;
    std::map<std::int32_t, std::vector<Incoming>> pending_;
    std::vector<Returned>* returns_ = nullptr;
    int depth_ = 0;
    std::vector<std::int32_t> call_stack_;

    std::uint32_t block_ = 0;                                          // block that receives instructions
    bool straight_ = true;                                             // every run of the region passes here
    std::map<std::pair<std::uint32_t, Reg>, types::SymbolId> counts_;  // by block: elements that are not zero
    std::uint32_t first_new_symbol_ = 0;  // symbols below were there before the last effect
    struct OpenLoop {
        std::uint32_t block;
        State carried;  // the state at the head, with carried values
        std::set<std::int32_t> stored;
    };
    std::map<std::pair<int, std::int32_t>, OpenLoop> loops_;  // (depth, head)
    std::size_t steps_ = 0;                                   // instructions expressed so far
    bool restart_ = false;
    std::string reason_;
    std::optional<Diagnostic> error_;
};

}  // namespace flexor::specialize
