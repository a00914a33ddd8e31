#pragma once
// One function per command. Each writes its result to standard output; a refusal comes back as a diagnostic, which
// main.cpp prints and turns into the exit code.
#include "flexor/error.h"
#include "options.h"

namespace flexor::cli {

Status asm_command(const Options& options);
Status dis_command(const Options& options);
Status verify_command(const Options& options);
Status run_command(const Options& options);
Status explain_command(const Options& options);
Status stats_command(const Options& options);
Status bench_command(const Options& options);
Status ops_command(const Options& options);

}  // namespace flexor::cli
