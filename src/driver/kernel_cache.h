#pragma once
// Compiled kernels and packed weights of the process: what is equal is made once, whoever asks.
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "bytecode/module.h"
#include "executable/executable.h"
#include "loopir/kernel.h"
#include "runtime/kernel_handle.h"
#include "support/expected.h"
#include "support/fork_gate.h"

namespace flexor::driver {

class KernelCache {
public:
    static KernelCache& instance();

    struct Built {
        std::uint32_t compiled = 0;
        std::uint32_t hits = 0;
        std::uint64_t code_bytes = 0;
    };
    // Sets the handles of all kernels; those that no structurally equal kernel has yet are compiled, some to an object.
    // On failure those that could not be made, and no others, are without one; Interrupted, in between, says nothing
    // about any.
    Expected<Built> fill(std::span<executable::KernelSlot> kernels);

private:
    struct Item {
        loopir::Kernel kernel;
        runtime::KernelRef handle;
    };
    runtime::KernelRef find(std::size_t hash, const loopir::Kernel& kernel) const;

    support::ForkMutex mutex_;  // held where the host is asked
    std::unordered_multimap<std::size_t, Item> items_;
};

// The packed form of a weight; shared while anybody holds it. `made` says whether it was packed now.
Expected<std::shared_ptr<const void>> packed_weight(const bytecode::Module& module,
                                                    const executable::PackedWeight& packed, std::size_t* bytes,
                                                    bool* made);

// A kernel that runs in the loop-IR evaluator.
runtime::KernelRef evaluated_kernel(const loopir::Kernel& kernel);

}  // namespace flexor::driver
