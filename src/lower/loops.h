#pragma once
// What loops of a specialised program carry, and what they leave as it is.
#include <cstddef>
#include <vector>

#include "specialised/program.h"

namespace flexor::lower {

class Loops {
public:
    // The program outlives it; operands may be replaced, control flow and results stay.
    explicit Loops(const specialised::Program& program);

    // Whether control may come back to the block.
    bool contain(std::size_t block) const { return repeated_[block]; }

    // Whether instruction `at` of a block of a loop gives the same at every pass, in memory that stays its own: nothing
    // writes to it, no loop carries it, no list holds it and it does not leave the region.
    bool is_invariant(std::size_t block, std::size_t at) const { return repeated_[block] && invariant_[block][at]; }

    // Whether the memory of a root register is made once in a run and not written in it.
    bool leave_unchanged(specialised::Reg root) const;

    // Whether `block`, of a loop, appends in this concat to what the loop carries and nobody reads any more, so that the
    // memory of operand 0 can become that of the result.
    bool may_grow(std::size_t block, const specialised::Inst& concat) const;

private:
    void find_invariants();
    bool is_written(specialised::Reg root) const;
    bool is_dead_after(std::size_t block, const specialised::Inst& inst, specialised::Reg root) const;

    const specialised::Program& program_;
    std::vector<bool> repeated_;                // by block
    std::vector<std::size_t> home_;             // by register: the block that defines it
    std::vector<std::vector<bool>> invariant_;  // by block and instruction
};

}  // namespace flexor::lower
