#include "runtime/floor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "runtime/telemetry.h"
#include "runtime/thread_pool.h"

namespace flexor::runtime {

const Floor& host_floor() {
    constexpr std::int64_t kBytes = std::int64_t{32} << 20, kGrain = std::int64_t{1} << 20;
    constexpr int kRounds = 4;
    static const Floor measured = [] {
        Floor out;
        const std::unique_ptr<char[]> memory(new (std::nothrow) char[2 * kBytes]);
        if (memory == nullptr) return out;
        std::memset(memory.get(), 1, 2 * kBytes);
        std::uint64_t best = ~std::uint64_t{0};
        for (int round = 0; round < kRounds; ++round) {
            const std::uint64_t start = now_ns();
            parallel_for(kBytes, kGrain, [&](std::int64_t begin, std::int64_t end) {
                std::memcpy(memory.get() + kBytes + begin, memory.get() + begin, static_cast<std::size_t>(end - begin));
            });
            best = std::min(best, now_ns() - start);
        }
        out.bytes_per_second = 2.0 * kBytes / (static_cast<double>(std::max<std::uint64_t>(best, 1)) * 1e-9);
        return out;
    }();
    return measured;
}

}  // namespace flexor::runtime
