// bench: the time of single calls, one after the other.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "commands.h"
#include "faults.h"
#include "program.h"

namespace flexor::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string duration_text(double seconds) {
    char text[32];
    const double scale = seconds < 1e-6 ? 1e9 : seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    const char* unit = seconds < 1e-6 ? "ns" : seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    std::snprintf(text, sizeof text, "%.4g %s", seconds * scale, unit);
    return text;
}

// The smallest sample that at least this share of the samples does not exceed; `sorted` holds at least one.
double quantile(const std::vector<double>& sorted, double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Outcome bench_command(const Options& options) {
    CLI_ASSIGN(const Program program, load_program(options, true));
    Session session(session_options(options));
    const InterruptScope scope(session);
    std::vector<Value> results;
    const auto timed_call = [&]() -> Expected<double> {
        const auto begin = std::chrono::steady_clock::now();
        CLI_TRY(call_once(session, program, results));
        return seconds_since(begin);
    };
    CLI_ASSIGN(const double first, timed_call());
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(options.repeat));
    for (std::int64_t i = 0; i < options.repeat; ++i) {
        CLI_ASSIGN(const double seconds, timed_call());
        samples.push_back(seconds);
    }
    std::ranges::sort(samples);
    const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
    const Stats stats = session.stats();

    const std::pair<const char*, double> rows[] = {
        {"first", first}, {"min", samples.front()},         {"median", quantile(samples, 0.5)},
        {"mean", mean},   {"p99", quantile(samples, 0.99)}, {"max", samples.back()}};
    std::string text;
    JsonWriter json;
    json.begin_object().key("function").string(options.function).key("calls").integer(options.repeat);
    for (std::size_t i = 0; i < program.arguments.size(); ++i) {
        const std::string name = program.module.inputs(options.function)[i].name;
        text += name + ": " + program.arguments[i].describe() + "\n";
    }
    json.key("arguments").begin_array();
    for (const Value& argument : program.arguments) json.string(argument.describe());
    json.end_array();
    for (const auto& [name, seconds] : rows) {
        std::string label = name;
        text += label + std::string(8 - label.size(), ' ') + duration_text(seconds) + "\n";
        json.key(label + "_s").real(seconds);
    }
    char line[160];
    std::snprintf(line, sizeof line, "hit rate %.2f %%, fallback rate %.2f %%, %llu compilations in %s\n",
                  100 * stats.hit_rate, 100 * stats.fallback_rate, static_cast<unsigned long long>(stats.compilations),
                  duration_text(stats.compile_seconds).c_str());
    text += line;
    json.key("hit_rate").real(stats.hit_rate).key("fallback_rate").real(stats.fallback_rate);
    json.key("compilations").count(stats.compilations).key("compile_s").real(stats.compile_seconds).end_object();
    emit(options, text, json);
    return Exit::kDone;
}

}  // namespace flexor::cli
