// Options that make no sense.
#include <gtest/gtest.h>

#include <cstdlib>

#include "flexor/session.h"

namespace flexor {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Module identity() { return *Module::from_text(".func main(x: int) -> 1\n LOAD_LOCAL x\n RETURN 1\n.end\n"); }

// The option that a Session refuses; "" if it takes them all. A refused Session runs nothing and says why.
std::string refused(const SessionOptions& options) {
    Session session(options);
    const std::vector<Value> one{std::int64_t{1}};
    const auto done = session.run(identity(), one);
    EXPECT_EQ(done.has_value(), session.error() == nullptr);
    if (done) return "";
    EXPECT_EQ(done.error().code(), "E0507");
    EXPECT_EQ(session.error()->where().operand, done.error().where().operand);
    EXPECT_FALSE(session.explain(identity(), one));
    return done.error().where().operand;
}

TEST(SessionOptions, ThreadsAndDepthHaveBounds) {
    for (const int threads : {-5, -1, 1025, 100'000}) EXPECT_EQ(refused({.threads = threads}), "threads") << threads;
    EXPECT_EQ(refused({.max_call_depth = 0}), "max_call_depth");
    EXPECT_EQ(refused({.max_call_depth = 1'000'000}), "max_call_depth");
    EXPECT_EQ(refused({.threads = 0, .max_call_depth = 1}), "");
}

TEST(SessionOptions, TheSoftLimitIsNotAboveTheHardOne) {
    EXPECT_EQ(refused({.soft_limit = 64 * kMiB, .hard_limit = 32 * kMiB}), "soft_limit");
    EXPECT_EQ(refused({.soft_limit = 32 * kMiB, .hard_limit = 32 * kMiB}), "");
    EXPECT_EQ(refused({.soft_limit = 0, .hard_limit = kMiB}), "");
    EXPECT_EQ(refused({.soft_limit = 64 * kMiB}), "");
    // The default gives way.
    EXPECT_EQ(Session({.hard_limit = 4 * kMiB}).stats().pool.soft_limit, 4 * kMiB);
    EXPECT_EQ(Session({.hard_limit = 1024 * kMiB}).stats().pool.soft_limit, 256 * kMiB);
}

TEST(SessionOptions, TheEnvironmentIsCheckedToo) {
    ::setenv("FLEXOR_VECTOR_BITS", "100", 1);
    EXPECT_EQ(refused({}), "FLEXOR_VECTOR_BITS");
    ::unsetenv("FLEXOR_VECTOR_BITS");
    ::setenv("FLEXOR_CUBLASLT", "sometimes", 1);
    EXPECT_EQ(refused({}), "FLEXOR_CUBLASLT");
    ::unsetenv("FLEXOR_CUBLASLT");
    ::setenv("FLEXOR_NUM_THREADS", "none", 1);
    EXPECT_EQ(refused({}), "FLEXOR_NUM_THREADS");
    ::unsetenv("FLEXOR_NUM_THREADS");
    EXPECT_EQ(refused({}), "");
}

}  // namespace
}  // namespace flexor
