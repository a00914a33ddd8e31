#pragma once
// Mutations of the text form that mostly stay programs: statements are inserted where the stack is empty, with the
// registry's ops, samples of their attributes, and names that the function knows.
#include <cstddef>
#include <cstdint>

namespace flexor::fuzz {

// In percent of all mutations.
struct MutationRates {
    unsigned wild = 0;   // libFuzzer's own, on bytes
    unsigned edits = 0;  // on the numbers of a last line "; edits: ..."
};

std::size_t mutate_text(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed, MutationRates rates);

}  // namespace flexor::fuzz
