#!/usr/bin/env python3
"""Names that the sources of a folder keep to themselves are unique in it: cmake/FlexorBatches.cmake compiles several as one.

Looks at what begins at the first column inside `namespace {`, at static functions and at macros that stay defined. Aliases
that say the same may stand in several files. Prints each offence, exits 1.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The sources of one target each.
BATCHED = ["src/*", "tests/unit/*", "tests/text", "tests/triton", "cli", "python/src", "python/src/fast", "fuzz/common"]
TEXT = re.compile(r'R"\((?:.|\n)*?\)"')
ALIAS = re.compile(r"^(?:__extension__ )?using (\w+) = (.*)")
DEFINITION = re.compile(
    r"^(?:template <.*> )?(?:(?:struct|class|union|enum class|enum) (\w+)"
    r"|(?!namespace|return|using|public|private|else|case|static_assert|[#/}])[\w:<>,&*\[\] .]*?[ &*](\w+)(?:[({;\[]| =))"
)


def names(path: Path) -> set[tuple[str, str]]:
    """(namespace, name) of what the file keeps to itself; an alias is named with what it stands for."""
    found, open_namespaces, macros = set(), [], set()
    for line in TEXT.sub("", path.read_text()).splitlines():
        if line.startswith("namespace ") and line.endswith("{"):
            open_namespaces.append(line.removeprefix("namespace").removesuffix("{").strip())
        elif line.startswith("}  // namespace") and open_namespaces:
            open_namespaces.pop()
        elif macro := re.match(r"#define (\w+)", line):
            macros.add(macro[1])
        elif macro := re.match(r"#undef (\w+)", line):
            macros.discard(macro[1])
        elif "" in open_namespaces or line.startswith("static "):
            where = "::".join(filter(None, open_namespaces))
            if alias := ALIAS.match(line):
                found.add((where, f"{alias[1]} = {alias[2]}"))
                found.add((where, f"{alias[1]} as a name"))
            elif (definition := DEFINITION.match(line)) and line[:1].strip():
                found.add((where, f"{definition[1] or definition[2]} as a name"))
    return found | {("a macro", f"{name} as a name") for name in macros}


def main() -> int:
    offences = []
    for pattern in BATCHED:
        for folder in sorted(path for path in ROOT.glob(pattern) if path.is_dir()):
            deep = folder.name in ("runtime", "codegen") and folder.parent.name == "src"
            keepers: dict[tuple[str, str], list[str]] = defaultdict(list)
            for path in sorted(folder.rglob("*.cpp") if deep else folder.glob("*.cpp")):
                for name in names(path):
                    keepers[name].append(str(path.relative_to(ROOT)))
            for (where, what), files in sorted(keepers.items()):
                name = what.removesuffix(" as a name")
                same_alias = any(len(keepers[key]) == len(files) for key in keepers if key[1].startswith(f"{name} = "))
                if len(files) > 1 and what.endswith(" as a name") and not same_alias:
                    offences.append(f"{', '.join(files)}: each has a {where + '::' if where else ''}{name} of its own")
    print("\n".join(offences), end="\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
