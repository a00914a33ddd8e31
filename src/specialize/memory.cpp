// Whose memory a register may name, and whether a write may meet what it reads.
//
// A parameter of a block is bound before anything that its block dominates is made: it never names memory whose
// instruction stands in its block or behind it. A parameter of a loop head may name what an earlier pass made; two of
// them may then name the same.
#include <algorithm>

#include "ops/rules.h"
#include "specialize/specializer.h"

namespace flexor::specialize {

const Specializer::Memory& Specializer::memory(Reg root) const { return memory_.at(root); }

bool Specializer::module_writes() const {
    return std::any_of(module_.functions.begin(), module_.functions.end(), [](const bytecode::Function& function) {
        return std::any_of(function.sites.begin(), function.sites.end(), [](const bytecode::CallSite& site) {
            return site.definition != nullptr && site.definition->effects.value == ops::Effects::kWritesFirst;
        });
    });
}

void Specializer::bind_param(Reg reg, std::uint32_t to, std::span<const Reg> sources, const std::string& path) {
    Memory& bound = memory_[reg];
    bound.param = true;
    bound.block = to;
    for (const Reg source : sources) bound.from.push_back(program_.registers[source].root);
    bound.any = known_.widened.count(path + ".any") != 0;
    bound.made = known_.widened.count(path + ".made") != 0;
}

// What the back edge passes on; what the head did not reckon with is learned.
void Specializer::feed_param(Reg param, Reg value, const std::string& path) {
    const Reg root = program_.registers[value].root;
    const Memory& bound = memory(param);
    if (bound.any || !module_writes()) return;
    const auto learn = [&](const char* what) {
        known_.widened.insert(path + what);
        restart_ = true;
    };
    if (!covers(param, root)) {
        learn(".any");
    } else if (!bound.made && brings_made(param, root)) {
        learn(".made");
    }
}

bool Specializer::covers(Reg param, Reg root) const {
    if (param == root) return true;
    const Memory& p = memory(param);
    const Memory& r = memory(root);
    if (std::find(p.from.begin(), p.from.end(), root) != p.from.end()) return true;
    if (!r.param) return !r.outer && r.block >= p.block;
    return r.block > p.block && !r.any &&
           std::all_of(r.from.begin(), r.from.end(), [&](Reg from) { return covers(param, from); });
}

bool Specializer::brings_made(Reg param, Reg root) const {
    const Memory& p = memory(param);
    const Memory& r = memory(root);
    if (param == root || r.outer || r.block < p.block) return false;
    return !r.param || r.made ||
           std::any_of(r.from.begin(), r.from.end(), [&](Reg from) { return brings_made(param, from); });
}

bool Specializer::may_share(Reg a, Reg b) const {
    if (a == b) return true;
    const Memory& x = memory(a);
    const Memory& y = memory(b);
    if (!x.param && !y.param) {
        if (!x.outer || !y.outer) return false;
        if (x.argument >= 0 && y.argument >= 0) {
            const std::size_t n = program_.arguments.size();
            return program_
                .may_overlap[static_cast<std::size_t>(x.argument) * n + static_cast<std::size_t>(y.argument)];
        }
        return (x.argument >= 0 && x.fixed) || (y.argument >= 0 && y.fixed);
    }
    if (!x.param || (y.param && y.block > x.block)) return may_share(b, a);
    // `a` is a parameter, and of two the one that is bound last.
    if (!y.param && !y.outer && y.block >= x.block) return false;
    if (x.any || (y.param && (y.any || (x.made && y.made)))) return true;
    return std::any_of(x.from.begin(), x.from.end(), [&](Reg from) { return may_share(from, b); });
}

bool Specializer::maybe(Reg root, bool Memory::* what) const {
    const Memory& m = memory(root);
    return m.*what || m.any || std::any_of(m.from.begin(), m.from.end(), [&](Reg from) { return maybe(from, what); });
}

// Whether the elements fill one stretch of memory, each place once.
Truth Specializer::is_dense(const types::TensorType& type) const {
    const types::ShapeEnv& env = program_.env;
    if (ops::rules::is_row_major(env, type)) return Truth::kTrue;
    std::vector<bool> taken(type.sizes.size(), false);
    Dim next = 1;
    bool found = true;
    while (found) {
        found = false;
        for (std::size_t a = 0; a < taken.size() && !found; ++a) {
            if (taken[a]) continue;
            const bool one = env.eq(type.sizes[a], 1) == Truth::kTrue;
            if (!one && env.eq(type.strides[a], next) != Truth::kTrue) continue;
            if (!one) next = next * type.sizes[a];
            found = taken[a] = true;
        }
    }
    if (std::all_of(taken.begin(), taken.end(), [](bool t) { return t; })) return Truth::kTrue;
    Dim stretch = 1;
    for (std::size_t a = 0; a < type.sizes.size(); ++a) {
        if (env.le(0, type.strides[a]) != Truth::kTrue) return Truth::kUnknown;
        stretch = stretch + (type.sizes[a] - 1) * type.strides[a];
    }
    return env.eq(env.simplify(stretch), env.simplify(type.numel())) == Truth::kFalse ? Truth::kFalse : Truth::kUnknown;
}

bool Specializer::is_same_view(Reg a, Reg b) const {
    const types::TensorType& x = program_.registers[a].type.type;
    const types::TensorType& y = program_.registers[b].type.type;
    const types::ShapeEnv& env = program_.env;
    const auto proven = [](Truth truth) { return truth == Truth::kTrue; };
    bool same = program_.registers[a].root == program_.registers[b].root && x.dtype == y.dtype &&
                x.rank() == y.rank() && proven(env.eq(x.offset, y.offset));
    for (std::size_t i = 0; same && i < x.sizes.size(); ++i) {
        same = proven(env.eq(x.sizes[i], y.sizes[i])) &&
               (proven(env.eq(x.sizes[i], 1)) || proven(env.eq(x.strides[i], y.strides[i])));
    }
    return same;
}

// As torch looks at the operands of a write: memory that is met in another order, or in part (at all, if they have to
// lie apart), is refused where both sides are dense. The interpreter looks again with addresses at hand.
bool Specializer::overlaps(Reg target, Reg source, bool apart) const {
    const ops::ArgType& to = program_.registers[target].type;
    const ops::ArgType& from = program_.registers[source].type;
    if (to.strength == types::Strength::kScalar || from.strength == types::Strength::kScalar) return false;
    const Reg a = program_.registers[target].root;
    const Reg b = program_.registers[source].root;
    if (!may_share(a, b)) return false;
    if (a != b) {
        const std::uint8_t group = memory(a).exact_group;
        return apart || target != a || source != b || group == 0 || group != memory(b).exact_group;
    }
    const types::ShapeEnv& env = program_.env;
    const types::TensorType& t = to.type;
    const types::TensorType& s = from.type;
    if (t.dtype != s.dtype) return true;
    const auto proven = [](Truth truth) { return truth == Truth::kTrue; };
    if ((!apart && is_same_view(target, source)) || is_dense(t) == Truth::kFalse || is_dense(s) == Truth::kFalse)
        return false;
    if (proven(env.eq(t.numel(), 0)) || proven(env.eq(s.numel(), 0))) return false;
    return !proven(env.le(t.offset + t.numel(), s.offset)) && !proven(env.le(s.offset + s.numel(), t.offset));
}

}  // namespace flexor::specialize
