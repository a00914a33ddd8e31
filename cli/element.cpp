#include "element.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace flexor::cli {
namespace {

template <class T>
T get(const void* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
}

template <class T>
void put(void* element, T value) {
    std::memcpy(element, &value, sizeof value);
}

// A 16-bit float: `mantissa` stored bits, smallest normal exponent `lowest`.
struct Half {
    int mantissa;
    int lowest;
};
constexpr Half kF16Format{10, -14};
constexpr Half kBF16Format{7, -126};

double decode(Half format, std::uint16_t bits) {
    const int magnitude = bits & 0x7FFF;
    const int exponent = magnitude >> format.mantissa;
    const int fraction = magnitude & ((1 << format.mantissa) - 1);
    double value = 0;
    if (exponent == (0x7FFF >> format.mantissa)) {
        value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
        value = std::ldexp(fraction, format.lowest - format.mantissa);
    } else {
        value = std::ldexp(fraction + (1 << format.mantissa), exponent - 1 + format.lowest - format.mantissa);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

// Rounds to nearest, ties to even; a carry out of the fraction runs into the exponent, as it should.
std::uint16_t encode(Half format, double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const int infinity = (0x7FFF >> format.mantissa) << format.mantissa;
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | (1 << (format.mantissa - 1)));
    const double magnitude = std::fabs(value);
    int bits = infinity;
    if (magnitude == 0) {
        bits = 0;
    } else if (magnitude < 0x1p200) {
        const int exponent = std::max(std::ilogb(magnitude), format.lowest);
        const double scaled = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
        bits = std::min(infinity, ((exponent - format.lowest) << format.mantissa) + static_cast<int>(scaled));
    }
    return static_cast<std::uint16_t>(sign | bits);
}

Number integer_number(std::int64_t value) { return {Number::Kind::kInt, value, 0}; }
Number real_number(double value) { return {Number::Kind::kReal, 0, value}; }

template <class T>
bool put_integer(void* element, std::int64_t value) {
    put(element, static_cast<T>(value));
    return static_cast<std::int64_t>(static_cast<T>(value)) == value;
}

template <class T>
std::string shortest(T value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return {buffer, end};
}

}  // namespace

Number load_element(DType dtype, const void* element) {
    switch (dtype) {
        case DType::kBool: return {Number::Kind::kBool, get<std::uint8_t>(element) != 0, 0};
        case DType::kU8: return integer_number(get<std::uint8_t>(element));
        case DType::kI8: return integer_number(get<std::int8_t>(element));
        case DType::kI32: return integer_number(get<std::int32_t>(element));
        case DType::kI64: return integer_number(get<std::int64_t>(element));
        case DType::kF16: return real_number(decode(kF16Format, get<std::uint16_t>(element)));
        case DType::kBF16: return real_number(decode(kBF16Format, get<std::uint16_t>(element)));
        case DType::kF32: return real_number(get<float>(element));
        case DType::kF64: return real_number(get<double>(element));
    }
    return {};
}

bool store_element(DType dtype, void* element, const Number& number) {
    switch (dtype) {
        case DType::kF16: return put(element, encode(kF16Format, number.as_real())), true;
        case DType::kBF16: return put(element, encode(kBF16Format, number.as_real())), true;
        case DType::kF32: return put(element, static_cast<float>(number.as_real())), true;
        case DType::kF64: return put(element, number.as_real()), true;
        default: break;
    }
    std::int64_t value = number.integer;
    if (number.kind == Number::Kind::kReal) {
        if (!(std::fabs(number.real) < 0x1p63) || std::trunc(number.real) != number.real) return false;
        value = static_cast<std::int64_t>(number.real);
    }
    switch (dtype) {
        case DType::kBool: return put_integer<std::uint8_t>(element, value) && (value == 0 || value == 1);
        case DType::kU8: return put_integer<std::uint8_t>(element, value);
        case DType::kI8: return put_integer<std::int8_t>(element, value);
        case DType::kI32: return put_integer<std::int32_t>(element, value);
        default: return put_integer<std::int64_t>(element, value);
    }
}

std::string spell_element(DType dtype, const void* element) {
    const Number number = load_element(dtype, element);
    switch (number.kind) {
        case Number::Kind::kBool: return number.integer != 0 ? "true" : "false";
        case Number::Kind::kInt: return std::to_string(number.integer);
        case Number::Kind::kReal: break;
    }
    return dtype == DType::kF64 ? shortest(number.real) : shortest(static_cast<float>(number.real));
}

const void* element_at(const Tensor& tensor, std::int64_t index) {
    std::int64_t offset = 0;
    for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
        offset += index % tensor.size(axis) * tensor.stride(axis);
        index /= tensor.size(axis);
    }
    return tensor.data_as<std::byte>() + offset * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
}

}  // namespace flexor::cli
