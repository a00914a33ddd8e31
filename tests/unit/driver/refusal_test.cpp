// What the run itself must refuse, whatever engine it runs on: writes to weights, writes that meet what they read,
// divisions by zero, indices out of range, sizes that say nothing.
#include <gtest/gtest.h>

#include "unit/driver/tiers.h"

namespace flexor {
namespace {

Tensor seen_as(const Tensor& tensor, std::int64_t offset, std::vector<std::int64_t> sizes,
               std::vector<std::int64_t> strides) {
    return tensor.view(tensor.data_as<float>() + offset, tensor.dtype(), sizes, strides);
}

// Programs are written from pieces: values on the stack, ops on them, and main around it all.

std::string load(std::string_view local) { return "  LOAD_LOCAL " + std::string(local) + "\n"; }
std::string store(std::string_view local) { return "  STORE_LOCAL " + std::string(local) + "\n"; }

// An op on what the operands leave on the stack.
std::string op(std::string_view name, std::initializer_list<std::string> operands, std::string_view attributes = "") {
    std::string out;
    for (const std::string& operand : operands) out += operand;
    return out + "  CALL_OP " + std::string(name) + " " + std::to_string(operands.size()) + " " +
           std::string(attributes) + "\n";
}

std::string pop(const std::string& value) { return value + "  POP\n"; }
std::string constant(std::string_view value) { return "  LOAD_CONST " + std::string(value) + "\n"; }
std::string weight(std::string_view name) { return "  LOAD_WEIGHT " + std::string(name) + "\n"; }

std::string main_of(std::string_view parameters, const std::string& body, int results = 1) {
    const std::string count = std::to_string(results);
    return ".func main(" + std::string(parameters) + ") -> " + count + "\n" + body + "  RETURN " + count + "\n";
}

// `body` as often as the local n says, which ends at 0.
std::string repeated(const std::string& body) {
    return "head:\n  LOOP_HEAD\n" + load("n") + constant("0") + "  SCALAR gt\n  BRANCH_IF_FALSE done\n" + body +
           load("n") + constant("1") + "  SCALAR sub\n" + store("n") + "  JUMP head\ndone:\n";
}

const std::string kOnes = ".weight w f32[3] = ones\n";

class RefusalTest : public TierTest {
protected:
    // The number of the refusal, or "" and the results.
    std::string run(const Module& module, std::vector<Value> arguments, std::vector<Value>* out = nullptr) {
        auto results = session_.run(module, arguments);
        if (!results) return results.error().code();
        if (out != nullptr) *out = std::move(*results);
        return "";
    }
};

INSTANTIATE_TEST_SUITE_P(Engines, RefusalTest, testing::Values(Tier::kInterpreted, Tier::kCompiled, Tier::kEvaluated),
                         tier_name);

// ---------------------------------------------------------------- weights

TEST_P(RefusalTest, WeightBehindABranch) {
    const std::string own = "  BRANCH_IF_FALSE lent\n" + op("clone", {load("x")}) + store("y") + "  JUMP meet\n";
    const std::string lent = "lent:\n" + weight("w") + store("y") + "meet:\n";
    const Module module = module_from(
        kOnes + main_of("x: f32[3], own: bool", load("own") + own + lent + op("add_", {load("y"), load("x")})));
    for (int round = 0; round < 2; ++round) {
        std::vector<Value> out;
        ASSERT_EQ(run(module, {counting({3}), true}, &out), "");
        EXPECT_EQ(values_of(out[0]), (std::vector<float>{2, 4, 6}));
        EXPECT_EQ(run(module, {counting({3}), false}), "E0117");
    }
}

TEST_P(RefusalTest, WeightCarriedByALoop) {
    const std::string clone = op("clone", {load("x")}) + store("y");
    const std::string body = pop(op("add_", {load("y"), load("x")})) + weight("w") + store("y");
    const Module module =
        module_from(kOnes + main_of("x: f32[3], n: int", clone + repeated(body) + op("clone", {load("y")})));
    std::vector<Value> out;
    ASSERT_EQ(run(module, {counting({3}), std::int64_t{1}}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(run(module, {counting({3}), std::int64_t{2}}), "E0117");
    ASSERT_EQ(run(module, {counting({3}), std::int64_t{1}}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 1, 1}));  // nothing was written
}

TEST_P(RefusalTest, WeightThatComesBackAsAnArgument) {
    const std::string given = op("add_", {load("x"), constant("1.0")}) + "  RETURN 1\n";
    const Module module = module_from(
        kOnes + main_of("x: f32[3]?", load("x") + "  BRANCH_IF_NULL lend\n" + given + "lend:\n" + weight("w")));
    std::vector<Value> lent;
    EXPECT_EQ(run(module, {counting({3})}), "");
    ASSERT_EQ(run(module, {Value()}, &lent), "");
    EXPECT_EQ(run(module, {lent[0]}), "E0117");
    EXPECT_EQ(values_of(lent[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(run(module, {counting({3})}), "");
}

TEST_P(RefusalTest, WeightOfAnotherModule) {
    const Module owner = module_from(R"(
.weight w f32[3] = ones
.func main() -> 2
  LOAD_WEIGHT w
  LOAD_WEIGHT w
  CALL_OP slice 1 axis=0, start=1, stop=3
  RETURN 2
)");
    std::vector<Value> lent;
    ASSERT_EQ(run(owner, {}, &lent), "");
    EXPECT_TRUE(lent[0].tensor().is_read_only());
    EXPECT_TRUE(lent[1].tensor().is_read_only());
    const Module writer = module_from(R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add_ 2
  RETURN 1
)");
    EXPECT_EQ(run(writer, {lent[1], counting({2})}), "E0511");
    EXPECT_EQ(run(writer, {lent[0], lent[0]}), "E0511");
    EXPECT_EQ(values_of(lent[0]), (std::vector<float>{1, 1, 1}));
    // Reading it is no write.
    std::vector<Value> out;
    ASSERT_EQ(run(writer, {counting({3}), lent[0]}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{2, 3, 4}));
    EXPECT_FALSE(out[0].tensor().is_read_only());
}

TEST_P(RefusalTest, ReadOnlyMemoryBehindAView) {
    const Module module = module_from(R"(
.func main(x: f32[N], n: int) -> 1
  LOAD_LOCAL x
  STORE_LOCAL y
head:
  LOOP_HEAD
  LOAD_LOCAL n
  LOAD_CONST 0
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL y
  CALL_OP slice 1 axis=0, start=1
  LOAD_CONST 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  STORE_LOCAL n
  JUMP head
done:
  LOAD_LOCAL y
  RETURN 1
)");
    Tensor fixed = counting({3});
    fixed.refuse_writes();
    std::vector<Value> out;
    ASSERT_EQ(run(module, {counting({3}), std::int64_t{2}}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 4, 5}));
    ASSERT_EQ(run(module, {fixed, std::int64_t{0}}, &out), "");
    EXPECT_EQ(run(module, {fixed, std::int64_t{2}}), "E0511");
    EXPECT_EQ(values_of(fixed), (std::vector<float>{1, 2, 3}));
}

// ---------------------------------------------------------------- which arguments were written

TEST_P(RefusalTest, VersionsCountTheWritesOfEachArgument) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[N], z: f32[N], both: bool) -> 1
  LOAD_LOCAL x
  CALL_OP slice 1 axis=0, start=1
  LOAD_CONST 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL both
  BRANCH_IF_FALSE done
  LOAD_LOCAL z
  LOAD_LOCAL y
  CALL_OP add_ 2
  POP
done:
  LOAD_LOCAL y
  CALL_OP clone 1
  LOAD_LOCAL x
  CALL_OP add_ 2
  RETURN 1
)");
    for (int round = 0; round < 2; ++round) {
        const Tensor x = counting({3}), y = counting({3}), z = counting({3});
        ASSERT_EQ(run(module, {x, y, z, false}), "");
        EXPECT_EQ(x.version(), 1U);
        EXPECT_EQ(y.version(), 0U);
        EXPECT_EQ(z.version(), 0U);
        ASSERT_EQ(run(module, {x, y, z, true}), "");
        EXPECT_EQ(x.version(), 2U);
        EXPECT_EQ(y.version(), 0U);
        EXPECT_EQ(z.version(), 1U);
    }
}

// ---------------------------------------------------------------- divisions whose result nobody reads

TEST_P(RefusalTest, UnreadDivisionByZero) {
    for (const char* name : {"floor_divide", "remainder", "fmod"}) {
        const Module module =
            module_from(main_of("x: i64[N], y: i64[N]", pop(op(name, {load("x"), load("y")})) +
                                                            pop(op("floor_divide", {load("x"), constant("2")})) +
                                                            op("add", {load("x"), constant("1")})));
        EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "") << name;
        EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 0})}), "E0310") << name;
        EXPECT_EQ(run(module, {integers({0}, {}), integers({0}, {})}), "") << name;
    }
}

TEST_P(RefusalTest, DivisionByZeroWhoseResultCannotMatter) {
    const std::string quotient = op("floor_divide", {load("x"), load("y")});
    const Module module = module_from(main_of("x: i64[N], y: i64[N]", op("mul", {quotient, constant("0")})));
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {0, 3})}), "E0310");
}

TEST_P(RefusalTest, DivisionByZeroOutsideWhatIsRead) {
    const std::string first = op("slice", {op("floor_divide", {load("x"), load("y")})}, "axis=0, stop=1");
    const Module module = module_from(main_of("x: i64[N], y: i64[N]", op("add", {first, constant("1")})));
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 3})}), "");
    EXPECT_EQ(run(module, {integers({2}, {4, 6}), integers({2}, {2, 0})}), "E0310");
}

// ---------------------------------------------------------------- writes that meet what they read

TEST_P(RefusalTest, WriteThatReadsPartOfItsTarget) {
    const auto slice = [](const char* local, const char* attributes) { return op("slice", {load(local)}, attributes); };
    const Module shifted = module_from(
        main_of("x: f32[N]", pop(op("assign", {slice("x", "axis=0, start=1"), slice("x", "axis=0, stop=-1")})), 0));
    const Tensor x = counting({4});
    EXPECT_EQ(run(shifted, {x}), "E0313");
    EXPECT_EQ(values_of(Value(x)), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(run(shifted, {counting({1})}), "");  // both sides are empty
    const Module transposed =
        module_from(main_of("x: f32[N, N]", op("add_", {load("x"), op("transpose", {load("x")}, "a=0, b=1")})));
    EXPECT_EQ(run(transposed, {counting({3, 3})}), "E0313");
    EXPECT_EQ(run(transposed, {counting({1, 1})}), "");
    const Module columns = module_from(main_of(
        "x: f32[N, M]", pop(op("add_", {slice("x", "axis=1, start=1"), slice("x", "axis=1, stop=-1")})) + load("x")));
    std::vector<Value> out;
    ASSERT_EQ(run(columns, {counting({2, 3})}, &out), "");  // neither side is dense: everything is read first
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 3, 5, 4, 9, 11}));
    EXPECT_EQ(run(columns, {counting({1, 3})}), "E0313");
}

TEST_P(RefusalTest, WriteByIndexOfMemoryThatItShares) {
    const Module module = module_from(
        main_of("x: f32[N], i: i64[M], y: f32[M]", op("scatter_", {load("x"), load("i"), load("y")}, "axis=0")));
    for (int round = 0; round < 2; ++round) {
        const Tensor x = counting({4});
        EXPECT_EQ(run(module, {x, integers({2}, {1, 0}), seen_as(x, 0, {2}, {1})}), "E0313");
        EXPECT_EQ(run(module, {x, integers({4}, {1, 0, 3, 2}), x}), "E0313");
        EXPECT_EQ(values_of(Value(x)), (std::vector<float>{1, 2, 3, 4}));
        EXPECT_EQ(run(module, {x, integers({2}, {1, 0}), counting({2})}), "");
        EXPECT_EQ(values_of(Value(x)), (std::vector<float>{2, 1, 3, 4}));
    }
}

TEST_P(RefusalTest, WriteBetweenArgumentsThatOverlap) {
    const Module module = module_from(main_of("x: f32[N], y: f32[N]", op("add_", {load("x"), load("y")})));
    for (int round = 0; round < 2; ++round) {
        const Tensor base = counting({6});
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
        const Tensor base = counting({8}, 0);
        EXPECT_EQ(run(module, {seen_as(base, 0, {4, 3}, {1, 1})}), "E0312");
        EXPECT_EQ(run(module, {seen_as(counting({13}), 0, {3, 4}, {3, 2})}), "E0312");
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
    const Tensor base = counting({8}, 0);
    EXPECT_EQ(run(module, {seen_as(base, 0, {4, 3}, {1, 1}), counting({3})}), "E0312");
    EXPECT_EQ(run(module, {seen_as(base, 0, {2, 3}, {1, 1}), counting({3})}), "");  // one row has places of its own
    EXPECT_EQ(values_of(Value(base)), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(run(module, {seen_as(base, 0, {2, 4}, {4, 1}), counting({4}, 9)}), "");
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
        const Tensor base = counting({6});
        more.insert(more.begin(), Value(seen_as(base, 0, sizes, strides)));
        EXPECT_EQ(run(module, more), "");
        return values_of(Value(base));
    };
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(after(masked, {2, 3}, {3, 1}, {mask}), (std::vector<float>{7, 2, 3, 4, 5, 7}));
        EXPECT_EQ(after(masked, {2, 3}, {0, 1}, {mask}), (std::vector<float>{7, 2, 7, 4, 5, 6}));
        EXPECT_EQ(after(masked, {2, 3}, {1, 0}, {mask}), (std::vector<float>{7, 7, 3, 4, 5, 6}));
        EXPECT_EQ(after(masked, {2, 3}, {0, 0}, {mask}), (std::vector<float>{7, 2, 3, 4, 5, 6}));
        EXPECT_EQ(run(masked, {seen_as(counting({6}), 0, {2, 3}, {1, 1}), mask}), "E0312");
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
        const Tensor fixed = counting({3}), inference = counting({3}), free = counting({3});
        fixed.refuse_writes();
        inference.refuse_writes(DiagnosticId{512});
        EXPECT_EQ(run(module, {fixed, free}), "E0511");
        EXPECT_EQ(run(module, {seen_as(inference, 0, {2}, {1}), counting({2})}), "E0512");
        EXPECT_EQ(run(single, {fixed}), "E0511");
        EXPECT_EQ(values_of(Value(fixed)), (std::vector<float>{1, 2, 3}));
        EXPECT_EQ(run(module, {free, fixed}), "");
        EXPECT_EQ(run(module, {free, inference}), "");
        EXPECT_EQ(values_of(Value(free)), (std::vector<float>{3, 6, 9}));
        EXPECT_EQ(run(single, {free}), "");
    }
}

// What a loop carries is written in place: what it reads may be what it writes, or not.
std::string gathered() {
    const std::string start =
        load("x") + load("own") + "  BRANCH_IF_FALSE lent\n  CALL_OP clone 1\nlent:\n" + store("sum");
    const std::string add =
        pop(op("add_", {op("slice", {load("sum")}, "axis=0, start=1"), op("slice", {load("x")}, "axis=0, stop=-1")}));
    const std::string body = add + op("add_", {load("sum"), constant("1.0")}) + store("sum");
    return main_of("x: f32[N], n: int, own: bool", start + repeated(body) + load("sum"));
}

TEST_P(RefusalTest, WriteToWhatALoopCarries) {
    const Module module = module_from(gathered());
    std::vector<Value> out;
    ASSERT_EQ(run(module, {counting({3}), std::int64_t{2}, true}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{3, 6, 9}));
    EXPECT_EQ(run(module, {counting({3}), std::int64_t{2}, false}), "E0313");
    ASSERT_EQ(run(module, {counting({3}), std::int64_t{0}, false}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{1, 2, 3}));
}

// Two values of a loop that become one memory in its first pass.
TEST_P(RefusalTest, TwoCarriedValuesOfOneMemory) {
    const std::string clones = op("clone", {load("x")}) + store("a") + op("clone", {load("x")}) + store("b");
    const std::string add =
        pop(op("add_", {op("slice", {load("a")}, "axis=0, start=1"), op("slice", {load("b")}, "axis=0, stop=-1")}));
    const std::string join = op("mul", {load("x"), constant("2.0")}) + store("a") + load("a") + store("b");
    const Module module = module_from(main_of("x: f32[N], n: int", clones + repeated(add + join) + load("a")));
    EXPECT_EQ(run(module, {counting({3}), std::int64_t{1}}), "");
    EXPECT_EQ(run(module, {counting({3}), std::int64_t{2}}), "E0313");
}

TEST_P(RefusalTest, FillOfSharedElements) {
    const auto fills = [](const char* name, const std::string& source) {
        return module_from(main_of("x: f32[N, M], v: f32[]", pop(op(name, {load("x"), source})), 0));
    };
    const Module number = fills("fill_", constant("7.0"));
    const Module tensor = fills("fill_", load("v"));
    const Module assigned = fills("assign", constant("7.0"));
    const Tensor base = counting({40});
    for (int round = 0; round < 2; ++round) {
        const Tensor shared = seen_as(base, 0, {5, 3}, {0, 1});
        EXPECT_EQ(run(number, {shared, counting({})}), "");
        EXPECT_EQ(values_of(Value(seen_as(base, 0, {4}, {1}))), (std::vector<float>{7, 7, 7, 4}));
        EXPECT_EQ(run(number, {seen_as(base, 4, {3, 33}, {1, 0}), counting({})}), "");
        EXPECT_EQ(values_of(Value(seen_as(base, 3, {5}, {1}))), (std::vector<float>{4, 7, 7, 7, 8}));
        EXPECT_EQ(run(tensor, {shared, counting({})}), "E0312");
        EXPECT_EQ(run(assigned, {shared, counting({})}), "E0312");
        EXPECT_EQ(run(tensor, {seen_as(base, 0, {1, 3}, {0, 1}), counting({})}), "");
        EXPECT_EQ(run(tensor, {seen_as(base, 0, {5, 0}, {0, 1}), counting({})}), "");
    }
}

// ---------------------------------------------------------------- gather, reshape

TEST_P(RefusalTest, GatherWithoutAxes) {
    const auto gather = [](const char* x, const char* index) {
        const std::string parameters = "x: f32" + std::string(x) + ", i: i64" + index;
        return module_from(main_of(parameters, op("gather", {load("x"), load("i")}, "axis=0")));
    };
    std::vector<Value> out;
    const Module one = gather("[]", "[]");
    ASSERT_EQ(run(one, {counting({}, 5), integers({}, {0})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{5}));
    EXPECT_EQ(run(one, {counting({}, 5), integers({}, {1})}), "E0307");
    const Module repeated = gather("[]", "[N]");
    ASSERT_EQ(run(repeated, {counting({}, 5), integers({2}, {0, 0})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{5, 5}));
    EXPECT_EQ(run(repeated, {counting({}, 5), integers({2}, {0, -1})}), "E0307");
    const Module picked = gather("[N]", "[]");
    ASSERT_EQ(run(picked, {counting({3}, 5), integers({}, {2})}, &out), "");
    EXPECT_EQ(values_of(out[0]), (std::vector<float>{7}));
    EXPECT_EQ(out[0].tensor().rank(), 0);
    EXPECT_EQ(run(picked, {counting({3}, 5), integers({}, {3})}), "E0307");
    const Module other = gather("[N, M]", "[K]");
    ASSERT_EQ(run(other, {counting({2, 3}), integers({0}, {})}, &out), "");
    EXPECT_EQ(out[0].tensor().numel(), 0);
    EXPECT_EQ(run(other, {counting({2, 3}), integers({1}, {0})}), "E0302");
    const Module same = gather("[N, M]", "[K, L]");
    ASSERT_EQ(run(same, {counting({2, 3}), integers({0, 5}, {})}, &out), "");
    EXPECT_EQ(out[0].tensor().size(1), 5);
    EXPECT_EQ(run(same, {counting({2, 3}), integers({1, 5}, {0, 0, 0, 0, 0})}), "E0301");
}

// The index and the extent are told, whoever ran the op.
TEST_P(RefusalTest, IndexThatIsOutOfRange) {
    const auto refusal = [&](const std::string& text, std::vector<Value> arguments) {
        const Module module = module_from(text);
        std::string told;
        for (int round = 0; round < 2; ++round) {
            const auto results = session_.run(module, arguments);
            if (results) return std::string("no error");
            told = results.error().code() + " " + results.error().found() + ", " + results.error().expected();
        }
        return told;
    };
    const Tensor table = counting({4, 3});
    const std::string rows = op("embedding", {load("i"), load("x")});
    const std::string parameters = "x: f32[R, C], i: i64[N]";
    const std::vector<std::int64_t> good(40, 2);
    for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 40}) {
        std::vector<std::int64_t> indices = good;
        indices[37] = bad;
        const std::string wanted = "E0307 " + std::to_string(bad) + ", an index in [0, 4)";
        EXPECT_EQ(refusal(main_of(parameters, rows), {table, integers({40}, indices)}), wanted);
        EXPECT_EQ(refusal(main_of(parameters, op("reduce_sum", {op("exp", {rows})}, "axes=[1], keepdim=false")),
                          {table, integers({40}, indices)}),
                  wanted);
    }
    // An index that is computed, in the prologue of a product.
    const std::string shifted = op("embedding", {op("add", {load("i"), constant("2")}), load("x")});
    EXPECT_EQ(refusal(main_of(parameters, op("matmul", {shifted, op("transpose", {load("x")}, "a=0, b=1")})),
                      {table, integers({2}, {1, 2})}),
              "E0307 4, an index in [0, 4)");
}

TEST_P(RefusalTest, ReshapeToAnOpenSize) {
    const auto reshaped = [](const std::string& size) {
        return op("reshape", {load("x"), size + constant("-1") + "  BUILD_LIST 2\n"}, "shape=$1");
    };
    const Module module = module_from(main_of("x: f32[N, M], a: int", reshaped(load("a"))));
    std::vector<Value> out;
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(run(module, {counting({2, 3}), std::int64_t{3}}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 2);
        EXPECT_EQ(run(module, {counting({0, 3}), std::int64_t{0}}), "E0314");
        EXPECT_EQ(run(module, {counting({2, 3}), std::int64_t{0}}), "E0305");
        EXPECT_EQ(run(module, {counting({2, 3}), std::int64_t{4}}), "E0305");
        EXPECT_EQ(run(module, {counting({2, 3}), std::int64_t{-2}}), "E0308");
        ASSERT_EQ(run(module, {counting({0, 3}), std::int64_t{5}}, &out), "");
        EXPECT_EQ(out[0].tensor().size(0), 5);
        EXPECT_EQ(out[0].tensor().size(1), 0);
    }
    const std::string same = reshaped(load("x") + "  GET_DIM 0\n");
    const Module by_size = module_from(main_of("x: f32[N, M]", op("add", {same, constant("1.0")})));
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(run(by_size, {counting({2, 3})}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 3);
        EXPECT_EQ(run(by_size, {counting({0, 3})}), "E0314");
        ASSERT_EQ(run(by_size, {counting({2, 0})}, &out), "");
        EXPECT_EQ(out[0].tensor().size(1), 0);
    }
}

}  // namespace
}  // namespace flexor
