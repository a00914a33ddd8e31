#pragma once
// One lowering under way: what its parts share. Inside `lower` only.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lower/frame_slots.h"
#include "lower/kernel_builder.h"
#include "lower/loops.h"
#include "lower/lower.h"
#include "lower/units.h"

namespace flexor::lower {

using executable::BufferSlot;
using executable::BufferSource;
using executable::Executable;
using executable::Failure;
using executable::FrameOp;
using executable::FrameProgram;
using executable::ListSlot;
using executable::ListStep;
using executable::OutValue;
using executable::Step;
using executable::TensorRef;
using specialised::LiveValue;

class Lowerer {
public:
    Lowerer(Program program, const executable::Signature& signature, const Options& options,
            std::vector<types::OpSite>* refused)
        : program_(std::move(program)),
          options_(options),
          refused_(refused),
          slots_(signature.frame_size()),
          loops_(program_) {
        exe_.signature = signature;
    }

    Expected<Executable> run();

private:
    Expected<void> lower_block(std::size_t index);
    Expected<void> lower_unit(const Unit& unit, std::size_t position);
    Expected<void> launch(KernelBuilder& builder, const Inst& inst);
    Expected<void> lower_extern(KernelBuilder& builder, const Inst& inst);
    void begin_call(const Inst& inst);
    void finish_call(const Inst& inst);
    void lower_check(const Inst& inst);
    void lower_read(const Inst& inst);
    void lower_real(const Inst& inst);
    void lower_list(const Inst& inst);
    void lower_guards();
    void place_buffers();
    void lower_terminator(const specialised::Block& block);
    void part_invariants(executable::Block& block);
    bool is_once(const Unit& unit) const;

    FrameProgram& frame();  // where sizes needed from here on are computed
    Slot value(const Dim& d) { return slots_.value(program_.env.simplify(d), frame()); }
    Slot constant(std::int64_t v) { return slots_.value(Dim(v), frame()); }
    Slot scalar_slot(Reg reg);
    BufferSlot buffer_slot(Reg root);
    ListSlot list_slot(Reg reg);
    TensorRef tensor_ref(Reg reg);
    std::vector<TensorRef> written_tensors(const Unit& unit);
    OutValue out_value(const LiveValue& value);
    std::size_t concat_axis(const Inst& concat) const {
        const std::int64_t axis = concat.attrs.integer("axis").constant();
        return static_cast<std::size_t>(axis < 0 ? axis + type(concat.results[0]).rank() : axis);
    }
    std::uint32_t failure(DiagnosticId id, const Inst& inst, int constraint, std::string expected);
    Step& step(Step::Kind kind) {
        block().steps.push_back({});
        block().steps.back().kind = kind;
        return block().steps.back();
    }
    executable::Block& block() { return exe_.blocks[block_]; }
    const types::TensorType& type(Reg r) const { return program_.registers[r].type.type; }
    bool depends_on_reads(const Dim& d) const;
    std::string kernel_name(const Unit& unit) const;
    std::vector<types::OpSite> sites_of(const Unit& unit) const;
    const specialised::Block& source() const { return program_.blocks[block_]; }

    Program program_;
    Options options_;
    std::vector<types::OpSite>* refused_;
    FrameSlots slots_;
    Executable exe_;
    std::vector<const Inst*> producers_;
    std::map<Reg, BufferSlot> buffers_;
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::uint32_t>
        packed_;  // geometry -> index in exe_.packed
    std::map<std::uint32_t, BufferSlot> packed_slots_;
    std::map<Reg, Slot> scalar_slots_;
    std::map<Reg, ListSlot> list_slots_;
    Loops loops_;
    std::vector<std::set<types::SymbolId>> read_symbols_;  // by block: symbols that its reads and comparisons define

    std::size_t block_ = 0;
    BlockUnits units_;
    const Grouper* grouper_ = nullptr;
    std::optional<std::size_t> late_frame_;  // index in exe_.frames after a read
    bool after_read_ = false;
    std::map<Reg, std::size_t> allocate_before_;  // root -> position in the order of the unit that makes it
    std::map<Reg, bool> leaves_region_;
};

}  // namespace flexor::lower
