// run, explain, stats: programs at work.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "faults.h"
#include "outputs.h"
#include "print.h"
#include "program.h"

namespace flexor::cli {

Outcome run_command(const Options& options) {
    CLI_ASSIGN(const Program program, load_program(options, false));
    Session session(session_options(options));
    const InterruptScope scope(session);
    std::vector<Value> results;
    for (std::int64_t i = 0; i < options.repeat; ++i) CLI_TRY(call_once(session, program, results));

    const std::vector<std::string> names = result_names(program.module, options.function, results.size());
    const bool to_file = !options.output.empty() && options.output != "-";
    if (to_file) CLI_TRY(write_outputs(options.output, names, results));
    std::string text;
    JsonWriter json;
    json.begin_object().key("function").string(options.function).key("calls").integer(options.repeat);
    if (to_file) json.key("output").string(options.output);
    json.key("results").begin_array();
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (!to_file && !options.json) text += value_text(names[i], results[i]);
        if (options.json) write_value(json, names[i], results[i]);
    }
    json.end_array().end_object();
    emit(options, text, json);
    return Exit::kDone;
}

Outcome explain_command(const Options& options) {
    CLI_ASSIGN(const Program program, load_program(options, true));
    Session session(session_options(options));
    const InterruptScope scope(session);
    CLI_ASSIGN(const Explanation told,
               session.explain(program.module, program.arguments,
                               ExplainOptions{.function = options.function, .profile = options.profile}));
    JsonWriter json;
    json.begin_object().key("arguments").begin_array();
    for (const Value& argument : program.arguments) json.string(argument.describe());
    json.end_array().key("text").string(told.text).key("stats").raw(to_json(session.stats()));
    if (told.refusal) write_diagnostic(json.key("error"), *told.refusal);
    json.end_object();
    emit(options, told.text, json);
    if (!told.refusal) return Exit::kDone;
    print_diagnostic(*told.refusal);
    return exit_of(*told.refusal);
}

Outcome stats_command(const Options& options) {
    CLI_ASSIGN(const Program program, load_program(options, true));
    Session session(session_options(options));
    const InterruptScope scope(session);
    std::vector<Value> results;
    for (std::int64_t i = 0; i < options.repeat; ++i) CLI_TRY(call_once(session, program, results));

    JsonWriter json;
    std::string text;
    if (options.events) {
        // One object a line already is the machine's form.
        for (const Event& event : session.events()) text += to_json_line(event) + "\n";
        json.raw(text);
    } else {
        const Stats stats = session.stats();
        text = options.prometheus ? to_prometheus(stats) : to_text(stats);
        json.raw(to_json(stats));
    }
    emit(options, text, json);
    return Exit::kDone;
}

}  // namespace flexor::cli
