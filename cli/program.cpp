#include "program.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

#include "faults.h"
#include "inputs.h"

namespace flexor::cli {
namespace {

std::atomic<Session*> active_session{nullptr};
std::atomic<bool> interrupted{false};

void on_interrupt(int) {
    std::signal(SIGINT, SIG_DFL);
    interrupted.store(true);
    if (Session* session = active_session.load()) session->interrupt();
}

std::string_view kind_text(DiagnosticKind kind) {
    switch (kind) {
        case DiagnosticKind::kUserError: return "user error";
        case DiagnosticKind::kLimit: return "limit";
        case DiagnosticKind::kNotSupported: return "not supported";
        case DiagnosticKind::kBug: return "bug";
    }
    return "bug";
}

Expected<std::int32_t> find_function(const Module& module, const std::string& name) {
    const std::int32_t index = Session::function_index(module, name);
    if (index >= 0) return index;
    std::string known;
    for (const FunctionInfo& function : module.functions()) known += (known.empty() ? "" : ", ") + function.name;
    return fault(Fault::kUnknownName).operand("--function").found(name).expected("a function: " + known);
}

}  // namespace

Expected<Program> load_program(const Options& options, bool examples) {
    CLI_ASSIGN(Module module, Module::load(options.file));
    CLI_ASSIGN(const std::int32_t function, find_function(module, options.function));
    CLI_ASSIGN(std::vector<Value> arguments, options.inputs.empty() && examples
                                                 ? Session::example_arguments(module, options.function)
                                                 : read_inputs(module, options.function, options.inputs));
    return Program{std::move(module), function, std::move(arguments)};
}

SessionOptions session_options(const Options& options) {
    SessionOptions out;
    out.compile = !options.interpret;
    out.exact_only = options.exact_only;
    out.threads = options.threads;
    out.soft_limit = options.soft_limit;
    out.hard_limit = options.hard_limit;
    return out;
}

InterruptScope::InterruptScope(Session& session) {
    active_session.store(&session);
    std::signal(SIGINT, on_interrupt);
}

InterruptScope::~InterruptScope() {
    std::signal(SIGINT, SIG_DFL);
    active_session.store(nullptr);
}

Status call_once(Session& session, const Program& program, std::vector<Value>& results) {
    if (interrupted.load(std::memory_order_relaxed)) return fault(Fault::kInterrupted);
    return session.run_into(program.module, program.function, program.arguments, results);
}

void emit(const Options& options, const std::string& text, const JsonWriter& json) {
    const std::string& out = options.json ? json.text() : text;
    std::fwrite(out.data(), 1, out.size(), stdout);
    if (!out.ends_with("\n") && !out.empty()) std::fputc('\n', stdout);
}

void write_diagnostic(JsonWriter& json, const Diagnostic& diagnostic) {
    json.begin_object().key("id").string(diagnostic.code()).key("name").string(diagnostic.name());
    json.key("kind").string(kind_text(diagnostic.kind())).key("sentence").string(diagnostic.sentence());
    const Where& where = diagnostic.where();
    const std::pair<const char*, const std::string*> texts[] = {{"source", &where.source},
                                                                {"function", &where.function},
                                                                {"op", &where.op},
                                                                {"operand", &where.operand},
                                                                {"constraint", &where.constraint},
                                                                {"found", &diagnostic.found()},
                                                                {"expected", &diagnostic.expected()},
                                                                {"hint", &diagnostic.hint()}};
    for (const auto& [key, text] : texts) {
        if (!text->empty()) json.key(key).string(*text);
    }
    if (where.pc >= 0) json.key("pc").integer(where.pc);
    if (!diagnostic.causes().empty()) {
        json.key("causes").begin_array();
        for (const Diagnostic& cause : diagnostic.causes()) write_diagnostic(json, cause);
        json.end_array();
    }
    json.end_object();
}

std::string diagnostic_json(const Diagnostic& diagnostic) {
    JsonWriter json;
    json.begin_object().key("error");
    write_diagnostic(json, diagnostic);
    json.end_object();
    return json.text();
}

void print_diagnostic(const Diagnostic& diagnostic) {
    std::fprintf(stderr, "%s\n", valid_utf8(diagnostic.to_string()).c_str());
}

Exit exit_of(const Diagnostic& diagnostic) {
    return diagnostic.kind() == DiagnosticKind::kBug ? Exit::kBug : Exit::kRefused;
}

}  // namespace flexor::cli
