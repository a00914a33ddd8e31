#pragma once
// What a stage of a Body needs, and which stages may share one loop over the row space. Common to all code generators.
#include <cstdint>
#include <functional>
#include <vector>

#include "loopir/kernel.h"

namespace flexor::codegen {

// Walks the nodes that values and accesses need, each once however often it is asked; `enter` is called for every node
// and says whether the node's operands are wanted too.
class NodeVisitor {
public:
    NodeVisitor(const loopir::Body& body, std::function<bool(loopir::NodeId)> enter)
        : body_(body), enter_(std::move(enter)), seen_(body.nodes.size(), false) {}
    void visit(loopir::NodeId node);
    void visit(const loopir::Access& access);
    void visit(const loopir::Stage& stage);

private:
    const loopir::Body& body_;
    std::function<bool(loopir::NodeId)> enter_;
    std::vector<bool> seen_;
};

// The pass of every stage, from 0. A stage runs behind the passes whose row values it uses, and behind a store whose
// memory it loads; a store does not run before an earlier stage that uses its buffer.
std::vector<std::uint32_t> stage_passes(const loopir::Body& body);

}  // namespace flexor::codegen
