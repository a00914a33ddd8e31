// What becomes of ops that no kernel can be made for: tried once, stepped over, the rest compiled.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "flexor/session.h"

namespace flexor {
namespace {

constexpr int kOps = 40;

// `refused` stands between two stretches of kOps ops each.
Module module_around(const std::string& params, const std::string& refused) {
    std::string text = ".func main(" + params + ") -> 1\n  LOAD_LOCAL x\n";
    const auto stretch = [&] {
        for (int i = 0; i < kOps; ++i) text += i % 2 == 0 ? "  CONST_SCALAR 0.9\n  BINARY_MUL\n" : "  CALL_OP relu 1\n";
    };
    stretch();
    text += refused;
    stretch();
    auto module = Module::from_text(text + "  RETURN 1\n", "test.fasm");
    if (!module) ADD_FAILURE() << module.error().to_string();
    return std::move(*module);
}

Tensor filled(std::vector<std::int64_t> sizes, float value) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
        tensor.data_as<float>()[i] = value + 0.01f * static_cast<float>(i);
    return tensor;
}

void expect_linear(const Module& module, const std::vector<std::vector<Value>>& calls) {
    Session session;
    SessionOptions interpreted;
    interpreted.compile = false;
    Session oracle(interpreted);
    std::uint64_t attempts = 0;
    for (const std::vector<Value>& arguments : calls) {
        const auto found = session.run(module, arguments);
        const auto wanted = oracle.run(module, arguments);
        ASSERT_TRUE(found) << found.error().to_string();
        ASSERT_TRUE(wanted) << wanted.error().to_string();
        const Tensor a = (*found)[0].tensor().contiguous(), b = (*wanted)[0].tensor().contiguous();
        ASSERT_EQ((*found)[0].describe(), (*wanted)[0].describe());
        for (std::int64_t i = 0; i < a.numel(); ++i)
            EXPECT_NEAR(a.data_as<float>()[i], b.data_as<float>()[i], 1e-4 * std::abs(b.data_as<float>()[i]) + 1e-6);
        const Stats stats = session.stats();
        // The refusal itself, the region before the op and the one behind it.
        if (attempts == 0) attempts = stats.compilations + stats.failed_compilations;
        EXPECT_LE(attempts, 5u);
        EXPECT_EQ(stats.compilations + stats.failed_compilations, attempts) << "other sizes ask again";
        ASSERT_EQ(stats.fallbacks.size(), 1u);
    }
    const Stats stats = session.stats();
    EXPECT_EQ(stats.failed_compilations, 1u);
    EXPECT_EQ(stats.fallbacks[0].count, calls.size());
    EXPECT_EQ(stats.interpreted_ops, calls.size());
}

TEST(RefusedOp, TheCodeGeneratorRefusesItOnce) {
    if (!Session::has_code_generator()) GTEST_SKIP() << "needs the code generator";
    // A batch of seven dims that lie in another order than they are read, so that none of them collapse.
    const Module module = module_around("x: f32[A, B, 2, 1, 2, 3, 2, 3, 4], y: f32[2, 3, 2, 1, 2, B, A, 4, 3]",
                                        "  CALL_OP relu 1\n  LOAD_LOCAL y\n"
                                        "  CALL_OP permute 1 axes=[6, 5, 4, 3, 2, 1, 0, 7, 8]\n  CALL_OP matmul 2\n");
    std::vector<std::vector<Value>> calls;
    for (const std::int64_t n : {2, 3, 4})
        calls.push_back({filled({n, 2, 2, 1, 2, 3, 2, 3, 4}, -0.5f), filled({2, 3, 2, 1, 2, 2, n, 4, 3}, 0.1f)});
    expect_linear(module, calls);
}

}  // namespace
}  // namespace flexor
