#include "codegen/cpu_llvm/gemm_tiles.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <vector>

#include "codegen/cpu_llvm/gemm_amx.h"
#include "codegen/cpu_llvm/gemm_ir.h"
#include "codegen/cpu_llvm/host.h"
#include "codegen/cpu_llvm/jit.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/diagnostic.h"
#include "support/fork_gate.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using runtime::GemmTiles;
using runtime::kDotColumns;
using runtime::kMaxDotRows;
using runtime::kMaxWideRows;

// How a dtype is computed on this host.
struct Scheme {
    Scheme(const TileIr& ir_in, DType dtype_in) : ir(ir_in), dtype(dtype_in) {
        const HostTarget& host = host_target();
        pairs = dtype == DType::kBF16 && host.has_avx512bf16;
        accumulator = dtype == DType::kF64 ? ir.f64 : ir.f32;
        lanes = host.lanes(dtype == DType::kF64 ? 8 : 4);
        // 16 vector registers carry 6 x 2 accumulators, 32 carry 8 x 3.
        bool many_registers = host.has_avx512 || !host.is_x86;
        rows = many_registers ? 8 : 6;
        vectors = many_registers ? 3 : 2;
        switch (dtype) {
            case DType::kF64: element = ir.f64; break;
            case DType::kF32: element = ir.f32; break;
            case DType::kF16: element = ir.f16; break;
            default: element = ir.i16; break;
        }
        a_element = pairs ? ir.i16 : accumulator;
        element_bytes = static_cast<int>(dtype_size(dtype));
    }

    // A vector of `element` as a vector of `accumulator`.
    V widen(V value, int count) const {
        if (dtype == DType::kF16) return LLVMBuildFPExt(ir.builder, value, TileIr::vec(ir.f32, count), "");
        if (dtype != DType::kBF16) return value;
        Ty wide = TileIr::vec(ir.i32, count);
        V bits = LLVMBuildZExt(ir.builder, value, wide, "");
        bits = LLVMBuildShl(ir.builder, bits, ir.splat(ir.int32(16), count), "");
        return LLVMBuildBitCast(ir.builder, bits, TileIr::vec(ir.f32, count), "");
    }
    V widen_scalar(V value) const {
        if (dtype == DType::kF16) return LLVMBuildFPExt(ir.builder, value, ir.f32, "");
        if (dtype != DType::kBF16) return value;
        V bits = LLVMBuildShl(ir.builder, LLVMBuildZExt(ir.builder, value, ir.i32, ""), ir.int32(16), "");
        return LLVMBuildBitCast(ir.builder, bits, ir.f32, "");
    }

    // As many panels as the accumulators of a full tile cover.
    int wide_panels(int tile_rows) const { return std::min(4, this->rows / tile_rows); }

    const TileIr& ir;
    DType dtype;
    bool pairs;
    Ty element, a_element, accumulator;
    int lanes, rows, vectors;
    int element_bytes;
};

using Values = TileIr::Values;

// tile_<rows>_<vectors>: the sum over k runs in order, one fused multiply-add a step; nothing depends on where a row
// stands in its tile, so a row's result does not depend on M.
void emit_tile(const Scheme& s, int rows, int vectors) {
    const TileIr& ir = s.ir;
    V f = ir.function("tile_" + std::to_string(rows) + "_" + std::to_string(vectors), ir.none,
                      {ir.ptr, ir.i64, ir.ptr, ir.i64, ir.ptr, ir.i64, ir.i64, ir.i64});
    V a = LLVMGetParam(f, 0), lda = LLVMGetParam(f, 1), b = LLVMGetParam(f, 2), ldb = LLVMGetParam(f, 3);
    V c = LLVMGetParam(f, 4), ldc = LLVMGetParam(f, 5), k = LLVMGetParam(f, 6), accumulate = LLVMGetParam(f, 7);
    Ty vector = TileIr::vec(s.accumulator, s.lanes);
    std::vector<V> a_rows;
    for (int r = 0; r < rows; ++r) a_rows.push_back(ir.at(s.a_element, a, ir.mul(lda, ir.int64(r))));
    auto at = [&](int r, int v) { return static_cast<size_t>(r * vectors + v); };

    // One step: k, or with pairs k and k+1 (`whole` false: only k exists). The shorter side of the tile is held in
    // registers, the longer one is loaded as it is used.
    auto step = [&](V i, Values sums, bool whole) {
        V row = ir.at(s.element, b, ir.mul(i, ldb));
        auto load_column = [&](int v) {
            if (s.pairs) return ir.load(TileIr::vec(ir.bf16, 2 * s.lanes), ir.at(s.element, row, 2 * v * s.lanes), 4);
            return s.widen(ir.load(TileIr::vec(s.element, s.lanes), ir.at(s.element, row, v * s.lanes), kAnyAlignment),
                           s.lanes);
        };
        auto load_row = [&](int r) {
            V where = ir.at(s.a_element, a_rows[static_cast<size_t>(r)], i);
            if (!s.pairs) return ir.splat(ir.load(s.a_element, where, kAnyAlignment), s.lanes);
            V pair = whole ? ir.load(ir.i32, where, kAnyAlignment)
                           : LLVMBuildZExt(ir.builder, ir.load(ir.i16, where, kAnyAlignment), ir.i32, "");
            return LLVMBuildBitCast(ir.builder, ir.splat(pair, s.lanes), TileIr::vec(ir.bf16, 2 * s.lanes), "");
        };
        bool crowded = rows * vectors > 16;
        auto multiply_add = [&](V left, V right, V sum) {
            sum = s.pairs ? ir.intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", {}, {sum, left, right})
                          : ir.fma(left, right, sum);
            return crowded ? ir.pin(sum) : sum;
        };
        std::vector<V> held;
        if (vectors <= rows) {
            for (int v = 0; v < vectors; ++v) held.push_back(load_column(v));
            for (int r = 0; r < rows; ++r) {
                V left = load_row(r);
                for (int v = 0; v < vectors; ++v) {
                    sums[at(r, v)] = multiply_add(left, held[static_cast<size_t>(v)], sums[at(r, v)]);
                }
            }
        } else {
            for (int r = 0; r < rows; ++r) held.push_back(load_row(r));
            for (int v = 0; v < vectors; ++v) {
                V right = load_column(v);
                for (int r = 0; r < rows; ++r) {
                    sums[at(r, v)] = multiply_add(held[static_cast<size_t>(r)], right, sums[at(r, v)]);
                }
            }
        }
        return sums;
    };

    // C is the start of the sums, or zero.
    LLVMBasicBlockRef adds = ir.block(f, "adds"), work = ir.block(f, "work"), entry = ir.here();
    LLVMBuildCondBr(ir.builder, ir.icmp(LLVMIntNE, accumulate, ir.int64(0)), adds, work);
    ir.position(adds);
    auto c_at = [&](int r, int v) {
        return ir.at(s.accumulator, ir.at(s.accumulator, c, ir.mul(ldc, ir.int64(r))), v * s.lanes);
    };
    Values old;
    for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < vectors; ++v) old.push_back(ir.load(vector, c_at(r, v), kAnyAlignment));
    }
    LLVMBuildBr(ir.builder, work);
    ir.position(work);
    Values acc;
    for (V value : old) {
        acc.push_back(LLVMBuildPhi(ir.builder, vector, ""));
        V values[2] = {value, LLVMConstNull(vector)};
        LLVMBasicBlockRef blocks[2] = {adds, entry};
        LLVMAddIncoming(acc.back(), values, blocks, 2);
    }

    int width = s.pairs ? 2 : 1;
    bool full = rows == s.rows && vectors == s.vectors;
    int unroll = full ? 4 : vectors == s.vectors && rows * vectors > 12 ? 2 : 1;
    V next = ir.int64(0);
    for (int steps : {unroll, 1}) {
        acc = ir.loop(
            next, k, steps * width, acc,
            [&](V i, Values sums) {
                for (int u = 0; u < steps; ++u) sums = step(ir.add(i, ir.int64(u * width)), sums, true);
                return sums;
            },
            &next);
        if (unroll == 1) break;
    }
    if (s.pairs) {
        acc = ir.loop(next, k, 1, acc, [&](V i, Values sums) { return step(i, sums, false); });
    }
    for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < vectors; ++v) ir.store(acc[at(r, v)], c_at(r, v), kAnyAlignment);
    }
    LLVMBuildRetVoid(ir.builder);
}

// dot_<rows>_<columns>: lane sums along k, added up at the end.
void emit_dot(const Scheme& s, int rows, int columns) {
    const TileIr& ir = s.ir;
    V f = ir.function("dot_" + std::to_string(rows) + "_" + std::to_string(columns), ir.none,
                      {ir.ptr, ir.i64, ir.ptr, ir.i64, ir.ptr, ir.i64, ir.i64});
    V a = LLVMGetParam(f, 0), lda = LLVMGetParam(f, 1), b = LLVMGetParam(f, 2), ldb = LLVMGetParam(f, 3);
    V c = LLVMGetParam(f, 4), ldc = LLVMGetParam(f, 5), k = LLVMGetParam(f, 6);
    bool a_is_raw = s.pairs;  // A holds elements of the dtype and is widened like B
    auto row_of = [&](Ty type, V base, V stride, int r) { return ir.at(type, base, ir.mul(stride, ir.int64(r))); };
    std::vector<V> a_rows, b_rows;
    for (int r = 0; r < rows; ++r) a_rows.push_back(row_of(s.a_element, a, lda, r));
    for (int j = 0; j < columns; ++j) b_rows.push_back(row_of(s.element, b, ldb, j));
    auto at = [&](int r, int j) { return static_cast<size_t>(r * columns + j); };

    Ty sum_type = TileIr::vec(s.accumulator, s.lanes);
    Ty a_type = TileIr::vec(s.a_element, s.lanes);
    Values acc(static_cast<size_t>(rows * columns), LLVMConstNull(sum_type));
    V next = nullptr;
    acc = ir.loop(
        ir.int64(0), k, s.lanes, acc,
        [&](V i, Values sums) {
            std::vector<V> left;
            for (V row : a_rows) {
                V value = ir.load(a_type, ir.at(s.a_element, row, i), kAnyAlignment);
                left.push_back(a_is_raw ? s.widen(value, s.lanes) : value);
            }
            for (int j = 0; j < columns; ++j) {
                V where = ir.at(s.element, b_rows[static_cast<size_t>(j)], i);
                V right = s.widen(ir.load(TileIr::vec(s.element, s.lanes), where, kAnyAlignment), s.lanes);
                for (int r = 0; r < rows; ++r) {
                    sums[at(r, j)] = ir.fma(left[static_cast<size_t>(r)], right, sums[at(r, j)]);
                }
            }
            return sums;
        },
        &next);
    // The ends go through memory, so that adding up lanes and the rest of K are written once.
    int count = rows * columns;
    V lanes_of = LLVMBuildAlloca(ir.builder, LLVMArrayType2(sum_type, static_cast<uint64_t>(count)), "");
    LLVMSetAlignment(lanes_of, 64);
    for (int n = 0; n < count; ++n) ir.store(acc[static_cast<size_t>(n)], ir.at(sum_type, lanes_of, n), 64);
    ir.loop(ir.int64(0), ir.int64(rows), 1, {}, [&](V r, Values) {
        ir.loop(ir.int64(0), ir.int64(columns), 1, {}, [&](V j, Values) {
            V n = ir.add(ir.mul(r, ir.int64(columns)), j);
            V sum = ir.load(sum_type, ir.at(sum_type, lanes_of, n), 64);
            for (int half = s.lanes / 2; half >= 1; half /= 2) {
                std::vector<int> low, high;
                for (int lane = 0; lane < half; ++lane) {
                    low.push_back(lane);
                    high.push_back(lane + half);
                }
                sum = ir.fadd(ir.shuffle(sum, sum, low), ir.shuffle(sum, sum, high));
            }
            V total = LLVMBuildExtractElement(ir.builder, sum, ir.int32(0), "");
            V a_row = ir.at(s.a_element, a, ir.mul(lda, r)), b_row = ir.at(s.element, b, ir.mul(ldb, j));
            total = ir.loop(next, k, 1, {total}, [&](V i, Values so_far) {
                V left = ir.load(s.a_element, ir.at(s.a_element, a_row, i), kAnyAlignment);
                if (a_is_raw) left = s.widen_scalar(left);
                V right = s.widen_scalar(ir.load(s.element, ir.at(s.element, b_row, i), kAnyAlignment));
                return Values{ir.fma(left, right, so_far[0])};
            })[0];
            ir.store(total, ir.at(s.accumulator, ir.at(s.accumulator, c, ir.mul(ldc, r)), j), kAnyAlignment);
            return Values{};
        });
        return Values{};
    });
    LLVMBuildRetVoid(ir.builder);
}

// Transposes `lanes` vectors of `lanes` words of 4 or 8 bytes: inside 128-bit blocks by unpacking, then the blocks
// themselves. Each shuffle is one instruction of its own on x86.
std::vector<V> transpose(const TileIr& ir, const std::vector<V>& rows, int lanes, int word_bytes) {
    int in_block = 16 / word_bytes;                                       // words of a block
    auto in_blocks = [&](V a, V b, std::initializer_list<int> pattern) {  // entries from in_block on choose from b
        std::vector<int> mask;
        for (int block = 0; block < lanes; block += in_block) {
            for (int entry : pattern)
                mask.push_back(entry < in_block ? block + entry : lanes + block + entry - in_block);
        }
        return ir.shuffle(a, b, mask);
    };
    auto of_blocks = [&](V a, V b, std::initializer_list<int> blocks) {  // block numbers of a, then of b
        std::vector<int> mask;
        for (int block : blocks) {
            for (int lane = 0; lane < in_block; ++lane) mask.push_back(in_block * block + lane);
        }
        return ir.shuffle(a, b, mask);
    };
    auto width = static_cast<size_t>(in_block);
    size_t groups = static_cast<size_t>(lanes) / width;
    std::vector<std::vector<V>> w(groups);  // block b of w[g][c]: column b * width + c of the rows of group g
    for (size_t g = 0; g < groups; ++g) {
        const V* r = rows.data() + width * g;
        if (width == 2) {
            w[g] = {in_blocks(r[0], r[1], {0, 2}), in_blocks(r[0], r[1], {1, 3})};
            continue;
        }
        V t0 = in_blocks(r[0], r[1], {0, 4, 1, 5}), t1 = in_blocks(r[0], r[1], {2, 6, 3, 7});
        V t2 = in_blocks(r[2], r[3], {0, 4, 1, 5}), t3 = in_blocks(r[2], r[3], {2, 6, 3, 7});
        w[g] = {in_blocks(t0, t2, {0, 1, 4, 5}), in_blocks(t0, t2, {2, 3, 6, 7}), in_blocks(t1, t3, {0, 1, 4, 5}),
                in_blocks(t1, t3, {2, 3, 6, 7})};
    }
    std::vector<V> columns(rows.size());
    for (size_t c = 0; c < width; ++c) {
        if (groups == 1) {
            columns[c] = w[0][c];
        } else if (groups == 2) {
            columns[c] = of_blocks(w[0][c], w[1][c], {0, 2});
            columns[width + c] = of_blocks(w[0][c], w[1][c], {1, 3});
        } else {
            V even_low = of_blocks(w[0][c], w[1][c], {0, 2, 4, 6}), odd_low = of_blocks(w[0][c], w[1][c], {1, 3, 5, 7});
            V even_high = of_blocks(w[2][c], w[3][c], {0, 2, 4, 6});
            V odd_high = of_blocks(w[2][c], w[3][c], {1, 3, 5, 7});
            columns[c] = of_blocks(even_low, even_high, {0, 2, 4, 6});
            columns[2 * width + c] = of_blocks(even_low, even_high, {1, 3, 5, 7});
            columns[width + c] = of_blocks(odd_low, odd_high, {0, 2, 4, 6});
            columns[3 * width + c] = of_blocks(odd_low, odd_high, {1, 3, 5, 7});
        }
    }
    return columns;
}

// pack_columns in square blocks of words: elements of 4 or 8 bytes, pairs that stay together, or pairs of 16-bit
// elements that part after the transposition. What is left of K goes one element at a time.
void emit_pack_columns(const Scheme& s) {
    const TileIr& ir = s.ir;
    V f = ir.function("pack_columns", ir.none, {ir.ptr, ir.i64, ir.ptr, ir.i64, ir.i64, ir.i64});
    V source = LLVMGetParam(f, 0), ld = LLVMGetParam(f, 1), panel = LLVMGetParam(f, 2), width = LLVMGetParam(f, 3);
    V columns = LLVMGetParam(f, 4), k = LLVMGetParam(f, 5);
    bool parts = s.element_bytes == 2 && !s.pairs;
    Ty word = s.element_bytes == 8 ? ir.i64 : ir.i32;
    Ty unit = parts ? ir.i16 : word;
    unsigned align = kAnyAlignment;
    int lanes = s.lanes;
    int step = parts ? 2 * lanes : lanes;  // units of K that a block takes
    if (s.pairs) k = LLVMBuildLShr(ir.builder, k, ir.int64(1), "");
    Ty vector = TileIr::vec(word, lanes);
    auto row = [&](V j) { return ir.at(s.element, source, ir.mul(j, ld)); };
    auto scalars = [&](V j_begin, V j_end, V k_begin) {
        ir.loop(j_begin, j_end, 1, {}, [&](V j, Values) {
            ir.loop(k_begin, k, 1, {}, [&](V i, Values) {
                V value = ir.load(unit, ir.at(unit, row(j), i), align);
                ir.store(value, ir.at(unit, panel, ir.add(ir.mul(i, width), j)), align);
                return Values{};
            });
            return Values{};
        });
    };
    auto zeros = [&](V j_begin, V j_end, V k_begin) {
        ir.loop(j_begin, j_end, 1, {}, [&](V j, Values) {
            ir.loop(k_begin, k, 1, {}, [&](V i, Values) {
                ir.store(LLVMConstNull(unit), ir.at(unit, panel, ir.add(ir.mul(i, width), j)), align);
                return Values{};
            });
            return Values{};
        });
    };
    // Whole vectors of columns; a column that does not exist reads the last one and becomes zero.
    V j_next = nullptr;
    V last = ir.sub(columns, ir.int64(1));
    ir.loop(
        ir.int64(0), width, lanes, {},
        [&](V j, Values) {
            V k_next = nullptr;
            std::vector<V> rows, exists;
            for (int r = 0; r < lanes; ++r) {
                V column = ir.add(j, ir.int64(r));
                rows.push_back(row(ir.intrinsic("llvm.smin", {ir.i64}, {column, last})));
                exists.push_back(ir.icmp(LLVMIntSLE, column, last));
            }
            ir.loop(
                ir.int64(0), k, step, {},
                [&](V i, Values) {
                    std::vector<V> block;
                    for (size_t r = 0; r < rows.size(); ++r) {
                        V value = ir.load(vector, ir.at(unit, rows[r], i), align);
                        block.push_back(ir.select(exists[r], value, LLVMConstNull(vector)));
                    }
                    block = transpose(ir, block, lanes, s.element_bytes == 8 ? 8 : 4);
                    auto store = [&](V value, int r) {
                        V to = ir.at(unit, panel, ir.add(ir.mul(ir.add(i, ir.int64(r)), width), j));
                        ir.store(value, to, align);
                    };
                    for (int r = 0; r < lanes; ++r) {
                        V value = block[static_cast<size_t>(r)];
                        if (!parts) {
                            store(value, r);
                            continue;
                        }
                        V high = LLVMBuildLShr(ir.builder, value, ir.splat(ir.int32(16), lanes), "");
                        store(LLVMBuildTrunc(ir.builder, value, TileIr::vec(ir.i16, lanes), ""), 2 * r);
                        store(LLVMBuildTrunc(ir.builder, high, TileIr::vec(ir.i16, lanes), ""), 2 * r + 1);
                    }
                    return Values{};
                },
                &k_next);
            V present = ir.intrinsic("llvm.smin", {ir.i64}, {ir.add(j, ir.int64(lanes)), columns});
            scalars(j, present, k_next);
            zeros(present, ir.add(j, ir.int64(lanes)), k_next);
            return Values{};
        },
        &j_next);
    scalars(j_next, columns, ir.int64(0));
    zeros(ir.intrinsic("llvm.smax", {ir.i64}, {columns, j_next}), width, ir.int64(0));
    LLVMBuildRetVoid(ir.builder);
}

// pack_row_pairs: interleaves two rows of 16-bit elements.
void emit_pack_row_pairs(const Scheme& s) {
    const TileIr& ir = s.ir;
    V f = ir.function("pack_row_pairs", ir.none, {ir.ptr, ir.i64, ir.ptr, ir.i64, ir.i64, ir.i64});
    V source = LLVMGetParam(f, 0), ld = LLVMGetParam(f, 1), panel = LLVMGetParam(f, 2), width = LLVMGetParam(f, 3);
    V columns = LLVMGetParam(f, 4), k = LLVMGetParam(f, 5);
    ir.loop(ir.int64(0), k, 2, {}, [&](V i, Values) {
        V low = ir.at(ir.i16, source, ir.mul(i, ld));
        V high = ir.at(ir.i16, low, ld);
        V out = ir.at(ir.i16, panel, ir.mul(i, width));
        auto join = [&](V j, int count) {
            auto type = [&](Ty element) { return count ? TileIr::vec(element, count) : element; };
            auto load = [&](V base) {
                return LLVMBuildZExt(ir.builder, ir.load(type(ir.i16), ir.at(ir.i16, base, j), kAnyAlignment),
                                     type(ir.i32), "");
            };
            V sixteen = count ? ir.splat(ir.int32(16), count) : ir.int32(16);
            V pair = LLVMBuildOr(ir.builder, load(low), LLVMBuildShl(ir.builder, load(high), sixteen, ""), "");
            ir.store(pair, ir.at(ir.i32, out, j), 2);
            return Values{};
        };
        V next = nullptr;
        ir.loop(ir.int64(0), columns, s.lanes, {}, [&](V j, Values) { return join(j, s.lanes); }, &next);
        ir.loop(next, columns, 1, {}, [&](V j, Values) { return join(j, 0); });
        ir.loop(columns, width, 1, {}, [&](V j, Values) {
            ir.store(ir.int32(0), ir.at(ir.i32, out, j), 2);
            return Values{};
        });
        return Values{};
    });
    LLVMBuildRetVoid(ir.builder);
}

// f32 to bf16 bits: round to nearest even, NaN stays NaN. Works on a scalar or a vector of `count` (0: scalar).
V narrow_bf16(const TileIr& ir, V value, int count) {
    auto constant = [&](int64_t bits) { return count ? ir.splat(ir.int32(bits), count) : ir.int32(bits); };
    Ty wide = count ? TileIr::vec(ir.i32, count) : ir.i32;
    Ty narrow = count ? TileIr::vec(ir.i16, count) : ir.i16;
    V bits = LLVMBuildBitCast(ir.builder, value, wide, "");
    V odd = LLVMBuildAnd(ir.builder, LLVMBuildLShr(ir.builder, bits, constant(16), ""), constant(1), "");
    V rounded = ir.add(ir.add(bits, constant(0x7fff)), odd);
    V quiet = LLVMBuildOr(ir.builder, bits, constant(0x400000), "");
    V result = ir.select(ir.fcmp(LLVMRealUNO, value, value), quiet, rounded);
    return LLVMBuildTrunc(ir.builder, LLVMBuildLShr(ir.builder, result, constant(16), ""), narrow, "");
}

void emit_converts(const Scheme& s) {
    const TileIr& ir = s.ir;
    for (bool widening : {true, false}) {
        V f = ir.function(widening ? "to_a_type" : "from_accumulator", ir.none, {ir.ptr, ir.ptr, ir.i64});
        V source = LLVMGetParam(f, 0), target = LLVMGetParam(f, 1), n = LLVMGetParam(f, 2);
        auto step = [&](V i, int count) {
            auto type = [&](Ty element) { return count ? TileIr::vec(element, count) : element; };
            if (widening) {
                V value = ir.load(type(s.element), ir.at(s.element, source, i), kAnyAlignment);
                ir.store(count ? s.widen(value, count) : s.widen_scalar(value), ir.at(ir.f32, target, i), 4);
                return Values{};
            }
            V value = ir.load(type(ir.f32), ir.at(ir.f32, source, i), 4);
            V result = s.dtype == DType::kBF16 ? narrow_bf16(ir, value, count)
                                               : LLVMBuildFPTrunc(ir.builder, value, type(ir.f16), "");
            ir.store(result, ir.at(s.element, target, i), kAnyAlignment);
            return Values{};
        };
        V next = nullptr;
        ir.loop(ir.int64(0), n, s.lanes, {}, [&](V i, Values) { return step(i, s.lanes); }, &next);
        ir.loop(next, n, 1, {}, [&](V i, Values) { return step(i, 0); });
        LLVMBuildRetVoid(ir.builder);
    }
}

struct CompiledTiles {
    GemmTiles tiles;
    std::vector<LoadedObject> objects;

    void* lookup(const std::string& name) const {
        for (const LoadedObject& object : objects) {
            if (void* found = object.lookup(name)) return found;
        }
        return nullptr;
    }
};

// The functions of a table, in parts of about equal work for the compiler.
void emit_part(const Scheme& s, const TileIr& ir, int part) {
    bool half = s.element_bytes == 2;
    bool matrix_unit = s.pairs && host_target().has_amx_bf16;
    switch (part) {
        case 0:
            for (int rows = 1; rows <= s.rows && !matrix_unit; ++rows) emit_tile(s, rows, s.vectors);
            if (matrix_unit) emit_matrix_unit(ir);
            return;
        case 1:
            for (int rows = 1; rows <= s.rows; ++rows) {
                for (int vectors = 1; vectors < s.vectors; ++vectors) emit_tile(s, rows, vectors);
            }
            return;
        case 2:
            for (int rows = 1; rows <= kMaxDotRows; ++rows) {
                emit_dot(s, rows, kDotColumns);
                emit_dot(s, rows, 1);
            }
            if (half) emit_converts(s);
            return;
        case 3:
            emit_pack_columns(s);
            if (s.pairs) emit_pack_row_pairs(s);
            for (int rows = 1; rows <= kMaxWideRows && !s.pairs; ++rows) {
                emit_tile(s, rows, s.wide_panels(rows) * s.vectors);
            }
            return;
    }
}
constexpr int kParts = 4;

Expected<CompiledTiles> generate_tiles(DType dtype) {
    std::array<std::optional<Expected<LoadedObject>>, kParts> parts;
    runtime::parallel_for(kParts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part) {
            ModuleBuilder owner("gemm");
            TileIr ir(owner);
            emit_part(Scheme(ir, dtype), ir, static_cast<int>(part));
            parts[static_cast<size_t>(part)].emplace(compile(owner.module()));
        }
    });
    CompiledTiles result;
    for (auto& part : parts) {
        LoadedObject object;
        FLEXOR_ASSIGN(object, std::move(*part));
        result.objects.push_back(std::move(object));
    }
    ModuleBuilder unused("gemm");
    TileIr ir(unused);
    Scheme s(ir, dtype);
    bool matrix_unit = s.pairs && host_target().has_amx_bf16;
    GemmTiles& tiles = result.tiles;
    tiles.dtype = dtype;
    tiles.accumulator = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    tiles.a_type = s.pairs ? DType::kBF16 : tiles.accumulator;
    tiles.pairs = s.pairs;
    tiles.max_rows = s.rows;
    tiles.lanes = s.lanes;
    tiles.vectors = s.vectors;
    auto find = [&]<typename F>(F& slot, const std::string& name) { slot = reinterpret_cast<F>(result.lookup(name)); };
    for (int rows = 1; rows <= s.rows; ++rows) {
        for (int vectors = 1; vectors <= s.vectors; ++vectors) {
            find(tiles.tile[rows - 1][vectors - 1], "tile_" + std::to_string(rows) + "_" + std::to_string(vectors));
        }
    }
    for (int rows = 1; rows <= kMaxDotRows; ++rows) {
        find(tiles.dot[rows - 1], "dot_" + std::to_string(rows) + "_" + std::to_string(kDotColumns));
        find(tiles.dot_single[rows - 1], "dot_" + std::to_string(rows) + "_1");
    }
    for (int rows = 1; rows <= kMaxWideRows && !s.pairs; ++rows) {
        tiles.wide_panels[rows - 1] = s.wide_panels(rows);
        std::string columns = std::to_string(s.wide_panels(rows) * s.vectors);
        find(tiles.wide[rows - 1], "tile_" + std::to_string(rows) + "_" + columns);
    }
    find(tiles.pack_columns, "pack_columns");
    find(tiles.to_a_type, "to_a_type");
    if (s.pairs) tiles.to_a_type = nullptr;
    find(tiles.from_accumulator, "from_accumulator");
    find(tiles.pack_row_pairs, "pack_row_pairs");
    if (matrix_unit) use_matrix_unit(result.objects[0], tiles);
    return result;
}

}  // namespace

Expected<const GemmTiles*> host_gemm_tiles(DType dtype) {
    struct Slot {
        std::once_flag once;
        std::optional<Expected<CompiledTiles>> compiled;
    };
    // Never freed: other threads may run generated code while the process ends.
    static auto& slots = *new std::array<Slot, kDTypeCount>();
    if (!is_floating(dtype)) {
        return Diagnostic(DiagnosticId::kOpNotCompiled).found("integer matrix multiplication");
    }
    Slot& slot = slots[static_cast<size_t>(dtype)];
    const support::ForkSection section;
    const runtime::StopScope unasked(nullptr, runtime::StopScope::Role::kOwner);  // nobody may fork inside call_once
    std::call_once(slot.once, [&] { slot.compiled.emplace(generate_tiles(dtype)); });
    if (!*slot.compiled) return Diagnostic(slot.compiled->error());
    return &(**slot.compiled).tiles;
}

void install_host_gemm_tiles() {
    runtime::install_gemm_tiles([](DType dtype) -> const GemmTiles* {
        auto tiles = host_gemm_tiles(dtype);
        return tiles ? *tiles : nullptr;
    });
}

}  // namespace flexor::codegen::cpu_llvm
