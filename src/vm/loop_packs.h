#pragma once
// Right sides of contractions that one run packs once, because every pass of a loop reads them unchanged.
//
// Law
//  K1  A right side is packed when it has been read in place kUnpackedUses times in a row: a loop of few passes pays
//      nothing. Where the pool gives no memory, it stays where it lies.
#include <array>
#include <cstdint>
#include <vector>

#include "loopir/kernel.h"
#include "runtime/pool.h"

namespace flexor::vm {

// One right side, kept between runs for its place in the table alone.
struct LoopPack {
    const void* source = nullptr;
    std::array<std::int64_t, 4> geometry{};  // k, n, row stride, column stride
    std::int32_t uses = 0;
    runtime::Block block;
};

class LoopPacks {
public:
    LoopPacks(std::vector<LoopPack>& table, std::uint32_t count, runtime::PoolCache& cache);
    ~LoopPacks();
    LoopPacks(const LoopPacks&) = delete;
    LoopPacks& operator=(const LoopPacks&) = delete;

    // The right side of a launch of `kernel`, packed; null while it is better read in place.
    const void* find(std::uint32_t index, const loopir::Kernel& kernel, void* const* buffers,
                     const std::int64_t* params);

private:
    std::vector<LoopPack>& table_;
    runtime::PoolCache& cache_;
};

}  // namespace flexor::vm
