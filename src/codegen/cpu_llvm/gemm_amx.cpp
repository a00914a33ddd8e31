#include "codegen/cpu_llvm/gemm_amx.h"

#include <algorithm>

namespace flexor::codegen::cpu_llvm {
namespace {

using runtime::GemmTiles;
using runtime::TileFunction;

constexpr int kTileRows = 16;        // of one tile register
constexpr std::int64_t kDepth = 32;  // elements of K that one tile of A holds
constexpr int kMaxRows = 2 * kTileRows;

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t column_bytes[16] = {};
    std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Registers: C at 2*r + v, A at 4 + r, B at 6 + v.
TileConfig config_for(int rows) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) config.column_bytes[tile] = 64;
    for (int r = 0; r < 2; ++r) {
        int height = std::clamp(rows - r * kTileRows, 0, kTileRows);
        if (height == 0) height = 1;  // configured, not used
        config.rows[2 * r] = config.rows[2 * r + 1] = config.rows[4 + r] = static_cast<std::uint8_t>(height);
    }
    config.rows[6] = config.rows[7] = kTileRows;
    return config;
}

using CoreFunction = void (*)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c,
                              std::int64_t ldc, std::int64_t k, std::int64_t accumulate, const TileConfig* config);

// Set once, before the table that points to amx_block is published.
struct MatrixUnit {
    CoreFunction core[2][2];  // [rows > 16][vectors - 1]
    TileFunction tile[8][2];
    int tile_rows;
    TileConfig config[kMaxRows + 1];
};
MatrixUnit unit;

void amx_block(const void* a_in, std::int64_t lda, const void* b_in, std::int64_t ldb, void* c_in, std::int64_t ldc,
               std::int64_t k, std::int64_t accumulate, int rows, int vectors) {
    const auto* a = static_cast<const std::uint16_t*>(a_in);
    const auto* b = static_cast<const std::uint16_t*>(b_in);
    auto* c = static_cast<float*>(c_in);
    std::int64_t whole = k / kDepth * kDepth;
    if (whole > 0) {
        unit.core[rows > kTileRows][vectors - 1](a, lda, b, ldb, c, ldc, whole, accumulate, &unit.config[rows]);
    }
    if (whole == k && k > 0) return;
    // The rest of K, or K = 0: the vector tiles.
    for (int r = 0; r < rows; r += unit.tile_rows) {
        int height = std::min(unit.tile_rows, rows - r);
        unit.tile[height - 1][vectors - 1](a + r * lda + whole, lda, b + whole * ldb, ldb, c + r * ldc, ldc, k - whole,
                                           accumulate || whole > 0);
    }
}

void emit_core(const TileIr& ir, int row_tiles, int vectors) {
    V f = ir.function("amx_" + std::to_string(row_tiles) + "_" + std::to_string(vectors), ir.none,
                      {ir.ptr, ir.i64, ir.ptr, ir.i64, ir.ptr, ir.i64, ir.i64, ir.i64, ir.ptr});
    V a = LLVMGetParam(f, 0), lda = LLVMGetParam(f, 1), b = LLVMGetParam(f, 2), ldb = LLVMGetParam(f, 3);
    V c = LLVMGetParam(f, 4), ldc = LLVMGetParam(f, 5), k = LLVMGetParam(f, 6), accumulate = LLVMGetParam(f, 7);
    auto reg = [&](int index) { return LLVMConstInt(ir.i8, static_cast<unsigned long long>(index), 0); };
    V a_stride = ir.mul(lda, ir.int64(2)), b_stride = ir.mul(ldb, ir.int64(4)), c_stride = ir.mul(ldc, ir.int64(4));
    std::vector<V> a_rows;
    for (int r = 0; r < row_tiles; ++r) a_rows.push_back(ir.at(ir.i16, a, ir.mul(lda, ir.int64(r * kTileRows))));
    auto c_at = [&](int r, int v) {
        return ir.at(ir.f32, c, ir.add(ir.mul(ldc, ir.int64(r * kTileRows)), ir.int64(v * 16)));
    };
    ir.intrinsic("llvm.x86.ldtilecfg", {}, {LLVMGetParam(f, 8)});
    LLVMBasicBlockRef adds = ir.block(f, "adds"), sets = ir.block(f, "sets"), work = ir.block(f, "work");
    LLVMBuildCondBr(ir.builder, ir.icmp(LLVMIntNE, accumulate, ir.int64(0)), adds, sets);
    for (bool add : {true, false}) {
        ir.position(add ? adds : sets);
        for (int r = 0; r < row_tiles; ++r) {
            for (int v = 0; v < vectors; ++v) {
                if (add) {
                    ir.intrinsic("llvm.x86.tileloadd64", {}, {reg(2 * r + v), c_at(r, v), c_stride});
                } else {
                    ir.intrinsic("llvm.x86.tilezero", {}, {reg(2 * r + v)});
                }
            }
        }
        LLVMBuildBr(ir.builder, work);
    }
    ir.position(work);
    ir.loop(ir.int64(0), k, kDepth, {}, [&](V i, TileIr::Values) {
        V b_row = ir.at(ir.i16, b, ir.mul(i, ldb));
        for (int v = 0; v < vectors; ++v) {
            ir.intrinsic("llvm.x86.tileloadd64", {}, {reg(6 + v), ir.at(ir.i16, b_row, v * 32), b_stride});
        }
        for (int r = 0; r < row_tiles; ++r) {
            V a_column = ir.at(ir.i16, a_rows[static_cast<size_t>(r)], i);
            ir.intrinsic("llvm.x86.tileloadd64", {}, {reg(4 + r), a_column, a_stride});
            for (int v = 0; v < vectors; ++v) {
                ir.intrinsic("llvm.x86.tdpbf16ps", {}, {reg(2 * r + v), reg(4 + r), reg(6 + v)});
            }
        }
        return TileIr::Values{};
    });
    for (int r = 0; r < row_tiles; ++r) {
        for (int v = 0; v < vectors; ++v) {
            ir.intrinsic("llvm.x86.tilestored64", {}, {reg(2 * r + v), c_at(r, v), c_stride});
        }
    }
    ir.intrinsic("llvm.x86.tilerelease", {}, {});
    LLVMBuildRetVoid(ir.builder);
}

}  // namespace

void emit_matrix_unit(const TileIr& ir) {
    for (int row_tiles : {1, 2}) {
        for (int vectors : {1, 2}) emit_core(ir, row_tiles, vectors);
    }
}

void use_matrix_unit(const LoadedObject& object, GemmTiles& tiles) {
    for (int r = 0; r < 2; ++r) {
        for (int v = 0; v < 2; ++v) {
            std::string name = "amx_" + std::to_string(r + 1) + "_" + std::to_string(v + 1);
            unit.core[r][v] = reinterpret_cast<CoreFunction>(object.lookup(name));
        }
    }
    unit.tile_rows = tiles.max_rows;
    for (int r = 0; r < tiles.max_rows; ++r) std::copy(tiles.tile[r], tiles.tile[r] + 2, unit.tile[r]);
    for (int rows = 1; rows <= kMaxRows; ++rows) unit.config[rows] = config_for(rows);
    tiles.block = amx_block;
    tiles.max_rows = kMaxRows;
    tiles.vectors = 2;
}

}  // namespace flexor::codegen::cpu_llvm
