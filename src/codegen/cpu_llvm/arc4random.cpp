// LLVM asks for arc4random, which glibc has from 2.36 on: one of our own lets the library run with older ones.
#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
    std::uint32_t value = 0;
    // Names of temporary files are made of it: nothing rests on its being unpredictable.
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value))
        value = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&value) >> 4);
    return value;
}
