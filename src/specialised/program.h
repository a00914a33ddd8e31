#pragma once
// The specialised program of one region: typed registers in basic blocks, over symbols of one ShapeEnv.
//
// Laws
//  S1  Every register has one definition (SSA); blocks take arguments. Integers are not registers: they are Dims.
//  S2  A view is a register whose type carries its geometry and whose `root` is the register that owns the memory;
//      aliasing is explicit.
//  S3  Instructions run in order where effects say so: a write (Effects::kWritesFirst) is ordered against every access
//      of the same root or of a root that the signature says may overlap.
//  S4  A check stands where eager would raise. Guards stand in `guards` and hold for every run of the program.
//  S5  Symbols 0..entry_symbols-1 are read from the call frame; others are defined by block parameters, by kReadInt, by
//      comparisons of run-time floats, by queries of lists or by data-dependent results.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ops/op_def.h"
#include "types/attr.h"
#include "types/op_site.h"
#include "types/shape_env.h"
#include "types/tensor_type.h"

namespace flexor::specialised {

using types::Dim;
using types::SymbolId;

using Reg = std::uint32_t;
inline constexpr Reg kNoReg = ~Reg{0};

// What the elements of a list of the run have in common; each has sizes of its own.
struct ElementType {
    DType dtype = DType::kF32;
    int rank = 0;
    bool contiguous = true;
    friend bool operator==(const ElementType&, const ElementType&) = default;
};

// A register holds a tensor, a run-time scalar (rank 0, strength kScalar) that lives in a frame slot, or a list of
// tensors whose length only the run knows.
struct Register {
    ops::ArgType type;
    Reg root = kNoReg;                // register that owns the memory; itself unless a view
    std::string name;                 // of the local, for listings; may be empty
    std::optional<ElementType> list;  // a list; `type` is empty then
};

struct ConstScalar {
    std::variant<bool, std::int64_t, double> value;
};

enum class InstKind : std::uint8_t {
    kOp,         // registry op
    kArgument,   // result is live value `index` of the region's entry
    kWeight,     // result is Module weight `index`
    kConst,      // result is `constant`, a weak scalar
    kDimScalar,  // result is the integer `dim` as a weak scalar
    kReadInt,    // operand: one-element integer or bool tensor; defines symbol `symbol`
    kReadFloat,  // operand: one-element floating tensor; result is a run-time scalar
    kReal,       // `real` of float scalars; a comparison defines symbol `symbol` as 0 or 1, the others have a result
    kCheck,      // `requirement` must hold here; raises the op's constraint
    kAssert,     // operand scalar or tensor (or `requirement`) must be true; raises `text`
    // Lists of the run. They are values: what is appended to is unchanged.
    kListOf,      // result is the list of the operands
    kListAppend,  // result is the list (operand 0) with operand 1 at its end
    kListGet,     // result is element `dim` of the list, of the geometry that queries have told; `dim` is in range
    kListQuery,   // defines symbol `symbol`: what `query` asks of the list and its axis `index`
    kListJoin,    // result, fresh memory: the elements one after the other along axis `index`, or along a new one
};

enum class ListQuery : std::uint8_t {
    kSize,    // of element `dim` along the axis; 0 where there is no such element
    kStride,  // likewise
    kTotal,   // the sum of the sizes along the axis
    kAlike,   // 1 if all elements have the same sizes along every axis but this one, else 0
};
inline bool is_list_inst(InstKind kind) { return kind >= InstKind::kListOf; }

// Arithmetic on run-time floats: double precision, as Python's.
enum class RealOp : std::uint8_t {
    kOfInt,  // the integer `dim`
    kNeg,
    kAdd,
    kSub,
    kMul,
    kDiv,  // raises where the divisor is 0
    kEq,
    kLt,
    kLe,
};
inline bool is_comparison(RealOp op) { return op >= RealOp::kEq; }

struct Inst {
    InstKind kind = InstKind::kOp;
    const ops::OpDef* op = nullptr;
    std::vector<Reg> operands;  // kNoReg: optional operand given as none
    std::vector<Reg> results;
    types::Attrs attrs;       // Dims over the program's symbols; checked, without OperandRef
    ops::DTypes dtypes;       // kOp
    std::uint32_t index = 0;  // kArgument, kWeight; kListQuery, kListJoin: axis
    ListQuery query = ListQuery::kSize;
    bool new_axis = false;  // kListJoin
    std::optional<ConstScalar> constant;
    RealOp real = RealOp::kOfInt;  // kReal
    Dim dim = 0;
    SymbolId symbol = 0;
    std::vector<SymbolId> sizes;  // kOp: the symbols of the sizes that data makes, in the order of ShapeContext::fresh
    bool whole = false;           // kOp: runs on whole tensors (ops::run_whole) though its entry says how to lower it
    std::optional<ops::Requirement> requirement;
    std::string text;    // kAssert: what it raises; kOp: why it is `whole`
    types::OpSite site;  // kOp: the call in the bytecode that it comes from
    std::int32_t pc = 0;
    std::int32_t line = 0;
};

// The symbols that have their values from this instruction.
inline std::span<const SymbolId> defined_symbols(const Inst& inst) {
    if (inst.kind == InstKind::kReadInt || inst.kind == InstKind::kListQuery ||
        (inst.kind == InstKind::kReal && is_comparison(inst.real)))
        return {&inst.symbol, 1};
    return inst.sizes;
}

// Whether no code is generated for the op: a step of the tape calls a kernel of the registry.
inline bool runs_whole(const Inst& inst) {
    if (inst.kind != InstKind::kOp) return false;
    const auto* hand_written = std::get_if<ops::ExternLower>(&inst.op->lower.value);
    return inst.whole || (hand_written != nullptr && hand_written->kernel.empty());
}

// A value of the VM at a safe point or a return.
struct LiveValue {
    enum class Kind : std::uint8_t {
        kUnset,
        kNone,
        kReg,
        kInt,
        kBool,
        kFloat,
        kString,
        kList,
        kFunction,
        kOpaque,
        kRunList
    } kind = Kind::kUnset;
    // kReg; kRunList: the list; kOpaque: index into Signature::values of a value the region only passes through
    Reg reg = kNoReg;
    Dim integer = 0;  // kInt; kRunList: the length
    // kBool: `integer` is 0 or 1, constant if known
    double real = 0;                  // kFloat (constant); run-time floats and bools are kReg
    std::string text;                 // kString, kFunction
    std::vector<LiveValue> elements;  // kList
};

struct Target {
    std::uint32_t block = 0;
    std::vector<Reg> args;     // one per Block::params
    std::vector<Dim> symbols;  // one per Block::symbols
};

// Where the region stops: values go back to the VM frame, which goes on at pc.
struct Exit {
    std::int32_t pc = 0;
    std::vector<LiveValue> locals;
    std::vector<LiveValue> stack;
    std::string reason;  // why the region ends here, "" for a planned safe point
};

// A condition of a branch: a scalar or one-element tensor register, or a relation of dims.
struct Condition {
    Reg reg = kNoReg;
    std::optional<ops::Requirement> relation;
};

struct Terminator {
    enum class Kind : std::uint8_t { kJump, kBranch, kReturn, kExit } kind = Kind::kReturn;
    Condition condition;  // kBranch: targets[0] if true, targets[1] if false
    std::vector<Target> targets;
    std::vector<LiveValue> values;  // kReturn
    std::uint32_t exit = 0;         // kExit: index into Program::exits
};

struct Block {
    std::vector<Reg> params;
    std::vector<SymbolId> symbols;  // integers carried by the block
    std::vector<Inst> insts;
    Terminator terminator;
    bool loop_head = false;
};

// How a symbol of the entry is read from the call frame (executable/signature.h fixes the frame's layout).
struct EntrySymbol {
    SymbolId symbol;
    std::uint32_t slot;
};

struct Program {
    std::string function;
    std::int32_t pc = 0;
    types::ShapeEnv env;
    std::vector<EntrySymbol> entry_symbols;
    std::vector<ops::Requirement> guards;  // Kind::kGuard, over entry symbols only
    std::vector<Register> registers;
    std::vector<Block> blocks;  // block 0 is the entry and has no params
    std::vector<Exit> exits;
    std::vector<std::string> events;  // decisions for `explain`: branches decided by facts, guards proposed, FROZEN
    std::vector<bool> may_overlap;    // n*n over arguments: the signature's alias groups (empty: nothing is written)
    std::vector<Reg> arguments;       // tensor arguments in order
    bool has_lists = false;           // some instruction is one of lists
};

// Whether what the elements hold may make the instruction raise in the run: an index out of range, an integer divided
// by zero. It must run even if nobody wants its result.
bool may_raise(const Program& program, const Inst& inst);

std::string print(const Program& program);

// Promises; a refusal names the one that is broken.
//  V1  every register exists, is defined once and dominates its uses;
//  V2  jumps and exits name what exists, terminators have their number of targets, and arguments fit the parameters of
//      their block in number, dtype and rank; the entry block has none;
//  V3  every symbol is defined once (S5) and before what uses it: sizes, strides and offsets of registers, attributes,
//      checks, jump arguments, live values;
//  V4  the attributes of an op are those of its registry entry, complete and of their kinds, without OperandRef;
//  V5  the root of a view is no view itself, and is defined where the view is used;
//  V6  guards are guards, over entry symbols only;
//  V7  an instruction has what its kind needs.
Expected<void> verify(const Program& program);

}  // namespace flexor::specialised
