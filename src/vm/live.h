#pragma once
// The key of a call at a safe point: its signature as packed words, its call frame, and the hashes of both.
//
// Laws
//  K1  Two calls have equal signature words iff their executable::Signature is equal (same function and pc).
//  K2  The frame is laid out as executable/signature.h says. Strides of a contiguous tensor are written as the products
//      that the class promises, whatever the caller's strides of axes of size 1.
//  K3  Floats are part of the frame, not of the exact key.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "executable/signature.h"
#include "flexor/value.h"

namespace flexor::vm {

// A growing array of trivial elements that keeps its memory; nothing is initialised.
template <class T>
class Words {
public:
    Words() = default;
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    void clear() { size_ = 0; }
    void push(T value) {
        if (size_ == capacity_) grow(size_ + 1);
        data_[size_++] = value;
    }
    // Room for n more, handed out unwritten.
    T* extend(std::size_t n) {
        if (size_ + n > capacity_) grow(size_ + n);
        T* at = data_.get() + size_;
        size_ += n;
        return at;
    }
    T* ensure(std::size_t n) {  // data of at least n elements; size becomes n
        if (n > capacity_) grow(n);
        size_ = n;
        return data_.get();
    }
    std::size_t size() const { return size_; }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    std::span<const T> span() const { return {data_.get(), size_}; }

private:
    void grow(std::size_t needed) {
        const std::size_t capacity = needed * 2 + 16;
        std::unique_ptr<T[]> bigger(new T[capacity]);
        if (size_ > 0) std::memcpy(bigger.get(), data_.get(), size_ * sizeof(T));
        data_ = std::move(bigger);
        capacity_ = capacity;
    }
    std::unique_ptr<T[]> data_;
    std::size_t size_ = 0, capacity_ = 0;
};

struct LiveKey {
    Words<std::uint64_t> signature;
    Words<std::int64_t> frame;
    Words<std::uint32_t> floats;       // frame slots that hold doubles
    Words<const Tensor*> tensors;      // flattened, in order
    std::uint64_t signature_hash = 0;  // both set by hash_key
    std::uint64_t exact_hash = 0;
};

// The live values of a safe point. Locals beyond the given ones are unset.
struct LiveValues {
    std::span<const Value> locals;
    std::span<const Value> stack;
    std::uint32_t local_count = 0;  // locals of the function
    // Values of the module's symbols at a safe point inside a function whose attributes name them; else empty.
    std::span<const std::int64_t> symbols = {};
    bool writes = false;  // the function writes to memory: alias groups matter, and what it must not write
    // Lists may have grown in a loop: those of tensors of one dtype and rank are lists of the run.
    bool grows_lists = false;
    Device device = {};  // where the run is
};

// Writes all but the hashes. False if a tensor is undefined (user error; not keyed).
bool build_key(const LiveValues& live, LiveKey& key);
void hash_key(LiveKey& key);
executable::Signature make_signature(const LiveValues& live);

}  // namespace flexor::vm
