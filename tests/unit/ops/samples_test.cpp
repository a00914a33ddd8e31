// Every op on every sample of every dtype: rules, references, and what a composite is made of.
#include "run_op.h"

namespace flexor::ops::test {
namespace {

// Executes a composite's graph with the references of its ops.
class Eager : public GraphBuilder {
public:
    explicit Eager(DType result) : result_(result) {}

    GraphValue add(Value value) {
        values_.push_back(std::move(value));
        types_.push_back(std::make_unique<ArgType>(arg_type(values_.back())));
        return static_cast<GraphValue>(values_.size() - 1);
    }
    const Value& value(GraphValue v) const { return values_[v]; }

    using GraphBuilder::op;
    GraphValue op(std::string_view name, std::span<const GraphValue> args, Attrs attrs) override {
        const OpDef* def = find_op(name);
        EXPECT_NE(def, nullptr) << name;
        std::vector<Value> inputs;
        for (const GraphValue a : args) inputs.push_back(values_[a]);
        auto outcome = run(*def, inputs, attrs);
        if (!outcome) {
            ADD_FAILURE() << outcome.error().to_string();
            return add({});
        }
        if (std::holds_alternative<CompositeLower>(def->lower.value)) {
            // Composites may stand inside composites: run the graph, not the reference.
            Eager inner(outcome->inferred.results[0].type.dtype);
            std::vector<GraphValue> given;
            for (const Value& v : inputs) given.push_back(inner.add(v));
            const auto results = std::get<CompositeLower>(def->lower.value)(inner, given, *check_attrs(*def, attrs));
            return add(inner.value(results[0]));
        }
        return add(as_value(outcome->outputs[0]));
    }
    GraphValue scalar(double value) override { return add(test::scalar(value)); }
    GraphValue dim(const Dim& value) override {
        return add(test::scalar(static_cast<double>(value.constant()), DType::kI64));
    }
    GraphValue none() override { return add({}); }
    const ArgType& type(GraphValue value) const override { return *types_[value]; }
    DType result_dtype() const override { return result_; }

private:
    std::vector<Value> values_;
    std::vector<std::unique_ptr<ArgType>> types_;
    DType result_;
};

std::string describe(const OpDef& op, std::size_t sample, DType dtype) {
    return std::string(op.name.value) + " sample " + std::to_string(sample) + " " + std::string(dtype_name(dtype));
}
std::vector<Value> copies(const std::vector<Value>& values) {
    std::vector<Value> out = values;
    for (Value& v : out) {
        if (v.tensor.defined()) v.tensor = v.tensor.clone();
    }
    return out;
}
template <class F>
void for_each_case(F&& f) {
    std::mt19937 random(7);
    for (const OpDef* op : all_ops()) {
        const auto samples = op->samples.value.make();
        for (const DType dtype : op->samples.value.dtypes) {
            for (std::size_t i = 0; i < samples.size(); ++i) {
                const auto inputs = make_inputs(samples[i], dtype, random);
                f(*op, samples[i], inputs, dtype, describe(*op, i, dtype));
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

TEST(Samples, ReferencesRun) {
    int cases = 0;
    for_each_case(
        [&](const OpDef& op, const Sample& sample, const std::vector<Value>& inputs, DType, const std::string& what) {
            const auto outcome = run(op, copies(inputs), sample.attrs);
            ASSERT_TRUE(outcome) << what << "\n" << outcome.error().to_string();
            ++cases;
            const bool view = op.alias.value == Alias::kView;
            for (const ResultType& r : outcome->inferred.results) {
                if (op.alias.value == Alias::kFresh) {
                    EXPECT_EQ(r.view_of, -1) << what;
                }
                if (view) {
                    EXPECT_EQ(r.view_of, 0) << what;
                }
            }
            if (op.results >= 0) {
                EXPECT_EQ(outcome->outputs.size(), static_cast<std::size_t>(op.results)) << what;
            }
        });
    EXPECT_GE(cases, 4000);
}

// Fresh symbols for all sizes must give the types that the sizes give, once the hints are put in.
TEST(Samples, SymbolicAgreesWithConcrete) {
    for_each_case([&](const OpDef& op, const Sample& sample, const std::vector<Value>& inputs, DType,
                      const std::string& what) {
        const Attrs attrs = *check_attrs(op, sample.attrs);
        for (const bool allow_guards : {true, false}) {
            std::vector<ArgType> concrete, symbolic;
            ShapeEnv env;
            std::vector<std::int64_t> hints;
            for (const Value& v : inputs) {
                concrete.push_back(arg_type(v));
                ArgType arg = concrete.back();
                for (Dim& size : arg.type.sizes) {
                    hints.push_back(size.constant());
                    size = Dim::symbol(env.add_symbol("s" + std::to_string(hints.size()), {0, 4096}, size.constant()));
                }
                arg.type.strides = types::contiguous_strides(arg.type.sizes);
                symbolic.push_back(std::move(arg));
            }
            ShapeEnv none;
            std::vector<Requirement> nothing, requirements;
            auto expected = infer(op, concrete, attrs, none, nothing, Promotion::kTorch, true);
            const auto found = infer(op, symbolic, attrs, env, requirements, Promotion::kTorch, allow_guards);
            ASSERT_TRUE(found) << what << "\n" << found.error().to_string();
            ASSERT_TRUE(expected) << what;
            if (op.data_sizes != nullptr) {
                std::vector<Tensor> tensors;
                std::vector<Strength> strengths;
                for (const Value& v : inputs) {
                    tensors.push_back(v.tensor);
                    strengths.push_back(v.strength);
                }
                ReferenceContext context{tensors, strengths, {}, attrs, expected->dtypes};
                ASSERT_TRUE(settle_data_sizes(op, context, *expected)) << what;
                const auto sizes = op.data_sizes(context);
                ASSERT_TRUE(sizes) << what;
                hints.insert(hints.end(), sizes->begin(), sizes->end());
            }
            const auto value = [&](const Dim& d) {
                const auto e = d.evaluate(hints);
                EXPECT_EQ(e.status, types::EvalStatus::kOk) << what;
                return e.value;
            };
            for (const Requirement& r : requirements) {
                const auto a = value(r.a);
                const auto b = value(r.b);
                const bool holds = r.relation == Relation::kEq   ? a == b || (r.or_one && (a == 1 || b == 1))
                                   : r.relation == Relation::kNe ? a != b
                                   : r.relation == Relation::kLe ? a <= b
                                                                 : a < b;
                EXPECT_TRUE(holds) << what << ": " << env.to_string(r.a) << " and " << env.to_string(r.b);
                if (r.kind == Requirement::Kind::kCheck) {
                    EXPECT_GE(r.constraint, 1) << what;
                    EXPECT_LE(r.constraint, static_cast<int>(op.constraints.value.size())) << what;
                }
            }
            ASSERT_EQ(found->results.size(), expected->results.size()) << what;
            for (std::size_t i = 0; i < found->results.size(); ++i) {
                const TensorType& a = found->results[i].type;
                const TensorType& b = expected->results[i].type;
                EXPECT_EQ(a.dtype, b.dtype) << what;
                ASSERT_EQ(a.rank(), b.rank()) << what;
                bool empty = false;
                for (const Dim& size : b.sizes) empty = empty || size.is_constant(0);
                for (std::size_t axis = 0; axis < a.sizes.size(); ++axis) {
                    EXPECT_EQ(value(a.sizes[axis]), b.sizes[axis].constant()) << what << " axis " << axis;
                    if (empty || b.sizes[axis].is_constant(1)) continue;
                    EXPECT_EQ(value(a.strides[axis]), b.strides[axis].constant()) << what << " axis " << axis;
                }
                if (allow_guards) {
                    EXPECT_EQ(found->results[i].view_of, expected->results[i].view_of) << what;
                }
                if (found->results[i].view_of >= 0 && !empty) {
                    EXPECT_EQ(value(a.offset), b.offset.constant()) << what;
                }
            }
        }
    });
}

// A composite's graph, run by the references of its parts, gives what its own reference gives, in the type of its rule.
TEST(Samples, CompositesAgreeWithTheirReference) {
    for_each_case(
        [&](const OpDef& op, const Sample& sample, const std::vector<Value>& inputs, DType, const std::string& what) {
            const auto* lower = std::get_if<CompositeLower>(&op.lower.value);
            if (lower == nullptr) return;
            const auto expected = run(op, copies(inputs), sample.attrs);
            ASSERT_TRUE(expected) << what;
            const ResultType& type = expected->inferred.results[0];
            Eager graph(type.type.dtype);
            std::vector<GraphValue> args;
            for (Value& v : copies(inputs)) args.push_back(graph.add(std::move(v)));
            const auto results = (*lower)(graph, args, *check_attrs(op, sample.attrs));
            ASSERT_EQ(results.size(), expected->outputs.size()) << what;
            const Tensor& found = graph.value(results[0]).tensor;
            expect_close(found, expected->outputs[0], 4, what);
            if (found.numel() > 0) {
                EXPECT_EQ(found.is_contiguous(), expected->outputs[0].is_contiguous()) << what;
            }
            if (type.view_of >= 0) {
                EXPECT_EQ(found.storage(), graph.value(args[0]).tensor.storage()) << what;
            }
        });
}

// Of every layout that an operand may have: row-major, transposed, and every second element.
Tensor laid_out(const Tensor& tensor, int layout) {
    if (layout == 0 || tensor.rank() == 0) return tensor;
    std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor.rank()));
    std::int64_t step = layout == 2 ? 2 : 1;
    for (std::size_t i = 0; i < strides.size(); ++i) {
        const std::size_t axis = layout == 1 ? i : strides.size() - 1 - i;
        strides[axis] = step;
        step *= std::max<std::int64_t>(tensor.size(static_cast<int>(axis)), 1);
    }
    const Tensor memory = Tensor::empty(tensor.dtype(), {step});
    const Tensor out = memory.view(memory.data(), tensor.dtype(), tensor.sizes(), strides);
    copy_in_order(out, tensor);
    return out;
}

// What the interpreter runs gives what the reference gives.
TEST(Samples, BlockedFormsAgreeWithTheirReference) {
    int cases = 0;
    for_each_case(
        [&](const OpDef& op, const Sample& sample, const std::vector<Value>& inputs, DType, const std::string& what) {
            if (op.native == nullptr) return;
            OpDef blocked = op;
            blocked.reference = {op.native};
            for (int layout = 0; layout < 3; ++layout) {
                std::vector<Value> given = copies(inputs);
                for (Value& v : given) {
                    if (v.tensor.defined()) v.tensor = laid_out(v.tensor, layout);
                }
                const auto expected = run(op, given, sample.attrs);
                const auto found = run(blocked, given, sample.attrs);
                ASSERT_TRUE(expected) << what;
                ASSERT_TRUE(found) << what << "\n" << found.error().to_string();
                expect_close(found->outputs[0], expected->outputs[0], 1, what + " layout " + std::to_string(layout));
                ++cases;
            }
        });
    EXPECT_GE(cases, 400);
}

}  // namespace
}  // namespace flexor::ops::test
