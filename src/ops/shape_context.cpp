#include "ops/op_def.h"

namespace flexor::ops {

using types::Truth;

bool ShapeContext::require(Relation relation, const Dim& a, const Dim& b, int constraint, bool or_one) {
    const Requirement requirement{Requirement::Kind::kCheck, relation, a, b, constraint, or_one};
    switch (ask(env_, relation, a, b)) {
        case Truth::kTrue: return true;
        case Truth::kFalse:
            if (or_one && (env_.eq(a, 1) != Truth::kFalse || env_.eq(b, 1) != Truth::kFalse)) break;
            failed_ = constraint;
            failure_ = requirement;
            return false;
        case Truth::kUnknown: break;
    }
    for (const Requirement& r : requirements_) {
        if (r.kind == requirement.kind && r.relation == relation && r.a == a && r.b == b && r.or_one == or_one) {
            return true;
        }
    }
    requirements_.push_back(requirement);
    return true;
}

bool ShapeContext::require_eq(const Dim& a, const Dim& b, int constraint) {
    return require(Relation::kEq, a, b, constraint, false);
}
bool ShapeContext::require_le(const Dim& a, const Dim& b, int constraint) {
    return require(Relation::kLe, a, b, constraint, false);
}
bool ShapeContext::require_lt(const Dim& a, const Dim& b, int constraint) {
    return require(Relation::kLt, a, b, constraint, false);
}

bool ShapeContext::fail(int constraint) {
    failed_ = constraint;
    failure_ = Requirement{Requirement::Kind::kCheck, Relation::kEq, 0, 0, constraint, false};
    return false;
}

bool ShapeContext::decide(Relation relation, const Dim& a, const Dim& b, bool must) {
    const Truth known = ask(env_, relation, a, b);
    if (known != Truth::kUnknown) return known == Truth::kTrue;
    const auto hint_a = env_.hint(a);
    const auto hint_b = env_.hint(b);
    const bool hinted = hint_a && hint_b;
    if (!must && (!hinted || !allow_guards_)) return false;
    const bool answer = hinted && holds(relation, *hint_a, *hint_b);
    Requirement guard{Requirement::Kind::kGuard, relation, a, b, 0, false};
    if (!answer) {
        switch (relation) {
            case Relation::kEq: guard.relation = Relation::kNe; break;
            case Relation::kNe: guard.relation = Relation::kEq; break;
            case Relation::kLe: guard = {Requirement::Kind::kGuard, Relation::kLt, b, a, 0, false}; break;
            case Relation::kLt: guard = {Requirement::Kind::kGuard, Relation::kLe, b, a, 0, false}; break;
        }
    }
    // Facts that contradict the hints mean that the hints belong to no call that can reach this op.
    const bool consistent = assume(env_, guard.relation, guard.a, guard.b);
    if (!consistent && !must) return false;
    requirements_.push_back(guard);
    return answer;
}

bool ShapeContext::decide_eq(const Dim& a, const Dim& b) { return decide(Relation::kEq, a, b, false); }
bool ShapeContext::settle_eq(const Dim& a, const Dim& b) { return decide(Relation::kEq, a, b, true); }
bool ShapeContext::layout_eq(const Dim& a, const Dim& b) { return decide_layout(Relation::kEq, a, b); }
bool ShapeContext::layout_le(const Dim& a, const Dim& b) { return decide_layout(Relation::kLe, a, b); }
bool ShapeContext::decide_layout(Relation relation, const Dim& a, const Dim& b) {
    return decide(relation, a, b, settle_layout_);
}

bool ShapeContext::broadcast(const Dim& a, const Dim& b, int constraint, Dim* out) {
    if (env_.eq(a, b) == Truth::kTrue) {
        *out = b.is_constant() ? b : a;
        return true;
    }
    const Truth a_one = env_.eq(a, 1);
    const Truth b_one = env_.eq(b, 1);
    if (a_one == Truth::kTrue || b_one == Truth::kTrue) {
        *out = a_one == Truth::kTrue ? b : a;
        return true;
    }
    if (a_one == Truth::kFalse && b_one == Truth::kFalse) {
        if (!require(Relation::kEq, a, b, constraint, false)) return false;
        *out = b.is_constant() ? b : a;  // last: `out` may be one of the operands
        return true;
    }
    const auto hint_a = env_.hint(a);
    const auto hint_b = env_.hint(b);
    if (allow_guards_ && hint_a && hint_b && *hint_a == *hint_b && env_.eq(a, b) != Truth::kFalse && decide_eq(a, b)) {
        *out = b.is_constant() ? b : a;
        return true;
    }
    if (!require(Relation::kEq, a, b, constraint, true)) return false;
    // One that is known not to be 1 decides the result; the other is equal to it or 1.
    if (a_one == Truth::kFalse) {
        *out = a;
    } else if (b_one == Truth::kFalse) {
        *out = b;
    } else {
        *out = env_.simplify(Dim::broadcast(a, b));
    }
    return true;
}

Dim ShapeContext::fresh(std::string name, const Dim& lo, const Dim& hi) {
    const types::Range low = env_.range(lo);
    const types::Range high = env_.range(hi);
    const Dim size = Dim::symbol(env_.add_symbol(std::move(name), {low.lo, high.hi}));
    if (!lo.is_constant()) env_.assume_range(size - lo, {0, types::kDimInfinity});
    if (!hi.is_constant()) env_.assume_range(hi - size, {0, types::kDimInfinity});
    return size;
}

}  // namespace flexor::ops
