// The entry of a region: live values become registers and symbols, declarations become facts and guards.
#include <cstdlib>

#include "specialize/specializer.h"

namespace flexor::specialize {

using executable::LiveKind;
using executable::LiveSignature;
using types::kDimInfinity;
using types::LayoutKind;
using types::Range;

namespace {

std::vector<Dim> permuted_strides(const std::vector<Dim>& sizes, std::uint64_t order) {
    const std::size_t rank = sizes.size();
    std::vector<Dim> strides(rank, Dim(1));
    Dim running = 1;
    for (std::size_t i = rank; i-- > 0;) {
        const auto axis = static_cast<std::size_t>((order >> (4 * i)) & 15u);
        strides[axis] = running;
        running = running * sizes[axis];
    }
    return strides;
}

}  // namespace

void Specializer::guard(ops::Relation relation, const Dim& a, const Dim& b) {
    program_.guards.push_back({ops::Requirement::Kind::kGuard, relation, a, b, 0, false});
}

Dim Specializer::slot_symbol(const std::string& name, std::uint32_t slot, Range range) {
    const auto id = program_.env.add_symbol(name, range, region_.frame[slot]);
    program_.entry_symbols.push_back({id, slot});
    return Dim::symbol(id);
}

// The declared dim decides: a constant or an earlier symbol is a fact with a guard, a new symbol takes its name and
// range.
Dim Specializer::entry_size(const bytecode::ParamDecl* decl, std::size_t axis, const std::string& name,
                            std::uint32_t slot) {
    const std::int64_t hint = region_.frame[slot];
    const bool declared =
        decl != nullptr && decl->kind == bytecode::ParamKind::kTensor && !decl->any_rank && axis < decl->dims.size();
    const bool frozen = declared && axis < decl->frozen.size() && decl->frozen[axis];
    std::string symbol_name = name + "." + std::to_string(axis);
    Range range{0, kDimInfinity};
    types::SymbolId module_symbol = 0;
    const bool names_symbol = declared && decl->dims[axis].is_symbol();
    bool first_use = false;
    if (names_symbol) {
        module_symbol = decl->dims[axis].symbol_id();
        first_use = module_symbols_.count(module_symbol) == 0;
        if (first_use) {
            symbol_name = module_.symbols[module_symbol].name;
            range = module_.symbols[module_symbol].range;
            if (range.lo < 0) range.lo = 0;
        }
    }
    const Dim size = slot_symbol(symbol_name, slot, range);
    if (names_symbol && first_use) {
        module_symbols_[module_symbol] = size;
        if (range.lo > 0) guard(ops::Relation::kLe, range.lo, size);
        if (range.hi < kDimInfinity) guard(ops::Relation::kLe, size, range.hi);
    }
    const bool expression = declared && !names_symbol && !decl->dims[axis].is_constant();
    if (region_.exact_only || frozen) {
        if (frozen) program_.events.push_back("FROZEN on " + symbol_name + ": entry for " + std::to_string(hint));
        guard(ops::Relation::kEq, size, hint);
        program_.env.assume_eq(size, hint);
        if (expression) deferred_.push_back({decl->dims[axis], hint});
        return hint;
    }
    if (!declared) return size;
    if (decl->dims[axis].is_constant()) {
        guard(ops::Relation::kEq, size, decl->dims[axis]);
        program_.env.assume_eq(size, decl->dims[axis]);
        return decl->dims[axis];
    }
    if (names_symbol) {
        if (first_use) return size;
        const Dim& earlier = module_symbols_.at(module_symbol);
        guard(ops::Relation::kEq, size, earlier);
        program_.env.assume_eq(size, earlier);
        return program_.env.simplify(earlier);
    }
    deferred_.push_back({decl->dims[axis], size});
    return size;
}

std::vector<types::SymbolId> Specializer::unbound(const Dim& declared) const {
    std::vector<types::SymbolId> symbols;
    declared.collect_symbols(symbols);
    std::erase_if(symbols, [&](types::SymbolId id) { return module_symbols_.count(id) != 0; });
    return symbols;
}

Dim Specializer::over_entry(const Dim& declared) const {
    return program_.env.simplify(declared.substitute([&](types::SymbolId id) { return &module_symbols_.at(id); }));
}

// A symbol that one size alone names is what solves the size for it. Whether there was one.
bool Specializer::bind_by_solving(const DeferredDim& d) {
    const std::vector<types::SymbolId> unknown = unbound(d.declared);
    const auto form = unknown.size() == 1 ? types::linear_in(d.declared, unknown[0]) : std::nullopt;
    if (!form) return false;
    const Dim coefficient = over_entry(form->coefficient);
    const Dim scaled = d.size - over_entry(form->rest);
    if (coefficient.is_constant(0)) return guard(ops::Relation::kEq, scaled, 0), true;  // any number would do
    if (!coefficient.is_constant()) guard(ops::Relation::kNe, coefficient, 0);
    if (!coefficient.is_constant(1) && !coefficient.is_constant(-1))
        guard(ops::Relation::kEq, Dim::mod(scaled, coefficient), 0);
    if (coefficient.is_constant()) program_.env.assume_divisible(scaled, std::abs(coefficient.constant()));
    const Dim value = program_.env.simplify(Dim::floor_div(scaled, coefficient));
    const Range range = module_.symbols[unknown[0]].range;
    guard(ops::Relation::kLe, std::max<std::int64_t>(range.lo, 0), value);
    if (range.hi < kDimInfinity) guard(ops::Relation::kLe, value, range.hi);
    program_.env.assume_range(value, {std::max<std::int64_t>(range.lo, 0), range.hi});
    module_symbols_[unknown[0]] = value;
    return true;
}

void Specializer::bind_deferred_dims() {
    for (bool bound = true; bound;) {
        bound = false;
        for (auto d = deferred_.begin(); d != deferred_.end();) {
            const bool solved = bind_by_solving(*d);
            bound = bound || solved;
            d = solved ? deferred_.erase(d) : d + 1;
        }
    }
    for (const DeferredDim& d : deferred_) {
        if (!unbound(d.declared).empty()) continue;
        const Dim value = d.declared.substitute([&](types::SymbolId s) { return &module_symbols_.at(s); });
        guard(ops::Relation::kEq, d.size, value);
        program_.env.assume_eq(d.size, value);
    }
}

LiveValue Specializer::entry_value(const LiveSignature& signature, const bytecode::ParamDecl* decl,
                                   const std::string& name, std::uint32_t& slot, std::uint32_t& ordinal) {
    LiveValue value;
    switch (signature.kind) {
        case LiveKind::kUnset: value.kind = LiveValue::Kind::kUnset; break;
        case LiveKind::kNone: value.kind = LiveValue::Kind::kNone; break;
        case LiveKind::kInt:
        case LiveKind::kBool: {
            const bool is_bool = signature.kind == LiveKind::kBool;
            const Range range = is_bool ? Range{0, 1} : Range{-kDimInfinity, kDimInfinity};
            value.kind = is_bool ? LiveValue::Kind::kBool : LiveValue::Kind::kInt;
            value.integer = slot_symbol(name, slot, range);
            if (region_.exact_only) {
                guard(ops::Relation::kEq, value.integer, region_.frame[slot]);
                program_.env.assume_eq(value.integer, region_.frame[slot]);
                value.integer = region_.frame[slot];
            }
            ++slot;
            break;
        }
        case LiveKind::kFloat: {
            value.kind = LiveValue::Kind::kReg;
            value.reg = float_register();
            program_.registers[value.reg].name = name;
            Inst inst;
            inst.kind = InstKind::kArgument;
            inst.index = slot++;
            inst.results = {value.reg};
            prologue_.push_back(inst);
            break;
        }
        case LiveKind::kString:
        case LiveKind::kFunction:
            value.kind = signature.kind == LiveKind::kString ? LiveValue::Kind::kString : LiveValue::Kind::kFunction;
            value.text = signature.text;
            break;
        case LiveKind::kList:
            value.kind = LiveValue::Kind::kList;
            for (std::size_t i = 0; i < signature.elements.size(); ++i) {
                value.elements.push_back(
                    entry_value(signature.elements[i], nullptr, name + "[" + std::to_string(i) + "]", slot, ordinal));
            }
            break;
        case LiveKind::kRunList: {
            const ElementType type{signature.dtype, signature.rank,
                                   signature.layout.kind == types::LayoutKind::kContiguous};
            value.kind = LiveValue::Kind::kRunList;
            value.reg = list_register(type);
            value.integer = slot_symbol(name + ".length", slot, {0, kDimInfinity});
            if (region_.exact_only) {
                guard(ops::Relation::kEq, value.integer, region_.frame[slot]);
                program_.env.assume_eq(value.integer, region_.frame[slot]);
            }
            ++slot;
            program_.registers[value.reg].name = name;
            Inst inst;
            inst.kind = InstKind::kArgument;
            inst.index = live_index_;
            inst.results = {value.reg};
            prologue_.push_back(inst);
            break;
        }
        case LiveKind::kTensor: {
            ops::ArgType type;
            type.type.dtype = signature.dtype;
            type.type.device = signature.device;
            type.strength = signature.rank == 0 ? types::Strength::kZeroDim : types::Strength::kTensor;
            const std::size_t rank = signature.rank;
            for (std::size_t i = 0; i < rank; ++i) {
                type.type.sizes.push_back(entry_size(decl, i, name, slot + static_cast<std::uint32_t>(i)));
            }
            const auto stride_slot = [&](std::size_t i) { return slot + static_cast<std::uint32_t>(rank + i); };
            const auto stride_symbol = [&](std::size_t i) -> Dim {
                Dim stride =
                    slot_symbol(name + ".stride" + std::to_string(i), stride_slot(i), {-kDimInfinity, kDimInfinity});
                if (!region_.exact_only) return stride;
                guard(ops::Relation::kEq, stride, region_.frame[stride_slot(i)]);
                program_.env.assume_eq(stride, region_.frame[stride_slot(i)]);
                return region_.frame[stride_slot(i)];
            };
            const auto layout = signature.layout;
            switch (layout.kind) {
                case LayoutKind::kContiguous: type.type.strides = types::contiguous_strides(type.type.sizes); break;
                case LayoutKind::kPermuted: type.type.strides = permuted_strides(type.type.sizes, layout.detail); break;
                case LayoutKind::kInnerContiguous:
                    for (std::size_t i = 0; i + 1 < rank; ++i) type.type.strides.push_back(stride_symbol(i));
                    type.type.strides.push_back(1);
                    break;
                case LayoutKind::kBroadcast:
                    for (std::size_t i = 0; i < rank; ++i) {
                        const bool zero = ((layout.detail >> i) & 1u) != 0;
                        const bool unit = i + 1 == rank && (layout.detail >> 63) != 0;
                        type.type.strides.push_back(zero ? Dim(0) : (unit ? Dim(1) : stride_symbol(i)));
                    }
                    break;
                case LayoutKind::kSelfOverlapping:
                case LayoutKind::kGeneral:
                    for (std::size_t i = 0; i < rank; ++i) type.type.strides.push_back(stride_symbol(i));
                    break;
            }
            slot += static_cast<std::uint32_t>(2 * rank);
            value.kind = LiveValue::Kind::kReg;
            value.reg = new_register(type);
            program_.registers[value.reg].name = name;
            Inst inst;
            inst.kind = InstKind::kArgument;
            inst.index = ordinal++;
            inst.results = {value.reg};
            program_.arguments.push_back(value.reg);
            Memory memory;
            memory.outer = true;
            memory.fixed = signature.fixed;
            memory.overlaps = layout.kind == LayoutKind::kSelfOverlapping;
            memory.argument = static_cast<int>(program_.arguments.size()) - 1;
            memory.exact_group = signature.exact_alias ? signature.alias_group : std::uint8_t{0};
            bind_outer(value.reg, std::move(memory));
            prologue_.push_back(inst);
            break;
        }
        case LiveKind::kForeign:
        case LiveKind::kDynamic: {
            // Passed through: an exit hands back the entry's own value.
            value.kind = LiveValue::Kind::kOpaque;
            value.reg = live_index_;
            break;
        }
    }
    return value;
}

State Specializer::build_entry() {
    const bytecode::Function& function = module_.functions[static_cast<std::size_t>(region_.function)];
    const executable::Signature& signature = *region_.signature;
    State state;
    std::uint32_t slot = 0;
    std::uint32_t ordinal = 0;
    const std::size_t values = signature.values.size() - signature.symbol_count;
    for (std::size_t i = 0; i < values; ++i) {
        const bool is_local = i < signature.local_count;
        const bytecode::ParamDecl* decl =
            region_.pc == 0 && is_local && i < function.params.size() ? &function.params[i] : nullptr;
        const std::string name =
            is_local && i < function.locals.size() ? function.locals[i] : "stack" + std::to_string(i);
        live_index_ = static_cast<std::uint32_t>(i);
        LiveValue value = entry_value(signature.values[i], decl, name, slot, ordinal);
        (is_local ? state.locals : state.stack).push_back(std::move(value));
    }
    for (std::size_t i = values; i < signature.values.size(); ++i) {
        const auto id = static_cast<types::SymbolId>(i - values);
        const bytecode::SymbolDecl& symbol = module_.symbols[id];
        const Dim value = slot_symbol(symbol.name, slot, {-kDimInfinity, kDimInfinity});
        if (region_.exact_only) {
            guard(ops::Relation::kEq, value, region_.frame[slot]);
            program_.env.assume_eq(value, region_.frame[slot]);
        }
        module_symbols_[id] = program_.env.simplify(value);
        ++slot;
    }
    bind_deferred_dims();
    if (state.locals.size() < function.locals.size()) state.locals.resize(function.locals.size());

    program_.may_overlap.assign(static_cast<std::size_t>(ordinal) * ordinal, false);
    std::vector<std::pair<std::uint8_t, bool>> tensors;
    const auto collect = [&](const auto& self, const LiveSignature& s) -> void {
        if (s.kind == LiveKind::kTensor) tensors.emplace_back(s.alias_group, s.exact_alias);
        for (const LiveSignature& e : s.elements) self(self, e);
    };
    for (const LiveSignature& s : signature.values) collect(collect, s);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        for (std::size_t j = 0; j < tensors.size(); ++j) {
            program_.may_overlap[i * tensors.size() + j] =
                i == j || (tensors[i].first != 0 && tensors[i].first == tensors[j].first);
        }
    }
    entry_symbol_limit_ = static_cast<std::uint32_t>(program_.env.symbol_count());
    return state;
}

bool Specializer::entry_only(const Dim& d) const {
    std::vector<types::SymbolId> symbols;
    d.collect_symbols(symbols);
    for (auto s : symbols) {
        if (s >= entry_symbol_limit_) return false;
    }
    return true;
}

}  // namespace flexor::specialize
