#pragma once
// Frame slots of dims: which slot holds the value of an expression, and the frame program that computes it.
#include <unordered_map>
#include <vector>

#include "executable/executable.h"
#include "types/dim.h"

namespace flexor::lower {

using executable::Slot;
using types::Dim;

// Allocates slots of one executable. Symbols have a slot for the whole region; computed expressions belong to the scope
// (block) that computes them.
class FrameSlots {
public:
    explicit FrameSlots(std::uint32_t call_frame) : next_(call_frame) {}
    Slot fresh() { return next_++; }
    std::uint32_t count() const { return next_; }
    void bind_symbol(types::SymbolId symbol, Slot slot) { symbols_[symbol] = slot; }
    Slot symbol(types::SymbolId symbol);  // allocates on first use

    // Appends to `program` what computes `d`; reuses what the scope has computed already.
    Slot value(const Dim& d, executable::FrameProgram& program);
    // The value of `sum`, which is a + b: a sum of many terms that grows term by term takes one instruction a term.
    Slot value_of_sum(const Dim& sum, const Dim& a, const Dim& b, executable::FrameProgram& program);
    // Appends one instruction; its destination is a fresh slot.
    Slot emit(executable::FrameOp op, Slot a, Slot b, std::int64_t immediate, executable::FrameProgram& program);
    void open_scope() { computed_.clear(); }

private:
    std::uint32_t next_;
    std::unordered_map<types::SymbolId, Slot> symbols_;
    std::unordered_map<Dim, Slot> computed_;
};

}  // namespace flexor::lower
