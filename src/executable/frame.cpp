// Frame programs and checks: scalar arithmetic on the call path.
#include <algorithm>
#include <bit>
#include <limits>

#include "executable/executable.h"

namespace flexor::executable {

namespace {

constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    const std::int64_t q = a / b;
    return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
    const std::int64_t r = a % b;
    return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

inline double real(std::int64_t bits) { return std::bit_cast<double>(bits); }
inline std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }

bool divide(FrameOp op, std::int64_t a, std::int64_t b, bool checked, std::int64_t* out) {
    if (b == 0) return *out = 0, checked;
    if (b == -1) {
        if (op != FrameOp::kMod && a == kInt64Min) return false;
        *out = op == FrameOp::kMod ? 0 : -a;
        return true;
    }
    *out = op == FrameOp::kFloorDiv ? floor_div(a, b) : op == FrameOp::kTruncDiv ? a / b : floor_mod(a, b);
    return true;
}

}  // namespace

bool run_frame(const FrameProgram& program, std::int64_t* frame, bool checked) {
    for (const FrameInst& inst : program.insts) {
        std::int64_t& dst = frame[inst.dst];
        switch (inst.op) {
            case FrameOp::kConst: dst = inst.immediate; break;
            case FrameOp::kMove: dst = frame[inst.a]; break;
            case FrameOp::kAdd:
                if (__builtin_add_overflow(frame[inst.a], frame[inst.b], &dst)) return false;
                break;
            case FrameOp::kSub:
                if (__builtin_sub_overflow(frame[inst.a], frame[inst.b], &dst)) return false;
                break;
            case FrameOp::kMul:
                if (__builtin_mul_overflow(frame[inst.a], frame[inst.b], &dst)) return false;
                break;
            case FrameOp::kFloorDiv:
            case FrameOp::kTruncDiv:
            case FrameOp::kMod:
                if (!divide(inst.op, frame[inst.a], frame[inst.b], checked, &dst)) return false;
                break;
            case FrameOp::kMin: dst = std::min(frame[inst.a], frame[inst.b]); break;
            case FrameOp::kMax: dst = std::max(frame[inst.a], frame[inst.b]); break;
            case FrameOp::kBroadcast: dst = frame[inst.a] == 1 ? frame[inst.b] : frame[inst.a]; break;
            case FrameOp::kAlignUp: {
                std::int64_t raised = 0;
                if (__builtin_add_overflow(frame[inst.a], inst.immediate - 1, &raised)) return false;
                dst = raised & -inst.immediate;
                break;
            }
            case FrameOp::kRealOfInt: dst = bits(static_cast<double>(frame[inst.a])); break;
            case FrameOp::kRealNeg: dst = bits(-real(frame[inst.a])); break;
            case FrameOp::kRealAdd: dst = bits(real(frame[inst.a]) + real(frame[inst.b])); break;
            case FrameOp::kRealSub: dst = bits(real(frame[inst.a]) - real(frame[inst.b])); break;
            case FrameOp::kRealMul: dst = bits(real(frame[inst.a]) * real(frame[inst.b])); break;
            case FrameOp::kRealDiv: dst = bits(real(frame[inst.a]) / real(frame[inst.b])); break;
            case FrameOp::kRealEq: dst = real(frame[inst.a]) == real(frame[inst.b]) ? 1 : 0; break;
            case FrameOp::kRealLt: dst = real(frame[inst.a]) < real(frame[inst.b]) ? 1 : 0; break;
            case FrameOp::kRealLe: dst = real(frame[inst.a]) <= real(frame[inst.b]) ? 1 : 0; break;
        }
    }
    return true;
}

bool check_holds(const Check& check, const std::int64_t* frame) {
    const std::int64_t a = frame[check.a];
    const std::int64_t b = frame[check.b];
    if (check.or_one && (a == 1 || b == 1)) return true;
    return ops::holds(check.relation, a, b);
}

bool guards_hold(const Executable& executable, std::int64_t* scratch) {
    if (!run_frame(executable.guard_frame, scratch)) return false;
    for (const Check& check : executable.guards) {
        if (!check_holds(check, scratch)) return false;
    }
    return true;
}

}  // namespace flexor::executable
