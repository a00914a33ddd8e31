#pragma once
// Builds one loop-IR kernel: buffers by root register, integers by dim expression, bodies from members of a unit.
#include <map>
#include <unordered_map>

#include "loopir/kernel.h"
#include "lower/units.h"

namespace flexor::lower {

using loopir::Access;
using loopir::Body;
using loopir::BodyBuilder;
using loopir::IntRef;
using loopir::NodeId;

// What a kernel's int64 parameter holds.
struct Param {
    std::optional<Dim> dim;  // an integer
    Reg scalar = kNoReg;     // or the bits of a run-time scalar
};

class KernelBuilder {
public:
    // `producers`: by register, the instruction that makes it (null for block parameters).
    KernelBuilder(const Program& program, const specialised::Block& block, const BlockUnits& units,
                  const Grouper& grouper, const std::vector<const Inst*>& producers)
        : program_(program), block_(block), units_(units), grouper_(grouper), producers_(producers) {}

    loopir::Kernel kernel;
    std::vector<Reg> roots;  // per buffer: the root register; kNoReg for `packed`
    std::vector<Param> params;

    IntRef integer(const Dim& d);  // constant, or the slot of a parameter
    std::uint32_t scalar_param(Reg reg);
    std::uint32_t buffer(Reg root, bool written);
    Dim dim_of(const IntRef& ref) const {
        return ref.is_constant ? Dim(ref.value) : *params[static_cast<std::size_t>(ref.value)].dim;
    }
    // The members of a row unit as a body with `parallel` dims first. Stores what `stores` says. With `sink`, the value
    // of that register is the only store and goes to buffer 0 unspecified (a contraction's prologue).
    Body row_body(const Unit& unit, Reg sink);
    // Members after the contraction itself: dims are the result's dims in order.
    Body epilogue_body(const Unit& unit);
    // One copy of `from` (any geometry) into `to` of the same shape.
    Body copy_body(Reg from, Reg to_root, const types::TensorType& to);

    // Merges neighbouring dims that every access steps through as one; drops dims of one point.
    void collapse(Body& body);

    // Drops parameters that nothing in the finished kernel names, and sets kernel.param_count.
    void finish();

private:
    struct Scope {
        const Unit* unit = nullptr;
        Body* body = nullptr;
        std::vector<int> body_dim;               // space dim -> body dim
        std::unordered_map<Reg, NodeId> values;  // registers made in the kernel
    };
    NodeId member_value(Scope& scope, const Member& member);
    NodeId read(Scope& scope, Form form, const std::vector<Dim>& shape, Reg reg);
    NodeId scalar_value(BodyBuilder& b, Reg reg, DType wanted);
    NodeId widened(BodyBuilder& b, NodeId value, DType to);  // to `to`, f16 and bf16 computed in f32
    Access access(Scope& scope, const std::vector<int>& dims, const types::TensorType& type, Reg root, bool written);
    void store_member(Scope& scope, const Member& member);
    const types::TensorType& type(Reg r) const { return program_.registers[r].type.type; }
    bool is_stored(Reg r) const { return units_.stored[r]; }

    const Program& program_;
    const specialised::Block& block_;
    const BlockUnits& units_;
    const Grouper& grouper_;
    const std::vector<const Inst*>& producers_;
    std::map<Reg, std::uint32_t> buffers_;
    std::unordered_map<Dim, std::uint32_t> dims_;
    friend class ElementIndexer;
};

}  // namespace flexor::lower
