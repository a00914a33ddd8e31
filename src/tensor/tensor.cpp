#include "flexor/tensor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "support/check.h"
#include "support/diagnostic.h"
#include "tensor/element.h"

namespace flexor {
namespace {

// Blocks of one size, kept per thread: making and dropping a tensor costs no call of the allocator. A block may be
// returned on another thread than it came from. Once the thread's list is torn down, blocks go to the allocator.
template <std::size_t kBytes>
class BlockList {
public:
    static void* take() {
        State& state = state_;
        if (Block* block = state.head) {
            state.head = block->next;
            --state.count;
            return block;
        }
        return ::operator new(kBytes);
    }

    static void put(void* memory) {
        State& state = state_;
        if (state.count >= state.limit && !open(state)) {
            ::operator delete(memory);
            return;
        }
        state.head = new (memory) Block{state.head};
        ++state.count;
    }

private:
    static constexpr int kKept = 256;

    struct Block {
        Block* next;
    };
    // Without a destructor, so that it may be used while the thread ends. `limit` is 0 before the first use and after
    // the last.
    struct State {
        Block* head;
        int count;
        int limit;
        bool closed;
    };
    struct Closer {
        ~Closer() {
            State& state = state_;
            state.closed = true;
            state.limit = 0;
            state.count = 0;
            while (Block* block = std::exchange(state.head, state.head ? state.head->next : nullptr)) {
                ::operator delete(block);
            }
        }
    };

    static bool open(State& state) {
        if (state.closed || state.limit != 0) return false;
        static thread_local Closer closer;
        state.limit = kKept;
        return true;
    }

    static constinit thread_local State state_;
};

template <std::size_t kBytes>
constinit thread_local typename BlockList<kBytes>::State BlockList<kBytes>::state_{};

using StorageBlocks = BlockList<sizeof(Storage)>;

void retain(std::int64_t& references) { std::atomic_ref(references).fetch_add(1, std::memory_order_relaxed); }

bool release(std::int64_t& references) {
    std::atomic_ref counter(references);
    // The sole owner needs no read-modify-write.
    if (counter.load(std::memory_order_acquire) == 1) return true;
    return counter.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void release_storage(Storage* storage) {
    if (!release(storage->references)) return;
    if (storage->deleter != nullptr) storage->deleter(storage->context, storage->data);
    StorageBlocks::put(storage);
}

void free_memory(void* block, void*) { std::free(block); }

// Row-major strides; a size 0 counts as 1, as in the frameworks. False if the number of elements overflows.
bool compact_strides(std::span<const std::int64_t> sizes, std::int64_t* strides, std::int64_t* numel) {
    bool has_zero = false;
    bool overflows = false;
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        has_zero |= sizes[i] == 0;
        overflows |= __builtin_mul_overflow(stride, std::max<std::int64_t>(sizes[i], 1), &stride);
    }
    *numel = has_zero ? 0 : stride;
    return !overflows;
}

// Bytes from `data` to the end of the element that lies highest.
std::size_t extent_in_bytes(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) return 0;
        if (strides[i] > 0) last += (sizes[i] - 1) * strides[i];
    }
    return (static_cast<std::size_t>(last) + 1) * dtype_size(dtype);
}

// Elements of a source may lie anywhere in memory, those of the copy are aligned.
struct CopyAxis {
    std::int64_t size;
    std::int64_t from;
    std::int64_t to;
};

// Two inner axes, in squares that stay in the cache where one side is transposed.
template <class T>
void copy_plane(const Unaligned<T>* from, T* to, CopyAxis rows, CopyAxis columns) {
    constexpr std::int64_t kSide = 32;
    if (columns.from == 1 && columns.to == 1) {
        for (std::int64_t r = 0; r < rows.size; ++r) {
            std::memcpy(to + r * rows.to, from + r * rows.from, static_cast<std::size_t>(columns.size) * sizeof(T));
        }
        return;
    }
    for (std::int64_t r0 = 0; r0 < rows.size; r0 += kSide) {
        const std::int64_t r1 = std::min(r0 + kSide, rows.size);
        for (std::int64_t c0 = 0; c0 < columns.size; c0 += kSide) {
            const std::int64_t c1 = std::min(c0 + kSide, columns.size);
            for (std::int64_t r = r0; r < r1; ++r) {
                for (std::int64_t c = c0; c < c1; ++c) {
                    to[r * rows.to + c * columns.to] = from[r * rows.from + c * columns.from];
                }
            }
        }
    }
}

template <class T>
void copy_axes(const Unaligned<T>* from, T* to, std::span<const CopyAxis> axes) {
    if (axes.size() == 2) {
        copy_plane(from, to, axes[0], axes[1]);
        return;
    }
    for (std::int64_t i = 0; i < axes[0].size; ++i) {
        copy_axes(from + i * axes[0].from, to + i * axes[0].to, axes.subspan(1));
    }
}

// Elements of `source` in row-major order. Not empty.
template <class T>
void copy_compact(const Tensor& source, T* to) {
    std::array<CopyAxis, kMaxRank + 2> axes{CopyAxis{1, 0, 0}, CopyAxis{1, 0, 0}};
    std::size_t n = 2;
    std::int64_t stride = 1;
    for (int i = source.rank() - 1; i >= 0; --i) {
        if (source.size(i) == 1) continue;
        // Axes are gathered innermost first and merged where one continues the other.
        CopyAxis& inner = axes[n - 1];
        if (n > 2 && source.stride(i) == inner.from * inner.size) {
            inner.size *= source.size(i);
        } else {
            axes[n++] = {source.size(i), source.stride(i), stride};
        }
        stride *= source.size(i);
    }
    if (n > 4) {
        std::reverse(axes.begin() + 2, axes.begin() + static_cast<std::ptrdiff_t>(n));
        // The axis of the smallest step in the source joins the innermost plane.
        const auto least =
            std::min_element(axes.begin() + 2, axes.begin() + static_cast<std::ptrdiff_t>(n) - 1,
                             [](const CopyAxis& a, const CopyAxis& b) { return std::abs(a.from) < std::abs(b.from); });
        std::rotate(least, least + 1, axes.begin() + static_cast<std::ptrdiff_t>(n) - 1);
    } else {
        std::reverse(axes.begin() + 2, axes.begin() + static_cast<std::ptrdiff_t>(n));
    }
    const std::size_t first = n >= 4 ? 2 : n - 2;
    copy_axes(static_cast<const Unaligned<T>*>(source.data()), to, std::span(axes).subspan(first, n - first));
}

}  // namespace

namespace {

constexpr DiagnosticId kNoFault{};

bool is_geometry(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
    return sizes.size() <= static_cast<std::size_t>(kMaxRank) && sizes.size() == strides.size() &&
           std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; });
}

// `fault` says why the tensor is undefined.
Tensor allocate_compact(DType dtype, std::span<const std::int64_t> sizes, DiagnosticId& fault) {
    if (sizes.size() > static_cast<std::size_t>(kMaxRank)) return fault = DiagnosticId::kWrongRank, Tensor();
    for (const std::int64_t size : sizes) {
        if (size < 0) return fault = DiagnosticId::kNegativeSize, Tensor();
    }
    std::array<std::int64_t, kMaxRank> strides;
    std::int64_t numel = 0;
    std::int64_t bytes = 0;
    std::int64_t rounded = 0;
    const auto alignment = static_cast<std::int64_t>(kTensorAlignment);
    if (!compact_strides(sizes, strides.data(), &numel) ||
        __builtin_mul_overflow(numel, static_cast<std::int64_t>(dtype_size(dtype)), &bytes) ||
        __builtin_add_overflow(std::max<std::int64_t>(bytes, 1), alignment - 1, &rounded)) {
        return fault = DiagnosticId::kSizeOverflow, Tensor();
    }
    // Aligned by hand: malloc keeps small blocks at the ready for each thread, aligned_alloc does not.
    void* block = std::malloc(static_cast<std::size_t>(rounded));
    if (block == nullptr) return fault = DiagnosticId::kOutOfMemory, Tensor();
    void* memory = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(block) + kTensorAlignment - 1) /
                                           kTensorAlignment * kTensorAlignment);
    try {
        return Tensor::from_blob(memory, dtype, sizes, {strides.data(), sizes.size()}, free_memory, block);
    } catch (...) {
        std::free(block);
        throw;
    }
}

}  // namespace

Tensor Tensor::empty(DType dtype, std::span<const std::int64_t> sizes) {
    DiagnosticId fault = kNoFault;
    return allocate_compact(dtype, sizes, fault);
}

Tensor Tensor::empty(DType dtype, std::initializer_list<std::int64_t> sizes) {
    return empty(dtype, std::span(sizes.begin(), sizes.size()));
}

Expected<Tensor> Tensor::allocate(DType dtype, std::span<const std::int64_t> sizes) {
    DiagnosticId fault = kNoFault;
    Tensor tensor = allocate_compact(dtype, sizes, fault);
    if (tensor.defined()) return tensor;
    std::string found(dtype_name(dtype));
    for (std::size_t i = 0; i < sizes.size(); ++i) found += (i == 0 ? "[" : ", ") + std::to_string(sizes[i]);
    return Diagnostic(fault).found(found + (sizes.empty() ? "[]" : "]"));
}

Tensor Tensor::from_blob(void* data, DType dtype, std::span<const std::int64_t> sizes,
                         std::span<const std::int64_t> strides, void (*deleter)(void* context, void* data),
                         void* context, Device device) {
    if (!is_geometry(sizes, strides)) return {};
    auto* storage =
        new (StorageBlocks::take()) Storage{data, extent_in_bytes(dtype, sizes, strides), deleter, context, 1};
    try {
        return make(storage, data, dtype, device, sizes, strides);
    } catch (...) {  // no memory for the handle: `data` stays the caller's
        StorageBlocks::put(storage);
        throw;
    }
}

Tensor Tensor::view(void* data, DType dtype, std::span<const std::int64_t> sizes,
                    std::span<const std::int64_t> strides) const {
    if (!defined() || !is_geometry(sizes, strides)) return {};
    retain(impl_->storage->references);
    try {
        return make(impl_->storage, data, dtype, impl_->device, sizes, strides, true);
    } catch (...) {
        release(impl_->storage->references);
        throw;
    }
}

Tensor Tensor::make(Storage* storage, void* data, DType dtype, Device device, std::span<const std::int64_t> sizes,
                    std::span<const std::int64_t> strides, bool is_view) {
    // Not value-initialised: sizes and strides beyond the rank are never read.
    auto* impl = static_cast<Impl*>(BlockList<sizeof(Impl)>::take());
    new (&impl->references) std::int64_t(1);
    impl->storage = storage;
    impl->data = data;
    impl->dtype = dtype;
    impl->device = device;
    impl->rank = static_cast<std::int8_t>(sizes.size());
    impl->is_view = is_view;
    std::copy(sizes.begin(), sizes.end(), impl->sizes);
    std::copy(strides.begin(), strides.end(), impl->strides);
    return Tensor(impl);
}

Tensor::Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
    if (impl_ != nullptr) retain(impl_->references);
}

Tensor& Tensor::operator=(const Tensor& other) noexcept {
    Tensor copy(other);
    std::swap(impl_, copy.impl_);
    return *this;
}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    std::swap(impl_, taken.impl_);
    return *this;
}

Tensor::~Tensor() {
    if (impl_ == nullptr || !release(impl_->references)) return;
    release_storage(impl_->storage);
    BlockList<sizeof(Impl)>::put(impl_);
}

std::uint64_t Tensor::version() const {
    return std::atomic_ref(impl_->storage->version).load(std::memory_order_relaxed);
}

void Tensor::note_write() const { std::atomic_ref(impl_->storage->version).fetch_add(1, std::memory_order_relaxed); }

std::int64_t Tensor::numel() const {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes()) n *= size;
    return n;
}

bool Tensor::is_contiguous() const {
    std::int64_t expected = 1;
    bool compact = true;
    for (int i = rank() - 1; i >= 0; --i) {
        if (size(i) == 0) return true;
        if (size(i) == 1) continue;
        compact &= stride(i) == expected;
        expected *= size(i);
    }
    return compact;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
    if (device().kind != DeviceKind::kCpu) return {};
    Tensor copy = empty(dtype(), sizes());
    if (!copy.defined() || numel() == 0) return copy;
    switch (dtype_size(dtype())) {
        case 1: copy_compact(*this, copy.data_as<std::uint8_t>()); break;
        case 2: copy_compact(*this, copy.data_as<std::uint16_t>()); break;
        case 4: copy_compact(*this, copy.data_as<std::uint32_t>()); break;
        case 8: copy_compact(*this, copy.data_as<std::uint64_t>()); break;
        default: FLEXOR_UNREACHABLE();
    }
    return copy;
}

}  // namespace flexor
