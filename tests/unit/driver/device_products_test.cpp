// Products of the library (tests/fake/cublaslt.h) against the loop-IR evaluator, over dtypes, layouts and sizes.
#include "driver/device_products.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codegen/product/product_launcher.h"
#include "driver/device_kernels.h"
#include "fake/cublaslt.h"
#include "fake/cuda_driver.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "runtime/cuda/devices.h"
#include "types/half.h"
#include "unit/loopir/kernels.h"

namespace flexor::driver {
namespace {

using codegen::product::library_computes;
using codegen::product::library_product;
using codegen::product::Part;
using codegen::product::Policy;
using loopir::testing::verified;
using runtime::cuda::CudaPointer;
using runtime::cuda::Launcher;
using runtime::cuda::LaunchReport;

enum Slot : std::size_t { kBatch, kM, kN, kK, kAt, kAb, kAr, kAc, kBb, kBr, kBc, kDb, kDr, kDc, kSlots };
using Params = std::array<std::int64_t, kSlots>;

enum class Tail : std::uint8_t { kNothing, kBias, kBiasAndMore, kMore };

std::string text_of(const std::string& dtype, Tail tail) {
    const bool halves = dtype == "bf16" || dtype == "f16";
    const std::string sums = dtype == "f64" ? "f64" : "f32";
    std::string out = "kernel main:1:product(%0: in " + dtype + ", %1: in " + dtype +
                      ", %2: " + (tail == Tail::kNothing || tail == Tail::kMore ? "unused " : "in ") + dtype +
                      ", %3: out " + dtype + ") params 14\ncontraction batch 1 m p1 n p2 k p3 accumulate " + sums +
                      "\n  a %0 : " + dtype + " + p4 [p5] row p6 col p7\n  b %1 : " + dtype +
                      " [p8] row p9 col p10\n  epilogue parallel [p0, p1, p2] row []\n    v0 = accumulator : " + sums +
                      "\n";
    int next = 1;
    const auto value = [&](const std::string& text) {
        out += "    v" + std::to_string(next) + " = " + text + "\n";
        return "v" + std::to_string(next++);
    };
    std::string last = "v0";
    if (tail == Tail::kBias || tail == Tail::kBiasAndMore) {
        std::string bias = value("load %2 [0, 0, 1] : " + dtype);
        if (halves) bias = value("cast " + bias + " : f32");
        last = value("add " + last + ", " + bias + " : " + sums);
    }
    if (halves) last = value("cast " + last + " : " + dtype);
    if (tail == Tail::kBiasAndMore || tail == Tail::kMore) {
        const std::string x = halves ? value("cast " + last + " : f32") : last;
        last = value("add " + value("mul " + x + ", " + x + " : " + sums) + ", " + x + " : " + sums);
        if (halves) last = value("cast " + last + " : " + dtype);
    }
    return out + "    s0 = store %3 [p11, p12, p13] " + last + "\n";
}

struct Buffer {
    std::vector<char> host;
    CudaPointer memory = 0;
};

class Counting final : public Launcher {
public:
    explicit Counting(std::shared_ptr<Launcher> inner) : inner_(std::move(inner)) {}
    Expected<LaunchReport> launch(std::span<const CudaPointer> buffers, const std::int64_t* params, CudaPointer fault,
                                  runtime::cuda::CudaStream stream) override {
        ++launches;
        return inner_->launch(buffers, params, fault, stream);
    }
    int launches = 0;

private:
    std::shared_ptr<Launcher> inner_;
};

class DeviceProductsTest : public testing::Test {
protected:
    void SetUp() override {
        cuda_ = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW);
        void* library = dlopen(FLEXOR_FAKE_CUBLASLT, RTLD_NOW);
        ASSERT_TRUE(cuda_ != nullptr && library != nullptr);
        fake = reinterpret_cast<tests::FakeCublasLt* (*)()>(dlsym(library, "fake_cublaslt_state"))();
        const int handles = fake->handles;
        *fake = {};
        fake->handles = handles;
        const auto opened = devices_.get(0);
        ASSERT_TRUE(opened.has_value());
        device = *opened;
        products = std::make_unique<DeviceProducts>(Policy::kAlways, FLEXOR_FAKE_CUBLASLT);
    }

    void use(const std::string& text) {
        kernel = verified(text);
        own = std::make_shared<Counting>(evaluated_launcher(kernel, device));
        launcher = products->choose(kernel, device, own, [&](const loopir::Kernel& rest) {
            EXPECT_TRUE(loopir::verify(rest).has_value()) << loopir::print(rest);
            return evaluated_launcher(rest, device);
        });
    }

    static std::int64_t reach(const Params& p, std::initializer_list<std::pair<Slot, Slot>> steps) {
        std::int64_t out = 1;
        for (const auto& [extent, stride] : steps) out += std::max<std::int64_t>(p[extent] - 1, 0) * p[stride];
        return out;
    }

    double value(const std::vector<char>& bytes, DType dtype, std::size_t i) const {
        const auto read = [&](auto zero) {
            std::memcpy(&zero, bytes.data() + i * sizeof zero, sizeof zero);
            return zero;
        };
        switch (dtype) {
            case DType::kF32: return static_cast<double>(read(float{}));
            case DType::kF64: return read(double{});
            case DType::kF16: return static_cast<double>(types::f32_from_f16(read(std::uint16_t{})));
            default: return static_cast<double>(types::f32_from_bf16(read(std::uint16_t{})));
        }
    }

    // Runs the launcher and the evaluator on the same memory; what the launcher handed over.
    LaunchReport run(const Params& p) {
        const DType dtype = kernel.contraction->a_dtype;
        const std::size_t item = dtype_size(dtype);
        const std::int64_t lengths[] = {
            p[kAt] + reach(p, {{kBatch, kAb}, {kM, kAr}, {kK, kAc}}), reach(p, {{kBatch, kBb}, {kK, kBr}, {kN, kBc}}),
            std::max<std::int64_t>(p[kN], 1), reach(p, {{kBatch, kDb}, {kM, kDr}, {kN, kDc}})};
        std::vector<std::vector<char>> host;
        std::vector<CudaPointer> addresses;
        std::uniform_int_distribution<int> eighths(-16, 16);
        auto* memory = reinterpret_cast<void* (*)(std::uint64_t)>(dlsym(cuda_, "fake_cuda_memory"));
        for (const std::int64_t length : lengths) {
            host.emplace_back(static_cast<std::size_t>(length) * item);
            for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
                const float x = static_cast<float>(eighths(random)) / 8;
                const double wide = static_cast<double>(x);
                const std::uint16_t half = dtype == DType::kF16 ? types::f16_from_f32(x) : types::bf16_from_f32(x);
                const void* from = item == 2   ? static_cast<const void*>(&half)
                                   : item == 4 ? static_cast<const void*>(&x)
                                               : &wide;
                std::memcpy(host.back().data() + i * item, from, item);
            }
            const auto made = device->allocate(host.back().size(), nullptr);
            EXPECT_TRUE(made.has_value());
            addresses.push_back(*made);
            std::memcpy(memory(*made), host.back().data(), host.back().size());
        }
        const auto done = launcher->launch(addresses, p.data(), 0, nullptr);
        EXPECT_TRUE(done.has_value()) << done.error().to_string();
        std::vector<char> found(host.back().size());
        std::memcpy(found.data(), memory(addresses.back()), found.size());
        std::vector<void*> pointers;
        for (std::vector<char>& bytes : host) pointers.push_back(bytes.data());
        loopir::EvalArgs args{pointers.data(), p.data()};
        loopir::evaluate(kernel, args);
        const double tolerance = dtype == DType::kF64 ? 1e-13 : dtype == DType::kF32 ? 1e-6 : 1e-2;
        for (std::size_t i = 0; i < found.size() / item; ++i) {
            const double a = value(found, dtype, i), b = value(host.back(), dtype, i);
            EXPECT_LE(std::fabs(a - b), tolerance * std::max(1.0, std::fabs(b))) << "element " << i;
            if (HasFailure()) break;
        }
        for (const CudaPointer address : addresses) device->release(address, nullptr);
        return done ? *done : LaunchReport{};
    }

    // Dense, but for what is asked for.
    static Params dense(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool turn_a = false,
                        bool turn_b = false, std::int64_t gap = 0) {
        Params p{batch, m, n, k};
        p[kAr] = turn_a ? 1 : k + gap;
        p[kAc] = turn_a ? m + gap : 1;
        p[kAb] = turn_a ? k * (m + gap) : m * (k + gap);
        p[kBr] = turn_b ? 1 : n + gap;
        p[kBc] = turn_b ? k + gap : 1;
        p[kBb] = turn_b ? n * (k + gap) : k * (n + gap);
        p[kDr] = n + gap;
        p[kDc] = 1;
        p[kDb] = m * (n + gap);
        return p;
    }

    void* cuda_ = nullptr;
    runtime::cuda::Devices devices_{FLEXOR_FAKE_CUDA};
    std::shared_ptr<const runtime::cuda::Device> device;
    tests::FakeCublasLt* fake = nullptr;
    std::unique_ptr<DeviceProducts> products;
    loopir::Kernel kernel;
    std::shared_ptr<Counting> own;
    std::shared_ptr<Launcher> launcher;
    std::mt19937 random{7};
};

TEST_F(DeviceProductsTest, AgreesWithTheEvaluator) {
    fake->workspace = 512;
    for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
        for (const Tail tail : {Tail::kNothing, Tail::kBias, Tail::kBiasAndMore, Tail::kMore}) {
            use(text_of(dtype, tail));
            const bool more = tail == Tail::kBiasAndMore || tail == Tail::kMore;
            for (const auto& [batch, m, n, k] :
                 {std::array{1, 1, 1, 1}, {1, 3, 1, 5}, {1, 1, 7, 2}, {2, 3, 5, 4}, {3, 17, 1, 1}, {1, 33, 15, 16}}) {
                for (const int form : {0, 1, 2, 3}) {
                    for (const int gap : {0, 1, 3}) {
                        SCOPED_TRACE(std::string(dtype) + " " + std::to_string(static_cast<int>(tail)) + " " +
                                     std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " form " +
                                     std::to_string(form) + " gap " + std::to_string(gap));
                        Params p = dense(batch, m, n, k, (form & 1) != 0, (form & 2) != 0, gap);
                        p[kAt] = gap == 3 ? 1 : 0;
                        const LaunchReport done = run(p);
                        EXPECT_EQ(done.by_library, 1u);
                        EXPECT_EQ(done.launches, more ? 2u : 1u);
                        if (HasFailure()) return;
                    }
                }
            }
        }
    }
    EXPECT_EQ(own->launches, 0);
    EXPECT_NE(launcher->note().find("cuBLASLt computed"), std::string::npos) << launcher->note();
}

TEST_F(DeviceProductsTest, OneRightSideForAllBatchesIsMoreRows) {
    use(text_of("f32", Tail::kBias));
    Params p = dense(3, 4, 5, 6);
    p[kBb] = 0;
    EXPECT_EQ(run(p).by_library, 1u);
    p[kAb] += 2;  // apart from each other: batches that share a side
    EXPECT_EQ(run(p).by_library, 1u);
}

TEST_F(DeviceProductsTest, LeavesToTheKernelWhatTheLibraryDoesNotTake) {
    use(text_of("f32", Tail::kBias));
    int runs = 0;
    const auto is_own = [&](const Params& p) {
        EXPECT_EQ(run(p).by_library, 0u);
        EXPECT_EQ(own->launches, ++runs);
    };
    for (const auto& [m, n, k] : {std::array{0, 3, 4}, {3, 0, 4}, {3, 4, 0}}) is_own(dense(1, m, n, k));
    is_own(dense(0, 3, 4, 5));
    Params rows_alike = dense(1, 3, 4, 5);
    rows_alike[kAr] = 0;
    is_own(rows_alike);
    Params spread = dense(1, 3, 4, 5);
    spread[kBr] = 12;
    spread[kBc] = 3;
    is_own(spread);
    Params overlapping = dense(1, 3, 4, 5);
    overlapping[kAr] = 2;
    is_own(overlapping);
    Params turned = dense(1, 3, 4, 5);
    turned[kDr] = 1;
    turned[kDc] = 3;
    is_own(turned);
    fake->no_algorithm = true;
    is_own(dense(1, 300, 4, 5));
    EXPECT_EQ(fake->multiplied, 0);
}

TEST_F(DeviceProductsTest, SizesShareAlgorithms) {
    use(text_of("f32", Tail::kNothing));
    for (std::int64_t m = 1; m <= 32; ++m) run(dense(1, m, 8, 8));
    EXPECT_EQ(fake->asked, 1);
    EXPECT_EQ(fake->multiplied, 32);
    run(dense(1, 33, 8, 8));
    EXPECT_EQ(fake->asked, 2);
    run(dense(1, 3, 8, 8, false, false, 1));  // rows that are aligned no more
    EXPECT_EQ(fake->asked, 3);
}

TEST_F(DeviceProductsTest, AsksForTheSizesThemselvesWhereTheSharedAlgorithmIsRefused) {
    use(text_of("f32", Tail::kMore));
    fake->refuse = 1;
    EXPECT_EQ(run(dense(1, 3, 8, 8)).by_library, 1u);
    EXPECT_EQ(fake->asked, 2);
    fake->refuse = 2;
    EXPECT_EQ(run(dense(1, 3, 8, 8)).by_library, 0u);
    EXPECT_EQ(own->launches, 1);
}

TEST_F(DeviceProductsTest, KnowsNoOtherSums) {
    loopir::Kernel other = verified(text_of("f32", Tail::kBias));
    ASSERT_TRUE(library_product(other)->bias.has_value());
    // A bias that is rounded otherwise than the result, or that is no vector, is added by a kernel of our own.
    other.body.accesses[0].strides[2] = loopir::IntRef::constant(2);
    ASSERT_TRUE(library_product(other)->rest.has_value());
    EXPECT_FALSE(library_product(other)->bias.has_value());
    EXPECT_FALSE(library_product(verified(loopir::testing::kAddReluSum)).has_value());
    other.contraction->accumulator = DType::kF64;
    EXPECT_FALSE(library_product(other).has_value());
}

TEST_F(DeviceProductsTest, WithoutTheLibraryKernelsAreOurOwn) {
    products = std::make_unique<DeviceProducts>(Policy::kAlways, "libno-such-library.so");
    use(text_of("f32", Tail::kBias));
    EXPECT_EQ(run(dense(1, 3, 4, 5)).by_library, 0u);
    EXPECT_EQ(own->launches, 1);
    products = std::make_unique<DeviceProducts>(Policy::kNever, FLEXOR_FAKE_CUBLASLT);
    use(text_of("f32", Tail::kBias));
    EXPECT_EQ(launcher, own);
}

TEST_F(DeviceProductsTest, TheTableDecides) {
    EXPECT_TRUE(library_computes(DType::kF32, Part::kWhole, {1, 2048, 3072, 768}, 90));
    EXPECT_FALSE(library_computes(DType::kF32, Part::kWhole, {1, 2048, 3072, 768}, 80));
    EXPECT_FALSE(library_computes(DType::kF32, Part::kWhole, {1, 1, 3, 4}, 90));
    products = std::make_unique<DeviceProducts>(Policy::kMeasured, FLEXOR_FAKE_CUBLASLT);
    use(text_of("f32", Tail::kNothing));
    EXPECT_EQ(run(dense(1, 3, 4, 5)).by_library, 0u);
    EXPECT_EQ(run(dense(1, 128, 256, 256)).by_library, 1u);
}

TEST_F(DeviceProductsTest, SessionsCountAndNameThem) {
    const auto module = Module::from_text(
        ".weight w f32[2, 2] = [1.0, 2.0, 3.0, 4.0]\n.func main(x: f32[N, 2]) -> 1\n  LOAD_LOCAL x\n  LOAD_WEIGHT w\n"
        "  CALL_OP matmul 2\n  RETURN 1\n",
        "test.fasm");
    ASSERT_TRUE(module.has_value()) << module.error().to_string();
    StressOptions stress{.evaluate_kernels = true, .device_driver = FLEXOR_FAKE_CUDA};
    stress.product_library = FLEXOR_FAKE_CUBLASLT;
    Session session({}, stress);
    const auto memory = device->allocate(64, nullptr);
    ASSERT_TRUE(memory.has_value());
    const Value x(Tensor::from_blob(reinterpret_cast<void*>(*memory), DType::kF32, std::vector<std::int64_t>{3, 2},
                                    std::vector<std::int64_t>{2, 1}, nullptr, nullptr, {DeviceKind::kCuda, 0}));
    CallOptions there;
    there.device = {DeviceKind::kCuda, 0};
    for (int i = 0; i < 2; ++i) {
        const auto ran = session.run(*module, {x}, there);
        ASSERT_TRUE(ran.has_value()) << ran.error().to_string();
    }
    EXPECT_EQ(session.stats().library_launches, 2u);
    EXPECT_EQ(session.stats().device_launches, 2u);
    EXPECT_NE(to_text(session.stats()).find("2 of cuBLASLt"), std::string::npos);
    device->release(*memory, nullptr);
}

}  // namespace
}  // namespace flexor::driver
