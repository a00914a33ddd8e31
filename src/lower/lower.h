#pragma once
// Specialised program (after transform::expand) to executable: fusion groups, kernels in loop IR, frame programs,
// memory plan, tape.
//
// Laws
//  W1  A value that another unit, a terminator or a read needs is stored; every other value exists only inside one
//      kernel.
//  W2  A write, a check and a read keep their places: what stands before one in the program runs before it, what stands
//      after runs after it. Only a pure op that reads nothing a write has touched, or exactly what it wrote as its
//      kernel computes it, may share a kernel with ops in front of that write.
//  W3  A kernel that both loads and stores a root does so at identical geometry; otherwise the loaded value is copied
//      first; the store of a write is its last stage.
//  W4  Memory that leaves its block is allocated; everything else lies in the block's arena.
#include "executable/executable.h"
#include "specialised/program.h"
#include "support/expected.h"

namespace flexor::lower {

struct Options {
    bool fuse = true;       // false: one unit per op (a stress switch of the tests)
    bool prologues = true;  // false: a contraction reads its left operand from memory, for devices
};

// On failure `refused` gets the ops of the unit that has no kernel.
Expected<executable::Executable> lower(const specialised::Program& program, const executable::Signature& signature,
                                       const Options& options, std::vector<types::OpSite>* refused);

}  // namespace flexor::lower
