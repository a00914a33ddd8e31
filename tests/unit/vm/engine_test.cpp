// The ladder and the tape executor over hand-built executables and kernels that are plain functions.
#include "vm/engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "bytecode/text.h"
#include "bytecode/verify.h"
#include "support/diagnostic.h"

namespace flexor::vm {
namespace {

using executable::Block;
using executable::BufferSource;
using executable::Executable;
using executable::FrameOp;
using executable::kNoSlot;
using executable::OutValue;
using executable::Step;
using executable::Terminator;

class FunctionKernel : public runtime::KernelHandle {
public:
    using Body = std::function<void(const runtime::LaunchArgs&)>;
    explicit FunctionKernel(Body body, std::size_t workspace = 0) : body_(std::move(body)), workspace_(workspace) {}
    void launch(const runtime::LaunchArgs& args) const override { body_(args); }
    std::size_t workspace_bytes(const std::int64_t*) const override { return workspace_; }
    std::size_t code_bytes() const override { return 0; }

private:
    Body body_;
    std::size_t workspace_;
};

executable::KernelSlot make_kernel(std::string name, std::vector<bool> written, std::uint32_t params,
                                   FunctionKernel::Body body, std::size_t workspace = 0) {
    executable::KernelSlot slot;
    slot.ir.name = std::move(name);
    for (const bool w : written) slot.ir.buffers.push_back({"b", DType::kF32, !w, w});
    slot.ir.param_count = params;
    slot.handle = std::make_shared<FunctionKernel>(std::move(body), workspace);
    return slot;
}

Step step(Step::Kind kind, std::uint32_t index = 0) {
    Step s{kind};
    s.index = index;
    return s;
}

Step allocate(executable::BufferSlot buffer, executable::Slot bytes, bool output) {
    Step s{Step::Kind::kAllocate};
    s.buffer = buffer;
    s.bytes = bytes;
    s.output = output;
    return s;
}

OutValue tensor_value(executable::BufferSlot buffer, executable::Slot size, executable::Slot stride) {
    OutValue value;
    value.kind = OutValue::Kind::kTensor;
    value.tensor = {buffer, DType::kF32, {size}, {stride}, kNoSlot};
    return value;
}

// y = 2 * x for x: f32[N].
void fill_doubling(Executable& e) {
    e.frame_slots = 4;
    e.buffer_slots = 2;
    e.sources = {{BufferSource::Kind::kArgument, 0}, {}};
    e.kernels.push_back(make_kernel("double", {false, true}, 1, [](const runtime::LaunchArgs& args) {
        for (std::int64_t i = 0; i < args.params[0]; ++i)
            static_cast<float*>(args.buffers[1])[i] = 2 * static_cast<float*>(args.buffers[0])[i];
    }));
    e.launches.push_back({0, {0, 1}, {0}, 0});
    Block block;
    block.frame.insts = {{FrameOp::kConst, 3, 0, 0, 4}, {FrameOp::kMul, 2, 0, 3, 0}};
    block.steps = {allocate(1, 2, true), step(Step::Kind::kLaunch)};
    block.terminator.values.push_back(tensor_value(1, 0, 1));
    e.blocks.push_back(block);
    e.op_count = 1;
}

// Compiles what the test says; counts.
class FakeCompiler : public Compiler {
public:
    using Make = std::function<Expected<Executable>(const CompileRequest&)>;
    Expected<std::shared_ptr<const Executable>> compile(const CompileRequest& request) override {
        ++count;
        last_generalise = request.generalise;
        auto made = make(request);
        if (!made) return std::move(made).error();
        made->signature = *request.signature;
        made->pc = request.pc;
        made->function = "main";
        const auto verified = executable::verify(*made);
        EXPECT_TRUE(verified) << verified.error().to_string();
        return std::make_shared<const Executable>(std::move(*made));
    }
    Make make;
    std::atomic<int> count{0};
    std::atomic<bool> last_generalise{false};
};

class EngineTest : public testing::Test {
protected:
    void load(std::string_view text) {
        auto assembled = bytecode::assemble(text, "test");
        ASSERT_TRUE(assembled) << assembled.error().to_string();
        auto verified = bytecode::verify(std::move(*assembled));
        ASSERT_TRUE(verified) << verified.error().to_string();
        module_ = *verified;
    }
    void start(EngineOptions options = {}, runtime::PoolOptions pool = {}) {
        pool_ = runtime::Pool::create(pool);
        engine_ = std::make_unique<Engine>(options, &compiler_, pool_, &telemetry_, &hooks_);
    }
    Expected<std::vector<Value>> run(std::vector<Value> arguments) {
        std::vector<Value> results;
        auto done = engine_->run(module_, module_->find_function("main"), arguments, results, {});
        if (!done) return std::move(done).error();
        return results;
    }
    static Tensor floats(std::vector<float> values) {
        Tensor tensor = Tensor::empty(DType::kF32, {static_cast<std::int64_t>(values.size())});
        std::copy(values.begin(), values.end(), tensor.data_as<float>());
        return tensor;
    }
    static std::vector<float> values_of(const Value& value) {
        const Tensor& t = value.tensor();
        return {t.data_as<float>(), t.data_as<float>() + t.numel()};
    }

    bytecode::ModuleRef module_;
    FakeCompiler compiler_;
    runtime::Telemetry telemetry_;
    Hooks hooks_;
    std::shared_ptr<runtime::Pool> pool_;
    std::unique_ptr<Engine> engine_;
};

constexpr std::string_view kDouble = R"(
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul 2
  RETURN 1
)";

TEST_F(EngineTest, OneFamilyServesEverySize) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        return e;
    };
    for (int n = 0; n < 50; ++n) {
        const auto results = run({floats(std::vector<float>(static_cast<std::size_t>(n), 1.5f))});
        ASSERT_TRUE(results) << results.error().to_string();
        EXPECT_EQ(values_of((*results)[0]), std::vector<float>(static_cast<std::size_t>(n), 3.0f));
    }
    ASSERT_TRUE(run({floats({1, 2})}));
    EXPECT_EQ(compiler_.count, 1);
    const Stats stats = telemetry_.snapshot();
    EXPECT_EQ(stats.rungs[0].hits, 1u);
    EXPECT_EQ(stats.rungs[1].hits, 49u);
    EXPECT_EQ(stats.rungs[1].misses, 1u);
    EXPECT_EQ(stats.entries[0].hits, 50u);
    EXPECT_EQ(stats.interpreted_ops, 0u);
}

TEST_F(EngineTest, ExactOnlyCompilesEverySize) {
    load(kDouble);
    EngineOptions options;
    options.exact_only = true;
    start(options);
    compiler_.make = [](const CompileRequest& request) -> Expected<Executable> {
        EXPECT_TRUE(request.exact_only);
        Executable e;
        fill_doubling(e);
        e.guard_frame.insts = {{FrameOp::kConst, 3, 0, 0, request.frame[0]}};
        e.guards = {{ops::Relation::kEq, 0, 3}};
        e.guard_texts = {"N == " + std::to_string(request.frame[0])};
        return e;
    };
    for (int round = 0; round < 2; ++round) {
        for (std::size_t n = 1; n <= 10; ++n) ASSERT_TRUE(run({floats(std::vector<float>(n, 1.0f))}));
    }
    EXPECT_EQ(compiler_.count, 10);
    EXPECT_EQ(telemetry_.snapshot().rungs[0].hits, 10u);
    EXPECT_DOUBLE_EQ(telemetry_.snapshot().hit_rate, 0.5);
}

TEST_F(EngineTest, GuardsThatSplitTheFamilyLeadToGeneralise) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest& request) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        if (request.generalise) return e;
        e.guard_frame.insts = {{FrameOp::kConst, 3, 0, 0, request.frame[0]}};
        e.guards = {{ops::Relation::kEq, 0, 3}};
        e.guard_texts = {"N == " + std::to_string(request.frame[0])};
        return e;
    };
    for (std::size_t n = 1; n <= 10; ++n) ASSERT_TRUE(run({floats(std::vector<float>(n, 1.0f))}));
    EXPECT_EQ(compiler_.count, 3) << "two that split, one that serves the rest";
    EXPECT_TRUE(compiler_.last_generalise);
    int told = 0;
    for (const Event& event : telemetry_.events(0)) told += event.kind == "generalise";
    EXPECT_EQ(told, 1);
}

TEST_F(EngineTest, EntriesAreBoundedAndTheOldestGoes) {
    load(kDouble);
    EngineOptions options;
    options.exact_only = true;
    options.entry_capacity = 4;
    start(options);
    compiler_.make = [](const CompileRequest& request) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        e.guard_frame.insts = {{FrameOp::kConst, 3, 0, 0, request.frame[0]}};
        e.guards = {{ops::Relation::kEq, 0, 3}};
        e.guard_texts = {"N"};
        return e;
    };
    for (std::size_t n = 1; n <= 10; ++n) ASSERT_TRUE(run({floats(std::vector<float>(n, 1.0f))}));
    EXPECT_EQ(telemetry_.snapshot().evictions, 6u);
    EXPECT_EQ(telemetry_.snapshot().entries.size(), 4u);
    ASSERT_TRUE(run({floats(std::vector<float>(10, 1.0f))}));
    EXPECT_EQ(compiler_.count, 10);
    ASSERT_TRUE(run({floats({1.0f})})) << "an evicted entry's exact record is gone with it";
    EXPECT_EQ(compiler_.count, 11);
    engine_->clear();
    EXPECT_TRUE(telemetry_.snapshot().entries.empty());
    ASSERT_TRUE(run({floats({1.0f})}));
    EXPECT_EQ(telemetry_.snapshot().entries.size(), 1u);
}

TEST_F(EngineTest, OneCompilationWhenThreadsMissTogether) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        Executable e;
        fill_doubling(e);
        return e;
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const auto results = run({floats(std::vector<float>(static_cast<std::size_t>(t + 1), 1.0f))});
            ASSERT_TRUE(results);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(compiler_.count, 1);
}

TEST_F(EngineTest, ThreadsRunWhileEntriesComeAndGo) {
    load(kDouble);
    EngineOptions options;
    options.exact_only = true;
    options.entry_capacity = 3;
    options.exact_capacity = 4;
    start(options);
    compiler_.make = [](const CompileRequest& request) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        e.guard_frame.insts = {{FrameOp::kConst, 3, 0, 0, request.frame[0]}};
        e.guards = {{ops::Relation::kEq, 0, 3}};
        e.guard_texts = {"N"};
        return e;
    };
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 200; ++i) {
                const std::size_t n = 1 + (i * (t + 1)) % 7;
                const auto results = run({floats(std::vector<float>(n, 1.0f))});
                ASSERT_TRUE(results);
                EXPECT_EQ(values_of((*results)[0]), std::vector<float>(n, 2.0f));
                if (t == 0 && i % 50 == 0) engine_->clear();
                if (t == 1 && i % 20 == 0) telemetry_.snapshot();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(telemetry_.snapshot().calls, 600u);
}

TEST_F(EngineTest, WhatCannotBeCompiledIsInterpretedOnceAndRemembered) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        return Diagnostic(DiagnosticId::kOpNotCompiled).found("no mul here");
    };
    for (int round = 0; round < 3; ++round) {
        const auto results = run({floats({1, 2})});
        ASSERT_TRUE(results) << results.error().to_string();
        EXPECT_EQ(values_of((*results)[0]), (std::vector<float>{2, 4}));
    }
    // One try per pc that interpretation passed: pcs 0 to 3.
    EXPECT_EQ(compiler_.count, 4);
    const Stats stats = telemetry_.snapshot();
    EXPECT_EQ(stats.failed_compilations, 0u) << "left to the interpreter by design";
    int told = 0;
    for (const Event& event : telemetry_.events(0)) told += event.kind == "interpreted";
    EXPECT_EQ(told, 4);
    ASSERT_EQ(stats.fallbacks.size(), 1u);
    EXPECT_EQ(stats.fallbacks[0].op, "mul");
    EXPECT_EQ(stats.fallbacks[0].count, 3u);
    EXPECT_EQ(stats.fallbacks[0].reason, "no mul here");
    EXPECT_TRUE(stats.fallback_alarm);
}

TEST_F(EngineTest, ExitsGoOnAtTheirPc) {
    load(R"(
.hook log
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul 2
  STORE_LOCAL y
  LOAD_LOCAL y
  CALL_FOREIGN log 1
  POP
  LOAD_LOCAL y
  RETURN 1
)");
    start();
    int logged = 0;
    hooks_.bind(
        "log",
        [&](std::span<const Value> arguments) -> Expected<Value> {
            ++logged;
            EXPECT_EQ(values_of(arguments[0]), (std::vector<float>{2, 4}));
            return Value(7);
        },
        false);
    compiler_.make = [](const CompileRequest& request) -> Expected<Executable> {
        Executable e;
        if (request.pc == 0) {
            fill_doubling(e);
            e.blocks[0].steps[0].output = false;  // pool memory that leaves through the exit
            e.blocks[0].terminator = {};
            e.blocks[0].terminator.kind = Terminator::Kind::kExit;
            executable::Exit exit;
            exit.pc = 5;
            OutValue x;
            x.kind = OutValue::Kind::kArgument;
            exit.locals = {x, tensor_value(1, 0, 1)};
            exit.stack = {tensor_value(1, 0, 1)};
            exit.reason = "foreign log";
            e.exits.push_back(exit);
            return e;
        }
        EXPECT_EQ(request.pc, 6);
        // After the call: x, y and the result of log are live; y is returned.
        EXPECT_EQ(request.signature->values.size(), 3u);
        e.frame_slots = request.signature->frame_size();
        e.buffer_slots = 2;
        e.sources = {{BufferSource::Kind::kArgument, 0}, {BufferSource::Kind::kArgument, 1}};
        Block block;
        OutValue y;
        y.kind = OutValue::Kind::kArgument;
        y.argument = 1;
        block.terminator.values = {y};
        e.blocks.push_back(block);
        return e;
    };
    for (int round = 0; round < 2; ++round) {
        const auto results = run({floats({1, 2})});
        ASSERT_TRUE(results) << results.error().to_string();
        EXPECT_EQ(values_of((*results)[0]), (std::vector<float>{2, 4}));
    }
    EXPECT_EQ(logged, 2);
    EXPECT_EQ(compiler_.count, 2);
    EXPECT_EQ(telemetry_.snapshot().region_exits, 2u);
}

// while x[0] > 100: x = x / 2, then the last x; buffers rotate through a jump.
Executable halving_loop() {
    Executable e;
    e.frame_slots = 6;  // size, stride, bytes, 4, condition
    e.buffer_slots = 4;
    e.sources = {{BufferSource::Kind::kArgument, 0}, {}, {}, {}};
    e.kernels.push_back(make_kernel("halve", {false, true}, 1, [](const runtime::LaunchArgs& args) {
        for (std::int64_t i = 0; i < args.params[0]; ++i)
            static_cast<float*>(args.buffers[1])[i] = static_cast<float*>(args.buffers[0])[i] / 2;
    }));
    e.kernels.push_back(make_kernel("big", {false, true}, 1, [](const runtime::LaunchArgs& args) {
        *static_cast<std::int32_t*>(args.buffers[1]) = static_cast<float*>(args.buffers[0])[0] > 100 ? 1 : 0;
    }));
    e.launches = {{0, {1, 2}, {0}, 0}, {1, {1, 3}, {0}, 0}};
    Block entry;
    entry.frame.insts = {{FrameOp::kConst, 3, 0, 0, 4}, {FrameOp::kMul, 2, 0, 3, 0}};
    entry.terminator.kind = Terminator::Kind::kJump;
    entry.terminator.jumps = {{1, {{0, 1}}, {}, {}}};
    Block head;
    head.loop_head = true;
    head.arena_bytes = 3;
    head.frame.insts = {{FrameOp::kConst, 5, 0, 0, 0}};
    head.arena = {{3, 3, 5, 0, 1}};
    Step read{Step::Kind::kReadInt};
    read.buffer = 3;
    read.slot = 4;
    read.dtype = DType::kI32;
    head.steps = {step(Step::Kind::kLaunch, 1), read};
    head.terminator.kind = Terminator::Kind::kBranch;
    head.terminator.condition = 4;
    head.terminator.jumps = {{2, {}, {}, {}}, {3, {}, {}, {}}};
    Block body;
    body.steps = {allocate(2, 2, false), step(Step::Kind::kLaunch, 0)};
    body.terminator.kind = Terminator::Kind::kJump;
    body.terminator.jumps = {{1, {{2, 1}}, {}, {}}};
    Block last;
    last.terminator.values = {tensor_value(1, 0, 1)};
    e.blocks = {entry, head, body, last};
    return e;
}

TEST_F(EngineTest, LoopsRotateBuffersAndGiveThemBack) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> { return halving_loop(); };
    const Tensor small = floats({3});
    {
        const auto results = run({small});
        ASSERT_TRUE(results);
        EXPECT_EQ((*results)[0].tensor().data(), small.data()) << "zero trips: the argument itself";
    }
    {
        const auto results = run({floats({400, 8})});
        ASSERT_TRUE(results);
        EXPECT_EQ(values_of((*results)[0]), (std::vector<float>{100, 2}));
    }
    {
        const auto results = run({floats({1e30f})});
        ASSERT_TRUE(results);
        EXPECT_GT(values_of((*results)[0])[0], 50.0f);
        // Only the result (64 bytes) and the arena are live, however many trips there were.
        EXPECT_LE(pool_->gauges().live_bytes, 64u + 64 * 1024);
        EXPECT_LE(pool_->gauges().peak_live_bytes, 3 * 64u + 64 * 1024);
    }
}

TEST_F(EngineTest, FaultsAndChecksRaiseWhatTheExecutableSays) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        e.frame_slots = 5;
        e.kernels[0].handle = std::make_shared<FunctionKernel>([](const runtime::LaunchArgs& args) {
            if (static_cast<float*>(args.buffers[0])[0] < 0) *args.fault = 1;
        });
        e.launches[0].fault = 1;
        e.failures = {{DiagnosticId::kElementIndexOutOfRange, "gather", "C3", "indices lie in range", "", 2},
                      {DiagnosticId::kShapeMismatch, "add", "C1", "sizes are equal", "N == 3", 2}};
        e.checks = {{ops::Relation::kEq, 0, 4, false, 1}};
        e.blocks[0].frame.insts.push_back({FrameOp::kConst, 4, 0, 0, 3});
        e.blocks[0].steps.push_back(step(Step::Kind::kCheck, 0));
        return e;
    };
    auto fault = run({floats({-1, 0, 0})});
    ASSERT_FALSE(fault);
    EXPECT_EQ(fault.error().code(), "E0307");
    EXPECT_EQ(fault.error().where().op, "gather");
    EXPECT_EQ(fault.error().where().source, "test:5");
    auto check = run({floats({1, 0})});
    ASSERT_FALSE(check);
    EXPECT_EQ(check.error().code(), "E0301");
    EXPECT_EQ(check.error().found(), "2 and 3");
    EXPECT_TRUE(run({floats({1, 0, 0})}));
    EXPECT_EQ(telemetry_.snapshot().failed_calls, 2u);
}

TEST_F(EngineTest, HardLimitInMidRunFallsBackOpByOp) {
    load(kDouble);
    start({}, {.soft_limit = 1 << 16, .hard_limit = 1 << 20});
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        e.blocks[0].frame.insts.push_back({FrameOp::kConst, 3, 0, 0, std::int64_t{1} << 30});
        e.kernels.push_back(make_kernel("greedy", {false, true}, 0, [](const runtime::LaunchArgs&) {}, 1u << 30));
        e.launches.push_back({1, {0, 1}, {}, 0});
        e.blocks[0].steps.push_back(step(Step::Kind::kLaunch, 1));
        return e;
    };
    const auto results = run({floats({1, 2})});
    ASSERT_TRUE(results) << results.error().to_string();
    EXPECT_EQ(values_of((*results)[0]), (std::vector<float>{2, 4}));
    const Stats stats = telemetry_.snapshot();
    ASSERT_EQ(stats.fallbacks.size(), 1u);
    EXPECT_EQ(stats.fallbacks[0].reason, "hard_limit");
}

TEST_F(EngineTest, AfterAWriteTheRefusalIsAnErrorAndTheWriteStays) {
    load(kDouble);
    start({}, {.soft_limit = 1 << 16, .hard_limit = 1 << 20});
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        e.kernels.push_back(make_kernel(
            "write", {true}, 0, [](const runtime::LaunchArgs& args) { static_cast<float*>(args.buffers[0])[0] = 77; }));
        e.kernels.push_back(make_kernel("greedy", {false, true}, 0, [](const runtime::LaunchArgs&) {}, 1u << 30));
        e.launches.push_back({1, {0}, {}, 0});
        e.launches.push_back({2, {0, 1}, {}, 0});
        e.blocks[0].steps.push_back(step(Step::Kind::kLaunch, 1));
        e.blocks[0].steps.push_back(step(Step::Kind::kLaunch, 2));
        return e;
    };
    const Tensor x = floats({1, 2});
    const auto results = run({x});
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().code(), "E0601");
    EXPECT_NE(results.error().expected().find("hard limit 1"), std::string::npos) << results.error().to_string();
    EXPECT_EQ(x.data_as<float>()[0], 77.0f);
}

TEST_F(EngineTest, HostsGiveOutputMemory) {
    load(kDouble);
    start();
    compiler_.make = [](const CompileRequest&) -> Expected<Executable> {
        Executable e;
        fill_doubling(e);
        return e;
    };
    int asked = 0;
    CallOptions call;
    call.allocator.context = &asked;
    call.allocator.allocate = [](void* context, DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides) {
        ++*static_cast<int*>(context);
        EXPECT_EQ(strides[0], 1);
        return Tensor::empty(dtype, sizes);
    };
    std::vector<Value> results;
    const std::vector<Value> arguments{floats({1, 2, 3})};
    ASSERT_TRUE(engine_->run(module_, 0, arguments, results, call));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(values_of(results[0]), (std::vector<float>{2, 4, 6}));
}

TEST(LiveKey, SignatureWordsAgreeWithSignatures) {
    const auto key_of = [](std::vector<Value> locals, LiveKey& key, bool writes = false) {
        const LiveValues live{locals, {}, static_cast<std::uint32_t>(locals.size()), {}, writes};
        ASSERT_TRUE(build_key(live, key));
        hash_key(key);
        EXPECT_EQ(make_signature(live).frame_size(), key.frame.size());
    };
    const Tensor a = Tensor::empty(DType::kF32, {4, 8});
    const Tensor b = Tensor::empty(DType::kF32, {2, 3});
    const std::int64_t sizes[] = {8, 4}, strides[] = {1, 8};
    const Tensor transposed = a.view(a.data(), DType::kF32, sizes, strides);
    LiveKey x, y;
    key_of({a, 1, 2.0}, x);
    key_of({b, 5, 3.0}, y);
    EXPECT_EQ(x.signature_hash, y.signature_hash);
    EXPECT_NE(x.exact_hash, y.exact_hash);
    key_of({a, 1, 9.0}, y);
    EXPECT_EQ(x.exact_hash, y.exact_hash) << "floats are not part of the exact key";
    key_of({transposed, 1, 2.0}, y);
    EXPECT_NE(x.signature_hash, y.signature_hash);
    // A row of size 1 has any stride; the class and the frame are those of a row-major tensor.
    const std::int64_t one_sizes[] = {1, 8}, odd_strides[] = {999, 1}, even_strides[] = {8, 1};
    key_of({a.view(a.data(), DType::kF32, one_sizes, odd_strides)}, x);
    key_of({a.view(a.data(), DType::kF32, one_sizes, even_strides)}, y);
    EXPECT_EQ(x.exact_hash, y.exact_hash);
    // Where the data start is no part of it: elements may lie at any address.
    const std::int64_t three[] = {3}, unit[] = {1};
    key_of({a.view(a.data(), DType::kF32, three, unit)}, x);
    key_of({a.view(static_cast<std::byte*>(a.data()) + 1, DType::kF32, three, unit)}, y);
    EXPECT_EQ(x.exact_hash, y.exact_hash);
    // Alias groups exist only where something is written.
    key_of({a, transposed}, x);
    key_of({a, Tensor::empty(DType::kF32, {8, 4}).contiguous()}, y);
    key_of({a, a}, x, true);
    key_of({a, a.clone()}, y, true);
    EXPECT_NE(x.signature_hash, y.signature_hash);
}

TEST(ExactTable, ARepeatedKeyIsItsOwnRecordAndNoOther) {
    const auto key_of = [](const std::vector<Value>& locals, LiveKey& key) {
        ASSERT_TRUE(build_key({locals, {}, static_cast<std::uint32_t>(locals.size()), {}, false}, key));
        hash_key(key);
    };
    const auto matrix = [](std::int64_t rows) { return Value(Tensor::empty(DType::kF32, {rows, 3})); };
    LiveKey key;
    ExactTable table;
    std::vector<EntryRef> entries;
    for (std::int64_t rows = 0; rows < 40; ++rows) {  // the table grows on the way
        key_of({matrix(rows), 2.0}, key);
        EXPECT_EQ(table.repeated(key), nullptr);
        EXPECT_EQ(table.find(key), nullptr);
        entries.push_back(std::make_shared<Entry>());
        table.insert(key, entries.back(), 1024);
        ASSERT_NE(table.repeated(key), nullptr);
        EXPECT_EQ(*table.repeated(key), entries.back());
        key_of({matrix(rows), -1.0}, key);
        EXPECT_NE(table.repeated(key), nullptr) << "floats are not part of the exact key";
        key_of({matrix(rows), 2}, key);
        EXPECT_EQ(table.repeated(key), nullptr) << "an integer is not a float";
    }
    key_of({matrix(7), 2.0}, key);
    EXPECT_EQ(table.repeated(key), nullptr);
    ASSERT_NE(table.find(key), nullptr);
    EXPECT_EQ(*table.repeated(key), entries[7]);
    entries[7]->dropped = true;
    EXPECT_EQ(table.repeated(key), nullptr);
    EXPECT_EQ(table.find(key), nullptr);
    EXPECT_EQ(table.repeated(key), nullptr);
}

}  // namespace
}  // namespace flexor::vm
