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

// ---------------------------------------------------------------- weights

TEST_P(RefusalTest, WeightBehindABranch) {
    const Module module = module_from(R"(
.weight w f32[3] = ones
.func main(x: f32[3], own: bool) -> 1
  LOAD_LOCAL own
  BRANCH_IF_FALSE lent
  LOAD_LOCAL x
  CALL_OP clone 1
  STORE_LOCAL y
  JUMP meet
lent:
  LOAD_WEIGHT w
  STORE_LOCAL y
meet:
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP add_ 2
  RETURN 1
)");
    for (int round = 0; round < 2; ++round) {
        std::vector<Value> out;
        ASSERT_EQ(run(module, {floats({3}), true}, &out), "");
        EXPECT_EQ(values_of(out[0]), (std::vector<float>{2, 4, 6}));
        EXPECT_EQ(run(module, {floats({3}), false}), "E0117");
    }
}

TEST_P(RefusalTest, WeightCarriedByALoop) {
    const Module module = module_from(R"(
.weight w f32[3] = ones
.func main(x: f32[3], n: int) -> 1
  LOAD_LOCAL x
  CALL_OP clone 1
  STORE_LOCAL y
head:
  LOOP_HEAD
  LOAD_LOCAL n
  LOAD_CONST 0
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP add_ 2
  POP
  LOAD_WEIGHT w
  STORE_LOCAL y
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  STORE_LOCAL n
  JUMP head
done:
  LOAD_LOCAL y
  CALL_OP clone 1
  RETURN 1
)");
    std::vector<Value> out;
    ASSERT_EQ(run(module, {floats({3}), std::int64_t{1}}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(run(module, {floats({3}), std::int64_t{2}}), "E0117");
    ASSERT_EQ(run(module, {floats({3}), std::int64_t{1}}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 1, 1}));  // nothing was written
}

TEST_P(RefusalTest, WeightThatComesBackAsAnArgument) {
    const Module module = module_from(R"(
.weight w f32[3] = ones
.func main(x: f32[3]?) -> 1
  LOAD_LOCAL x
  BRANCH_IF_NULL lend
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add_ 2
  RETURN 1
lend:
  LOAD_WEIGHT w
  RETURN 1
)");
    std::vector<Value> lent;
    EXPECT_EQ(run(module, {floats({3})}), "");
    ASSERT_EQ(run(module, {Value()}, &lent), "");
    EXPECT_EQ(run(module, {lent[0]}), "E0117");
    EXPECT_EQ(values_of(lent[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(run(module, {floats({3})}), "");
}

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

// ---------------------------------------------------------------- writes that meet what they read

TEST_P(RefusalTest, WriteThatReadsPartOfItsTarget) {
    const Module shifted = module_from(R"(
.func main(x: f32[N]) -> 0
  LOAD_LOCAL x
  CALL_OP slice 1 axis=0, start=1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=0, stop=-1
  CALL_OP assign 2
  POP
  RETURN 0
)");
    const Tensor x = floats({4});
    EXPECT_EQ(run(shifted, {x}), "E0313");
    EXPECT_EQ(values_of(Value(x)), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(run(shifted, {floats({1})}), "");  // both sides are empty
    const Module transposed = module_from(R"(
.func main(x: f32[N, N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP add_ 2
  RETURN 1
)");
    EXPECT_EQ(run(transposed, {floats({3, 3})}), "E0313");
    EXPECT_EQ(run(transposed, {floats({1, 1})}), "");
    const Module columns = module_from(R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=1, start=1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=1, stop=-1
  CALL_OP add_ 2
  POP
  LOAD_LOCAL x
  RETURN 1
)");
    std::vector<Value> out;
    ASSERT_EQ(run(columns, {floats({2, 3})}, &out), "");  // neither side is dense: everything is read first
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 3, 5, 4, 9, 11}));
    EXPECT_EQ(run(columns, {floats({1, 3})}), "E0313");
}

TEST_P(RefusalTest, WriteBetweenArgumentsThatOverlap) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add_ 2
  RETURN 1
)");
    for (int round = 0; round < 2; ++round) {
        const Tensor base = floats({6});
        EXPECT_EQ(run(module, {seen_as(base, 0, {4}, {1}), seen_as(base, 2, {4}, {1})}), "E0313");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{1, 2, 3, 4, 5, 6}));
        EXPECT_EQ(run(module, {seen_as(base, 0, {3}, {1}), seen_as(base, 3, {3}, {1})}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{5, 7, 9, 4, 5, 6}));
        EXPECT_EQ(run(module, {seen_as(base, 0, {3}, {2}), seen_as(base, 1, {3}, {2})}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{12, 7, 13, 4, 11, 6}));
        EXPECT_EQ(run(module, {base, base}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{24, 14, 26, 8, 22, 12}));
    }
}

// ---------------------------------------------------------------- writes to elements that share memory

TEST_P(RefusalTest, WriteToElementsThatShareMemory) {
    const Module module = module_from(R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add_ 2
  RETURN 1
)");
    for (int round = 0; round < 2; ++round) {
        const Tensor base = floats({8}, 0);
        EXPECT_EQ(run(module, {seen_as(base, 0, {4, 3}, {1, 1})}), "E0312");
        EXPECT_EQ(run(module, {seen_as(floats({13}), 0, {3, 4}, {3, 2})}), "E0312");
        EXPECT_EQ(run(module, {seen_as(base, 0, {2, 3}, {0, 1})}), "E0312");
        EXPECT_EQ(run(module, {seen_as(base, 0, {0, 3}, {0, 1})}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
        // Interleaved, each in a place of its own: 0 2 4, 3 5 7.
        EXPECT_EQ(run(module, {seen_as(base, 0, {2, 3}, {3, 2})}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{1, 1, 3, 4, 5, 6, 6, 8}));
        EXPECT_EQ(run(module, {seen_as(base, 0, {3, 2}, {2, 1})}), "");
        EXPECT_EQ(values_of(Value(base)), (std::vector<float>{2, 2, 4, 5, 6, 7, 6, 8}));
    }
}

TEST_P(RefusalTest, WriteToAViewOfElementsThatShareMemory) {
    const Module module = module_from(R"(
.func main(x: f32[N, M], y: f32[M]) -> 1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=0, start=1
  LOAD_LOCAL y
  CALL_OP assign 2
  RETURN 1
)");
    const Tensor base = floats({8}, 0);
    EXPECT_EQ(run(module, {seen_as(base, 0, {4, 3}, {1, 1}), floats({3})}), "E0312");
    EXPECT_EQ(run(module, {seen_as(base, 0, {2, 3}, {1, 1}), floats({3})}), "");  // one row has places of its own
    EXPECT_EQ(values_of(Value(base)), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(run(module, {seen_as(base, 0, {2, 4}, {4, 1}), floats({4}, 9)}), "");
    EXPECT_EQ(values_of(Value(base)), (std::vector<float>{0, 1, 2, 3, 9, 10, 11, 12}));
}

// As torch has it, a value that is meant for one of the elements that an axis repeats is written for all of them.
TEST_P(RefusalTest, SelectingWritesReachElementsThatAnAxisRepeats) {
    const Module masked = module_from(R"(
.func main(x: f32[N, M], mask: bool[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL mask
  LOAD_CONST 7.0
  CALL_OP masked_fill_ 3
  RETURN 1
)");
    Tensor mask = Tensor::empty(DType::kBool, {2, 3});
    std::copy_n(std::initializer_list<std::uint8_t>{1, 0, 0, 0, 0, 1}.begin(), 6, mask.data_as<std::uint8_t>());
    const auto after = [&](const Module& module, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
                           std::vector<Value> more = {}) {
        const Tensor base = floats({6});
        more.insert(more.begin(), Value(seen_as(base, 0, sizes, strides)));
        EXPECT_EQ(run(module, more), "");
        return values_of(Value(base));
    };
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(after(masked, {2, 3}, {3, 1}, {mask}), (std::vector<float>{7, 2, 3, 4, 5, 7}));
        EXPECT_EQ(after(masked, {2, 3}, {0, 1}, {mask}), (std::vector<float>{7, 2, 7, 4, 5, 6}));
        EXPECT_EQ(after(masked, {2, 3}, {1, 0}, {mask}), (std::vector<float>{7, 7, 3, 4, 5, 6}));
        EXPECT_EQ(after(masked, {2, 3}, {0, 0}, {mask}), (std::vector<float>{7, 2, 3, 4, 5, 6}));
        EXPECT_EQ(run(masked, {seen_as(floats({6}), 0, {2, 3}, {1, 1}), mask}), "E0312");
    }
    const std::string triangle = R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  CALL_OP TRIANGLE 1 diagonal=DIAGONAL
  RETURN 1
)";
    const auto module_of = [&](std::string op, std::string diagonal) {
        std::string text = triangle;
        text.replace(text.find("TRIANGLE"), 8, op);
        return module_from(text.replace(text.find("DIAGONAL"), 8, diagonal));
    };
    const Module lower = module_of("tril_", "0"), upper = module_of("triu_", "0"), above = module_of("triu_", "1");
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(after(lower, {3, 3}, {0, 1}), (std::vector<float>{1, 0, 0, 4, 5, 6}));
        EXPECT_EQ(after(lower, {3, 3}, {1, 0}), (std::vector<float>{0, 0, 3, 4, 5, 6}));
        EXPECT_EQ(after(upper, {3, 3}, {0, 1}), (std::vector<float>{0, 0, 3, 4, 5, 6}));
        EXPECT_EQ(after(above, {2, 3}, {0, 1}), (std::vector<float>{0, 0, 3, 4, 5, 6}));
        EXPECT_EQ(after(lower, {2, 3}, {3, 1}), (std::vector<float>{1, 0, 0, 4, 5, 0}));
    }
}

// Memory that its owner relies on: refused where the program writes to it, and only there.
TEST_P(RefusalTest, WriteToReadOnlyMemory) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add_ 2
  RETURN 1
)");
    const Module single = module_from(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  CALL_OP exp_ 1\n  RETURN 1\n");
    for (int round = 0; round < 2; ++round) {
        const Tensor fixed = floats({3}), inference = floats({3}), free = floats({3});
        fixed.refuse_writes();
        inference.refuse_writes(DiagnosticId{512});
        EXPECT_EQ(run(module, {fixed, free}), "E0511");
        EXPECT_EQ(run(module, {seen_as(inference, 0, {2}, {1}), floats({2})}), "E0512");
        EXPECT_EQ(run(single, {fixed}), "E0511");
        EXPECT_EQ(values_of(Value(fixed)), (std::vector<float>{1, 2, 3}));
        EXPECT_EQ(run(module, {free, fixed}), "");
        EXPECT_EQ(run(module, {free, inference}), "");
        EXPECT_EQ(values_of(Value(free)), (std::vector<float>{3, 6, 9}));
        EXPECT_EQ(run(single, {free}), "");
    }
}

// What a loop carries is written in place: what it reads may be what it writes, or not.
constexpr std::string_view kGathered = R"(
.func main(x: f32[N], n: int, own: bool) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL own
  BRANCH_IF_FALSE lent
  CALL_OP clone 1
lent:
  STORE_LOCAL sum
head:
  LOOP_HEAD
  LOAD_LOCAL n
  LOAD_CONST 0
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL sum
  CALL_OP slice 1 axis=0, start=1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=0, stop=-1
  CALL_OP add_ 2
  POP
  LOAD_LOCAL sum
  LOAD_CONST 1.0
  CALL_OP add_ 2
  STORE_LOCAL sum
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  STORE_LOCAL n
  JUMP head
done:
  LOAD_LOCAL sum
  RETURN 1
)";

TEST_P(RefusalTest, WriteToWhatALoopCarries) {
    const Module module = module_from(kGathered);
    std::vector<Value> out;
    ASSERT_EQ(run(module, {floats({3}), std::int64_t{2}, true}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{3, 6, 9}));
    EXPECT_EQ(run(module, {floats({3}), std::int64_t{2}, false}), "E0313");
    ASSERT_EQ(run(module, {floats({3}), std::int64_t{0}, false}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 2, 3}));
}

// Two values of a loop that become one memory in its first pass.
TEST_P(RefusalTest, TwoCarriedValuesOfOneMemory) {
    const Module module = module_from(R"(
.func main(x: f32[N], n: int) -> 1
  LOAD_LOCAL x
  CALL_OP clone 1
  STORE_LOCAL a
  LOAD_LOCAL x
  CALL_OP clone 1
  STORE_LOCAL b
head:
  LOOP_HEAD
  LOAD_LOCAL n
  LOAD_CONST 0
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL a
  CALL_OP slice 1 axis=0, start=1
  LOAD_LOCAL b
  CALL_OP slice 1 axis=0, stop=-1
  CALL_OP add_ 2
  POP
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul 2
  STORE_LOCAL a
  LOAD_LOCAL a
  STORE_LOCAL b
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  STORE_LOCAL n
  JUMP head
done:
  LOAD_LOCAL a
  RETURN 1
)");
    EXPECT_EQ(run(module, {floats({3}), std::int64_t{1}}), "");
    EXPECT_EQ(run(module, {floats({3}), std::int64_t{2}}), "E0313");
}

TEST_P(RefusalTest, FillOfSharedElements) {
    const auto text = [](const char* op, const char* source) {
        return "\n.func main(x: f32[N, M], v: f32[]) -> 0\n  LOAD_LOCAL x\n  " + std::string(source) + "\n  CALL_OP " +
               op + " 2\n  POP\n  RETURN 0\n";
    };
    const Module number = module_from(text("fill_", "LOAD_CONST 7.0"));
    const Module tensor = module_from(text("fill_", "LOAD_LOCAL v"));
    const Module assigned = module_from(text("assign", "LOAD_CONST 7.0"));
    const Tensor base = floats({40});
    for (int round = 0; round < 2; ++round) {
        const Tensor shared = seen_as(base, 0, {5, 3}, {0, 1});
        EXPECT_EQ(run(number, {shared, floats({})}), "");
        EXPECT_EQ(values_of(Value(seen_as(base, 0, {4}, {1}))), (std::vector<float>{7, 7, 7, 4}));
        EXPECT_EQ(run(number, {seen_as(base, 4, {3, 33}, {1, 0}), floats({})}), "");
        EXPECT_EQ(values_of(Value(seen_as(base, 3, {5}, {1}))), (std::vector<float>{4, 7, 7, 7, 8}));
        EXPECT_EQ(run(tensor, {shared, floats({})}), "E0312");
        EXPECT_EQ(run(assigned, {shared, floats({})}), "E0312");
        EXPECT_EQ(run(tensor, {seen_as(base, 0, {1, 3}, {0, 1}), floats({})}), "");
        EXPECT_EQ(run(tensor, {seen_as(base, 0, {5, 0}, {0, 1}), floats({})}), "");
    }
}

// ---------------------------------------------------------------- gather, reshape

TEST_P(RefusalTest, GatherWithoutAxes) {
    const auto text = [](const char* x, const char* index) {
        return "\n.func main(x: f32" + std::string(x) + ", i: i64" + index +
               ") -> 1\n  LOAD_LOCAL x\n  LOAD_LOCAL i\n  CALL_OP gather 2 axis=0\n  RETURN 1\n";
    };
    std::vector<Value> out;
    const Module one = module_from(text("[]", "[]"));
    ASSERT_EQ(run(one, {floats({}, 5), integers({}, {0})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{5}));
    EXPECT_EQ(run(one, {floats({}, 5), integers({}, {1})}), "E0307");
    const Module repeated = module_from(text("[]", "[N]"));
    ASSERT_EQ(run(repeated, {floats({}, 5), integers({2}, {0, 0})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{5, 5}));
    EXPECT_EQ(run(repeated, {floats({}, 5), integers({2}, {0, -1})}), "E0307");
    const Module picked = module_from(text("[N]", "[]"));
    ASSERT_EQ(run(picked, {floats({3}, 5), integers({}, {2})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{7}));
    EXPECT_EQ(out[0].tensor().rank(), 0);
    EXPECT_EQ(run(picked, {floats({3}, 5), integers({}, {3})}), "E0307");
    const Module other = module_from(text("[N, M]", "[K]"));
    ASSERT_EQ(run(other, {floats({2, 3}), integers({0}, {})}, &out), "");
    EXPECT_EQ(out[0].tensor().numel(), 0);
    EXPECT_EQ(run(other, {floats({2, 3}), integers({1}, {0})}), "E0302");
    const Module same = module_from(text("[N, M]", "[K, L]"));
    ASSERT_EQ(run(same, {floats({2, 3}), integers({0, 5}, {})}, &out), "");
    EXPECT_EQ(out[0].tensor().size(1), 5);
    EXPECT_EQ(run(same, {floats({2, 3}), integers({1, 5}, {0, 0, 0, 0, 0})}), "E0301");
}

TEST_P(RefusalTest, ReshapeToAnOpenSize) {
    const Module module = module_from(R"(
.func main(x: f32[N, M], a: int) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL a
  LOAD_CONST -1
  BUILD_LIST 2
  CALL_OP reshape 2 shape=$1
  RETURN 1
)");
    std::vector<Value> out;
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(run(module, {floats({2, 3}), std::int64_t{3}}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 2);
        EXPECT_EQ(run(module, {floats({0, 3}), std::int64_t{0}}), "E0314");
        EXPECT_EQ(run(module, {floats({2, 3}), std::int64_t{0}}), "E0305");
        EXPECT_EQ(run(module, {floats({2, 3}), std::int64_t{4}}), "E0305");
        EXPECT_EQ(run(module, {floats({2, 3}), std::int64_t{-2}}), "E0308");
        ASSERT_EQ(run(module, {floats({0, 3}), std::int64_t{5}}, &out), "");
        EXPECT_EQ(out[0].tensor().size(0), 5);
        EXPECT_EQ(out[0].tensor().size(1), 0);
    }
    const Module by_size = module_from(R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  GET_DIM 0
  LOAD_CONST -1
  BUILD_LIST 2
  CALL_OP reshape 2 shape=$1
  LOAD_CONST 1.0
  CALL_OP add 2
  RETURN 1
)");
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(run(by_size, {floats({2, 3})}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 3);
        EXPECT_EQ(run(by_size, {floats({0, 3})}), "E0314");
        ASSERT_EQ(run(by_size, {floats({2, 0})}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 0);
    }
}

}  // namespace
}  // namespace flexor
