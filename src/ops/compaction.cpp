#include "ops/compaction.h"

#include <cstring>

#include "ops/native.h"

namespace flexor::ops {
namespace {

using I = std::int64_t;

constexpr I kChunk = 1 << 14;  // flags that are counted, and whose elements are written, at a time

// The truth of the elements of a tensor in row-major order.
struct SetFlags {
    Tensor flags;           // a byte each, zero or not
    std::vector<I> before;  // how many are set before each chunk, and last in all
};

I count_set(const std::uint8_t* flags, I count) {
    typedef std::uint8_t Bytes __attribute__((vector_size(16)));
    constexpr I kLanes = sizeof(Bytes);
    I total = 0, at = 0;
    while (at + kLanes <= count) {
        const I steps = std::min<I>((count - at) / kLanes, 255);  // a lane counts no further
        Bytes sums{};
        for (I i = 0; i < steps; ++i, at += kLanes) {
            Bytes loaded;
            std::memcpy(&loaded, flags + at, sizeof loaded);
            sums -= static_cast<Bytes>(loaded != 0);
        }
        for (I lane = 0; lane < kLanes; ++lane) total += sums[lane];
    }
    for (; at < count; ++at) total += flags[at] != 0 ? 1 : 0;
    return total;
}

// A byte for each element, which is the tensor itself where that is so already.
Tensor flags_of(const ReferenceContext& c, const Tensor& x) {
    if (dtype_size(x.dtype()) == 1 && x.is_contiguous()) return x;
    Tensor flags = Tensor::empty(DType::kU8, {x.numel()});
    if (!flags.defined() || x.numel() == 0) return flags;
    auto* const out = flags.data_as<std::uint8_t>();
    with_elements(x.dtype(), [&](auto elements) {
        using E = decltype(elements);
        const auto* data = x.data_as<const typename E::Stored>();
        if (x.is_contiguous()) {
            parallel(c, x.numel(), kChunk, [&](I begin, I end) {
                for (I i = begin; i < end; ++i) out[i] = E::load(data[i]) != 0 ? 1 : 0;
            });
            return;
        }
        const Lines lines(x, x.rank() - 1);
        const I step = lines.step(x);
        parallel(c, lines.count(), grain_of(lines.length()), [&](I begin, I end) {
            for (I line = begin; line < end; ++line) {
                const auto* from = data + lines.start(x, line);
                std::uint8_t* to = out + line * lines.length();
                for (I i = 0; i < lines.length(); ++i) to[i] = E::load(from[i * step]) != 0 ? 1 : 0;
            }
        });
    });
    return flags;
}

// f(first flag, one past the last, set flags before) for every chunk.
template <class F>
void for_each_chunk(const ReferenceContext& c, F&& f) {
    const auto& truth = *static_cast<const SetFlags*>(c.found.get());
    const I count = truth.flags.numel();
    parallel(c, static_cast<I>(truth.before.size()) - 1, 1, [&](I begin, I end) {
        for (I chunk = begin; chunk < end; ++chunk) {
            const auto i = static_cast<std::size_t>(chunk);
            f(chunk * kChunk, std::min((chunk + 1) * kChunk, count), truth.before[i], truth.before[i + 1]);
        }
    });
}

const std::uint8_t* flags_in(const ReferenceContext& c) {
    return static_cast<const SetFlags*>(c.found.get())->flags.data_as<const std::uint8_t>();
}

// The set elements of from[begin..end) to to[first..last): what is written ahead of the next set one is written over by
// it. Another thread of the host may change the flags meanwhile: both bounds hold whatever they are.
template <class T>
void keep_set(const std::uint8_t* flags, const void* from, I begin, I end, void* to, I first, I last) {
    const auto* source = static_cast<const Unaligned<T>*>(from);
    auto* target = static_cast<Unaligned<T>*>(to);
    for (I i = begin; i < end && first < last; ++i) {
        target[first] = source[i];
        first += flags[i] != 0 ? 1 : 0;
    }
}

}  // namespace

template <std::size_t operand>
Expected<std::vector<std::int64_t>> count_nonzero(ReferenceContext& c) {
    auto truth = std::make_shared<SetFlags>();
    truth->flags = flags_of(c, c.inputs[operand]);
    if (!truth->flags.defined()) return no_memory("the truth of the elements");
    const I count = truth->flags.numel();
    const I chunks = (count + kChunk - 1) / kChunk;
    truth->before.assign(static_cast<std::size_t>(chunks) + 1, 0);
    const auto* flags = truth->flags.template data_as<const std::uint8_t>();
    parallel(c, chunks, 4, [&](I begin, I end) {
        for (I chunk = begin; chunk < end; ++chunk) {
            const I first = chunk * kChunk;
            truth->before[static_cast<std::size_t>(chunk) + 1] =
                count_set(flags + first, std::min(kChunk, count - first));
        }
    });
    for (std::size_t chunk = 1; chunk < truth->before.size(); ++chunk) truth->before[chunk] += truth->before[chunk - 1];
    const I found = truth->before.back();
    c.found = std::move(truth);
    if (stopped(c)) return interrupted();
    return std::vector<I>{found};
}
template Expected<std::vector<std::int64_t>> count_nonzero<0>(ReferenceContext& c);
template Expected<std::vector<std::int64_t>> count_nonzero<1>(ReferenceContext& c);

Expected<void> native_nonzero(ReferenceContext& c) {
    const Tensor& x = c.inputs[0];
    const std::uint8_t* flags = flags_in(c);
    auto* const out = c.outputs[0].data_as<I>();
    const int rank = x.rank();
    const I length = rank == 0 ? 1 : x.size(rank - 1);
    for_each_chunk(c, [&](I begin, I end, I first, I last) {
        if (rank == 0 || first == last) return;
        if (rank == 1) {
            for (I i = begin; i < end && first < last; ++i) {
                out[first] = i;
                first += flags[i] != 0 ? 1 : 0;
            }
            return;
        }
        I index[kMaxRank];
        for (I i = begin; i < end && first < last;) {
            I rest = i / length;
            for (int axis = rank - 1; axis-- > 0; rest /= x.size(axis)) index[axis] = rest % x.size(axis);
            I j = i % length;
            const I stop = std::min(length, j + end - i);
            const std::uint8_t* line = flags + i - j;
            i += stop - j;
            for (; j < stop && first < last; ++j) {
                I* row = out + first * rank;
                for (int axis = 0; axis + 1 < rank; ++axis) row[axis] = index[axis];
                row[rank - 1] = j;
                first += line[j] != 0 ? 1 : 0;
            }
        }
    });
    if (stopped(c)) return interrupted();
    return {};
}

Expected<void> native_mask_select(ReferenceContext& c) {
    const Tensor x = c.inputs[0].contiguous();
    if (!x.defined()) return no_memory("x");
    const std::uint8_t* flags = flags_in(c);
    I slice = static_cast<I>(dtype_size(x.dtype()));
    for (int axis = c.inputs[1].rank(); axis < x.rank(); ++axis) slice *= x.size(axis);
    const auto* from = static_cast<const std::byte*>(x.data());
    auto* to = static_cast<std::byte*>(c.outputs[0].data());
    if (slice == 0) return {};
    for_each_chunk(c, [&](I begin, I end, I first, I last) {
        switch (slice) {
            case 1: return keep_set<std::uint8_t>(flags, from, begin, end, to, first, last);
            case 2: return keep_set<std::uint16_t>(flags, from, begin, end, to, first, last);
            case 4: return keep_set<std::uint32_t>(flags, from, begin, end, to, first, last);
            case 8: return keep_set<std::uint64_t>(flags, from, begin, end, to, first, last);
            default: break;
        }
        for (I i = begin; i < end && first < last; ++i) {
            if (flags[i] == 0) continue;
            std::memcpy(to + first * slice, from + i * slice, static_cast<std::size_t>(slice));
            ++first;
        }
    });
    if (stopped(c)) return interrupted();
    return {};
}

}  // namespace flexor::ops
