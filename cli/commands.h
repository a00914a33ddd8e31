#pragma once
// One function per command. Each writes its result to standard output; a refusal comes back as a diagnostic, which
// main.cpp prints and turns into the exit code. A command whose result tells a refusal gives the exit code itself.
#include "flexor/error.h"
#include "options.h"

namespace flexor::cli {

enum class Exit { kDone = 0, kRefused = 1, kUsage = 2, kBug = 3 };
using Outcome = Expected<Exit>;

Outcome asm_command(const Options& options);
Outcome dis_command(const Options& options);
Outcome verify_command(const Options& options);
Outcome run_command(const Options& options);
Outcome explain_command(const Options& options);
Outcome stats_command(const Options& options);
Outcome bench_command(const Options& options);
Outcome ops_command(const Options& options);
Outcome doctor_command(const Options& options);

}  // namespace flexor::cli
