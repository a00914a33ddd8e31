#include "codegen/cpu_llvm/row_kernel_plan.h"

#include <algorithm>

#include "codegen/cpu_llvm/expr_emitter.h"
#include "codegen/stage_passes.h"
#include "support/check.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Access;
using loopir::Body;
using loopir::IntRef;
using loopir::kNoNode;
using loopir::Node;
using loopir::NodeId;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

namespace {

constexpr int kBufferCost = 8;  // recomputing is cheaper below

bool has_reduce(const Body& body) {
    return std::any_of(body.stages.begin(), body.stages.end(),
                       [](const Stage& s) { return s.kind == StageKind::kReduce || s.per_row; });
}

template <typename F>
void for_each_access(Body& body, F&& f) {
    for (Access& a : body.accesses) f(a);
    for (Stage& s : body.stages)
        if (s.kind == StageKind::kStore) f(s.target);
}

// A dim of extent 1 at position `at`.
void insert_unit_dim(Body& body, std::uint32_t at) {
    body.extents.insert(body.extents.begin() + at, IntRef::constant(1));
    for_each_access(body, [&](Access& a) { a.strides.insert(a.strides.begin() + at, IntRef::constant(0)); });
    for (Node& n : body.nodes)
        if (n.op == ScalarOp::kIndex && n.index >= at) ++n.index;
}

// Moves dim `from` to the end.
void move_dim_last(Body& body, std::uint32_t from) {
    const std::uint32_t last = body.rank() - 1;
    auto rotate = [&](std::vector<IntRef>& v) { std::rotate(v.begin() + from, v.begin() + from + 1, v.end()); };
    rotate(body.extents);
    for_each_access(body, [&](Access& a) { rotate(a.strides); });
    for (Node& n : body.nodes) {
        if (n.op != ScalarOp::kIndex) continue;
        n.index = n.index == from ? last : n.index > from ? n.index - 1 : n.index;
    }
}

// How well loads and stores suit vectors along `dim`, in quarters of a good access.
int suitability(const Body& body, std::uint32_t dim) {
    int score = 0;
    auto add = [&](const Access& a, bool store) {
        const IntRef& s = a.strides[dim];
        if (s.is(1))
            score += 8;
        else if (s.is(0))
            score += store ? 0 : 3;
        else if (!s.is_constant)
            score += 1;
        else
            score -= 2;
    };
    for (const Node& n : body.nodes)
        if (n.op == ScalarOp::kLoad) add(body.accesses[n.index], false);
    for (const Stage& s : body.stages)
        if (s.kind == StageKind::kStore && !s.per_row) add(s.target, true);
    const IntRef& extent = body.extents[dim];
    if (extent.is_constant && extent.value < 8) score -= 12;
    return score;
}

class Planner {
public:
    Planner(const Body& body, const PlanOptions& options) : options_(options) { plan_.body = body; }

    RowPlan run() {
        choose_dims();
        choose_lanes();
        find_levels();
        assign_passes();
        choose_buffers();
        choose_unroll();
        return std::move(plan_);
    }

private:
    const Node& node(NodeId n) const { return plan_.body.nodes[n]; }

    void choose_dims() {
        Body& body = plan_.body;
        const bool reduces = has_reduce(body);
        if (options_.keep_vector_last) {
            FLEXOR_CHECK(body.rank() > 0);
            plan_.form = reduces ? RowForm::kRows : RowForm::kElementwise;
            if (!reduces) body.parallel = body.rank() - 1;
            FLEXOR_CHECK(body.parallel == body.rank() - 1);
            set_vector(body.rank() - 1);
            return;
        }
        if (body.rank() == 0) insert_unit_dim(body, 0);
        if (!reduces) {
            std::uint32_t best = body.rank() - 1;
            for (std::uint32_t d = body.rank() - 1; d-- > 0;)
                if (suitability(body, d) > suitability(body, best)) best = d;
            move_dim_last(body, best);
            body.parallel = body.rank() - 1;
            plan_.form = RowForm::kElementwise;
            set_vector(body.rank() - 1);
            return;
        }
        if (body.parallel == body.rank()) insert_unit_dim(body, body.rank());
        bool split = true;
        for (std::uint32_t d = 0; d < body.parallel; ++d) split = split && body.extents[d].is(1);
        plan_.form = split ? RowForm::kSplit : RowForm::kRows;
        std::uint32_t best = body.rank() - 1;
        for (std::uint32_t d = body.rank() - 1; d-- > (split ? body.parallel : 0);)
            if (suitability(body, d) > suitability(body, best)) best = d;
        set_vector(best);
    }

    void set_vector(std::uint32_t dim) {
        const Body& body = plan_.body;
        plan_.vector_dim = dim;
        plan_.vector_is_row = dim >= body.parallel;
        plan_.inner_dim = plan_.vector_is_row ? dim : body.rank() - 1;
        for (std::uint32_t d = body.parallel; d < body.rank(); ++d)
            if (d != plan_.inner_dim) plan_.outer_rows.push_back(d);
    }

    void choose_lanes() {
        size_t four = 0, eight = 0;
        for (const Node& n : plan_.body.nodes) {
            if (n.op == ScalarOp::kConst || n.op == ScalarOp::kParam) continue;
            const size_t size = dtype_size(n.dtype);
            // Halves are computed in float; indexes ride along with whatever is computed.
            if (size == 8 && n.op != ScalarOp::kIndex)
                ++eight;
            else if (size == 4 || size == 2)
                ++four;
        }
        int element = four ? 4 : eight ? 8 : 1;
        if (eight > 4 * four) element = 8;
        plan_.lanes = std::min(32, options_.vector_bytes / element);
    }

    void find_levels() {
        const Body& body = plan_.body;
        const size_t count = body.nodes.size();
        std::vector<std::uint64_t> dims(count, 0);
        std::vector<bool> rowwise(count, false);  // depends on a row value
        auto address = [&](const Access& a, size_t i) {
            for (std::uint32_t d = 0; d < body.rank(); ++d)
                if (!a.strides[d].is(0)) dims[i] |= std::uint64_t{1} << d;
            for (const auto& g : a.gathers) merge(dims, rowwise, i, g.index);
            if (a.mask != kNoNode) merge(dims, rowwise, i, a.mask);
        };
        for (size_t i = 0; i < count; ++i) {
            const Node& n = body.nodes[i];
            if (n.op == ScalarOp::kIndex) dims[i] = std::uint64_t{1} << n.index;
            if (n.op == ScalarOp::kLoad) address(body.accesses[n.index], i);
            if (n.op == ScalarOp::kRowValue) rowwise[i] = true;
            if (n.op == ScalarOp::kAccumulator) dims[i] = (std::uint64_t{1} << body.rank()) - 1;
            for (NodeId o : n.operands)
                if (o != kNoNode) merge(dims, rowwise, i, o);
        }
        const std::uint64_t parallel = (std::uint64_t{1} << body.parallel) - 1;
        std::uint64_t outer = 0;
        for (std::uint32_t d : plan_.outer_rows) outer |= std::uint64_t{1} << d;
        plan_.level.resize(count);
        plan_.along_vector.resize(count);
        for (size_t i = 0; i < count; ++i) {
            plan_.along_vector[i] = dims[i] >> plan_.vector_dim & 1 || (rowwise[i] && !plan_.vector_is_row);
            plan_.level[i] = dims[i] >> plan_.inner_dim & 1       ? Level::kInner
                             : dims[i] & outer                    ? Level::kOuter
                             : (dims[i] & parallel) || rowwise[i] ? Level::kRow
                                                                  : Level::kKernel;
        }
    }

    static void merge(std::vector<std::uint64_t>& dims, std::vector<bool>& rowwise, size_t into, NodeId from) {
        dims[into] |= dims[from];
        if (rowwise[from]) rowwise[into] = true;
    }

    void assign_passes() {
        plan_.stage_pass = stage_passes(plan_.body);
        plan_.passes.resize(1);
        for (const std::uint32_t pass : plan_.stage_pass)
            plan_.passes.resize(std::max<size_t>(plan_.passes.size(), pass + 1));
        for (size_t i = 0; i < plan_.body.stages.size(); ++i) {
            Pass& p = plan_.passes[plan_.stage_pass[i]];
            (plan_.body.stages[i].per_row ? p.once : p.loop).push_back(static_cast<std::uint32_t>(i));
        }
    }

    DType operand_dtype(const Node& n) const {
        for (int i = 2; i >= 0; --i)
            if (n.operands[i] != kNoNode) return node(n.operands[i]).dtype;
        return n.dtype;
    }

    int own_cost(NodeId n) const {
        const Node& x = node(n);
        if (x.op == ScalarOp::kLoad) {
            const Access& a = plan_.body.accesses[x.index];
            const bool contiguous = a.strides[plan_.vector_dim].is(1) && a.gathers.empty();
            return contiguous || !plan_.along_vector[n] ? 1 : 8;
        }
        return ExprEmitter::cost(x.op, x.dtype, operand_dtype(x));
    }

    // Instructions to compute `n` inside the inner loop from loads and what is known outside.
    int subtree_cost(NodeId root) const {
        int total = 0;
        NodeVisitor(plan_.body, [&](NodeId n) {
            if (plan_.level[n] != Level::kInner) return false;
            total += own_cost(n);
            return true;
        }).visit(root);
        return total;
    }

    bool bufferable(NodeId n) const {
        const Node& x = node(n);
        if (plan_.level[n] != Level::kInner || x.op == ScalarOp::kLoad || x.op == ScalarOp::kAccumulator) return false;
        if (!plan_.along_vector[n]) return false;
        const size_t bytes = x.dtype == DType::kBool ? 1 : dtype_size(x.dtype);
        return bytes <= options_.scratch_bytes_allowed &&
               (options_.scratch_rows_allowed > 1 || bytes == options_.scratch_bytes_allowed) &&
               subtree_cost(n) >= kBufferCost;
    }

    void choose_buffers() {
        const Body& body = plan_.body;
        std::vector<int> computed(body.nodes.size(), -1);  // pass that first computed the node
        for (std::uint32_t p = 0; p < plan_.passes.size(); ++p) {
            Pass& pass = plan_.passes[p];
            NodeVisitor visitor(body, [&](NodeId n) {
                if (plan_.level[n] != Level::kInner) return plan_.level[n] == Level::kOuter;
                if (plan_.find_buffered(n)) return false;
                if (computed[n] >= 0 && plan_.scratch_rows < options_.scratch_rows_allowed && bufferable(n)) {
                    const auto from = static_cast<std::uint32_t>(computed[n]);
                    plan_.buffered.push_back({n, from, plan_.scratch_rows++});
                    plan_.passes[from].save.push_back(n);
                    plan_.scratch_element_bytes =
                        std::max(plan_.scratch_element_bytes, static_cast<std::uint32_t>(dtype_size(node(n).dtype)));
                    return false;
                }
                if (computed[n] < 0) computed[n] = static_cast<int>(p);
                return true;
            });
            for (std::uint32_t s : pass.loop) visitor.visit(body.stages[s]);
        }
        for (std::uint32_t p = 0; p < plan_.passes.size(); ++p) plan_.passes[p].cost = pass_cost(p);
    }

    int pass_cost(std::uint32_t p) const {
        const Pass& pass = plan_.passes[p];
        int total = static_cast<int>(pass.loop.size() + pass.save.size());
        NodeVisitor visitor(plan_.body, [&](NodeId n) {
            if (plan_.level[n] != Level::kInner) return false;
            const BufferedNode* b = plan_.find_buffered(n);
            if (b && b->pass < p) {
                ++total;
                return false;
            }
            total += own_cost(n);
            return true;
        });
        for (std::uint32_t s : pass.loop) visitor.visit(plan_.body.stages[s]);
        for (NodeId n : pass.save) visitor.visit(n);
        return total;
    }

    // A stride that only the launch knows costs a test and a second way to load: no unrolling then.
    bool has_unknown_stride(std::uint32_t p) const {
        bool found = false;
        auto check = [&](const Access& a) { found = found || !a.strides[plan_.vector_dim].is_constant; };
        NodeVisitor visitor(plan_.body, [&](NodeId n) {
            if (node(n).op == ScalarOp::kLoad) check(plan_.body.accesses[node(n).index]);
            return true;
        });
        for (std::uint32_t s : plan_.passes[p].loop) {
            const Stage& stage = plan_.body.stages[s];
            if (stage.kind == StageKind::kStore) check(stage.target);
            visitor.visit(stage);
        }
        return found;
    }

    void choose_unroll() {
        int widest = 1, total = 0;
        for (std::uint32_t p = 0; p < plan_.passes.size(); ++p) {
            Pass& pass = plan_.passes[p];
            pass.unroll = pass.cost <= 6 ? 4 : pass.cost <= 12 ? 2 : 1;
            if (has_unknown_stride(p)) pass.unroll = 1;
            // An epilogue is called for a few vectors at a time.
            if (options_.keep_vector_last && options_.cheap_masks) pass.unroll = 1;
            pass.masked_only = options_.cheap_masks && pass.unroll == 1;
            widest = std::max(widest, pass.unroll);
            total += pass.cost;
        }
        plan_.cost_per_element = std::max(1, total);
        const IntRef& extent = plan_.body.extents[plan_.vector_dim];
        if (!plan_.vector_is_row) {
            // One block serves every pass.
            plan_.block_vectors = plan_.buffered.empty() ? widest : 1;
            for (const Pass& pass : plan_.passes)
                if (pass.unroll == 1 && pass.cost > 24) plan_.block_vectors = 1;
            if (extent.is_constant) {
                while (plan_.block_vectors > 1 && extent.value <= plan_.block_vectors / 2 * plan_.lanes)
                    plan_.block_vectors /= 2;
            }
            return;
        }
        if (!extent.is_constant) return;
        // A row shorter than the unrolled step would live in the tail.
        for (Pass& pass : plan_.passes)
            while (pass.unroll > 1 && extent.value < pass.unroll * plan_.lanes) pass.unroll /= 2;
        // An epilogue's columns are cut anywhere.
        plan_.exact_rows = extent.value > 0 && !(options_.keep_vector_last && plan_.form == RowForm::kElementwise);
        for (const Pass& pass : plan_.passes)
            plan_.exact_rows = plan_.exact_rows && extent.value % (pass.unroll * plan_.lanes) == 0;
    }

    const PlanOptions& options_;
    RowPlan plan_;
};

}  // namespace

RowPlan plan_rows(const Body& body, const PlanOptions& options) { return Planner(body, options).run(); }

}  // namespace flexor::codegen::cpu_llvm
