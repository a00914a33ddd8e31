#include "support/check.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "flexor/error.h"

namespace flexor {

namespace {

struct FatalSink {
    void (*sink)(void* context, std::string_view text);
    void* context;
};
constinit FatalSink fatal_sink{nullptr, nullptr};
constinit std::mutex fatal_mutex;

}  // namespace

void set_fatal_sink(void (*sink)(void* context, std::string_view text), void* context) {
    const std::lock_guard lock(fatal_mutex);
    fatal_sink = {sink, context};
}

namespace support {

void die(std::string_view text) {
    FatalSink told{};
    {
        const std::lock_guard lock(fatal_mutex);
        told = fatal_sink;
    }
    if (told.sink != nullptr)
        told.sink(told.context, text);
    else
        std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
    std::abort();
}

void check_failed(const char* condition, const char* file, int line) { check_failed(condition, file, line, {}); }

void check_failed(const char* condition, const char* file, int line, std::string_view detail) {
    std::string text;
    if (!detail.empty()) text = "flexor: " + std::string(detail) + "\n";
    die(text + "flexor: " + file + ":" + std::to_string(line) + ": check failed: " + condition);
}

}  // namespace support
}  // namespace flexor
