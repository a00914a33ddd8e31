// The flexor program: the command line, and what becomes of a refusal.
//
// Exit codes: 0 done; 1 refused; 2 a command line that cannot be read; 3 a bug of ours. What went wrong is told on
// standard error, and with --json as an object on standard output too.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "faults.h"
#include "program.h"

namespace flexor::cli {
namespace {

using Command = Outcome (*)(const Options&);

// Also for a command line that is not read to its end.
bool wants_json(int argc, char** argv) {
    return std::any_of(argv + std::min(argc, 1), argv + argc,
                       [](const char* word) { return std::string_view(word) == "--json"; });
}

int refuse(const Diagnostic& diagnostic, bool json) {
    if (json) std::fprintf(stdout, "%s\n", diagnostic_json(diagnostic).c_str());
    print_diagnostic(diagnostic);
    return static_cast<int>(exit_of(diagnostic));
}

class CommandLine {
public:
    CommandLine()
        : app_("Runs tensor programs of undecided shape: stack bytecode, compiled per family of shapes.", "flexor") {
        app_.require_subcommand(1);
        app_.set_version_flag("--version", FLEXOR_VERSION);
        app_.footer("Exit codes: 0 done, 1 refused with a diagnostic, 2 wrong usage, 3 a bug of flexor.");

        CLI::App* assemble = add("asm", "Assembles a program into the binary form", asm_command);
        add_file(assemble);
        assemble->add_option("-o,--output", options_.output, "The file to write (default: FILE with the suffix .flx)");

        CLI::App* disassemble = add("dis", "Prints a program as text", dis_command);
        add_file(disassemble);
        disassemble->add_flag("--pcs", options_.pcs, "A number before each instruction");
        disassemble->add_flag("!--no-positions", options_.positions, "No source positions");
        disassemble->add_option("--weight-bytes", options_.weight_bytes, "Larger weights are left out")
            ->transform(CLI::AsSizeValue(false))
            ->capture_default_str();

        add_file(add("verify", "Checks a program and prints what it takes and returns", verify_command));

        CLI::App* run = add("run", "Runs a program and prints or writes its results", run_command);
        add_inputs(run);
        run->add_option("-o,--output", options_.output,
                        "OUT.npz, OUT.npy, OUT.safetensors or a directory; - prints (default)");
        add_repeat(run, "1");

        CLI::App* explain = add("explain", "Runs a program once and tells what was compiled, and why", explain_command);
        add_inputs(explain);
        explain->add_flag("--profile", options_.profile, "Times every kernel");

        CLI::App* stats = add("stats", "Runs a program and prints the dashboard", stats_command);
        add_inputs(stats);
        add_repeat(stats, "10");
        CLI::Option* prometheus = stats->add_flag("--prometheus", options_.prometheus, "Prometheus text");
        stats->add_flag("--events", options_.events, "The events, one JSON object a line")->excludes(prometheus);

        CLI::App* bench = add("bench", "Times single calls of a program", bench_command);
        add_inputs(bench);
        add_repeat(bench, "100");

        CLI::App* ops = add("ops", "Lists the registry of ops, or describes one", ops_command);
        ops->add_option("NAME", options_.file, "The op to describe");

        add("doctor", "Tells what runs on devices find on this machine, and what is missing", doctor_command);
    }

    int run(int argc, char** argv) {
        if (argc > 1 && argv[1][0] != '-') {
            std::string known;
            bool found = false;
            for (const CLI::App* sub : app_.get_subcommands({})) {
                known += " " + sub->get_name();
                found = found || sub->get_name() == argv[1];
            }
            if (!found) {
                const std::string text =
                    "there is no command '" + std::string(argv[1]) + "'; the commands are:" + known;
                std::fprintf(stderr, "flexor: %s\n", text.c_str());
                return wrong_usage(argc, argv, text);
            }
        }
        try {
            app_.parse(words(argc, argv));
        } catch (const CLI::ParseError& error) {
            return app_.exit(error) == 0 ? 0 : wrong_usage(argc, argv, error.what());
        }
        for (std::string& input : options_.inputs) {
            if (input.starts_with(" ")) input.erase(0, 1);
        }
        const Outcome outcome = command_(options_);
        if (!outcome) return refuse(outcome.error(), options_.json);
        if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return static_cast<int>(*outcome);
        std::fputs("flexor: standard output cannot be written\n", stderr);
        return static_cast<int>(Exit::kRefused);
    }

private:
    // The text is on standard error already.
    static int wrong_usage(int argc, char** argv, const std::string& text) {
        if (wants_json(argc, argv)) {
            std::fprintf(stdout, "%s\n", diagnostic_json(fault(Fault::kBadOption).found(text)).c_str());
        }
        return static_cast<int>(Exit::kUsage);
    }

    // CLI11 takes a list in brackets apart and a negative number for an option. Both are values here, which a space
    // before them hides from it.
    static std::vector<std::string> words(int argc, char** argv) {
        std::vector<std::string> out(argv + 1, argv + argc);
        for (std::string& word : out) {
            const bool negative =
                word.size() > 1 && word[0] == '-' && (word[1] == '.' || (word[1] >= '0' && word[1] <= '9'));
            if (word.starts_with("[") || negative) word.insert(0, " ");
        }
        std::ranges::reverse(out);  // as CLI11 wants them
        return out;
    }

    CLI::App* add(const char* name, const char* summary, Command command) {
        CLI::App* sub = app_.add_subcommand(name, summary);
        sub->add_flag("--json", options_.json, "The result as JSON");
        sub->callback([this, command] { command_ = command; });
        return sub;
    }

    void add_file(CLI::App* sub) { sub->add_option("FILE", options_.file, "A .fasm or .flx program")->required(); }

    void add_inputs(CLI::App* sub) {
        add_file(sub);
        const char* what =
            sub->get_name() == "run"
                ? "[NAME=]VALUE: .npy, .npz[:KEY], .safetensors[:KEY], 3, 1.5, true, none, [[1, 2]], f32[8,128]"
                : "As for run; without any, sizes come from the declared ranges";
        sub->add_option("INPUT", options_.inputs, what);
        sub->add_option("--function", options_.function, "The function to run")->capture_default_str();
        sub->add_flag("--exact-only", options_.exact_only, "No symbols: one compilation per exact shape");
        sub->add_flag("--interpret", options_.interpret, "The interpreter only");
        sub->add_option("--threads", options_.threads, "Threads (0: as many as the machine has)")
            ->check(CLI::Range(0, 4096));
        sub->add_option("--soft-limit", options_.soft_limit, "Memory that is kept for reuse, as 256MB; 0: none")
            ->transform(CLI::AsSizeValue(false));
        sub->add_option("--hard-limit", options_.hard_limit, "Memory that is never exceeded; 0: none")
            ->transform(CLI::AsSizeValue(false));
    }

    void add_repeat(CLI::App* sub, const std::string& standard) {
        sub->add_option("--repeat", options_.repeat, "Number of calls")
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
            ->default_str(standard);
        sub->preparse_callback([this, standard](std::size_t) { options_.repeat = std::stoll(standard); });
    }

    CLI::App app_;
    Options options_;
    Command command_ = nullptr;
};

}  // namespace
}  // namespace flexor::cli

int main(int argc, char** argv) {
    using namespace flexor::cli;
    try {
        return CommandLine().run(argc, argv);
    } catch (const std::bad_alloc&) {
        return refuse(fault(Fault::kOutOfMemory), wants_json(argc, argv));
    } catch (const std::exception& error) {
        return refuse(fault(Fault::kInternalError).found(error.what()), wants_json(argc, argv));
    }
}
