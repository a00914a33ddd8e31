#include "vm/loop_packs.h"

#include "runtime/kernels/gemm.h"

namespace flexor::vm {

namespace {
constexpr std::int32_t kUnpackedUses = 2;
}

LoopPacks::LoopPacks(std::vector<LoopPack>& table, std::uint32_t count, runtime::PoolCache& cache)
    : table_(table), cache_(cache) {
    table_.assign(count, {});
}

LoopPacks::~LoopPacks() {
    for (const LoopPack& pack : table_) {
        if (pack.block.data != nullptr) cache_.release(pack.block);
    }
    table_.clear();
}

const void* LoopPacks::find(std::uint32_t index, const loopir::Kernel& kernel, void* const* buffers,
                            const std::int64_t* params) {
    const loopir::Contraction& c = *kernel.contraction;
    const auto number = [&](const loopir::IntRef& r) { return r.is_constant ? r.value : params[r.value]; };
    const std::int64_t bytes = static_cast<std::int64_t>(dtype_size(c.b_dtype));
    const void* source = static_cast<const char*>(buffers[c.b.buffer]) + number(c.b.offset) * bytes;
    const std::array geometry{number(c.k), number(c.n), number(c.b.row_stride), number(c.b.col_stride)};
    const auto [k, n, row_stride, col_stride] = geometry;
    LoopPack& pack = table_[index];
    if (pack.source != source || pack.geometry != geometry) {
        if (pack.block.data != nullptr) cache_.release(pack.block);
        pack = {source, geometry, 1, {}};
        return nullptr;
    }
    if (pack.block.data != nullptr) return pack.block.data;
    if (++pack.uses != kUnpackedUses + 1) return nullptr;
    if (!runtime::gains_from_packing(c.b_dtype, number(c.m), k, n, row_stride, col_stride)) return nullptr;
    pack.block = cache_.allocate(runtime::packed_b_bytes(c.b_dtype, k, n));
    if (pack.block.data != nullptr) runtime::pack_b(c.b_dtype, k, n, source, row_stride, col_stride, pack.block.data);
    return pack.block.data;
}

}  // namespace flexor::vm
