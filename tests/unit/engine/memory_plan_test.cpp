// The arena of an encoder over a sweep of sizes: buffers that live together lie apart, and the whole is not much larger
// than what lives at the worst moment. Lifetimes and live bytes are counted here from the launches, not taken from the
// planner.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "bytecode/public_module.h"
#include "driver/example.h"
#include "flexor/session.h"
#include "lower/lower.h"
#include "specialize/specialize.h"
#include "transform/transform.h"
#include "vm/live.h"

namespace flexor {
namespace {

struct Call {
    std::vector<Value> arguments;
    vm::LiveValues live;
    vm::LiveKey key;

    Call(const bytecode::Module& module, std::int32_t function, const std::vector<std::int64_t>& sizes) {
        arguments = driver::make_arguments(module, function, sizes).value();
        live.locals = arguments;
        live.local_count =
            static_cast<std::uint32_t>(module.functions[static_cast<std::size_t>(function)].locals.size());
        EXPECT_TRUE(vm::build_key(live, key));
    }
};

executable::Executable lowered(const bytecode::Module& module, std::int32_t function, Call& call,
                               const executable::Signature& signature, bool fuse) {
    specialize::Region region;
    region.module = &module;
    region.function = function;
    region.signature = &signature;
    region.frame = call.key.frame.span();
    specialised::Program program = specialize::specialize(region).value();
    std::vector<types::OpSite> refused;
    EXPECT_TRUE(transform::expand(program, module.promotion, &refused).has_value());
    transform::remove_dead_code(program);
    return lower::lower(program, signature, {.fuse = fuse}, &refused).value();
}

constexpr double kMost = 1.1;

// Two layers of an encoder as text: attention as three steps with a B*H*S*S value between them, or as one.
std::string encoder(bool fused) {
    const auto head = [](const std::string& weight, const std::string& axes) {
        return "  LOAD_LOCAL x\n  LOAD_LOCAL " + weight +
               "\n  CALL_OP linear 2\n  CALL_OP reshape 1 { shape=[B, S, 4, 16] }\n  CALL_OP permute 1 axes=[" + axes +
               "]\n";
    };
    std::string text =
        ".func main(x: f32[B, S, 64], wq: f32[64, 64], wk: f32[64, 64], wv: f32[64, 64], wo: f32[64, 64], "
        "w1: f32[256, 64], w2: f32[64, 256], g: f32[64], b: f32[64]) -> 1\n";
    for (int layer = 0; layer < 2; ++layer) {
        text += head("wq", "0, 2, 1, 3");
        text += head("wk", fused ? "0, 2, 1, 3" : "0, 2, 3, 1");
        if (!fused) text += "  CALL_OP matmul 2\n  LOAD_CONST 0.25\n  CALL_OP mul 2\n  CALL_OP softmax 1 axis=-1\n";
        text += head("wv", "0, 2, 1, 3");
        text += fused ? "  CALL_OP sdpa 3\n" : "  CALL_OP matmul 2\n";
        text += R"(
  CALL_OP permute 1 axes=[0, 2, 1, 3]
  CALL_OP reshape 1 { shape=[B, S, 64] }
  LOAD_LOCAL wo
  CALL_OP linear 2
  LOAD_LOCAL x
  CALL_OP add 2
  LOAD_LOCAL g
  LOAD_LOCAL b
  CALL_OP layer_norm 3
  STORE_LOCAL x
  LOAD_LOCAL x
  LOAD_LOCAL w1
  CALL_OP linear 2
  CALL_OP gelu 1
  LOAD_LOCAL w2
  CALL_OP linear 2
  LOAD_LOCAL x
  CALL_OP add 2
  LOAD_LOCAL g
  LOAD_LOCAL b
  CALL_OP layer_norm 3
  STORE_LOCAL x
)";
    }
    return text + "  LOAD_LOCAL x\n  RETURN 1\n";
}

struct Buffer {
    std::int64_t begin = 0, bytes = 0;
    std::size_t first = ~std::size_t{0}, last = 0;
};

void sweep(const std::string& text, bool fuse) {
    const Module module = Module::from_text(text).value();
    const bytecode::Module& parts = *bytecode::module_ref(module);
    const std::int32_t function = Session::function_index(module, "main");
    Call first(parts, function, {2, 5});
    const executable::Signature signature = vm::make_signature(first.live);
    const executable::Executable executable = lowered(parts, function, first, signature, fuse);
    ASSERT_EQ(executable.blocks.size(), 1u);
    const executable::Block& block = executable.blocks[0];
    ASSERT_GT(block.arena.size(), 4u);

    double worst = 0;
    for (const std::int64_t batch : {1, 2, 3, 7, 8, 32}) {
        for (const std::int64_t length : {0, 1, 2, 3, 5, 8, 16, 17, 31, 33, 48, 64, 100, 128, 177, 255, 512, 2048}) {
            Call call(parts, function, {batch, length});
            std::vector<std::int64_t> frame(executable.frame_slots + 1, 0);
            std::copy(call.key.frame.span().begin(), call.key.frame.span().end(), frame.begin());
            ASSERT_TRUE(executable::run_frame(block.frame, frame.data()));

            std::map<executable::BufferSlot, Buffer> buffers;
            for (const executable::Planned& planned : block.arena)
                buffers[planned.buffer] = {frame[planned.offset], frame[planned.bytes]};
            for (std::size_t at = 0; at < block.steps.size(); ++at) {
                if (block.steps[at].kind != executable::Step::Kind::kLaunch) continue;
                for (const executable::BufferSlot slot : executable.launches[block.steps[at].index].buffers) {
                    const auto found = buffers.find(slot);
                    if (found == buffers.end()) continue;
                    found->second.first = std::min(found->second.first, at);
                    found->second.last = std::max(found->second.last, at);
                }
            }
            const std::int64_t total = frame[block.arena_bytes];
            std::int64_t most = 0;
            for (std::size_t at = 0; at < block.steps.size(); ++at) {
                std::int64_t alive = 0;
                for (const auto& [slot, buffer] : buffers) {
                    if (buffer.first <= at && at <= buffer.last) alive += buffer.bytes;
                }
                most = std::max(most, alive);
            }
            for (const auto& [slot, buffer] : buffers) {
                EXPECT_GE(buffer.begin, 0);
                EXPECT_EQ(buffer.begin % 64, 0);
                EXPECT_LE(buffer.begin + buffer.bytes, total);
                for (const auto& [other_slot, other] : buffers) {
                    if (slot >= other_slot || buffer.last < other.first || other.last < buffer.first) continue;
                    EXPECT_TRUE(buffer.begin + buffer.bytes <= other.begin || other.begin + other.bytes <= buffer.begin)
                        << "buffers " << slot << " and " << other_slot << " at batch " << batch << ", length "
                        << length;
                }
            }
            EXPECT_LE(static_cast<double>(total),
                      kMost * static_cast<double>(most) + 64.0 * static_cast<double>(buffers.size()))
                << "batch " << batch << ", length " << length;
            if (length >= 16) worst = std::max(worst, static_cast<double>(total) / static_cast<double>(most));
        }
    }
    // The rounding of single buffers to 64 bytes counts where sizes are not tiny.
    EXPECT_LE(worst, kMost);
    // Placing costs a call a few integer instructions a buffer.
    EXPECT_LE(block.frame.insts.size(), 2 * block.arena.size());
}

TEST(MemoryPlan, OfAnEncoderIsCloseToWhatLivesAtOnce) { sweep(encoder(false), true); }

TEST(MemoryPlan, OfAnEncoderWithFusedAttentionIsCloseToWhatLivesAtOnce) { sweep(encoder(true), true); }

TEST(MemoryPlan, OfAnEncoderOpByOpIsCloseToWhatLivesAtOnce) { sweep(encoder(false), false); }

}  // namespace
}  // namespace flexor
