// Machine code for a Body of the loop IR: one function (or one a pass) in the module given.
//
// Promises
//  R1  Sizes, strides and offsets that are slots are read at run time: the code serves every launch.
//  R2  Memory outside the accessed elements is never touched, whatever the row length; tails are masked.
//  R3  The value of a reduction depends on the row's length alone, not on the thread that computes it or on where the
//      row stands.
//  R4  No state: several threads may run a function at once, each with scratch of its own.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/cpu_llvm/expr_emitter.h"
#include "codegen/cpu_llvm/row_kernel_plan.h"

namespace flexor::codegen::cpu_llvm {

// What generated code is handed. `extents` holds one number per dim of the plan's body, in its order; null makes the
// code read the extents from `params` and constants itself.
struct RowContext {
    void* const* buffers;
    const std::int64_t* params;
    const std::int64_t* extents;
    std::int32_t* fault;
};

// Result of one reduce stage over a part of a row (RowForm::kSplit).
struct PartialValue {
    std::int64_t bits;      // the accumulator's value, in its own dtype, low bytes
    std::int64_t position;  // arg reductions
};

// Rows [row_begin, row_end) of the flattened parallel dims; for RowForm::kElementwise only the columns
// [column_begin, column_end), multiples of column_step() unless at the row's end.
using RowFunction = void(const RowContext*, std::int64_t row_begin, std::int64_t row_end, std::int64_t column_begin,
                         std::int64_t column_end, void* scratch);
// One part of the row in one pass: indices [outer_begin, outer_end) of the first outer row dim (if there is one), and
// [inner_begin, inner_end) of the inner one; `values` are the combined results of earlier passes and `partial` receives
// this part's, both one a stage.
using SplitFunction = void(const RowContext*, std::int64_t outer_begin, std::int64_t outer_end,
                           std::int64_t inner_begin, std::int64_t inner_end, void* scratch, const PartialValue* values,
                           PartialValue* partial);
using EpilogueFunction = void(const RowContext*, std::int64_t batch, std::int64_t m, std::int64_t n0,
                              std::int64_t n_count, const void* sums);
using PrologueFunction = void(const RowContext*, std::int64_t batch, std::int64_t m0, std::int64_t m1, void* rows);

// Chunks of columns begin at multiples of this.
int column_step(const RowPlan& plan);
// Bytes of scratch for one thread (the whole launch for RowForm::kSplit), `extents` as in RowContext.
std::size_t scratch_bytes(const RowPlan& plan, const std::int64_t* extents);
// Dtype in which a reduce stage accumulates.
DType accumulator_dtype(DType value);

PlanOptions host_plan_options();
PlanOptions epilogue_plan_options();
PlanOptions prologue_plan_options(DType row_dtype);

class RowEmitter {
public:
    RowEmitter(Ir& ir, const RowPlan& plan) : ir_(ir), plan_(plan), body_(plan.body), expr_(ir) {}

    void emit_rows(const std::string& name);
    void emit_split(const std::string& name);  // name + "." + pass
    void emit_epilogue(const std::string& name, DType accumulator);
    void emit_prologue(const std::string& name);

private:
    static constexpr int kMaxUnroll = 4;
    using Lanes = std::array<Value, kMaxUnroll>;

    struct Reduction {
        std::uint32_t stage;
        loopir::Combine combine;
        DType dtype;  // of the accumulator
        bool is_arg;
        bool is_float_sum;
    };
    struct Offsets {  // what an access needs at one level: elements, and whether its scalar gathers are in range
        Value elements = nullptr;
        Value in_range = nullptr;
    };
    struct Place {                // of one vector of an access
        Value pointer = nullptr;  // of vector 0's first lane; without the vector dim's terms if lane_offsets is set
        Value lane_offsets = nullptr;
        Value contiguous = nullptr;  // i1 known at run time only; null if lane_offsets decides
        Value mask = nullptr;        // vector of i1, null for all
    };

    // Entry.
    void begin(Value context, bool extents_given);
    void load_slots();
    Value int_ref(const loopir::IntRef& ref);
    Value extent(std::uint32_t dim) { return extents_[dim]; }
    void emit_kernel_level();

    // Nodes.
    Value scalar(loopir::NodeId n);
    Value vector(loopir::NodeId n, int u);
    Value broadcast(loopir::NodeId n);
    Value lanes_of(loopir::NodeId n, int u) { return plan_.along_vector[n] ? vector(n, u) : broadcast(n); }
    Value compute(loopir::NodeId n, int u, bool as_vector);
    Value index_node(std::uint32_t dim, int u, bool as_vector);
    Value divide_by_invariant(Value a, loopir::NodeId divisor);
    void materialise(loopir::NodeId n);
    void prepare(std::uint32_t pass, Level at);
    void prepare_access(const loopir::Access& a, DType dtype, Level at);
    void walk(loopir::NodeId n, std::vector<bool>& seen, const std::function<bool(loopir::NodeId)>& enter);
    void walk_access(const loopir::Access& a, std::vector<bool>& seen,
                     const std::function<bool(loopir::NodeId)>& enter);
    void forget(Level from);

    // Memory.
    Offsets row_offsets(const loopir::Access& a);
    Offsets outer_offsets(const loopir::Access& a);
    Value mask_allows(const loopir::Access& a, int u);
    Offsets gather_scalars(const loopir::Access& a, Level level, Offsets so_far, int u);
    Value gather_index(const loopir::GatherTerm& g, Value index, Value active, Value* in_range);
    Place place(const loopir::Access& a, DType dtype, int u);
    Offsets inner_terms(const loopir::Access& a, int u);
    Value outer_pointer(const loopir::Access& a, DType dtype);
    Value load_vector(const loopir::Access& a, DType dtype, int u);
    void store_vector(const loopir::Access& a, DType dtype, Value v, int u);
    Value load_scalar(const loopir::Access& a, DType dtype);
    void store_scalar(const loopir::Access& a, DType dtype, Value v);
    Value load_contiguous(Value pointer, DType dtype, Value mask);
    void store_contiguous(Value pointer, DType dtype, Value v, Value mask);
    Value load_lanes(Value pointer, Value offsets, DType dtype, Value mask);
    void store_lanes(Value pointer, Value offsets, DType dtype, Value v, Value mask);
    Value scratch_address(std::uint32_t slot, DType dtype, int u);
    Value element_pointer(Value base, DType dtype, Value elements);
    Value zero_location();
    Value lane_mask(int u) const { return mask_[static_cast<size_t>(u)]; }
    Value and_masks(Value a, Value b);
    void report_fault(Value bad);

    // Reductions.
    std::vector<Reduction> reductions(std::uint32_t pass) const;
    Value identity(const Reduction& r, Type t);
    Value combine(const Reduction& r, Value a, Value b);
    void combine_arg(const Reduction& r, Value& value, Value& position, Value other, Value other_position);
    Value row_position(int u);
    std::vector<Value> identities(const std::vector<Reduction>& all, int copies);
    void finish_reductions(const std::vector<Reduction>& all, std::vector<Value> carried, int copies);

    // Loops.
    std::vector<Value> loop(Value begin, Value end, std::int64_t step, std::vector<Value> carried,
                            const std::function<void(Value, std::vector<Value>&)>& body);
    std::vector<Value> summing_loop(const std::vector<Reduction>& all, Value begin, Value end, std::int64_t step,
                                    int copies, std::vector<Value> carried,
                                    const std::function<void(Value, std::vector<Value>&)>& body);
    void emit_passes();
    void emit_pass(std::uint32_t pass);
    void outer_loops(std::uint32_t pass, size_t depth, const std::vector<Reduction>& all, int copies,
                     std::vector<Value>& carried);
    std::vector<Value> inner_loops(std::uint32_t pass, const std::vector<Reduction>& all, std::vector<Value> carried);
    void loop_body(std::uint32_t pass, const std::vector<Reduction>& all, int copies, std::vector<Value>& carried);
    void run_once_stages(std::uint32_t pass);
    void set_tail_masks(Value remaining, int copies);
    Value mask_of_count(Value count);
    void set_row_indices(Value flat, const std::vector<std::uint32_t>& dims);
    Value block_count(std::uint32_t dim);

    Ir& ir_;
    const RowPlan& plan_;
    const loopir::Body& body_;
    ExprEmitter expr_;

    Value buffers_ = nullptr, params_ = nullptr, fault_ = nullptr, scratch_ = nullptr, scratch_row_bytes_ = nullptr;
    Value sink_ = nullptr;
    std::map<std::int64_t, Value> slots_;
    std::vector<Value> buffer_pointers_;
    std::vector<Value> extents_;
    std::vector<Value> index_;  // per dim; the first lane's along the vector dim
    std::vector<Value> scalars_, broadcasts_;
    std::vector<Lanes> vectors_;
    std::map<loopir::NodeId, std::array<Value, 2>> reciprocals_;
    std::map<const loopir::Access*, Offsets> row_offsets_, outer_offsets_;
    std::map<const loopir::Access*, Value> outer_pointers_;
    std::vector<Lanes> row_values_;  // per stage
    Lanes mask_{};
    std::uint32_t pass_ = 0;
    Value outer_position_ = nullptr;
    Value inner_begin_ = nullptr, inner_end_ = nullptr;  // null: the whole inner dim
    Value outer_begin_ = nullptr, outer_end_ = nullptr;  // of the first outer row dim
    // Hooks of contractions.
    Value sums_ = nullptr, sums_first_ = nullptr;
    DType sums_dtype_ = DType::kF32;
    Value output_row_ = nullptr;
};

}  // namespace flexor::codegen::cpu_llvm
