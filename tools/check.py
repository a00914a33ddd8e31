#!/usr/bin/env python3
"""Every static check of the project, one line each. Run it by ./dev check; names as arguments select checks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import generate

ROOT = Path(__file__).resolve().parent.parent
LINE_LIMIT = 1000
LINES_SHOWN = 15
# Files that may be longer: tables and vendored headers.
LONG_FILES = {"third_party/dlpack/dlpack.h"}


def tracked(*suffixes: str) -> list[str]:
    # Untracked files count too, so that a new file fails before it is committed.
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sorted({name for name in listing.stdout.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()})


def run(*command: str, env: dict[str, str] | None = None) -> str:
    """Output of a command that failed, or an empty text."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **(env or {})})
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"


def check_format() -> str:
    tool = shutil.which("clang-format-19")
    if tool is None:
        return "clang-format-19 is missing"
    files = [name for name in tracked(".cpp", ".h") if name not in LONG_FILES]
    return run(tool, "--dry-run", "--Werror", *files)


def check_layers() -> str:
    return run(sys.executable, "tools/check_layers.py")


def check_names() -> str:
    return run(sys.executable, "tools/check_names.py")


def check_diagnostics() -> str:
    return run(sys.executable, "tools/check_diagnostics.py")


def check_generated() -> str:
    return run(sys.executable, "tools/generate.py", "--check")


def check_length() -> str:
    long = []
    for name in tracked(".cpp", ".h", ".py", ".cmake", ".inc"):
        lines = (ROOT / name).read_text(errors="replace").count("\n")
        if lines > LINE_LIMIT and name not in LONG_FILES:
            long.append(f"{name}: {lines} lines; split it, or name it in tools/check.py if it is a table")
    return "\n".join(long)


def check_docs() -> str:
    with tempfile.TemporaryDirectory() as site:
        return run(sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site,
                   env={"NO_MKDOCS_2_WARNING": "1"})


def check_types() -> str:
    if not any((ROOT / "python/flexor").glob("*.py")):
        return ""
    return run(sys.executable, "-m", "mypy")


def check_environment() -> str:
    read = set()
    for name in tracked(".cpp", ".h", ".py"):
        if name.startswith(("src/", "include/", "cli/", "python/")):
            read |= set(re.findall(r'"((?:FLEXOR|NVTX)_[A-Z0-9_]+)"', (ROOT / name).read_text()))
    rows = {name for name, _, _ in generate.environment_rows()}
    text = [f"{name} is read, but src/support/environment.def has no row for it" for name in sorted(read - rows)]
    text += [f"{name} has a row in src/support/environment.def, but nobody reads it" for name in sorted(rows - read)]
    return "\n".join(text)


def check_quiet() -> str:
    """The library writes to no standard stream, except where it is about to abort or was asked to dump."""
    noise = re.compile(r"std::c(out|err|log)\b|\b(printf|puts|putchar|perror)\s*\(|\bstd(out|err)\b")
    loud = []
    for name in tracked(".cpp", ".h"):
        if name.startswith(("src/", "include/", "python/src/")) and name != "src/support/check.cpp":
            for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
                if noise.search(line.split("//")[0]) and "FLEXOR_DUMP_IR" not in line:
                    loud.append(f"{name}:{number}: {line.strip()}")
    return "\n".join(loud)


def check_links() -> str:
    """Relative links of Markdown files outside docs/ (mkdocs checks those inside) lead to files."""
    broken = []
    for name in tracked(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / name).read_text()):
            if "://" not in target and not ((ROOT / name).parent / target).exists():
                broken.append(f"{name}: the link to {target} leads nowhere")
    return "\n".join(broken)


CHECKS: dict[str, tuple[str, Callable[[], str]]] = {
    "format": ("C++ is formatted by clang-format-19", check_format),
    "layers": ("includes obey tools/layers.txt", check_layers),
    "names": ("what sources keep to themselves has a name of its own in the folder", check_names),
    "diagnostics": ("every diagnostic is raised and tested", check_diagnostics),
    "generated": ("generated pages are current", check_generated),
    "length": (f"no file is longer than {LINE_LIMIT} lines", check_length),
    "environment": ("every variable that is read has a row, and every row a reader", check_environment),
    "quiet": ("the library writes to no standard stream", check_quiet),
    "links": ("links in Markdown lead somewhere", check_links),
    "docs": ("the docs site builds without a warning", check_docs),
    "types": ("mypy accepts the package and its stubs", check_types),
}


def main() -> int:
    names = sys.argv[1:] or list(CHECKS)
    failed = 0
    for name in names:
        if name not in CHECKS:
            print(f"no check '{name}'; there are: {' '.join(CHECKS)}")
            return 2
        sentence, check = CHECKS[name]
        start = time.monotonic()
        offences = check()
        print(f"{'FAILED' if offences else 'ok':6} {name:12} {sentence} ({time.monotonic() - start:.1f} s)")
        if offences:
            failed += 1
            lines = offences.splitlines()
            shown = lines if len(sys.argv) > 1 else lines[:LINES_SHOWN]
            print("\n".join("       " + line for line in shown))
            if len(shown) < len(lines):
                print(f"       and {len(lines) - len(shown)} lines more: ./dev check {name}")
    print(f"check: {len(names) - failed} of {len(names)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
