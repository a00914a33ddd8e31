// Programs on the device of the fake driver (tests/fake/cuda_driver.h), whose memory the host cannot read.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fake/cuda_driver.h"
#include "fake/device_values.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "programs.h"

namespace flexor {
namespace {

using tests::DeviceValues;
using tests::kFakeDevice;

const char* const kAddWeight = R"(.weight w f32[3] = [10.0, 20.0, 30.0]
.func main(x: f32[N, 3]) -> 1
  LOAD_LOCAL x
  LOAD_WEIGHT w
  CALL_OP add 2
  RETURN 1
)";

class DeviceRuns : public testing::Test {
public:
    Value on(const Value& value) const { return values.to_device(value); }

protected:
    void SetUp() override {
        void* library = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        fake = reinterpret_cast<tests::FakeCuda* (*)()>(dlsym(library, "fake_cuda_state"))();
        fake->failing.clear();
        fake->largest_sum = 0;
        fake->devices = 1;
    }
    static StressOptions stress() { return {.evaluate_kernels = true, .device_driver = FLEXOR_FAKE_CUDA}; }
    static CallOptions there() {
        CallOptions call;
        call.device = kFakeDevice;
        return call;
    }
    std::vector<float> floats_of(const Value& value) const {
        EXPECT_TRUE(DeviceValues::all_on_device(value));
        const Tensor tensor = values.to_host(value).tensor().contiguous();
        return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
    }

    tests::FakeCuda* fake = nullptr;
    DeviceValues values{FLEXOR_FAKE_CUDA};
};

TEST_F(DeviceRuns, OneModuleServesHostAndDeviceByEntriesOfTheirOwn) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    const std::vector<float> wanted{11, 22, 33, 14, 25, 36};
    for (int round = 0; round < 2; ++round) {
        const auto here = session.run(module, {Value(counting({2, 3}))});
        ASSERT_TRUE(here.has_value()) << here.error().to_string();
        EXPECT_EQ((*here)[0].tensor().device(), Device{});
        const auto away = session.run(module, {on(Value(counting({2, 3})))}, there());
        ASSERT_TRUE(away.has_value()) << away.error().to_string();
        EXPECT_EQ(floats_of((*away)[0]), wanted);
    }
    const Stats stats = session.stats();
    ASSERT_EQ(stats.entries.size(), 2u);
    EXPECT_NE(stats.entries[1].signature.find("cuda:0"), std::string::npos) << stats.entries[1].signature;
    EXPECT_EQ(stats.device_launches, 2u);
    EXPECT_EQ(stats.device_syncs, 0u);
    EXPECT_EQ(stats.interpreted_ops, 0u);
}

TEST_F(DeviceRuns, ExplainsAndTimesKernels) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    ExplainOptions options;
    options.profile = true;
    options.call = there();
    const std::vector<Value> arguments{on(Value(counting({2, 3})))};
    const auto told = session.explain(module, arguments, options);
    ASSERT_TRUE(told.has_value()) << told.error().to_string();
    ASSERT_EQ(told->kernels.size(), 1u);
    EXPECT_EQ(told->kernels[0].launches, 1u);
    EXPECT_EQ(told->kernels[0].bytes, 4 * (6 + 3 + 6));
    EXPECT_EQ(told->kernels[0].operations, 6);
    EXPECT_NEAR(told->kernels[0].seconds, 0.0005, 1e-9);
    EXPECT_GT(told->kernels[0].floor_seconds, 0);
    EXPECT_NE(told->text.find(told->kernels[0].kernel), std::string::npos);
    EXPECT_NE(told->text.find("% of the floor"), std::string::npos) << told->text;
    EXPECT_NE(told->text.find("TFLOP/s"), std::string::npos);
    options.profile = false;
    EXPECT_TRUE(session.explain(module, arguments, options)->kernels.empty());
    // On the host by the clock; what no kernel does is a call.
    options.profile = true;
    options.call = {};
    const Module sorted = module_from(R"(.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP add 2
  CALL_OP cumsum 1 axis=0
  RETURN 1
)");
    const std::vector<Value> fifty{Value(counting({50}))};
    const auto here = session.explain(sorted, fifty, options);
    ASSERT_TRUE(here.has_value()) << here.error().to_string();
    ASSERT_EQ(here->kernels.size(), 2u) << here->text;
    EXPECT_EQ(here->kernels[0].bytes, 4 * (50 + 50));
    EXPECT_EQ(here->kernels[1].bytes, 0);
    EXPECT_NE(here->kernels[1].kernel.find("cumsum (a call)"), std::string::npos);
    EXPECT_GT(here->kernels[1].seconds, 0);
}

TEST_F(DeviceRuns, KeepNothingToGiveBack) {
    Session session({}, stress());
    CallOptions call = there();
    call.restores = true;
    const auto ran = session.run(module_from(kAddWeight), {on(Value(counting({2, 3})))}, call);
    ASSERT_FALSE(ran.has_value());
    EXPECT_EQ(ran.error().code(), "E0507") << ran.error().to_string();
}

TEST_F(DeviceRuns, WritesIntoBuffersOfTheCaller) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    const std::vector<Value> arguments{on(Value(counting({2, 3})))};
    const std::vector<float> wanted{11, 22, 33, 14, 25, 36};
    const Tensor plain = on(Value(counting({2, 3}, 99))).tensor();
    ASSERT_TRUE(session.run_into(module, 0, arguments, std::vector<Tensor>{plain}, there()).has_value());
    EXPECT_EQ(floats_of(Value(plain)), wanted);
    EXPECT_EQ(session.stats().device_syncs, 0u);
    // Other strides, and elements between that stay as they are: every other one of a row of 12.
    const Tensor wide = on(Value(counting({12}, 50))).tensor();
    const std::vector<std::int64_t> sizes{2, 3}, strides{6, 2};
    const Tensor spread = wide.view(wide.data(), DType::kF32, sizes, strides);
    const auto done = session.run_into(module, 0, arguments, std::vector<Tensor>{spread}, there());
    ASSERT_TRUE(done.has_value()) << done.error().to_string();
    EXPECT_EQ(floats_of(Value(spread)), wanted);
    EXPECT_EQ(floats_of(Value(wide)), (std::vector<float>{11, 51, 22, 53, 33, 55, 14, 57, 25, 59, 36, 61}));
    EXPECT_GT(session.stats().device_syncs, 0u);
    for (const Tensor& wrong :
         std::vector<Tensor>{counting({2, 3}), on(Value(counting({3, 3}))).tensor(), arguments[0].tensor()}) {
        const auto refused = session.run_into(module, 0, arguments, std::vector<Tensor>{wrong}, there());
        ASSERT_FALSE(refused.has_value());
        EXPECT_TRUE(refused.error().code() == "E0514" || refused.error().code() == "E0515");
    }
    const std::vector<Value> here{Value(counting({2, 3}))};
    EXPECT_EQ(session.run_into(module, 0, here, std::vector<Tensor>{plain}).error().code(), "E0514");
}

TEST_F(DeviceRuns, TakesMemoryOfResultsFromTheCaller) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    struct Caller {
        DeviceRuns* test;
        int asked = 0;
        bool empty = false;
    } caller{this};
    CallOptions call = there();
    call.allocator = {[](void* context, DType dtype, std::span<const std::int64_t> sizes,
                         std::span<const std::int64_t> strides) -> Tensor {
                          auto& from = *static_cast<Caller*>(context);
                          ++from.asked;
                          if (from.empty) return {};
                          const Tensor made = from.test->on(Value(counting({sizes.begin(), sizes.end()}, -1))).tensor();
                          return made.view(made.data(), dtype, sizes, strides);
                      },
                      &caller};
    const std::vector<Value> arguments{on(Value(counting({2, 3})))};
    const auto ran = session.run(module, arguments, call);
    ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
    EXPECT_EQ(caller.asked, 1);
    EXPECT_EQ(floats_of((*ran)[0]), (std::vector<float>{11, 22, 33, 14, 25, 36}));
    EXPECT_EQ(session.stats().device_pool.live_bytes, 0u);
    // Six floats are less than it is called for, and then just as much.
    call.allocator.least_bytes = 25;
    {
        const auto small = session.run(module, arguments, call);
        ASSERT_TRUE(small.has_value()) << small.error().to_string();
        EXPECT_EQ(caller.asked, 1);
        EXPECT_GT(session.stats().device_pool.live_bytes, 0u);
        EXPECT_EQ(floats_of((*small)[0]), floats_of((*ran)[0]));
    }
    call.allocator.least_bytes = 24;
    ASSERT_TRUE(session.run(module, arguments, call).has_value());
    EXPECT_EQ(caller.asked, 2);
    // Asked again when the pool has given back what it kept.
    caller.empty = true;
    const auto done = session.run(module, arguments, call);
    EXPECT_EQ(caller.asked, 4);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code(), "E0602");
}

TEST_F(DeviceRuns, PreparesARange) {
    const Module module = module_from(R"(.symbol N in 1..4096
.func main(x: f32[N, 3]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP mul 2
  RETURN 1
)");
    Session session({}, stress());
    PrepareOptions options;
    options.call = there();
    const std::vector<SizeRange> ranges{{"N", 1, 300}};
    const auto done = session.prepare(module, ranges, options);
    ASSERT_TRUE(done.has_value()) << done.error().to_string();
    const Stats before = session.stats();
    EXPECT_GT(before.device_launches, 50u);
    for (const std::int64_t rows : {1, 17, 128, 300})
        ASSERT_TRUE(session.run(module, {on(Value(counting({rows, 3})))}, there()).has_value());
    const Stats after = session.stats();
    EXPECT_EQ(after.compilations, before.compilations);
    EXPECT_EQ(after.device_pool.growth_events, before.device_pool.growth_events);
}

TEST_F(DeviceRuns, UploadsAWeightOnceForAllSessions) {
    const Module module = module_from(kAddWeight);
    std::size_t after_first = 0;
    for (int i = 0; i < 2; ++i) {
        static Session first({}, stress());
        Session second({}, stress());
        for (Session* session : {&first, &second}) {
            const auto ran = session->run(module, {on(Value(counting({1, 3})))}, there());
            ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        }
        if (i == 0) after_first = fake->blocks;
    }
    EXPECT_LE(fake->blocks, after_first + 1);  // idle memory of the second session's pool at most
}

TEST_F(DeviceRuns, GivesMemoryBack) {
    const Module module = module_from(kAddWeight);
    const std::size_t before = fake->blocks;
    {
        Session session({}, stress());
        for (const std::int64_t rows : {0, 1, 2, 15, 16, 17, 33}) {
            const auto ran = session.run(module, {on(Value(counting({rows, 3})))}, there());
            ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
            EXPECT_EQ(floats_of((*ran)[0]).size(), static_cast<std::size_t>(3 * rows));
        }
        EXPECT_EQ(session.stats().device_pool.live_bytes, 0u);
        session.trim();
        EXPECT_EQ(session.stats().device_pool.reserved_bytes, 0u);
    }
    EXPECT_LE(fake->blocks, before + 1);  // the weight lives as long as the module's entries
    EXPECT_EQ(fake->pushed, 0);
}

TEST_F(DeviceRuns, FindsAStumbleWhenTheHostWaitsOrCallsAgain) {
    const Module module = module_from(
        ".func main(t: f32[N, 2], at: i64[M]) -> 1\n  LOAD_LOCAL at\n  LOAD_LOCAL t\n  CALL_OP embedding 2\n  RETURN "
        "1\n");
    Session session({}, stress());
    const Value table = on(Value(counting({4, 2})));
    const auto run = [&](const std::vector<std::int64_t>& at) {
        return session.run(module, {table, on(Value(integers({static_cast<std::int64_t>(at.size())}, at)))}, there());
    };
    ASSERT_TRUE(run({0, 3}).has_value());
    ASSERT_TRUE(session.synchronize(kFakeDevice).has_value());
    ASSERT_TRUE(run({0, 4}).has_value());
    const auto found = session.synchronize(kFakeDevice);
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code(), "E0307") << found.error().to_string();
    EXPECT_EQ(found.error().where().op, "embedding");
    EXPECT_EQ(found.error().where().source, "test.fasm:4");
    ASSERT_TRUE(run({4, 0}).has_value());
    const auto next = run({1, 1});
    ASSERT_FALSE(next.has_value());
    EXPECT_EQ(next.error().code(), "E0307");
    EXPECT_NE(next.error().hint().find("earlier call"), std::string::npos);
    ASSERT_TRUE(run({1, 1}).has_value());
    EXPECT_TRUE(session.synchronize(kFakeDevice).has_value());
}

TEST_F(DeviceRuns, RefusesTensorsOfTwoDevicesByNameAndGoesOn) {
    const Module module = module_from(
        ".func main(x: f32[N], y: f32[N]) -> 1\n  LOAD_LOCAL x\n  LOAD_LOCAL y\n  CALL_OP add 2\n  RETURN 1\n");
    Session session({}, stress());
    const Value far = on(Value(counting({3}))), near = Value(counting({3}));
    for (const auto& [x, y] : {std::pair{far, near}, std::pair{near, far}}) {
        const auto mixed = session.run(module, {x, y}, there());
        ASSERT_FALSE(mixed.has_value());
        EXPECT_EQ(mixed.error().code(), "E0403") << mixed.error().to_string();
    }
    const auto unsaid = session.run(module, {far, far});
    ASSERT_FALSE(unsaid.has_value());
    EXPECT_EQ(unsaid.error().code(), "E0403") << unsaid.error().to_string();
    const auto ran = session.run(module, {far, far}, there());
    ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
    EXPECT_EQ(floats_of((*ran)[0]), (std::vector<float>{2, 4, 6}));
    // A tensor without axes may lie on the host.
    const Module scale = module_from(
        ".func main(x: f32[N], y: f32[]) -> 1\n  LOAD_LOCAL x\n  LOAD_LOCAL y\n  CALL_OP mul 2\n  RETURN 1\n");
    const auto scaled = session.run(scale, {far, Value(counting({}, 2))}, there());
    ASSERT_TRUE(scaled.has_value()) << scaled.error().to_string();
    EXPECT_EQ(floats_of((*scaled)[0]), (std::vector<float>{2, 4, 6}));
}

TEST_F(DeviceRuns, RunsOnTheHostWhatTheDeviceCannotAndCountsIt) {
    const Module nonzero = module_from(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  CALL_OP nonzero 1\n  RETURN 1\n");
    Session session({}, stress());
    for (const std::int64_t n : {0, 1, 5}) {
        Tensor x = counting({n}, 0);
        const auto ran = session.run(nonzero, {on(Value(x))}, there());
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        EXPECT_EQ((*ran)[0].tensor().size(0), std::max<std::int64_t>(n - 1, 0));
    }
    const Stats stats = session.stats();
    ASSERT_FALSE(stats.fallbacks.empty());
    EXPECT_EQ(stats.fallbacks[0].op, "nonzero");
    EXPECT_NE(stats.fallbacks[0].reason.find("device"), std::string::npos) << stats.fallbacks[0].reason;
    EXPECT_GT(stats.device_copied_bytes, 0u);
    EXPECT_GT(stats.device_syncs, 0u);
}

TEST_F(DeviceRuns, MemoryThatIsNotThereIsAnErrorAndTheNextCallWorks) {
    const Module module =
        module_from(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  LOAD_LOCAL x\n  CALL_OP add 2\n  RETURN 1\n");
    Session session({}, stress());
    const Value small = on(Value(counting({3}))), large = on(Value(counting({100'000})));
    ASSERT_TRUE(session.run(module, {small}, there()).has_value());
    fake->largest_sum = 500'000 + 100'000;  // the arguments fit, the result does not
    const auto refused = session.run(module, {large}, there());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), "E0602") << refused.error().to_string();
    const auto ran = session.run(module, {small}, there());
    ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
    EXPECT_EQ(floats_of((*ran)[0]), (std::vector<float>{2, 4, 6}));
    fake->largest_sum = 0;

    Session limited({.soft_limit = 4096, .hard_limit = 8192}, stress());
    const auto beyond = limited.run(module, {large}, there());
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code(), "E0601") << beyond.error().to_string();
    EXPECT_TRUE(limited.run(module, {small}, there()).has_value());
    EXPECT_GT(limited.stats().device_pool.hard_limit_events, 0u);
}

TEST_F(DeviceRuns, FailedCallsOfTheDriverNameKernelAndCall) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    const Value x = on(Value(counting({2, 3})));
    ASSERT_TRUE(session.run(module, {x}, there()).has_value());
    fake->failing = "cuLaunchKernel";
    fake->code = 700;
    const auto failed = session.run(module, {x}, there());
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code(), "E0710");
    EXPECT_NE(failed.error().to_string().find("cuLaunchKernel"), std::string::npos);
    EXPECT_NE(failed.error().to_string().find("kernel main"), std::string::npos) << failed.error().to_string();
    EXPECT_TRUE(session.run(module, {x}, there()).has_value());
}

TEST_F(DeviceRuns, WithoutADriverTheHostStillWorks) {
    const Module module = module_from(kAddWeight);
    StressOptions none = stress();
    none.device_driver = "libno-such-driver.so";
    Session session({}, none);
    const auto away = session.run(module, {on(Value(counting({2, 3})))}, there());
    ASSERT_FALSE(away.has_value());
    EXPECT_EQ(away.error().code(), "E0709");
    EXPECT_TRUE(session.run(module, {Value(counting({2, 3}))}).has_value());
    EXPECT_NE(Session::doctor().find("driver"), std::string::npos);
}

TEST_F(DeviceRuns, IsNoPartOfACapturedGraph) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    const Value x = on(Value(counting({2, 3})));
    fake->capturing = true;
    const auto captured = session.run(module, {x}, there());
    fake->capturing = false;
    ASSERT_FALSE(captured.has_value());
    EXPECT_EQ(captured.error().code(), "E0710");
    EXPECT_TRUE(session.run(module, {x}, there()).has_value());
}

TEST_F(DeviceRuns, BuffersOfTheHostTakeNoResultsOfADevice) {
    const Module module = module_from(kAddWeight);
    Session session({}, stress());
    const Tensor buffer = counting({2, 3});
    const auto ran = session.run_into(module, 0, std::vector<Value>{on(Value(counting({2, 3})))},
                                      std::span<const Tensor>(&buffer, 1), there());
    ASSERT_FALSE(ran.has_value());
    EXPECT_EQ(ran.error().code(), "E0514") << ran.error().to_string();
}

TEST_F(DeviceRuns, AReadWaitsOnce) {
    const Module module = module_from(R"(.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_OP reduce_sum 1 axes=[0], keepdim=false
  ITEM
  RETURN 1
)");
    Session session({}, stress());
    for (std::uint64_t call = 1; call < 3; ++call) {
        const auto ran = session.run(module, {on(Value(counting({3})))}, there());
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
        EXPECT_EQ((*ran)[0].real(), 6.0);
        EXPECT_EQ(session.stats().device_syncs, call);
    }
}

}  // namespace
}  // namespace flexor
