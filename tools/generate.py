#!/usr/bin/env python3
"""Writes what is taken from tables and programs: docs/reference/*.md, the stub of the ops, and the parts of other pages that stand between
`<!-- generated: NAME -->` and `<!-- end -->`: the layers, the figures, the C++ example, the output of explain.

    tools/generate.py           writes the files that are out of date
    tools/generate.py --check   writes nothing, names the files that are out of date, exits 1 if there are any

The page and the stub of the ops come from the running registry and the listing from `flexor explain`, through programs and
the package of the build folder (FLEXOR_BUILD, default build/); `./dev generate` builds them and runs this.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_diagnostics
import check_layers
import explain_picture
import readme_table

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- generated: {} -->"
END = "<!-- end -->"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def families() -> dict[int, tuple[str, str, str]]:
    """Hundred -> (what, kind, Python exception), from the comment at the head of diagnostics.def."""
    text = (ROOT / "src/support/diagnostics.def").read_text()
    found = re.findall(r"^//\s+(\d)xx\s{2,}(.+?)\s{2,}(.+?)\s{2,}(.+)$", text, re.MULTILINE)
    return {int(hundred): (what, kind, python) for hundred, what, kind, python in found}


def diagnostics_page() -> str:
    text = ["# Diagnostics\n", "Every refusal has a stable number. The hundred gives the kind and the Python exception.\n"]
    source = (ROOT / "src/support/hints.def").read_text()
    hints = {name: hint.replace("%op", "OP") for name, hint in re.findall(r'^FLEXOR_HINT\((\w+), "(.+)"\)', source, re.MULTILINE)}
    for hundred, (what, kind, python) in families().items():
        rows = [
            [f"`E{n:04d}`", f"`{name}`", sentence, hints.get(name, "")]
            for n, name, sentence in check_diagnostics.rows()
            if n // 100 == hundred
        ]
        text.append(f"## {hundred}xx: {what}\n\n{kind[0].upper() + kind[1:]}; `{python}` in Python.\n")
        text.append(table(["number", "name", "sentence", "hint"], rows))
    return "\n".join(text)


def opcodes_page() -> str:
    source = (ROOT / "src/bytecode/opcodes.def").read_text()
    rows = re.findall(r'^X\(k(\w+), (\d+), k(\w+), (-?\d+), (-?\d+), (\d+), "((?:[^"\\]|\\.)+)"\)', source, re.MULTILINE)

    def effect(pops: str, pushes: str) -> str:
        return " → ".join("by operand" if count == "-1" else count for count in (pops, pushes))

    def flags(bits: int) -> str:
        names = ["ends a block", "has a target", "safe point after it"]
        return ", ".join(name for bit, name in enumerate(names) if bits >> bit & 1)

    body = [
        [number, f"`{mnemonic(name)}`", "" if operand == "None" else operand.lower(), effect(pops, pushes), flags(int(bits)), text]
        for name, number, operand, pops, pushes, bits, text in rows
    ]
    return (
        "# Opcodes\n\nThe instructions of the stack machine, from `src/bytecode/opcodes.def`. A tensor op is not an opcode: "
        "`CALL_OP` names a registry entry.\n\n" + table(["number", "mnemonic", "operand", "pops → pushes", "flags", "meaning"], body)
    )


def mnemonic(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def environment_rows() -> list[tuple[str, str, str]]:
    text = (ROOT / "src/support/environment.def").read_text()
    return re.findall(r'^FLEXOR_ENVIRONMENT\((\w+), "([^"]*)",\s*"((?:[^"\\]|\\.)+)"\)', text, re.MULTILINE)


def struct_fields(header: str, struct: str) -> list[list[str]]:
    """[name, type, default, comment] of a struct whose members have the form `type name = default;  // comment`."""
    text = (ROOT / "include/flexor" / header).read_text()
    match = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    if match is None:
        sys.exit(f"{header}: no struct {struct}")
    fields: list[list[str]] = []
    above = ""
    for line in match.group(1).splitlines():
        code, _, comment = (part.strip() for part in line.partition("//"))
        if not code:
            if line.startswith(" " * 8) and fields and not above:
                fields[-1][3] += " " + comment
            else:
                above = f"{above} {comment}".strip()
            continue
        member = re.match(r"([\w:<>, ]+?(?:\(\*)?) (\w+)(?: = ([^;]+))?;$", code)
        function = re.match(r"[\w:]+ \(\*(\w+)\)\([^)]*\) = nullptr;$", code)
        several = re.match(r"([\w:<>]+) ((?:\w+ = [^,;]+, )+\w+ = [^,;]+);$", code)
        if several:
            names = [part.split(" = ") for part in several.group(2).split(", ")]
            fields += [[name, several.group(1), value, comment or above] for name, value in names]
        elif function:
            fields.append([function.group(1), "function", "nullptr", comment or above])
        elif member:
            fields.append([member.group(2), member.group(1), member.group(3) or "", comment or above])
        above = ""
    return fields


def plain(cpp: str) -> str:
    shift = re.fullmatch(r"std::uint64_t\{(\d+)\} << (\d+)", cpp)
    return str(int(shift.group(1)) << int(shift.group(2))) if shift else cpp.replace("std::", "")


def python_options(file: str, name: str) -> dict[str, tuple[str, str]]:
    """The public keyword arguments of a function or class of the package: default, and what its docs say in the form
    `name   text`, whose further lines stand in the column of the text."""
    tree = ast.parse((ROOT / "python/flexor" / file).read_text())
    found = [node for node in tree.body if getattr(node, "name", "") == name][-1]
    docs = dict(re.findall(r"^(\w+)\s{2,}(.+(?:\n\s{10,}.+)*)$", ast.get_docstring(found) or "", re.MULTILINE))
    call = found
    if isinstance(found, ast.ClassDef):
        call = next(node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    options = {}
    for argument, default in zip(call.args.kwonlyargs, call.args.kw_defaults, strict=True):
        if argument.arg.startswith("_"):
            continue
        if argument.arg not in docs:
            sys.exit(f"python/flexor/{file}: the docs of {name} do not tell {argument.arg}")
        options[argument.arg] = (ast.unparse(default) if default else "", re.sub(r"\s+", " ", docs[argument.arg]))
    return options


def command_line_flags() -> dict[str, tuple[str, str]]:
    """Member of the program's Options -> (flag, help), in the order of cli/main.cpp."""
    source = re.sub(r'"\s*\n\s*"', "", (ROOT / "cli/main.cpp").read_text())
    found = re.findall(r'add_(?:option|flag)\(\s*"!?([^"]+)",\s*options_\.(\w+),\s*"([^"]+)"\)', source)
    return {member: (flag.split(",")[-1], text) for flag, member, text in found if flag.startswith("-")}


# Options of a session that the command line spells otherwise.
SESSION_FLAGS = {"compile": "interpret"}


def options_page() -> str:
    flags = command_line_flags()
    in_python = python_options("session.py", "Session")
    rows = []
    for name, kind, value, text in struct_fields("session.h", "SessionOptions"):
        flag = flags.pop(SESSION_FLAGS.get(name, name), ("", ""))[0]
        python = f"`Session({name}=)`" if name in in_python else ""
        rows.append([f"`SessionOptions::{name}`", python, flag and f"`{flag}`", f"{plain(kind)}, `{plain(value)}`", text])
    missing = in_python.keys() - {row[0].split("::")[1][:-1] for row in rows}
    if missing:
        sys.exit(f"flexor.Session takes {missing}, which SessionOptions does not have")
    for name, (default, text) in python_options("builder.py", "Builder").items():
        cpp = {"promotion": "`Builder::numpy_promotion()`; `.promotion numpy` in text"}[name]
        rows.append([cpp, f"`Builder({name}=)`", "", f"`{default}`", text])
    for name, (default, text) in python_options("_decorator.py", "jit").items():
        rows.append(["", f"`jit({name}=)`", "", f"`{default}`", text])
    for struct, header in (("CallOptions", "call_options.h"), ("DisassembleOptions", "module.h")):
        for name, kind, value, text in struct_fields(header, struct):
            flag = flags.pop(name, ("", ""))[0]
            python = "`Module.dis(pcs=)`" if (struct, name) == ("DisassembleOptions", "pcs") else ""
            default = f", `{plain(value)}`" if value else ""
            rows.append([f"`{struct}::{name}`", python, flag and f"`{flag}`", f"{plain(kind)}{default}", text])
    rows += [["", "", f"`{flag}`", "", text] for flag, text in flags.values()]
    rows += [[f"`{name}`, a variable of the environment", "", "", default, text] for name, default, text in environment_rows()]
    return (
        "# Options\n\nEvery option, where it is set, and its default. An empty cell: it cannot be set there. Variables of the environment are "
        "read once by a process, when the part that needs them starts, and hold for C++, Python and the command line.\n\n"
        + table(["C++, or everywhere", "Python", "command line", "type and default", "meaning"], rows)
    )


def statistics_page() -> str:
    parts = ["# Statistics\n", "What `Session::stats()` counts, field by field (`include/flexor/telemetry.h`). `flexor.stats()` is the "
             "same as a dict, with `left_to_python` besides: the calls of jitted functions that Python ran, by function and reason; "
             "`flexor stats --json` prints it. `calls` are runs of programs that have begun; `failed_calls` are those that ended in a "
             "refusal, and calls of a wrong number of arguments, which have not begun. `to_prometheus` writes the counts as Prometheus "
             "text, with the number of entries in place of the entries and without the places of fallbacks.\n"]
    for struct, title in [("Stats", "All together"), ("RungStats", "One rung of the ladder"), ("EntryStats", "One compiled region"),
                          ("FallbackRow", "One row of the fallback heat map"), ("PoolStats", "The buffer pool"), ("Event", "One event")]:
        body = [[f"`{name}`", plain(kind), text] for name, kind, _, text in struct_fields("telemetry.h", struct)]
        parts.append(f"## {title}\n\n" + table(["field", "type", "meaning"], body))
    return "\n".join(parts)


def output_of(program: str, *arguments: str) -> str:
    path = Path(os.environ.get("FLEXOR_BUILD", ROOT / "build")) / program
    if not path.exists():
        sys.exit(f"{path} is missing: run ./dev generate, or ./dev check")
    return subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def output_of_tool(name: str) -> str:
    """What a program of tools/ prints that imports the package."""
    build = Path(os.environ.get("FLEXOR_BUILD", ROOT / "build"))
    env = {**os.environ, "PYTHONPATH": str(build / "python")}
    return subprocess.run([sys.executable, ROOT / "tools" / name], cwd=ROOT, capture_output=True, text=True, check=True, env=env).stdout


def ops_page() -> str:
    return output_of("tools/flexor_reference").rstrip("\n") + "\n"


def calls_page() -> str:
    """Rows of the signatures, and the Python that the decoded operations stand for."""
    path = ROOT / "python/flexor/frontend/cpython"
    names: dict[str, object] = {}
    exec((path / "signatures.py").read_text(), names)
    text = (
        "# What Python functions are made of\n\n"
        "Calls of torch and NumPy that [`flexor.jit`](../jit.md) writes as ops. A parameter after `!` must have its default; a call\n"
        "that no row takes stays with the framework, as a foreign call. Ops of the [registry](ops.md) that take operands alone are\n"
        "known by their names there; `Tensor.<op>_` are their writes.\n"
    )
    for title, key in (("torch", "TORCH"), ("NumPy", "NUMPY")):
        rows = []
        for line in str(names[key]).strip().splitlines():
            known, _, rest = line.partition(": ")
            parameters, _, expression = rest.partition(" -> ")
            rows.append([", ".join(f"`{name}`" for name in known.split()), f"`{parameters}`", f"`{expression}`"])
        text += f"\n## {title}\n\n" + table(["call", "parameters", "in ops"], rows)
    operations = re.findall(r'^    ([A-Z_]+) = "(.+)"$', (path / "operations.py").read_text(), re.MULTILINE)
    text += "\n## Operations of CPython\n\nWhat the bytecode of every supported release is read as.\n\n"
    return text + table(["operation", "what it does"], [[f"`{name}`", what] for name, what in operations])


def explain_text() -> str:
    """The listing, without what differs from run to run and from host to host."""
    text = output_of("bin/flexor", "explain", "examples/add_relu_sum.fasm", "f32[8,129,768]", "f32[8,129,768]")
    text = re.sub(r"\d+\.\d+ (ms|us|µs|s)\b", r"… \1", text)
    return re.sub(r"[\d.]+ (K?i?B) of code", r"… \1 of code", text)


def explain_block(steps_only: bool = False) -> str:
    """The listing, or its first part."""
    text = explain_text()
    if steps_only:
        text = text.partition("\n\n")[0]
    return "```\n" + text.rstrip("\n") + "\n```\n"


def first_hour_block() -> str:
    return "```cpp\n" + (ROOT / "tests/link/first_hour.cpp").read_text().partition("\n")[2] + "```\n"


def layer_table() -> str:
    layers = check_layers.read_layers(ROOT / "tools/layers.txt")
    rows = []
    for name, folder in layers.folders.items():
        level = f"noun {folder.level}" if folder.kind == "noun" else "verb"
        rows.append([f"`{name}`", level, " ".join(folder.allowed) or "nothing"])
    return table(["folder", "kind", "may include"], rows)


def outputs() -> dict[Path, str]:
    note = "<!-- Written by tools/generate.py; edit the source named in the text. -->\n"
    pages = {
        ROOT / "docs/reference/diagnostics.md": note + diagnostics_page(),
        ROOT / "docs/reference/opcodes.md": note + opcodes_page(),
        ROOT / "docs/reference/ops.md": note + ops_page(),
        ROOT / "docs/reference/calls.md": note + calls_page(),
        ROOT / "docs/reference/understands.md": note + output_of_tool("understands.py"),
        ROOT / "docs/reference/options.md": note + options_page(),
        ROOT / "docs/reference/statistics.md": note + statistics_page(),
        ROOT / "docs/images/how-a-call-works.svg": explain_picture.draw(explain_text()),
        ROOT / "python/flexor/_ops.pyi": output_of_tool("op_stubs.py"),
    }
    for name, part, text in [
        ("ARCHITECTURE.md", "layers", layer_table()),
        ("README.md", "steps", explain_block(steps_only=True)),
        ("README.md", "figures", readme_table.readme_table()),
        ("docs/rivals.md", "rivals", readme_table.rivals_tables()),
        ("docs/cpp.md", "first_hour", first_hour_block()),
        ("docs/how-a-call-works.md", "explain", explain_block()),
    ]:
        path = ROOT / name
        begin = BEGIN.format(part)
        head, found, rest = pages.get(path, path.read_text()).partition(begin)
        if not found or END not in rest:
            sys.exit(f"{name}: no place for '{part}'")
        pages[path] = head + begin + "\n" + text + END + rest.partition(END)[2]
    return pages


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = [(path, text) for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date; run ./dev generate' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
