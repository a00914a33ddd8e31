// Launches on the driver that only records (tests/fake), of code that a script in the compiler's place answers with.
#include "codegen/triton/device_launcher.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fake/cuda_driver.h"
#include "unit/loopir/kernels.h"

namespace flexor::codegen::triton {
namespace {

using loopir::testing::verified;
using runtime::cuda::Device;
using runtime::cuda::Driver;

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

    // Code for a kernel with parameters of those sizes, `times` times.
    std::shared_ptr<CompilerProcess> compiler(const std::vector<std::size_t>& sizes, int times) {
        fake->parameter_bytes = sizes;
        std::string answer = "ok\\nname sym\\nwarps 4\\nshared 0\\nscratch 0 1\\nparameters";
        for (const std::size_t size : sizes) answer += " " + std::to_string(size);
        answer += "\\ncubin 1\\nx";
        std::string all = "triton 3.6.0\\n";
        for (int i = 0; i < times; ++i) all += answer;
        return std::make_shared<CompilerProcess>(
            std::vector<std::string>{"/bin/sh", "-c", "printf '" + all + "'; cat >/dev/null"});
    }

    tests::FakeCuda* fake = nullptr;
    std::shared_ptr<const Device> device;
};

const std::vector<std::size_t> kNarrow = {8, 8, 8, 4, 4, 4, 8, 8};  // of add-relu-sum: buffers, extents, a stride

TEST_F(TritonDeviceLauncher, PassesBuffersExtentsAndSlots) {
    const auto made = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, compiler(kNarrow, 1));
    ASSERT_TRUE(made.has_value());
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {300, 768};
    const auto result = (*made)->launch(buffers, params, 0x4000, nullptr);
    ASSERT_TRUE(result.has_value()) << result.error().to_string();
    ASSERT_EQ(fake->launches.size(), 1u);
    EXPECT_EQ(fake->launches[0].values, (std::vector<std::uint64_t>{0x1000, 0x2000, 0x3000, 300, 768, 768, 0, 0}));
    EXPECT_EQ(fake->launches[0].grid[0], 300u);  // a row each: there are few

    const std::int64_t none[] = {0, 768};
    ASSERT_TRUE((*made)->launch(buffers, none, 0x4000, nullptr).has_value());
    EXPECT_EQ(fake->launches.size(), 1u);
    // A tile a program where a row is read once; walked rows share programs.
    const std::int64_t many[] = {1'000'000, 768};
    ASSERT_TRUE((*made)->launch(buffers, params, 0x4000, nullptr).has_value());
    EXPECT_EQ((*made)->variants(), 1u);
    fake->launches.clear();
    const auto next = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, compiler(kNarrow, 1));
    ASSERT_TRUE(next.has_value());
    ASSERT_TRUE((*next)->launch(buffers, many, 0x4000, nullptr).has_value());
    EXPECT_EQ(fake->launches[0].grid[0], 1'000'000u);
    const auto walked = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, compiler(kNarrow, 1));
    ASSERT_TRUE(walked.has_value());
    const std::int64_t longer[] = {100'000, 16'385};
    ASSERT_TRUE((*walked)->launch(buffers, longer, 0x4000, nullptr).has_value());
    EXPECT_EQ(fake->launches[1].grid[0], 8u * 132u);
}

TEST_F(TritonDeviceLauncher, KeepsFewVariantsWhateverTheSizesDo) {
    const auto made = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, compiler(kNarrow, 64));
    ASSERT_TRUE(made.has_value());
    // Rows of 513 to 1024 elements share a tile; their lengths and addresses differ in alignment.
    for (std::int64_t length = 513; length <= 1024; ++length) {
        for (const std::uint64_t base : {0x1000, 0x1004, 0x1008}) {
            const std::uint64_t buffers[] = {base, 0x2000 + base % 16, 0x3000};
            const std::int64_t params[] = {length - 500, length};
            const auto result = (*made)->launch(buffers, params, 0x4000, nullptr);
            ASSERT_TRUE(result.has_value()) << result.error().to_string();
        }
    }
    // Tiles of one or two rows, which end with the rows or do not; the one length of 1024 ends with its tile.
    EXPECT_LE((*made)->variants(), 5 * DeviceLauncher::kMostAlignments);
    EXPECT_EQ(fake->launches.size(), 512u * 3u);
}

TEST_F(TritonDeviceLauncher, LendsMemoryToProgramsThatShareARow) {
    const std::vector<std::size_t> sizes = {8, 8, 8, 8, 8, 4, 4, 4, 8, 8};
    const auto made = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, compiler(sizes, 1));
    ASSERT_TRUE(made.has_value());
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {1, 1 << 24};
    for (int i = 0; i < 2; ++i) {
        const auto result = (*made)->launch(buffers, params, 0x4000, nullptr);
        ASSERT_TRUE(result.has_value()) << result.error().to_string();
    }
    ASSERT_EQ(fake->launches.size(), 2u);
    EXPECT_EQ(fake->launches[0].grid[0], 512u);
    // Scratch and counters are the same for what runs one behind the other.
    EXPECT_NE(fake->launches[0].values[3], 0u);
    EXPECT_NE(fake->launches[0].values[4], 0u);
    EXPECT_EQ(fake->launches[0].values, fake->launches[1].values);
}

TEST_F(TritonDeviceLauncher, RefusesWhatHasNoSource) {
    loopir::Kernel wide = verified(loopir::testing::kAttention);
    wide.attention->head_dim = loopir::IntRef::constant(257);
    const auto refused = DeviceLauncher::create(wide, device, compiler({}, 0));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), "E0702");
    // The compiler's refusal is the launch's, and the next launch asks again.
    const auto nowhere = std::make_shared<CompilerProcess>(std::vector<std::string>{"/no/such/interpreter"});
    const auto made = DeviceLauncher::create(verified(loopir::testing::kAddReluSum), device, nowhere);
    ASSERT_TRUE(made.has_value());
    const std::uint64_t buffers[] = {0x1000, 0x2000, 0x3000};
    const std::int64_t params[] = {3, 7};
    EXPECT_EQ((*made)->launch(buffers, params, 0x4000, nullptr).error().code(), "E0707");
    EXPECT_EQ((*made)->variants(), 0u);
}

}  // namespace
}  // namespace flexor::codegen::triton
