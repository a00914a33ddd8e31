// Graphs on a driver that only records (tests/fake/cuda_driver.h).
#include "runtime/cuda/graph.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fake/cuda_driver.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/device_code.h"
#include "runtime/cuda/device_pool.h"

namespace flexor::runtime::cuda {
namespace {

class CudaGraphs : public testing::Test {
protected:
    void SetUp() override {
        void* library = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        fake = reinterpret_cast<tests::FakeCuda* (*)()>(dlsym(library, "fake_cuda_state"))();
        *fake = {};
        fake->parameter_bytes = {8, 8, 8};
        const auto driver = Driver::open(FLEXOR_FAKE_CUDA);
        ASSERT_TRUE(driver.has_value()) << driver.error().to_string();
        device = *Device::open(*driver, 0);
    }
    // A chain whose kernels get their place in it; `waits` says of each whether it waits by itself.
    Expected<std::shared_ptr<Graph>> chain(const std::vector<bool>& waits, std::shared_ptr<const Device> on) {
        DeviceCode code;
        code.symbol = "k";
        code.parameter_bytes = {8, 8, 8};
        std::vector<GraphNode> nodes;
        for (std::size_t i = 0; i < waits.size(); ++i) {
            FLEXOR_ASSIGN(const std::shared_ptr<const DeviceKernel> kernel, DeviceKernel::load(on, code, "k"));
            GraphNode node;
            node.function = kernel->function();
            node.keeps = kernel;
            node.name = "k" + std::to_string(i);
            node.programs = 1;
            node.threads = kernel->threads();
            node.arguments = {{GraphArgument::Kind::kValue, i}, {}, {}};
            node.waits = waits[i];
            nodes.push_back(std::move(node));
        }
        const auto pool = DevicePool::create(on, {});
        FLEXOR_ASSIGN(Tensor own, pool->bytes(Graph::memory_bytes(nodes, {}), nullptr));
        return Graph::make(on, std::move(nodes), {}, std::move(own), {}, nullptr);
    }

    tests::FakeCuda* fake = nullptr;
    std::shared_ptr<const Device> device;
};

TEST_F(CudaGraphs, KernelsThatWaitMayBeginEarly) {
    const auto graph = chain({true, true, false, true}, device);
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    EXPECT_EQ(fake->early_edges, 2);  // none in front of the first, and the third does not wait
    EXPECT_TRUE(*(*graph)->launch(nullptr, nullptr, nullptr));
    ASSERT_EQ(fake->launches.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(fake->launches[i].values[0], i);
}

TEST_F(CudaGraphs, DriversWithoutEarlyEdgesGetWholeOnes) {
    auto old = std::make_shared<Driver>(device->driver());
    old->add_dependencies = nullptr;
    const auto opened = Device::open(old, 0);
    ASSERT_TRUE(opened.has_value());
    const auto graph = chain({true, true, true}, *opened);
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    EXPECT_EQ(fake->early_edges, 0);
    EXPECT_TRUE(*(*graph)->launch(nullptr, nullptr, nullptr));
    EXPECT_EQ(fake->launches.size(), 3u);
}

TEST_F(CudaGraphs, NamesTheKernelWhoseEdgeFails) {
    fake->failing = "cuGraphAddDependencies";
    fake->code = 700;
    const auto graph = chain({true, true}, device);
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code(), "E0710");
    EXPECT_NE(graph.error().to_string().find("k1"), std::string::npos) << graph.error().to_string();
    EXPECT_EQ(fake->graphs, 0);
}

}  // namespace
}  // namespace flexor::runtime::cuda
