#pragma once
// The relations of dims that checks and guards state: their spelling, and what they mean for numbers and for what an
// environment knows.
#include <string_view>

#include "support/check.h"
#include "types/shape_env.h"

namespace flexor::ops {

enum class Relation : std::uint8_t { kEq, kNe, kLe, kLt };

std::string_view spelling(Relation relation);  // " == ", with the spaces around it
types::Truth ask(const types::ShapeEnv& env, Relation relation, const types::Dim& a, const types::Dim& b);
// False if it contradicts what is known; then nothing is assumed.
bool assume(types::ShapeEnv& env, Relation relation, const types::Dim& a, const types::Dim& b);

inline bool holds(Relation relation, std::int64_t a, std::int64_t b) {
    switch (relation) {
        case Relation::kEq: return a == b;
        case Relation::kNe: return a != b;
        case Relation::kLe: return a <= b;
        case Relation::kLt: return a < b;
    }
    FLEXOR_UNREACHABLE();
}

}  // namespace flexor::ops
