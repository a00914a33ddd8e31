#include "codegen/cpu_llvm/jit.h"

#include <gtest/gtest.h>

#include <thread>

#include "codegen/cpu_llvm/host.h"
#include "support/diagnostic.h"

namespace flexor::codegen::cpu_llvm {
namespace {

// f(x) = 3 * x + constant, or callee(x) + constant.
Expected<std::vector<char>> object_of(std::int64_t constant, const char* callee = nullptr) {
    ModuleBuilder owner("test");
    LLVMTypeRef i64 = LLVMInt64TypeInContext(owner.context());
    LLVMTypeRef type = LLVMFunctionType(i64, &i64, 1, 0);
    LLVMValueRef f = LLVMAddFunction(owner.module(), "f", type);
    add_function_attributes(f);
    LLVMPositionBuilderAtEnd(owner.builder(), LLVMAppendBasicBlockInContext(owner.context(), f, "entry"));
    LLVMValueRef x = LLVMGetParam(f, 0);
    LLVMValueRef value = callee != nullptr ? LLVMBuildCall2(owner.builder(), type,
                                                            LLVMAddFunction(owner.module(), callee, type), &x, 1, "")
                                           : LLVMBuildMul(owner.builder(), x, LLVMConstInt(i64, 3, 1), "");
    LLVMValueRef sum =
        LLVMBuildAdd(owner.builder(), value, LLVMConstInt(i64, static_cast<unsigned long long>(constant), 1), "");
    LLVMBuildRet(owner.builder(), sum);
    return emit_object(owner.module());
}

TEST(Jit, HostWidthIsOneOfThree) {
    const HostTarget& host = host_target();
    EXPECT_TRUE(host.vector_bits == 128 || host.vector_bits == 256 || host.vector_bits == 512);
    EXPECT_FALSE(host.features.empty());
    EXPECT_FALSE(host.has("no-such-feature"));
    EXPECT_EQ(host.lanes(4) * 32, host.vector_bits);
}

TEST(Jit, LoadsTheSameBytesTwice) {
    auto bytes = object_of(7);
    ASSERT_TRUE(bytes);
    auto first = load_object(*bytes);
    auto second = load_object(*bytes);
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    EXPECT_NE(first->lookup("f"), second->lookup("f"));
    EXPECT_EQ(first->function<std::int64_t(std::int64_t)>("f")(5), 22);
    *first = LoadedObject();
    EXPECT_EQ(second->function<std::int64_t(std::int64_t)>("f")(-1), 4);
    EXPECT_EQ(second->lookup("g"), nullptr);
    EXPECT_EQ(LoadedObject().lookup("f"), nullptr);
}

TEST(Jit, CompilesFromManyThreadsAndUnloads) {
    std::vector<int> wrong(8, 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([t, &wrong] {
            for (int i = 0; i < 10; ++i) {
                auto bytes = object_of(100 * t + i);
                auto object = bytes ? load_object(*bytes) : Expected<LoadedObject>(bytes.error());
                auto* f = object ? object->function<std::int64_t(std::int64_t)>("f") : nullptr;
                if (!f || f(5) != 15 + 100 * t + i) ++wrong[static_cast<size_t>(t)];
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (int count : wrong) EXPECT_EQ(count, 0);
}

TEST(Jit, RefusesUnknownSymbolsAndDamagedBytes) {
    auto bytes = object_of(0, "flexor_test_absent");
    ASSERT_TRUE(bytes);
    auto object = load_object(*bytes);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().id(), DiagnosticId::kCodeGenerationFailed);
    EXPECT_EQ(object.error().code(), "E0902");
    EXPECT_NE(object.error().to_string().find("flexor_test_absent"), std::string::npos);
    EXPECT_FALSE(load_object(std::span<const char>(bytes->data(), bytes->size() / 2)));
    EXPECT_FALSE(load_object({}));
    std::vector<char> junk(4096, 'x');
    EXPECT_FALSE(load_object(junk));
}

TEST(Jit, RefusesAnInvalidModule) {
    ModuleBuilder owner("test");
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(owner.context()), nullptr, 0, 0);
    LLVMValueRef f = LLVMAddFunction(owner.module(), "f", type);
    LLVMAppendBasicBlockInContext(owner.context(), f, "entry");  // no terminator
    EXPECT_FALSE(emit_object(owner.module()));
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
