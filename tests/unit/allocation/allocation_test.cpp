// Allocation n fails, for n of a session's first call: the call says OutOfMemory or does without, nothing crashes, and
// the same session serves the next call.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <new>

#include "bytecode/public_module.h"
#include "driver/example.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "support/diagnostic.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

std::atomic<std::int64_t> countdown{0};  // of allocations; the one that brings it to 0 fails
std::atomic<bool> failed{false};

bool fails() {
    if (countdown.load(std::memory_order_relaxed) <= 0) return false;
    if (countdown.fetch_sub(1, std::memory_order_relaxed) != 1) return false;
    failed.store(true);
    errno = ENOMEM;
    return true;
}

}  // namespace

// The C library's own, under other names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* data, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

__attribute__((visibility("default"))) void* malloc(std::size_t size) {
    return fails() ? nullptr : __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t size) {
    return fails() ? nullptr : __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* data, std::size_t size) {
    return fails() ? nullptr : __libc_realloc(data, size);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return fails() ? nullptr : __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void** data, std::size_t alignment, std::size_t size) {
    if (fails()) return ENOMEM;
    *data = __libc_memalign(alignment, size);
    return *data == nullptr ? ENOMEM : 0;
}
}

namespace flexor {
namespace {

// An encoder layer with weights to pack, a loop that grows a list, a branch on data, a write to an argument.
constexpr std::string_view kProgram = R"(
.symbol B in 1..2
.symbol S in 1..3
.weight wq f32[32, 32] = normal(1, 0.1)
.weight w1 f32[64, 32] = normal(2, 0.1)
.weight w2 f32[32, 64] = normal(3, 0.1)
.weight g f32[32] = ones
.weight b f32[32] = zeros
.func main(x: f32[B, S, 32], steps: int) -> 3
  LOAD_LOCAL x
  LOAD_TENSOR wq
  CALL_OP linear 2
  CALL_OP reshape 1 shape=[B, S, 4, 8]
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  STORE_LOCAL h
  LOAD_LOCAL h
  LOAD_LOCAL h
  LOAD_LOCAL h
  CALL_OP sdpa 3
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  CALL_OP reshape 1 shape=[B, S, 32]
  LOAD_LOCAL x
  CALL_OP add 2
  LOAD_TENSOR g
  LOAD_TENSOR b
  CALL_OP layer_norm 3
  LOAD_TENSOR w1
  CALL_OP linear 2
  CALL_OP gelu 1
  LOAD_TENSOR w2
  CALL_OP linear 2
  STORE_LOCAL y
  BUILD_LIST 0
  STORE_LOCAL sums
  LOAD_CONST 0
  STORE_LOCAL i
head:
  LOOP_HEAD
  LOAD_LOCAL i
  LOAD_LOCAL steps
  SCALAR le
  BRANCH_IF_FALSE done
  LOAD_LOCAL sums
  LOAD_LOCAL y
  LOAD_LOCAL i
  CALL_OP mul 2
  CALL_OP reduce_sum 1 axes=[-1]
  LIST_APPEND
  STORE_LOCAL sums
  LOAD_LOCAL i
  LOAD_CONST 1
  SCALAR add
  STORE_LOCAL i
  JUMP head
done:
  LOAD_LOCAL y
  CALL_OP reduce_sum 1
  LOAD_CONST 0
  CALL_OP gt 2
  BRANCH_IF_FALSE below
  LOAD_LOCAL y
  CALL_OP nonzero 1
  STORE_LOCAL found
  JUMP end
below:
  LOAD_LOCAL x
  CALL_OP nonzero 1
  STORE_LOCAL found
end:
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL y
  LOAD_LOCAL sums
  CALL_OP stack 1
  LOAD_LOCAL found
  RETURN 3
)";

struct Way {
    std::string name;
    bool compile = true;
    bool evaluate = false;
};

std::vector<Value> arguments_of(const Module& module) {
    const bytecode::Module& parts = *bytecode::module_ref(module);
    const std::int32_t main = parts.find_function("main");
    return *driver::make_arguments(parts, main, driver::example_sizes(parts, main));
}

void expect_alike(const std::vector<Value>& found, const std::vector<Value>& wanted, std::int64_t n) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].describe(), wanted[i].describe()) << "allocation " << n;
        if (found[i].tensor().dtype() != DType::kF32) continue;
        const Tensor a = found[i].tensor().contiguous(), b = wanted[i].tensor().contiguous();
        for (std::int64_t e = 0; e < a.numel(); ++e)
            ASSERT_LE(std::fabs(a.data_as<float>()[e] - b.data_as<float>()[e]), 1e-4F) << "allocation " << n;
    }
}

class AllocationTest : public testing::TestWithParam<Way> {};

TEST_P(AllocationTest, FailsAndTheSessionGoesOn) {
    const Way& way = GetParam();
    const auto made = Module::from_text(kProgram);
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    const Module& module = *made;
    const auto session_of = [&] {
        return std::make_unique<Session>(SessionOptions{.compile = way.compile},
                                         StressOptions{.evaluate_kernels = way.evaluate, .poison = true});
    };
    // Kernels and packed weights are the process's: the code generator's own allocations are not among those that fail.
    const auto first = session_of();
    const auto wanted = first->run(module, arguments_of(module));
    ASSERT_TRUE(wanted.has_value()) << wanted.error().to_string();
    const auto other = session_of();
    static_cast<void>(other->run(module, arguments_of(module)));
    const std::uint64_t idle = other->stats().pool.live_bytes;  // when nobody holds results
    constexpr std::int64_t kEach = 200, kParts = 40;            // beyond these, steps of a fortieth
    std::int64_t refusals = 0, n = 1;
    for (;; n += n < kEach ? 1 : n / kParts) {
        const auto session = session_of();
        const std::vector<Value> arguments = arguments_of(module);
        failed.store(false);
        countdown.store(n);
        auto results = session->run(module, arguments);
        countdown.store(0);
        if (!failed.load()) {
            ASSERT_TRUE(results.has_value()) << results.error().to_string();
            break;
        }
        if (results) {
            expect_alike(*results, *wanted, n);
        } else {
            ++refusals;
            ASSERT_EQ(results.error().code(), "E0602") << "allocation " << n << "\n" << results.error().to_string();
        }
        results = std::vector<Value>();  // what it holds of the pool goes back
        auto next = session->run(module, arguments_of(module));
        ASSERT_TRUE(next.has_value()) << "after allocation " << n << "\n" << next.error().to_string();
        expect_alike(*next, *wanted, n);
        next = std::vector<Value>();
        ASSERT_EQ(session->stats().pool.live_bytes, idle) << "after allocation " << n;
    }
    EXPECT_GT(refusals, 10);
    RecordProperty("allocations", std::to_string(n));
}

std::vector<Way> ways() {
    std::vector<Way> out = {{"interpreter", false}, {"evaluator", true, true}};
    if (Session::has_code_generator()) out.push_back({"generated_code", true, false});
    return out;
}

INSTANTIATE_TEST_SUITE_P(Ways, AllocationTest, testing::ValuesIn(ways()),
                         [](const testing::TestParamInfo<Way>& way) { return way.param.name; });

TEST(Allocation, FailsWhileAProgramIsRead) {
    for (std::int64_t n = 1;; ++n) {
        failed.store(false);
        countdown.store(n);
        auto module = Module::from_text(kProgram);
        countdown.store(0);
        if (!failed.load()) break;
        if (!module) {
            ASSERT_EQ(module.error().code(), "E0602") << "allocation " << n;
        }
    }
}

}  // namespace
}  // namespace flexor

#endif
