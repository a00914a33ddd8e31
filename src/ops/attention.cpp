// Scaled dot-product attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/blocked_product.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/samples.h"
#include "ops/strided.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

enum : std::size_t { kQ, kK, kV, kMask, kLengths };

Expected<DTypes> sdpa_dtype(std::span<const ArgType> args, const Attrs&, types::Promotion) {
    const DType d = args[kQ].type.dtype;
    if (!is_floating(d)) return rules::refuse_dtype(args, kQ, "a floating dtype");
    for (const std::size_t i : {kK, kV}) {
        if (args[i].type.dtype != d) return rules::refuse_dtype(args, i, std::string(dtype_name(d)));
    }
    DTypes dtypes{{d, d, d, d, DType::kI64}, {d}};
    if (args[kMask].present) {
        const DType mask = args[kMask].type.dtype;
        if (mask != DType::kBool && mask != d) {
            return rules::refuse_dtype(args, kMask, "bool or " + std::string(dtype_name(d)));
        }
        dtypes.operands[kMask] = mask;
    }
    if (args[kLengths].present && args[kLengths].type.dtype != DType::kI64) {
        return rules::refuse_dtype(args, kLengths, "i64");
    }
    return dtypes;
}

bool sdpa_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    const TensorType& q = context.type(kQ);
    const TensorType& k = context.type(kK);
    const TensorType& v = context.type(kV);
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return context.fail(1);
    if (!context.require_eq(q.sizes[0], k.sizes[0], 2) || !context.require_eq(q.sizes[0], v.sizes[0], 2)) return false;
    if (!context.require_eq(k.sizes[1], v.sizes[1], 3)) return false;
    if (context.env().eq(q.sizes[1], k.sizes[1]) != types::Truth::kTrue) {
        if (!context.require_lt(0, k.sizes[1], 3)) return false;
        if (!context.require_eq(Dim::mod(q.sizes[1], k.sizes[1]), 0, 3)) return false;
    }
    if (!context.require_eq(q.sizes[3], k.sizes[3], 4)) return false;
    if (!context.require_eq(k.sizes[2], v.sizes[2], 5)) return false;
    if (context.args()[kMask].present) {
        if (context.attrs().flag("is_causal")) return context.fail(6);
        const TensorType& mask = context.type(kMask);
        if (mask.rank() > 4) return context.fail(7);
        const Dim scores[] = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
        for (int axis = 1; axis <= mask.rank(); ++axis) {
            const Dim& size = mask.sizes[static_cast<std::size_t>(mask.rank() - axis)];
            const Dim& target = scores[4 - axis];
            Dim out;
            if (!context.broadcast(target, size, 7, &out)) return false;
            if (!context.require_eq(out, target, 7)) return false;
        }
    }
    if (context.args()[kLengths].present) {
        const TensorType& lengths = context.type(kLengths);
        if (lengths.rank() != 1) return context.fail(8);
        if (!context.require_eq(lengths.sizes[0], q.sizes[0], 8)) return false;
    }
    const std::string& fully_masked = context.attrs().text("fully_masked");
    if (fully_masked != "zero" && fully_masked != "nan") return context.fail(9);
    results.push_back(rules::fresh_result({q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}));
    // As torch: in the order of q's axes where its fused kernel takes the operands, else row-major.
    const auto dense_rows = [&](const TensorType& type) {
        return context.env().eq(type.strides[3], 1) == types::Truth::kTrue;
    };
    const bool fused = dense_rows(q) && dense_rows(k) && dense_rows(v) &&
                       context.env().eq(q.sizes[3], v.sizes[3]) == types::Truth::kTrue;
    if (!fused) results.back().strides = types::contiguous_strides(results.back().sizes);
    return true;
}

constexpr double kInf = std::numeric_limits<double>::infinity();

double scale_of(const ReferenceContext& c) {
    if (c.attrs.has("scale")) return c.attrs.real("scale");
    return 1 / std::sqrt(static_cast<double>(c.inputs[kQ].size(3)));
}
// The score at [batch, head, query, key] under the mask of the call.
class Mask {
public:
    explicit Mask(const ReferenceContext& c) : mask_(c.inputs[kMask]), causal_(c.attrs.flag("is_causal")) {}
    double apply(double score, I batch, I head, I query, I key) const {
        if (mask_.defined()) {
            const I place[] = {batch, head, query, key};
            const double m = load_real(mask_, broadcast_offset(mask_, place));
            score += mask_.dtype() == DType::kBool ? (m != 0 ? 0 : -kInf) : m;
        }
        return causal_ && key > query ? -kInf : score;
    }

private:
    const Tensor& mask_;
    bool causal_;
};

// torch's math path in double: softmax(scale q k^T + mask) v; a row whose every score is -inf gives 0 (or NaN).
Expected<void> reference_sdpa(ReferenceContext& c) {
    const Tensor& q = c.inputs[kQ];
    const Tensor& k = c.inputs[kK];
    const Tensor& v = c.inputs[kV];
    const Tensor& lengths = c.inputs[kLengths];
    const I depth = q.size(3);
    const I keys = k.size(2);
    const double scale = scale_of(c);
    const Mask mask(c);
    const bool zero = c.attrs.text("fully_masked") == "zero";
    const I group = k.size(1) == 0 ? 1 : q.size(1) / k.size(1);
    const std::vector<I> rows = {q.size(0), q.size(1), q.size(2)};
    for_each_index(rows, [&](const Index& row) {
        const I b = row[0], h = row[1], i = row[2];
        const I length = lengths.defined() ? load_int(lengths, b * lengths.stride(0)) : keys;
        std::vector<double> scores;
        double largest = -kInf;
        for (I j = 0; j < keys; ++j) {
            std::vector<double> products;
            for (I d = 0; d < depth; ++d) {
                const I key[] = {b, h / group, j, d};
                const I query[] = {b, h, i, d};
                products.push_back(load_real(q, offset_of(q, query)) * load_real(k, offset_of(k, key)));
            }
            double score = mask.apply(scale * pairwise_sum(products), b, h, i, j);
            if (j >= length) score = -kInf;
            largest = std::isnan(score) || score > largest ? score : largest;
            scores.push_back(score);
        }
        const bool nothing = largest == -kInf;
        for (double& s : scores) s = nothing ? 0 : std::exp(s - largest);
        const double sum = pairwise_sum(scores);
        for (I e = 0; e < v.size(3); ++e) {
            std::vector<double> products;
            for (I j = 0; j < keys; ++j) {
                // Keys beyond the length, and all keys of a row without any, do not exist, whatever their values are.
                if (nothing || j >= length) continue;
                const I value[] = {b, h / group, j, e};
                products.push_back(scores[static_cast<std::size_t>(j)] / sum * load_real(v, offset_of(v, value)));
            }
            const I place[] = {b, h, i, e};
            const double empty = zero ? 0 : std::numeric_limits<double>::quiet_NaN();
            store_real(c.outputs[0], offset_of(c.outputs[0], place), nothing ? empty : pairwise_sum(products));
        }
    });
    return {};
}

// The same by blocked products, for some rows of queries at a time.
Expected<void> blocked_sdpa(ReferenceContext& c) {
    const Tensor& q = c.inputs[kQ];
    const Tensor& k = c.inputs[kK];
    const Tensor& v = c.inputs[kV];
    const Tensor& lengths = c.inputs[kLengths];
    const Tensor& out = c.outputs[0];
    const I group = k.size(1) == 0 ? 1 : q.size(1) / k.size(1);
    const double scale = scale_of(c);
    const Mask mask(c);
    const double empty = c.attrs.text("fully_masked") == "zero" ? 0 : std::numeric_limits<double>::quiet_NaN();
    // The weights of one block of queries.
    const I block = std::clamp<I>((I{1} << 17) / std::max<I>(k.size(2), 1), 1, 64);
    const Tensor weights = Tensor::empty(DType::kF64, {block, k.size(2)});
    if (!weights.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("scores");
    std::vector<bool> nothing(static_cast<std::size_t>(block));
    BlockedProduct scores(c.dtypes.operands[kQ], c.stop_requested), values(DType::kF64, c.stop_requested);
    const std::vector<I> blocks = {q.size(0), q.size(1), (q.size(2) + block - 1) / block};
    Expected<void> done;
    for_each_index(blocks, [&](const Index& index) {
        if (!done) return;
        const I b = index[0], h = index[1], first = index[2] * block;
        const I rows = std::min(block, q.size(2) - first);
        const I keys =
            lengths.defined() ? std::clamp<I>(load_int(lengths, b * lengths.stride(0)), 0, k.size(2)) : k.size(2);
        auto* const data = weights.data_as<double>();
        const I q_at[] = {b, h, first, 0}, k_at[] = {b, h / group, 0, 0}, out_at[] = {b, h, first, 0};
        done = scores.run({q, offset_of(q, q_at), q.stride(2), q.stride(3)},
                          {k, offset_of(k, k_at), k.stride(3), k.stride(2)}, {rows, keys, q.size(3)},
                          [&](I row, I key, Dot sum) {
                              data[row * keys + key] = mask.apply(scale * sum.real, b, h, first + row, key);
                          });
        if (!done) return;
        for (I row = 0; row < rows; ++row) {
            const std::span<double> line(data + row * keys, static_cast<std::size_t>(keys));
            double largest = -kInf;
            for (const double s : line) largest = std::isnan(s) || s > largest ? s : largest;
            nothing[static_cast<std::size_t>(row)] = largest == -kInf;
            for (double& s : line) s = largest == -kInf ? 0 : std::exp(s - largest);
            const double sum = pairwise_sum(line);
            for (double& s : line) s = largest == -kInf ? 0 : s / sum;
        }
        const I target = offset_of(out, out_at);
        done = values.run({weights, 0, keys, 1}, {v, offset_of(v, k_at), v.stride(2), v.stride(3)},
                          {rows, v.size(3), keys}, [&](I row, I column, Dot sum) {
                              const bool none = nothing[static_cast<std::size_t>(row)];
                              store_real(out, target + row * out.stride(2) + column * out.stride(3),
                                         none ? empty : sum.real);
                          });
    });
    return done;
}

using samples::indices, samples::input, samples::none, samples::sample, samples::typed;
std::vector<Sample> sdpa_samples() {
    constexpr DType b = DType::kBool;
    return {
        sample({input({2, 2, 3, 4}), input({2, 2, 5, 4}), input({2, 2, 5, 3}), none(), none()}),
        sample({input({1, 2, 17, 16}), input({1, 2, 17, 16}), input({1, 2, 17, 16}), none(), none()},
               Attrs{{"is_causal", true}}),
        sample({input({2, 4, 3, 8}), input({2, 2, 3, 8}), input({2, 2, 3, 8}), none(), none()}, Attrs{{"scale", 0.5}}),
        sample({input({2, 2, 3, 4}), input({2, 2, 5, 4}), input({2, 2, 5, 4}), typed({3, 5}, b), none()}),
        sample({input({2, 2, 3, 4}), input({2, 2, 5, 4}), input({2, 2, 5, 4}), input({2, 1, 1, 5}), none()}),
        sample({input({3, 1, 2, 4}), input({3, 1, 33, 4}), input({3, 1, 33, 4}), none(), indices({3}, 34)}),
        sample({input({3, 1, 5, 4}), input({3, 1, 5, 4}), input({3, 1, 5, 4}), none(), indices({3}, 6)},
               Attrs{{"is_causal", true}}),
        sample({input({1, 1, 2, 4}), input({1, 1, 0, 4}), input({1, 1, 0, 4}), none(), none()}),
        sample({input({1, 1, 2, 4}), input({1, 1, 0, 4}), input({1, 1, 0, 4}), none(), none()},
               Attrs{{"fully_masked", "nan"}}),
        sample({input({2, 2, 17, 4}), input({2, 1, 3, 4}), input({2, 1, 3, 4}), typed({17, 1}, b), none()},
               Attrs{{"fully_masked", "nan"}}),
        sample({input({5, 1, 2, 4}), input({5, 1, 3, 4}), input({5, 1, 3, 4}), none(), indices({5}, 2)},
               Attrs{{"fully_masked", "nan"}}),
        sample({input({0, 2, 3, 4}), input({0, 2, 3, 4}), input({0, 2, 3, 4}), none(), none()}),
        sample({input({1, 1, 1, 1}), input({1, 1, 1, 1}), input({1, 1, 1, 1}), none(), none()})};
}

}  // namespace

std::vector<OpDef> attention_ops() {
    constexpr OperandKind tensor = OperandKind::kTensor;
    constexpr OperandKind optional = OperandKind::kOptionalTensor;
    std::vector<OpDef> ops;
    ops.push_back(
        {.name = {"sdpa"},
         .summary =
             {"softmax(scale q k^T + mask) v over [batch, heads, sequence, depth]; mask is bool (true: attend) or "
              "added, lengths cuts the keys of each batch; fully_masked (\"zero\" or \"nan\") is what a row without "
              "keys gives."},
         .constraints = {keep<Constraint>(
             {{"q, k and v have rank 4", DiagnosticId::kWrongRank},
              {"q, k and v have one batch size"},
              {"k and v have the same heads, and their number divides that of q"},
              {"q and k have one depth"},
              {"k and v have one length"},
              {"there is no mask with is_causal", DiagnosticId::kBadAttribute},
              {"the mask broadcasts to [batch, heads, queries, keys]", DiagnosticId::kShapeMismatch, 3},
              {"lengths has one entry for each batch", DiagnosticId::kShapeMismatch, 4},
              {"fully_masked is \"zero\" or \"nan\"", DiagnosticId::kBadAttribute}})},
         .operands = {keep<OperandSpec>(
             {{"q", tensor}, {"k", tensor}, {"v", tensor}, {"mask", optional}, {"lengths", optional}})},
         .attrs = {keep<AttrSpec>({{"is_causal", AttrKind::kBool, false},
                                   {"scale", AttrKind::kOptionalFloat, {}},
                                   {"fully_masked", AttrKind::kString, "zero"}})},
         .dtype = {sdpa_dtype},
         .shape = {sdpa_shape},
         .effects = {Effects::kPure},
         .alias = {Alias::kFresh},
         .layout = {Layout::kLikeFirst},
         .reference = {reference_sdpa},
         .lower = {AttentionLower{}},
         .samples = {Samples{samples::kFloatDTypes, sdpa_samples}},
         .names = {Names{"torch.nn.functional.scaled_dot_product_attention", "", "Attention"}},
         .native = blocked_sdpa});
    return ops;
}

}  // namespace flexor::ops
