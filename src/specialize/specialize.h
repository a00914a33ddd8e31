#pragma once
// Abstract interpretation of a bytecode region: from a safe point, over types and symbolic dims, as far as types stay
// known.
//
// Laws
//  A1  The result computes what the bytecode computes for every call frame that satisfies the signature and the guards.
//  A2  Hints choose only which guards are proposed; with `generalise` none is proposed beyond declarations and FROZEN.
//  A3  What cannot be expressed ends the region at that pc with an exit that carries every live value; nothing is
//      executed twice.
//  A4  Loop heads widen: a carried dim that changes becomes a symbol of the block, once.
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "bytecode/module.h"
#include "executable/signature.h"
#include "specialised/program.h"
#include "support/expected.h"
#include "types/op_site.h"

namespace flexor::specialize {

// Ops that no kernel could be made for, with the reason: a region ends before them.
using RefusedOps = std::map<types::OpSite, std::string>;

struct Region {
    const bytecode::Module* module = nullptr;
    std::int32_t function = 0;
    std::int32_t pc = 0;
    const executable::Signature* signature = nullptr;
    std::span<const std::int64_t> frame;  // call frame of the call at hand
    bool exact_only = false;
    bool generalise = false;
    const RefusedOps* refused = nullptr;
    bool end_at_once = false;  // ends behind its first op, and at every loop head but its own (a stress switch)
};

// Fails with OpNotCompiled when the very first instruction cannot be expressed; the diagnostic's `found` is the reason.
Expected<specialised::Program> specialize(const Region& region);

}  // namespace flexor::specialize
