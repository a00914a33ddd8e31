// The kernels of the process in a build without a code generator.
#include "driver/kernel_cache.h"

#include <gtest/gtest.h>

#include "support/diagnostic.h"

namespace flexor::driver {
namespace {

TEST(KernelCache, ABuildWithoutACodeGeneratorSaysSo) {
#ifdef FLEXOR_WITH_LLVM
    EXPECT_TRUE(KernelCache::instance().fill({}));
#else
    const auto built = KernelCache::instance().fill({});
    ASSERT_FALSE(built);
    EXPECT_EQ(built.error().id(), DiagnosticId::kNoCodeGenerator);
#endif
}

}  // namespace
}  // namespace flexor::driver
