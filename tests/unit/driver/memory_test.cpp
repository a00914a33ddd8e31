// The memory plan of an encoder layer against what its steps need at least.
#include <gtest/gtest.h>

#include <algorithm>

#include "bytecode/text.h"
#include "bytecode/verify.h"
#include "driver/pipeline.h"
#include "vm/live.h"

namespace flexor::driver {
namespace {

constexpr std::string_view kEncoder = R"(
.symbol B in 1..64
.symbol S in 1..512
.weight wqkv f32[192, 64] = normal(1, 0.05)
.weight bqkv f32[192] = zeros
.weight wo f32[64, 64] = normal(2, 0.05)
.weight bo f32[64] = zeros
.weight w1 f32[256, 64] = normal(3, 0.05)
.weight c1 f32[256] = zeros
.weight w2 f32[64, 256] = normal(4, 0.05)
.weight c2 f32[64] = zeros
.weight g f32[64] = ones
.weight b f32[64] = zeros
.func main(x: f32[B, S, 64]) -> 1
  LOAD_LOCAL x
  LOAD_TENSOR wqkv
  LOAD_TENSOR bqkv
  CALL_OP linear 3
  CALL_OP split 1 axis=-1, sizes=[64, 64, 64]
  STORE_LOCAL v
  STORE_LOCAL k
  STORE_LOCAL q
  LOAD_LOCAL q
  CALL_OP reshape 1 shape=[B, S, 4, 16]
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  LOAD_LOCAL k
  CALL_OP reshape 1 shape=[B, S, 4, 16]
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  LOAD_LOCAL v
  CALL_OP reshape 1 shape=[B, S, 4, 16]
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  CALL_OP sdpa 3
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  CALL_OP reshape 1 shape=[B, S, 64]
  LOAD_TENSOR wo
  LOAD_TENSOR bo
  CALL_OP linear 3
  LOAD_LOCAL x
  BINARY_ADD
  LOAD_TENSOR g
  LOAD_TENSOR b
  CALL_OP layer_norm 3 eps=1e-05
  STORE_LOCAL h
  LOAD_LOCAL h
  LOAD_TENSOR w1
  LOAD_TENSOR c1
  CALL_OP linear 3
  CALL_OP gelu 1
  LOAD_TENSOR w2
  LOAD_TENSOR c2
  CALL_OP linear 3
  LOAD_LOCAL h
  BINARY_ADD
  LOAD_TENSOR g
  LOAD_TENSOR b
  CALL_OP layer_norm 3 eps=1e-05
  RETURN 1
)";

// Most bytes that are alive at one step: a buffer lives from its first launch to its last.
std::int64_t lower_bound(const executable::Executable& e, const executable::Block& block, const std::int64_t* frame) {
    std::int64_t most = 0;
    for (std::size_t at = 0; at < block.steps.size(); ++at) {
        std::int64_t alive = 0;
        for (const executable::Planned& planned : block.arena) {
            std::size_t first = block.steps.size(), last = 0;
            for (std::size_t i = 0; i < block.steps.size(); ++i) {
                const executable::Step& step = block.steps[i];
                if (step.kind != executable::Step::Kind::kLaunch) continue;
                const auto& buffers = e.launches[step.index].buffers;
                if (std::find(buffers.begin(), buffers.end(), planned.buffer) == buffers.end()) continue;
                first = std::min(first, i);
                last = i;
            }
            if (first <= at && at <= last) alive += frame[planned.bytes];
        }
        most = std::max(most, alive);
    }
    return most;
}

TEST(MemoryPlan, EncoderStaysNearTheLowerBound) {
    auto assembled = bytecode::assemble(kEncoder, "encoder");
    ASSERT_TRUE(assembled) << assembled.error().to_string();
    auto module = bytecode::verify(std::move(*assembled));
    ASSERT_TRUE(module) << module.error().to_string();
    runtime::Telemetry telemetry;
    PipelineOptions options;
    options.evaluate_kernels = true;  // the plan does not depend on who computes
    Pipeline pipeline(options, &telemetry);

    const std::vector<Value> arguments{Tensor::empty(DType::kF32, {8, 33, 64})};
    const bytecode::Function& f = (*module)->functions[0];
    const vm::LiveValues live{arguments, {}, static_cast<std::uint32_t>(f.locals.size()), {}, false};
    vm::LiveKey key;
    ASSERT_TRUE(vm::build_key(live, key));
    const executable::Signature signature = vm::make_signature(live);
    vm::CompileRequest request;
    request.module = *module;
    request.signature = &signature;
    request.frame = key.frame.span();
    const auto compiled = pipeline.compile(request);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    const executable::Executable& e = **compiled;
    ASSERT_EQ(e.blocks.size(), 1u);
    ASSERT_NE(e.blocks[0].arena_bytes, executable::kNoSlot);

    for (const std::int64_t s : {33, 64, 100, 128, 177, 256}) {
        const std::vector<Value> sized{Tensor::empty(DType::kF32, {8, s, 64})};
        const vm::LiveValues other{sized, {}, live.local_count, {}, false};
        ASSERT_TRUE(vm::build_key(other, key));
        std::vector<std::int64_t> frame(e.frame_slots);
        std::copy_n(key.frame.data(), key.frame.size(), frame.begin());
        ASSERT_TRUE(executable::run_frame(e.blocks[0].frame, frame.data()));
        const std::int64_t arena = frame[e.blocks[0].arena_bytes];
        const std::int64_t bound = lower_bound(e, e.blocks[0], frame.data());
        EXPECT_GE(arena, bound);
        EXPECT_LE(static_cast<double>(arena), 1.1 * static_cast<double>(bound)) << "S = " << s;
    }
}

TEST(Pipeline, WithoutACodeGeneratorItSaysSo) {
    if (Pipeline::available()) GTEST_SKIP() << "this build has one";
    auto assembled = bytecode::assemble(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  RELU\n  RETURN 1\n", "relu");
    auto module = bytecode::verify(std::move(*assembled));
    runtime::Telemetry telemetry;
    Pipeline pipeline({}, &telemetry);
    const std::vector<Value> arguments{Tensor::empty(DType::kF32, {4})};
    const vm::LiveValues live{arguments, {}, 1, {}, false};
    vm::LiveKey key;
    ASSERT_TRUE(vm::build_key(live, key));
    const executable::Signature signature = vm::make_signature(live);
    vm::CompileRequest request;
    request.module = *module;
    request.signature = &signature;
    request.frame = key.frame.span();
    const auto compiled = pipeline.compile(request);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code(), "E0702");
}

}  // namespace
}  // namespace flexor::driver
