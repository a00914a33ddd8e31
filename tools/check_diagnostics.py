#!/usr/bin/env python3
"""Every row of src/support/diagnostics.def is raised somewhere and named by a test; numbers and names are unique and in
order. A test names a diagnostic by its number (E0301) or its name (kShapeMismatch, "ShapeMismatch"). Prints each
offence, exits 1."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'^FLEXOR_DIAGNOSTIC\((\d+), (\w+),\s*"((?:[^"\\]|\\.)+)"\)', re.MULTILINE)


def rows() -> list[tuple[int, str, str]]:
    text = (ROOT / "src" / "support" / "diagnostics.def").read_text()
    found = [(int(number), name, sentence) for number, name, sentence in ROW.findall(text)]
    if len(found) != text.count("\nFLEXOR_DIAGNOSTIC("):
        sys.exit("diagnostics.def: a row does not have the form FLEXOR_DIAGNOSTIC(number, name, \"sentence\")")
    return found


def text_of(*folders: str) -> str:
    parts = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (".cpp", ".h", ".py", ".fasm", ".def", ".txt", ".inc"):
                # The catalogue's own test names rows without raising them.
                if path.name != "diagnostics.def" and path.parent != ROOT / "tests" / "unit" / "support":
                    parts.append(path.read_text(errors="replace"))
    return "\n".join(parts)


def main() -> int:
    offences = []
    table = rows()
    numbers = [number for number, _, _ in table]
    if numbers != sorted(set(numbers)):
        offences.append("diagnostics.def: numbers are not unique and rising")
    names = [name for _, name, _ in table]
    offences += [f"diagnostics.def: the name {name} stands twice" for name in sorted(set(names)) if names.count(name) > 1]
    source = text_of("src", "cli", "python/src")
    raised = set(re.findall(r"\bk[A-Z]\w+", source)) | set(re.findall(r'"(E\d{4}) ', source))
    raised |= {f"E{int(number):04d}" for number in re.findall(r"\bDiagnosticId\{(\d+)\}", source)}
    tests = text_of("tests")
    tested = set(re.findall(r"\bE\d{4}\b", tests)) | set(re.findall(r"\bk[A-Z]\w+|\"[A-Z]\w+\"", tests))
    for number, name, _ in table:
        code = f"E{number:04d}"
        if not {code, f"k{name}"} & raised:
            offences.append(f"{code} {name}: nobody raises it")
        if not {code, f"k{name}", f'"{name}"'} & tested:
            offences.append(f"{code} {name}: no test names it")
    for text in offences:
        print(text)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
