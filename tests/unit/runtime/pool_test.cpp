#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace flexor::runtime {
namespace {

TEST(Pool, ClassesHaveLittleSlackAndMapBack) {
    for (std::size_t bytes = 1; bytes < (std::size_t{1} << 19); bytes += 1 + bytes / 37) {
        const std::size_t capacity = Pool::round_up(bytes);
        ASSERT_GE(capacity, bytes);
        EXPECT_LE(capacity, std::max<std::size_t>(bytes + 63, bytes + bytes / 8 + 1)) << bytes;
        EXPECT_EQ(Pool::round_up(capacity), capacity) << bytes;
        EXPECT_EQ(Pool::class_index(capacity), Pool::class_index(Pool::round_up(capacity - 1)));
    }
    EXPECT_EQ(Pool::round_up(~std::size_t{0} / 2 + 1), 0u) << "sizes that no machine has are refused";
}

TEST(Pool, ReusesWithinTheSoftLimit) {
    const auto pool = Pool::create({.soft_limit = 8 << 20});
    const Block first = pool->allocate(3 << 20);
    ASSERT_NE(first.data, nullptr);
    pool->release(first);
    const std::uint64_t grown = pool->gauges().growth_events;
    const Block second = pool->allocate((3 << 20) - 1000);
    EXPECT_EQ(second.data, first.data);
    EXPECT_EQ(pool->gauges().growth_events, grown);
    EXPECT_EQ(pool->gauges().reuses, 1u);
    pool->release(second);
    EXPECT_EQ(pool->gauges().live_bytes, 0u);
    EXPECT_GT(pool->gauges().reserved_bytes, 0u);
    EXPECT_GT(pool->trim(), 0u);
    EXPECT_EQ(pool->gauges().reserved_bytes, 0u);
}

TEST(Pool, GrowsBetweenTheLimitsAndRefusesBeyond) {
    const auto pool = Pool::create({.soft_limit = 2 << 20, .hard_limit = 8 << 20});
    std::vector<PoolEvent> events;
    pool->set_listener([&](const PoolEvent& event) { events.push_back(event); });
    const Block a = pool->allocate(3 << 20);
    const Block b = pool->allocate(3 << 20);
    ASSERT_NE(a.data, nullptr);
    ASSERT_NE(b.data, nullptr);
    EXPECT_EQ(pool->allocate(3 << 20).data, nullptr);
    const auto count = [&](PoolEvent::Kind kind) {
        return std::count_if(events.begin(), events.end(), [&](const PoolEvent& e) { return e.kind == kind; });
    };
    EXPECT_EQ(count(PoolEvent::Kind::kGrowth), 2);
    EXPECT_EQ(count(PoolEvent::Kind::kOverSoft), 1);
    EXPECT_EQ(count(PoolEvent::Kind::kHardLimit), 1);
    pool->release(a);  // beyond the soft limit: back to the system
    EXPECT_LE(pool->gauges().reserved_bytes, std::uint64_t{4} << 20);
    EXPECT_NE(pool->allocate(3 << 20).data, nullptr);
}

TEST(Pool, WhatIsKeptShrinksBeyondTheSoftLimit) {
    const auto pool = Pool::create({.soft_limit = 8 << 20});
    const Block kept = pool->allocate(3 << 20), other = pool->allocate(4 << 20);
    pool->release(kept);
    EXPECT_GT(pool->gauges().reserved_bytes, std::uint64_t{7} << 20);
    EXPECT_EQ(pool->gauges().shrunk_bytes, 0u);
    const Block large = pool->allocate(6 << 20);  // live memory alone passes the limit
    EXPECT_LT(pool->gauges().reserved_bytes, std::uint64_t{11} << 20) << "the idle 3 MiB went back";
    pool->release(large);
    EXPECT_LE(pool->gauges().reserved_bytes, std::uint64_t{8} << 20);
    pool->release(other);
    EXPECT_GT(pool->gauges().reserved_bytes, 0u) << "within the limit memory is kept";
    EXPECT_GE(pool->gauges().shrunk_bytes, std::uint64_t{6} << 20);
    EXPECT_EQ(pool->gauges().over_soft_events, 1u);
}

TEST(Pool, ArenasAndCachesShrinkBeyondTheSoftLimit) {
    const auto pool = Pool::create({.soft_limit = 2 << 20});
    Arena idle(pool), busy(pool);
    ASSERT_TRUE(idle.acquire());
    ASSERT_NE(idle.reserve(1 << 20), nullptr);
    idle.release();
    EXPECT_GT(idle.capacity(), 0u) << "within the limit";
    PoolCache cache(pool);
    cache.release(cache.allocate(50'000));
    ASSERT_TRUE(busy.acquire());
    ASSERT_NE(busy.reserve(3 << 20), nullptr);
    EXPECT_EQ(idle.capacity(), 0u) << "the other arena went back";
    const std::uint64_t before = pool->gauges().reserved_bytes;
    cache.release(cache.allocate(1'000));
    EXPECT_LE(pool->gauges().reserved_bytes, before - 50'000) << "so did the blocks of the cache";
    busy.release();
    EXPECT_EQ(busy.capacity(), 0u) << "an arena beyond the limit is not kept";
    EXPECT_EQ(pool->gauges().reserved_bytes, 0u);
}

TEST(Pool, ACacheIsIdleMemoryToTheHardLimit) {
    const auto pool = Pool::create({.hard_limit = 200'000});
    PoolCache cache(pool);
    cache.release(cache.allocate(60'000));
    cache.release(cache.allocate(50'000));
    const Block block = cache.allocate(120'000);
    EXPECT_NE(block.data, nullptr);
    EXPECT_EQ(pool->gauges().hard_limit_events, 0u);
    EXPECT_EQ(cache.allocate(120'000).data, nullptr);
    EXPECT_EQ(pool->gauges().hard_limit_events, 1u);
    EXPECT_LE(pool->gauges().peak_reserved_bytes, 200'000u);
    cache.release(block);
}

TEST(Pool, IdleMemoryMakesRoomBelowTheHardLimit) {
    const auto pool = Pool::create({.hard_limit = 8 << 20});
    pool->release(pool->allocate(5 << 20));
    EXPECT_NE(pool->allocate(6 << 20).data, nullptr) << "the idle 5 MiB go back first";
}

TEST(Pool, ReservedFollowsThePeakOfLiveMemory) {
    const auto pool = Pool::create({});
    for (std::size_t mib = 1; mib <= 16; ++mib) pool->release(pool->allocate(mib << 20));
    EXPECT_LE(pool->gauges().peak_reserved_bytes, (std::uint64_t{16} << 20) * 11 / 10);
}

TEST(Pool, ArenaGrowsInPlaceOfTheOldOne) {
    const auto pool = Pool::create({});
    Arena arena(pool);
    ASSERT_TRUE(arena.acquire());
    EXPECT_FALSE(arena.acquire()) << "a run inside a run";
    auto* bytes = static_cast<unsigned char*>(arena.reserve(1000));
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % 64, 0u);
    std::memset(bytes, 7, 1000);
    for (std::size_t size = 1 << 16; size <= (16u << 20); size *= 2) ASSERT_NE(arena.reserve(size), nullptr);
    EXPECT_LE(pool->gauges().peak_reserved_bytes, (std::uint64_t{16} << 20) * 11 / 10);
    const std::uint64_t grown = pool->gauges().growth_events;
    for (int i = 0; i < 100; ++i) ASSERT_NE(arena.reserve(5 << 20), nullptr);
    EXPECT_EQ(pool->gauges().growth_events, grown);
    EXPECT_EQ(pool->trim(), 0u) << "an arena in use stays";
    arena.release();
    EXPECT_GT(pool->trim(), 0u);
    EXPECT_EQ(arena.capacity(), 0u);
    ASSERT_TRUE(arena.acquire());
    EXPECT_NE(arena.reserve(100), nullptr);
    arena.release();
}

TEST(Pool, IdleArenasOfOtherThreadsGiveWay) {
    const auto pool = Pool::create({.hard_limit = 4 << 20});
    Arena idle(pool), busy(pool);
    ASSERT_TRUE(idle.acquire());
    ASSERT_NE(idle.reserve(3 << 20), nullptr);
    idle.release();
    ASSERT_TRUE(busy.acquire());
    EXPECT_NE(busy.reserve(3 << 20), nullptr);
    EXPECT_EQ(idle.capacity(), 0u);
    EXPECT_EQ(busy.reserve(5 << 20), nullptr);
    busy.release();
}

TEST(Pool, PoisonFillsWhatIsHandedOut) {
    const auto pool = Pool::create({.poison = true});
    PoolCache cache(pool);
    for (int round = 0; round < 2; ++round) {
        const Block block = cache.allocate(256);
        const auto* words = static_cast<const float*>(block.data);
        for (int i = 0; i < 64; ++i) EXPECT_TRUE(words[i] != words[i]);
        std::memset(block.data, 0, 256);
        cache.release(block);
    }
}

TEST(Pool, TensorsOutliveThePoolHandle) {
    Tensor tensor;
    {
        const auto pool = Pool::create({});
        const std::int64_t sizes[] = {3, 5};
        tensor = pool->empty(DType::kF32, sizes);
        EXPECT_GT(pool->gauges().live_bytes, 0u);
    }
    ASSERT_TRUE(tensor.defined());
    tensor.data_as<float>()[14] = 1;
}

TEST(Pool, CacheIsFastAndBlocksMoveBetweenThreads) {
    const auto pool = Pool::create({});
    PoolCache cache(pool);
    cache.release(cache.allocate(1000));
    const std::uint64_t grown = pool->gauges().growth_events;
    for (int i = 0; i < 1000; ++i) cache.release(cache.allocate(1000));
    EXPECT_EQ(pool->gauges().growth_events, grown);
    std::vector<Block> blocks;
    std::thread maker([&] {
        PoolCache own(pool);
        for (int i = 0; i < 100; ++i) blocks.push_back(own.allocate(static_cast<std::size_t>(64 + i * 100)));
    });
    maker.join();
    for (const Block block : blocks) cache.release(block);
    cache.flush();
    EXPECT_EQ(pool->gauges().live_bytes, 0u);
}

}  // namespace
}  // namespace flexor::runtime
