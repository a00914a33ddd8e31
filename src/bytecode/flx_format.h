#pragma once
// The layout that writer and reader of .flx share.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flexor::bytecode::flx {

static_assert(std::endian::native == std::endian::little, "files are little-endian and weights are used in place");

inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'F', 'L', 'X', '\r', '\n', 0x1A, '\n'};
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kTableRowBytes = 32;
inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kMaxSections = 64;

enum class Section : std::uint8_t { kStrings, kMeta, kSymbols, kConsts, kHooks, kWeights, kFuncs, kData };
inline constexpr std::array<std::string_view, 8> kSectionNames = {"strings", "meta",    "symbols", "consts",
                                                                  "hooks",   "weights", "funcs",   "data"};

enum class ConstantTag : std::uint8_t { kNone, kFalse, kTrue, kInt, kFloat, kText, kIntList };

inline constexpr std::array<std::string_view, 6> kParamKindNames = {"tensor", "int", "float", "bool", "str", "any"};
inline constexpr std::uint8_t kParamOptional = 1;
inline constexpr std::uint8_t kParamAnyDType = 2;
inline constexpr std::uint8_t kParamAnyRank = 4;

constexpr std::size_t align_up(std::size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

// Of header (without the checksum field) and table.
std::uint64_t head_checksum(std::span<const std::byte> head);

// Recomputes the checksums of a file whose bytes were changed, so that the change reaches the readers of the sections
// (tests, fuzzing). Bytes that are no file stay as they are.
void seal(std::span<std::byte> file);

}  // namespace flexor::bytecode::flx
