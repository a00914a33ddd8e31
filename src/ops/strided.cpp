#include "ops/strided.h"

#include <limits>

#include "support/check.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::ops {
namespace {

std::int64_t truncate(double value) {
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) {
        return std::numeric_limits<std::int64_t>::min();
    }
    return static_cast<std::int64_t>(value);
}

template <class T>
Unaligned<T>& at(const Tensor& tensor, std::int64_t offset) {
    return tensor.data_as<Unaligned<T>>()[offset];
}

}  // namespace

double load_real(const Tensor& tensor, std::int64_t offset) {
    switch (tensor.dtype()) {
        case DType::kBool: return at<std::uint8_t>(tensor, offset) != 0 ? 1 : 0;
        case DType::kU8: return at<std::uint8_t>(tensor, offset);
        case DType::kI8: return at<std::int8_t>(tensor, offset);
        case DType::kI32: return at<std::int32_t>(tensor, offset);
        case DType::kI64: return static_cast<double>(at<std::int64_t>(tensor, offset).value);
        case DType::kF16: return types::f32_from_f16(at<std::uint16_t>(tensor, offset));
        case DType::kBF16: return types::f32_from_bf16(at<std::uint16_t>(tensor, offset));
        case DType::kF32: return at<float>(tensor, offset);
        case DType::kF64: return at<double>(tensor, offset);
    }
    FLEXOR_UNREACHABLE();
}

std::int64_t load_int(const Tensor& tensor, std::int64_t offset) {
    switch (tensor.dtype()) {
        case DType::kBool: return at<std::uint8_t>(tensor, offset) != 0 ? 1 : 0;
        case DType::kU8: return at<std::uint8_t>(tensor, offset);
        case DType::kI8: return at<std::int8_t>(tensor, offset);
        case DType::kI32: return at<std::int32_t>(tensor, offset);
        case DType::kI64: return at<std::int64_t>(tensor, offset);
        default: return truncate(load_real(tensor, offset));
    }
}

void store_real(const Tensor& tensor, std::int64_t offset, double value) {
    switch (tensor.dtype()) {
        case DType::kBool: at<std::uint8_t>(tensor, offset) = value != 0 ? 1 : 0; return;
        case DType::kF16: at<std::uint16_t>(tensor, offset) = types::f16_from_f64(value); return;
        case DType::kBF16: at<std::uint16_t>(tensor, offset) = types::bf16_from_f64(value); return;
        case DType::kF32: at<float>(tensor, offset) = static_cast<float>(value); return;
        case DType::kF64: at<double>(tensor, offset) = value; return;
        default: store_int(tensor, offset, truncate(value));
    }
}

void store_int(const Tensor& tensor, std::int64_t offset, std::int64_t value) {
    switch (tensor.dtype()) {
        case DType::kBool: at<std::uint8_t>(tensor, offset) = value != 0 ? 1 : 0; return;
        case DType::kU8: at<std::uint8_t>(tensor, offset) = static_cast<std::uint8_t>(value); return;
        case DType::kI8: at<std::int8_t>(tensor, offset) = static_cast<std::int8_t>(value); return;
        case DType::kI32: at<std::int32_t>(tensor, offset) = static_cast<std::int32_t>(value); return;
        case DType::kI64: at<std::int64_t>(tensor, offset) = value; return;
        case DType::kF32: at<float>(tensor, offset) = static_cast<float>(value); return;
        default: store_real(tensor, offset, static_cast<double>(value));
    }
}

double round_to(DType dtype, double value) {
    switch (dtype) {
        case DType::kF16: return types::f32_from_f16(types::f16_from_f64(value));
        case DType::kBF16: return types::f32_from_bf16(types::bf16_from_f64(value));
        case DType::kF32: return static_cast<float>(value);
        default: return value;
    }
}

std::int64_t wrap_to(DType dtype, std::int64_t value) {
    switch (dtype) {
        case DType::kBool: return value != 0 ? 1 : 0;
        case DType::kU8: return static_cast<std::uint8_t>(value);
        case DType::kI8: return static_cast<std::int8_t>(value);
        case DType::kI32: return static_cast<std::int32_t>(value);
        default: return value;
    }
}

Element load_as(const Tensor& tensor, std::int64_t offset, DType dtype) {
    if (is_floating(dtype)) {
        if (tensor.dtype() == DType::kI64 && dtype == DType::kF32) {
            return real_element(static_cast<float>(load_int(tensor, offset)));
        }
        return real_element(round_to(dtype, load_real(tensor, offset)));
    }
    if (dtype == DType::kBool) return int_element(load_real(tensor, offset) != 0 ? 1 : 0);
    return int_element(wrap_to(dtype, load_int(tensor, offset)));
}

void store(const Tensor& tensor, std::int64_t offset, const Element& element) {
    if (element.floating) {
        store_real(tensor, offset, element.real);
    } else {
        store_int(tensor, offset, element.integer);
    }
}

void copy_element(const Tensor& to, std::int64_t to_offset, const Tensor& from, std::int64_t from_offset) {
    store(to, to_offset, load_as(from, from_offset, to.dtype()));
}

std::int64_t offset_of(const Tensor& tensor, std::span<const std::int64_t> index) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < tensor.rank(); ++axis)
        offset += index[static_cast<std::size_t>(axis)] * tensor.stride(axis);
    return offset;
}

std::int64_t broadcast_offset(const Tensor& tensor, std::span<const std::int64_t> index) {
    std::int64_t offset = 0;
    const std::size_t skip = index.size() - static_cast<std::size_t>(tensor.rank());
    for (int axis = 0; axis < tensor.rank(); ++axis) {
        if (tensor.size(axis) != 1) offset += index[skip + static_cast<std::size_t>(axis)] * tensor.stride(axis);
    }
    return offset;
}

Diagnostic bad_index(std::int64_t index, std::int64_t size) {
    return Diagnostic(DiagnosticId::kElementIndexOutOfRange)
        .found(std::to_string(index))
        .expected("an index in [0, " + std::to_string(size) + ")");
}

double pairwise_sum(std::span<const double> values) {
    if (values.size() <= 8) {
        double sum = 0;
        for (const double v : values) sum += v;
        return sum;
    }
    const std::size_t half = values.size() / 2;
    return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

void copy_in_order(const Tensor& to, const Tensor& from) {
    std::vector<std::int64_t> offsets;
    offsets.reserve(static_cast<std::size_t>(from.numel()));
    for_each_index(from.sizes(), [&](const Index& index) { offsets.push_back(offset_of(from, index)); });
    std::size_t next = 0;
    for_each_index(to.sizes(),
                   [&](const Index& index) { copy_element(to, offset_of(to, index), from, offsets[next++]); });
}

}  // namespace flexor::ops
