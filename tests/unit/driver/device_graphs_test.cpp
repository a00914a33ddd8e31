// Regions whose launches run as graphs of the device, on the fake driver (tests/fake/cuda_driver.h).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "fake/cuda_driver.h"
#include "fake/device_values.h"
#include "flexor/session.h"
#include "flexor/stress.h"

namespace flexor {
namespace {

using tests::DeviceValues;
using tests::kFakeDevice;

const char* const kProducts = R"(.symbol S in 0..4096
.func main(x: f32[B, S, 8], w: f32[8, 8]) -> 2
  LOAD_LOCAL x
  LOAD_LOCAL w
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL w
  CALL_OP matmul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL y
  CALL_OP softmax 1 axis=-2
  LOAD_LOCAL w
  CALL_OP matmul 2
  RETURN 2
)";

class DeviceGraphs : public testing::Test {
protected:
    void SetUp() override {
        void* library = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        fake = reinterpret_cast<tests::FakeCuda* (*)()>(dlsym(library, "fake_cuda_state"))();
        fake->failing.clear();
        fake->largest_sum = 0;
    }
    static StressOptions stress(bool at_once = true) {
        return {.evaluate_kernels = true, .graphs_at_once = at_once, .device_driver = FLEXOR_FAKE_CUDA};
    }
    static CallOptions there(void* stream = nullptr) {
        CallOptions call;
        call.device = kFakeDevice;
        call.stream = stream;
        return call;
    }
    static Tensor floats(std::vector<std::int64_t> sizes, int seed) {
        Tensor tensor = Tensor::empty(DType::kF32, sizes);
        for (std::int64_t i = 0; i < tensor.numel(); ++i)
            tensor.data_as<float>()[i] = static_cast<float>((i * 37 + seed * 11) % 29) * 0.125f - 1.5f;
        return tensor;
    }
    struct Call {
        std::vector<Value> host, device;
    };
    Call call_of(std::int64_t batch, std::int64_t length, int seed) const {
        Call out;
        out.host = {Value(floats({batch, length, 8}, seed)), Value(floats({8, 8}, 3))};
        for (const Value& value : out.host) out.device.push_back(values.to_device(value));
        return out;
    }
    // What launches one by one leave.
    std::vector<Value> wanted(const Call& call) {
        auto ran = plain.run(module, call.device, there());
        EXPECT_TRUE(ran.has_value()) << ran.error().to_string();
        return *ran;
    }
    void expect_same(const std::vector<Value>& found, const std::vector<Value>& right) const {
        ASSERT_EQ(found.size(), right.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            const Tensor a = values.to_host(found[i]).tensor().contiguous();
            const Tensor b = values.to_host(right[i]).tensor().contiguous();
            ASSERT_TRUE(std::ranges::equal(a.sizes(), b.sizes()));
            for (std::int64_t e = 0; e < a.numel(); ++e) EXPECT_EQ(a.data_as<float>()[e], b.data_as<float>()[e]) << e;
        }
    }
    void run(Session& session, std::int64_t batch, std::int64_t length, int seed, void* stream = nullptr) {
        const Call call = call_of(batch, length, seed);
        const auto ran = session.run(module, call.device, there(stream));
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        expect_same(*ran, wanted(call));
    }

    tests::FakeCuda* fake = nullptr;
    DeviceValues values{FLEXOR_FAKE_CUDA};
    Module module = *Module::from_text(kProducts, "test.fasm");
    SessionOptions without_graphs{.device_graphs = false};
    Session plain{without_graphs, stress()};
};

TEST_F(DeviceGraphs, OneGraphServesABucketWithOneCopyAndNothingIsMadeAnew) {
    Session session({}, stress());
    const std::vector<std::int64_t> lengths{1, 2, 15, 16, 17, 33, 63, 64, 65};
    for (const std::int64_t length : lengths) run(session, 3, length, 1);
    const Stats warm = session.stats();
    // 1, 2, up to 16, up to 32, up to 64, up to 96.
    EXPECT_EQ(warm.graphs_built, 6u);
    EXPECT_EQ(warm.graph_launches, lengths.size());
    int seed = 2;
    for (const std::int64_t length : {34, 9, 96, 30, 2, 1, 66, 11}) {
        const Call call = call_of(3, length, seed++);
        const int launches = fake->graph_launches, copies = fake->copies_to_device;
        const auto ran = session.run(module, call.device, there());
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        EXPECT_EQ(fake->graph_launches, launches + 1);
        EXPECT_EQ(fake->copies_to_device, copies + 1);
        expect_same(*ran, wanted(call));
    }
    const Stats stats = session.stats();
    EXPECT_EQ(stats.graphs_built, warm.graphs_built);
    EXPECT_EQ(stats.graph_launches, lengths.size() + 8);
    EXPECT_EQ(stats.graph_misfits + stats.graphs_refused + stats.graphs_evicted, 0u);
    EXPECT_EQ(plain.stats().graph_launches, 0u);
    EXPECT_EQ(plain.stats().graphs_built, 0u);
}

TEST_F(DeviceGraphs, ResultsOfACallOutliveTheNextOne) {
    Session session({}, stress());
    const Call first = call_of(2, 20, 1), second = call_of(2, 24, 2);
    const auto one = session.run(module, first.device, there());
    const auto two = session.run(module, second.device, there());
    ASSERT_TRUE(one.has_value() && two.has_value());
    expect_same(*one, wanted(first));
    expect_same(*two, wanted(second));
}

TEST_F(DeviceGraphs, WithoutElementsThereIsNoGraphAndNoRefusal) {
    Session session({}, stress());
    run(session, 3, 0, 1);
    run(session, 0, 5, 1);
    EXPECT_EQ(session.stats().graphs_built + session.stats().graphs_refused, 0u);
    run(session, 3, 5, 1);
    EXPECT_EQ(session.stats().graphs_built, 1u);
}

TEST_F(DeviceGraphs, EveryStreamHasItsOwn) {
    Session session({}, stress());
    int places[2];
    for (int round = 0; round < 2; ++round) {
        for (int& place : places) run(session, 1, 9 + round, round, &place);
    }
    EXPECT_EQ(session.stats().graphs_built, 2u);
    EXPECT_EQ(session.stats().graph_launches, 4u);
}

TEST_F(DeviceGraphs, AMisalignedArgumentHasAGraphThatAssumesNothing) {
    Session session({}, stress());
    for (const bool moved : {false, true, false, true}) {
        Call call = call_of(2, 7, 5);
        if (moved) {
            const Tensor wide = floats({2 * 7 * 8 + 1}, 6);
            const Tensor on = values.to_device(Value(wide)).tensor();
            const std::int64_t sizes[] = {2, 7, 8}, strides[] = {56, 8, 1};
            call.device[0] = Value(on.view(on.data_as<float>() + 1, DType::kF32, sizes, strides));
        }
        const auto ran = session.run(module, call.device, there());
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        expect_same(*ran, wanted(call));
    }
    EXPECT_EQ(session.stats().graphs_built, 2u);
    EXPECT_EQ(session.stats().graph_launches, 4u);
}

TEST_F(DeviceGraphs, TheLeastRecentlyUsedGoFirstAndMemoryGoesBack) {
    const int before = fake->graphs;
    plain.trim();
    const std::size_t blocks = fake->blocks;
    {
        Session session({}, stress());
        for (std::int64_t batch = 1; batch <= 9; ++batch) {
            for (const std::int64_t length : {1, 2, 3, 5, 9, 17}) {
                // As often as shows that the sizes come back.
                for (int again = 0; again < 3; ++again) run(session, batch, length, again);
            }
        }
        const Stats stats = session.stats();
        EXPECT_EQ(stats.graphs_built, 30u);  // of five buckets of batches
        EXPECT_EQ(stats.graphs_evicted, 0u);
        for (std::int64_t batch = 17; batch <= 40; batch += 16) {
            for (const std::int64_t length : {1, 2, 3}) {
                for (int again = 0; again < 3; ++again) run(session, batch, length, again);
            }
        }
        EXPECT_EQ(session.stats().graphs_evicted, 4u);
        EXPECT_EQ(fake->graphs, before + 2 * 32);  // each is made, and made ready
    }
    plain.trim();
    EXPECT_EQ(fake->graphs, before);
    EXPECT_EQ(fake->blocks, blocks);
    EXPECT_EQ(fake->pushed, 0);
}

TEST_F(DeviceGraphs, SizesThatNeverComeBackAreNotWaitedForWithGraphs) {
    Session session({}, stress(false));
    for (std::int64_t batch = 1; batch < 28; ++batch) run(session, batch * batch, 1, 1);
    // The trial, and no more.
    EXPECT_LE(session.stats().graphs_built, 16u);
}

TEST_F(DeviceGraphs, WhatCannotBeMadeIsCountedAndLaunchedOneByOne) {
    for (const char* call : {"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate", "cuMemHostAlloc"}) {
        Session session({}, stress());
        run(session, 2, 9, 1);  // the first graph, and what a session takes for itself
        fake->failing = call;
        fake->code = 2;
        for (int again = 0; again < 2; ++again) run(session, 2, 40, again);
        EXPECT_EQ(session.stats().graphs_refused, 1u) << call;
        EXPECT_EQ(session.stats().graph_launches, 1u) << call;
        EXPECT_EQ(session.stats().graphs_built, 1u) << call;
    }
}

TEST_F(DeviceGraphs, GiveTheirMemoryBackBeforeARunIsRefused) {
    // Beside what a run needs there is no room for a graph's, or just so.
    bool dropped = false;
    for (const std::uint64_t limit : {50'000, 60'000, 90'000}) {
        Session limited({.soft_limit = 40'000, .hard_limit = limit}, stress());
        for (int again = 0; again < 3; ++again) run(limited, 2, 256, again);
        run(limited, 2, 9, 1);
        const Stats stats = limited.stats();
        EXPECT_LE(stats.device_pool.peak_reserved_bytes, limit);
        dropped = dropped || stats.graphs_built != 2;  // then ops ran alone, with graphs of their own
    }
    EXPECT_TRUE(dropped);
}

TEST_F(DeviceGraphs, TrimGivesTheirMemoryBackAndTheyAreMadeAgain) {
    Session session({}, stress());
    for (std::uint64_t round = 1; round < 3; ++round) {
        run(session, 2, 9, 1);
        EXPECT_EQ(session.stats().graphs_built, round);
        EXPECT_GT(session.stats().device_pool.live_bytes, 0u);
        session.trim();
        EXPECT_EQ(session.stats().device_pool.reserved_bytes, 0u);
    }
}

TEST_F(DeviceGraphs, ALaunchThatFailsIsToldAndTheNextCallWorks) {
    Session session({}, stress());
    run(session, 2, 9, 1);
    fake->failing = "cuGraphLaunch";
    fake->code = 700;
    const Call call = call_of(2, 9, 1);
    const auto failed = session.run(module, call.device, there());
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code(), "E0710");
    EXPECT_NE(failed.error().to_string().find("cuGraphLaunch"), std::string::npos);
    run(session, 2, 9, 2);
}

TEST_F(DeviceGraphs, ThreadsShareThemWhileTheyAreMade) {
    Session session({}, stress(false));
    std::vector<std::thread> threads;
    int places[2];
    std::atomic<int> right{0};
    std::vector<Call> calls;
    std::vector<std::vector<Value>> all;
    for (int i = 0; i < 8; ++i) {
        calls.push_back(call_of(2, 3 + 5 * i, i));
        all.push_back(wanted(calls.back()));
    }
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 40; ++i) {
                const auto& call = calls[static_cast<std::size_t>((i + t) % 8)];
                const auto ran = session.run(module, call.device, there(&places[t % 2]));
                if (!ran) continue;
                const Tensor a = values.to_host((*ran)[1]).tensor().contiguous();
                const Tensor b = values.to_host(all[static_cast<std::size_t>((i + t) % 8)][1]).tensor().contiguous();
                right += std::equal(a.data_as<float>(), a.data_as<float>() + a.numel(), b.data_as<float>());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 120);
    session.settle();
    EXPECT_GT(session.stats().graphs_built, 0u);
    EXPECT_EQ(session.stats().graphs_refused, 0u);
}

TEST_F(DeviceGraphs, EntriesSayWhetherLaunchesRunAsOne) {
    Session session({}, stress()), modest({}, stress(false));
    run(session, 2, 9, 1);
    EXPECT_EQ(session.stats().entries.at(0).graphs, "yes");
    EXPECT_EQ(plain.stats().entries.at(0).graphs, "switched off");
    const Module sum = *Module::from_text(
        ".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  CALL_OP reduce_sum 1 axes=[0], keepdim=false\n  ITEM\n  RETURN "
        "1\n",
        "test.fasm");
    const Value x = values.to_device(Value(floats({3}, 1)));
    for (Session* each : {&session, &modest}) ASSERT_TRUE(each->run(sum, {x}, there()).has_value());
    EXPECT_EQ(session.stats().entries.at(1).graphs, "the host reads an element");
    EXPECT_EQ(modest.stats().entries.at(0).graphs, "too few launches");
}

}  // namespace
}  // namespace flexor
