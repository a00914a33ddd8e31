#pragma once
// A strided tensor: a view (data pointer, dtype, sizes, strides in elements) of reference-counted storage.
// Copying a Tensor copies the handle. Views of one storage alias; storage is freed (or its deleter called) with its
// last view.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "flexor/dtype.h"
#include "flexor/error.h"
#include "flexor/export.h"

namespace flexor {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Device {
    DeviceKind kind = DeviceKind::kCpu;
    std::int8_t index = 0;
    friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr int kMaxRank = 12;
inline constexpr std::size_t kTensorAlignment = 64;

// Reference-counted memory. `deleter(context, data)` runs once, from whichever thread drops the last reference.
struct Storage {
    void* data = nullptr;
    std::size_t bytes = 0;
    void (*deleter)(void* context, void* data) = nullptr;
    void* context = nullptr;
    std::int64_t references = 1;   // accessed with std::atomic_ref
    std::uint64_t version = 0;     // accessed with std::atomic_ref
    DiagnosticId write_refusal{};  // what a program raises that writes here; 0: it may
};

class FLEXOR_API Tensor {
public:
    Tensor() = default;  // undefined tensor: defined() is false

    // Uninitialised contiguous memory aligned to kTensorAlignment. There is none for a negative size (NegativeSize), for
    // more than kMaxRank sizes (WrongRank), where the size in bytes does not fit in 64 bits (SizeOverflow) and where
    // memory is exhausted (OutOfMemory): allocate() says which, empty() gives an undefined tensor.
    static Expected<Tensor> allocate(DType dtype, std::span<const std::int64_t> sizes);
    static Tensor empty(DType dtype, std::span<const std::int64_t> sizes);
    static Tensor empty(DType dtype, std::initializer_list<std::int64_t> sizes);

    // A view of caller memory; `deleter` may be null (the caller keeps the memory alive). Strides in elements.
    // Undefined tensor, and the deleter is not called, if a size is negative, if there are more than kMaxRank sizes, or
    // another number of strides.
    static Tensor from_blob(void* data, DType dtype, std::span<const std::int64_t> sizes,
                            std::span<const std::int64_t> strides, void (*deleter)(void* context, void* data) = nullptr,
                            void* context = nullptr, Device device = {});

    // A further view of this tensor's storage. `data` may lie anywhere; the caller vouches for the range. Undefined
    // tensor where from_blob gives one.
    Tensor view(void* data, DType dtype, std::span<const std::int64_t> sizes,
                std::span<const std::int64_t> strides) const;

    Tensor(const Tensor& other) noexcept;
    Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
    Tensor& operator=(const Tensor& other) noexcept;
    Tensor& operator=(Tensor&& other) noexcept;
    ~Tensor();

    bool defined() const { return impl_ != nullptr; }
    // Whether view() made it: another tensor over memory that one has already. A copy of a handle is what the handle is.
    bool is_view() const { return impl_->is_view; }
    DType dtype() const { return impl_->dtype; }
    Device device() const { return impl_->device; }
    int rank() const { return impl_->rank; }
    std::int64_t size(int axis) const { return impl_->sizes[axis]; }
    std::int64_t stride(int axis) const { return impl_->strides[axis]; }
    std::span<const std::int64_t> sizes() const { return {impl_->sizes, static_cast<std::size_t>(impl_->rank)}; }
    std::span<const std::int64_t> strides() const { return {impl_->strides, static_cast<std::size_t>(impl_->rank)}; }
    void* data() const { return impl_->data; }
    template <class T>
    T* data_as() const {
        return static_cast<T*>(impl_->data);
    }
    const Storage* storage() const { return impl_->storage; }
    // From the next run on, a program that writes to the storage is refused at the write: ReadOnlyArgument (511), or
    // another reason. For memory that belongs to somebody who relies on it.
    void refuse_writes(DiagnosticId why = DiagnosticId{511}) const { impl_->storage->write_refusal = why; }
    // Writes are refused as those to read-only memory: a weight of a Module, or what its owner has marked so. Whoever
    // holds a view must not write through data() either.
    bool is_read_only() const { return impl_->storage->write_refusal == DiagnosticId{511}; }
    // How often programs have written to the storage, through whichever view; as torch counts versions.
    std::uint64_t version() const;
    void note_write() const;     // adds one
    std::int64_t numel() const;  // 1 for rank 0
    bool is_contiguous() const;  // row-major; size-1 dims ignored; zero-size counts as contiguous
    // A compact copy in host memory; contiguous() is this tensor where it is compact already. Undefined if memory is
    // exhausted, and of a tensor that lies on another device.
    Tensor contiguous() const;
    Tensor clone() const;

private:
    struct Impl {
        std::int64_t references;
        Storage* storage;
        void* data;
        DType dtype;
        Device device;
        std::int8_t rank;
        bool is_view;
        std::int64_t sizes[kMaxRank];
        std::int64_t strides[kMaxRank];
    };
    explicit Tensor(Impl* impl) : impl_(impl) {}
    static Tensor make(Storage* storage, void* data, DType dtype, Device device, std::span<const std::int64_t> sizes,
                       std::span<const std::int64_t> strides, bool is_view = false);
    Impl* impl_ = nullptr;
};

}  // namespace flexor
