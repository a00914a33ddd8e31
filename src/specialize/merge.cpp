// Joining states where paths meet: what agrees passes through, what differs becomes an argument of the block.
#include <algorithm>

#include "specialize/specializer.h"

namespace flexor::specialize {

using types::kDimInfinity;

bool Specializer::same(const LiveValue& a, const LiveValue& b) const {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case LiveValue::Kind::kUnset:
        case LiveValue::Kind::kNone: return true;
        case LiveValue::Kind::kReg:
        case LiveValue::Kind::kOpaque: return a.reg == b.reg;
        case LiveValue::Kind::kInt:
        case LiveValue::Kind::kBool: return program_.env.eq(a.integer, b.integer) == Truth::kTrue;
        case LiveValue::Kind::kRunList: return a.reg == b.reg && program_.env.eq(a.integer, b.integer) == Truth::kTrue;
        case LiveValue::Kind::kFloat: return a.real == b.real;
        case LiveValue::Kind::kString:
        case LiveValue::Kind::kFunction: return a.text == b.text;
        case LiveValue::Kind::kList:
            if (a.elements.size() != b.elements.size()) return false;
            for (std::size_t i = 0; i < a.elements.size(); ++i) {
                if (!same(a.elements[i], b.elements[i])) return false;
            }
            return true;
    }
    return false;
}

Reg Specializer::as_register(const LiveValue& value, std::uint32_t at) {
    if (value.kind == LiveValue::Kind::kReg) return value.reg;
    Inst inst;
    inst.kind = InstKind::kConst;
    inst.constant = ConstScalar{value.real};
    const Reg reg = float_register();
    inst.results = {reg};
    program_.blocks[at].insts.push_back(std::move(inst));
    return reg;
}

// One value of a join of several paths, all of them known.
bool Specializer::join_value(const std::string& path, std::vector<Incoming>& incoming,
                             const std::vector<const LiveValue*>& values, std::uint32_t to, LiveValue& out) {
    const LiveValue& first = *values[0];
    bool all_same = true;
    bool any_unset = false;
    for (const LiveValue* v : values) {
        all_same = all_same && same(first, *v);
        any_unset = any_unset || v->kind == LiveValue::Kind::kUnset;
    }
    if (all_same) {
        out = first;
        return true;
    }
    if (any_unset) {  // not set on every path: unusable after the join
        out = LiveValue{};
        return true;
    }
    const auto edge = [&](std::size_t i) -> Target& {
        return program_.blocks[incoming[i].block].terminator.targets[incoming[i].target];
    };
    const auto carried_dim = [&](const std::string& what, const auto& get, types::Range range) -> Dim {
        const Dim d0 = get(*values[0]);
        bool equal = true;
        for (const LiveValue* v : values) equal = equal && program_.env.eq(d0, get(*v)) == Truth::kTrue;
        if (equal) return d0;
        const auto id = program_.env.add_symbol(what, range);
        program_.blocks[to].symbols.push_back(id);
        for (std::size_t i = 0; i < values.size(); ++i) edge(i).symbols.push_back(get(*values[i]));
        return Dim::symbol(id);
    };
    const auto is_list = [](const LiveValue* v) {
        return v->kind == LiveValue::Kind::kList || v->kind == LiveValue::Kind::kRunList;
    };
    const bool as_static = std::ranges::all_of(values, [&](const LiveValue* v) {
        return v->kind == LiveValue::Kind::kList && v->elements.size() == first.elements.size();
    });
    if (std::ranges::all_of(values, is_list) && !as_static) {
        const std::optional<ElementType> type = common_element(values);
        if (!type) return refuse("paths meet with lists of different length");
        out.kind = LiveValue::Kind::kRunList;
        out.reg = list_register(*type);
        program_.blocks[to].params.push_back(out.reg);
        for (std::size_t i = 0; i < values.size(); ++i)
            edge(i).args.push_back(as_run_list(*values[i], *type, incoming[i].block).reg);
        const auto length = [](const LiveValue& v) {
            return v.kind == LiveValue::Kind::kList ? Dim(static_cast<std::int64_t>(v.elements.size())) : v.integer;
        };
        out.integer = carried_dim(path + ".length", length, {0, kDimInfinity});
        return true;
    }
    for (const LiveValue* v : values) {
        // A float that is computed is a register, as a tensor is.
        if (is_float(first) != is_float(*v) || (!is_float(first) && v->kind != first.kind))
            return refuse("paths meet with values of different kinds");
    }
    if (is_float(first)) {
        out.kind = LiveValue::Kind::kReg;
        for (std::size_t i = 0; i < values.size(); ++i)
            edge(i).args.push_back(as_register(*values[i], incoming[i].block));
        out.reg = float_register();
        program_.blocks[to].params.push_back(out.reg);
        return true;
    }
    switch (first.kind) {
        case LiveValue::Kind::kInt:
        case LiveValue::Kind::kBool: {
            const types::Range range =
                first.kind == LiveValue::Kind::kBool ? types::Range{0, 1} : types::Range{-kDimInfinity, kDimInfinity};
            out.kind = first.kind;
            out.integer = carried_dim(path, [](const LiveValue& v) { return v.integer; }, range);
            return true;
        }
        case LiveValue::Kind::kList: {
            out.kind = first.kind;
            out.elements.resize(first.elements.size());
            for (std::size_t e = 0; e < first.elements.size(); ++e) {
                std::vector<const LiveValue*> element;
                for (const LiveValue* v : values) element.push_back(&v->elements[e]);
                if (!join_value(path + "[" + std::to_string(e) + "]", incoming, element, to, out.elements[e]))
                    return false;
            }
            return true;
        }
        case LiveValue::Kind::kReg: {
            const auto type_of = [&](const LiveValue& v) -> const ops::ArgType& {
                return program_.registers[v.reg].type;
            };
            for (const LiveValue* v : values) {
                if (type_of(*v).type.dtype != type_of(first).type.dtype ||
                    type_of(*v).type.rank() != type_of(first).type.rank()) {
                    return refuse("paths meet with tensors of different dtype or rank");
                }
            }
            ops::ArgType type = type_of(first);
            for (std::size_t a = 0; a < type.type.sizes.size(); ++a) {
                type.type.sizes[a] =
                    carried_dim(path + "." + std::to_string(a),
                                [&](const LiveValue& v) { return type_of(v).type.sizes[a]; }, {0, kDimInfinity});
            }
            bool contiguous = true;
            for (const LiveValue* v : values) {
                const types::TensorType& t = type_of(*v).type;
                contiguous = contiguous && t.strides == types::contiguous_strides(t.sizes);
            }
            if (contiguous) {
                type.type.strides = types::contiguous_strides(type.type.sizes);
            } else {
                for (std::size_t a = 0; a < type.type.strides.size(); ++a) {
                    type.type.strides[a] = carried_dim(path + ".stride" + std::to_string(a),
                                                       [&](const LiveValue& v) { return type_of(v).type.strides[a]; },
                                                       {-kDimInfinity, kDimInfinity});
                }
            }
            type.type.offset = carried_dim(path + ".offset", [&](const LiveValue& v) { return type_of(v).type.offset; },
                                           {-kDimInfinity, kDimInfinity});
            for (std::size_t i = 0; i < values.size(); ++i) edge(i).args.push_back(values[i]->reg);
            out.kind = LiveValue::Kind::kReg;
            out.reg = new_register(type);
            program_.blocks[to].params.push_back(out.reg);
            std::vector<Reg> sources;
            for (const LiveValue* v : values) sources.push_back(v->reg);
            bind_param(out.reg, to, sources, "");
            return true;
        }
        default: return refuse("paths meet with different values");
    }
}

bool Specializer::join(std::int32_t leader, std::vector<Incoming>& incoming, State& state) {
    const std::uint32_t to = new_block();
    for (Incoming& i : incoming) {
        Target& target = program_.blocks[i.block].terminator.targets[i.target];
        target = Target{};
        target.block = to;
    }
    state = State{};
    bool joined = incoming[0].state.stack.size() == incoming[1].state.stack.size();
    const auto join_list = [&](char prefix, std::vector<LiveValue> State::* member) {
        for (std::size_t v = 0; joined && v < (incoming[0].state.*member).size(); ++v) {
            std::vector<const LiveValue*> values;
            for (Incoming& i : incoming) values.push_back(&(i.state.*member)[v]);
            LiveValue out;
            joined = join_value(prefix + std::to_string(v), incoming, values, to, out);
            (state.*member).push_back(std::move(out));
        }
    };
    join_list('l', &State::locals);
    join_list('s', &State::stack);
    if (joined) {
        block_ = to;
        return true;
    }
    // Types that cannot meet: each path leaves the region here with its own values.
    for (Incoming& i : incoming) {
        Target& target = program_.blocks[i.block].terminator.targets[i.target];
        target = Target{};
        target.block = new_block();
        block_ = program_.blocks[i.block].terminator.targets[i.target].block;
        leave(leader, i.state, reason_);
        if (stopped()) break;
    }
    program_.blocks[to].params.clear();
    program_.blocks[to].symbols.clear();
    return false;
}

// Makes `value` an argument of the loop head `to`; `entry` receives the value of the first iteration.
LiveValue Specializer::carry(const std::string& path, const LiveValue& value, std::uint32_t to, Target& entry) {
    const auto widen = [&](const std::string& what, const Dim& d, types::Range range, bool always) -> Dim {
        if (!always && known_.widened.count(path + what) == 0) return d;
        const auto id = program_.env.add_symbol(path + what, range);
        program_.blocks[to].symbols.push_back(id);
        entry.symbols.push_back(d);
        return Dim::symbol(id);
    };
    LiveValue out = value;
    switch (value.kind) {
        case LiveValue::Kind::kInt:
            out.integer = widen("", value.integer, {-kDimInfinity, kDimInfinity}, true);
            return out;
        case LiveValue::Kind::kBool: out.integer = widen("", value.integer, {0, 1}, true); return out;
        case LiveValue::Kind::kFloat:
        case LiveValue::Kind::kReg: {
            const std::uint32_t from = block_;
            const Reg incoming = as_register(value, from);
            ops::ArgType type = program_.registers[incoming].type;
            if (type.strength != types::Strength::kScalar) {
                const bool contiguous = type.type.strides == types::contiguous_strides(type.type.sizes);
                for (std::size_t a = 0; a < type.type.sizes.size(); ++a) {
                    type.type.sizes[a] = widen("." + std::to_string(a), type.type.sizes[a], {0, kDimInfinity}, false);
                }
                // Contiguous at entry, something else later: every stride is carried.
                const bool all = known_.widened.count(path + ".strides") != 0;
                if (contiguous && !all) {
                    type.type.strides = types::contiguous_strides(type.type.sizes);
                } else {
                    for (std::size_t a = 0; a < type.type.strides.size(); ++a) {
                        type.type.strides[a] = widen(".stride" + std::to_string(a), type.type.strides[a],
                                                     {-kDimInfinity, kDimInfinity}, all);
                    }
                }
                type.type.offset = widen(".offset", type.type.offset, {-kDimInfinity, kDimInfinity}, false);
            }
            out.kind = LiveValue::Kind::kReg;
            out.reg = new_register(type);
            program_.registers[out.reg].name = program_.registers[incoming].name;
            bind_param(out.reg, to, {&incoming, 1}, path);
            program_.blocks[to].params.push_back(out.reg);
            entry.args.push_back(incoming);
            return out;
        }
        case LiveValue::Kind::kList:
        case LiveValue::Kind::kRunList: {
            const auto grows = known_.lists.find(path);
            const std::optional<ElementType> own = element_type(value);
            const bool fits = own || value.elements.empty();
            if (fits && (grows != known_.lists.end() || value.kind == LiveValue::Kind::kRunList)) {
                ElementType type = grows != known_.lists.end() ? grows->second : *own;
                if (known_.widened.count(path + ".strides") != 0 || (own && !own->contiguous)) type.contiguous = false;
                const LiveValue list = as_run_list(value, type, block_);
                out = LiveValue{};
                out.kind = LiveValue::Kind::kRunList;
                out.reg = list_register(type);
                program_.blocks[to].params.push_back(out.reg);
                entry.args.push_back(list.reg);
                out.integer = widen(".length", list.integer, {0, kDimInfinity}, true);
                return out;
            }
            for (std::size_t e = 0; e < value.elements.size(); ++e) {
                out.elements[e] = carry(path + "[" + std::to_string(e) + "]", value.elements[e], to, entry);
            }
            return out;
        }
        default: return out;
    }
}

void Specializer::open_loop(std::int32_t leader, State& state) {
    const std::uint32_t from = block_;
    const std::uint32_t to = new_block();
    program_.blocks[to].loop_head = true;
    straight_ = false;
    Target entry;
    entry.block = to;
    OpenLoop open;
    open.block = to;
    open.stored = flow_->loops.at(leader);
    const std::string base =
        std::to_string(depth_) + ":" + std::to_string(function_index_) + ":" + std::to_string(leader) + "/";
    for (std::int32_t local : open.stored) {
        LiveValue& value = state.locals[static_cast<std::size_t>(local)];
        value = carry(base + "l" + std::to_string(local), value, to, entry);
    }
    open.carried = state;
    Terminator& terminator = program_.blocks[from].terminator;
    terminator = Terminator{};
    terminator.kind = Terminator::Kind::kJump;
    terminator.targets = {std::move(entry)};
    block_ = to;
    loops_[{depth_, leader}] = std::move(open);
}

// Gives the carried value its next value; records dims that must widen.
bool Specializer::feed(const LiveValue& carried, const LiveValue& value, const std::string& path, std::uint32_t from,
                       Target& out) {
    const std::vector<types::SymbolId>& symbols = program_.blocks[out.block].symbols;
    // Symbols are fed in the order in which the head took them: what it carries here is the next one.
    const auto is_carried = [&](const Dim& head) {
        const std::size_t next = out.symbols.size();
        return head.is_symbol() && next < symbols.size() && symbols[next] == head.symbol_id();
    };
    const auto agree = [&](const std::string& what, const Dim& head, const Dim& next) {
        if (is_carried(head)) {
            out.symbols.push_back(next);
        } else if (program_.env.eq(head, next) != Truth::kTrue) {
            known_.widened.insert(path + what);
            restart_ = true;
        }
    };
    switch (carried.kind) {
        case LiveValue::Kind::kInt:
        case LiveValue::Kind::kBool:
            if (value.kind != carried.kind) return false;
            agree("", carried.integer, value.integer);
            return true;
        case LiveValue::Kind::kReg: {
            const ops::ArgType& head = program_.registers[carried.reg].type;
            if (head.strength == types::Strength::kScalar) {
                if (!is_float(value)) return false;
                out.args.push_back(as_register(value, from));
                return true;
            }
            if (value.kind != LiveValue::Kind::kReg) return false;
            const ops::ArgType next = program_.registers[value.reg].type;
            if (next.strength == types::Strength::kScalar || next.type.dtype != head.type.dtype ||
                next.type.rank() != head.type.rank()) {
                return false;
            }
            const types::TensorType& h = program_.registers[carried.reg].type.type;
            for (std::size_t a = 0; a < h.sizes.size(); ++a) {
                agree("." + std::to_string(a), h.sizes[a], next.type.sizes[a]);
            }
            const bool strides_carried = std::any_of(h.strides.begin(), h.strides.end(), is_carried);
            const bool head_contiguous = h.strides == types::contiguous_strides(h.sizes);
            const bool next_contiguous = next.type.strides == types::contiguous_strides(next.type.sizes);
            if (head_contiguous && !strides_carried) {
                if (!next_contiguous) {
                    known_.widened.insert(path + ".strides");
                    restart_ = true;
                }
            } else {
                for (std::size_t a = 0; a < h.strides.size(); ++a) {
                    agree(".stride" + std::to_string(a), h.strides[a], next.type.strides[a]);
                }
            }
            agree(".offset", h.offset, next.type.offset);
            feed_param(carried.reg, value.reg, path);
            out.args.push_back(value.reg);
            return true;
        }
        case LiveValue::Kind::kRunList: {
            const LiveValue* both[] = {&carried, &value};
            const std::optional<ElementType> type = common_element(both);
            if (!type) return false;
            if (*type != *program_.registers[carried.reg].list) {
                known_.widened.insert(path + ".strides");
                restart_ = true;
                return true;
            }
            const LiveValue list = as_run_list(value, *type, from);
            out.args.push_back(list.reg);
            agree(".length", carried.integer, list.integer);
            return true;
        }
        case LiveValue::Kind::kList:
            if (value.kind != carried.kind || value.elements.size() != carried.elements.size()) {
                const LiveValue* both[] = {&carried, &value};
                const std::optional<ElementType> type = common_element(both);
                if (!type) return false;
                known_.lists.emplace(path, *type);
                restart_ = true;
                return true;
            }
            for (std::size_t e = 0; e < carried.elements.size(); ++e) {
                if (!feed(carried.elements[e], value.elements[e], path + "[" + std::to_string(e) + "]", from, out))
                    return false;
            }
            return true;
        default: return same(carried, value);
    }
}

void Specializer::close_loop(std::int32_t leader, std::uint32_t from, std::size_t target, const State& state) {
    const OpenLoop& open = loops_.at({depth_, leader});
    const std::string base =
        std::to_string(depth_) + ":" + std::to_string(function_index_) + ":" + std::to_string(leader) + "/";
    Target back;
    back.block = open.block;
    bool fits = state.stack.size() == open.carried.stack.size();
    for (std::size_t i = 0; fits && i < state.stack.size(); ++i) fits = same(open.carried.stack[i], state.stack[i]);
    for (std::size_t i = 0; fits && i < state.locals.size(); ++i) {
        if (open.stored.count(static_cast<std::int32_t>(i)) == 0) continue;
        fits = feed(open.carried.locals[i], state.locals[i], base + "l" + std::to_string(i), from, back);
    }
    if (fits) {
        program_.blocks[from].terminator.targets[target] = std::move(back);
        return;
    }
    // The next iteration has other types: the region ends at the head, and the VM enters again with them.
    const std::uint32_t saved = block_;
    const std::uint32_t end = new_block();
    Target leave_target;
    leave_target.block = end;
    program_.blocks[from].terminator.targets[target] = std::move(leave_target);
    block_ = end;
    leave(leader, state, "a loop changes the kind of a value");
    block_ = saved;
}

}  // namespace flexor::specialize
