#pragma once
// Fusion: which instructions of a block share a kernel.
//
// A row unit has a space of dims, some of them reduced. Its members produce values of three forms: full (one per point
// of the space), row-keep (reduced dims are 1) and row-drop (reduced dims are gone). A contraction unit takes
// element-wise members of its result's shape as its epilogue.
#include <optional>
#include <vector>

#include "lower/loops.h"
#include "lower/lower.h"

namespace flexor::lower {

using specialised::Inst;
using specialised::InstKind;
using specialised::kNoReg;
using specialised::Program;
using specialised::Reg;
using types::Dim;
using types::Truth;

enum class Form : std::uint8_t { kFull, kRowKeep, kRowDrop };

// kCall: an op on whole tensors, which no kernel is generated for.
enum class UnitKind : std::uint8_t {
    kRow,
    kContraction,
    kAttention,
    kConcat,
    kExtern,
    kCall,
    kList,
    kRead,
    kScalar,
    kCheck
};

struct Member {
    std::size_t inst = 0;  // index in the block
    Form form = Form::kFull;
};

struct Unit {
    UnitKind kind = UnitKind::kRow;
    std::vector<Member> members;  // in program order
    std::vector<Dim> space;       // kRow, kContraction: sizes
    std::vector<bool> reduced;    // kRow: per dim; empty until a reduce joins
    int epoch = 0;
    std::vector<std::size_t> needs;       // units whose results this one uses
    bool absorbed = false;                // became the prologue of a contraction
    std::optional<std::size_t> prologue;  // kContraction: unit that computes its left operand
};

// Everything lowering knows of one block.
struct BlockUnits {
    std::vector<Unit> units;
    std::vector<std::size_t> order;  // execution order of the units that are not absorbed
    std::vector<std::optional<std::size_t>>
        unit_of;  // by register: the unit that computes it (roots defined in this block)
    std::vector<std::optional<Member>> member_of;  // by register: its member
    std::vector<bool> stored;                      // by register (roots): has memory
};

class Grouper {
public:
    // Replaces an operand by the value that a write has left there, where the two share a kernel.
    Grouper(Program& program, std::size_t block, const Loops& loops, bool fuse, bool prologues);
    Expected<BlockUnits> run();

    // Space dim of each axis of `reg` when read by a member of `form` whose result has sizes `result`: -1 for a
    // broadcast axis. None if a size is not provably the member's size.
    std::optional<std::vector<int>> axis_map(const Unit& unit, Form form, const std::vector<Dim>& result,
                                             Reg reg) const;
    // Axes of the root behind a view, by equal strides: for each root axis the view axis, -1 if its size is 1. None if
    // the view is not a rearrangement.
    std::optional<std::vector<int>> root_axes(Reg view) const;
    std::vector<int> form_dims(const Unit& unit,
                               Form form) const;  // space dim per axis of a member's result, -1 where it is 1

private:
    std::optional<Form> form_of(const Unit& unit, const std::vector<Dim>& sizes) const;
    bool reads_fit(std::size_t unit, Form form, const Inst& inst, const std::vector<Dim>& shape) const;
    bool join(std::size_t unit, std::size_t index);
    bool try_merge(std::size_t into, std::size_t other);
    void add(std::size_t index);
    void add_alone(std::size_t index, UnitKind kind);
    void add_scalar(std::size_t index);
    void link(std::size_t unit, const Inst& inst);
    bool reaches(std::size_t from, std::size_t to) const;  // from needs to, directly or not
    bool write_conflicts(std::size_t unit, const Inst& write) const;
    void find_write_sources();
    std::vector<Reg> forwarded(std::size_t unit, const Inst& inst) const;
    bool may_rise(std::size_t unit, const Inst& inst) const;
    bool join_forwarded(std::size_t unit, std::size_t index);
    void mark_stored();
    void absorb_prologues();
    void schedule();
    bool ends_epoch(const Unit& unit) const;
    const types::TensorType& type(Reg r) const { return program_.registers[r].type.type; }
    bool scalar(Reg r) const { return program_.registers[r].type.strength == types::Strength::kScalar; }
    bool equal(const Dim& a, const Dim& b) const { return program_.env.eq(a, b) == Truth::kTrue; }

    const Program& program_;
    specialised::Block& block_;
    std::size_t index_;  // of the block
    const Loops& loops_;
    bool fuse_, prologues_;
    BlockUnits out_;
    int epoch_ = 0;
    int lowest_epoch_ = 0;  // a check or a read stands behind the earlier ones: nothing joins their units
    struct Write {
        std::size_t inst;
        int epoch;
    };
    std::vector<Write> writes_;
    std::vector<bool> write_sources_;  // by register (roots): a write of the block needs its value, directly or not
};

// Shape that a member's kernel walks: the operand's for a reduce and a reshaping copy, the destination's for a write,
// else the result's.
const std::vector<Dim>& walked_shape(const Program& program, const Inst& inst);
bool is_reduce(const Inst& inst);
bool is_copy(const Program& program, const Inst& inst);  // a movement op without a view
bool is_view(const Program& program, const Inst& inst);
bool is_write(const Inst& inst);
std::vector<bool> reduced_axes(const Program& program, const Inst& inst);

}  // namespace flexor::lower
