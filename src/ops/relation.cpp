#include "ops/relation.h"

namespace flexor::ops {

using types::Dim;
using types::ShapeEnv;
using types::Truth;

std::string_view spelling(Relation relation) {
    switch (relation) {
        case Relation::kEq: return " == ";
        case Relation::kNe: return " != ";
        case Relation::kLe: return " <= ";
        case Relation::kLt: return " < ";
    }
    FLEXOR_UNREACHABLE();
}

Truth ask(const ShapeEnv& env, Relation relation, const Dim& a, const Dim& b) {
    switch (relation) {
        case Relation::kEq: return env.eq(a, b);
        case Relation::kNe: return ShapeEnv::negate(env.eq(a, b));
        case Relation::kLe: return env.le(a, b);
        case Relation::kLt: return env.lt(a, b);
    }
    FLEXOR_UNREACHABLE();
}

bool assume(ShapeEnv& env, Relation relation, const Dim& a, const Dim& b) {
    switch (relation) {
        case Relation::kEq: return env.assume_eq(a, b);
        case Relation::kNe:
            if (b.is_constant()) return env.assume_ne(a, b.constant());
            return env.assume_ne(a - b, 0);
        case Relation::kLe: return env.assume_range(b - a, {0, types::kDimInfinity});
        case Relation::kLt: return env.assume_range(b - a, {1, types::kDimInfinity});
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace flexor::ops
