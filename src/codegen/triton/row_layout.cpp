#include "codegen/triton/row_layout.h"

#include <algorithm>

#include "codegen/stage_passes.h"

namespace flexor::codegen::triton {

using loopir::Access;
using loopir::Body;
using loopir::IntRef;
using loopir::Node;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

namespace {

void for_each_strides(Body& body, auto visit) {
    for (Access& access : body.accesses) visit(access.strides);
    for (Stage& stage : body.stages) {
        if (stage.kind == StageKind::kStore) visit(stage.target.strides);
    }
}

void insert_dim(Body& body, std::uint32_t at) {
    body.extents.insert(body.extents.begin() + at, IntRef::constant(1));
    for_each_strides(body,
                     [&](std::vector<IntRef>& strides) { strides.insert(strides.begin() + at, IntRef::constant(0)); });
    for (Node& node : body.nodes) {
        if (node.op == ScalarOp::kIndex && node.index >= at) ++node.index;
    }
}

void move_last(Body& body, std::uint32_t dim) {
    const auto rotate = [&](std::vector<IntRef>& refs) {
        std::rotate(refs.begin() + dim, refs.begin() + dim + 1, refs.end());
    };
    rotate(body.extents);
    for_each_strides(body, rotate);
    for (Node& node : body.nodes) {
        if (node.op != ScalarOp::kIndex) continue;
        if (node.index == dim)
            node.index = body.rank() - 1;
        else if (node.index > dim)
            --node.index;
    }
}

int unit_strides(const Body& body, std::uint32_t dim) {
    int count = 0;
    for_each_access(body, [&](const Access& access) { count += access.strides[dim].is(1); });
    return count;
}

// The dim of [first, last) along which most accesses are contiguous; the last of those that are equal.
std::uint32_t most_contiguous(const Body& body, std::uint32_t first, std::uint32_t last) {
    std::uint32_t best = last - 1;
    for (std::uint32_t dim = last - 1; dim-- > first;) {
        if (unit_strides(body, dim) > unit_strides(body, best)) best = dim;
    }
    return best;
}

// What follows from the body and its axes.
void complete(RowLayout& out) {
    const Body& b = out.body;
    for_each_access(b, [&](const Access& access) {
        for (int axis = 0; axis < 2; ++axis) {
            const IntRef& along = access.strides[out.axis_dim[axis]];
            const IntRef& across = access.strides[out.axis_dim[1 - axis]];
            if (along.is(1) && !across.is(0)) ++out.contiguous[axis];
        }
    });
    for (std::uint32_t dim = 0; dim < b.rank(); ++dim) {
        if (dim == out.axis_dim[0] || dim == out.axis_dim[1]) continue;
        (dim < b.parallel ? out.outer : out.loops).push_back(dim);
    }
    out.pass = stage_passes(b);
}

}  // namespace

RowLayout lay_out(const Body& body) {
    RowLayout out{};
    out.body = body;
    Body& b = out.body;
    out.elementwise = std::none_of(b.stages.begin(), b.stages.end(),
                                   [](const Stage& s) { return s.kind == StageKind::kReduce || s.per_row; });
    if (out.elementwise) {
        if (b.rank() == 0) insert_dim(b, 0);
        move_last(b, most_contiguous(b, 0, b.rank()));
        b.parallel = b.rank() - 1;
    }
    if (b.rank() == b.parallel) insert_dim(b, b.rank());
    if (b.parallel == 0) {
        insert_dim(b, 0);
        b.parallel = 1;
    }
    out.axis_dim[0] = most_contiguous(b, 0, b.parallel);
    out.axis_dim[1] = most_contiguous(b, b.parallel, b.rank());
    complete(out);
    return out;
}

RowLayout lay_out_epilogue(const loopir::Kernel& kernel) {
    RowLayout out{};
    out.body = kernel.body;
    out.elementwise = true;
    out.body.parallel = out.body.rank() - 1;
    out.axis_dim[0] = out.body.rank() - 2;
    out.axis_dim[1] = out.body.rank() - 1;
    complete(out);
    return out;
}

}  // namespace flexor::codegen::triton
