// A profiler's library for tests: what NVTX's ranges tell it.
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

std::string heard;
int push(const char* name) {
    heard += std::string("<") + name;
    return 0;
}
int pop() {
    heard += ">";
    return 0;
}

using Call = void (*)();
struct Callbacks {
    std::size_t size;
    int (*functions)(std::uint32_t module, Call*** table, unsigned* count);
};

}  // namespace

extern "C" const char* fake_profiler_heard() { return heard.c_str(); }

extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(std::uint32_t)) {
    const auto* callbacks = static_cast<const Callbacks*>(table_of(1));
    Call** table = nullptr;
    unsigned count = 0;
    if (callbacks == nullptr || table_of(77) != nullptr || callbacks->functions(2, &table, &count) != 0 ||
        callbacks->functions(1, &table, &count) != 1 || count < 12)
        return 0;
    *table[9] = reinterpret_cast<Call>(&push);
    *table[11] = reinterpret_cast<Call>(&pop);
    return 1;
}
