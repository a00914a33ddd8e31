// The device runtime on a driver that only records (tests/fake/cuda_driver.h); a real one is not asked for.
#include "runtime/cuda/device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fake/cuda_driver.h"
#include "runtime/cuda/device_timer.h"

namespace flexor::runtime::cuda {
namespace {

class CudaRuntime : public testing::Test {
protected:
    void SetUp() override {
        void* library = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        fake = reinterpret_cast<tests::FakeCuda* (*)()>(dlsym(library, "fake_cuda_state"))();
        *fake = {};
        const auto opened = Driver::open(FLEXOR_FAKE_CUDA);
        ASSERT_TRUE(opened.has_value()) << opened.error().to_string();
        driver = *opened;
    }
    std::shared_ptr<const Device> device() {
        const auto opened = Device::open(driver, 0);
        EXPECT_TRUE(opened.has_value());
        return *opened;
    }
    DeviceCode code() {
        fake->parameter_bytes = {8, 4, 8, 8};
        DeviceCode out;
        out.symbol = "k";
        out.warps = 8;
        out.parameter_bytes = {8, 4, 8, 8};
        return out;
    }
    void fail(const char* call, int code = 700) {
        fake->failing = call;
        fake->code = code;
    }

    tests::FakeCuda* fake = nullptr;
    std::shared_ptr<const Driver> driver;
};

TEST_F(CudaRuntime, SaysWhatIsMissing) {
    const auto none = Driver::open("libno-such-driver.so");
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code(), "E0709");
    EXPECT_NE(device_report("libno-such-driver.so").find("missing"), std::string::npos);
    EXPECT_EQ(Device::open(driver, 1).error().code(), "E0709");
    EXPECT_EQ(Device::open(driver, -1).error().code(), "E0709");
    fail("cuInit");
    EXPECT_EQ(Driver::open(FLEXOR_FAKE_CUDA).error().code(), "E0709");
    EXPECT_NE(device_report(FLEXOR_FAKE_CUDA).find("Fake, compute capability 9.0"), std::string::npos);
    fake->devices = 0;
    EXPECT_NE(device_report(FLEXOR_FAKE_CUDA).find("none"), std::string::npos);
}

TEST_F(CudaRuntime, TimesLaunchesByEvents) {
    const auto opened = device();
    const int events = fake->events;
    double sum = 0;
    {
        DeviceTimer timer(opened, nullptr);
        for (int i = 0; i < 300; ++i) {  // more than are held back at once
            ASSERT_TRUE(timer.begin().has_value());
            ASSERT_TRUE(timer.end([&](double seconds) { sum += seconds; }).has_value());
        }
        ASSERT_TRUE(timer.finish().has_value());
        EXPECT_NEAR(sum, 300 * 0.0005, 1e-9);
        ASSERT_TRUE(timer.begin().has_value());  // and never ended
        fail("cuLaunchHostFunc");
        DeviceTimer other(opened, nullptr);
        EXPECT_EQ(other.begin().error().code(), "E0710");
    }
    EXPECT_EQ(fake->events, events);
    const Floor floor = device_floor(opened, nullptr);
    EXPECT_GT(floor.bytes_per_second, 0);
    // 132 multiprocessors at 1 GHz, of capability 9.0.
    EXPECT_NEAR(floor.products_per_second(DType::kBF16), 132e9 * 4096, 1);
    EXPECT_NEAR(floor.operations_per_second, 132e9 * 256, 1);
    EXPECT_GT(host_floor().bytes_per_second, 0);
}

TEST_F(CudaRuntime, SharesThePrimaryContextAndGivesItBack) {
    auto first = device();
    EXPECT_EQ(first->name(), "Fake");
    EXPECT_EQ(first->capability(), 90);
    EXPECT_EQ(first->multiprocessors(), 132);
    auto stream = Stream::create(first);
    ASSERT_TRUE(stream.has_value());
    EXPECT_TRUE((*stream)->wait_for(nullptr).has_value());
    first.reset();
    EXPECT_EQ(fake->contexts, 1);  // the stream keeps it
    stream = std::shared_ptr<const Stream>();
    EXPECT_EQ(fake->contexts, 0);
    EXPECT_EQ(fake->streams + fake->events, 0);
    EXPECT_EQ(fake->pushed, 0);
    fail("cuDevicePrimaryCtxRetain", 2);
    EXPECT_EQ(Device::open(driver, 0).error().code(), "E0602");
    EXPECT_EQ(fake->contexts, 0);
}

TEST_F(CudaRuntime, MovesMemoryInTheOrderOfAStream) {
    const auto gpu = device();
    const auto memory = gpu->allocate(4, nullptr);
    ASSERT_TRUE(memory.has_value());
    const char text[4] = {'a', 'b', 'c', 'd'};
    char back[4] = {};
    ASSERT_TRUE(gpu->copy_to_device(*memory, text, 4, nullptr).has_value());
    ASSERT_TRUE(gpu->copy_to_host(back, *memory, 4, nullptr).has_value());
    EXPECT_EQ(std::string(back, 4), "abcd");
    gpu->release(*memory, nullptr);
    EXPECT_EQ(fake->blocks, 0u);
    EXPECT_EQ(gpu->allocate(0, nullptr).value(), 0u);

    fail("cuMemAllocAsync", 2);
    const auto full = gpu->allocate(1 << 20, nullptr);
    ASSERT_FALSE(full.has_value());
    EXPECT_EQ(full.error().code(), "E0602");
    EXPECT_NE(full.error().to_string().find("1048576 bytes on device 0"), std::string::npos);
    const auto next = gpu->allocate(16, nullptr);
    ASSERT_TRUE(next.has_value());
    gpu->release(*next, nullptr);
    fail("cuStreamSynchronize");
    EXPECT_EQ(gpu->synchronize(nullptr).error().code(), "E0710");
    EXPECT_EQ(fake->pushed, 0);
}

TEST_F(CudaRuntime, LaunchesWithTheCompilersOwnParameters) {
    const auto kernel = DeviceKernel::load(device(), code(), "main:3:softmax");
    ASSERT_TRUE(kernel.has_value()) << kernel.error().to_string();
    const std::uint64_t arguments[] = {0x123456789abcdef0, static_cast<std::uint64_t>(std::int64_t{-5})};
    ASSERT_TRUE((*kernel)->launch(7, arguments, nullptr).has_value());
    ASSERT_EQ(fake->launches.size(), 1u);
    const tests::FakeLaunch& launch = fake->launches[0];
    EXPECT_EQ(launch.grid[0], 7u);
    EXPECT_EQ(launch.threads, 256u);
    EXPECT_EQ(launch.values, (std::vector<std::uint64_t>{0x123456789abcdef0, 0xfffffffb, 0, 0}));
    ASSERT_TRUE((*kernel)->launch(0, arguments, nullptr).has_value());
    EXPECT_EQ(fake->launches.size(), 1u);
    EXPECT_EQ(fake->pushed, 0);
}

TEST_F(CudaRuntime, AsksForLargeSharedMemory) {
    DeviceCode large = code();
    large.shared_bytes = 100'000;
    ASSERT_TRUE(DeviceKernel::load(device(), large, "k").has_value());
    EXPECT_EQ(fake->dynamic_shared, 100'000);
    EXPECT_EQ(fake->modules, 0);
}

TEST_F(CudaRuntime, NamesTheKernelThatFails) {
    const auto gpu = device();
    DeviceCode other = code();
    other.parameter_bytes[1] = 8;
    EXPECT_EQ(DeviceKernel::load(gpu, other, "k").error().code(), "E0710");
    other = code();
    other.parameter_bytes = {8};
    EXPECT_EQ(DeviceKernel::load(gpu, other, "k").error().code(), "E0710");
    other = code();
    other.scratch_bytes = 128;
    EXPECT_EQ(DeviceKernel::load(gpu, other, "k").error().code(), "E0710");
    for (const char* call : {"cuModuleLoadData", "cuModuleGetFunction"}) {
        fail(call);
        EXPECT_EQ(DeviceKernel::load(gpu, code(), "k").error().code(), "E0710") << call;
    }
    EXPECT_EQ(fake->modules, 0);
    const auto kernel = DeviceKernel::load(gpu, code(), "main:3:softmax");
    ASSERT_TRUE(kernel.has_value());
    fail("cuLaunchKernel");
    const std::uint64_t arguments[] = {0, 0};
    const auto result = (*kernel)->launch(1, arguments, nullptr);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), "E0710");
    const std::string said = result.error().to_string();
    EXPECT_NE(said.find("main:3:softmax"), std::string::npos) << said;
    EXPECT_NE(said.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << said;
    EXPECT_TRUE((*kernel)->launch(1, arguments, nullptr).has_value());
}

}  // namespace
}  // namespace flexor::runtime::cuda
