#!/usr/bin/env python3
"""Every row of src/support/diagnostics.def is raised somewhere and named by a test; numbers and names are unique and in
order. Code and tests name a diagnostic by its id (DiagnosticId::kShapeMismatch) or its number (E0301); the binding and the
program `flexor`, which see public headers only, by the id that they make of a number (DiagnosticId{510}, Fault::kBadOption).
Prints each offence, exits 1."""

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


def named_in(text: str) -> set[str]:
    """Names and numbers of the diagnostics that a text speaks of."""
    numbers = {f"E{int(number):04d}" for number in re.findall(r"\bDiagnosticId\{(\d+)\}", text)}
    return numbers | set(re.findall(r"\bE\d{4}\b", text)) | set(re.findall(r"\b(?:DiagnosticId|Fault)::k(\w+)", text))


def main() -> int:
    offences = []
    table = rows()
    numbers = [number for number, _, _ in table]
    if numbers != sorted(set(numbers)):
        offences.append("diagnostics.def: numbers are not unique and rising")
    names = [name for _, name, _ in table]
    offences += [f"diagnostics.def: the name {name} stands twice" for name in sorted(set(names)) if names.count(name) > 1]
    raised = named_in(text_of("src", "cli", "python"))
    tested = named_in(text_of("tests"))
    for number, name, _ in table:
        code = f"E{number:04d}"
        if not {code, name} & raised:
            offences.append(f"{code} {name}: nobody raises it")
        if not {code, name} & tested:
            offences.append(f"{code} {name}: no test names it")
    for text in offences:
        print(text)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
