#include "codegen/product/library_product.h"

#include <algorithm>
#include <vector>

namespace flexor::codegen::product {

using loopir::Access;
using loopir::Body;
using loopir::Contraction;
using loopir::IntRef;
using loopir::Kernel;
using loopir::kNoNode;
using loopir::Node;
using loopir::NodeId;
using loopir::ScalarOp;
using runtime::cuda::CublasLt;
using runtime::cuda::MatrixProduct;

namespace {

std::int64_t value_of(const IntRef& ref, const std::int64_t* params) {
    return ref.is_constant ? ref.value : params[ref.value];
}

// Nodes that stages use, and for each node how many nodes and stages use it.
struct Uses {
    std::vector<int> count;

    explicit Uses(const Body& body) : count(body.nodes.size(), 0) {
        for (const loopir::Stage& stage : body.stages) {
            use(body, stage.value);
            if (stage.kind == loopir::StageKind::kStore) use(body, stage.target);
        }
    }
    bool used(NodeId n) const { return count[n] > 0; }

private:
    void use(const Body& body, NodeId n) {
        if (n == kNoNode || count[n]++ > 0) return;
        const Node& node = body.nodes[n];
        for (int i = 0; i < loopir::scalar_arity(node.op); ++i) use(body, node.operands[i]);
        if (node.op == ScalarOp::kLoad) use(body, body.accesses[node.index]);
    }
    void use(const Body& body, const Access& access) {
        for (const loopir::GatherTerm& term : access.gathers) use(body, term.index);
        use(body, access.mask);
    }
};

// The one node that uses `n`; none where there are more, or where a stage does.
NodeId only_user(const Body& body, const Uses& uses, NodeId n) {
    if (uses.count[n] != 1) return kNoNode;
    for (NodeId user = n + 1; user < body.nodes.size(); ++user) {
        if (!uses.used(user)) continue;
        const Node& node = body.nodes[user];
        for (int i = 0; i < loopir::scalar_arity(node.op); ++i) {
            if (node.operands[i] == n) return user;
        }
    }
    return kNoNode;
}

bool plain(const Access& access) { return access.gathers.empty() && access.mask == kNoNode; }

// A vector along the last dim.
const Access* bias_of(const Body& body, NodeId n) {
    if (body.nodes[n].op == ScalarOp::kCast) n = body.nodes[n].operands[0];
    if (body.nodes[n].op != ScalarOp::kLoad) return nullptr;
    const Access& access = body.accesses[body.nodes[n].index];
    if (!plain(access) || !access.strides.back().is(1)) return nullptr;
    for (std::size_t dim = 0; dim + 1 < access.strides.size(); ++dim) {
        if (!access.strides[dim].is(0)) return nullptr;
    }
    return &access;
}

// The body without what its stages do not need.
Body without_unused(const Body& body) {
    const Uses uses(body);
    Body out = body;
    out.nodes.clear();
    out.accesses.clear();
    std::vector<NodeId> place(body.nodes.size(), kNoNode);
    const auto moved = [&](NodeId n) { return n == kNoNode ? kNoNode : place[n]; };
    const auto move = [&](Access& access) {
        for (loopir::GatherTerm& term : access.gathers) term.index = moved(term.index);
        access.mask = moved(access.mask);
    };
    for (NodeId n = 0; n < body.nodes.size(); ++n) {
        if (!uses.used(n)) continue;
        Node node = body.nodes[n];
        for (NodeId& operand : node.operands) operand = moved(operand);
        if (node.op == ScalarOp::kLoad) {
            out.accesses.push_back(body.accesses[node.index]);
            move(out.accesses.back());
            node.index = static_cast<std::uint32_t>(out.accesses.size() - 1);
        }
        place[n] = static_cast<NodeId>(out.nodes.size());
        out.nodes.push_back(node);
    }
    for (loopir::Stage& stage : out.stages) {
        stage.value = moved(stage.value);
        if (stage.kind == loopir::StageKind::kStore) move(stage.target);
    }
    return out;
}

// The kernel's epilogue, which finds in memory what node `n` was.
Kernel rest_of(const Kernel& kernel, NodeId n) {
    Kernel out = kernel;
    out.kind = loopir::KernelKind::kRow;
    out.contraction.reset();
    Body& body = out.body;
    Access access;
    access.buffer = static_cast<std::uint32_t>(out.buffers.size());
    access.offset = IntRef::constant(0);
    for (std::uint32_t dim = 0; dim + 1 < body.rank(); ++dim) access.strides.push_back(IntRef::slot(out.param_count++));
    const IntRef& width = body.extents.back();
    if (width.is_constant) access.strides.back() = width;
    access.strides.push_back(IntRef::constant(1));
    const DType dtype = body.nodes[n].dtype;
    body.nodes[n] = Node{ScalarOp::kLoad, dtype};
    body.nodes[n].index = static_cast<std::uint32_t>(body.accesses.size());
    body.accesses.push_back(std::move(access));
    out.buffers.push_back({"product", dtype, true, false});
    body = without_unused(body);
    for (loopir::BufferParam& buffer : out.buffers) buffer.read = buffer.written = false;
    for (const Access& load : body.accesses) out.buffers[load.buffer].read = true;
    for (const loopir::Stage& stage : body.stages) {
        if (stage.kind == loopir::StageKind::kStore) out.buffers[stage.target.buffer].written = true;
    }
    return out;
}

}  // namespace

std::optional<LibraryProduct> library_product(const Kernel& kernel) {
    if (kernel.kind != loopir::KernelKind::kContraction) return std::nullopt;
    const Contraction& c = *kernel.contraction;
    const Body& body = kernel.body;
    const DType sums = c.a_dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    if (c.prologue || c.a_dtype != c.b_dtype || c.accumulator != sums || !CublasLt::takes(c.a_dtype, sums) ||
        body.rank() != c.batch_dims + 2)
        return std::nullopt;
    const Uses uses(body);
    NodeId sum = kNoNode;
    for (NodeId n = 0; n < body.nodes.size(); ++n) {
        if (body.nodes[n].op != ScalarOp::kAccumulator || !uses.used(n)) continue;
        if (sum != kNoNode) return std::nullopt;
        sum = n;
    }
    if (sum == kNoNode) return std::nullopt;

    // What the library does to the sum: a bias, if it has the dtype of the result, and one rounding.
    const auto rounded = [&](NodeId n) {
        const NodeId user = only_user(body, uses, n);
        const bool rounds = user != kNoNode && body.nodes[user].op == ScalarOp::kCast &&
                            CublasLt::takes(c.a_dtype, body.nodes[user].dtype);
        return rounds ? user : n;
    };
    LibraryProduct out;
    NodeId last = rounded(sum);
    if (const NodeId user = last == sum ? only_user(body, uses, sum) : kNoNode;
        user != kNoNode && body.nodes[user].op == ScalarOp::kAdd) {
        const Node& add = body.nodes[user];
        const Access* bias = bias_of(body, add.operands[0] == sum ? add.operands[1] : add.operands[0]);
        const NodeId end = rounded(user);
        if (bias != nullptr && kernel.buffers[bias->buffer].dtype == body.nodes[end].dtype) {
            out.bias = *bias;
            last = end;
        }
    }
    out.result = body.nodes[last].dtype;
    const loopir::Stage& stage = body.stages.front();
    if (body.stages.size() == 1 && stage.kind == loopir::StageKind::kStore && stage.value == last &&
        plain(stage.target)) {
        out.store = stage.target;
    } else {
        out.rest = rest_of(kernel, last);
    }
    return out;
}

ProductSizes product_sizes(const Contraction& c, const Body& epilogue, const std::int64_t* params) {
    ProductSizes out;
    for (std::uint32_t dim = 0; dim < c.batch_dims; ++dim)
        out.batch *= std::max<std::int64_t>(value_of(epilogue.extents[dim], params), 0);
    out.m = value_of(c.m, params);
    out.n = value_of(c.n, params);
    out.k = value_of(c.k, params);
    return out;
}

namespace {

// Strides of one matrix: of rows and columns, and of the batch dims that are more than one.
struct Strides {
    std::int64_t row = 0, column = 0;
    std::vector<std::int64_t> batch;
};

// Lines one behind the other, rows or columns; false where elements of neither lie beside each other.
bool lines(const Strides& strides, std::int64_t rows, std::int64_t columns, MatrixProduct::Matrix& out) {
    for (const bool transposed : {false, true}) {
        const std::int64_t inner = transposed ? strides.row : strides.column, length = transposed ? rows : columns;
        const std::int64_t outer = transposed ? strides.column : strides.row, count = transposed ? columns : rows;
        if (inner != 1 && length != 1) continue;
        if (outer < length && count != 1) continue;
        out.transposed = transposed;
        out.leading = count == 1 ? length : outer;
        return true;
    }
    return false;
}

}  // namespace

std::optional<MatrixProduct> placed(const LibraryProduct& product, const Kernel& kernel,
                                    std::span<const runtime::cuda::CudaPointer> buffers, const std::int64_t* params) {
    const Contraction& c = *kernel.contraction;
    MatrixProduct out;
    out.dtype = c.a_dtype;
    out.result = product.result;
    const ProductSizes sizes = product_sizes(c, kernel.body, params);
    out.m = sizes.m;
    out.n = sizes.n;
    out.k = sizes.k;
    if (out.m <= 0 || out.n <= 0 || out.k <= 0 || sizes.batch <= 0) return std::nullopt;

    const auto value = [&](const IntRef& ref) { return value_of(ref, params); };
    const auto address = [&](std::uint32_t buffer, const IntRef& offset) {
        return buffers[buffer] +
               static_cast<runtime::cuda::CudaPointer>(
                   value(offset) * static_cast<std::int64_t>(dtype_size(kernel.buffers[buffer].dtype)));
    };
    std::vector<std::int64_t> batch;
    Strides a{value(c.a.row_stride), value(c.a.col_stride), {}}, b{value(c.b.row_stride), value(c.b.col_stride), {}};
    Strides d{sizes.n, 1, {}};
    if (product.store) {
        d.row = value(product.store->strides[c.batch_dims]);
        d.column = value(product.store->strides[c.batch_dims + 1]);
    }
    std::int64_t dense = sizes.m * sizes.n * sizes.batch;
    for (std::uint32_t dim = 0; dim < c.batch_dims; ++dim) {
        const std::int64_t extent = value(kernel.body.extents[dim]);
        dense /= extent;
        if (extent == 1) continue;
        batch.push_back(extent);
        a.batch.push_back(value(c.a.batch_strides[dim]));
        b.batch.push_back(value(c.b.batch_strides[dim]));
        d.batch.push_back(product.store ? value(product.store->strides[dim]) : dense);
    }
    // Neighbours that all matrices step through as one.
    const auto step_over = [&](auto&& one) { return one(a) && one(b) && one(d); };
    for (std::size_t dim = batch.size(); dim-- > 1;) {
        if (!step_over([&](const Strides& s) { return s.batch[dim - 1] == s.batch[dim] * batch[dim]; })) continue;
        batch[dim - 1] *= batch[dim];
        batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(dim));
        for (Strides* s : {&a, &b, &d}) {
            s->batch[dim - 1] = s->batch[dim];
            s->batch.erase(s->batch.begin() + static_cast<std::ptrdiff_t>(dim));
        }
    }
    // One right side for all: the last batch dim is more rows.
    if (!batch.empty() && b.batch.back() == 0 && a.batch.back() == a.row * out.m && d.batch.back() == d.row * out.m) {
        out.m *= batch.back();
        batch.pop_back();
        for (Strides* s : {&a, &b, &d}) s->batch.pop_back();
    }
    if (batch.size() > 1) return std::nullopt;
    if (!lines(a, out.m, out.k, out.a) || !lines(b, out.k, out.n, out.b) || !lines(d, out.m, out.n, out.d) ||
        out.d.transposed)
        return std::nullopt;
    if (!batch.empty()) {
        out.batch = batch[0];
        out.a.batch_stride = a.batch[0];
        out.b.batch_stride = b.batch[0];
        out.d.batch_stride = d.batch[0];
        if (std::min({out.a.batch_stride, out.b.batch_stride, out.d.batch_stride}) < 0) return std::nullopt;
    }
    out.a.memory = address(c.a.buffer, c.a.offset);
    out.b.memory = address(c.b.buffer, c.b.offset);
    if (product.bias) out.bias = address(product.bias->buffer, product.bias->offset);
    if (product.store) out.d.memory = address(product.store->buffer, product.store->offset);
    return out;
}

}  // namespace flexor::codegen::product
