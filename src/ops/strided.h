#pragma once
// What the references are made of: elements of any dtype as double or int64, and plain loops over strided tensors.
// Slow on purpose, and apart from everything that lowering uses.
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "flexor/tensor.h"
#include "ops/op_def.h"

namespace flexor::ops {

// ---------------------------------------------------------------- elements

// Element at `offset` (in elements, from the tensor's data pointer). load_int on floats truncates; store_int wraps;
// store_real rounds once, truncates to integers, and stores x != 0 to bool.
double load_real(const Tensor& tensor, std::int64_t offset);
std::int64_t load_int(const Tensor& tensor, std::int64_t offset);
void store_real(const Tensor& tensor, std::int64_t offset, double value);
void store_int(const Tensor& tensor, std::int64_t offset, std::int64_t value);
// The value after a round trip through the dtype.
double round_to(DType dtype, double value);
std::int64_t wrap_to(DType dtype, std::int64_t value);

// An element after conversion to a dtype: `real` if the dtype is floating, else `integer`.
struct Element {
    bool floating = true;
    double real = 0;
    std::int64_t integer = 0;
    double as_real() const { return floating ? real : static_cast<double>(integer); }
};
Element load_as(const Tensor& tensor, std::int64_t offset, DType dtype);
void store(const Tensor& tensor, std::int64_t offset, const Element& element);
inline Element real_element(double value) { return {true, value, 0}; }
inline Element int_element(std::int64_t value) { return {false, 0, value}; }

// Copies one element, converting to the target's dtype.
void copy_element(const Tensor& to, std::int64_t to_offset, const Tensor& from, std::int64_t from_offset);

// ---------------------------------------------------------------- loops

using Index = std::vector<std::int64_t>;

inline std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

// Calls f(index) for every index of the space in row-major order. Once for rank 0.
template <class F>
void for_each_index(std::span<const std::int64_t> sizes, F&& f) {
    for (const std::int64_t size : sizes) {
        if (size <= 0) return;
    }
    Index index(sizes.size(), 0);
    while (true) {
        f(static_cast<const Index&>(index));
        std::size_t axis = sizes.size();
        while (axis > 0 && ++index[axis - 1] == sizes[axis - 1]) index[--axis] = 0;
        if (axis == 0) return;
    }
}

// Offset of an index of the tensor's own rank.
std::int64_t offset_of(const Tensor& tensor, std::span<const std::int64_t> index);
// Offset of an index of a space that the tensor is broadcast to: aligned at the last axis, axes of size 1 repeat.
std::int64_t broadcast_offset(const Tensor& tensor, std::span<const std::int64_t> index);

// Sum by pairwise tree in double.
double pairwise_sum(std::span<const double> values);
inline double mean_of(std::span<const double> values) {
    return pairwise_sum(values) / static_cast<double>(values.size());
}

// The refusal of an index into `size` elements.
Diagnostic bad_index(std::int64_t index, std::int64_t size);
// The index after wrapping, or -1 if it lies outside.
inline std::int64_t checked_index(std::int64_t index, std::int64_t size, bool wrap) {
    if (wrap && index < 0) index += size;
    return index >= 0 && index < size ? index : -1;
}

// Copies all elements of `from` into `to` in row-major order of both; the tensors have the same number of elements.
void copy_in_order(const Tensor& to, const Tensor& from);

// ---------------------------------------------------------------- references of element-by-element ops

using Elements = std::span<const Element>;
// Result 0 at every index is f(operands at that index, each converted to its operand dtype). Absent operands are zero
// elements; f may look at inputs[i].defined().
template <class F>
Expected<void> map_elements(ReferenceContext& context, F&& f) {
    const Tensor& out = context.outputs[0];
    std::vector<Element> elements(context.inputs.size());
    bool ok = true;
    for_each_index(out.sizes(), [&](const Index& index) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const Tensor& in = context.inputs[i];
            if (in.defined()) elements[i] = load_as(in, broadcast_offset(in, index), context.dtypes.operands[i]);
        }
        Element result;
        if constexpr (requires { ok = f(Elements(elements), &result); }) {
            ok = f(Elements(elements), &result) && ok;
        } else {
            result = f(Elements(elements));
        }
        if (ok) store(out, offset_of(out, index), result);
    });
    if (!ok) return Diagnostic(DiagnosticId::kDivisionByZero);
    return {};
}

// f: double(double)
template <auto F>
Expected<void> reference_real(ReferenceContext& context) {
    return map_elements(context, [](Elements e) { return real_element(F(e[0].as_real())); });
}
// f for floats, g for integers: T(T)
template <auto F, auto G>
Expected<void> reference_unary(ReferenceContext& context) {
    return map_elements(
        context, [](Elements e) { return e[0].floating ? real_element(F(e[0].real)) : int_element(G(e[0].integer)); });
}
// f for floats, g for integers: T(T, T)
template <auto F, auto G>
Expected<void> reference_binary(ReferenceContext& context) {
    return map_elements(context, [](Elements e) {
        return e[0].floating ? real_element(F(e[0].real, e[1].real)) : int_element(G(e[0].integer, e[1].integer));
    });
}
// bool(T, T) with one generic lambda
template <auto F>
Expected<void> reference_compare(ReferenceContext& context) {
    return map_elements(context, [](Elements e) {
        return int_element(e[0].floating ? F(e[0].real, e[1].real) : F(e[0].integer, e[1].integer));
    });
}

// Wrapping arithmetic of int64.
inline std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline std::int64_t wrap_sub(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t wrap_mul(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace flexor::ops
