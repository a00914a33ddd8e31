#!/usr/bin/env python3
"""Enforces tools/layers.txt over every #include of src/, include/, cli/ and python/src/. Prints each offence, exits 1."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')


class Folder(NamedTuple):
    kind: str
    level: int | None
    allowed: list[str]


class Layers(NamedTuple):
    folders: dict[str, Folder]
    homes: dict[str, list[str]]
    few: dict[str, int]


def read_layers(path: Path) -> Layers:
    layers = Layers({}, {}, {})
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        head, colon, tail = line.partition(":")
        words = head.split()
        if not colon:
            sys.exit(f"{path}:{number}: no ':' in the row")
        if words[0] == "home":
            layers.homes[words[1]] = tail.split()
        elif words[0] == "few":
            layers.few[words[1]] = int(tail)
        elif len(words) == 3 and words[1] in ("noun", "verb"):
            level = int(words[2]) if words[1] == "noun" else None
            layers.folders[words[0]] = Folder(words[1], level, tail.split())
        else:
            sys.exit(f"{path}:{number}: cannot read '{line}'")
    return layers


def check_rows(layers: Layers) -> list[str]:
    """The table itself obeys L1 and L2."""
    offences = []
    for name, folder in layers.folders.items():
        for other in folder.allowed:
            if other not in layers.folders:
                offences.append(f"tools/layers.txt: {name} names {other}, which has no row")
                continue
            target = layers.folders[other]
            if folder.kind == "noun" and (target.level is None or folder.level is None or target.level >= folder.level):
                offences.append(f"tools/layers.txt: L1: noun {name} may not include {other}, which is not below it")
            if folder.kind == "verb" and target.kind == "verb" and name != "driver":
                offences.append(f"tools/layers.txt: L2: verb {name} may not include verb {other}")
    for path in sorted((ROOT / "src").iterdir()):
        if path.is_dir() and path.name not in layers.folders:
            offences.append(f"src/{path.name}: has no row in tools/layers.txt")
    return offences


def sources(*folders: str) -> list[Path]:
    found = []
    for folder in folders:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp", ".def", ".inc")]
    return sorted(found)


def offence(layers: Layers, place: str, header: str, quoted: bool) -> str | None:
    """Why `place` (a path below the root) may not include `header`, or None."""
    for pattern, homes in layers.homes.items():
        if header.startswith(pattern) and not any(home_matches(place, home) for home in homes):
            return f"L5: <{pattern}> has its home in {' '.join(homes) or 'no folder'}"
    first = header.split("/")[0]
    if first == "flexor" or first not in layers.folders or not quoted:
        if quoted and first not in layers.folders and first != "flexor" and place.startswith("src/"):
            return None if (ROOT / place).parent.joinpath(header).exists() else "L6: include from src/: \"folder/file.h\""
        return None
    if place.startswith("include/"):
        return "L3: a public header includes public headers only"
    if place.startswith(("cli/", "python/")):
        return "L4: includes public headers only"
    own = place.split("/")[1]
    if first != own and first not in layers.folders[own].allowed:
        return f"{own} may not include {first}"
    return None


def home_matches(place: str, home: str) -> bool:
    return place.startswith((f"src/{home}/", f"{home}/"))


def main() -> int:
    layers = read_layers(ROOT / "tools" / "layers.txt")
    offences = check_rows(layers)
    counts: dict[str, list[str]] = {pattern: [] for pattern in layers.few}
    for path in sources("src", "include", "cli", "python/src"):
        place = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, header = match.group(1) == '"', match.group(2)
            reason = offence(layers, place, header, quoted)
            if reason:
                offences.append(f"{place}:{number}: includes {header}: {reason}")
            for pattern in layers.few:
                if header.startswith(pattern) and place not in counts[pattern]:
                    counts[pattern].append(place)
    for pattern, places in counts.items():
        if len(places) > layers.few[pattern]:
            offences.append(f"<{pattern}> may be included by {layers.few[pattern]} files: {' '.join(places)}")
    for text in offences:
        print(text)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
