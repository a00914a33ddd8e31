// The flexor program: the command line, and what becomes of a refusal.
//
// Exit codes: 0 done; 1 refused (the diagnostic goes to standard error, with --json also to standard output); 2 a
// command line that cannot be read; 3 a bug of ours.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "commands.h"
#include "program.h"

namespace flexor::cli {
namespace {

using Command = Status (*)(const Options&);

constexpr int kRefused = 1, kUsage = 2, kBug = 3;

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
                std::fprintf(stderr, "flexor: there is no command '%s'; the commands are:%s\n", argv[1], known.c_str());
                return kUsage;
            }
        }
        try {
            app_.parse(words(argc, argv));
        } catch (const CLI::ParseError& error) {
            return app_.exit(error) == 0 ? 0 : kUsage;
        }
        for (std::string& input : options_.inputs) {
            if (input.starts_with(" ")) input.erase(0, 1);
        }
        const Status status = command_(options_);
        if (status && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
        if (status) {
            std::fputs("flexor: standard output cannot be written\n", stderr);
            return kRefused;
        }
        const Diagnostic& diagnostic = status.error();
        if (options_.json) std::fprintf(stdout, "%s\n", diagnostic_json(diagnostic).c_str());
        std::fprintf(stderr, "%s\n", valid_utf8(diagnostic.to_string()).c_str());
        return diagnostic.kind() == DiagnosticKind::kBug ? kBug : kRefused;
    }

private:
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
    try {
        return flexor::cli::CommandLine().run(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fputs("E0602 the system gives no more memory\n", stderr);
        return flexor::cli::kRefused;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "E0901 a law of the program does not hold; please report this: %s\n", error.what());
        return flexor::cli::kBug;
    }
}
