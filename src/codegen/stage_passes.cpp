#include "codegen/stage_passes.h"

#include <algorithm>

namespace flexor::codegen {

using loopir::Access;
using loopir::Body;
using loopir::kNoNode;
using loopir::Node;
using loopir::NodeId;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

void NodeVisitor::visit(NodeId n) {
    if (n == kNoNode || seen_[n]) return;
    seen_[n] = true;
    if (!enter_(n)) return;
    const Node& node = body_.nodes[n];
    for (const NodeId operand : node.operands) visit(operand);
    if (node.op == ScalarOp::kLoad) visit(body_.accesses[node.index]);
}

void NodeVisitor::visit(const Access& access) {
    for (const loopir::GatherTerm& gather : access.gathers) visit(gather.index);
    visit(access.mask);
}

void NodeVisitor::visit(const Stage& stage) {
    visit(stage.value);
    if (stage.kind == StageKind::kStore) visit(stage.target);
}

namespace {

bool loads_from(const Body& body, const Stage& stage, std::uint32_t buffer) {
    bool found = false;
    NodeVisitor(body, [&](NodeId n) {
        const Node& node = body.nodes[n];
        found = found || (node.op == ScalarOp::kLoad && body.accesses[node.index].buffer == buffer);
        return true;
    }).visit(stage);
    return found;
}

bool stores_to(const Stage& stage, std::uint32_t buffer) {
    return stage.kind == StageKind::kStore && stage.target.buffer == buffer;
}

}  // namespace

std::vector<std::uint32_t> stage_passes(const Body& body) {
    std::vector<std::uint32_t> passes(body.stages.size(), 0);
    for (std::size_t i = 0; i < body.stages.size(); ++i) {
        const Stage& stage = body.stages[i];
        std::uint32_t pass = 0;
        NodeVisitor(body, [&](NodeId n) {
            const Node& node = body.nodes[n];
            if (node.op == ScalarOp::kRowValue) pass = std::max(pass, passes[node.index] + 1);
            return true;
        }).visit(stage);
        for (std::size_t j = 0; j < i; ++j) {
            const Stage& earlier = body.stages[j];
            if (stage.kind == StageKind::kStore &&
                (stores_to(earlier, stage.target.buffer) || loads_from(body, earlier, stage.target.buffer)))
                pass = std::max(pass, passes[j]);
            if (earlier.kind == StageKind::kStore && loads_from(body, stage, earlier.target.buffer))
                pass = std::max(pass, passes[j] + 1);
        }
        passes[i] = pass;
    }
    return passes;
}

}  // namespace flexor::codegen
