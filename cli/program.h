#pragma once
// What every command that runs a program shares: the loaded Module, its function, its arguments and a Session that
// Ctrl-C stops.
#include <string>
#include <vector>

#include "commands.h"
#include "flexor/session.h"
#include "json_writer.h"
#include "options.h"

namespace flexor::cli {

struct Program {
    Module module;
    std::int32_t function;
    std::vector<Value> arguments;
};

// `examples`: a command line without inputs gets arguments with sizes from the declared ranges.
Expected<Program> load_program(const Options& options, bool examples);

SessionOptions session_options(const Options& options);

// While it lives, the first Ctrl-C stops the Session's runs with Interrupted and the second ends the process.
class InterruptScope {
public:
    explicit InterruptScope(Session& session);
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;
};

// One call; an interrupt that came between two calls counts too.
Status call_once(Session& session, const Program& program, std::vector<Value>& results);

// Prints `text`, or with --json the object, and a line end if there is none.
void emit(const Options& options, const std::string& text, const JsonWriter& json);

void write_diagnostic(JsonWriter& json, const Diagnostic& diagnostic);  // its parts as one object
std::string diagnostic_json(const Diagnostic& diagnostic);              // {"error": {...}}
void print_diagnostic(const Diagnostic& diagnostic);                    // to standard error
Exit exit_of(const Diagnostic& diagnostic);

}  // namespace flexor::cli
