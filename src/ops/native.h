#pragma once
// What native kernels are made of: elements in the type that they are computed in, and loops on several threads.
#include <algorithm>
#include <cstdint>

#include "ops/op_def.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::ops {

// ---------------------------------------------------------------- elements

// Elements of one dtype: `Stored` as they lie in memory, at any address, and `Number` that they are computed in.
template <class T>
struct PlainElements {
    using Stored = Unaligned<T>;
    using Number = T;
    static Number load(Stored v) { return v.value; }
    static Stored store(Number v) { return {v}; }
};
template <float (*widen)(std::uint16_t), std::uint16_t (*narrow)(float)>
struct HalfElements {
    using Stored = Unaligned<std::uint16_t>;
    using Number = float;
    static Number load(Stored v) { return widen(v.value); }
    static Stored store(Number v) { return {narrow(v)}; }
};
struct BoolElements {
    using Stored = Unaligned<std::uint8_t>;
    using Number = std::uint8_t;
    static Number load(Stored v) { return v.value != 0 ? 1 : 0; }
    static Stored store(Number v) { return {static_cast<std::uint8_t>(v != 0 ? 1 : 0)}; }
};

// f(elements of the dtype)
template <class F>
decltype(auto) with_elements(DType dtype, F&& f) {
    switch (dtype) {
        case DType::kBool: return f(BoolElements{});
        case DType::kU8: return f(PlainElements<std::uint8_t>{});
        case DType::kI8: return f(PlainElements<std::int8_t>{});
        case DType::kI32: return f(PlainElements<std::int32_t>{});
        case DType::kI64: return f(PlainElements<std::int64_t>{});
        case DType::kF16: return f(HalfElements<types::f32_from_f16, types::f16_from_f32>{});
        case DType::kBF16: return f(HalfElements<types::f32_from_bf16, types::bf16_from_f32>{});
        case DType::kF32: return f(PlainElements<float>{});
        case DType::kF64: return f(PlainElements<double>{});
    }
    FLEXOR_UNREACHABLE();
}

// ---------------------------------------------------------------- loops

// body(begin, end) for the chunks of 0..count, `grain` long, on the threads of the host or on this one.
template <class Body>
void parallel(const ReferenceContext& c, std::int64_t count, std::int64_t grain, Body&& body) {
    if (c.parallel == nullptr) {
        for (std::int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(begin + grain, count));
        return;
    }
    using Plain = std::remove_reference_t<Body>;
    c.parallel([](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Plain*>(context))(begin, end); },
               const_cast<void*>(static_cast<const void*>(&body)), count, grain);
}

// The grain of a loop whose steps cost about `cost` loads each.
inline std::int64_t grain_of(std::int64_t cost) {
    constexpr std::int64_t kChunk = 1 << 15;
    return std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(cost, 1));
}

inline bool stopped(const ReferenceContext& c) { return c.stop_requested != nullptr && c.stop_requested(); }
inline Diagnostic interrupted() { return Diagnostic(DiagnosticId::kInterrupted); }
inline Diagnostic no_memory(std::string what) {
    return Diagnostic(DiagnosticId::kOutOfMemory).operand(std::move(what));
}

// ---------------------------------------------------------------- lines

// The lines of tensors of equal sizes, but for those of the axis: where each begins in each of them.
class Lines {
public:
    // A tensor of rank 0 counts as one of rank 1 with one element.
    Lines(const Tensor& x, int axis) : x_(x), axis_(axis), length_(x.rank() == 0 ? 1 : x.size(axis)) {
        for (int a = 0; a < x.rank(); ++a) count_ *= a == axis ? 1 : x.size(a);
    }
    std::int64_t count() const { return count_; }
    std::int64_t length() const { return length_; }
    // Offset of the first element of a line in `tensor`, which has the sizes of x beside the axis.
    std::int64_t start(const Tensor& tensor, std::int64_t line) const {
        std::int64_t offset = 0;
        for (int a = x_.rank(); a-- > 0;) {
            if (a == axis_) continue;
            offset += line % x_.size(a) * tensor.stride(a);
            line /= x_.size(a);
        }
        return offset;
    }
    std::int64_t step(const Tensor& tensor) const { return tensor.rank() == 0 ? 0 : tensor.stride(axis_); }

private:
    const Tensor& x_;
    int axis_;
    std::int64_t length_;
    std::int64_t count_ = 1;
};

}  // namespace flexor::ops
