"""CPython's own tests of its language, with every function of a test module under flexor.jit: nothing may change.

    python tests/conformance/cpython.py test_patma test_scope          # every test of these modules
    python tests/conformance/cpython.py --json bench/results/cpython.json

A test module is read as source, and every `def` in it, nested ones and methods included, gets flexor.jit as its innermost decorator.
Then its tests run twice, as they are and decorated, and must have the same outcome. What a test asks about a function object itself
(its class, its code, its frame) is not what a decorated function has: such tests are named below with the reason.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import functools
import importlib.util
import io
import json
import re
import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flexor
from flexor._jit import Jit

MODULES = ("test_patma", "test_grammar", "test_scope", "test_generators", "test_with")
_TRACED = "counts the events of a trace function in the frame of the function"
_KEPT = "expects objects to be freed that translations were made for"
_STACK = "looks for the frames that called the function"
# Tests that ask what only a plain function, or its frame, is: name of the test -> why.
OF_FUNCTIONS: dict[str, str] = {
    "TestTracing.test_default_capture": _TRACED,
    "TestTracing.test_default_wildcard": _TRACED,
    "TestTracing.test_no_default": _TRACED,
    "TestTracing.test_only_default_capture": _TRACED,
    "TestTracing.test_only_default_wildcard": _TRACED,
    "TestTracing.test_unreachable_code": _TRACED,
    "GeneratorTest.test_name": "names the function, and expects it of its generators",
    "GeneratorStackTraceTest.test_send_with_yield_from": _STACK,
    "GeneratorStackTraceTest.test_throw_with_yield_from": _STACK,
    "ScopeTests.testLeaks": _KEPT,
    "ScopeTests.testCellLeak": _KEPT,
}


class _Decorating(ast.NodeTransformer):
    """Puts `@_flexor_jit` innermost on every function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.decorator_list.append(ast.copy_location(ast.Name("_flexor_jit", ast.Load()), node))
        return node


def source_of(name: str) -> Path | None:
    """The file of a module of CPython's `test` package; None where this interpreter has none."""
    spec = importlib.util.find_spec("test")
    if spec is None or spec.submodule_search_locations is None:
        return None
    found = [Path(place) / f"{name}.py" for place in spec.submodule_search_locations]
    return next((path for path in found if path.exists()), None)


def module_of(name: str, decorated: bool) -> types.ModuleType:
    """A test module anew, as it is or decorated."""
    path = source_of(name)
    assert path is not None
    tree = ast.parse(path.read_text(), str(path))
    if decorated:
        tree = ast.fix_missing_locations(_Decorating().visit(tree))
    made = types.ModuleType(f"test.{name}")
    made.__file__ = str(path)
    vars(made)["_flexor_jit"] = functools.partial(flexor.jit, fallback="silent")
    before = sys.modules.get(made.__name__)
    sys.modules[made.__name__] = made
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, str(path), "exec"), vars(made))
    finally:
        if before is not None:
            sys.modules[made.__name__] = before
    return made


@contextlib.contextmanager
def recorded() -> Iterator[list[Any]]:
    """The statistics of every function that is jitted meanwhile; the functions themselves may be freed."""
    stats: list[Any] = []
    begin = Jit.__init__

    def init(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        stats.append(self._stats)

    Jit.__init__ = init  # type: ignore[method-assign]
    try:
        yield stats
    finally:
        Jit.__init__ = begin  # type: ignore[method-assign]


def tests_of(module: types.ModuleType) -> dict[str, unittest.TestCase]:
    """The tests of a module by their names."""
    found: dict[str, unittest.TestCase] = {}
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls.__module__ == module.__name__:
            for name in unittest.defaultTestLoader.getTestCaseNames(cls):
                found[f"{cls.__name__}.{name}"] = cls(name)
    return found


def outcome(test: unittest.TestCase) -> tuple[str, str]:
    """("passed" | "failed" | "error" | "skipped", the text)."""
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test.run(result)
    for kind, held in (("failed", result.failures), ("error", result.errors), ("skipped", result.skipped)):
        if held:
            return kind, held[0][1]
    return "passed", ""


def compare(name: str, only: str, reasons: collections.Counter[str]) -> tuple[list[tuple[str, str, str]], collections.Counter[str]]:
    """(test, outcome plainly, outcome under flexor.jit with its text) of every test that differs, and what was counted; `reasons` gets
    why functions were left to Python."""
    counts: collections.Counter[str] = collections.Counter()
    with recorded() as all_stats:
        plain, jitted = module_of(name, False), module_of(name, True)
        theirs = tests_of(plain)
        differing = []
        for test, case in tests_of(jitted).items():
            if only not in test:
                continue
            if test in OF_FUNCTIONS:
                counts["asks about a function object"] += 1
                continue
            want, got = outcome(theirs[test]), outcome(case)
            counts["tests"] += 1
            if want[0] != got[0]:
                differing.append((test, want[0], f"{got[0]}\n{got[1]}"))
    called = [stats for stats in all_stats if stats.translations or stats.fallbacks]
    counts["functions called"] = len(called)
    counts["functions followed"] = sum(not stats.fallbacks for stats in called)
    for stats in called:
        reasons.update(re.sub(r" \(line \d+\)$", "", reason) for reason in stats.fallbacks)
    return differing, counts


def _keep(path: Path, rows: list[dict[str, Any]]) -> None:
    """Writes the rows in the place of those of the same modules and interpreter; others stay."""
    written = {(row["module"], row["python"]) for row in rows}
    before = json.loads(path.read_text()) if path.exists() else []
    kept = [row for row in before if (row["module"], row["python"]) not in written]
    rows = sorted(kept + rows, key=lambda row: (row["module"], tuple(map(int, row["python"].split(".")))))
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--json", help="writes the counts")
    parser.add_argument("--reasons", action="store_true", help="says why functions were left to Python, the most frequent reason first")
    options = parser.parse_args()
    rows, wrong = [], 0
    for name in options.modules:
        reasons: collections.Counter[str] = collections.Counter()
        differing, counts = compare(name, options.only, reasons)
        wrong += len(differing)
        rows.append({"module": name, "python": ".".join(map(str, sys.version_info[:2])), "differing": len(differing), **counts})
        print(rows[-1])
        for test, want, got in differing:
            print(f"--- {test}: {want} plainly, under flexor.jit {got}")
        if options.reasons:
            print(*(f"{count:5} {reason}" for reason, count in reasons.most_common()), sep="\n")
    if options.json:
        _keep(Path(options.json), rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
