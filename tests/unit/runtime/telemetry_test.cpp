#include "runtime/telemetry.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace flexor::runtime {
namespace {

TEST(Telemetry, SumsShardsOfThreads) {
    Telemetry telemetry;
    const auto work = [&] {
        const auto shard = telemetry.make_shard();
        for (int i = 0; i < 1000; ++i) {
            shard->calls.add();
            shard->exact.hits.add();
            shard->compiled_ops.add(3);
        }
    };
    std::thread other(work);
    work();
    other.join();
    const Stats stats = telemetry.snapshot();
    EXPECT_EQ(stats.calls, 2000u);
    EXPECT_EQ(stats.lookups, 2000u);
    EXPECT_EQ(stats.hit_rate, 1.0);
    EXPECT_EQ(stats.compiled_ops, 6000u);
}

TEST(Telemetry, SamplesOneInSixtyFour) {
    Telemetry telemetry;
    const auto shard = telemetry.make_shard();
    int sampled = 0;
    for (int i = 0; i < 6400; ++i) sampled += shard->sample();
    EXPECT_EQ(sampled, 100);
}

TEST(Telemetry, HeatMapCountsByOpReasonAndLine) {
    Telemetry telemetry;
    const auto shard = telemetry.make_shard();
    for (int i = 0; i < 3; ++i) telemetry.record_fallback(*shard, "sort", "not_compiled", "main", 7, 1000);
    telemetry.record_fallback(*shard, "sort", "not_compiled", "main", 9, 1000);
    telemetry.record_fallback(*shard, "foreign log", "foreign", "main", 3, 500);
    shard->compiled_ops.add(95);
    const Stats stats = telemetry.snapshot();
    ASSERT_EQ(stats.fallbacks.size(), 3u);
    EXPECT_EQ(stats.fallbacks[0].count, 3u);
    EXPECT_EQ(stats.fallbacks[0].line, 7);
    EXPECT_DOUBLE_EQ(stats.fallback_rate, 0.05);
    EXPECT_FALSE(stats.fallback_alarm);
    shard->interpreted_ops.add(20);
    EXPECT_TRUE(telemetry.snapshot().fallback_alarm);
}

TEST(Telemetry, AlarmIsToldOnce) {
    Telemetry telemetry;
    const auto shard = telemetry.make_shard();
    for (int i = 0; i < 400; ++i) telemetry.record_fallback(*shard, "sort", "not_compiled", "main", 7, 10);
    int alarms = 0;
    for (const Event& event : telemetry.events(0)) alarms += event.kind == "fallback_alarm";
    EXPECT_EQ(alarms, 1);
}

TEST(Telemetry, EventRingKeepsTheNewest) {
    Telemetry telemetry;
    int told = 0;
    telemetry.set_sink([&](const Event&) { ++told; });
    for (int i = 0; i < 5000; ++i) telemetry.record_eviction("main", 1, "x");
    const auto events = telemetry.events(0);
    EXPECT_EQ(events.size(), 4096u);
    EXPECT_EQ(events.back().sequence, 5000u);
    EXPECT_EQ(told, 5000);
    EXPECT_EQ(telemetry.events(4990).size(), 10u);
}

TEST(Telemetry, EntriesAreThoseThatServeCalls) {
    Telemetry telemetry;
    std::vector<std::shared_ptr<EntryRecord>> entries;
    for (const char* name : {"a", "b", "c"}) {
        entries.push_back(std::make_shared<EntryRecord>());
        entries.back()->stats.function = name;
        telemetry.record_compile(entries.back());
    }
    const auto names = [&] {
        std::string out;
        for (const EntryStats& entry : telemetry.snapshot().entries) out += entry.function;
        return out;
    };
    EXPECT_EQ(names(), "abc");
    telemetry.forget(entries[1].get());
    EXPECT_EQ(names(), "ac");
    entries[0].reset();
    EXPECT_EQ(names(), "c") << "an entry that is gone with its module";
    telemetry.forget_entries();
    EXPECT_EQ(names(), "");
    EXPECT_EQ(telemetry.snapshot().compilations, 3u);
}

TEST(Telemetry, WhatIsInterpretedByDesignIsNoFailure) {
    Telemetry telemetry;
    telemetry.record_not_compiled(NotCompiled::kByDesign, "main", 3, "main@0: E0701", 0.5);
    const Stats stats = telemetry.snapshot();
    EXPECT_EQ(stats.failed_compilations, 0u);
    EXPECT_EQ(stats.compile_seconds, 0);
    ASSERT_EQ(telemetry.events(0).size(), 1u);
    EXPECT_EQ(telemetry.events(0)[0].kind, "interpreted");
}

Stats sample_stats() {
    Telemetry telemetry;
    const auto shard = telemetry.make_shard();
    shard->calls.add(10);
    shard->exact.hits.add(8);
    shard->exact.misses.add(2);
    shard->symbolic.hits.add(1);
    shard->symbolic.misses.add(1);
    telemetry.record_fallback(*shard, "so\"rt", "not\ncompiled", "main", 7, 1000);
    auto entry = std::make_shared<EntryRecord>();
    entry->stats.function = "main";
    entry->stats.compile_seconds = 0.25;
    telemetry.record_compile(entry);
    return telemetry.snapshot();
}

TEST(Telemetry, JsonIsJson) {
    const auto json = nlohmann::json::parse(to_json(sample_stats()));
    EXPECT_EQ(json["calls"], 10);
    EXPECT_DOUBLE_EQ(json["hit_rate"].get<double>(), 0.9);
    EXPECT_EQ(json["rungs"][0]["name"], "exact");
    EXPECT_EQ(json["fallbacks"][0]["op"], "so\"rt");
    EXPECT_DOUBLE_EQ(json["mean_compile_seconds"].get<double>(), 0.25);
    EXPECT_EQ(json["pool"]["hard_limit"], 0);
    Event event;
    event.kind = "compile";
    event.text = "tab\there";
    const std::string line = to_json_line(event);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(line)["text"], "tab\there");
}

TEST(Telemetry, PrometheusTextHasOneTypePerFamily) {
    const std::string text = to_prometheus(sample_stats());
    EXPECT_NE(text.find("flexor_cache_requests_total{rung=\"exact\",result=\"hit\"} 8\n"), std::string::npos) << text;
    EXPECT_NE(text.find("flexor_cache_lookup_seconds{rung=\"symbolic\"} "), std::string::npos) << text;
    for (const char* line : {"flexor_entries 1\n", "flexor_fallback_seconds_total 1", "flexor_pool_reuses_total 0\n",
                             "flexor_pool_bytes{state=\"live\"} 0\n", "flexor_pool_limit_bytes{limit=\"soft\"} 0\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    EXPECT_NE(text.find("flexor_fallbacks_total{op=\"so\\\"rt\",reason=\"not\\ncompiled\"} 1\n"), std::string::npos);
    std::map<std::string, int> types;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        if (line.rfind("# TYPE ", 0) == 0) ++types[line.substr(7, line.find(' ', 7) - 7)];
        at = end + 1;
    }
    EXPECT_GT(types.size(), 20u);
    for (const auto& [name, count] : types) EXPECT_EQ(count, 1) << name;
}

TEST(Telemetry, DashboardShowsTheThreeFigures) {
    const std::string text = to_text(sample_stats());
    for (const char* part : {"cache hit rate   90.00 %", "fallback rate    100.00 %", "ALARM", "mean 250.0 ms"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace flexor::runtime
