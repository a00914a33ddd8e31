#include "runtime/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/gemm_pack.h"
#include "runtime/kernels/own_workspace.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/check.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::runtime {
namespace {

// Panels of keys that one block of scores covers. A row tile's block stays in the first cache.
constexpr std::int64_t kBlockPanels = 10;
// Rows of queries that one task takes where keys are packed beforehand.
constexpr std::int64_t kTaskRows = 64;
// Rows of values wider apart than this (in bytes) are copied together before the products read them many times.
constexpr std::int64_t kDenseValueBytes = 1024;

struct AttentionPlan {
    const GemmTiles* tiles;
    const AttentionRows* rows;
    std::int64_t size, a_size, acc_size;
    std::int64_t block_keys;
    std::int64_t block_ld;       // row stride of scores
    std::int64_t value_columns;  // value_dim in whole vectors
    bool copy_q, copy_v, narrow, gathers_mask;
    bool direct_k;  // few queries: keys are read once, in place, by dot products
    bool shared;    // keys and values are packed for all heads before the tasks; else each task packs its own
    std::int64_t task_rows, row_blocks;
    int slots;
    std::int64_t k_bytes, v_bytes;  // packed, one key head
    std::int64_t shared_bytes, slot_bytes;
    std::int64_t at_v, at_scores, at_weights, at_out, at_q, at_mask;  // inside a slot's piece

    std::int64_t total_bytes() const { return shared_bytes + slots * slot_bytes; }
};

AttentionPlan plan_attention(const AttentionCall& call) {
    AttentionPlan p{};
    p.tiles = call.tiles ? call.tiles : gemm_tiles(call.dtype);
    FLEXOR_CHECK(p.tiles != nullptr && is_floating(call.dtype));
    const GemmTiles& t = *p.tiles;
    p.narrow = t.a_type != t.accumulator;
    p.rows = call.rows ? call.rows : attention_rows(call.dtype, p.narrow);
    p.size = static_cast<std::int64_t>(dtype_size(t.dtype));
    p.a_size = static_cast<std::int64_t>(dtype_size(t.a_type));
    p.acc_size = static_cast<std::int64_t>(dtype_size(t.accumulator));
    p.slots = thread_count();
    std::int64_t panel = t.panel_columns();
    p.block_keys = std::min(kBlockPanels * panel, up(std::max<std::int64_t>(call.kv_len, 1), panel));
    p.block_ld = up(p.block_keys, 16);
    p.value_columns = up(call.value_dim, t.lanes);
    p.copy_q = t.a_type != t.dtype || (call.q.strides[3] != 1 && call.head_dim > 1);
    bool few_queries = call.q_len <= kMaxDotRows;
    p.direct_k = few_queries && t.dot[0] && (call.k.strides[3] == 1 || call.head_dim <= 1);
    p.copy_v = t.pairs || call.v.strides[3] != 1 || call.value_dim != p.value_columns ||
               (!few_queries && call.v.strides[2] * p.size > kDenseValueBytes);
    std::int64_t kv_heads = call.batch * call.kv_heads;
    p.shared = kv_heads < 4 * p.slots && p.slots > 1 && call.heads * call.q_len > call.kv_heads * kTaskRows;
    p.task_rows = p.shared ? kTaskRows : std::max<std::int64_t>(call.q_len, 1);
    p.row_blocks = ceil_div(call.q_len, p.task_rows);

    p.k_bytes = p.direct_k ? 0 : up(packed_rows(t, call.head_dim) * up(call.kv_len, t.lanes) * p.size, kAlignment);
    p.v_bytes = p.copy_v ? up(packed_rows(t, call.kv_len) * p.value_columns * p.size, kAlignment) : 0;
    std::int64_t at = 0;
    if (p.shared) {
        p.shared_bytes = kv_heads * (p.k_bytes + p.v_bytes);
    } else {
        p.at_v = p.k_bytes;
        at = p.k_bytes + p.v_bytes;
    }
    auto take = [&](std::int64_t elements, std::int64_t bytes) {
        std::int64_t start = at;
        at = up(at + elements * bytes, kAlignment);
        return start;
    };
    p.at_scores = take(t.max_rows * p.block_ld, p.acc_size);
    p.at_weights = p.narrow ? take(t.max_rows * p.block_ld, p.a_size) : p.at_scores;
    p.at_out = take(t.max_rows * p.value_columns, p.acc_size);
    if (p.copy_q) p.at_q = take(t.max_rows * call.head_dim, p.a_size);
    p.gathers_mask = call.mask_kind >= AttentionMask::kBoolean && call.mask.strides[3] != 1;
    if (call.mask_kind == AttentionMask::kAdditive && call.mask_dtype != t.accumulator &&
        call.mask_dtype != call.dtype) {
        p.gathers_mask = true;
    }
    if (p.gathers_mask) p.at_mask = take(t.max_rows * p.block_ld, p.acc_size);
    p.slot_bytes = at;
    return p;
}

class AttentionRun {
public:
    AttentionRun(const AttentionCall& call, const AttentionPlan& plan, char* workspace)
        : c_(call), p_(plan), t_(*plan.tiles), shared_(workspace), slots_(workspace + plan.shared_bytes) {}

    void execute() {
        if (c_.batch <= 0 || c_.heads <= 0 || c_.q_len <= 0 || c_.value_dim <= 0) return;
        FLEXOR_CHECK(c_.kv_heads > 0 && c_.heads % c_.kv_heads == 0);
        std::int64_t kv_heads = c_.batch * c_.kv_heads;
        if (!p_.shared) {
            parallel_for_slots(kv_heads, 1, p_.slots, [&](int slot, std::int64_t begin, std::int64_t end) {
                char* scratch = slots_ + slot * p_.slot_bytes;
                for (std::int64_t i = begin; i < end; ++i) {
                    Keys keys = pack(i / c_.kv_heads, i % c_.kv_heads, scratch, scratch + p_.at_v);
                    std::int64_t group = c_.heads / c_.kv_heads;
                    for (std::int64_t g = 0; g < group; ++g) {
                        attend(keys, i / c_.kv_heads, i % c_.kv_heads * group + g, 0, c_.q_len, scratch);
                    }
                }
            });
            return;
        }
        parallel_for(kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                pack(i / c_.kv_heads, i % c_.kv_heads, shared_k(i), shared_v(i));
            }
        });
        std::int64_t tasks = c_.batch * c_.heads * p_.row_blocks;
        parallel_for_slots(tasks, 1, p_.slots, [&](int slot, std::int64_t begin, std::int64_t end) {
            for (std::int64_t task = begin; task < end; ++task) {
                // Later rows see more keys under a causal mask: long tasks first.
                std::int64_t block = p_.row_blocks - 1 - task % p_.row_blocks;
                std::int64_t head = task / p_.row_blocks % c_.heads;
                std::int64_t batch = task / p_.row_blocks / c_.heads;
                std::int64_t kv_head = head / (c_.heads / c_.kv_heads);
                std::int64_t i = batch * c_.kv_heads + kv_head;
                Keys keys = place(batch, kv_head, shared_k(i), shared_v(i));
                std::int64_t first = block * p_.task_rows;
                attend(keys, batch, head, first, std::min(c_.q_len, first + p_.task_rows),
                       slots_ + slot * p_.slot_bytes);
            }
        });
    }

private:
    struct Keys {
        std::int64_t count;   // keys that exist
        const char* k;        // packed panels of `count` columns, or in place
        const char* v;        // in place, or packed panels of value columns
        std::int64_t v_rows;  // rows of a packed panel of values
    };

    char* shared_k(std::int64_t i) const { return shared_ + i * (p_.k_bytes + p_.v_bytes); }
    char* shared_v(std::int64_t i) const { return shared_k(i) + p_.k_bytes; }
    const char* element(const AttentionOperand& operand, std::int64_t batch, std::int64_t head, std::int64_t row,
                        std::int64_t size) const {
        return static_cast<const char*>(operand.data) +
               (batch * operand.strides[0] + head * operand.strides[1] + row * operand.strides[2]) * size;
    }

    Keys place(std::int64_t batch, std::int64_t head, const char* k, const char* v) const {
        Keys keys{};
        keys.count = c_.kv_len;
        if (c_.lengths) {
            const auto length = load_element<std::int64_t>(c_.lengths, batch * c_.lengths_stride);
            keys.count = std::clamp<std::int64_t>(length, 0, c_.kv_len);
        }
        keys.k = p_.direct_k ? element(c_.k, batch, head, 0, p_.size) : k;
        keys.v = p_.copy_v ? v : element(c_.v, batch, head, 0, p_.size);
        keys.v_rows = packed_rows(t_, keys.count);
        return keys;
    }

    // Columns [first, first + width) of the values: panels of equal width, so that no narrow one is left over.
    struct ValuePanels {
        std::int64_t count, base, larger, lanes;
        std::int64_t width(std::int64_t i) const { return (base + (i < larger)) * lanes; }
    };
    ValuePanels value_panels() const {
        std::int64_t vectors = p_.value_columns / t_.lanes;
        std::int64_t count = ceil_div(vectors, t_.vectors);
        return {count, vectors / count, vectors % count, t_.lanes};
    }

    Keys pack(std::int64_t batch, std::int64_t head, char* k_target, char* v_target) const {
        Keys keys = place(batch, head, k_target, v_target);
        std::int64_t panel = t_.panel_columns();
        for (std::int64_t n0 = 0; n0 < keys.count && !p_.direct_k; n0 += panel) {
            std::int64_t width = panel_width(t_, keys.count, n0);
            pack_panel(t_, element(c_.k, batch, head, n0, p_.size), c_.k.strides[3], c_.k.strides[2], c_.head_dim,
                       std::min(panel, keys.count - n0), width, k_target + n0 * packed_rows(t_, c_.head_dim) * p_.size);
        }
        if (p_.copy_v) {
            ValuePanels panels = value_panels();
            std::int64_t column = 0;
            for (std::int64_t i = 0; i < panels.count; ++i) {
                std::int64_t width = panels.width(i);
                pack_panel(t_, element(c_.v, batch, head, 0, p_.size) + column * c_.v.strides[3] * p_.size,
                           c_.v.strides[2], c_.v.strides[3], keys.count, std::min(width, c_.value_dim - column), width,
                           v_target + column * keys.v_rows * p_.size);
                column += width;
            }
        }
        return keys;
    }

    void attend(const Keys& keys, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t last,
                char* scratch) const {
        std::int64_t tiles = ceil_div(last - first, t_.max_rows);
        std::int64_t base = (last - first) / tiles, larger = (last - first) % tiles;
        for (std::int64_t i = 0, row = first; i < tiles; ++i) {
            if (i % 4 == 3 && stop_requested()) return;
            std::int64_t rows = base + (i < larger);
            if (t_.accumulator == DType::kF64) {
                attend_tile<double>(keys, batch, head, row, rows, scratch);
            } else {
                attend_tile<float>(keys, batch, head, row, rows, scratch);
            }
            row += rows;
        }
    }

    template <typename Real>
    void attend_tile(const Keys& keys, std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t rows,
                     char* scratch) const {
        constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
        Real maximum[kMaxTileRows], sum[kMaxTileRows], correction[kMaxTileRows];
        std::fill(maximum, maximum + rows, -kInfinity);
        std::fill(sum, sum + rows, Real{0});
        const char* q = element(c_.q, batch, head, row, p_.size);
        std::int64_t ldq = c_.q.strides[2];
        if (p_.copy_q) {
            pack_a_rows(t_, q, c_.q.strides[2], c_.q.strides[3], rows, c_.head_dim, scratch + p_.at_q);
            q = scratch + p_.at_q;
            ldq = c_.head_dim;
        }
        auto* out = reinterpret_cast<Real*>(scratch + p_.at_out);
        // Under a causal mask the tile's last row sees the most keys; blocks after those are empty.
        std::int64_t seen = c_.mask_kind == AttentionMask::kCausal ? std::min(keys.count, row + rows) : keys.count;
        for (std::int64_t j0 = 0; j0 < seen; j0 += p_.block_keys) {
            std::int64_t n = std::min(p_.block_keys, seen - j0);
            scores(keys, q, ldq, rows, j0, n, scratch);
            SoftmaxBlock block{};
            block.scores = scratch + p_.at_scores;
            block.ld = p_.block_ld;
            block.rows = rows;
            block.n = n;
            block.valid = c_.mask_kind == AttentionMask::kCausal ? row + 1 - j0 : n;
            block.valid_step = c_.mask_kind == AttentionMask::kCausal ? 1 : 0;
            block.scale = c_.scale;
            block.weights = scratch + p_.at_weights;
            block.weights_ld = p_.block_ld;
            block.maximum = maximum;
            block.sum = sum;
            block.correction = correction;
            choose_mask<Real>(block, batch, head, row, j0, scratch)(&block);
            if (j0 > 0) {
                p_.rows->scale_rows(out, p_.value_columns, out, p_.value_columns, rows, p_.value_columns, correction);
            }
            weigh(keys, rows, j0, n, scratch, j0 > 0);
        }
        if (seen == 0) std::fill(out, out + rows * p_.value_columns, Real{0});
        for (std::int64_t r = 0; r < rows; ++r) {
            Real factor = 1 / sum[r];
            if (sum[r] == 0) {
                // Keys that nobody sees do not exist, whatever their values: weights of 0 make NaN of infinite ones.
                std::fill_n(out + r * p_.value_columns, p_.value_columns, Real{0});
                factor = c_.fully_masked == FullyMasked::kNan ? std::numeric_limits<Real>::quiet_NaN() : Real{0};
            }
            correction[r] = factor;
        }
        store<Real>(out, batch, head, row, rows, correction);
    }

    // scores[rows, n] = q . k^T for keys j0 .. j0 + n.
    void scores(const Keys& keys, const char* q, std::int64_t ldq, std::int64_t rows, std::int64_t j0, std::int64_t n,
                char* scratch) const {
        if (p_.direct_k) {
            std::int64_t ldk = c_.k.strides[2];
            for (std::int64_t j = 0; j < n;) {
                bool several = j + kDotColumns <= n;
                DotFunction dot = several ? t_.dot[rows - 1] : t_.dot_single[rows - 1];
                dot(q, ldq, keys.k + (j0 + j) * ldk * p_.size, ldk, scratch + p_.at_scores + j * p_.acc_size,
                    p_.block_ld, c_.head_dim);
                j += several ? kDotColumns : 1;
            }
            return;
        }
        std::int64_t k_rows = packed_rows(t_, c_.head_dim);
        for (std::int64_t j = 0; j < n; j += t_.panel_columns()) {
            std::int64_t width = panel_width(t_, keys.count, j0 + j);
            t_.multiply(q, ldq, keys.k + (j0 + j) * k_rows * p_.size, width, scratch + p_.at_scores + j * p_.acc_size,
                        p_.block_ld, c_.head_dim, 0, rows, width);
        }
    }

    // out[rows, value_columns] (+)= weights . v for keys j0 .. j0 + n.
    void weigh(const Keys& keys, std::int64_t rows, std::int64_t j0, std::int64_t n, char* scratch,
               bool accumulate) const {
        ValuePanels panels = value_panels();
        std::int64_t column = 0;
        for (std::int64_t i = 0; i < panels.count; ++i) {
            std::int64_t width = panels.width(i);
            const char* v = nullptr;
            std::int64_t ldv = width;
            if (p_.copy_v) {
                v = keys.v + (column * keys.v_rows + j0 * width) * p_.size;
            } else {
                ldv = c_.v.strides[2];
                v = keys.v + (j0 * ldv + column) * p_.size;
            }
            t_.multiply(scratch + p_.at_weights, p_.block_ld, v, ldv, scratch + p_.at_out + column * p_.acc_size,
                        p_.value_columns, n, accumulate, rows, width);
            column += width;
        }
    }

    template <typename Real>
    SoftmaxFunction choose_mask(SoftmaxBlock& block, std::int64_t batch, std::int64_t head, std::int64_t row,
                                std::int64_t j0, char* scratch) const {
        if (c_.mask_kind == AttentionMask::kNone || c_.mask_kind == AttentionMask::kCausal) return p_.rows->plain;
        bool boolean = c_.mask_kind == AttentionMask::kBoolean;
        auto size = static_cast<std::int64_t>(boolean ? 1 : dtype_size(c_.mask_dtype));
        std::int64_t step = c_.mask.strides[3];
        const char* mask = element(c_.mask, batch, head, row, size) + j0 * step * size;
        if (!p_.gathers_mask) {
            block.mask = mask;
            block.mask_stride = c_.mask.strides[2];
            if (boolean) return p_.rows->boolean;
            return c_.mask_dtype == t_.accumulator ? p_.rows->additive : p_.rows->additive_narrow;
        }
        auto* dense = reinterpret_cast<Real*>(scratch + p_.at_mask);
        for (std::int64_t r = 0; r < block.rows; ++r) {
            const char* from = mask + r * c_.mask.strides[2] * size;
            for (std::int64_t j = 0; j < block.n; ++j) {
                dense[r * p_.block_ld + j] = mask_value<Real>(from + j * step * size, boolean);
            }
        }
        block.mask = dense;
        block.mask_stride = p_.block_ld;
        return p_.rows->additive;
    }

    template <typename Real>
    Real mask_value(const char* where, bool boolean) const {
        if (boolean) return *where ? Real{0} : -std::numeric_limits<Real>::infinity();
        return static_cast<Real>(read_real(c_.mask_dtype, where, 0));
    }

    template <typename Real>
    void store(Real* out, std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t rows,
               const Real* factors) const {
        char* target = static_cast<char*>(c_.out) +
                       (batch * c_.out_strides[0] + head * c_.out_strides[1] + row * c_.out_strides[2]) * p_.size;
        if (t_.dtype == t_.accumulator && c_.out_strides[3] == 1) {
            p_.rows->scale_rows(out, p_.value_columns, target, c_.out_strides[2], rows, c_.value_dim, factors);
            return;
        }
        p_.rows->scale_rows(out, p_.value_columns, out, p_.value_columns, rows, c_.value_dim, factors);
        for (std::int64_t r = 0; r < rows; ++r) {
            store_row(t_, out + r * p_.value_columns, c_.value_dim, target + r * c_.out_strides[2] * p_.size,
                      c_.out_strides[3], c_.dtype);
        }
    }

    const AttentionCall& c_;
    const AttentionPlan& p_;
    const GemmTiles& t_;
    char* shared_;
    char* slots_;
};

}  // namespace

std::size_t attention_workspace_bytes(const AttentionCall& call) {
    return static_cast<std::size_t>(plan_attention(call).total_bytes());
}

bool attention(const AttentionCall& call, void* workspace, std::size_t workspace_bytes) {
    const AttentionPlan plan = plan_attention(call);
    const OwnWorkspace own(workspace, workspace_bytes, static_cast<std::size_t>(plan.total_bytes()));
    if (!own.enough()) return false;
    AttentionRun(call, plan, own.data()).execute();
    return true;
}

}  // namespace flexor::runtime
