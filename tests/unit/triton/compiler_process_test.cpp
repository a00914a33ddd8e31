// The protocol with the compiler's process, played by shell scripts; tests/python/test_triton.py has the real one.
#include "codegen/triton/compiler_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flexor::codegen::triton {
namespace {

CompileRequest request() {
    CompileRequest out;
    out.function = "k";
    out.source = "text";
    return out;
}

std::vector<std::string> script(const std::string& text) { return {"/bin/sh", "-c", text}; }

void expect_refused(CompilerProcess& process, const std::string& code, const std::string& part) {
    const auto result = process.compile(request());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), code);
    EXPECT_NE(result.error().to_string().find(part), std::string::npos) << result.error().to_string();
}

TEST(CompilerProcess, GivesWhatTheWorkerAnswers) {
    CompilerProcess process(script(
        R"(printf 'triton 3.6.0\nok\nname sym\nwarps 8\nshared 16\nscratch 0 1\nparameters 8 4\ncubin 3\na\nb'; cat >/dev/null)"));
    const auto code = process.compile(request());
    ASSERT_TRUE(code.has_value()) << code.error().to_string();
    EXPECT_EQ(code->symbol, "sym");
    EXPECT_EQ(code->warps, 8);
    EXPECT_EQ(code->shared_bytes, 16);
    EXPECT_EQ(code->parameter_bytes, (std::vector<std::int64_t>{8, 4}));
    EXPECT_EQ(code->cubin, "a\nb");
}

TEST(CompilerProcess, RefusesWhatTheWorkerRefusesAndGoesOn) {
    CompilerProcess process(
        script(R"(printf 'triton 3.6.0\nrefused\nerror 4\nnopeok\nname sym\ncubin 0\n'; cat >/dev/null)"));
    expect_refused(process, "E0708", "nope");
    EXPECT_TRUE(process.compile(request()).has_value());
}

TEST(CompilerProcess, SaysThatThereIsNoCompiler) {
    CompilerProcess nowhere({"/no/such/interpreter"});
    expect_refused(nowhere, "E0707", "/no/such/interpreter");
    expect_refused(nowhere, "E0707", "/no/such/interpreter");
    CompilerProcess without(script("echo 'missing Triton 3.6: found 2.0'"));
    expect_refused(without, "E0707", "found 2.0");
    CompilerProcess other(script("echo hello"));
    expect_refused(other, "E0707", "hello");
}

TEST(CompilerProcess, SurvivesACrash) {
    CompilerProcess process(script("echo 'triton 3.6.0'; read line; exit 3"));
    expect_refused(process, "E0708", "has ended");
    expect_refused(process, "E0708", "has ended");
    // More than a pipe holds, to a process that reads nothing.
    CompilerProcess deaf(script("exec 0<&-; echo 'triton 3.6.0'"));
    CompileRequest large = request();
    large.source.assign(1 << 20, ' ');
    const auto result = deaf.compile(large);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), "E0708");
}

TEST(CompilerProcess, GivesUpOnAHang) {
    CompilerProcess process(script("echo 'triton 3.6.0'; exec sleep 60"), 0.3);
    expect_refused(process, "E0708", "no answer within 0.3 s");
    CompilerProcess silent(script("exec sleep 60"), 0.3);
    expect_refused(silent, "E0708", "no answer within 0.3 s");
}

TEST(CompilerProcess, StartsAnewInAForkedProcess) {
    // Two answers: were the process shared, parent and child would take one each and the parent's third would fail.
    const std::string answer = R"(ok\nname sym\ncubin 0\n)";
    CompilerProcess process(script("printf 'triton 3.6.0\\n" + answer + answer + "'; cat >/dev/null"));
    ASSERT_TRUE(process.compile(request()).has_value());
    const pid_t child = fork();
    if (child == 0) {
        const bool good = process.compile(request()).has_value() && process.compile(request()).has_value();
        process.~CompilerProcess();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(process.compile(request()).has_value());
}

TEST(CompilerProcess, RefusesAnAnswerOfAnotherForm) {
    CompilerProcess process(script(R"(printf 'triton 3.6.0\nwhat\n'; cat >/dev/null)"));
    expect_refused(process, "E0708", "what");
}

}  // namespace
}  // namespace flexor::codegen::triton
