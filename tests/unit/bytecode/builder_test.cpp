#include "flexor/builder.h"

#include <gtest/gtest.h>

#include "bytecode/public_module.h"
#include "bytecode/text.h"

namespace flexor {
namespace {

std::string listing(const Module& module) { return module.disassemble({.positions = false}); }

Module built(Builder& b) {
    Expected<Module> module = b.build();
    EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().to_string());
    if (!module) return Module(nullptr);
    // Every built Module survives both forms.
    const auto again = bytecode::assemble(module->disassemble({.weight_bytes = 1 << 20}), "listing");
    EXPECT_TRUE(again.has_value()) << (again ? "" : again.error().to_string()) << listing(*module);
    Expected<Module> binary = Module::from_bytes(module->to_bytes());
    EXPECT_TRUE(binary.has_value());
    if (binary) {
        EXPECT_TRUE(bytecode::same_program(*bytecode::module_ref(*module), *bytecode::module_ref(*binary)));
    }
    return *module;
}

TEST(Builder, KeepsChainsOnTheStack) {
    Builder b;
    const SymbolicInt n = b.symbol("N", 1, 4096);
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", DType::kF32, {n});
    const Var y = f.op("relu", {f.op("add", {x, 1.0})});
    f.output("out", f.op("neg", {y}));
    EXPECT_EQ(y.type(), "f32[N]");
    EXPECT_EQ(listing(built(b)),
              ".symbol N in 1..4096\n"
              "\n"
              ".func main(x: f32[N]) -> (out)\n"
              "  LOAD_LOCAL   x\n"
              "  LOAD_CONST   1.0\n"
              "  CALL_OP      add 2\n"
              "  CALL_OP      relu 1\n"
              "  CALL_OP      neg 1\n"
              "  RETURN       1\n");
}

TEST(Builder, StoresWhatIsUsedTwiceAndDeletesItAfterItsLastUse) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    const Var y = f.op("exp", {x});
    f.output("out", f.op("mul", {f.op("neg", {y}), f.op("add", {y, x})}));
    EXPECT_EQ(listing(built(b)),
              ".symbol N in 0..inf\n"
              "\n"
              ".func main(x: f32[N]) -> (out)\n"
              "  LOAD_LOCAL   x\n"
              "  CALL_OP      exp 1\n"
              "  STORE_LOCAL  v0\n"
              "  LOAD_LOCAL   v0\n"
              "  CALL_OP      neg 1\n"
              "  LOAD_LOCAL   v0\n"
              "  DELETE_LOCAL v0\n"
              "  LOAD_LOCAL   x\n"
              "  CALL_OP      add 2\n"
              "  CALL_OP      mul 2\n"
              "  RETURN       1\n");
}

TEST(Builder, SwapsWhereOnlyTheSecondOperandIsOnTheStack) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    f.output("out", f.op("sub", {1.0, f.op("exp", {x})}));
    EXPECT_EQ(listing(built(b)),
              ".symbol N in 0..inf\n"
              "\n"
              ".func main(x: f32[N]) -> (out)\n"
              "  LOAD_LOCAL   x\n"
              "  CALL_OP      exp 1\n"
              "  LOAD_CONST   1.0\n"
              "  SWAP\n"
              "  CALL_OP      sub 2\n"
              "  RETURN       1\n");
}

TEST(Builder, PopsResultsThatNobodyUses) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    f.op("exp", {x});
    f.call_foreign("log", {x});
    f.output("out", x);
    const std::string text = listing(built(b));
    EXPECT_NE(text.find("CALL_OP      exp 1\n  POP\n"), std::string::npos) << text;
    EXPECT_NE(text.find("CALL_FOREIGN log 1\n  POP\n"), std::string::npos) << text;
}

TEST(Builder, WritesLoopsOverCarriedValues) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    const Var bound = f.input("bound", "float");
    const std::vector<Var> after = f.while_loop(
        {x, 0}, [&](std::span<const Var> c) { return f.op("lt", {c[0], bound}); },
        [&](std::span<const Var> c) -> std::vector<Operand> {
            return {f.op("add", {c[0], c[0]}), f.scalar("add", {c[1], 1})};
        });
    EXPECT_EQ(after[0].type(), "f32[N]");
    EXPECT_EQ(after[1].type(), "int");
    f.output("out", after[0]);
    f.output("rounds", after[1]);
    EXPECT_EQ(listing(built(b)),
              ".symbol N in 0..inf\n"
              "\n"
              ".func main(x: f32[N], bound: float) -> (out, rounds)\n"
              "  .local v0 v1\n"
              "  LOAD_LOCAL   x\n"
              "  LOAD_CONST   0\n"
              "  STORE_LOCAL  v1\n"
              "  STORE_LOCAL  v0\n"
              "L4:\n"
              "  LOOP_HEAD\n"
              "  LOAD_LOCAL   v0\n"
              "  LOAD_LOCAL   bound\n"
              "  CALL_OP      lt 2\n"
              "  BRANCH_IF_FALSE L20\n"
              "  LOAD_LOCAL   v0\n"
              "  LOAD_LOCAL   v0\n"
              "  DELETE_LOCAL v0\n"
              "  CALL_OP      add 2\n"
              "  LOAD_LOCAL   v1\n"
              "  DELETE_LOCAL v1\n"
              "  LOAD_CONST   1\n"
              "  SCALAR       add\n"
              "  STORE_LOCAL  v1\n"
              "  STORE_LOCAL  v0\n"
              "  JUMP         L4\n"
              "L20:\n"
              "  LOAD_LOCAL   v0\n"
              "  DELETE_LOCAL v0\n"
              "  LOAD_LOCAL   v1\n"
              "  DELETE_LOCAL v1\n"
              "  RETURN       2\n")
        << listing(built(b));
}

TEST(Builder, WidensSizesThatALoopChanges) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "i64[L]");
    const Var n = f.input("n", "int");
    std::string inside;
    const auto after = f.while_loop(
        {x, 0}, [&](std::span<const Var> c) { return f.scalar("lt", {c[1], n}); },
        [&](std::span<const Var> c) -> std::vector<Operand> {
            inside = c[0].type();
            return {f.op("concat", {std::vector<Var>{c[0], c[0]}}, {{"axis", 0}}), f.scalar("add", {c[1], 1})};
        });
    EXPECT_NE(inside, "i64[L]");  // the size of the last round is one that only the run knows
    EXPECT_EQ(after[0].rank(), 1);
    EXPECT_FALSE(after[0].size(0).is_known());
    f.output("ids", after[0]);
    built(b);
}

TEST(Builder, WritesBranchesWithResults) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    const Var mask = f.input("mask", "f32[N]?");
    const Var y = f.op("exp", {x});
    const auto chosen = f.if_none(
        mask, [&]() -> std::vector<Operand> { return {y}; },
        [&]() -> std::vector<Operand> { return {f.op("mul", {y, mask})}; });
    const auto more = f.if_else(
        f.op("gt", {f.item(chosen[0]), 0.0}), [&]() -> std::vector<Operand> { return {f.op("neg", {x}), 1}; },
        [&]() -> std::vector<Operand> { return {x, 2}; });
    f.output("out", more[0]);
    const std::string text = listing(built(b));
    EXPECT_NE(text.find("BRANCH_IF_NOT_NULL"), std::string::npos) << text;
    EXPECT_NE(text.find("BRANCH_IF_FALSE"), std::string::npos) << text;
    EXPECT_EQ(more[0].type(), "f32[N]");
    EXPECT_EQ(more[1].type(), "int");
}

TEST(Builder, UsesSizesAsAttributesAndAsValues) {
    Builder b;
    const SymbolicInt B = b.symbol("B"), S = b.symbol("S", 1, 512);
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", DType::kF32, {B, S, 768});
    EXPECT_EQ(x.size(-1).constant(), 768);
    EXPECT_EQ((x.size(1) * 2 + 1).to_string(), "2*S+1");
    const Var flat = f.op("reshape", {x}, {{"shape", {x.size(0) * x.size(1), 768}}});
    EXPECT_EQ(flat.type(), "f32[B*S,768]");
    f.output("out", f.op("mul", {flat, x.size(1)}));
    const std::string text = listing(built(b));
    EXPECT_NE(text.find("CALL_OP      reshape 1 shape=[B*S, 768]"), std::string::npos) << text;
    EXPECT_NE(text.find("GET_DIM      1"), std::string::npos) << text;
}

TEST(Builder, SolvesASizeForItsSymbol) {
    Builder b;
    const SymbolicInt n = b.symbol("N");
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", DType::kF32, {n * 2 + 1});
    f.output("out", f.op("mul", {x, n}));
    EXPECT_NE(listing(built(b)).find("  GET_DIM      0\n"
                                     "  LOAD_CONST   1\n"
                                     "  SCALAR       sub\n"
                                     "  LOAD_CONST   2\n"
                                     "  SCALAR       floor_div\n"),
              std::string::npos);
}

TEST(Builder, ReadsSizesThatOnlyTheRunKnows) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[...]");
    EXPECT_EQ(x.type(), "?");
    const SymbolicInt rows = x.size(0);
    EXPECT_FALSE(rows.is_known());
    f.output("out", f.op("reshape", {x}, {{"shape", {rows * 2, -1}}}));
    const std::string text = listing(built(b));
    EXPECT_NE(text.find("BUILD_LIST   2"), std::string::npos) << text;
    EXPECT_NE(text.find("CALL_OP      reshape 2 shape=$1"), std::string::npos) << text;
}

TEST(Builder, CallsFunctions) {
    Builder b;
    FunctionBuilder g = b.function("twice");
    const Var a = g.input("a", "f32[M]");
    g.output("out", g.op("add", {a, a}));
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[7]");
    const std::vector<Var> y = f.call("twice", {x});
    EXPECT_EQ(y[0].type(), "f32[7]");
    f.output("out", y[0]);
    const std::string text = listing(built(b));
    EXPECT_NE(text.find("CALL         twice 1"), std::string::npos) << text;
}

TEST(Builder, RefusesAtTheLineThatWroteIt) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", DType::kF32, {2, 3});
    const Var y = f.input("y", DType::kF32, {4});
    const int line = __LINE__ + 1;
    f.op("add", {x, y});
    ASSERT_NE(b.error(), nullptr);
    EXPECT_EQ(b.error()->code(), "E0301");
    EXPECT_EQ(b.error()->where().source, "builder_test.cpp:" + std::to_string(line));
    f.op("relo", {x});  // later refusals do not replace the first
    const Expected<Module> module = b.build();
    ASSERT_FALSE(module.has_value());
    EXPECT_EQ(module.error().code(), "E0301");
}

TEST(Builder, NamesWhatIsWrong) {
    const auto code = [](const std::function<void(Builder&, FunctionBuilder&, const Var&)>& write) {
        Builder b;
        FunctionBuilder f = b.function("main");
        const Var x = f.input("x", "f32[N, 4]");
        b.set_location("model.py", 12);
        write(b, f, x);
        if (b.error() == nullptr) return std::string("none");
        EXPECT_EQ(b.error()->where().source, "model.py:12");
        return b.error()->code();
    };
    EXPECT_EQ(code([](auto&, auto& f, auto& x) { f.op("relo", {x}); }), "E0108");
    Builder here;
    here.set_location("model.py", 12);
    here.clear_location();
    here.symbol("if", 5, 4);
    ASSERT_NE(here.error(), nullptr);
    EXPECT_EQ(here.error()->where().source.rfind("builder_test.cpp:", 0), 0U) << here.error()->where().source;
    EXPECT_EQ(code([](auto&, auto& f, auto& x) { f.op("relu", {x, x}); }), "E0109");
    EXPECT_EQ(code([](auto&, auto& f, auto& x) { f.op("relu", {x}, {{"alpha", 1.0}}); }), "E0110");
    EXPECT_EQ(code([](auto& b, auto&, auto&) { b.symbol("N"); }), "E0111");
    EXPECT_EQ(code([](auto&, auto& f, auto&) { f.weight("w"); }), "E0112");
    EXPECT_EQ(code([](auto& b, auto&, auto&) { b.symbol("K", 5, 4); }), "E0113");
    EXPECT_EQ(code([](auto&, auto& f, auto& x) { f.frozen(x, 2); }), "E0303");
    EXPECT_EQ(code([](auto&, auto&, auto& x) { static_cast<void>(x.size(-3)); }), "E0303");
    EXPECT_EQ(code([](auto&, auto& f, auto&) { f.op("relu", {Var()}); }), "E0107");
    EXPECT_EQ(code([](auto&, auto& f, auto& x) {
                  Var inner;
                  f.if_else(
                      true,
                      [&]() -> std::vector<Operand> {
                          inner = f.op("exp", {x});
                          return {};
                      },
                      [&]() -> std::vector<Operand> { return {}; });
                  f.op("neg", {inner});
              }),
              "E0107");
    EXPECT_EQ(code([](auto&, auto& f, auto& x) {
                  f.if_else(
                      true, [&]() -> std::vector<Operand> { return {x}; },
                      [&]() -> std::vector<Operand> { return {}; });
              }),
              "E0118");
}

// What one Builder made means nothing in another, whatever place it has there.
TEST(Builder, RefusesWhatAnotherBuilderMade) {
    const auto refused = [](const std::function<void(FunctionBuilder&, const Var&, const SymbolicInt&)>& use) {
        Builder other;
        static_cast<void>(other.symbol("A"));
        static_cast<void>(other.symbol("B"));
        const SymbolicInt theirs = other.symbol("C");
        Builder b;
        FunctionBuilder f = b.function("main");
        const Var x = f.input("x", "f32[N, 4]");
        use(f, x, theirs);
        if (b.error() == nullptr) return std::string("none");
        EXPECT_FALSE(b.build().has_value());
        return b.error()->code() + " " + b.error()->found();
    };
    const std::string code = "E0112 the integer C of another Builder";
    EXPECT_EQ(refused([](auto& f, auto&, auto& c) { f.input("y", DType::kF32, {c}); }), code);
    EXPECT_EQ(refused([](auto& f, auto& x, auto& c) { f.op("expand", {x}, {{"shape", {2, c, 4}}}); }), code);
    EXPECT_EQ(refused([](auto& f, auto& x, auto& c) { f.op("softmax", {x}, {{"axis", c}}); }), code);
    EXPECT_EQ(refused([](auto& f, auto& x, auto& c) { f.op("add", {x, c}); }), code);
    EXPECT_EQ(refused([](auto& f, auto&, auto& c) { f.scalar("add", {c, 1}); }), code);
    EXPECT_EQ(refused([](auto&, auto& x, auto& c) { static_cast<void>(x.size(0) + c); }), code);
    EXPECT_EQ(refused([](auto&, auto& x, auto& c) { static_cast<void>(c * x.size(0)); }), code);
    EXPECT_EQ(refused([](auto& f, auto& x, auto& c) {
                  static_cast<void>(SymbolicInt(f.scalar("to_int", {f.item(f.op("reduce_sum", {x}))})) - c);
              }),
              code);
    EXPECT_EQ(refused([](auto& f, auto& x, auto&) { f.op("add", {x, SymbolicInt(Var()) + 1}); }),
              "E0107 a handle without value");
    EXPECT_EQ(SymbolicInt(Var()).to_string(), "?");
    EXPECT_EQ(refused([](auto& f, auto&, auto&) {
                  Builder third;
                  f.op("relu", {third.function("main").input("x", "f32[N]")});
              }),
              "E0107 a value of function 'main' of another Builder");
}

TEST(Builder, RefusesSizesThatOnlyTheRunKnowsInDeclarations) {
    Builder b;
    FunctionBuilder f = b.function("main");
    f.require_size(b.symbol("S") * 2 + 1);
    EXPECT_EQ(b.error(), nullptr);
    f.require_size(f.input("x", "f32[...]").size(0));
    ASSERT_NE(b.error(), nullptr);
    EXPECT_EQ(b.error()->code(), "E0117");
}

TEST(Builder, LivesAsLongAsWhatItHandsOut) {
    FunctionBuilder f = Builder().function("main");
    const Var x = f.input("x", "f32[N, 4]");
    const Var y = f.op("exp", {x});
    const Var late = f.input("late", "f32[N]");  // an argument after a value
    EXPECT_EQ(y.type(), "f32[N,4]");
    EXPECT_EQ(f.op("mul", {late, late.size(0)}).type(), "f32[N]");
}

TEST(Builder, OwnsItsWeights) {
    Builder b;
    Tensor w = Tensor::empty(DType::kF32, {2, 2});
    std::fill_n(w.data_as<float>(), 4, 0.5F);
    b.weight("layer.0.w", w);
    std::fill_n(w.data_as<float>(), 4, 7.0F);
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N, 2]");
    f.output("out", f.op("matmul", {x, f.weight("layer.0.w")}));
    const Module module = built(b);
    EXPECT_EQ(module.weight("layer.0.w").data_as<float>()[3], 0.5F);
    EXPECT_TRUE(module.weight("layer.0.w").is_read_only());
    EXPECT_FALSE(w.is_read_only());
    const Module again = built(b);
    EXPECT_EQ(again.weight("layer.0.w").data(), module.weight("layer.0.w").data());
    EXPECT_EQ(module.outputs()[0].to_string(), "out: f32[N, 2]");
}

TEST(Builder, WritesBasicBlocksInTheOrderInWhichControlReachesThem) {
    Builder b;
    FunctionBuilder f = b.function("main");
    const Var x = f.input("x", "f32[N]");
    const Variable y = f.variable("y");
    const Label entry = f.label(), head = f.label(), body = f.label(), leave = f.label(), nowhere = f.label();
    f.place(entry);
    f.store(y, x);
    f.jump(head);
    f.place(leave);
    f.give({f.take(y, x)});
    f.place(nowhere);
    f.give({x});
    f.place(head);
    const Var now = f.take(y, x);
    EXPECT_EQ(now.dtype(), DType::kF32);
    EXPECT_EQ(now.rank(), 1);
    f.store(y, now);
    f.branch(f.op("gt", {f.op("reduce_sum", {now}), 1.0}), body, leave);
    f.place(body);
    f.store(y, f.op("mul", {f.take(y, x), 0.5}));
    f.jump(head);
    EXPECT_EQ(listing(built(b)),
              ".symbol N in 0..inf\n"
              "\n"
              ".func main(x: f32[N]) -> 1\n"
              "  LOAD_LOCAL   x\n"
              "  STORE_LOCAL  y\n"
              "L2:\n"
              "  LOOP_HEAD\n"
              "  LOAD_LOCAL   y\n"
              "  STORE_LOCAL  v1\n"
              "  DELETE_LOCAL y\n"
              "  LOAD_LOCAL   v1\n"
              "  STORE_LOCAL  y\n"
              "  LOAD_LOCAL   v1\n"
              "  DELETE_LOCAL v1\n"
              "  CALL_OP      reduce_sum 1\n"
              "  LOAD_CONST   1.0\n"
              "  CALL_OP      gt 2\n"
              "  BRANCH_IF_FALSE L20\n"
              "  LOAD_LOCAL   y\n"
              "  DELETE_LOCAL y\n"
              "  LOAD_CONST   0.5\n"
              "  CALL_OP      mul 2\n"
              "  STORE_LOCAL  y\n"
              "  JUMP         L2\n"
              "L20:\n"
              "  LOAD_LOCAL   y\n"
              "  DELETE_LOCAL y\n"
              "  RETURN       1\n");
}

TEST(Builder, RefusesBasicBlocksThatAreNotWhole) {
    const auto refusal = [](auto write) {
        Builder b;
        FunctionBuilder f = b.function("main");
        const Var x = f.input("x", "f32[N]");
        write(f, x);
        const Expected<Module> module = b.build();
        EXPECT_FALSE(module.has_value());
        return module ? std::string() : module.error().to_string();
    };
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var&) { f.place(f.label()); }).find("without end"),
              std::string::npos);
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var&) {
                  f.place(f.label());
                  f.jump(f.label());
              }).find("not placed"),
              std::string::npos);
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var& x) {
                  f.place(f.label());
                  f.give({x});
                  f.give({x});
              }).find("outside of a basic block"),
              std::string::npos);
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var& x) {
                  f.place(f.label());
                  f.give({x});
                  f.op("relu", {x});
              }).find("outside of a basic block"),
              std::string::npos);
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var& x) {
                  const Label other = f.label();
                  f.place(f.label());
                  f.branch(true, other, other);
                  f.place(other);
                  f.give({x, x});
                  const Label third = f.label();
                  f.place(third);
                  f.give({x});
              }).find("1 results"),
              std::string::npos);
    EXPECT_NE(refusal([](FunctionBuilder& f, const Var& x) {
                  const Label second = f.label();
                  f.place(f.label());
                  const Var y = f.op("relu", {x});
                  f.jump(second);
                  f.place(second);
                  f.give({y});
              }).find("is over"),
              std::string::npos);
    Builder other;
    FunctionBuilder g = other.function("main");
    const Label foreign = g.label();
    EXPECT_NE(refusal([&](FunctionBuilder& f, const Var&) {
                  f.place(f.label());
                  f.jump(foreign);
              }).find("another function"),
              std::string::npos);
}

}  // namespace
}  // namespace flexor
