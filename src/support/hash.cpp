#include "support/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/check.h"

namespace flexor::support {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash_bytes(std::string_view text, std::uint64_t seed) {
    return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

Hasher::Hasher(std::uint64_t seed) : state_(XXH3_createState()) {
    FLEXOR_CHECK(state_ != nullptr);
    XXH3_64bits_reset_withSeed(static_cast<XXH3_state_t*>(state_), seed);
}

Hasher::~Hasher() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Hasher::add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

void Hasher::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

void Hasher::add(std::uint64_t word) {
    std::byte bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(word >> (8 * i));
    add(std::span<const std::byte>(bytes));
}

std::uint64_t Hasher::digest() const { return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_)); }

}  // namespace flexor::support
