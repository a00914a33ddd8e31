#include "codegen/cpu_llvm/attention_rows.h"

#include <array>
#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>

#include "codegen/cpu_llvm/gemm_ir.h"
#include "codegen/cpu_llvm/ir.h"
#include "codegen/cpu_llvm/vector_math.h"
#include "runtime/stop_check.h"
#include "support/diagnostic.h"
#include "support/fork_gate.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using runtime::AttentionRows;
using runtime::SoftmaxBlock;
using Values = TileIr::Values;

static_assert(sizeof(SoftmaxBlock) == 14 * 8 && offsetof(SoftmaxBlock, correction) == 13 * 8);

enum class MaskForm { kNone, kBoolean, kAdditive, kNarrow };

struct Emitter {
    Emitter(const ModuleBuilder& owner, DType dtype_in, bool narrow_in)
        : tile(owner),
          ir(owner.context(), owner.module(), owner.builder()),
          math(ir),
          dtype(dtype_in),
          narrow(narrow_in),
          real(dtype_in == DType::kF64 ? tile.f64 : tile.f32),
          lanes(host_target().lanes(dtype_in == DType::kF64 ? 8 : 4)),
          align(dtype_in == DType::kF64 ? 8 : 4),
          vector(TileIr::vec(real, lanes)) {}

    TileIr tile;
    Ir ir;
    VectorMath math;
    DType dtype;
    bool narrow;
    Ty real;
    int lanes;
    unsigned align;
    Ty vector;

    V constant(double value) { return ir.fp(vector, value); }

    // Lanes whose index lies below `count`.
    V below(V count) {
        Ty wide = TileIr::vec(tile.i64, lanes);
        return ir.icmp(LLVMIntSLT, ir.iota(wide), tile.splat(count, lanes));
    }

    // `element` vector at `where`; only the lanes of `lane_mask` are touched if it is given.
    V load_lanes(Ty element, V where, unsigned alignment, V lane_mask) {
        Ty type = TileIr::vec(element, lanes);
        if (!lane_mask) return tile.load(type, where, alignment);
        return tile.intrinsic("llvm.masked.load", {type, tile.ptr},
                              {where, tile.int32(alignment), lane_mask, LLVMConstNull(type)});
    }

    V add_mask(V score, MaskForm form, V mask_row, V j, V lane_mask) {
        switch (form) {
            case MaskForm::kNone: return score;
            case MaskForm::kBoolean: {
                V bytes = load_lanes(tile.i8, tile.at(tile.i8, mask_row, j), 1, lane_mask);
                V seen = ir.icmp(LLVMIntNE, bytes, LLVMConstNull(LLVMTypeOf(bytes)));
                V minus = ir.infinity(vector, true);
                return ir.fadd(score, ir.select(seen, LLVMConstNull(vector), minus));
            }
            case MaskForm::kAdditive:
                return ir.fadd(score, load_lanes(real, tile.at(real, mask_row, j), kAnyAlignment, lane_mask));
            case MaskForm::kNarrow: break;
        }
        if (dtype == DType::kF16) {
            V halves = load_lanes(tile.i16, tile.at(tile.i16, mask_row, j), kAnyAlignment, lane_mask);
            return ir.fadd(score, ir.fpext(ir.bitcast(halves, TileIr::vec(tile.f16, lanes)), tile.f32));
        }
        V bits = load_lanes(tile.i16, tile.at(tile.i16, mask_row, j), kAnyAlignment, lane_mask);
        return ir.fadd(score, ir.bitcast(ir.shl(ir.zext(bits, tile.i32), 16), vector));
    }

    template <typename Combine>
    V reduce(V value, Combine&& combine) {
        for (int half = lanes / 2; half >= 1; half /= 2) {
            std::vector<int> low, high;
            for (int lane = 0; lane < half; ++lane) {
                low.push_back(lane);
                high.push_back(lane + half);
            }
            value = combine(tile.shuffle(value, value, low), tile.shuffle(value, value, high));
        }
        return LLVMBuildExtractElement(tile.builder, value, tile.int32(0), "");
    }

    // exp(x) for x <= 0, with 0 for what is too small to matter beside the largest weight, 1: denormal results would
    // cost a hundred cycles each. NaN stays.
    V weight(V x) {
        Ty type = LLVMTypeOf(x);
        V zero = LLVMConstNull(type);
        V counts = ir.fcmp(LLVMRealUGE, x, dtype == DType::kF64 ? -708.0 : -87.0);
        return ir.select(counts, math.exp(ir.select(counts, x, zero)), zero);
    }

    void store_weights(V weights, V row, V j) {
        if (!narrow) return tile.store(weights, tile.at(real, row, j), align);
        V rounded = tile.intrinsic("llvm.x86.avx512bf16.cvtneps2bf16.512", {}, {weights});
        tile.store(rounded, tile.at(tile.i16, row, j), 2);
    }

    // body(i, carried, lane_mask): whole vectors of [0, count), then the rest under a mask.
    Values over_lanes(V count, Values carried, const std::function<Values(V, Values, V)>& body) {
        V next = nullptr;
        carried = tile.loop(
            tile.int64(0), count, lanes, std::move(carried),
            [&](V i, Values values) { return body(i, std::move(values), nullptr); }, &next);
        return tile.loop(next, tile.add(count, tile.int64(lanes - 1)), lanes, std::move(carried),
                         [&](V i, Values values) { return body(i, std::move(values), below(tile.sub(count, i))); });
    }

    void softmax(const char* name, MaskForm form) {
        V f = tile.function(name, tile.none, {tile.ptr});
        V block = LLVMGetParam(f, 0);
        int next_field = 0;
        auto field = [&](Ty type) { return tile.load(type, tile.at(tile.i64, block, next_field++), 8); };
        V scores = field(tile.ptr), ld = field(tile.i64), rows = field(tile.i64), n = field(tile.i64);
        V valid = field(tile.i64), valid_step = field(tile.i64), scale = field(tile.f64);
        V mask = field(tile.ptr), mask_stride = field(tile.i64);
        V weights = field(tile.ptr), weights_ld = field(tile.i64);
        V maximum = field(tile.ptr), sum = field(tile.ptr), correction = field(tile.ptr);
        if (dtype != DType::kF64) scale = ir.fptrunc(scale, tile.f32);
        V scales = tile.splat(scale, lanes);
        Ty mask_element = form == MaskForm::kBoolean ? tile.i8 : form == MaskForm::kNarrow ? tile.i16 : real;
        Ty weight_element = narrow ? tile.i16 : real;

        tile.loop(tile.int64(0), rows, 1, {}, [&](V r, Values) {
            V row = tile.at(real, scores, tile.mul(r, ld));
            V weight_row = tile.at(weight_element, weights, tile.mul(r, weights_ld));
            V mask_row = form == MaskForm::kNone ? nullptr : tile.at(mask_element, mask, tile.mul(r, mask_stride));
            V count = tile.add(valid, tile.mul(r, valid_step));
            count = tile.intrinsic("llvm.smin", {tile.i64}, {count, n});
            count = tile.intrinsic("llvm.smax", {tile.i64}, {count, tile.int64(0)});

            // The largest score; NaN is passed over, the weights bring it back.
            V lowest = ir.infinity(vector, true);
            V largest = over_lanes(count, {lowest}, [&](V j, Values top, V lane_mask) {
                V where = tile.at(real, row, j);
                V x = ir.fmul(tile.load(vector, where, align), scales);
                if (form != MaskForm::kNone) {
                    x = add_mask(x, form, mask_row, j, lane_mask);
                    tile.store(x, where, align);
                }
                if (lane_mask) x = ir.select(lane_mask, x, lowest);
                return Values{ir.max_second(x, top[0])};
            })[0];
            V top = reduce(largest, [&](V a, V b) { return ir.max_second(a, b); });
            V before = tile.load(real, tile.at(real, maximum, r), align);
            top = ir.max_second(top, before);
            V unseen = ir.fcmp(LLVMRealOEQ, top, ir.infinity(real, true));
            V anchor = ir.select(unseen, LLVMConstNull(real), top);
            V anchors = tile.splat(anchor, lanes);

            V zeros = LLVMConstNull(vector);
            V total = over_lanes(count, {zeros}, [&](V j, Values sums, V lane_mask) {
                V x = tile.load(vector, tile.at(real, row, j), align);
                if (form == MaskForm::kNone) x = ir.fmul(x, scales);
                V w = weight(ir.fsub(x, anchors));
                if (lane_mask) w = ir.select(lane_mask, w, zeros);
                store_weights(w, weight_row, j);
                return Values{ir.fadd(sums[0], w)};
            })[0];
            // Keys that exist but are not seen weigh nothing.
            V rounded = tile.add(count, tile.int64(lanes - 1));
            rounded = ir.bit_and(rounded, ~static_cast<int64_t>(lanes - 1));
            tile.loop(rounded, tile.add(n, tile.int64(lanes - 1)), lanes, {}, [&](V j, Values) {
                store_weights(zeros, weight_row, j);
                return Values{};
            });
            V factor = weight(ir.fsub(before, anchor));
            V old_sum = tile.load(real, tile.at(real, sum, r), align);
            V fresh = reduce(total, [&](V a, V b) { return ir.fadd(a, b); });
            tile.store(ir.fma(old_sum, factor, fresh), tile.at(real, sum, r), align);
            tile.store(top, tile.at(real, maximum, r), align);
            tile.store(factor, tile.at(real, correction, r), align);
            return Values{};
        });
        LLVMBuildRetVoid(tile.builder);
    }

    void scale_rows() {
        V f = tile.function("scale_rows", tile.none,
                            {tile.ptr, tile.i64, tile.ptr, tile.i64, tile.i64, tile.i64, tile.ptr});
        V source = LLVMGetParam(f, 0), source_ld = LLVMGetParam(f, 1), target = LLVMGetParam(f, 2);
        V target_ld = LLVMGetParam(f, 3), rows = LLVMGetParam(f, 4), columns = LLVMGetParam(f, 5);
        V factors = LLVMGetParam(f, 6);
        tile.loop(tile.int64(0), rows, 1, {}, [&](V r, Values) {
            V from = tile.at(real, source, tile.mul(r, source_ld));
            V to = tile.at(real, target, tile.mul(r, target_ld));
            V factor = tile.load(real, tile.at(real, factors, r), align);
            V factors_vector = tile.splat(factor, lanes);
            V next = nullptr;
            tile.loop(
                tile.int64(0), columns, lanes, {},
                [&](V c, Values) {
                    V x = tile.load(vector, tile.at(real, from, c), align);
                    tile.store(ir.fmul(x, factors_vector), tile.at(real, to, c), kAnyAlignment);
                    return Values{};
                },
                &next);
            tile.loop(next, columns, 1, {}, [&](V c, Values) {
                V x = tile.load(real, tile.at(real, from, c), align);
                tile.store(ir.fmul(x, factor), tile.at(real, to, c), kAnyAlignment);
                return Values{};
            });
            return Values{};
        });
        LLVMBuildRetVoid(tile.builder);
    }
};

struct CompiledRows {
    AttentionRows rows;
    LoadedObject object;
};

Expected<CompiledRows> generate_rows(DType dtype, bool narrow) {
    ModuleBuilder owner("attention");
    Emitter emitter(owner, dtype, narrow);
    bool half = dtype == DType::kF16 || dtype == DType::kBF16;
    emitter.softmax("plain", MaskForm::kNone);
    emitter.softmax("boolean", MaskForm::kBoolean);
    emitter.softmax("additive", MaskForm::kAdditive);
    if (half) emitter.softmax("additive_narrow", MaskForm::kNarrow);
    emitter.scale_rows();
    CompiledRows result;
    FLEXOR_ASSIGN(result.object, compile(owner.module()));
    auto find = [&]<typename F>(F& slot, const char* name) { slot = reinterpret_cast<F>(result.object.lookup(name)); };
    find(result.rows.plain, "plain");
    find(result.rows.boolean, "boolean");
    find(result.rows.additive, "additive");
    find(result.rows.additive_narrow, half ? "additive_narrow" : "additive");
    find(result.rows.scale_rows, "scale_rows");
    return result;
}

}  // namespace

Expected<const AttentionRows*> host_attention_rows(DType dtype, bool narrow_weights) {
    struct Slot {
        std::once_flag once;
        std::optional<Expected<CompiledRows>> compiled;
    };
    // Never freed: other threads may run generated code while the process ends.
    static auto& slots = *new std::array<std::array<Slot, 2>, kDTypeCount>();
    if (!is_floating(dtype)) {
        return Diagnostic(DiagnosticId::kOpNotCompiled).found("attention over integers");
    }
    if (narrow_weights && !(dtype == DType::kBF16 && host_target().has_avx512bf16)) {
        return Diagnostic(DiagnosticId::kOpNotCompiled).found("bf16 weights on a host without bf16 dot products");
    }
    Slot& slot = slots[static_cast<size_t>(dtype)][narrow_weights];
    const support::ForkSection section;
    const runtime::StopScope unasked(nullptr, runtime::StopScope::Role::kOwner);  // nobody may fork inside call_once
    std::call_once(slot.once, [&] { slot.compiled.emplace(generate_rows(dtype, narrow_weights)); });
    if (!*slot.compiled) return Diagnostic(slot.compiled->error());
    return &(**slot.compiled).rows;
}

void install_host_attention_rows() {
    runtime::install_attention_rows([](DType dtype, bool narrow_weights) -> const AttentionRows* {
        auto rows = host_attention_rows(dtype, narrow_weights);
        return rows ? *rows : nullptr;
    });
}

}  // namespace flexor::codegen::cpu_llvm
