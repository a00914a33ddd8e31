// Random programs, run twice: as the Builder writes them, and directly in C++. What the Builder leaves on the stack,
// stores, deletes and carries through branches and loops must not change a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>

#include "flexor/builder.h"
#include "flexor/session.h"

namespace flexor {
namespace {

struct Code;

// A step adds its results to the values in scope; operands are places in that list.
struct Step {
    enum class Kind { kAdd, kSub, kMaximum, kNegate, kHalf, kIf, kWhile, kList } kind;
    std::vector<std::size_t> operands;
    std::unique_ptr<Code> first;
    std::unique_ptr<Code> second;
    int trips = 0;
};
struct Code {
    std::vector<Step> steps;
    std::vector<std::size_t> results;
};

class Generator {
public:
    explicit Generator(std::uint64_t seed) : random_(seed) {}

    Code code(std::size_t scope, int steps, std::size_t results, int depth) {
        Code out;
        for (int i = 0; i < steps; ++i) {
            Step step;
            step.kind = static_cast<Step::Kind>(pick(depth > 0 ? 8 : 5));
            const std::size_t operands = step.kind == Step::Kind::kNegate || step.kind == Step::Kind::kHalf ? 1 : 2;
            for (std::size_t k = 0; k < operands; ++k) step.operands.push_back(place(scope));
            std::size_t made = 1;
            if (step.kind == Step::Kind::kIf) {
                made = pick(3);
                step.first = std::make_unique<Code>(code(scope, static_cast<int>(pick(5)), made, depth - 1));
                step.second = std::make_unique<Code>(code(scope, static_cast<int>(pick(5)), made, depth - 1));
            } else if (step.kind == Step::Kind::kWhile) {
                made = 2;
                step.trips = static_cast<int>(pick(4));
                step.first = std::make_unique<Code>(code(scope + 2, static_cast<int>(pick(5)), 2, depth - 1));
            } else if (step.kind == Step::Kind::kList) {
                made = 2;
            }
            scope += made;
            out.steps.push_back(std::move(step));
        }
        for (std::size_t i = 0; i < results; ++i) out.results.push_back(place(scope));
        return out;
    }

private:
    std::size_t pick(std::size_t n) { return random_() % n; }
    std::size_t place(std::size_t scope) {  // recent values more often
        return pick(3) == 0 ? pick(scope) : scope - 1 - pick(std::min<std::size_t>(scope, 3));
    }
    std::mt19937_64 random_;
};

std::vector<float> evaluate(const Code& code, std::vector<float> scope) {
    for (const Step& step : code.steps) {
        const float a = scope[step.operands[0]];
        const float b = scope[step.operands.back()];
        switch (step.kind) {
            case Step::Kind::kAdd: scope.push_back(a + b); break;
            case Step::Kind::kSub: scope.push_back(a - b); break;
            case Step::Kind::kMaximum: scope.push_back(std::max(a, b)); break;
            case Step::Kind::kNegate: scope.push_back(-a); break;
            case Step::Kind::kHalf: scope.push_back(a * 0.5F); break;
            case Step::Kind::kIf: {
                const std::vector<float> results = evaluate(a > b ? *step.first : *step.second, scope);
                scope.insert(scope.end(), results.begin(), results.end());
                break;
            }
            case Step::Kind::kWhile: {
                std::vector<float> carried = {a, b};
                for (int i = 0; i < step.trips; ++i) {
                    std::vector<float> inner = scope;
                    inner.insert(inner.end(), carried.begin(), carried.end());
                    carried = evaluate(*step.first, std::move(inner));
                }
                scope.insert(scope.end(), carried.begin(), carried.end());
                break;
            }
            case Step::Kind::kList:
                scope.push_back(b);
                scope.push_back(a);
                break;
        }
    }
    std::vector<float> out;
    for (const std::size_t place : code.results) out.push_back(scope[place]);
    return out;
}

std::vector<Operand> write(FunctionBuilder& f, const Code& code, std::vector<Var> scope) {
    for (const Step& step : code.steps) {
        const Var a = scope[step.operands[0]];
        const Var b = scope[step.operands.back()];
        std::vector<Var> made;
        switch (step.kind) {
            case Step::Kind::kAdd: made = {f.op("add", {a, b})}; break;
            case Step::Kind::kSub: made = {f.op("sub", {a, b})}; break;
            case Step::Kind::kMaximum: made = {f.op("maximum", {a, b})}; break;
            case Step::Kind::kNegate: made = {f.op("neg", {a})}; break;
            case Step::Kind::kHalf: made = {f.op("mul", {0.5, a})}; break;
            case Step::Kind::kIf:
                made = f.if_else(
                    f.op("gt", {a, b}), [&] { return write(f, *step.first, scope); },
                    [&] { return write(f, *step.second, scope); });
                break;
            case Step::Kind::kWhile:
                made = f.while_loop(
                    {a, b, 0}, [&](std::span<const Var> carried) { return f.scalar("lt", {carried[2], step.trips}); },
                    [&](std::span<const Var> carried) {
                        std::vector<Var> inner = scope;
                        inner.insert(inner.end(), carried.begin(), carried.begin() + 2);
                        std::vector<Operand> next = write(f, *step.first, std::move(inner));
                        next.emplace_back(f.scalar("add", {carried[2], 1}));
                        return next;
                    });
                made.pop_back();
                break;
            case Step::Kind::kList: {
                const Var list = f.list({a, b});
                made = {f.get(list, -1), f.get(list, 0)};
                break;
            }
        }
        scope.insert(scope.end(), made.begin(), made.end());
    }
    std::vector<Operand> out;
    for (const std::size_t place : code.results) out.emplace_back(scope[place]);
    return out;
}

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b; }

void check(std::uint64_t seed, Session& session) {
    const std::vector<float> arguments = {1.5F, -2.25F, 0.5F};
    const Code code = Generator(seed).code(arguments.size(), 12, 3, 3);
    Builder b;
    FunctionBuilder f = b.function("main");
    std::vector<Var> scope;
    std::vector<Value> values;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        scope.push_back(f.input("x" + std::to_string(i), DType::kF32, {1}));
        const Tensor tensor = Tensor::empty(DType::kF32, {1});
        tensor.data_as<float>()[0] = arguments[i];
        values.emplace_back(tensor);
    }
    const std::vector<Operand> results = write(f, code, scope);
    for (std::size_t i = 0; i < results.size(); ++i) f.output("out" + std::to_string(i), results[i]);
    const Expected<Module> module = b.build();
    ASSERT_TRUE(module.has_value()) << "seed " << seed << "\n" << module.error().to_string();
    const Expected<std::vector<Value>> run = session.run(*module, values);
    ASSERT_TRUE(run.has_value()) << "seed " << seed << "\n"
                                 << run.error().to_string() << module->disassemble({.positions = false});
    const std::vector<float> expected = evaluate(code, arguments);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const float found = (*run)[i].tensor().data_as<float>()[0];
        ASSERT_TRUE(same(found, expected[i]))
            << "seed " << seed << ", result " << i << ": " << found << " for " << expected[i] << "\n"
            << module->disassemble({.positions = false});
    }
}

TEST(BuilderRun, GivesWhatTheProgramSaysOnTheInterpreter) {
    SessionOptions options;
    options.compile = false;
    Session session(options);
    for (std::uint64_t seed = 0; seed < 400 && !testing::Test::HasFatalFailure(); ++seed) check(seed, session);
}

TEST(BuilderRun, GivesWhatTheProgramSaysCompiled) {
    if (!Session::has_code_generator()) GTEST_SKIP() << "this build has no code generator";
    Session session;
    for (std::uint64_t seed = 0; seed < 60 && !testing::Test::HasFatalFailure(); ++seed) check(seed, session);
}

// Holds a factor as an attribute, and multiplies by it when it is called.
class Scale final : public Foreign {
public:
    Expected<Value> call(std::span<const Value> arguments) override { return Value(factor * arguments[0].real()); }
    Expected<Value> attribute(std::string_view name) override { return Value(name == "factor" ? factor : 0.0); }
    double factor = 3;
};

std::vector<Value> run_everywhere(Builder& b, const std::vector<Value>& arguments) {
    const Expected<Module> module = b.build();
    if (!module) {
        ADD_FAILURE() << module.error().to_string();
        return {};
    }
    std::vector<Value> out;
    for (const bool compile : {false, true}) {
        SessionOptions options;
        options.compile = compile;
        Session session(options);
        session.bind_value("scale", Value::foreign(std::make_shared<Scale>()));
        Expected<std::vector<Value>> run = session.run(*module, arguments);
        if (!run) {
            ADD_FAILURE() << run.error().to_string() << module->disassemble({.positions = false});
            return {};
        }
        if (compile) {
            EXPECT_EQ(run->size(), out.size());
            for (std::size_t i = 0; i < std::min(run->size(), out.size()); ++i)
                EXPECT_EQ((*run)[i].describe(), out[i].describe()) << i;
        }
        out = std::move(*run);
    }
    return out;
}

TEST(BuilderRun, ListsAndDictsComeApart) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var n = f.input("n", "int");
    const std::vector<Var> parts = f.unpack(f.list({n, 2, "three"}), 3);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[0].type(), "int");
    for (const Var& part : parts) f.output("", part);
    const Var dict = f.dict({{"a", n}, {"b", 5}});
    f.output("", f.dict_get(dict, "b"));
    f.output("", f.dict_get(dict, "a"));
    const std::vector<Value> results = run_everywhere(b, {Value(7)});
    ASSERT_EQ(results.size(), 5u);
    EXPECT_EQ(results[0].integer(), 7);
    EXPECT_EQ(results[1].integer(), 2);
    EXPECT_EQ(results[2].text(), "three");
    EXPECT_EQ(results[3].integer(), 5);
    EXPECT_EQ(results[4].integer(), 7);

    Builder wrong;
    FunctionBuilder g = wrong.function("main");
    EXPECT_EQ(g.unpack(g.list({1, 2}), 3).size(), 3u);
    ASSERT_NE(wrong.error(), nullptr);
    EXPECT_EQ(wrong.error()->code(), "E0117");
}

TEST(BuilderRun, FunctionsAndForeignValuesAreValues) {
    Builder b;
    FunctionBuilder twice = b.function("twice");
    twice.output("", twice.scalar("mul", {twice.input("x", "float"), 2}));
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "float");
    f.output("", f.call_value(f.function_value("twice"), {x}));
    const Var scale = f.foreign_value("scale");
    f.output("", f.call_value(scale, {x}));
    f.output("", f.attribute_of(scale, "factor"));
    const std::vector<Value> results = run_everywhere(b, {Value(2.5)});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].real(), 5.0);
    EXPECT_EQ(results[1].real(), 7.5);
    EXPECT_EQ(results[2].real(), 3.0);
}

}  // namespace
}  // namespace flexor
