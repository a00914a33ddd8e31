// Requests to a script in the compiler's place.
#include "codegen/triton/compiler_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <mutex>

#include "unit/triton/scripted_compiler.h"

namespace flexor::codegen::triton {
namespace {

CompileRequest named_request(const std::string& name) {
    CompileRequest out;
    out.function = name;
    out.source = "text";
    out.constants = {{name, 1}};
    return out;
}

TEST(CompilerPool, DoesFirstWhatACallWaitsFor) {
    const tests::ScriptedCompiler compiler;
    CompilerPool pool(compiler.command(), 60, 1);
    std::mutex mutex;
    std::string order;
    const auto submit = [&](const std::string& name, Urgency urgency) {
        return pool.submit(named_request(name), urgency, [&, name](CompilerPool::Answer code) {
            EXPECT_TRUE(code.has_value() && code->cubin.find(name + "=1") != std::string::npos);
            const std::lock_guard lock(mutex);
            order += name;
        });
    };
    compiler.set("hold");
    submit("a", Urgency::kWaited);
    while (compiler.begun() < 1) usleep(1000);
    submit("b", Urgency::kSpare);
    const auto late = submit("c", Urgency::kSpare);
    submit("d", Urgency::kTuned);
    pool.hurry(late, Urgency::kWaited);
    pool.hurry(late, Urgency::kSpare);
    compiler.clear("hold");
    EXPECT_TRUE(pool.compile(named_request("e")).has_value());
    while (compiler.begun() < 5) usleep(1000);
    EXPECT_TRUE(pool.compile(named_request("f")).has_value());
    const std::lock_guard lock(mutex);
    EXPECT_EQ(order.substr(0, 2), "ac");
    EXPECT_LT(order.find('d'), order.find('b')) << order;
}

TEST(CompilerPool, StartsProcessesForWhatWillCome) {
    const tests::ScriptedCompiler compiler;
    CompilerPool pool(compiler.command(), 60, 3);
    pool.expect(8);
    compiler.set("hold");
    std::vector<std::future<void>> done;
    for (const char* name : {"a", "b", "c"})
        done.push_back(std::async(std::launch::async,
                                  [&pool, name] { EXPECT_TRUE(pool.compile(named_request(name)).has_value()); }));
    while (compiler.begun() < 3) usleep(1000);  // all at once
    compiler.clear("hold");
}

TEST(CompilerPool, HasProcessesOfItsOwnInAForkedProcess) {
    const tests::ScriptedCompiler compiler;
    CompilerPool pool(compiler.command(), 60, 1);
    ASSERT_TRUE(pool.compile(named_request("a")).has_value());
    const pid_t child = fork();
    if (child == 0) _exit(pool.compile(named_request("b")).has_value() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(pool.compile(named_request("c")).has_value());
}

TEST(CompilerPool, SaysWhatIsMissing) {
    CompilerPool pool({"/no/such/interpreter"});
    EXPECT_EQ(pool.compile(named_request("a")).error().code(), "E0707");
}

}  // namespace
}  // namespace flexor::codegen::triton
