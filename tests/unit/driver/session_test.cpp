// Programs in text form, run through the public Session.
#include "flexor/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "flexor/stress.h"
#include "programs.h"
#include "support/diagnostic.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

// Counts what the call path takes from the heap.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace flexor {
namespace {

Tensor floats(std::initializer_list<std::int64_t> sizes, std::vector<float> values) {
    Tensor tensor = Tensor::empty(DType::kF32, sizes);
    EXPECT_EQ(tensor.numel(), static_cast<std::int64_t>(values.size()));
    std::copy(values.begin(), values.end(), tensor.data_as<float>());
    return tensor;
}

// Every test runs on the interpreter alone and through regions: compiled where there is a code generator, evaluated,
// and evaluated with guards that always fail or with regions that end at once.
class SessionTest : public testing::TestWithParam<int> {
protected:
    SessionTest() : session_(options(), stress()) {}
    static SessionOptions options() { return {.compile = GetParam() != 0}; }
    static StressOptions stress() {
        return {.evaluate_kernels = GetParam() >= 2, .fail_guards = GetParam() == 3, .end_at_once = GetParam() == 4};
    }
    std::vector<Value> run(std::string_view text, std::vector<Value> arguments) {
        const Module module = module_from(text);
        auto results = session_.run(module, arguments);
        if (!results) {
            ADD_FAILURE() << results.error().to_string();
            return {};
        }
        return std::move(*results);
    }
    std::string error_code(std::string_view text, std::vector<Value> arguments) {
        const Module module = module_from(text);
        auto results = session_.run(module, arguments);
        return results ? "no error" : results.error().code();
    }
    Session session_;
};

constexpr const char* kTiers[] = {"interpreted", "compiled", "evaluated", "every_guard_fails", "ends_at_once"};

INSTANTIATE_TEST_SUITE_P(Tiers, SessionTest, testing::Range(0, 5),
                         [](const auto& info) { return std::string(kTiers[info.param]); });

constexpr std::string_view kAddReluSum = R"(
.func main(x: f32[N]) -> 1
  LOAD_TENSOR x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  REDUCE_SUM axes=[0], keepdim=false
  RETURN 1
)";

TEST_P(SessionTest, AddReluSum) {
    const auto results = run(kAddReluSum, {floats({4}, {-3, 0, 1, 2})});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(values_of(results[0]), (std::vector<float>{0 + 1 + 2 + 3}));
    EXPECT_EQ(values_of(run(kAddReluSum, {floats({0}, {})})[0]), (std::vector<float>{0}));
}

constexpr std::string_view kLoop = R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  STORE_LOCAL y
head:
  LOOP_HEAD
  LOAD_LOCAL y
  CALL_OP reduce_sum 1 axes=[0], keepdim=false
  CONST_SCALAR 100.0
  CALL_OP gt 2
  BRANCH_IF_FALSE done
  LOAD_LOCAL y
  CONST_SCALAR 0.5
  BINARY_MUL
  STORE_LOCAL y
  JUMP head
done:
  LOAD_LOCAL y
  RETURN 1
)";

TEST_P(SessionTest, LoopOnTensorValues) {
    EXPECT_EQ(values_of(run(kLoop, {floats({2}, {399, -5})})[0]), (std::vector<float>{100, 0}));
    EXPECT_EQ(values_of(run(kLoop, {floats({3}, {1, 2, 3})})[0]), (std::vector<float>{2, 3, 4}));
}

// Program 5 of the walk: what the write and the sum may share depends on the memory of the call.
constexpr std::string_view kWriteThenAdd = R"(
.func main(x: f32[N], y: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul_ 2
  POP
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
)";

TEST_P(SessionTest, WritesAreSeenThroughEveryAlias) {
    const Module module = module_from(kWriteThenAdd);
    for (const std::int64_t n : {1, 5, 64, 3000}) {
        // Distance of y from x in one buffer; n and more: disjoint.
        for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 1, n, n + 3, -n / 2, -n}) {
            const std::int64_t length = 3 * n + 3;
            Tensor base = Tensor::empty(DType::kF32, {length});
            std::vector<float> wanted(static_cast<std::size_t>(length));
            for (std::int64_t i = 0; i < length; ++i) {
                base.data_as<float>()[i] = static_cast<float>(i + 1);
                wanted[static_cast<std::size_t>(i)] = static_cast<float>(i >= n && i < 2 * n ? 2 * (i + 1) : i + 1);
            }
            const std::vector<std::int64_t> sizes{n}, strides{1};
            const auto part = [&](std::int64_t from) {
                return base.view(base.data_as<float>() + from, DType::kF32, sizes, strides);
            };
            auto results = session_.run(module, std::vector<Value>{part(n), part(n + shift)});
            ASSERT_TRUE(results) << results.error().to_string();
            EXPECT_EQ(values_of(base), wanted) << "n " << n << ", shift " << shift;
            const std::vector<float> sums = values_of((*results)[0]);
            for (std::int64_t i = 0; i < n; ++i) {
                const auto x = static_cast<std::size_t>(n + i), y = static_cast<std::size_t>(n + shift + i);
                ASSERT_EQ(sums[static_cast<std::size_t>(i)], wanted[x] + wanted[y])
                    << "n " << n << ", shift " << shift << ", element " << i;
            }
        }
    }
}

TEST_P(SessionTest, OneKernelWritesAndAddsWhereNothingIsShared) {
    if (GetParam() == 0 || GetParam() == 4) GTEST_SKIP() << "no region holds both";
    if (GetParam() == 1 && !Session::has_code_generator()) GTEST_SKIP() << "needs the code generator";
    const Module module = module_from(kWriteThenAdd);
    // A session each: an explanation lists every kernel of its session.
    const auto kernels = [&](const Tensor& x, const Tensor& y) {
        Session session(options(), stress());
        auto explanation = session.explain(module, std::vector<Value>{x, y});
        EXPECT_TRUE(explanation);
        const std::string& text = explanation->text;
        int count = 0;
        for (std::size_t at = 0; (at = text.find("\n  kernel ", at)) != std::string::npos; ++at) ++count;
        return count;
    };
    const Tensor x = floats({4}, {1, 2, 3, 4});
    EXPECT_EQ(kernels(x, floats({4}, {1, 2, 3, 4})), 1);
    EXPECT_EQ(kernels(x, x), 2);
    const std::vector<std::int64_t> sizes{3}, strides{1};
    EXPECT_EQ(kernels(x.view(x.data_as<float>(), DType::kF32, sizes, strides),
                      x.view(x.data_as<float>() + 1, DType::kF32, sizes, strides)),
              2);
}

TEST_P(SessionTest, Lists) {
    const auto results = run(R"(
.func main(n: int) -> 2
  BUILD_LIST 0
  STORE_LOCAL out
  LOAD_CONST 0
  STORE_LOCAL i
head:
  LOOP_HEAD
  LOAD_LOCAL i
  LOAD_LOCAL n
  SCALAR lt
  BRANCH_IF_FALSE done
  LOAD_LOCAL out
  LOAD_LOCAL i
  LOAD_LOCAL i
  SCALAR mul
  LIST_APPEND
  STORE_LOCAL out
  LOAD_LOCAL i
  LOAD_CONST 1
  SCALAR add
  STORE_LOCAL i
  JUMP head
done:
  LOAD_LOCAL out
  LOAD_LOCAL out
  LOAD_CONST -1
  LIST_GET
  RETURN 2
)",
                             {Value(5)});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].describe(), "[0, 1, 4, 9, 16]");
    EXPECT_EQ(results[1].integer(), 16);
}

constexpr std::string_view kForeign = R"(
.hook log
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2
  CALL_OP mul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  CALL_FOREIGN log 1
  POP
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP add 2
  RETURN 1
)";

TEST_P(SessionTest, ForeignCallOnceAndItsEffectIsSeen) {
    int calls = 0;
    Tensor x = floats({2}, {1, 2});
    session_.bind("log", [&](std::span<const Value> arguments) -> Expected<Value> {
        ++calls;
        EXPECT_EQ(values_of(arguments[0]), (std::vector<float>{2, 4}));
        x.data_as<float>()[0] = 10;  // x is read again after the call
        return Value();
    });
    EXPECT_EQ(values_of(run(kForeign, {x})[0]), (std::vector<float>{12, 6}));
    EXPECT_EQ(calls, 1);
    const Stats stats = session_.stats();
    const auto row = std::find_if(stats.fallbacks.begin(), stats.fallbacks.end(),
                                  [](const FallbackRow& r) { return r.op == "foreign log"; });
    ASSERT_NE(row, stats.fallbacks.end());
    EXPECT_EQ(row->count, 1u);
    EXPECT_EQ(row->reason, "foreign");
    EXPECT_EQ(row->line, 9);
}

TEST_P(SessionTest, ForeignErrorsAndMissingHooks) {
    EXPECT_EQ(error_code(kForeign, {floats({1}, {1})}), "E0705");
    session_.bind("log", [](std::span<const Value>) -> Expected<Value> {
        return Diagnostic(DiagnosticId::kAssertionFailed).found("no log");
    });
    EXPECT_EQ(error_code(kForeign, {floats({1}, {1})}), "E0508");
}

TEST_P(SessionTest, SessionsMayBeUsedFromInsideAHook) {
    const Module inner = module_from(kAddReluSum);
    session_.bind("log", [&](std::span<const Value> arguments) -> Expected<Value> {
        auto result = session_.run(inner, arguments);
        EXPECT_TRUE(result) << result.error().to_string();
        EXPECT_EQ(values_of((*result)[0]), (std::vector<float>{3 + 5}));
        return Value();
    });
    EXPECT_EQ(values_of(run(kForeign, {floats({2}, {1, 2})})[0]), (std::vector<float>{3, 6}));
}

TEST_P(SessionTest, Recursion) {
    constexpr std::string_view kFactorial = R"(
.func main(n: int) -> 1
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR le
  BRANCH_IF_TRUE base
  LOAD_LOCAL n
  LOAD_LOCAL n
  LOAD_CONST 1
  SCALAR sub
  CALL main 1
  SCALAR mul
  RETURN 1
base:
  LOAD_CONST 1
  RETURN 1
)";
    EXPECT_EQ(run(kFactorial, {Value(10)})[0].integer(), 3628800);
    EXPECT_EQ(error_code(kFactorial, {Value(5000)}), "E0603");
    // A product that leaves 64 bits is an error, never a wrapped number.
    EXPECT_EQ(error_code(kFactorial, {Value(30)}), "E0309");
}

TEST_P(SessionTest, FunctionsAndTheirResults) {
    const auto results = run(R"(
.func pair(x: f32[N]) -> 2
  LOAD_LOCAL x
  RELU
  LOAD_LOCAL x
  GET_DIM 0
  RETURN 2
.end
.func main(x: f32[N]) -> 2
  LOAD_LOCAL x
  CALL pair 1
  SWAP
  RETURN 2
.end
)",
                             {floats({3}, {-1, 2, -3})});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].integer(), 3);
    EXPECT_EQ(values_of(results[1]), (std::vector<float>{0, 2, 0}));
}

TEST_P(SessionTest, OptionalArguments) {
    constexpr std::string_view kOptional = R"(
.func main(x: f32[N], y: f32[N]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL none
  LOAD_LOCAL x
  LOAD_LOCAL y
  BINARY_ADD
  RETURN 1
none:
  LOAD_LOCAL x
  RETURN 1
)";
    EXPECT_EQ(values_of(run(kOptional, {floats({1}, {1}), floats({1}, {2})})[0]), (std::vector<float>{3}));
    const Tensor x = floats({1}, {1});
    const auto results = run(kOptional, {x, Value()});
    EXPECT_EQ(results[0].tensor().data(), x.data()) << "an argument that is returned is that argument";
}

TEST_P(SessionTest, ArgumentErrors) {
    constexpr std::string_view kTwo = R"(
.symbol S in 1..4
.func main(x: f32[S, 2], y: f32[S]) -> 1
  LOAD_LOCAL x
  RETURN 1
)";
    const Tensor y = floats({1}, {1});
    EXPECT_EQ(error_code(kTwo, {floats({1, 2}, {1, 2})}), "E0501");
    EXPECT_EQ(error_code(kTwo, {floats({2}, {1, 2}), y}), "E0502");
    EXPECT_EQ(error_code(kTwo, {Tensor::empty(DType::kF64, {1, 2}), y}), "E0503");
    EXPECT_EQ(error_code(kTwo, {floats({1, 3}, {1, 2, 3}), y}), "E0504");
    EXPECT_EQ(error_code(kTwo, {floats({2, 2}, {1, 2, 3, 4}), y}), "E0504");
    EXPECT_EQ(error_code(kTwo, {Tensor::empty(DType::kF32, {5, 2}), Tensor::empty(DType::kF32, {5})}), "E0505");
    EXPECT_EQ(error_code(kTwo, {Value(), y}), "E0506");
    EXPECT_EQ(error_code(kTwo, {Value(1), y}), "E0404");
    EXPECT_EQ(error_code(kTwo, {floats({1, 2}, {1, 2}), y}), "no error");
}

TEST_P(SessionTest, OpErrorsNameTheirPlace) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  BINARY_ADD
  RETURN 1
)");
    const std::vector<Value> arguments{floats({2}, {1, 2}), floats({3}, {1, 2, 3})};
    const auto results = session_.run(module, arguments);
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().code(), "E0301");
    EXPECT_EQ(results.error().where().op, "add");
    EXPECT_EQ(results.error().where().source, "test.fasm:5");
    // The same program goes on working for sizes that fit.
    const std::vector<Value> good{floats({2}, {1, 2}), floats({2}, {1, 2})};
    EXPECT_TRUE(session_.run(module, good));
}

TEST_P(SessionTest, WhatStandsBeforeACheckDoesNotRelyOnIt) {
    // y is twice as long as the product wants: nothing before the product may read or write by x's sizes.
    constexpr std::string_view kProduct = R"(
.func main(x: f32[A, B], y: f32[C, D], touch: bool) -> 2
  LOAD_LOCAL touch
  BRANCH_IF_FALSE go
  LOAD_LOCAL y
  CONST_SCALAR 1.0
  CALL_OP add_ 2
  POP
go:
  LOAD_LOCAL y
  RELU
  STORE_LOCAL z
  LOAD_LOCAL x
  LOAD_LOCAL z
  CALL_OP matmul 2
  LOAD_LOCAL z
  RETURN 2
)";
    const auto product = run(kProduct, {floats({1, 2}, {1, 2}), floats({2, 1}, {3, -4}), Value(false)});
    EXPECT_EQ(values_of(product[0]), (std::vector<float>{3}));
    EXPECT_EQ(values_of(product[1]), (std::vector<float>{3, 0}));
    const Tensor longer = floats({4, 1}, {1, 2, 3, 4}), shorter = floats({1, 1}, {1});
    for (const bool touch : {false, true}) {
        EXPECT_EQ(error_code(kProduct, {floats({1, 2}, {1, 2}), longer, Value(touch)}), "E0301");
        EXPECT_EQ(error_code(kProduct, {floats({1, 2}, {1, 2}), shorter, Value(touch)}), "E0301");
    }
    // The write came first and stays, whole.
    EXPECT_EQ(values_of(Value(longer)), (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(values_of(Value(shorter)), (std::vector<float>{2}));
}

TEST_P(SessionTest, AssertionsRaiseWhereTheyStand) {
    constexpr std::string_view kAssert = R"(
.func main(n: int) -> 1
  LOAD_LOCAL n
  LOAD_CONST 3
  SCALAR lt
  ASSERT "n is small"
  LOAD_LOCAL n
  RETURN 1
)";
    EXPECT_EQ(run(kAssert, {Value(2)})[0].integer(), 2);
    EXPECT_EQ(error_code(kAssert, {Value(3)}), "E0508");
}

TEST_P(SessionTest, EndlessLoopsCanBeInterrupted) {
    const Module module = module_from(R"(
.func main(x: f32[N]) -> 1
head:
  LOOP_HEAD
  JUMP head
)");
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        session_.interrupt();
    });
    const std::vector<Value> arguments{floats({1}, {1})};
    const auto results = session_.run(module, arguments);
    stopper.join();
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().code(), "E0509");

    CallOptions call;
    call.should_stop = [](void*) { return true; };
    const auto stopped = session_.run(module, arguments, call);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), "E0509");
}

// One kernel each, which nobody could wait for.
TEST_P(SessionTest, LongKernelsCanBeInterrupted) {
    if (GetParam() != 1 || !Session::has_code_generator()) GTEST_SKIP() << "kernels that are cut in pieces";
    float one = 1;
    const auto ones = [&](std::int64_t size) {
        const std::int64_t strides[] = {0};
        return Tensor::from_blob(&one, DType::kF32, {&size, 1}, strides);
    };
    for (const char* axes : {"[0, 1]", "[1]"}) {
        const Module module = module_from(R"(
.func main(x: f32[N], y: f32[M]) -> 1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=1
  LOAD_LOCAL y
  CALL_OP unsqueeze 1 axis=0
  CALL_OP mul 2
  CALL_OP reduce_sum 1 keepdim=false, axes=)" +
                                          std::string(axes) + "\n  RETURN 1\n");
        ASSERT_TRUE(session_.run(module, {ones(2), ones(3)}));
        const std::vector<Value> endless{ones(std::int64_t{1} << 20), ones(std::int64_t{1} << 22)};
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            session_.interrupt();
        });
        const auto interrupted = session_.run(module, endless);
        stopper.join();
        ASSERT_FALSE(interrupted);
        EXPECT_EQ(interrupted.error().code(), "E0509");

        int asked = 0;
        CallOptions call;
        call.should_stop = [](void* context) { return ++*static_cast<int*>(context) == 3; };
        call.stop_context = &asked;
        const auto stopped = session_.run(module, endless, call);
        ASSERT_FALSE(stopped);
        EXPECT_EQ(stopped.error().code(), "E0509");
        EXPECT_EQ(asked, 3);
        const auto after = session_.run(module, {ones(2), ones(3)});
        ASSERT_TRUE(after);
        EXPECT_EQ(values_of((*after)[0])[0], axes[1] == '1' ? 3.0f : 6.0f);
    }
}

TEST_P(SessionTest, TwoThreadsWithDifferentShapes) {
    const Module module = module_from(kAddReluSum);
    const auto work = [&](std::int64_t first) {
        for (int round = 0; round < 300; ++round) {
            const std::int64_t n = first + round % 17;
            Tensor x = Tensor::empty(DType::kF32, {n});
            std::fill_n(x.data_as<float>(), n, 1.0f);
            const std::vector<Value> arguments{x};
            const auto results = session_.run(module, arguments);
            ASSERT_TRUE(results) << results.error().to_string();
            EXPECT_EQ(values_of((*results)[0])[0], static_cast<float>(2 * n));
        }
    };
    std::thread other([&] { work(1); });
    work(9);
    other.join();
    EXPECT_EQ(session_.stats().calls, 600u);
}

TEST_P(SessionTest, HardLimitNamesTheTensorAndBothLimits) {
    SessionOptions options = SessionTest::options();
    options.soft_limit = 1 << 16;
    options.hard_limit = 1 << 18;
    Session small(options, stress());
    const Module module = module_from(R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=1
  LOAD_LOCAL x
  CALL_OP unsqueeze 1 axis=0
  CALL_OP matmul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL y
  CALL_OP matmul 2
  CALL_OP reduce_sum 1 axes=[0, 1], keepdim=false
  RETURN 1
)");
    const std::vector<Value> fits{floats({2}, {1, 2})};
    const auto result = small.run(module, fits);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(values_of((*result)[0])[0], 45.0f);  // [[1,2],[2,4]] squared: 5+10+10+20
    const std::vector<Value> too_long{Tensor::empty(DType::kF32, {512})};
    const auto refused = small.run(module, too_long);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), "E0601");
    EXPECT_NE(refused.error().where().operand.find("512"), std::string::npos) << refused.error().to_string();
    EXPECT_NE(refused.error().expected().find("soft limit 64"), std::string::npos) << refused.error().expected();
    EXPECT_NE(refused.error().expected().find("hard limit 256"), std::string::npos) << refused.error().expected();
    EXPECT_TRUE(small.run(module, fits));
}

TEST_P(SessionTest, BeyondTheHardLimitOpsRunOneByOne) {
    // The region wants both products at once; op by op one of them is gone before the other comes.
    const Module module = module_from(R"(
.func main(x: f32[N, N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP matmul 2
  CALL_OP relu 1
  STORE_LOCAL y
  LOAD_LOCAL y
  LOAD_LOCAL x
  CALL_OP matmul 2
  CALL_OP reduce_sum 1 axes=[0, 1], keepdim=false
  RETURN 1
)");
    Tensor x = Tensor::empty(DType::kF32, {64, 64});
    std::fill_n(x.data_as<float>(), x.numel(), 0.5f);
    const std::vector<Value> arguments{x};
    SessionOptions options = SessionTest::options();
    for (const std::uint64_t limit : {std::uint64_t{1} << 30, std::uint64_t{72} << 10}) {
        options.hard_limit = limit;
        Session session(options, stress());
        const auto result = session.run(module, arguments);
        ASSERT_TRUE(result) << result.error().to_string();
        EXPECT_EQ(values_of((*result)[0])[0], 64 * 64 * 64 * 0.25f * 64 * 0.5f);
    }
}

TEST_P(SessionTest, FrozenDimsMakeOneVersionPerValue) {
    const Module module = module_from(R"(
.func main(x: f32[B, FROZEN S]) -> 1
  LOAD_LOCAL x
  RELU
  CALL_OP reduce_sum 1 axes=[1], keepdim=false
  RETURN 1
)");
    for (std::int64_t b = 1; b <= 3; ++b) {
        for (std::int64_t s = 1; s <= 4; ++s) {
            Tensor x = Tensor::empty(DType::kF32, {b, s});
            std::fill_n(x.data_as<float>(), x.numel(), 1.0f);
            const std::vector<Value> arguments{x};
            const auto result = session_.run(module, arguments);
            ASSERT_TRUE(result) << result.error().to_string();
            EXPECT_EQ(values_of((*result)[0]), std::vector<float>(static_cast<std::size_t>(b), static_cast<float>(s)));
        }
    }
    if (GetParam() == 2 || (GetParam() == 1 && Session::has_code_generator())) {
        EXPECT_EQ(session_.stats().compilations, 4u);
    }
}

TEST_P(SessionTest, StressSwitchesAct) {
    if (GetParam() < 2) GTEST_SKIP() << "not a stressed session";
    const Module module = module_from(kAddReluSum);
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(session_.run(module, {floats({4}, {-3, 0, 1, 2})}));
    const Stats stats = session_.stats();
    // Ended at once, the first region holds the addition and the second the sum; what stands between is interpreted.
    EXPECT_EQ(stats.compilations, GetParam() == 3 ? 5u : (GetParam() == 4 ? 2u : 1u));
    EXPECT_EQ(stats.region_exits, GetParam() == 4 ? 10u : 0u);
}

TEST_P(SessionTest, SteadyStateAllocatesOnlyOutputs) {
    if (GetParam() != 1 || !Session::has_code_generator()) GTEST_SKIP();
    const Module module = module_from(R"(
.func main(x: f32[N, 64]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP matmul 2
  RETURN 1
)");
    Tensor x = Tensor::empty(DType::kF32, {40, 64});
    std::fill_n(x.data_as<float>(), x.numel(), 0.01f);
    const std::vector<Value> arguments{x};
    std::vector<Value> results;
    const std::int32_t main = Session::function_index(module, "main");
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(session_.run_into(module, main, arguments, results));
    const PoolStats before = session_.stats().pool;
    const std::uint64_t news = allocations.load();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(session_.run_into(module, main, arguments, results));
    EXPECT_EQ(allocations.load(), news) << "operator new on the call path";
    const PoolStats after = session_.stats().pool;
    EXPECT_EQ(after.growth_events, before.growth_events);
    EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST_P(SessionTest, PrepareLeavesNothingToCompile) {
    if (GetParam() == 1 && !Session::has_code_generator()) GTEST_SKIP() << "needs the code generator";
    if (GetParam() >= 3) GTEST_SKIP() << "compiles always, or runs in between";
    const Module module = module_from(R"(
.symbol S in 1..64
.func main(x: f32[S, 16]) -> 1
  LOAD_LOCAL x
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP matmul 2
  RETURN 1
)");
    const SizeRange range[] = {{"S", 2, 48}};
    const auto prepared = session_.prepare(module, range);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    const Stats before = session_.stats();
    for (std::int64_t s = 2; s <= 48; ++s) {
        Tensor x = Tensor::empty(DType::kF32, {s, 16});
        std::fill_n(x.data_as<float>(), x.numel(), 0.5f);
        const std::vector<Value> arguments{x};
        ASSERT_TRUE(session_.run(module, arguments));
    }
    const Stats after = session_.stats();
    EXPECT_EQ(after.compilations, before.compilations);
    if (GetParam() != 0) {
        EXPECT_EQ(after.pool.growth_events, before.pool.growth_events);
    }
    const SizeRange wrong[] = {{"T", 1, 2}};
    EXPECT_EQ(session_.prepare(module, wrong).error().code(), "E0112");
}

TEST_P(SessionTest, SizesThatNoMachineHasAreErrors) {
    constexpr std::string_view kHuge = R"(
.func main(x: f32[1], n: int) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL n
  BUILD_LIST 1
  CALL_OP expand 2 shape=$1
  CALL_OP exp 1
  RETURN 1
)";
    EXPECT_EQ(values_of(run(kHuge, {floats({1}, {0}), Value(3)})[0]), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(error_code(kHuge, {floats({1}, {0}), Value(std::int64_t{1} << 57)}), "E0602");
    EXPECT_EQ(error_code(kHuge, {floats({1}, {0}), Value(std::int64_t{1} << 62)}), "E0309");
}

TEST_P(SessionTest, RangesHoldOnEveryTier) {
    // Interpreted, compiled or remembered as interpreted: a size outside the declared range is refused on every call.
    const Module module = module_from(R"(
.symbol S in 2..4
.hook log
.func main(x: f32[S]) -> 1
  LOAD_LOCAL x
  CALL_FOREIGN log 1
  RETURN 1
)");
    session_.bind("log", [](std::span<const Value> arguments) -> Expected<Value> { return arguments[0]; });
    for (int round = 0; round < 3; ++round) {
        const std::vector<Value> good{floats({3}, {1, 2, 3})}, bad{floats({5}, {1, 2, 3, 4, 5})};
        EXPECT_TRUE(session_.run(module, good));
        const auto refused = session_.run(module, bad);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), "E0505");
    }
}

TEST_P(SessionTest, ExplainTellsTheSteps) {
    const Module module = module_from(kAddReluSum);
    const auto explanation = session_.explain(module);
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    const std::string& text = explanation->text;
    EXPECT_FALSE(explanation->refusal);
    EXPECT_NE(text.find("load"), std::string::npos);
    EXPECT_NE(text.find("main(x: f32[N])"), std::string::npos);
    if (GetParam() == 1 && Session::has_code_generator()) {
        for (const char* phase : {"symbolise", "match guards", "generate", "register"})
            EXPECT_NE(text.find(phase), std::string::npos) << text;
        EXPECT_NE(text.find("reads 1, intermediate writes 0"), std::string::npos) << text;
    }
}

TEST_P(SessionTest, ExplainTellsARefusalAndHandsItOver) {
    const Module module = module_from(R"(
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP floor_divide 2
  RETURN 1
)");
    const Tensor zeros = Tensor::empty(DType::kI64, {1});
    zeros.data_as<std::int64_t>()[0] = 0;
    const auto explanation = session_.explain(module, std::vector<Value>{zeros, zeros});
    ASSERT_TRUE(explanation) << explanation.error().to_string();
    ASSERT_TRUE(explanation->refusal);
    EXPECT_EQ(explanation->refusal->code(), "E0310");
    EXPECT_NE(explanation->text.find("raised        E0310"), std::string::npos) << explanation->text;
    EXPECT_FALSE(session_.explain(module, "missing"));
}

TEST_P(SessionTest, ExampleArgumentsFitTogether) {
    const auto sizes_of = [&](std::string_view text) {
        const Module module = module_from(text);
        const auto arguments = Session::example_arguments(module);
        std::vector<std::vector<std::int64_t>> out;
        if (!arguments) return out;
        for (const Value& argument : *arguments)
            out.emplace_back(argument.tensor().sizes().begin(), argument.tensor().sizes().end());
        const auto results = session_.run(module, *arguments);
        EXPECT_TRUE(results) << results.error().to_string() << text;
        return out;
    };
    using Shapes = std::vector<std::vector<std::int64_t>>;
    EXPECT_EQ(sizes_of(R"(
.func main(x: f32[A, B], y: f32[C, D]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP matmul 2
  RETURN 1
)"),
              (Shapes{{8, 9}, {9, 11}}));
    // A weight decides, through a chain of ops.
    EXPECT_EQ(sizes_of(R"(
.weight w f32[5, 32] = ones
.func main(x: f32[A, B], y: f32[C]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  LOAD_WEIGHT w
  CALL_OP linear 2
  RETURN 1
)"),
              (Shapes{{8, 32}, {32}}));
    // Both sides of a branch, and an optional argument.
    EXPECT_EQ(sizes_of(R"(
.func main(x: f32[A], y: f32[B]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL alone
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
alone:
  LOAD_LOCAL x
  RETURN 1
)"),
              (Shapes{{8}, {8}}));
    // No equality of symbols: a product that must come out.
    const Shapes reshaped = sizes_of(R"(
.func main(x: f32[A, B]) -> 1
  LOAD_LOCAL x
  CALL_OP reshape 1 shape=[13, 768]
  RETURN 1
)");
    ASSERT_EQ(reshaped.size(), 1u);
    EXPECT_EQ(reshaped[0][0] * reshaped[0][1], 13 * 768);
}

TEST_P(SessionTest, PrepareFollowsWhatMustBeEqual) {
    const Module module = module_from(R"(
.symbol S in 1..64
.func main(x: f32[S], y: f32[T]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
)");
    const std::vector<SizeRange> ranges{{"S", 2, 50}};
    const auto done = session_.prepare(module, ranges);
    ASSERT_TRUE(done) << done.error().to_string();
    const std::uint64_t compiled = session_.stats().compilations;
    EXPECT_TRUE(session_.run(module, {floats({3}, {1, 2, 3}), floats({3}, {1, 2, 3})}));
    if (GetParam() == 1) {
        EXPECT_EQ(session_.stats().compilations, compiled);
    }
}

TEST_P(SessionTest, OptionalArgumentsAtTheEndMayBeLeftOut) {
    const Module module = module_from(R"(
.func main(x: f32[N], y: f32[N]?, z: f32[N]?) -> 1
  LOAD_LOCAL y
  BRANCH_IF_NULL alone
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  RETURN 1
alone:
  LOAD_LOCAL x
  RETURN 1
)");
    const Tensor x = floats({2}, {1, 2});
    const auto first = [&](const std::vector<Value>& arguments) {
        const auto results = session_.run(module, arguments);
        return results ? values_of((*results)[0]) : std::vector<float>{};
    };
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(first({x}), (std::vector<float>{1, 2}));
        EXPECT_EQ(first({x, x}), (std::vector<float>{2, 4}));
        EXPECT_EQ(first({x, x, x}), (std::vector<float>{2, 4}));
    }
    for (const std::vector<Value>& wrong : {std::vector<Value>{}, std::vector<Value>{x, x, x, x}}) {
        const auto refused = session_.run(module, wrong);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), "E0501");
        EXPECT_EQ(refused.error().expected(), "1 to 3");
    }
}

}  // namespace
}  // namespace flexor
