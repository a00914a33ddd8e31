// What the run itself must refuse, whatever engine it runs on: writes to weights, writes that meet what they read,
// divisions by zero, indices out of range, sizes that say nothing.
#include <gtest/gtest.h>

#include "flexor/session.h"

namespace flexor {
namespace {

Tensor floats(std::initializer_list<std::int64_t> sizes, float first = 1) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<float>()[i] = first + static_cast<float>(i);
    return tensor;
}

Tensor integers(std::initializer_list<std::int64_t> sizes, std::vector<std::int64_t> values) {
    Tensor tensor = Tensor::empty(DType::kI64, sizes);
    std::copy(values.begin(), values.end(), tensor.data_as<std::int64_t>());
    return tensor;
}

Tensor seen_as(const Tensor& tensor, std::int64_t offset, std::vector<std::int64_t> sizes,
               std::vector<std::int64_t> strides) {
    return tensor.view(tensor.data_as<float>() + offset, tensor.dtype(), sizes, strides);
}

std::vector<float> values_of(const Value& value) {
    const Tensor tensor = value.tensor().contiguous();
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
}

class RefusalTest : public testing::TestWithParam<int> {
protected:
    RefusalTest() : session_(options()) {}
    static SessionOptions options() {
        SessionOptions options;
        options.compile = GetParam() != 0;
        options.evaluate_kernels = GetParam() == 2;
        return options;
    }
    static Module module_from(std::string_view text) {
        auto module = Module::from_text(text, "test.fasm");
        if (!module) ADD_FAILURE() << module.error().to_string();
        return std::move(*module);
    }
    // The number of the refusal, or "" and the results.
    std::string run(const Module& module, std::vector<Value> arguments, std::vector<Value>* out = nullptr) {
        auto results = session_.run(module, arguments);
        if (!results) return results.error().code();
        if (out != nullptr) *out = std::move(*results);
        return "";
    }
    Session session_;
};

INSTANTIATE_TEST_SUITE_P(Engines, RefusalTest, testing::Values(0, 1, 2), [](const auto& info) {
    return std::string(info.param == 0 ? "interpreted" : (info.param == 1 ? "compiled" : "evaluated"));
});

// ---------------------------------------------------------------- divisions whose result nobody reads

TEST_P(RefusalTest, UnreadDivisionByZero) {
    for (const char* op : {"floor_divide", "remainder", "fmod"}) {
        const Module module = module_from(R"(
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP )" + std::string(op) + R"( 2
  POP
  LOAD_LOCAL x
  LOAD_CONST 2
  CALL_OP floor_divide 2
  POP
  LOAD_LOCAL x
  LOAD_CONST 1
  CALL_OP add 2
  RETURN 1
)");
        EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "") << op;
        EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 0})}), "E0310") << op;
        EXPECT_EQ(run(module, {integers({0}, {}), integers({0}, {})}), "") << op;
    }
}

TEST_P(RefusalTest, DivisionByZeroWhoseResultCannotMatter) {
    const Module module = module_from(R"(
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP floor_divide 2
  LOAD_CONST 0
  CALL_OP mul 2
  RETURN 1
)");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {0, 3})}), "E0310");
}

TEST_P(RefusalTest, DivisionByZeroOutsideWhatIsRead) {
    const Module module = module_from(R"(
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP floor_divide 2
  CALL_OP slice 1 axis=0, stop=1
  LOAD_CONST 1
  CALL_OP add 2
  RETURN 1
)");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 0})}), "E0310");
}

}  // namespace
}  // namespace flexor
