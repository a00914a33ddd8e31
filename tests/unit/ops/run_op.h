#pragma once
// Runs ops on real tensors through their own rules and references, and makes the sample inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "ops/strided.h"

namespace flexor::ops::test {

using types::Promotion;
using types::Strength;

// One operand of a call: a tensor, a scalar (a rank-0 tensor with strength kScalar) or none (undefined).
struct Value {
    Tensor tensor;
    Strength strength = Strength::kTensor;
};

inline ArgType arg_type(const Value& value) {
    ArgType arg;
    arg.present = value.tensor.defined();
    if (!arg.present) return arg;
    arg.strength = value.strength;
    arg.type.dtype = value.tensor.dtype();
    for (int axis = 0; axis < value.tensor.rank(); ++axis) {
        arg.type.sizes.push_back(value.tensor.size(axis));
        arg.type.strides.push_back(value.tensor.stride(axis));
    }
    return arg;
}
inline Value as_value(Tensor tensor) {
    const Strength strength = tensor.defined() && tensor.rank() == 0 ? Strength::kZeroDim : Strength::kTensor;
    return {std::move(tensor), strength};
}

struct Outcome {
    Inferred inferred;
    std::vector<Tensor> outputs;
};

// A tensor of a concrete type: a view into the operand, or fresh memory with the type's strides.
inline Tensor materialise(const ResultType& result, std::span<const Value> args) {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t last = 0;
    bool empty = false;
    for (int axis = 0; axis < result.type.rank(); ++axis) {
        sizes.push_back(result.type.sizes[static_cast<std::size_t>(axis)].constant());
        strides.push_back(result.type.strides[static_cast<std::size_t>(axis)].constant());
        empty = empty || sizes.back() == 0;
        last += (sizes.back() - 1) * strides.back();
    }
    const std::size_t bytes = dtype_size(result.type.dtype);
    if (result.view_of >= 0) {
        const Tensor& base = args[static_cast<std::size_t>(result.view_of)].tensor;
        auto* data =
            static_cast<std::byte*>(base.data()) + result.type.offset.constant() * static_cast<std::int64_t>(bytes);
        return base.view(data, result.type.dtype, sizes, strides);
    }
    const Tensor memory = Tensor::empty(result.type.dtype, {empty ? 0 : last + 1});
    std::memset(memory.data(), 0x7B, static_cast<std::size_t>(memory.numel()) * bytes);
    return memory.view(memory.data(), result.type.dtype, sizes, strides);
}

inline Expected<Outcome> run(const OpDef& op, std::span<const Value> args, const Attrs& given,
                             Promotion promotion = Promotion::kTorch) {
    FLEXOR_ASSIGN(const Attrs attrs, check_attrs(op, given));
    std::vector<ArgType> types;
    for (const Value& v : args) types.push_back(arg_type(v));
    ShapeEnv env;
    std::vector<Requirement> requirements;
    FLEXOR_ASSIGN(Inferred inferred, infer(op, types, attrs, env, requirements, promotion, true));
    EXPECT_TRUE(requirements.empty()) << op.name.value << ": constants leave nothing open";
    std::vector<Tensor> inputs;
    std::vector<Strength> strengths;
    for (const Value& v : args) {
        inputs.push_back(v.tensor);
        strengths.push_back(v.strength);
    }
    Outcome outcome{std::move(inferred), {}};
    ReferenceContext context{inputs, strengths, {}, attrs, outcome.inferred.dtypes};
    FLEXOR_TRY(settle_data_sizes(op, context, outcome.inferred));
    for (const ResultType& r : outcome.inferred.results) outcome.outputs.push_back(materialise(r, args));
    context.outputs = outcome.outputs;
    FLEXOR_TRY(op.reference.value(context));
    return outcome;
}

// Result 0 of a call that must succeed.
inline Tensor call(std::string_view name, std::vector<Value> args, const Attrs& attrs = {},
                   Promotion promotion = Promotion::kTorch) {
    const OpDef* op = find_op(name);
    EXPECT_NE(op, nullptr) << name;
    if (op == nullptr) return {};
    auto outcome = run(*op, args, attrs, promotion);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().to_string());
    return outcome ? outcome->outputs[0] : Tensor();
}

inline Tensor tensor(DType dtype, std::vector<std::int64_t> sizes, std::vector<double> values) {
    Tensor t = Tensor::empty(dtype, sizes);
    EXPECT_EQ(static_cast<std::size_t>(t.numel()), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) store_real(t, static_cast<std::int64_t>(i), values[i]);
    return t;
}
inline Value scalar(double value, DType dtype = DType::kF64) { return {tensor(dtype, {}, {value}), Strength::kScalar}; }
inline std::vector<double> values(const Tensor& t) {
    std::vector<double> out;
    for_each_index(t.sizes(), [&](const Index& index) { out.push_back(load_real(t, offset_of(t, index))); });
    return out;
}
inline std::vector<std::int64_t> sizes_of(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
inline std::vector<std::int64_t> strides_of(const Tensor& t) { return {t.strides().begin(), t.strides().end()}; }

// The inputs of a sample for a dtype under test, row-major.
inline std::vector<Value> make_inputs(const Sample& sample, DType dtype, std::mt19937& random) {
    using Fill = SampleInput::Fill;
    std::vector<Value> out;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> unit(0, 1);
    for (const SampleInput& input : sample.inputs) {
        if (input.fill == Fill::kNone) {
            out.push_back({});
            continue;
        }
        const DType d = input.dtype.value_or(dtype);
        if (input.fill == Fill::kScalar) {
            out.push_back(scalar(input.value, d));
            continue;
        }
        Value v = as_value(Tensor::empty(d, input.sizes));
        for (std::int64_t i = 0; i < v.tensor.numel(); ++i) {
            double x = 0;
            switch (input.fill) {
                case Fill::kNormal:
                    x = is_floating(d) ? normal(random) : std::round(std::clamp(normal(random) * 2, -5.0, 5.0));
                    if (d == DType::kU8) x = std::fabs(x) * 2;
                    break;
                case Fill::kPositive:
                    x = is_floating(d) ? 0.25 + std::fabs(normal(random)) : 1 + std::floor(unit(random) * 6);
                    break;
                case Fill::kUnit: x = is_floating(d) ? unit(random) : 0; break;
                case Fill::kIndex: x = std::floor(unit(random) * input.value); break;
                case Fill::kBool: x = unit(random) < 0.5 ? 0 : 1; break;
                default: break;
            }
            if (d == DType::kBool && input.fill != Fill::kPositive) x = unit(random) < 0.5 ? 0 : 1;
            store_real(v.tensor, i, x);
        }
        out.push_back(std::move(v));
    }
    return out;
}

// Distance that a result may have from the reference, for a dtype.
inline double tolerance(DType dtype) {
    switch (dtype) {
        case DType::kF16: return 1.0 / 512;
        case DType::kBF16: return 1.0 / 64;
        case DType::kF32: return 4e-6;
        case DType::kF64: return 1e-12;
        default: return 0;
    }
}
inline void expect_close(const Tensor& found, const Tensor& expected, double scale, const std::string& what) {
    ASSERT_EQ(found.dtype(), expected.dtype()) << what;
    ASSERT_EQ(sizes_of(found), sizes_of(expected)) << what;
    const auto a = values(found);
    const auto b = values(expected);
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
        ASSERT_LE(std::fabs(a[i] - b[i]), scale * tolerance(found.dtype()) * (1 + std::fabs(b[i])))
            << what << " at " << i << ": " << a[i] << " instead of " << b[i];
    }
}

}  // namespace flexor::ops::test
