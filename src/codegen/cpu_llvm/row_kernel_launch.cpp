#include "codegen/cpu_llvm/row_kernel_launch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/thread_pool.h"
#include "support/check.h"

namespace flexor::codegen::cpu_llvm {

using loopir::Access;
using loopir::Combine;
using loopir::Node;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

namespace {

constexpr double kSerialNs = 12'000;  // less work than this is not worth waking a thread
constexpr double kChunkNs = 5'000;    // work of one chunk
// Elements of one part of a cut row, and the most parts that it is cut into: constants, so that results are.
constexpr std::int64_t kSplitPart = 32768;
constexpr std::int64_t kMostParts = 1 << 20;
constexpr std::size_t kFewPartials = 32;  // so many fit on the stack

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <typename T>
T value_of(const PartialValue& p) {
    T v;
    std::memcpy(&v, &p.bits, sizeof v);
    return v;
}

template <typename T>
PartialValue partial_of(T v, std::int64_t position = 0) {
    PartialValue p{0, position};
    std::memcpy(&p.bits, &v, sizeof v);
    return p;
}

template <typename T>
PartialValue combine_two(const PartialValue& a, const PartialValue& b, Combine combine) {
    const T x = value_of<T>(a), y = value_of<T>(b);
    const bool x_nan = x != x, y_nan = y != y;
    switch (combine) {
        case Combine::kSum:
            if constexpr (std::is_integral_v<T>) {
                return partial_of(static_cast<T>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y)));
            } else {
                return partial_of(x + y);
            }
        case Combine::kProd:
            if constexpr (std::is_integral_v<T>) {
                return partial_of(static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y)));
            } else {
                return partial_of(x * y);
            }
        case Combine::kMax: return x_nan || (!y_nan && x > y) ? a : b;
        case Combine::kMin: return x_nan || (!y_nan && x < y) ? a : b;
        case Combine::kAny: return partial_of(static_cast<T>(x || y));
        case Combine::kAll: return partial_of(static_cast<T>(x && y));
        case Combine::kArgMax:
        case Combine::kArgMin: {
            if (a.position == -1) return b;
            if (b.position == -1) return a;
            const bool better = combine == Combine::kArgMax ? y > x : y < x;
            const bool equal = x == y || (x_nan && y_nan);
            const bool take = better || (y_nan && !x_nan) || (equal && b.position < a.position);
            return take ? b : a;
        }
    }
    return a;
}

PartialValue combine_two(const PartialValue& a, const PartialValue& b, Combine combine, DType dtype) {
    switch (dtype) {
        case DType::kBool:
        case DType::kU8: return combine_two<std::uint8_t>(a, b, combine);
        case DType::kI8: return combine_two<std::int8_t>(a, b, combine);
        case DType::kI32: return combine_two<std::int32_t>(a, b, combine);
        case DType::kI64: return combine_two<std::int64_t>(a, b, combine);
        case DType::kF64: return combine_two<double>(a, b, combine);
        default: return combine_two<float>(a, b, combine);
    }
}

}  // namespace

PartialValue combine_partials(const PartialValue* all, std::size_t stage, std::size_t stage_count, std::size_t first,
                              std::size_t count, Combine combine, DType dtype) {
    if (count == 1) return all[first * stage_count + stage];
    const std::size_t half = std::bit_floor(count - 1);
    return combine_two(combine_partials(all, stage, stage_count, first, half, combine, dtype),
                       combine_partials(all, stage, stage_count, first + half, count - half, combine, dtype), combine,
                       dtype);
}

RowKernel::RowKernel(RowPlan plan, LoadedObject object, std::size_t code_bytes)
    : plan_(std::move(plan)), object_(std::move(object)), code_bytes_(code_bytes) {
    const loopir::Body& body = plan_.body;
    FLEXOR_CHECK(body.rank() <= kMaxRank);
    mergeable_.assign(body.rank(), true);
    for (const Node& n : body.nodes) {
        if (n.op == ScalarOp::kIndex) mergeable_[n.index] = false;
        if (n.op == ScalarOp::kLoad) strides_.push_back(body.accesses[n.index].strides);
    }
    for (const Stage& s : body.stages)
        if (s.kind == StageKind::kStore) strides_.push_back(s.target.strides);
}

bool RowKernel::bind(const std::string& name) {
    if (plan_.form != RowForm::kSplit) {
        rows_ = object_.function<RowFunction>(name);
        return rows_ != nullptr;
    }
    for (std::size_t p = 0; p < plan_.passes.size(); ++p) {
        passes_.push_back(object_.function<SplitFunction>(name + "." + std::to_string(p)));
        if (!passes_.back()) return false;
    }
    return true;
}

void RowKernel::read_extents(const std::int64_t* params, Extents& extents) const {
    for (std::uint32_t d = 0; d < plan_.body.rank(); ++d) {
        const loopir::IntRef& e = plan_.body.extents[d];
        extents[d] = e.is_constant ? e.value : params[e.value];
    }
}

// Folds dims first..last-1 into the last one as long as every access steps through them as one.
void RowKernel::merge_dims(const std::int64_t* params, Extents& extents, std::uint32_t first) const {
    const std::uint32_t last = plan_.body.rank() - 1;
    if (plan_.vector_dim != last || !mergeable_[last]) return;
    auto number = [&](const loopir::IntRef& r) { return r.is_constant ? r.value : params[r.value]; };
    for (std::uint32_t d = last; d-- > first;) {
        if (extents[d] == 1) continue;
        if (!mergeable_[d]) return;
        for (const auto& strides : strides_)
            if (number(strides[d]) != number(strides[last]) * extents[last]) return;
        extents[last] *= extents[d];
        extents[d] = 1;
    }
}

double RowKernel::element_ns() const { return std::max(0.08, 0.3 * plan_.cost_per_element / plan_.lanes); }

void RowKernel::launch(const runtime::LaunchArgs& args) const {
    Extents extents;
    read_extents(args.params, extents);
    for (std::uint32_t d = 0; d < plan_.body.rank(); ++d)
        if (extents[d] <= 0 && (d < plan_.body.parallel || plan_.form == RowForm::kElementwise)) return;
    if (plan_.form == RowForm::kElementwise) merge_dims(args.params, extents, 0);
    if (plan_.form == RowForm::kSplit) merge_dims(args.params, extents, plan_.body.parallel);
    const RowContext context{args.buffers, args.params, extents, args.fault};
    auto* workspace = static_cast<char*>(args.workspace);
    switch (plan_.form) {
        case RowForm::kElementwise: return run_elementwise(context, extents);
        case RowForm::kRows: return run_rows(context, extents, workspace, args.workspace_size);
        case RowForm::kSplit: return run_split(context, extents, workspace);
    }
}

void RowKernel::run_elementwise(const RowContext& context, const Extents& extents) const {
    std::int64_t rows = 1;
    for (std::uint32_t d = 0; d < plan_.body.parallel; ++d) rows *= extents[d];
    const std::int64_t columns = extents[plan_.vector_dim];
    const double ns = element_ns();
    const double total = ns * static_cast<double>(rows) * static_cast<double>(columns);
    if (total < kSerialNs) return rows_(&context, 0, rows, 0, columns, nullptr);
    const auto chunk = static_cast<std::int64_t>(kChunkNs / ns) + 1;  // elements
    if (columns < 2 * chunk) {
        const std::int64_t grain = std::max<std::int64_t>(1, chunk / columns);
        runtime::parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
            rows_(&context, begin, end, 0, columns, nullptr);
        });
        return;
    }
    const std::int64_t step = ceil_div(chunk, column_step(plan_)) * column_step(plan_);
    const std::int64_t parts = ceil_div(columns, step);
    runtime::parallel_for(rows * parts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i / parts, from = i % parts * step;
            rows_(&context, row, row + 1, from, std::min(columns, from + step), nullptr);
        }
    });
}

void RowKernel::run_rows(const RowContext& context, const Extents& extents, char* workspace,
                         std::size_t workspace_size) const {
    const loopir::Body& body = plan_.body;
    const std::int64_t block = plan_.vector_is_row ? 1 : std::int64_t{plan_.block_vectors} * plan_.lanes;
    std::int64_t rows = 1, length = block;
    for (std::uint32_t d = 0; d < body.parallel; ++d)
        rows *= d == plan_.vector_dim ? ceil_div(extents[d], block) : extents[d];
    for (std::uint32_t d = body.parallel; d < body.rank(); ++d) length *= extents[d];
    const double row_ns = 20 + element_ns() * static_cast<double>(length);
    if (rows == 1 || row_ns * static_cast<double>(rows) < kSerialNs) {
        return rows_(&context, 0, rows, 0, 0, workspace);
    }
    const std::int64_t grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kChunkNs / row_ns));
    const std::size_t bytes = scratch_bytes(plan_, extents);
    if (bytes == 0) {
        runtime::parallel_for(
            rows, grain, [&](std::int64_t begin, std::int64_t end) { rows_(&context, begin, end, 0, 0, nullptr); });
        return;
    }
    // The workspace was sized by an earlier thread count.
    const auto slots = static_cast<int>(std::max<std::size_t>(1, workspace_size / bytes));
    runtime::parallel_for_slots(
        rows, grain, std::min(runtime::thread_count(), slots), [&](int slot, std::int64_t begin, std::int64_t end) {
            rows_(&context, begin, end, 0, 0, workspace + static_cast<std::size_t>(slot) * bytes);
        });
}

// How a row is cut: whole indices of the first outer dim if there are several, else columns.
RowKernel::Parts RowKernel::parts(const Extents& extents) const {
    Parts p;
    const std::int64_t inner = extents[plan_.inner_dim];
    std::int64_t length = 1;
    for (std::uint32_t d = plan_.body.parallel; d < plan_.body.rank(); ++d) length *= extents[d];
    const std::int64_t part = std::max(kSplitPart, ceil_div(length, kMostParts));
    p.cut_outer = !plan_.outer_rows.empty() && extents[plan_.outer_rows.front()] > 1;
    if (p.cut_outer) {
        const std::int64_t outer = extents[plan_.outer_rows.front()];
        p.size = std::max<std::int64_t>(1, part / std::max<std::int64_t>(1, length / outer));
        p.count = ceil_div(outer, p.size);
    } else {
        p.size = ceil_div(part, column_step(plan_)) * column_step(plan_);
        p.count = std::max<std::int64_t>(1, ceil_div(inner, p.size));
    }
    return p;
}

void RowKernel::run_split(const RowContext& context, const Extents& extents, char* workspace) const {
    const std::size_t stages = plan_.body.stages.size();
    const Parts cut = parts(extents);
    const std::int64_t outer = plan_.outer_rows.empty() ? 1 : extents[plan_.outer_rows.front()];
    const std::int64_t inner = extents[plan_.inner_dim];
    // The values of whole rows, then those of the parts; behind the scratch rows if they are many.
    PartialValue few[kFewPartials];
    auto* const many = reinterpret_cast<PartialValue*>(workspace + split_scratch_bytes(extents));
    PartialValue* const values = partial_count(cut) > kFewPartials ? many : few;
    PartialValue* const partial = values + stages;
    std::int64_t length = 1;
    for (std::uint32_t d = plan_.body.parallel; d < plan_.body.rank(); ++d) length *= extents[d];
    const bool serial = element_ns() * static_cast<double>(length) < kSerialNs;
    for (std::size_t p = 0; p < passes_.size(); ++p) {
        auto run = [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t from = i * cut.size;
                PartialValue* out = partial + static_cast<std::size_t>(i) * stages;
                if (cut.cut_outer) {
                    passes_[p](&context, from, std::min(outer, from + cut.size), 0, inner, workspace, values, out);
                } else {
                    passes_[p](&context, 0, outer, from, std::min(inner, from + cut.size), workspace, values, out);
                }
            }
        };
        // A pass that only stores row values runs once.
        const std::int64_t count = plan_.passes[p].loop.empty() ? 1 : cut.count;
        if (serial || count == 1)
            run(0, count);
        else
            runtime::parallel_for(count, 1, run);
        for (std::uint32_t s : plan_.passes[p].loop) {
            const Stage& stage = plan_.body.stages[s];
            if (stage.kind != StageKind::kReduce) continue;
            const bool logical = stage.combine == Combine::kAny || stage.combine == Combine::kAll;
            const DType d = logical ? DType::kBool : accumulator_dtype(plan_.body.nodes[stage.value].dtype);
            values[s] = combine_partials(partial, s, stages, 0, static_cast<std::size_t>(cut.count), stage.combine, d);
        }
    }
}

std::size_t RowKernel::partial_count(const Parts& cut) const {
    return plan_.body.stages.size() * (static_cast<std::size_t>(cut.count) + 1);
}

std::size_t RowKernel::split_scratch_bytes(const Extents& extents) const {
    return plan_.scratch_rows == 0 ? 0 : (scratch_bytes(plan_, extents) + 63) / 64 * 64;
}

std::size_t RowKernel::workspace_bytes(const std::int64_t* params) const {
    if (plan_.scratch_rows == 0 && plan_.form != RowForm::kSplit) return 0;
    Extents extents;
    read_extents(params, extents);
    if (plan_.form != RowForm::kSplit)
        return scratch_bytes(plan_, extents) * static_cast<std::size_t>(runtime::thread_count());
    merge_dims(params, extents, plan_.body.parallel);
    const std::size_t partials = partial_count(parts(extents));
    return split_scratch_bytes(extents) + (partials > kFewPartials ? partials * sizeof(PartialValue) : 0);
}

}  // namespace flexor::codegen::cpu_llvm
