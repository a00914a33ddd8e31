// A program that keeps every promise of the verifier, and what breaks each.
#include <gtest/gtest.h>

#include "specialised/program.h"
#include "support/diagnostic.h"

namespace flexor::specialised {
namespace {

using Requirement = ops::Requirement;

// Registers and symbols of sample().
enum : Reg { kX, kRow, kSum, kOne, kCarried, kScalar };
enum : SymbolId { kN, kRead, kSteps };

ops::ArgType tensor(std::vector<Dim> sizes) {
    ops::ArgType type;
    type.type = types::contiguous_type(DType::kF32, std::move(sizes));
    return type;
}

Inst instruction(InstKind kind, std::vector<Reg> operands, std::vector<Reg> results) {
    Inst inst;
    inst.kind = kind;
    inst.operands = std::move(operands);
    inst.results = std::move(results);
    return inst;
}

Requirement relation(Requirement::Kind kind, Dim a, Dim b) {
    return {kind, ops::Relation::kLe, std::move(a), std::move(b), 0, false};
}

LiveValue live(Reg reg) {
    LiveValue value;
    value.kind = LiveValue::Kind::kReg;
    value.reg = reg;
    return value;
}

LiveValue live_int(Dim d) {
    LiveValue value;
    value.kind = LiveValue::Kind::kInt;
    value.integer = std::move(d);
    return value;
}

// b0: x: f32[N]; row = unsqueeze(x); check N <= N + 1; sum = reduce_sum(x); read = item(sum as integer)
//     jump b1(sum; read)
// b1(carried; steps): branch steps != 0: b1(carried; steps - 1) | b2
// b2: one = N as scalar; return row, steps
Program sample() {
    Program p;
    p.env.add_symbol("N", {0, 100});
    p.env.add_symbol("read", {0, 100});
    p.env.add_symbol("steps", {0, 100});
    const Dim n = Dim::symbol(kN), steps = Dim::symbol(kSteps);
    p.entry_symbols = {{kN, 0}};
    p.guards = {relation(Requirement::Kind::kGuard, 1, n)};
    p.arguments = {kX};
    const auto add = [&](ops::ArgType type, Reg root) { p.registers.push_back({std::move(type), root, "", {}}); };
    ops::ArgType scalar;
    scalar.type.dtype = DType::kI64;
    scalar.strength = types::Strength::kScalar;
    add(tensor({n}), kX);
    add(tensor({1, n}), kX);
    add(tensor({}), kSum);
    add(scalar, kOne);
    add(tensor({}), kCarried);
    add(scalar, kScalar);

    Block first;
    first.insts.push_back(instruction(InstKind::kArgument, {}, {kX}));
    Inst row = instruction(InstKind::kOp, {kX}, {kRow});
    row.op = ops::find_op("unsqueeze");
    row.attrs = *ops::check_attrs(*row.op, {{"axis", Dim(0)}});
    row.dtypes = {{DType::kF32}, {DType::kF32}};
    first.insts.push_back(row);
    Inst check = instruction(InstKind::kCheck, {}, {});
    check.requirement = relation(Requirement::Kind::kCheck, n, n + Dim(1));
    first.insts.push_back(check);
    Inst sum = instruction(InstKind::kOp, {kX}, {kSum});
    sum.op = ops::find_op("reduce_sum");
    sum.attrs = *ops::check_attrs(*sum.op, {});
    sum.dtypes = {{DType::kF32}, {DType::kF32}};
    first.insts.push_back(sum);
    Inst read = instruction(InstKind::kReadInt, {kSum}, {});
    read.symbol = kRead;
    first.insts.push_back(read);
    first.terminator.kind = Terminator::Kind::kJump;
    first.terminator.targets = {{1, {kSum}, {Dim::symbol(kRead)}}};

    Block loop;
    loop.loop_head = true;
    loop.params = {kCarried};
    loop.symbols = {kSteps};
    loop.terminator.kind = Terminator::Kind::kBranch;
    loop.terminator.condition.relation = relation(Requirement::Kind::kCheck, steps, 0);
    loop.terminator.targets = {{1, {kCarried}, {steps - Dim(1)}}, {2, {}, {}}};

    Block last;
    Inst one = instruction(InstKind::kDimScalar, {}, {kOne});
    one.dim = n;
    last.insts.push_back(one);
    Inst constant = instruction(InstKind::kConst, {}, {kScalar});
    constant.constant = ConstScalar{std::int64_t{7}};
    last.insts.push_back(constant);
    last.terminator.values = {live(kRow), live_int(steps)};
    p.blocks = {first, loop, last};
    return p;
}

// The promise that a changed program breaks, or "" if it verifies.
template <class Change>
std::string broken(Change change) {
    Program program = sample();
    change(program);
    const auto verified = verify(program);
    return verified ? "" : verified.error().where().constraint;
}

TEST(Verify, TheSampleKeepsEveryPromise) {
    const auto verified = verify(sample());
    EXPECT_TRUE(verified) << verified.error().to_string() << print(sample());
}

TEST(Verify, V1RegistersAreDefinedOnceAndBeforeTheirUses) {
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[3].results = {kX}; }), "V1") << "twice";
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[3].results = {77}; }), "V1") << "not there";
    EXPECT_EQ(broken([](Program& p) { std::swap(p.blocks[0].insts[0], p.blocks[0].insts[1]); }), "V1") << "later";
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].terminator.values[0] = live(kNoReg); }), "V1");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].terminator.targets[0].args = {kCarried}; }), "V1");
    EXPECT_EQ(broken([](Program& p) { p.blocks[1].terminator.condition = {kOne, std::nullopt}; }), "V1")
        << "defined on another path";
}

TEST(Verify, V2ControlGoesWhereItFits) {
    EXPECT_EQ(broken([](Program& p) { p.blocks.clear(); }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].symbols = {kSteps}; }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].terminator.targets[0].block = 9; }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].terminator.targets[0].args.clear(); }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].terminator.targets[0].args = {kX}; }), "V2") << "of another rank";
    EXPECT_EQ(broken([](Program& p) { p.blocks[1].terminator.targets.pop_back(); }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[1].terminator.condition.relation.reset(); }), "V2");
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].terminator.kind = Terminator::Kind::kExit; }), "V2");
}

TEST(Verify, V3SymbolsAreDefinedOnceAndBeforeTheirUses) {
    const Dim read = Dim::symbol(kRead), steps = Dim::symbol(kSteps);
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[4].symbol = kSteps; }), "V3") << "twice";
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[4].symbol = 9; }), "V3") << "not there";
    EXPECT_EQ(broken([&](Program& p) { p.registers[kX].type.type.sizes[0] = read; }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.registers[kRow].type.type.strides[0] = steps; }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.registers[kRow].type.type.offset = read; }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[0].insts[2].requirement->b = read; }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[0].insts[1].attrs.set("axis", read); }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[0].terminator.targets[0].symbols = {steps}; }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[2].insts[0].dim = Dim::symbol(5); }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[2].terminator.values[1] = live_int(Dim::symbol(5)); }), "V3");
    EXPECT_EQ(broken([&](Program& p) { p.blocks[1].terminator.condition.relation->a = Dim::symbol(5); }), "V3");
    // What the block before the loop reads is there in the loop and behind it.
    EXPECT_EQ(broken([&](Program& p) { p.blocks[2].insts[0].dim = read + steps; }), "");
}

TEST(Verify, V4AttributesAreChecked) {
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[1].attrs.set("axis", types::OperandRef{1}); }), "V4");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[1].attrs.set("axis", std::string("0")); }), "V4");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[1].attrs.set("axes", Dim(0)); }), "V4");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[3].attrs = {}; }), "V4") << "defaults are not filled in";
}

TEST(Verify, V5ViewsNameARoot) {
    EXPECT_EQ(broken([](Program& p) { p.registers[kRow].root = 77; }), "V5");
    EXPECT_EQ(broken([](Program& p) {
                  p.registers[kRow].root = kSum;
                  p.registers[kSum].root = kX;
              }),
              "V5")
        << "a view of a view";
    EXPECT_EQ(broken([](Program& p) {
                  p.registers[kRow].root = kOne;
                  p.blocks[0].terminator.targets[0].args = {kSum};
                  p.blocks[0].insts[3].operands = {kRow};
              }),
              "V5")
        << "a root that is defined later";
}

TEST(Verify, V6GuardsAreOverTheEntry) {
    EXPECT_EQ(broken([](Program& p) { p.guards[0].kind = Requirement::Kind::kCheck; }), "V6");
    EXPECT_EQ(broken([](Program& p) { p.guards[0].b = Dim::symbol(kRead); }), "V6");
}

TEST(Verify, V7InstructionsAreWhole) {
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[1].op = nullptr; }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[1].dtypes.results.clear(); }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[0].operands = {kX}; }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[2].requirement.reset(); }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[0].insts[4].operands.clear(); }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].insts[0].operands = {kX}; }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].insts[1].constant.reset(); }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].insts[1].kind = InstKind::kAssert; }), "V7");
    EXPECT_EQ(broken([](Program& p) { p.blocks[2].insts[1].kind = InstKind::kReadFloat; }), "V7");
    const auto real = [](RealOp op, DType dtype) {
        return broken([&](Program& p) {
            p.registers[kScalar].type.type.dtype = dtype;
            p.blocks[2].insts[1].kind = InstKind::kReal;
            p.blocks[2].insts[1].real = op;
            p.blocks[2].insts[1].symbol = p.env.add_symbol("compared", {0, 1});
        });
    };
    EXPECT_EQ(real(RealOp::kOfInt, DType::kF64), "");
    EXPECT_EQ(real(RealOp::kOfInt, DType::kI64), "V7");
    EXPECT_EQ(real(RealOp::kNeg, DType::kF64), "V7");
    EXPECT_EQ(real(RealOp::kEq, DType::kF64), "V7");
}

}  // namespace
}  // namespace flexor::specialised
