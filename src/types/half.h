#pragma once
// Scalar conversions between f32/f64 and the 16-bit floats, as bit patterns. Rounding is to nearest, ties to even;
// overflow gives infinity, NaN stays a (quiet) NaN, subnormals are kept.
#include <bit>
#include <cstdint>

namespace flexor::types {

constexpr float f32_from_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t bf16_from_f32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f32_from_f16(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
    std::uint32_t mantissa = bits & 0x3FFu;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    if (mantissa == 0) return std::bit_cast<float>(sign);
    const int shift = std::countl_zero(mantissa) - 21;  // brings the leading bit to position 10
    mantissa = (mantissa << shift) & 0x3FFu;
    return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(113 - shift) << 23) | (mantissa << 13));
}

constexpr std::uint16_t f16_from_f32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu));
    }
    if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds to 2^16 or beyond
    if (magnitude >= 0x38800000u) {                                                   // normal
        const std::uint32_t rebiased = magnitude - 0x38000000u;
        return static_cast<std::uint16_t>(sign | ((rebiased + 0xFFFu + ((rebiased >> 13) & 1u)) >> 13));
    }
    if (magnitude < 0x33000000u) return sign;  // below half of the smallest subnormal
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t shift = 126 - (magnitude >> 23);
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    const std::uint32_t half = 1u << (shift - 1);
    return static_cast<std::uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u)));
}

// By way of float, as torch does: twice rounded where the float lies on a tie.
constexpr std::uint16_t bf16_from_f64(double value) { return bf16_from_f32(static_cast<float>(value)); }
constexpr std::uint16_t f16_from_f64(double value) { return f16_from_f32(static_cast<float>(value)); }

}  // namespace flexor::types
