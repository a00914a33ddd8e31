// Stats and events as JSON, Prometheus text and the dashboard.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "flexor/telemetry.h"
#include "support/text.h"

namespace flexor {

namespace {

// Writes JSON members in order; values of the kinds that Stats has.
class Json {
public:
    Json& begin(char bracket) {
        separate();
        out_ += bracket;
        fresh_ = true;
        return *this;
    }
    Json& end(char bracket) {
        out_ += bracket;
        fresh_ = false;
        return *this;
    }
    Json& key(std::string_view name) {
        separate();
        text(name);
        out_ += ':';
        fresh_ = true;
        return *this;
    }
    Json& member(std::string_view name, std::string_view value) {
        key(name).separate();
        text(value);
        return *this;
    }
    Json& member(std::string_view name, const char* value) { return member(name, std::string_view(value)); }
    Json& member(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    Json& member(std::string_view name, double value) {
        // JSON has no NaN and no infinity.
        return raw(name, std::isfinite(value) ? support::text_from_double(value) : "null");
    }
    Json& member(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    Json& member(std::string_view name, std::int32_t value) { return raw(name, std::to_string(value)); }
    Json& member(std::string_view name, std::uint32_t value) { return raw(name, std::to_string(value)); }
    std::string take() { return std::move(out_); }

private:
    Json& raw(std::string_view name, std::string_view value) {
        key(name).separate();
        out_ += value;
        return *this;
    }
    void separate() {
        if (!fresh_) out_ += ',';
        fresh_ = false;
    }
    void text(std::string_view value) {
        out_ += '"';
        for (const char c : value) {
            if (c == '"' || c == '\\') {
                out_ += '\\';
                out_ += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                char escape[8];
                std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
                out_ += escape;
            } else {
                out_ += c;
            }
        }
        out_ += '"';
    }

    std::string out_;
    bool fresh_ = true;
};

std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

std::string percent(double rate) { return number(100.0 * rate, 2) + " %"; }

std::string seconds_text(double seconds) {
    if (seconds < 1e-6) return number(seconds * 1e9, 0) + " ns";
    if (seconds < 1e-3) return number(seconds * 1e6, 1) + " us";
    if (seconds < 1.0) return number(seconds * 1e3, 1) + " ms";
    return number(seconds, 2) + " s";
}

std::string padded(std::string text, std::size_t width, bool right = false) {
    if (text.size() >= width) return text;
    const std::string space(width - text.size(), ' ');
    return right ? space + text : text + space;
}

class Prometheus {
public:
    void family(std::string_view name, std::string_view kind, std::string_view help) {
        name_ = name;
        out_ += "# HELP ";
        out_ += name;
        out_ += ' ';
        out_ += help;
        out_ += "\n# TYPE ";
        out_ += name;
        out_ += ' ';
        out_ += kind;
        out_ += '\n';
    }
    void sample(double value, std::string_view labels = {}) {
        out_ += name_;
        if (!labels.empty()) {
            out_ += '{';
            out_ += labels;
            out_ += '}';
        }
        out_ += ' ';
        const bool whole = std::floor(value) == value && std::fabs(value) < 1e15;
        out_ += whole ? number(value, 0) : support::text_from_double(value);
        out_ += '\n';
    }
    void one(std::string_view name, std::string_view kind, std::string_view help, double value) {
        family(name, kind, help);
        sample(value);
    }
    std::string take() { return std::move(out_); }

private:
    std::string out_;
    std::string name_;
};

std::string label(std::string_view key, std::string_view value) {
    std::string out(key);
    out += "=\"";
    for (const char c : value) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + "\"";
}

}  // namespace

std::string to_json(const Stats& stats) {
    Json json;
    json.begin('{');
    json.member("uptime_seconds", stats.uptime_seconds);
    json.member("calls", stats.calls).member("failed_calls", stats.failed_calls);
    json.member("lookups", stats.lookups).member("hit_rate", stats.hit_rate);
    json.key("rungs").begin('[');
    for (const RungStats& rung : stats.rungs) {
        json.begin('{').member("name", rung.name).member("hits", rung.hits).member("misses", rung.misses);
        json.member("samples", rung.samples).member("mean_ns", rung.mean_ns).end('}');
    }
    json.end(']');
    json.member("compiled_ops", stats.compiled_ops).member("interpreted_ops", stats.interpreted_ops);
    json.member("typed_calls", stats.typed_calls);
    json.member("fallback_rate", stats.fallback_rate).member("fallback_seconds", stats.fallback_seconds);
    json.member("fallback_alarm", stats.fallback_alarm);
    json.key("fallbacks").begin('[');
    for (const FallbackRow& row : stats.fallbacks) {
        json.begin('{').member("op", row.op).member("reason", row.reason).member("function", row.function);
        json.member("line", row.line).member("count", row.count).member("seconds", row.seconds).end('}');
    }
    json.end(']');
    json.member("compilations", stats.compilations).member("failed_compilations", stats.failed_compilations);
    json.member("compile_seconds", stats.compile_seconds);
    json.member("mean_compile_seconds", stats.mean_compile_seconds);
    json.key("entries").begin('[');
    for (const EntryStats& entry : stats.entries) {
        json.begin('{').member("function", entry.function).member("pc", entry.pc).member("line", entry.line);
        json.member("signature", entry.signature).member("guards", entry.guards).member("reason", entry.reason);
        json.member("hits", entry.hits);
        json.member("compile_seconds", entry.compile_seconds);
        json.member("specialize_seconds", entry.specialize_seconds);
        json.member("transform_seconds", entry.transform_seconds);
        json.member("lower_seconds", entry.lower_seconds).member("codegen_seconds", entry.codegen_seconds);
        json.member("pack_seconds", entry.pack_seconds).member("kernels", entry.kernels);
        json.member("kernels_built", entry.kernels_built).member("code_bytes", entry.code_bytes);
        json.member("ops", entry.ops).member("graphs", entry.graphs).end('}');
    }
    json.end(']');
    json.member("kernel_launches", stats.kernel_launches).member("kernels_compiled", stats.kernels_compiled);
    json.member("kernel_cache_hits", stats.kernel_cache_hits).member("code_bytes", stats.code_bytes);
    json.member("packed_weight_bytes", stats.packed_weight_bytes).member("region_exits", stats.region_exits);
    json.member("evictions", stats.evictions);
    json.member("device_launches", stats.device_launches).member("device_syncs", stats.device_syncs);
    json.member("device_copied_bytes", stats.device_copied_bytes).member("library_launches", stats.library_launches);
    json.member("device_variants", stats.device_variants).member("device_stand_ins", stats.device_stand_ins);
    json.member("device_compile_waits", stats.device_compile_waits);
    json.member("device_compile_wait_seconds", stats.device_compile_wait_seconds);
    json.member("graph_launches", stats.graph_launches).member("graph_misfits", stats.graph_misfits);
    json.member("graphs_built", stats.graphs_built).member("graphs_refused", stats.graphs_refused);
    json.member("graphs_evicted", stats.graphs_evicted);
    for (const auto& [name, pool] : {std::pair{"pool", &stats.pool}, std::pair{"device_pool", &stats.device_pool}}) {
        json.key(name).begin('{').member("live_bytes", pool->live_bytes).member("reserved_bytes", pool->reserved_bytes);
        json.member("peak_live_bytes", pool->peak_live_bytes).member("peak_reserved_bytes", pool->peak_reserved_bytes);
        json.member("soft_limit", pool->soft_limit).member("hard_limit", pool->hard_limit);
        json.member("growth_events", pool->growth_events).member("over_soft_events", pool->over_soft_events);
        json.member("hard_limit_events", pool->hard_limit_events).member("shrunk_bytes", pool->shrunk_bytes);
        json.member("reuses", pool->reuses).end('}');
    }
    json.end('}');
    return json.take();
}

std::string to_json_line(const Event& event) {
    Json json;
    json.begin('{').member("sequence", event.sequence).member("seconds", event.seconds).member("kind", event.kind);
    json.member("function", event.function).member("line", event.line).member("text", event.text);
    json.member("duration_seconds", event.duration_seconds).member("bytes", event.bytes).end('}');
    return json.take();
}

std::string to_prometheus(const Stats& stats) {
    const auto real = [](std::uint64_t value) { return static_cast<double>(value); };
    Prometheus text;
    text.one("flexor_uptime_seconds", "gauge", "Age of the session.", stats.uptime_seconds);
    text.one("flexor_calls_total", "counter", "Calls of the session.", real(stats.calls));
    text.one("flexor_call_failures_total", "counter", "Calls that raised.", real(stats.failed_calls));
    text.family("flexor_cache_requests_total", "counter", "Look-ups of the guard ladder by rung and result.");
    for (const RungStats& rung : stats.rungs) {
        text.sample(real(rung.hits), label("rung", rung.name) + ",result=\"hit\"");
        text.sample(real(rung.misses), label("rung", rung.name) + ",result=\"miss\"");
    }
    text.family("flexor_cache_lookup_seconds", "gauge", "Mean cost of a look-up by rung, sampled.");
    for (const RungStats& rung : stats.rungs) text.sample(rung.mean_ns * 1e-9, label("rung", rung.name));
    text.one("flexor_cache_hit_ratio", "gauge", "Share of look-ups answered without a compilation.", stats.hit_rate);
    text.one("flexor_ops_compiled_total", "counter", "Op executions inside compiled regions.",
             real(stats.compiled_ops));
    text.one("flexor_ops_interpreted_total", "counter", "Op executions outside compiled regions.",
             real(stats.interpreted_ops));
    text.one("flexor_typed_calls_total", "counter", "Calls of the host that say before the run what they give.",
             real(stats.typed_calls));
    text.one("flexor_fallback_ratio", "gauge", "Share of op executions outside compiled regions.", stats.fallback_rate);
    text.one("flexor_fallback_alarm", "gauge", "1 while the fallback ratio is above 0.1.",
             stats.fallback_alarm ? 1 : 0);
    text.one("flexor_fallback_seconds_total", "counter", "Time spent on op executions outside compiled regions.",
             stats.fallback_seconds);
    std::vector<std::pair<std::string, double>> reasons;
    for (const FallbackRow& row : stats.fallbacks) {
        const std::string labels = label("op", row.op) + "," + label("reason", row.reason);
        const auto found =
            std::find_if(reasons.begin(), reasons.end(), [&](const auto& item) { return item.first == labels; });
        if (found != reasons.end())
            found->second += real(row.count);
        else
            reasons.emplace_back(labels, real(row.count));
    }
    text.family("flexor_fallbacks_total", "counter", "Op executions outside compiled regions by op and reason.");
    for (const auto& [labels, count] : reasons) text.sample(count, labels);
    text.one("flexor_compiles_total", "counter", "Regions compiled.", real(stats.compilations));
    text.one("flexor_compile_failures_total", "counter", "Regions that could not be compiled.",
             real(stats.failed_compilations));
    text.one("flexor_compile_seconds_total", "counter", "Time spent compiling.", stats.compile_seconds);
    text.one("flexor_compile_mean_seconds", "gauge", "Mean time of a compilation.", stats.mean_compile_seconds);
    text.one("flexor_entries", "gauge", "Entries registered: compiled regions that a call may find.",
             real(stats.entries.size()));
    text.one("flexor_region_exits_total", "counter", "Regions left for the interpreter.", real(stats.region_exits));
    text.one("flexor_evictions_total", "counter", "Entries dropped by a bound.", real(stats.evictions));
    text.family("flexor_kernel_launches_total", "counter", "Kernel launches.");
    text.sample(real(stats.kernel_launches - stats.device_launches), "device=\"cpu\"");
    text.sample(real(stats.device_launches), "device=\"cuda\"");
    text.one("flexor_library_launches_total", "counter", "Products on devices that cuBLASLt computed.",
             real(stats.library_launches));
    text.one("flexor_device_syncs_total", "counter", "Times that a run waited for its device.",
             real(stats.device_syncs));
    text.one("flexor_device_copied_bytes_total", "counter", "Bytes copied between host and device.",
             real(stats.device_copied_bytes));
    text.one("flexor_device_variants_total", "counter", "Variants of kernels asked of the compiler of devices.",
             real(stats.device_variants));
    text.one("flexor_device_stand_ins_total", "counter", "Launches by another variant than their own.",
             real(stats.device_stand_ins));
    text.one("flexor_device_compile_waits_total", "counter", "Launches that waited for the compiler of devices.",
             real(stats.device_compile_waits));
    text.one("flexor_device_compile_wait_seconds_total", "counter", "Time that launches waited for the compiler.",
             stats.device_compile_wait_seconds);
    text.one("flexor_graph_launches_total", "counter", "Launches of many kernels of a device as one.",
             real(stats.graph_launches));
    text.one("flexor_graph_misfits_total", "counter", "Calls that a graph of their sizes could not serve.",
             real(stats.graph_misfits));
    text.family("flexor_graphs_total", "counter", "Graphs of devices by what became of them.");
    text.sample(real(stats.graphs_built), "state=\"built\"");
    text.sample(real(stats.graphs_refused), "state=\"refused\"");
    text.sample(real(stats.graphs_evicted), "state=\"evicted\"");
    text.family("flexor_device_pool_bytes", "gauge", "Pool memory of devices by state.");
    text.sample(real(stats.device_pool.live_bytes), "state=\"live\"");
    text.sample(real(stats.device_pool.reserved_bytes), "state=\"reserved\"");
    text.one("flexor_kernels_compiled_total", "counter", "Kernels compiled.", real(stats.kernels_compiled));
    text.one("flexor_kernel_cache_hits_total", "counter", "Kernels taken from the kernel cache.",
             real(stats.kernel_cache_hits));
    text.one("flexor_code_bytes", "gauge", "Machine code made for the session.", real(stats.code_bytes));
    text.one("flexor_packed_weight_bytes", "gauge", "Weights in packed form.", real(stats.packed_weight_bytes));
    const PoolStats& pool = stats.pool;
    text.family("flexor_pool_bytes", "gauge", "Pool memory by state.");
    text.sample(real(pool.live_bytes), "state=\"live\"");
    text.sample(real(pool.reserved_bytes), "state=\"reserved\"");
    text.family("flexor_pool_peak_bytes", "gauge", "Highest pool memory by state.");
    text.sample(real(pool.peak_live_bytes), "state=\"live\"");
    text.sample(real(pool.peak_reserved_bytes), "state=\"reserved\"");
    text.family("flexor_pool_limit_bytes", "gauge", "Pool limits; 0 is none.");
    text.sample(real(pool.soft_limit), "limit=\"soft\"");
    text.sample(real(pool.hard_limit), "limit=\"hard\"");
    text.one("flexor_pool_growths_total", "counter", "Pool memory taken from the system.", real(pool.growth_events));
    text.one("flexor_pool_over_soft_total", "counter", "Growths beyond the soft limit.", real(pool.over_soft_events));
    text.one("flexor_pool_hard_limit_total", "counter", "Requests refused by the hard limit.",
             real(pool.hard_limit_events));
    text.one("flexor_pool_shrunk_bytes_total", "counter", "Idle memory given back beyond the soft limit.",
             real(pool.shrunk_bytes));
    text.one("flexor_pool_reuses_total", "counter", "Requests answered without the system.", real(pool.reuses));
    return text.take();
}

std::string to_text(const Stats& stats) {
    std::string out =
        "flexor session, " + seconds_text(stats.uptime_seconds) + ", " + std::to_string(stats.calls) + " calls";
    if (stats.failed_calls > 0) out += ", " + std::to_string(stats.failed_calls) + " failed";
    out += "\n\ncache hit rate   " + percent(stats.hit_rate) + "   (" + std::to_string(stats.lookups) + " look-ups)\n";
    for (const RungStats& rung : stats.rungs) {
        if (rung.hits + rung.misses == 0) continue;
        out += "  " + padded(rung.name, 9) + padded(std::to_string(rung.hits), 9, true) + " hits " +
               padded(std::to_string(rung.misses), 9, true) + " misses";
        if (rung.samples > 0) out += "   " + number(rung.mean_ns, 0) + " ns each";
        out += "\n";
    }
    out += "fallback rate    " + percent(stats.fallback_rate) + "   (" + std::to_string(stats.interpreted_ops) +
           " of " + std::to_string(stats.interpreted_ops + stats.compiled_ops) + " op executions, " +
           seconds_text(stats.fallback_seconds) + ")" + (stats.fallback_alarm ? "   ALARM: above 10 %" : "") + "\n";
    std::size_t shown = 0;
    for (const FallbackRow& row : stats.fallbacks) {
        if (++shown > 10) {
            out += "  ... " + std::to_string(stats.fallbacks.size() - 10) + " more\n";
            break;
        }
        out += "  " + padded(row.op, 20) + " " + padded(row.reason, 16) + " " +
               padded(row.function + ":" + std::to_string(row.line), 16) + padded(std::to_string(row.count), 9, true) +
               "   " + seconds_text(row.seconds) + "\n";
    }
    if (stats.typed_calls > 0) out += "typed calls      " + std::to_string(stats.typed_calls) + "\n";
    out += "compilations     " + std::to_string(stats.compilations) + " in " + seconds_text(stats.compile_seconds) +
           ", mean " + seconds_text(stats.mean_compile_seconds);
    if (stats.failed_compilations > 0) out += ", " + std::to_string(stats.failed_compilations) + " refused";
    out += "\n";
    shown = 0;
    for (const EntryStats& entry : stats.entries) {
        if (++shown > 10) {
            out += "  ... " + std::to_string(stats.entries.size() - 10) + " more\n";
            break;
        }
        out += "  " + padded(entry.function + "@" + std::to_string(entry.pc), 16) +
               padded(std::to_string(entry.hits), 9, true) + " hits   " + seconds_text(entry.compile_seconds) + "   " +
               std::to_string(entry.kernels) + " kernels, " + std::to_string(entry.ops) + " ops   guards " +
               entry.guards + "\n";
    }
    out += "kernels          " + std::to_string(stats.kernel_launches) + " launches, " +
           std::to_string(stats.kernels_compiled) + " compiled, " + std::to_string(stats.kernel_cache_hits) +
           " from the cache, " + support::text_from_bytes(stats.code_bytes) + " of code\n";
    const PoolStats& pool = stats.pool;
    out += "pool             " + support::text_from_bytes(pool.live_bytes) + " live, " +
           support::text_from_bytes(pool.reserved_bytes) + " reserved, peak " +
           support::text_from_bytes(pool.peak_reserved_bytes) + ", " + std::to_string(pool.growth_events) +
           " growths, " + std::to_string(pool.reuses) + " reuses";
    if (pool.soft_limit != 0) out += ", soft limit " + support::text_from_bytes(pool.soft_limit);
    if (pool.hard_limit != 0) out += ", hard limit " + support::text_from_bytes(pool.hard_limit);
    if (pool.over_soft_events > 0) {
        out += ", " + std::to_string(pool.over_soft_events) + " times over the soft limit, " +
               support::text_from_bytes(pool.shrunk_bytes) + " given back";
    }
    if (pool.hard_limit_events > 0)
        out += ", " + std::to_string(pool.hard_limit_events) + " requests refused by the hard limit";
    out += "\n";
    if (stats.device_launches > 0) {
        out += "device           " + std::to_string(stats.device_launches) + " launches, " +
               (stats.library_launches > 0 ? std::to_string(stats.library_launches) + " of cuBLASLt, " : "") +
               std::to_string(stats.device_syncs) + " waits, " + support::text_from_bytes(stats.device_copied_bytes) +
               " copied, " + support::text_from_bytes(stats.device_pool.live_bytes) + " live, " +
               support::text_from_bytes(stats.device_pool.reserved_bytes) + " reserved\n";
        out += "device variants  " + std::to_string(stats.device_variants) + " compiled, " +
               std::to_string(stats.device_stand_ins) + " launches by stand-ins, " +
               std::to_string(stats.device_compile_waits) + " waited, " +
               seconds_text(stats.device_compile_wait_seconds) + " in all\n";
    }
    if (stats.graphs_built + stats.graphs_refused > 0) {
        out += "graphs           " + std::to_string(stats.graph_launches) + " launches, " +
               std::to_string(stats.graphs_built) + " built, " + std::to_string(stats.graphs_refused) + " refused, " +
               std::to_string(stats.graphs_evicted) + " evicted, " + std::to_string(stats.graph_misfits) + " misfits\n";
    }
    if (stats.packed_weight_bytes > 0)
        out += "packed weights   " + support::text_from_bytes(stats.packed_weight_bytes) + "\n";
    return out;
}

}  // namespace flexor
