#include "my_ops.h"

#include <algorithm>

#include "flexor/op.h"

namespace {

// Elements outside -limit..limit become the nearest end; how many there were in each row is the second result.
flexor::Expected<void> clip_count(const flexor::OpCall& call) {
    const flexor::Tensor &x = call.inputs()[0], &clipped = call.outputs()[0], &counts = call.outputs()[1];
    const auto limit = static_cast<float>(call.real("limit"));
    for (std::int64_t row = 0; row < x.size(0); ++row) {
        std::int64_t count = 0;
        for (std::int64_t i = row * x.size(1); i < (row + 1) * x.size(1); ++i) {
            const float value = x.data_as<float>()[i];
            clipped.data_as<float>()[i] = std::clamp(value, -limit, limit);
            count += value < -limit || value > limit ? 1 : 0;
        }
        counts.data_as<std::int64_t>()[row] = count;
    }
    return {};
}

}  // namespace

flexor::Expected<void> register_my_ops() {
    flexor::OpDef op;
    op.name = "my_clip_count";
    op.summary = "x within -limit..limit, and how many elements of each row were outside.";
    op.signature = "x: f32[B, N] -> f32[B, N], i64[B]";
    op.attributes = {{"limit", flexor::OpAttributeKind::kFloat, "1.0"}};
    op.run = clip_count;
    return flexor::register_op(op);
}
