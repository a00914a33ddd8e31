// Launches on the driver that only records (tests/fake), of code that a script in the compiler's place answers with.
#include "codegen/triton/device_launcher.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "codegen/triton/variants.h"

#include "fake/cuda_driver.h"
#include "unit/loopir/kernels.h"
#include "unit/triton/scripted_compiler.h"

namespace flexor::codegen::triton {
namespace {

using loopir::testing::verified;
using runtime::cuda::Device;
using runtime::cuda::Driver;
using runtime::cuda::LaunchReport;

class TritonDeviceLauncher : public testing::Test {
protected:
    void SetUp() override {
        void* library = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        fake = reinterpret_cast<tests::FakeCuda* (*)()>(dlsym(library, "fake_cuda_state"))();
        *fake = {};
        const auto driver = Driver::open(FLEXOR_FAKE_CUDA);
        ASSERT_TRUE(driver.has_value());
        const auto opened = Device::open(*driver, 0);
        ASSERT_TRUE(opened.has_value());
        device = *opened;
    }

    std::shared_ptr<DeviceLauncher> launcher(const char* kernel) {
        auto made = DeviceLauncher::create(verified(kernel), device, pool);
        EXPECT_TRUE(made.has_value());
        return *made;
    }
    LaunchReport launch(DeviceLauncher& launcher, std::int64_t rows, std::int64_t length) {
        const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
        const std::int64_t params[] = {rows, length};
        auto report = launcher.launch(buffers, params, 0x4000, nullptr);
        EXPECT_TRUE(report.has_value()) << report.error().to_string();
        return report ? *report : LaunchReport{};
    }
    bool last_ran(const std::string& part) const { return fake->launches.back().code.find(part) != std::string::npos; }

    tests::ScriptedCompiler compiler;
    std::shared_ptr<CompilerPool> pool = std::make_shared<CompilerPool>(compiler.command(), 60, 2);
    tests::FakeCuda* fake = nullptr;
    std::shared_ptr<const Device> device;
};

TEST_F(TritonDeviceLauncher, PassesBuffersExtentsAndSlots) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    EXPECT_GT(launch(*made, 300, 768).waited_ns, 0u);
    ASSERT_EQ(fake->launches.size(), 1u);
    EXPECT_EQ(fake->launches[0].values, (std::vector<std::uint64_t>{0x1000, 0x2000, 0x3000, 300, 768, 768, 0, 0}));
    EXPECT_EQ(fake->launches[0].grid[0], 300u);  // a row each: there are few
    launch(*made, 0, 768);
    EXPECT_EQ(fake->launches.size(), 1u);
    launch(*made, 300, 768);
    EXPECT_EQ(made->variants(), 2u);  // its own, and one for all sizes
    made->settle();
    // A tile a program where a row is read once; walked rows share programs.
    for (int i = 0; i < 2; ++i, made->settle()) launch(*made, 1'000'000, 768);
    EXPECT_EQ(fake->launches.back().grid[0], 1'000'000u);
    for (int i = 0; i < 2; ++i, made->settle()) launch(*made, 100'000, 16'385);
    EXPECT_EQ(fake->launches.back().grid[0], 8u * 132u);
}

TEST_F(TritonDeviceLauncher, KeepsFewVariantsWhateverTheSizesDo) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    // Rows of 513 to 1024 elements share a tile; their lengths and addresses differ in alignment.
    for (std::int64_t length = 513; length <= 1024; ++length) {
        for (const std::uint64_t base : {0x1000, 0x1004, 0x1008}) {
            const std::uint64_t buffers[] = {base, 0x2000 + base % 16, 0x3000};
            const std::int64_t params[] = {length - 500, length};
            const auto result = made->launch(buffers, params, 0x4000, nullptr);
            ASSERT_TRUE(result.has_value()) << result.error().to_string();
        }
    }
    // Tiles of one or two rows, which end with the rows or do not; the one length of 1024 ends with its tile. And one
    // variant for all sizes.
    EXPECT_LE(made->variants(), 5 * Variants::kMostAlignments + 1);
    EXPECT_EQ(fake->launches.size(), 512u * 3u);
    // However many tiles: rows of every class, of few and many elements.
    for (std::int64_t length = 1; length <= 1 << 20; length = length * 5 / 4 + 1) {
        for (std::int64_t rows = 1; rows * length <= 1 << 30; rows = rows * 4 + 1) {
            const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
            const std::int64_t params[] = {rows, length};
            ASSERT_TRUE(made->launch(buffers, params, 0x4000, nullptr).has_value());
        }
    }
    EXPECT_LE(made->variants(), Variants::kMostVariants);
    made->settle();
}

TEST_F(TritonDeviceLauncher, LaunchesAStandInUntilItsOwnVariantIsThere) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    EXPECT_EQ(launch(*made, 300, 752).requested, 2u);
    made->settle();
    compiler.set("hold");
    // Other rows of the same tile: what assumes that lengths are multiples of 16 does not serve, what assumes nothing does.
    LaunchReport report = launch(*made, 300, 751);
    EXPECT_TRUE(report.stand_in);
    EXPECT_EQ(report.waited_ns, 0u);
    EXPECT_EQ(report.requested, 1u);
    EXPECT_TRUE(fake->launches.back().code.ends_with("EVEN_0=0 EVEN_1=0 ")) << fake->launches.back().code;
    EXPECT_EQ(fake->launches.back().values[4], 751u);
    // A longer row than the tile holds; asked for once.
    EXPECT_EQ(launch(*made, 300, 5000).requested, 1u);
    report = launch(*made, 300, 5000);
    EXPECT_TRUE(report.stand_in);
    EXPECT_EQ(report.requested, 0u);
    EXPECT_FALSE(launch(*made, 300, 736).stand_in);
    compiler.clear("hold");
    made->settle();
    EXPECT_FALSE(launch(*made, 300, 5000).stand_in);
    EXPECT_TRUE(last_ran("BLOCK_1=2048")) << fake->launches.back().code;
    // A shorter row in the tile of a longer one, while its own and the general one are not there.
    const auto other = launcher(loopir::testing::kAddReluSum);
    compiler.set("hold-general");
    launch(*other, 300, 4000);
    compiler.set("hold");
    EXPECT_TRUE(launch(*other, 300, 2048).stand_in);
    EXPECT_TRUE(last_ran("BLOCK_1=4096")) << fake->launches.back().code;
    compiler.clear("hold");
    compiler.clear("hold-general");
    other->settle();
}

TEST_F(TritonDeviceLauncher, WaitsForItsOwnVariantWhereStandInsAreNotWanted) {
    const auto made =
        DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, pool, {.stand_ins = false});
    ASSERT_TRUE(made.has_value());
    // More sets of arguments than are kept: what assumes nothing serves the rest.
    for (const std::int64_t length : {752, 751, 767, 736, 700, 768, 5000}) {
        const LaunchReport report = launch(**made, 300, length);
        EXPECT_FALSE(report.stand_in);
        EXPECT_EQ(report.waited_ns > 0, report.requested > 0);
    }
    for (const std::uint64_t base : {0x1004, 0x1008, 0x1010}) {
        const std::uint64_t buffers[] = {base, 0x2000 + base % 16, 0x3000 + 8 * (base % 16)};
        const std::int64_t params[] = {300, 752};
        EXPECT_FALSE((*made)->launch(buffers, params, 0x4000, nullptr)->stand_in);
    }
}

TEST_F(TritonDeviceLauncher, WaitsWhereNothingServes) {
    const auto other = launcher(loopir::testing::kAddReluSum);
    compiler.set("hold-general");
    launch(*other, 256, 1024);
    // All there is assumes that rows end with the tile.
    EXPECT_GT(launch(*other, 256, 1008).waited_ns, 0u);
    EXPECT_TRUE(last_ran("EVEN_1=0")) << fake->launches.back().code;
    compiler.clear("hold-general");
    other->settle();
}

TEST_F(TritonDeviceLauncher, CompilesKernelsBesideEachOther) {
    compiler.set("hold");
    const auto first = launcher(loopir::testing::kAddReluSum), second = launcher(loopir::testing::kAddReluSum);
    const std::uint64_t buffers[] = {0, 0x2000, 0};
    const std::int64_t params[] = {300, 768};
    EXPECT_EQ(first->prefetch(buffers, params), 2u);
    EXPECT_EQ(second->prefetch(buffers, params), 2u);
    EXPECT_EQ(first->prefetch(buffers, params), 0u);
    while (compiler.begun() < 2) usleep(1000);
    compiler.clear("hold");
    EXPECT_EQ(launch(*first, 300, 768).requested, 0u);
    EXPECT_EQ(launch(*second, 300, 768).requested, 0u);
    EXPECT_EQ(first->prefetch(buffers, std::array<std::int64_t, 2>{0, 768}.data()), 0u);
    first->settle();
    second->settle();
}

TEST_F(TritonDeviceLauncher, DoesWithoutAVariantThatTheCompilerRefuses) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    launch(*made, 300, 768);
    made->settle();
    compiler.set("refuse");
    EXPECT_EQ(launch(*made, 300, 5000).refusal, nullptr);
    made->settle();
    const LaunchReport told = launch(*made, 300, 5000);
    EXPECT_TRUE(told.stand_in);
    ASSERT_NE(told.refusal, nullptr);
    EXPECT_EQ(told.refusal->code(), "E0708");
    const LaunchReport again = launch(*made, 300, 5000);
    EXPECT_EQ(again.refusal, nullptr);
    EXPECT_EQ(again.requested, 0u);
    // Without anything else it is the launch that is refused.
    const auto other = launcher(loopir::testing::kAddReluSum);
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {300, 768};
    EXPECT_EQ(other->launch(buffers, params, 0x4000, nullptr).error().code(), "E0708");
}

TEST_F(TritonDeviceLauncher, ServesThreadsWhileItsPoolIsEnded) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    compiler.set("hold");
    std::thread waiting([&] {
        const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
        const std::int64_t params[] = {300, 768};
        EXPECT_EQ(made->launch(buffers, params, 0x4000, nullptr).error().code(), "E0708");
        EXPECT_EQ(made->launch(buffers, params, 0x4000, nullptr).error().code(), "E0708");
    });
    while (compiler.begun() < 1) usleep(1000);
    pool->close();
    waiting.join();
    const auto late = launcher(loopir::testing::kAddReluSum);
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {300, 768};
    EXPECT_EQ(late->launch(buffers, params, 0x4000, nullptr).error().code(), "E0708");
    EXPECT_EQ(pool->compile({}).error().code(), "E0708");
}

TEST_F(TritonDeviceLauncher, LendsMemoryToProgramsThatShareARow) {
    const auto made = launcher(loopir::testing::kAddReluSum);
    compiler.set("hold-general");
    for (int i = 0; i < 2; ++i) launch(*made, 1, 1 << 24);
    compiler.clear("hold-general");
    ASSERT_EQ(fake->launches.size(), 2u);
    EXPECT_EQ(fake->launches[0].grid[0], 512u);
    // Scratch and counters are the same for what runs one behind the other.
    EXPECT_NE(fake->launches[0].values[3], 0u);
    EXPECT_NE(fake->launches[0].values[4], 0u);
    EXPECT_EQ(fake->launches[0].values, fake->launches[1].values);
    made->settle();
}

TEST_F(TritonDeviceLauncher, RefusesWhatHasNoSource) {
    loopir::Kernel wide = verified(loopir::testing::kAttention);
    wide.attention->head_dim = loopir::IntRef::constant(257);
    const auto refused = DeviceLauncher::create(wide, device, pool);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), "E0702");
    const auto nowhere = std::make_shared<CompilerPool>(std::vector<std::string>{"/no/such/interpreter"});
    const auto made = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, nowhere);
    ASSERT_TRUE(made.has_value());
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {3, 7};
    EXPECT_EQ((*made)->launch(buffers, params, 0x4000, nullptr).error().code(), "E0707");
    EXPECT_EQ((*made)->launch(buffers, params, 0x4000, nullptr).error().code(), "E0707");
}

}  // namespace
}  // namespace flexor::codegen::triton
