#pragma once

// 64-bit hashes: of bytes (XXH3, stable across machines, used in files) and of words (for tables in memory).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flexor::support {

// XXH3 with 64 bits. Equal bytes and seed give the same value on every machine and version.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash_bytes(std::string_view text, std::uint64_t seed = 0);

// XXH3 of bytes that come in pieces.
class Hasher {
public:
    explicit Hasher(std::uint64_t seed = 0);
    ~Hasher();
    Hasher(const Hasher&) = delete;
    Hasher& operator=(const Hasher&) = delete;

    void add(std::span<const std::byte> bytes);
    void add(std::string_view text);
    void add(std::uint64_t word);
    std::uint64_t digest() const;

private:
    void* state_;
};

// Folds a word into a running hash: one multiplication a word, every bit of the input reaches every bit of the result.
inline std::uint64_t hash_combine(std::uint64_t hash, std::uint64_t word) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(hash ^ 0x9E3779B97F4A7C15ULL) * (word ^ 0xD6E8FEB86659FD93ULL);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ word;
}

}  // namespace flexor::support
