#include "runtime/cuda/named_ranges.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "support/environment.h"

namespace flexor::runtime::cuda {

namespace {

// NVTX's own protocol, third version. The profiler is initialised with a function that gives tables by number; from the
// table of callbacks it gets the places of our functions, by module and number, and writes those that it wants to hear.
using Call = void (*)();
using Place = Call*;

enum : std::uint32_t { kCallbacks = 1, kVersionInfo = 3 };  // tables
enum : std::uint32_t { kCore = 1 };                         // modules
enum : std::size_t { kRangePush = 9, kRangePop = 11, kCoreFunctions = 16 };
constexpr std::uint32_t kVersion = 3;

std::array<Call, kCoreFunctions> core_functions{};
std::array<Place, kCoreFunctions + 1> core_places{};  // null behind the last one

int module_functions(std::uint32_t module, Place** table, unsigned* count) {
    if (module != kCore) return 0;
    for (std::size_t i = 0; i < kCoreFunctions; ++i) core_places[i] = &core_functions[i];
    if (table != nullptr) *table = core_places.data();
    if (count != nullptr) *count = kCoreFunctions;
    return 1;
}

struct Callbacks {
    std::size_t size = sizeof(Callbacks);
    int (*functions)(std::uint32_t, Place**, unsigned*) = module_functions;
};
struct VersionInfo {
    std::size_t size = sizeof(VersionInfo);
    std::uint32_t version = kVersion, reserved = 0;
    void (*set_version)(std::uint32_t) = [](std::uint32_t) {};
};

const void* table_of(std::uint32_t number) {
    static const Callbacks callbacks;
    static const VersionInfo version;
    if (number == kCallbacks) return &callbacks;
    return number == kVersionInfo ? static_cast<const void*>(&version) : nullptr;
}

}  // namespace

std::unique_ptr<const NamedRanges> NamedRanges::load(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY);
    if (handle == nullptr) return nullptr;
    using Initialise = int (*)(const void* (*)(std::uint32_t));
    const auto initialise = reinterpret_cast<Initialise>(dlsym(handle, "InitializeInjectionNvtx2"));
    core_functions = {};
    if (initialise == nullptr || initialise(table_of) == 0) return nullptr;
    auto out = std::make_unique<NamedRanges>();
    out->push_ = core_functions[kRangePush];
    out->pop_ = core_functions[kRangePop];
    if (out->push_ == nullptr || out->pop_ == nullptr) return nullptr;
    return out;
}

const NamedRanges* NamedRanges::of_environment() {
    static const std::unique_ptr<const NamedRanges> ranges = [] {
        const std::string library = support::profiler_from_environment();
        return library.empty() ? nullptr : load(library);
    }();
    return ranges.get();
}

void NamedRanges::push(const char* name) const { reinterpret_cast<int (*)(const char*)>(push_)(name); }
void NamedRanges::pop() const { reinterpret_cast<int (*)()>(pop_)(); }

}  // namespace flexor::runtime::cuda
