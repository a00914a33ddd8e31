#include "runtime/kernels/gemm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/kernels/gemm_pack.h"
#include "runtime/kernels/own_workspace.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/check.h"

namespace flexor::runtime {
namespace {

// Bytes that a panel of B may fill: most of the second-level cache. More than a megabyte gains nothing.
std::int64_t panel_bytes() {
    static const std::int64_t bytes = [] {
        constexpr std::int64_t kMost = 960 << 10;
        const std::int64_t cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
        return cache > 0 ? std::min(kMost, cache / 16 * 15) : kMost;
    }();
    return bytes;
}
// Up to this many rows B is read once or twice, so that packing it would cost more than it saves.
constexpr std::int64_t kDirectRows = 16;
// A row of B this short (in bytes) leaves B dense in pages: reading it in place is as good as a packed panel.
constexpr std::int64_t kDenseRowBytes = 1024;
// A task shorter than this many multiply-adds costs more to hand out than to run.
constexpr double kLeastTaskWork = 400e3;
// Multiply-adds between two questions whether the run is to stop.
constexpr std::int64_t kUncheckedWork = 4 << 20;
constexpr std::size_t kLargePage = std::size_t{2} << 20;

// Where a panel of B comes from.
enum class BSource : std::uint8_t {
    kPacked,   // packed by the caller
    kDirect,   // read in place; only a last panel that is no whole vector is packed
    kDot,      // contiguous along K and few rows: dot products
    kPanel,    // each task packs the panel it uses
    kShared,   // packed as a whole before the tasks start (prologue)
    kPrivate,  // each thread packs the whole B of the batch index it works on (prologue)
};

struct GemmPlan {
    const GemmTiles* tiles;
    std::int64_t m, n, k;
    int rank;
    std::int64_t batch[kMaxBatchRank];
    std::int64_t batches;
    std::int64_t fold;  // batch dims folded into m: this many, each fold_rows rows
    std::int64_t fold_rows;
    BSource b_source;
    bool copy_a;                          // A is copied (strides, conversion) before the tasks start
    std::int64_t a_distinct, b_distinct;  // matrices that differ
    std::int64_t panels;
    std::int64_t rows_per_block, row_blocks;
    std::int64_t panels_per_block, panel_blocks;
    std::int64_t k_block;
    int slots;
    std::int64_t a_bytes, b_bytes, slot_bytes;  // workspace: copied A, packed B, then one piece a slot
    std::int64_t slot_a2, slot_b, slot_c;       // offsets inside a slot's piece

    std::int64_t total_bytes() const { return a_bytes + b_bytes + slots * slot_bytes; }
};

bool folds(const GemmCall& call, std::int64_t rows, int dim) {
    if (call.prologue || call.b.batch_strides[dim] != 0) return false;
    if (call.a.batch_strides[dim] != rows * call.a.row_stride) return false;
    return call.epilogue || call.c.batch_strides[dim] == rows * call.c.row_stride;
}

GemmPlan plan_gemm(const GemmCall& call) {
    GemmPlan p{};
    p.tiles = call.tiles ? call.tiles : gemm_tiles(call.dtype);
    FLEXOR_CHECK(p.tiles != nullptr && call.batch_rank <= kMaxBatchRank);
    const GemmTiles& t = *p.tiles;
    std::int64_t size = static_cast<std::int64_t>(dtype_size(t.dtype));
    std::int64_t a_size = static_cast<std::int64_t>(dtype_size(t.a_type));
    std::int64_t acc_size = static_cast<std::int64_t>(dtype_size(t.accumulator));
    p.m = call.m;
    p.n = call.n;
    p.k = call.k;
    p.rank = call.batch_rank;
    p.fold = 1;
    p.fold_rows = call.m;
    while (p.rank > 0 && folds(call, p.m, p.rank - 1)) {
        --p.rank;
        p.fold *= call.batch[p.rank];
        p.m *= call.batch[p.rank];
    }
    p.batches = p.a_distinct = p.b_distinct = 1;
    for (int d = 0; d < p.rank; ++d) {
        p.batch[d] = call.batch[d];
        p.batches *= p.batch[d];
        if (call.a.batch_strides[d] != 0) p.a_distinct *= p.batch[d];
        if (call.b.batch_strides[d] != 0) p.b_distinct *= p.batch[d];
    }
    p.slots = thread_count();
    p.panels = ceil_div(std::max<std::int64_t>(p.n, 0), t.panel_columns());
    if (p.m <= 0 || p.n <= 0 || p.batches <= 0) {
        p.batches = 0;
        return p;
    }
    p.copy_a = !call.prologue && (t.a_type != t.dtype || (call.a.col_stride != 1 && p.k > 1));

    std::int64_t packed_matrix = up(packed_rows(t, p.k) * up(p.n, t.lanes) * size, kAlignment);
    if (call.b_packed) {
        p.b_source = BSource::kPacked;
    } else if (call.b.col_stride == 1 && !t.pairs &&
               (p.m <= kDirectRows || call.b.row_stride * size <= kDenseRowBytes)) {
        p.b_source = BSource::kDirect;
    } else if (call.b.row_stride == 1 && p.m <= kMaxDotRows && t.dot[0]) {
        p.b_source = BSource::kDot;
    } else if (!call.prologue) {
        p.b_source = BSource::kPanel;
    } else {
        p.b_source = p.b_distinct >= 2 * p.slots ? BSource::kPrivate : BSource::kShared;
    }

    // K is cut only where a panel would not fit the second-level cache.
    std::int64_t k_fit = std::max<std::int64_t>(256, panel_bytes() / (t.panel_columns() * size) / 8 * 8);
    p.k_block = p.k <= k_fit + k_fit / 4 ? std::max<std::int64_t>(p.k, 1) : up(ceil_div(p.k, ceil_div(p.k, k_fit)), 8);
    if (p.b_source == BSource::kDot) p.k_block = std::max<std::int64_t>(p.k, 1);
    bool cuts_k = p.k > p.k_block;

    // Rows of a block. A block of A streams past a panel of B that stays in the second-level cache: the longer the
    // panel, the more rows its own way from memory must pay for. Measured: 64 to 512 rows are equal at K = 768.
    std::int64_t most = p.k_block * size <= 4096 ? 256 : 512;
    if (p.b_source == BSource::kPanel) most = cuts_k ? 256 : p.m;
    if (call.prologue) most = 48;
    most = up(most, t.max_rows);
    double work = static_cast<double>(p.m) * static_cast<double>(p.n) *
                  static_cast<double>(std::max<std::int64_t>(p.k, 1)) * static_cast<double>(p.batches);
    std::int64_t wanted =
        p.slots == 1 ? 1 : static_cast<std::int64_t>(std::clamp(work / kLeastTaskWork, 1.0, 8.0 * p.slots));
    p.panels_per_block = p.panels;
    p.row_blocks = ceil_div(p.m, most);
    if (!call.prologue) {
        std::int64_t units = ceil_div(wanted, p.batches * p.row_blocks);
        p.panel_blocks = std::min(p.panels, units);
        p.panels_per_block = ceil_div(p.panels, p.panel_blocks);
    }
    p.panel_blocks = ceil_div(p.panels, p.panels_per_block);
    std::int64_t tasks = p.batches * p.row_blocks * p.panel_blocks;
    if (tasks * 2 <= wanted && p.b_source != BSource::kPrivate) {
        // Too few panels to go round: cut rows as well, but not below what pays for a panel that is packed.
        std::int64_t least = p.b_source == BSource::kPanel ? 64 : t.max_rows;
        std::int64_t rows =
            std::max(least, ceil_div(p.m, std::max<std::int64_t>(1, wanted / (p.batches * p.panel_blocks))));
        most = std::min(most, up(rows, t.max_rows));
        p.row_blocks = ceil_div(p.m, most);
    }
    p.rows_per_block = std::min(most, up(ceil_div(p.m, p.row_blocks), t.max_rows));
    p.row_blocks = ceil_div(p.m, p.rows_per_block);

    if (p.copy_a) p.a_bytes = up(p.a_distinct * p.m * p.k * a_size, kAlignment);
    if (p.b_source == BSource::kShared) p.b_bytes = p.b_distinct * packed_matrix;
    std::int64_t slot = 0;
    if (call.prologue) {
        slot = up(p.rows_per_block * p.k * size, kAlignment);
        p.slot_a2 = slot;
        if (t.a_type != t.dtype) slot += up(p.rows_per_block * p.k * a_size, kAlignment);
    }
    p.slot_b = slot;
    if (p.b_source == BSource::kPrivate) {
        slot += packed_matrix;
    } else if (p.b_source == BSource::kPanel ||
               (p.b_source == BSource::kDirect && p.n % t.panel_columns() % t.lanes != 0)) {
        slot += up(packed_rows(t, p.k) * t.panel_columns() * size, kAlignment);
    }
    p.slot_c = slot;
    if (cuts_k) slot += up(p.rows_per_block * t.panel_columns() * acc_size, kAlignment);
    p.slot_bytes = slot;
    return p;
}

// The offset of a flat batch index under given strides, and its index among the matrices that differ.
struct BatchPlace {
    std::int64_t offset = 0;
    std::int64_t distinct = 0;
};
BatchPlace place(const GemmPlan& p, const std::int64_t* strides, std::int64_t index) {
    BatchPlace result;
    std::int64_t scale = 1;
    for (int d = p.rank - 1; d >= 0; --d) {
        std::int64_t i = index % p.batch[d];
        index /= p.batch[d];
        result.offset += i * strides[d];
        if (strides[d] != 0) {
            result.distinct += i * scale;
            scale *= p.batch[d];
        }
    }
    return result;
}

class GemmRun {
public:
    GemmRun(const GemmCall& call, const GemmPlan& plan, char* workspace)
        : call_(call),
          p_(plan),
          t_(*plan.tiles),
          copied_a_(workspace),
          shared_b_(workspace + plan.a_bytes),
          slots_(workspace + plan.a_bytes + plan.b_bytes),
          size_(static_cast<std::int64_t>(dtype_size(t_.dtype))),
          a_size_(static_cast<std::int64_t>(dtype_size(t_.a_type))),
          acc_size_(static_cast<std::int64_t>(dtype_size(t_.accumulator))),
          matrix_bytes_(up(packed_rows(t_, p_.k) * up(p_.n, t_.lanes) * size_, kAlignment)) {}

    void execute() {
        if (p_.batches == 0) return;
        if (p_.copy_a) copy_a();
        if (p_.b_source == BSource::kShared) pack_shared();
        std::int64_t tasks = p_.batches * p_.row_blocks * p_.panel_blocks;
        std::int64_t grain = p_.b_source == BSource::kPrivate ? p_.row_blocks * p_.panel_blocks : 1;
        parallel_for_slots(tasks, grain, p_.slots, [this](int slot, std::int64_t begin, std::int64_t end) {
            for (std::int64_t task = begin; task < end; ++task) run_task(slot, task, task == begin);
        });
    }

private:
    // One distinct matrix of A or B is found from its flat batch index; broadcast copies are skipped.
    template <typename Body>
    void for_each_distinct(const std::int64_t* strides, std::int64_t pieces, Body&& body) {
        parallel_for(p_.batches * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                std::int64_t index = i / pieces;
                if (is_first_of_its_kind(strides, index)) body(place(p_, strides, index), i % pieces);
            }
        });
    }
    bool is_first_of_its_kind(const std::int64_t* strides, std::int64_t index) const {
        for (int d = p_.rank - 1; d >= 0; --d) {
            if (strides[d] == 0 && index % p_.batch[d] != 0) return false;
            index /= p_.batch[d];
        }
        return true;
    }

    void copy_a() {
        constexpr std::int64_t kRows = 64;
        for_each_distinct(call_.a.batch_strides, ceil_div(p_.m, kRows), [&](BatchPlace where, std::int64_t piece) {
            std::int64_t m0 = piece * kRows;
            std::int64_t rows = std::min(kRows, p_.m - m0);
            const char* from =
                static_cast<const char*>(call_.a.data) + (where.offset + m0 * call_.a.row_stride) * size_;
            char* to = copied_a_ + (where.distinct * p_.m + m0) * p_.k * a_size_;
            pack_a_rows(t_, from, call_.a.row_stride, call_.a.col_stride, rows, p_.k, to);
        });
    }

    void pack_one(const char* b, std::int64_t panel, char* matrix) {
        std::int64_t n0 = panel * t_.panel_columns();
        std::int64_t width = panel_width(t_, p_.n, n0);
        pack_panel(t_, b + n0 * call_.b.col_stride * size_, call_.b.row_stride, call_.b.col_stride, p_.k,
                   std::min(width, p_.n - n0), width, matrix + n0 * packed_rows(t_, p_.k) * size_);
    }

    void pack_shared() {
        for_each_distinct(call_.b.batch_strides, p_.panels, [&](BatchPlace where, std::int64_t panel) {
            const char* b = static_cast<const char*>(call_.b.data) + where.offset * size_;
            pack_one(b, panel, shared_b_ + where.distinct * matrix_bytes_);
        });
    }

    struct Task {
        std::int64_t batch;
        std::int64_t m0, m1;
        const char* a;  // row m0
        std::int64_t lda;
        char* scratch;
        std::int64_t c_offset;   // of the batch index
        std::int64_t unchecked;  // multiply-adds since the last question whether to stop
        bool stopped;
    };

    void check_stop(Task& w, std::int64_t work) const {
        w.unchecked += work;
        if (w.unchecked < kUncheckedWork) return;
        w.unchecked = 0;
        w.stopped = stop_requested();
    }

    void run_task(int slot, std::int64_t task, bool first) {
        std::int64_t panel_block = task % p_.panel_blocks;
        std::int64_t row_block = task / p_.panel_blocks % p_.row_blocks;
        Task w{};
        w.batch = task / p_.panel_blocks / p_.row_blocks;
        w.m0 = row_block * p_.rows_per_block;
        w.m1 = std::min(p_.m, w.m0 + p_.rows_per_block);
        w.scratch = slots_ + slot * p_.slot_bytes;
        w.c_offset = call_.epilogue ? 0 : place(p_, call_.c.batch_strides, w.batch).offset;
        BatchPlace b_place = place(p_, call_.b.batch_strides, w.batch);
        const char* b = static_cast<const char*>(call_.b.data);
        const char* packed = nullptr;
        switch (p_.b_source) {
            case BSource::kPacked: packed = b + b_place.offset * matrix_bytes_; break;
            case BSource::kShared: packed = shared_b_ + b_place.distinct * matrix_bytes_; break;
            case BSource::kPrivate:
                packed = w.scratch + p_.slot_b;
                if (first) {
                    for (std::int64_t panel = 0; panel < p_.panels; ++panel) {
                        pack_one(b + b_place.offset * size_, panel, w.scratch + p_.slot_b);
                    }
                }
                break;
            default: b += b_place.offset * size_; break;
        }
        prepare_a(w);
        std::int64_t last = std::min(p_.panels, (panel_block + 1) * p_.panels_per_block);
        for (std::int64_t panel = panel_block * p_.panels_per_block; panel < last && !w.stopped; ++panel) {
            std::int64_t n0 = panel * t_.panel_columns();
            std::int64_t columns = std::min<std::int64_t>(t_.panel_columns(), p_.n - n0);
            if (p_.b_source == BSource::kDot) {
                dot_panel(w, b + n0 * call_.b.col_stride * size_, n0, columns);
                continue;
            }
            std::int64_t width = panel_width(t_, p_.n, n0);
            if (std::int64_t wide = wide_panels(w, panel, last)) {
                columns = wide * t_.panel_columns();
                multiply_panel(w, b + n0 * size_, call_.b.row_stride, n0, columns, columns);
                panel += wide - 1;
                continue;
            }
            const char* source = nullptr;
            std::int64_t ldb = width;
            if (packed) {
                source = packed + n0 * packed_rows(t_, p_.k) * size_;
            } else if (p_.b_source == BSource::kDirect && columns == width) {
                source = b + n0 * size_;
                ldb = call_.b.row_stride;
            } else {
                source = w.scratch + p_.slot_b;
                pack_panel(t_, b + n0 * call_.b.col_stride * size_, call_.b.row_stride, call_.b.col_stride, p_.k,
                           columns, width, w.scratch + p_.slot_b);
            }
            multiply_panel(w, source, ldb, n0, columns, width);
        }
    }

    // Full panels that one wide tile covers from `panel` on, 0 if it does not apply here.
    std::int64_t wide_panels(const Task& w, std::int64_t panel, std::int64_t last) const {
        std::int64_t rows = w.m1 - w.m0;
        if (p_.b_source != BSource::kDirect || rows > kMaxWideRows || p_.k > p_.k_block || !t_.wide[rows - 1]) return 0;
        std::int64_t count = t_.wide_panels[rows - 1];
        return panel + count <= last && (panel + count) * t_.panel_columns() <= p_.n ? count : 0;
    }

    void prepare_a(Task& w) {
        if (call_.prologue) {
            std::int64_t rows = w.m1 - w.m0;
            call_.prologue(call_.prologue_context, w.batch, w.m0, w.m1, w.scratch);
            w.a = w.scratch;
            w.lda = p_.k;
            if (t_.a_type != t_.dtype) {
                pack_a_rows(t_, w.scratch, p_.k, 1, rows, p_.k, w.scratch + p_.slot_a2);
                w.a = w.scratch + p_.slot_a2;
            }
            return;
        }
        BatchPlace where = place(p_, call_.a.batch_strides, w.batch);
        if (p_.copy_a) {
            w.a = copied_a_ + (where.distinct * p_.m + w.m0) * p_.k * a_size_;
            w.lda = p_.k;
        } else {
            w.a = static_cast<const char*>(call_.a.data) + (where.offset + w.m0 * call_.a.row_stride) * a_size_;
            w.lda = call_.a.row_stride;
        }
    }

    char* c_at(const Task& w, std::int64_t m, std::int64_t n0) const {
        std::int64_t elements = w.c_offset + m * call_.c.row_stride + n0 * call_.c.col_stride;
        return static_cast<char*>(call_.c.data) + elements * static_cast<std::int64_t>(dtype_size(call_.c.dtype));
    }

    bool writes_c_directly(std::int64_t columns, std::int64_t width) const {
        return !call_.epilogue && columns == width && call_.c.dtype == t_.accumulator &&
               (call_.c.col_stride == 1 || columns == 1);
    }

    void multiply_panel(Task& w, const char* b, std::int64_t ldb, std::int64_t n0, std::int64_t columns,
                        std::int64_t width) {
        alignas(64) char sums[kMaxTileRows * kMaxPanelColumns * 8];
        bool direct = writes_c_directly(columns, width);
        std::int64_t vectors = width / t_.lanes;
        std::int64_t rows = w.m1 - w.m0;
        std::int64_t tiles = ceil_div(rows, t_.max_rows);
        std::int64_t base = rows / tiles, larger = rows % tiles;
        bool cuts_k = p_.k > p_.k_block;
        for (std::int64_t k0 = 0; k0 == 0 || k0 < p_.k; k0 += p_.k_block) {
            std::int64_t k_count = std::min(p_.k_block, p_.k - k0);
            std::int64_t m = 0;
            for (std::int64_t i = 0; i < tiles; ++i) {
                std::int64_t height = base + (i < larger);
                char* c = sums;
                std::int64_t ldc = width;
                if (direct) {
                    c = c_at(w, w.m0 + m, n0);
                    ldc = call_.c.row_stride;
                } else if (cuts_k) {
                    c = w.scratch + p_.slot_c + m * width * acc_size_;
                }
                const char* a = w.a + (m * w.lda + k0) * a_size_;
                const char* rows_of_b = b + k0 * ldb * size_;
                if (vectors <= t_.vectors) {
                    t_.multiply(a, w.lda, rows_of_b, ldb, c, ldc, k_count, k0 > 0, height, width);
                } else {
                    t_.wide[height - 1](a, w.lda, rows_of_b, ldb, c, ldc, k_count, k0 > 0);
                }
                if (!direct && k0 + k_count >= p_.k) finish(w, c, width, w.m0 + m, height, n0, columns);
                m += height;
                check_stop(w, height * width * k_count);
                if (w.stopped) return;
            }
        }
    }

    void dot_panel(Task& w, const char* b, std::int64_t n0, std::int64_t columns) {
        alignas(64) char sums[kMaxDotRows * kMaxPanelColumns * 8];
        std::int64_t rows = w.m1 - w.m0;
        std::int64_t ldb = call_.b.col_stride;
        std::int64_t j = 0;
        for (; j + kDotColumns <= columns; j += kDotColumns) {
            t_.dot[rows - 1](w.a, w.lda, b + j * ldb * size_, ldb, sums + j * acc_size_, kMaxPanelColumns, p_.k);
        }
        for (; j < columns; ++j) {
            t_.dot_single[rows - 1](w.a, w.lda, b + j * ldb * size_, ldb, sums + j * acc_size_, kMaxPanelColumns, p_.k);
        }
        finish(w, sums, kMaxPanelColumns, w.m0, rows, n0, columns);
        check_stop(w, rows * columns * p_.k);
    }

    // Hands finished rows on while they are in the first cache.
    void finish(const Task& w, const char* sums, std::int64_t ld, std::int64_t m, std::int64_t rows, std::int64_t n0,
                std::int64_t columns) {
        for (std::int64_t r = 0; r < rows; ++r) {
            const char* row = sums + r * ld * acc_size_;
            if (call_.epilogue) {
                std::int64_t batch = w.batch, at = m + r;
                if (p_.fold != 1) {
                    batch = batch * p_.fold + at / p_.fold_rows;
                    at %= p_.fold_rows;
                }
                call_.epilogue(call_.epilogue_context, batch, at, n0, columns, row);
            } else {
                store_row(t_, row, columns, c_at(w, m + r, n0), call_.c.col_stride, call_.c.dtype);
            }
        }
    }

    const GemmCall& call_;
    const GemmPlan& p_;
    const GemmTiles& t_;
    char* copied_a_;
    char* shared_b_;
    char* slots_;
    std::int64_t size_, a_size_, acc_size_, matrix_bytes_;
};

}  // namespace

namespace {

// A matrix times a column, its rows contiguous, is the column times the transposed matrix: dot products along its rows.
GemmCall oriented(const GemmCall& call) {
    const GemmTiles* tiles = call.tiles ? call.tiles : gemm_tiles(call.dtype);
    const bool along_rows = call.n == 1 && call.a.col_stride == 1 && !call.prologue && !call.epilogue &&
                            !call.b_packed && tiles != nullptr && tiles->dot[0];
    if (!along_rows) return call;
    GemmCall turned = call;
    turned.m = 1;
    turned.n = call.m;
    turned.a = call.b;
    std::swap(turned.a.row_stride, turned.a.col_stride);
    turned.b = call.a;
    std::swap(turned.b.row_stride, turned.b.col_stride);
    std::swap(turned.c.row_stride, turned.c.col_stride);
    return turned;
}

}  // namespace

std::size_t gemm_workspace_bytes(const GemmCall& call) {
    return static_cast<std::size_t>(plan_gemm(oriented(call)).total_bytes());
}

bool gemm(const GemmCall& given, void* workspace, std::size_t workspace_bytes) {
    const GemmCall call = oriented(given);
    const GemmPlan plan = plan_gemm(call);
    const OwnWorkspace own(workspace, workspace_bytes, static_cast<std::size_t>(plan.total_bytes()));
    if (!own.enough()) return false;
    GemmRun(call, plan, own.data()).execute();
    return true;
}

std::size_t packed_b_bytes(DType dtype, std::int64_t k, std::int64_t n, const GemmTiles* tiles) {
    if (!tiles) tiles = gemm_tiles(dtype);
    std::int64_t bytes = packed_rows(*tiles, k) * up(n, tiles->lanes) * static_cast<std::int64_t>(dtype_size(dtype));
    return static_cast<std::size_t>(up(bytes, kAlignment));
}

void pack_b(DType dtype, std::int64_t k, std::int64_t n, const void* source, std::int64_t row_stride,
            std::int64_t col_stride, void* target, const GemmTiles* tiles) {
    if (!tiles) tiles = gemm_tiles(dtype);
    auto size = static_cast<std::int64_t>(dtype_size(dtype));
    parallel_for(ceil_div(n, tiles->panel_columns()), 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t panel = begin; panel < end; ++panel) {
            std::int64_t n0 = panel * tiles->panel_columns();
            std::int64_t width = panel_width(*tiles, n, n0);
            pack_panel(*tiles, static_cast<const char*>(source) + n0 * col_stride * size, row_stride, col_stride, k,
                       std::min(width, n - n0), width, static_cast<char*>(target) + n0 * packed_rows(*tiles, k) * size);
        }
    });
}

bool gains_from_packing(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t row_stride,
                        std::int64_t col_stride) {
    GemmCall call;
    call.dtype = dtype;
    call.m = m;
    call.n = n;
    call.k = k;
    call.b.row_stride = row_stride;
    call.b.col_stride = col_stride;
    call.a.col_stride = call.c.col_stride = 1;
    const GemmPlan plan = plan_gemm(call);
    if (plan.batches == 0 || k == 0 || n == 1 || plan.b_source == BSource::kDot) return false;
    const auto row_bytes = row_stride * static_cast<std::int64_t>(dtype_size(dtype));
    return plan.b_source != BSource::kDirect || row_bytes > kDenseRowBytes;
}

PackedMatrix::PackedMatrix(DType dtype, std::int64_t k, std::int64_t n, const void* source, std::int64_t row_stride,
                           std::int64_t col_stride, const GemmTiles* tiles)
    : dtype_(dtype), k_(k), n_(n), bytes_(packed_b_bytes(dtype, k, n, tiles)) {
    // Large pages: the weights are read whole at every call, and touched first here.
    const std::size_t alignment = bytes_ >= kLargePage ? kLargePage : kAlignment;
    data_.reset(std::aligned_alloc(alignment, std::max(bytes_ + alignment - 1, alignment) / alignment * alignment));
    if (!data_) return;
    if (alignment == kLargePage) ::madvise(data_.get(), bytes_, MADV_HUGEPAGE);
    pack_b(dtype, k, n, source, row_stride, col_stride, data_.get(), tiles);
}

void PackedMatrix::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace flexor::runtime
