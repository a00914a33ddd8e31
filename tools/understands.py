#!/usr/bin/env python3
"""Prints docs/reference/understands.md from the tables of the front end, from its refusals, and from the records of its tests;
tools/generate.py runs it with the built package first on the path."""

from __future__ import annotations

import ast
import collections
import json
from collections.abc import Iterator
from typing import Any

from flexor.frontend.cpython import builtin, flow, foreign, helpers, operations, steps, translate, versions

from generate import ROOT, table

FRONT_END = ROOT / "python/flexor/frontend/cpython"
HEAD = """# What Python Flexor understands

What [`flexor.jit`](../jit.md) makes of a function's bytecode. A construct is *followed* (it becomes part of the program, or is worked out at
translation), a call is *foreign* (Python does it in the run, in its place), or the whole call *falls back* to Python with a reason, which
`stats()` counts.
"""


# ------------------------------------------------------------------------------------------------------------ operations


def followed() -> set[operations.Operation]:
    """Operations that the translator has a step for."""
    O = operations.Operation
    return {*steps.STEPS, *operations.BRANCHES, O.JUMP, O.RETURN, O.YIELD, O.FOR_ITER, O.SEND}


def operations_of(row: Any) -> str:
    """The operations that an instruction stands for."""
    if isinstance(row, operations.Operation):
        return f"`{row.name}`"
    if callable(row):
        return "by its argument"
    return ", ".join(f"`{operation.name}`" for operation, _ in row) or "nothing"


def instructions() -> str:
    releases = sorted(versions.TABLES)
    names = sorted({name for table_ in versions.TABLES.values() for name, row in table_.items() if row is not None})
    rows = []
    for name in names:
        found = {release: versions.TABLES[release].get(name) for release in releases}
        means = dict.fromkeys(operations_of(row) for row in found.values() if row is not None)
        rows.append([f"`{name}`", *("yes" if found[release] is not None else "" for release in releases), "; ".join(means)])
    return table(["instruction", *(".".join(map(str, release)) for release in releases), "operations"], rows)


def not_followed() -> str:
    rows = []
    for operation in operations.Operation:
        if operation in followed():
            continue
        how = "part of a handler of exceptions" if operation in operations.IN_HANDLERS else f"falls back: {operation.name}"
        rows.append([f"`{operation.name}`", operation.value, how])
    return table(["operation", "what it does", "where it is met"], rows)


# ----------------------------------------------------------------------------------------------------------------- calls


def known_functions() -> str:
    """Builtins and functions of the standard library by module."""
    by_module: dict[str, set[str]] = collections.defaultdict(set)
    for function in (*builtin.BUILTINS, *helpers.IN_PYTHON, *helpers.WITH_FUNCTION):
        made_by = getattr(builtin.BUILTINS.get(function), "__qualname__", "").partition(".")[0]
        if made_by not in ("_math", "_of_frame"):  # foreign calls, and refusals
            owner = function if function.__module__ else getattr(function, "__self__", None)
            by_module[(getattr(owner, "__module__", None) or "builtins").lstrip("_")].add(function.__qualname__)
    rows = [[f"`{module}`", ", ".join(f"`{name}`" for name in sorted(names))] for module, names in sorted(by_module.items())]
    return table(["module", "functions"], rows)


def foreign_rules() -> str:
    of_numbers = ", ".join(f"`math.{f.__name__}`" for f, handler in builtin.BUILTINS.items() if handler.__qualname__.startswith("_math."))
    pure = ", ".join(f"`{function.__name__}`" for function in builtin._PURE)
    readers = ", ".join(sorted(f"`{getattr(function, '__qualname__', function)}`" for function in foreign._READERS))
    rows = [
        ["a function of torch or NumPy, or a method of a tensor, that no [row](calls.md) describes", "pure: what it gives is learnt from a first run, and what follows is compiled"],
        [f"a builtin that is not known above; pure are {pure}, the methods of texts, and what `math` and `operator` hold", "pure, if it is named here"],
        [f"{of_numbers} of a number of the run", "pure: a float, or a truth value"],
        ["a class written in C, and one of Python whose instances Python has to keep", "Python makes the object"],
        ["a function under `flexor.disable`, and any other callable", "it may change what the function reads: that is read again behind it"],
        [f"a list, dict or set of the program as an argument of {readers}, or of a logger", "handed over as a new one"],
    ]
    return table(["call", "how it is taken"], rows)


# ------------------------------------------------------------------------------------------------------------- fallbacks


def text_of(node: ast.expr) -> str | None:
    """A reason as written in the source, with … in the place of what the call decides."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None


def refusals() -> Iterator[tuple[str, str]]:
    """(reason, module that gives it) of every refusal in the front end."""
    for path in sorted([*FRONT_END.glob("*.py"), ROOT / "python/flexor/_jit.py"]):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if name in ("NotTranslated", "_python") and node.args:  # type: ignore[attr-defined]
                reason = text_of(node.args[0])  # type: ignore[attr-defined]
                if reason and reason != "…":
                    yield reason, path.stem.lstrip("_")


def fallbacks() -> str:
    by_module: dict[str, list[str]] = collections.defaultdict(list)
    for reason, module in refusals():
        if reason not in by_module[module]:
            by_module[module].append(reason)
    rows = []
    for module, reasons in sorted(by_module.items()):
        doc = ast.get_docstring(ast.parse((FRONT_END / f"{module}.py").read_text() if (FRONT_END / f"{module}.py").exists() else "")) or "Calls."
        rows += [[doc.split(".")[0].split(":")[0] if i == 0 else "", reason] for i, reason in enumerate(sorted(reasons))]
    return table(["about", "reason, as `stats()` counts it"], rows)


# ----------------------------------------------------------------------------------------------------------------- tests


def constructs() -> str:
    """The cases of tests/interpreters/test_jit_constructs.py, each of which is followed on every interpreter."""
    rows = []
    for node in ast.parse((ROOT / "tests/interpreters/test_jit_constructs.py").read_text()).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "case":
                leaves = [e.value for k in decorator.keywords if k.arg == "leaves" for e in getattr(k.value, "elts", [])]
                rows.append([node.name.rstrip("_").replace("_", " "), ", ".join(f"`{leaf}`" for leaf in leaves)])
    return table(["construct", "foreign calls in it"], rows)


CLASSES = {
    "front_end": "front end", "control_flow": "control flow", "data_dependent": "data-dependent", "aliasing": "aliasing and mutation",
    "dtype_promotion": "dtype promotion", "error_parity": "error parity",
}  # fmt: skip
WORST = ("fallback", "foreign", "native")


def field_cases() -> str:
    """What bench/results/field-cases.json says: of the tests of one case the worst counts."""
    cases: dict[str, dict[str, Any]] = {}
    for record in json.loads((ROOT / "bench/results/field-cases.json").read_text()):
        before = cases.get(record["id"])
        if before is None or WORST.index(record["verdict"]) < WORST.index(before["verdict"]):
            cases[record["id"]] = record
    rows = []
    for kind, title in CLASSES.items():
        verdicts = collections.Counter(r["verdict"] for r in cases.values() if r["class"] == kind)
        rows.append([title, str(verdicts.total()), *(str(verdicts[v]) for v in reversed(WORST))])
    total = collections.Counter(r["verdict"] for r in cases.values())
    share = total["native"] / total.total()
    left = [[r["id"], r["verdict"], r["test"].split("_", 2)[2].replace("_", " "), ", ".join(f"`{what}`" for what in r["left"]), r["why"]] for _, r in sorted(cases.items()) if r["verdict"] != "native"]
    return (
        f"{total['native']} of {total.total()} cases ({share:.0%}) are native: the program does all of the work. All are right.\n\n"
        + table(["class", "cases", "native", "with foreign calls", "Python"], [*rows])
        + "\nThose that are not native:\n\n"
        + table(["case", "verdict", "what it is", "left to Python", "why"], left)
    )


def cpython_tests() -> str:
    rows = []
    for row in json.loads((ROOT / "bench/results/cpython.json").read_text()):
        rows.append([f"`{row['module']}`", row["python"], *(str(row.get(key, 0)) for key in ("tests", "differing", "functions called", "functions followed"))])
    return table(["module", "Python", "tests", "that differ", "functions called", "of these followed"], rows)


def page() -> str:
    assert flow and translate  # loaded by what is shown
    parts = [
        HEAD,
        "## Constructs\n\nEach is held by a test of this name on every interpreter (`tests/interpreters/test_jit_constructs.py`).\n\n" + constructs(),
        "## Calls that are followed\n\nFunctions and methods of Python are followed into their bytecode; calls of torch and NumPy stand in a "
        "[table of their own](calls.md). These are known beside them.\n\n" + known_functions(),
        "## Foreign calls\n\n" + foreign_rules(),
        "## What falls back\n\nThe whole call is Python's, with one of these reasons. … is what the call says.\n\n" + fallbacks(),
        "## Field cases\n\nFaults that users of other compilers reported, one test each (`tests/field/`), of the classes that Python functions show.\n\n" + field_cases(),
        "## CPython's own tests\n\nEvery function of these test modules under `flexor.jit`, beside the same tests without it "
        "(`tests/conformance/cpython.py`).\n\n" + cpython_tests(),
        "## Instructions by release\n\nWhat each instruction is read as ([the operations](calls.md)); 3.14 is untested.\n\n" + instructions(),
        "## Operations that are not followed\n\n" + not_followed(),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
