#!/usr/bin/env python3
"""CPU seconds that each file costs to compile: tools/compile_cost.py BUILD [FILTER...]

BUILD was configured with FLEXOR_BATCH=1. Runs the commands of its compile_commands.json one after the other without ccache,
objects thrown away, and prints the dearest twenty and the sum. CPU time, so that a busy machine hardly changes it; the budget is 5 s a file.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

BUDGET = 5.0


def cost(command: list[str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    build, filters = Path(sys.argv[1]), sys.argv[2:]
    costs = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name = os.path.relpath(entry["file"], Path.cwd())
        if filters and not any(text in name for text in filters):
            continue
        command = shlex.split(entry["command"])
        if Path(command[0]).name == "ccache":
            command = command[1:]
        command[command.index("-o") + 1] = "/dev/null"
        for flag in ("-MD", "-MMD"):
            if flag in command:
                command.remove(flag)
        for flag in ("-MF", "-MT"):
            if flag in command:
                at = command.index(flag)
                del command[at : at + 2]
        costs.append((cost(command, entry["directory"]), name))
    costs.sort(reverse=True)
    for seconds, name in costs[:20]:
        print(f"{seconds:6.1f} s {'!' if seconds > BUDGET else ' '} {name}")
    over = sum(seconds > BUDGET for seconds, _ in costs)
    print(f"{sum(seconds for seconds, _ in costs):6.1f} s   {len(costs)} files, {over} over {BUDGET:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
