// Lists. A list whose length is known is the values of its elements; one that grows in a loop is a register, and its
// length a dim. What a list of the run holds is asked at run time: sizes of its elements are symbols.
#include <algorithm>

#include "ops/rules.h"
#include "specialize/specializer.h"

namespace flexor::specialize {

using bytecode::Instruction;
using bytecode::Opcode;
using specialised::ListQuery;
using types::kDimInfinity;
using types::Range;
using Kind = LiveValue::Kind;

namespace {

LiveValue make_list_part(Kind kind, Reg reg, Dim integer) {
    LiveValue v;
    v.kind = kind;
    v.reg = reg;
    v.integer = std::move(integer);
    return v;
}

}  // namespace

// What the elements have in common; none for an empty list or one that no register holds.
std::optional<ElementType> Specializer::element_type(const LiveValue& list) const {
    if (list.kind == Kind::kRunList) return program_.registers[list.reg].list;
    std::optional<ElementType> common;
    for (const LiveValue& element : list.elements) {
        if (element.kind != Kind::kReg) return std::nullopt;
        const ops::ArgType& type = program_.registers[element.reg].type;
        if (type.strength == types::Strength::kScalar) return std::nullopt;
        const ElementType own{type.type.dtype, type.type.rank(),
                              type.type.strides == types::contiguous_strides(type.type.sizes)};
        if (!common) common = own;
        if (own.dtype != common->dtype || own.rank != common->rank) return std::nullopt;
        common->contiguous = common->contiguous && own.contiguous;
    }
    return common;
}

// The type of a register that can hold any of the lists.
std::optional<ElementType> Specializer::common_element(std::span<const LiveValue* const> lists) const {
    std::optional<ElementType> common;
    for (const LiveValue* list : lists) {
        if (list->kind != Kind::kList && list->kind != Kind::kRunList) return std::nullopt;
        if (list->kind == Kind::kList && list->elements.empty()) continue;
        const std::optional<ElementType> own = element_type(*list);
        if (!own || (common && (own->dtype != common->dtype || own->rank != common->rank))) return std::nullopt;
        const bool contiguous = own->contiguous && (!common || common->contiguous);
        common = own;
        common->contiguous = contiguous;
    }
    return common;
}

Reg Specializer::list_register(const ElementType& type) {
    ops::ArgType none;
    none.type.dtype = type.dtype;
    const Reg reg = new_register(std::move(none));
    program_.registers[reg].list = type;
    program_.has_lists = true;
    return reg;
}

// The list as a register; the instruction that makes one stands at the end of `block`.
LiveValue Specializer::as_run_list(const LiveValue& list, const ElementType& type, std::uint32_t at) {
    if (list.kind == Kind::kRunList) return list;
    Inst inst;
    inst.kind = InstKind::kListOf;
    for (const LiveValue& element : list.elements) inst.operands.push_back(element.reg);
    const Reg reg = list_register(type);
    inst.results = {reg};
    program_.blocks[at].insts.push_back(std::move(inst));
    return make_list_part(Kind::kRunList, reg, static_cast<std::int64_t>(list.elements.size()));
}

// Emits a query; what it finds is a new symbol.
Dim Specializer::ask_list(ListQuery query, Reg list, const Dim& position, std::size_t axis, Range range,
                          std::int32_t pc) {
    Inst inst;
    inst.kind = InstKind::kListQuery;
    inst.query = query;
    inst.operands = {list};
    inst.dim = position;
    inst.index = static_cast<std::uint32_t>(axis);
    inst.symbol = program_.env.add_symbol("list" + std::to_string(pc) + "." + std::to_string(axis), range);
    const Dim symbol = Dim::symbol(inst.symbol);
    emit(std::move(inst), pc);
    return symbol;
}

bool Specializer::append(std::int32_t pc, State& state) {
    const LiveValue value = std::move(state.stack.back());
    LiveValue& list = state.stack[state.stack.size() - 2];
    if (list.kind == Kind::kList) {
        list.elements.push_back(value);
        state.stack.pop_back();
        return true;
    }
    const auto give_back = [&](std::string why) {
        state.stack.back() = value;
        return refuse(std::move(why));
    };
    if (list.kind != Kind::kRunList) return give_back("an append to what may be no list");
    LiveValue one;
    one.kind = Kind::kList;
    one.elements = {value};
    const LiveValue* both[] = {&list, &one};
    const std::optional<ElementType> type = common_element(both);
    if (!type) return give_back("an element of another dtype or rank than those of its list");
    Inst inst;
    inst.kind = InstKind::kListAppend;
    inst.operands = {list.reg, value.reg};
    const Reg reg = list_register(*type);
    inst.results = {reg};
    list = make_list_part(Kind::kRunList, reg, program_.env.simplify(list.integer + Dim(1)));
    state.stack.pop_back();
    emit(std::move(inst), pc);
    return true;
}

// Element `position` of a list of the run, which is known to be there. `known`: the elements of the list; sizes that all
// of them have need not be asked for.
LiveValue Specializer::run_element(const LiveValue& list, std::span<const LiveValue> known, const Dim& position,
                                   std::int32_t pc) {
    const ElementType type = *program_.registers[list.reg].list;
    ops::ArgType element;
    element.type.dtype = type.dtype;
    element.strength = type.rank == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
    for (std::size_t a = 0; a < static_cast<std::size_t>(type.rank); ++a) {
        const auto size = [&](const LiveValue& v) { return program_.registers[v.reg].type.type.sizes[a]; };
        const bool alike = !known.empty() && std::ranges::all_of(known, [&](const LiveValue& v) {
            return program_.env.eq(size(known[0]), size(v)) == Truth::kTrue;
        });
        element.type.sizes.push_back(alike ? size(known[0])
                                           : ask_list(ListQuery::kSize, list.reg, position, a, {0, kDimInfinity}, pc));
    }
    if (type.contiguous) {
        element.type.strides = types::contiguous_strides(element.type.sizes);
    } else {
        for (int a = 0; a < type.rank; ++a) {
            element.type.strides.push_back(ask_list(ListQuery::kStride, list.reg, position, static_cast<std::size_t>(a),
                                                    {-kDimInfinity, kDimInfinity}, pc));
        }
    }
    Inst inst;
    inst.kind = InstKind::kListGet;
    inst.operands = {list.reg};
    inst.dim = position;
    const LiveValue out = make_list_part(Kind::kReg, new_register(std::move(element)), 0);
    inst.results = {out.reg};
    // It may be anything that was ever put into a list.
    Memory any;
    any.param = any.any = true;
    any.block = ~std::uint32_t{0};
    memory_[out.reg] = std::move(any);
    emit(std::move(inst), pc);
    return out;
}

bool Specializer::get_element(std::int32_t pc, State& state) {
    const LiveValue index = state.stack.back();
    const LiveValue list = state.stack[state.stack.size() - 2];
    if ((list.kind != Kind::kList && list.kind != Kind::kRunList) || !is_integral(index))
        return refuse("an element of what may be no list");
    const Dim at = program_.env.simplify(index.integer);
    LiveValue element;
    if (list.kind == Kind::kList && at.is_constant()) {
        const auto size = static_cast<std::int64_t>(list.elements.size());
        const std::int64_t position = at.constant() < 0 ? at.constant() + size : at.constant();
        if (position < 0 || position >= size) return refuse("a list index out of range");
        element = list.elements[static_cast<std::size_t>(position)];
    } else {
        const std::optional<ElementType> type = element_type(list);
        if (!type) return refuse("a list index known only at run time, of a list of several kinds");
        const LiveValue run = as_run_list(list, *type, block_);
        const auto in_range = [&](const Dim& low, const Dim& high) {
            require({ops::Requirement::Kind::kCheck, ops::Relation::kLe, low, high, 0, false,
                     DiagnosticId::kElementIndexOutOfRange},
                    nullptr, pc);
        };
        in_range(Dim(0) - run.integer, at);
        in_range(at, run.integer - Dim(1));
        const bool front = program_.env.le(0, at) == Truth::kTrue;
        const Dim position = front ? at : Dim::mod(at, run.integer);
        element = run_element(run, list.elements, program_.env.simplify(position), pc);
    }
    state.stack.resize(state.stack.size() - 2);
    state.stack.push_back(std::move(element));
    return true;
}

bool Specializer::set_element(State& state) {
    const LiveValue& index = state.stack[state.stack.size() - 2];
    LiveValue& list = state.stack[state.stack.size() - 3];
    if (list.kind != Kind::kList || !is_integral(index)) return refuse("a change of a list of unknown length");
    const Dim at = program_.env.simplify(index.integer);
    if (!at.is_constant()) return refuse("a list index known only at run time");
    const auto size = static_cast<std::int64_t>(list.elements.size());
    const std::int64_t position = at.constant() < 0 ? at.constant() + size : at.constant();
    if (position < 0 || position >= size) return refuse("a list index out of range");
    list.elements[static_cast<std::size_t>(position)] = state.stack.back();
    state.stack.resize(state.stack.size() - 2);
    return true;
}

bool Specializer::unpack(std::size_t count, std::int32_t pc, State& state) {
    const LiveValue list = state.stack.back();
    if (list.kind == Kind::kList) {
        if (list.elements.size() != count) return refuse("a list of another length");
        state.stack.pop_back();
        for (const LiveValue& element : list.elements) state.stack.push_back(element);
        return true;
    }
    if (list.kind != Kind::kRunList) return refuse("what may be no list");
    require({ops::Requirement::Kind::kCheck, ops::Relation::kEq, list.integer, Dim(static_cast<std::int64_t>(count)), 0,
             false, DiagnosticId::kValueKindMismatch},
            nullptr, pc);
    state.stack.pop_back();
    for (std::size_t i = 0; i < count; ++i)
        state.stack.push_back(run_element(list, {}, static_cast<std::int64_t>(i), pc));
    return true;
}

bool Specializer::list_step(const Instruction& instruction, std::int32_t pc, State& state) {
    auto& stack = state.stack;
    switch (instruction.op) {
        case Opcode::kBuildList: {
            LiveValue list;
            list.kind = Kind::kList;
            const auto n = static_cast<std::ptrdiff_t>(instruction.a);
            list.elements.assign(stack.end() - n, stack.end());
            stack.resize(stack.size() - static_cast<std::size_t>(n));
            stack.push_back(std::move(list));
            return true;
        }
        case Opcode::kListAppend: return append(pc, state);
        case Opcode::kListGet: return get_element(pc, state);
        case Opcode::kListSet: return set_element(state);
        case Opcode::kUnpack: return unpack(static_cast<std::size_t>(instruction.a), pc, state);
        default: break;  // kListLength
    }
    const LiveValue list = stack.back();
    if (list.kind != Kind::kList && list.kind != Kind::kRunList) return refuse("the length of what may be no list");
    const auto known = static_cast<std::int64_t>(list.elements.size());
    stack.back() = make_list_part(Kind::kInt, kNoReg, list.kind == Kind::kList ? Dim(known) : list.integer);
    return true;
}

// concat or stack of a list of the run.
bool Specializer::join_list(const ops::OpDef& op, std::size_t first, const types::Attrs& attrs, std::int32_t pc,
                            State& state) {
    const LiveValue list = state.stack[first];
    const bool stacks = &op == ops::find_op("stack");
    if (!stacks && &op != ops::find_op("concat"))
        return refuse("op '" + std::string(op.name.value) + "' of a list of unknown length");
    const ElementType type = *program_.registers[list.reg].list;
    const Dim given = attrs.integer("axis");
    const int axis = given.is_constant() ? ops::rules::normal_axis(given.constant(), type.rank + (stacks ? 1 : 0)) : -1;
    if (axis < 0) return refuse("an axis that the joined list does not have");
    const auto check = [&](int constraint, ops::Relation relation, const Dim& a, const Dim& b) {
        require({ops::Requirement::Kind::kCheck, relation, a, b, constraint, false}, &op, pc);
    };
    const auto at = static_cast<std::size_t>(axis);
    check(2, ops::Relation::kLe, 1, list.integer);
    const Dim alike =
        ask_list(ListQuery::kAlike, list.reg, 0, stacks ? static_cast<std::size_t>(type.rank) : at, {0, 1}, pc);
    check(4, ops::Relation::kEq, alike, 1);
    std::vector<Dim> sizes;
    for (std::size_t a = 0; a < static_cast<std::size_t>(type.rank); ++a) {
        const ListQuery query = !stacks && a == at ? ListQuery::kTotal : ListQuery::kSize;
        sizes.push_back(ask_list(query, list.reg, 0, a, {0, kDimInfinity}, pc));
    }
    if (stacks) sizes.insert(sizes.begin() + axis, list.integer);
    ops::ArgType result;
    result.type = types::contiguous_type(type.dtype, std::move(sizes), Device{});
    result.strength = result.type.rank() == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
    Inst inst;
    inst.kind = InstKind::kListJoin;
    inst.operands = {list.reg};
    inst.index = static_cast<std::uint32_t>(axis);
    inst.new_axis = stacks;
    const Reg reg = new_register(std::move(result));
    inst.results = {reg};
    emit(std::move(inst), pc);
    state.stack.resize(first);
    state.stack.push_back(make_list_part(Kind::kReg, reg, 0));
    return true;
}

}  // namespace flexor::specialize
