#include "loopir/work.h"

#include <algorithm>

namespace flexor::loopir {

namespace {

class Counter {
public:
    Counter(const Kernel& kernel, const std::int64_t* params) : kernel_(kernel), params_(params) {}

    Work count() {
        switch (kernel_.kind) {
            case KernelKind::kRow: add_body(kernel_.body); break;
            case KernelKind::kContraction: add_contraction(*kernel_.contraction); break;
            case KernelKind::kAttention: add_attention(*kernel_.attention); break;
            case KernelKind::kExtern: break;
        }
        return out_;
    }

private:
    double value(const IntRef& ref) const {
        return static_cast<double>(std::max<std::int64_t>(ref.is_constant ? ref.value : params_[ref.value], 0));
    }
    double size_of(std::uint32_t buffer) const {
        return static_cast<double>(dtype_size(kernel_.buffers[buffer].dtype));
    }

    // Elements at different addresses: those along dims with a stride. A gathered one is another at every index.
    double elements(const Body& body, const Access& access, std::uint32_t dims) const {
        double count = 1;
        for (std::uint32_t dim = 0; dim < dims; ++dim) {
            const IntRef& stride = access.strides[dim];
            const bool moves = stride.is_constant ? stride.value != 0 : params_[stride.value] != 0;
            if (moves || !access.gathers.empty()) count *= value(body.extents[dim]);
        }
        return count;
    }

    void add_body(const Body& body, bool stores = true) {
        double rows = 1, all = 1;
        for (std::uint32_t dim = 0; dim < body.rank(); ++dim) {
            all *= value(body.extents[dim]);
            if (dim < body.parallel) rows = all;
        }
        for (std::size_t i = 0; all > 0 && i < body.accesses.size(); ++i) {
            const Access& access = body.accesses[i];
            if (std::find(body.accesses.begin(), body.accesses.begin() + static_cast<std::ptrdiff_t>(i), access) ==
                body.accesses.begin() + static_cast<std::ptrdiff_t>(i))
                out_.bytes += elements(body, access, body.rank()) * size_of(access.buffer);
        }
        for (const Stage& stage : body.stages) {
            if (stage.kind == StageKind::kReduce) out_.operations += all;
            if (stage.kind == StageKind::kStore && stores)
                out_.bytes += (stage.per_row ? rows : all) * size_of(stage.target.buffer);
        }
        // What does not vary along a row is computed once a row.
        std::vector<bool> varies(body.nodes.size(), false);
        for (std::size_t n = 0; n < body.nodes.size(); ++n) {
            const Node& node = body.nodes[n];
            if (node.op == ScalarOp::kIndex) varies[n] = node.index >= body.parallel;
            if (node.op == ScalarOp::kLoad) {
                const Access& access = body.accesses[node.index];
                for (std::uint32_t dim = body.parallel; dim < body.rank(); ++dim)
                    varies[n] = varies[n] || !access.strides[dim].is(0);
                for (const GatherTerm& gather : access.gathers) varies[n] = varies[n] || varies[gather.index];
            }
            for (int i = 0; i < scalar_arity(node.op); ++i) varies[n] = varies[n] || varies[node.operands[i]];
            const ScalarClass kind = scalar_class(node.op);
            if (kind != ScalarClass::kLeaf && kind != ScalarClass::kCast) out_.operations += varies[n] ? all : rows;
        }
    }

    void add_contraction(const Contraction& c) {
        double batch = 1;
        const auto matrix = [&](const MatrixOperand& operand, double elements) {
            for (std::uint32_t dim = 0; dim < c.batch_dims; ++dim) {
                const IntRef& stride = operand.batch_strides[dim];
                const bool moves = stride.is_constant ? stride.value != 0 : params_[stride.value] != 0;
                if (moves) elements *= value(kernel_.body.extents[dim]);
            }
            out_.bytes += elements * size_of(operand.buffer);
        };
        for (std::uint32_t dim = 0; dim < c.batch_dims; ++dim) batch *= value(kernel_.body.extents[dim]);
        const double m = value(c.m), n = value(c.n), k = value(c.k);
        if (c.prologue)
            add_body(*c.prologue, false);
        else
            matrix(c.a, m * k);
        matrix(c.b, k * n);
        out_.products = 2 * batch * m * n * k;
        out_.products_dtype = c.a_dtype;
        add_body(kernel_.body);
    }

    void add_attention(const Attention& a) {
        const double batch = value(a.batch), heads = value(a.heads), queries = value(a.q_len), keys = value(a.kv_len);
        const double head = value(a.head_dim), width = value(a.value_dim);
        const double item = static_cast<double>(dtype_size(a.dtype));
        out_.bytes = item * batch * (heads * queries * (head + width) + value(a.kv_heads) * keys * (head + width));
        if (a.mask) {
            double elements = 1;
            const double sizes[] = {batch, heads, queries, keys};
            for (std::size_t dim = 0; dim < 4; ++dim) {
                const IntRef& stride = a.mask->strides[dim];
                if (stride.is_constant ? stride.value != 0 : params_[stride.value] != 0) elements *= sizes[dim];
            }
            out_.bytes += elements * size_of(a.mask->buffer);
        }
        out_.products = 2 * batch * heads * queries * keys * (head + width);
        out_.products_dtype = a.dtype;
    }

    const Kernel& kernel_;
    const std::int64_t* params_;
    Work out_;
};

}  // namespace

Work work_of(const Kernel& kernel, const std::int64_t* params) { return Counter(kernel, params).count(); }

}  // namespace flexor::loopir
