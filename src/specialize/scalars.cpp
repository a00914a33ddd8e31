// Scalar operators on symbolic integers, symbolic truth values and constant floats. Truth values are dims that are 0
// or 1.
#include <cmath>

#include "specialize/specializer.h"

namespace flexor::specialize {

using bytecode::ScalarOperator;
using Kind = LiveValue::Kind;

// 1 if a <= b else 0.
Dim Specializer::less_equal(const Dim& a, const Dim& b) { return Dim::min(Dim::max(b - a + Dim(1), 0), 1); }

Dim Specializer::equal(const Dim& a, const Dim& b) { return less_equal(a, b) * less_equal(b, a); }

Dim Specializer::truth(const LiveValue& value) const {
    if (value.kind == Kind::kBool) return value.integer;
    switch (program_.env.eq(value.integer, 0)) {
        case Truth::kTrue: return 0;
        case Truth::kFalse: return 1;
        case Truth::kUnknown: break;
    }
    return Dim(1) - equal(value.integer, 0);
}

namespace {

bool is_integral(const LiveValue& v) { return v.kind == Kind::kInt || v.kind == Kind::kBool; }

bool is_unary(ScalarOperator op) { return op >= ScalarOperator::kNeg; }

double as_double(const LiveValue& v) {
    return v.kind == Kind::kFloat ? v.real : static_cast<double>(v.integer.constant());
}

bool is_constant(const LiveValue& v) { return v.kind == Kind::kFloat || (is_integral(v) && v.integer.is_constant()); }

double floor_mod(double a, double b) {
    double r = std::fmod(a, b);
    if (r != 0 && (r < 0) != (b < 0)) r += b;
    return r;
}

LiveValue make(Kind kind, Dim d) {
    LiveValue v;
    v.kind = kind;
    v.integer = std::move(d);
    return v;
}

LiveValue make_float(double d) {
    LiveValue v;
    v.kind = Kind::kFloat;
    v.real = d;
    return v;
}

}  // namespace

bool Specializer::scalar(ScalarOperator op, State& state) {
    const std::size_t count = is_unary(op) ? 1 : 2;
    const std::size_t base = state.stack.size() - count;
    LiveValue a = state.stack[base];
    LiveValue b = count == 2 ? state.stack[base + 1] : LiveValue{};
    for (LiveValue* v : {&a, &b}) {
        if (is_integral(*v)) v->integer = program_.env.simplify(v->integer);
    }
    LiveValue out;
    const auto done = [&](LiveValue value) {
        state.stack.resize(base);
        state.stack.push_back(std::move(value));
        return true;
    };
    const auto decided = [&](Truth t, Dim otherwise) {
        if (t == Truth::kTrue) return make(Kind::kBool, 1);
        if (t == Truth::kFalse) return make(Kind::kBool, 0);
        return make(Kind::kBool, std::move(otherwise));
    };
    const auto& env = program_.env;

    if (is_unary(op)) {
        if (is_integral(a)) {
            switch (op) {
                case ScalarOperator::kNeg: return done(make(Kind::kInt, -a.integer));
                case ScalarOperator::kNot: return done(make(Kind::kBool, Dim(1) - truth(a)));
                case ScalarOperator::kToInt: return done(make(Kind::kInt, a.integer));
                case ScalarOperator::kToBool: return done(make(Kind::kBool, truth(a)));
                case ScalarOperator::kToFloat:
                    if (!a.integer.is_constant()) return refuse("a float made from a run-time integer");
                    return done(make_float(static_cast<double>(a.integer.constant())));
                default: break;
            }
        }
        if (a.kind == Kind::kFloat) {
            switch (op) {
                case ScalarOperator::kNeg: return done(make_float(-a.real));
                case ScalarOperator::kNot: return done(make(Kind::kBool, a.real == 0 ? 1 : 0));
                case ScalarOperator::kToInt:
                    if (!(std::fabs(a.real) < 9.0e18)) return refuse("a float without an integer value");
                    return done(make(Kind::kInt, static_cast<std::int64_t>(std::trunc(a.real))));
                case ScalarOperator::kToBool: return done(make(Kind::kBool, a.real != 0 ? 1 : 0));
                case ScalarOperator::kToFloat: return done(a);
                default: break;
            }
        }
        return refuse("scalar arithmetic on a run-time value");
    }

    if (is_integral(a) && is_integral(b)) {
        const Dim& x = a.integer;
        const Dim& y = b.integer;
        switch (op) {
            case ScalarOperator::kAdd: return done(make(Kind::kInt, env.simplify(x + y)));
            case ScalarOperator::kSub: return done(make(Kind::kInt, env.simplify(x - y)));
            case ScalarOperator::kMul: return done(make(Kind::kInt, env.simplify(x * y)));
            case ScalarOperator::kFloorDiv:
            case ScalarOperator::kMod:
                if (env.eq(y, 0) != Truth::kFalse) return refuse("an integer division whose divisor may be 0");
                return done(
                    make(Kind::kInt, env.simplify(op == ScalarOperator::kMod ? Dim::mod(x, y) : Dim::floor_div(x, y))));
            case ScalarOperator::kMin: return done(make(Kind::kInt, env.simplify(Dim::min(x, y))));
            case ScalarOperator::kMax: return done(make(Kind::kInt, env.simplify(Dim::max(x, y))));
            case ScalarOperator::kEq: return done(decided(env.eq(x, y), equal(x, y)));
            case ScalarOperator::kNe: return done(decided(types::ShapeEnv::negate(env.eq(x, y)), Dim(1) - equal(x, y)));
            case ScalarOperator::kLe: return done(decided(env.le(x, y), less_equal(x, y)));
            case ScalarOperator::kLt: return done(decided(env.lt(x, y), Dim(1) - less_equal(y, x)));
            case ScalarOperator::kGe: return done(decided(env.le(y, x), less_equal(y, x)));
            case ScalarOperator::kGt: return done(decided(env.lt(y, x), Dim(1) - less_equal(x, y)));
            case ScalarOperator::kAnd:
                if (a.kind == Kind::kBool && b.kind == Kind::kBool) return done(make(Kind::kBool, x * y));
                break;
            case ScalarOperator::kOr:
                if (a.kind == Kind::kBool && b.kind == Kind::kBool) return done(make(Kind::kBool, Dim::max(x, y)));
                break;
            default: break;
        }
    }
    if (!is_constant(a) || !is_constant(b)) return refuse("scalar arithmetic on a run-time value");
    const double x = as_double(a);
    const double y = as_double(b);
    switch (op) {
        case ScalarOperator::kAdd: return done(make_float(x + y));
        case ScalarOperator::kSub: return done(make_float(x - y));
        case ScalarOperator::kMul: return done(make_float(x * y));
        case ScalarOperator::kTrueDiv:
            if (y == 0) return refuse("a division by zero");
            return done(make_float(x / y));
        case ScalarOperator::kFloorDiv:
            if (y == 0) return refuse("a division by zero");
            return done(make_float(std::floor(x / y)));
        case ScalarOperator::kMod:
            if (y == 0) return refuse("a division by zero");
            return done(make_float(floor_mod(x, y)));
        case ScalarOperator::kEq: return done(make(Kind::kBool, x == y ? 1 : 0));
        case ScalarOperator::kNe: return done(make(Kind::kBool, x != y ? 1 : 0));
        case ScalarOperator::kLt: return done(make(Kind::kBool, x < y ? 1 : 0));
        case ScalarOperator::kLe: return done(make(Kind::kBool, x <= y ? 1 : 0));
        case ScalarOperator::kGt: return done(make(Kind::kBool, x > y ? 1 : 0));
        case ScalarOperator::kGe: return done(make(Kind::kBool, x >= y ? 1 : 0));
        default: return refuse("a scalar operator that the interpreter alone knows");
    }
}

}  // namespace flexor::specialize
