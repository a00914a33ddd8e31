#include "runtime/cuda/named_ranges.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace flexor::runtime::cuda {
namespace {

TEST(NamedRanges, TellTheProfilerThatTheEnvironmentNames) {
    EXPECT_EQ(NamedRanges::load("libno-such-profiler.so"), nullptr);
    EXPECT_EQ(NamedRanges::load(FLEXOR_FAKE_CUDA), nullptr);  // no profiler
    const auto ranges = NamedRanges::load(FLEXOR_FAKE_PROFILER);
    ASSERT_NE(ranges, nullptr);
    {
        const NamedRange outer(ranges.get(), "main:3:add");
        const NamedRange inner(ranges.get(), "main:4:mul");
        const NamedRange none(nullptr, "nobody looks");
    }
    void* library = dlopen(FLEXOR_FAKE_PROFILER, RTLD_NOW);
    const auto heard = reinterpret_cast<const char* (*)()>(dlsym(library, "fake_profiler_heard"));
    EXPECT_STREQ(heard(), "<main:3:add<main:4:mul>>");
}

}  // namespace
}  // namespace flexor::runtime::cuda
