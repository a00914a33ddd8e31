// Promises that no text can break: Modules written by hand. tests/text/bytecode/reject holds the others.
#include "bytecode/verify.h"

#include <gtest/gtest.h>

#include "bytecode/opcodes.h"
#include "bytecode/text.h"
#include "bytecode/type_flow.h"

namespace flexor::bytecode {
namespace {

Module program() {
    Expected<Module> module = assemble(
        ".func main(x: f32[N]) -> 1\n"
        "  LOAD_LOCAL x\n"
        "  LOAD_CONST 1.0\n"
        "  CALL_OP add 2\n"
        "  CALL_OP exp 1\n"
        "  RETURN 1\n",
        "test.fasm");
    EXPECT_TRUE(module.has_value());
    return *std::move(module);
}

std::string refusal(Module module) {
    const Expected<ModuleRef> verified = verify(std::move(module));
    return verified ? "none" : verified.error().code();
}

std::string refusal_after(const std::function<void(Module&)>& change) {
    Module module = program();
    change(module);
    return refusal(std::move(module));
}

TEST(Verify, FillsInWhatItPromises) {
    const Expected<ModuleRef> first = verify(program());
    const Expected<ModuleRef> second = verify(program());
    ASSERT_TRUE(first && second);
    const Function& f = (*first)->functions[0];
    EXPECT_TRUE((*first)->verified);
    EXPECT_NE((*first)->id, (*second)->id);
    EXPECT_EQ(f.max_stack, 2);
    EXPECT_EQ(f.sites[0].definition, ops::find_op("add"));
    EXPECT_EQ(f.sites[0].attrs.real("alpha"), 1.0);  // the default
    EXPECT_EQ(f.line_at(0), 2);
    EXPECT_EQ(f.line_at(4), 6);
}

TEST(Verify, RefusesWhatTextCannotSay) {
    EXPECT_EQ(refusal_after([](Module&) {}), "none");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0].op = static_cast<Opcode>(200); }), "E0101");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0].a = 1; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0].a = -1; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[2].a = 5; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { std::swap(m.functions[0].code[2].a, m.functions[0].code[3].a); }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].sites.emplace_back(); }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[4].a = -1; }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0].b = 1; }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kLoadNone, 1}; }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kJump, -1}; }), "E0104");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kScalar, kScalarOperatorCount}; }),
              "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kGetDim, 12}; }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kCall, 1, 0}; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kCallForeign, 0, 1}; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code[0] = {Opcode::kLoadWeight, 0}; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].code.clear(), m.functions[0].sites.clear(); }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].params[0].dims = {types::Dim::symbol(9)}; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].sites[0].attrs.set("alpha", types::Dim::symbol(9)); }),
              "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].params[0].frozen.clear(); }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].locals[0] = "y"; }), "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].locals.emplace_back("x"); }), "E0111");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].result_names = {"a", "b"}; }), "E0118");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions.push_back(m.functions[0]); }), "E0111");
    EXPECT_EQ(refusal_after([](Module& m) { m.hooks = {"a", "a"}; }), "E0111");
    EXPECT_EQ(refusal_after([](Module& m) { m.symbols.push_back(m.symbols[0]); }), "E0111");
    EXPECT_EQ(refusal_after([](Module& m) { m.symbols[0].name = "two words"; }), "E0801");
    EXPECT_EQ(refusal_after([](Module& m) { m.symbols[0].range = {-1, 4}; }), "E0113");
    EXPECT_EQ(refusal_after([](Module& m) { m.weights.emplace_back(); }), "E0117");
    EXPECT_EQ(refusal_after([](Module& m) { std::swap(m.functions[0].positions[0], m.functions[0].positions[1]); }),
              "E0105");
    EXPECT_EQ(refusal_after([](Module& m) { m.functions[0].positions[1].pc = 99; }), "E0105");
}

TEST(Verify, RefusesWeightsThatAreNotContiguous) {
    Module module = program();
    const Tensor base = Tensor::empty(DType::kF32, {2, 3});
    const std::int64_t sizes[] = {3, 2};
    const std::int64_t strides[] = {1, 3};
    module.weights.push_back({"w", base.view(base.data(), DType::kF32, sizes, strides)});
    EXPECT_EQ(refusal(std::move(module)), "E0117");
}

// An op whose result has a size made by data: as nonzero would have it.
const ops::OpDef* sizes_by_data() {
    static const ops::OpDef* const kOp = [] {
        static constexpr ops::OperandSpec kOperands[] = {{"x"}};
        const ops::OpDef& base = *ops::find_op("exp");
        ops::OpDef op = base;
        op.name = std::string_view("test_by_data");
        op.operands = std::span<const ops::OperandSpec>(kOperands);
        op.attrs = std::span<const ops::AttrSpec>();
        op.shape = +[](ops::ShapeContext& context, std::vector<ops::ShapeResult>& results) {
            results.resize(1);
            results[0].sizes = {context.fresh("u", 0, context.type(0).sizes[0])};
            return true;
        };
        op.layout = ops::Layout::kContiguous;
        return ops::register_op(op);
    }();
    return kOp;
}

TEST(Verify, RefusesFrozenOnASizeMadeByData) {
    ASSERT_NE(sizes_by_data(), nullptr);
    const auto code = [](std::string_view tail) {
        Expected<Module> module =
            assemble(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n" + std::string(tail), "t.fasm");
        if (!module) return module.error().code();
        const Expected<ModuleRef> verified = verify(*std::move(module));
        if (verified) return std::string("none");
        EXPECT_EQ(verified.error().where().source, "t.fasm:4");
        return verified.error().code();
    };
    EXPECT_EQ(code("  CALL_OP test_by_data 1\n  FROZEN 0\n  RETURN 1\n"), "E0114");
    EXPECT_EQ(code("  CALL_OP exp 1\n  FROZEN 0\n  RETURN 1\n"), "none");
}

TEST(TypeFlow, FollowsTypesThroughBranchesAndCalls) {
    const auto types = [](std::string_view text) {
        Expected<Module> module = assemble(text, "t.fasm");
        EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().to_string());
        Expected<ModuleRef> verified = verify(*std::move(module));
        EXPECT_TRUE(verified.has_value()) << (verified ? "" : verified.error().to_string());
        types::ShapeEnv env = module_env(**verified);
        std::string out;
        for (const StaticType& type : result_types(**verified, (*verified)->functions[0], env)) {
            out += to_string(type, [&](types::SymbolId id) { return env.name(id); }) + ";";
        }
        return out;
    };
    EXPECT_EQ(types(".func main(x: f32[B, S]) -> 2\n LOAD_LOCAL x\n CALL_OP reduce_sum 1 axes=[1]\n LOAD_LOCAL x\n"
                    " GET_DIM 0\n LOAD_CONST 2\n SCALAR mul\n RETURN 2\n"),
              "f32[B];int 2*B;");
    // Both paths give one type; the other result differs.
    EXPECT_EQ(types(".func main(x: f32[B, S], c: bool) -> 2\n LOAD_LOCAL c\n BRANCH_IF_TRUE other\n LOAD_LOCAL x\n"
                    " LOAD_CONST 1\n RETURN 2\nother:\n LOAD_LOCAL x\n CALL_OP exp 1\n LOAD_CONST 2\n RETURN 2\n"),
              "f32[B,S];int;");
    EXPECT_EQ(types(".func main(x: f32[B, S]) -> 1\n LOAD_LOCAL x\n CALL helper\n RETURN 1\n"
                    ".func helper(y: f32[P, Q]) -> 1\n LOAD_LOCAL y\n CALL_OP neg 1\n RETURN 1\n"),
              "f32[B,S];");
    // A loop that changes a size forgets it; endless recursion ends.
    EXPECT_EQ(types(".func main(x: f32[S], n: int) -> 1\nhead:\n LOOP_HEAD\n LOAD_LOCAL n\n BRANCH_IF_FALSE done\n"
                    " LOAD_LOCAL x\n LOAD_LOCAL x\n CALL_OP concat 2 axis=0\n STORE_LOCAL x\n JUMP head\ndone:\n"
                    " LOAD_LOCAL x\n RETURN 1\n"),
              "?;");
    EXPECT_EQ(types(".func main(x: f32[S]) -> 1\n LOAD_LOCAL x\n CALL main\n RETURN 1\n"), "?;");
}

TEST(Opcodes, SpellNamesBothWays) {
    for (const OpcodeInfo& row : all_opcodes()) {
        EXPECT_EQ(opcode_from_mnemonic(row.mnemonic), row.op);
        EXPECT_FALSE(row.sentence.empty());
    }
    EXPECT_EQ(opcode_info(Opcode::kBranchIfNotNull).mnemonic, "BRANCH_IF_NOT_NULL");
    EXPECT_FALSE(opcode_from_mnemonic("LOAD").has_value());
    for (int i = 0; i < kScalarOperatorCount; ++i) {
        const auto op = static_cast<ScalarOperator>(i);
        EXPECT_EQ(scalar_operator_from_name(scalar_operator_name(op)), op);
    }
}

}  // namespace
}  // namespace flexor::bytecode
