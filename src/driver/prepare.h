#pragma once
// Running a function over a range of sizes before anybody waits for it.
//
// Laws
//  R1  After `compile` on one thread, and `touch` on each that will call, a call in the range compiles nothing and takes
//      no memory from the system, on programs whose memory does not depend on what their tensors hold.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bytecode/module.h"
#include "driver/example.h"
#include "flexor/session.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::driver {

// Runs once; whether something was compiled.
using PreparedRun = std::function<Expected<bool>(std::span<const Value> arguments)>;

class Preparation {
public:
    // UnknownName for a symbol that the module does not declare, BadSymbolRange for a range that is none.
    static Expected<Preparation> of(const bytecode::Module& module, std::int32_t function,
                                    std::span<const SizeRange> ranges);

    // At the corners of the range and at sizes in between, until sizes that were not tried need no compilation.
    Expected<void> compile(const PreparedRun& run) const;
    // At sizes all over the ranges, odd ones and multiples of 16, all symbols together.
    Expected<void> sweep(const PreparedRun& run) const;
    // From the largest sizes to the smallest, so that memory grows once.
    Expected<void> touch(const PreparedRun& run) const;

private:
    struct Axis {
        types::SymbolId symbol;
        std::int64_t lo, hi;
    };
    Preparation(const bytecode::Module& module, std::int32_t function) : module_(&module), function_(function) {}
    Expected<bool> run_at(const FixedSizes& sizes, const PreparedRun& run) const;
    // The same; sizes that the program refuses are no part of the range.
    Expected<bool> try_at(const FixedSizes& sizes, const PreparedRun& run) const;

    const bytecode::Module* module_;
    std::int32_t function_;
    std::vector<Axis> axes_;
};

// Does `work` on this thread and on count - 1 new ones, all at once; the first refusal.
Expected<void> on_threads(int count, const std::function<Expected<void>()>& work);

}  // namespace flexor::driver
