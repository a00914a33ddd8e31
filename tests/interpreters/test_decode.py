"""Decoding of CPython bytecode on this interpreter: steps mean what the function means."""

import copy
import dataclasses
import importlib
import inspect
import types

import cases
import pytest
from executor import Frame

from flexor.frontend.cpython import NotTranslated, Operation, decode
from flexor.frontend.cpython.operations import ENDS, IN_HANDLERS, JUMPS, stack_effect

STANDARD = (
    "argparse", "ast", "base64", "calendar", "collections", "colorsys", "configparser", "csv", "dataclasses",
    "decimal", "difflib", "enum", "fractions", "functools", "heapq", "html.parser", "inspect", "ipaddress",
    "json.decoder", "json.encoder", "logging", "numbers", "posixpath", "pickle", "pprint", "random", "re",
    "shlex", "shutil", "statistics", "string", "tarfile", "textwrap", "tokenize", "traceback", "typing", "unittest.case",
    "urllib.parse", "uuid", "zipfile",
)  # fmt: skip


SUSPENDING = ("a generator", "a coroutine", "an asynchronous generator")
OF_CLASS_BODIES = ("LOAD_NAME", "STORE_NAME", "SETUP_ANNOTATIONS", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_LOCALS")


def outcome(function):
    try:
        return "returned", function()
    except Exception as error:
        return "raised", type(error)


def executed(function, arguments):
    bound = inspect.signature(function).bind(*arguments)
    bound.apply_defaults()
    return Frame(function, bound.arguments).run(decode(function.__code__).steps)


@pytest.mark.parametrize("name", cases.CASES)
def test_steps_do_what_python_does(name):
    function, calls = cases.CASES[name]
    for arguments in calls:
        ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        expected = outcome(lambda: function(*theirs))
        got = outcome(lambda: executed(function, ours))
        assert got == expected, arguments
        assert ours == theirs, "what the call changed"


def codes(module):
    todo = [value.__code__ for value in vars(module).values() if isinstance(value, types.FunctionType)]
    for cls in [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]:
        todo += [value.__code__ for value in vars(cls).values() if isinstance(value, types.FunctionType)]
    while todo:
        code = todo.pop()
        yield code
        todo += [const for const in code.co_consts if isinstance(const, types.CodeType) and not const.co_flags & inspect.CO_NESTED == 0]


def check_stack(decoded):
    """Every way through the steps, handlers aside, finds the same depth at a step and never pops what is not there."""
    depth, todo = {}, [(0, 0)]
    while todo:
        at, height = todo.pop()
        if at in depth:
            assert depth[at] == height, f"step {at} is reached with {height} and {depth[at]} values"
            continue
        depth[at] = height
        step = decoded.steps[at]
        assert step.operation not in IN_HANDLERS, "a handler is reached without an exception"
        popped, pushed = stack_effect(step.operation, step.arg)
        assert height >= popped, f"step {at} pops {popped} of {height}"
        if step.operation in JUMPS:
            todo.append((step.arg, height - 1 if step.operation is Operation.FOR_ITER else height - popped))
        if step.operation not in ENDS:
            todo.append((at + 1, height - popped + pushed))


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_library(name):
    read = 0
    for code in codes(importlib.import_module(name)):
        try:
            decoded = decode(code)
        except NotTranslated as refused:
            # Bodies of classes aside, only what suspends: another name is missing in a table.
            assert refused.reason in SUSPENDING or refused.reason in OF_CLASS_BODIES, refused
            continue
        read += 1
        check_stack(decoded)
        for guarded in decoded.guarded:
            assert 0 <= guarded.start < guarded.stop <= len(decoded.steps)
            assert guarded.handler < len(decoded.steps)
    assert read


def test_guarded_steps_are_those_of_the_try():
    def f(x):
        a = 1
        try:
            a = g(x)
        except ValueError:
            a = 2
        return a

    decoded = decode(f.__code__)
    call = next(i for i, s in enumerate(decoded.steps) if s.operation in (Operation.CALL, Operation.CALL_FUNCTION))
    first = next(i for i, s in enumerate(decoded.steps) if s.operation is Operation.CONST and s.arg == 1)
    assert any(g.start <= call < g.stop for g in decoded.guarded)
    assert not any(g.start <= first < g.stop for g in decoded.guarded)
    handlers = {g.handler for g in decoded.guarded}
    in_handler = next(i for i, s in enumerate(decoded.steps) if s.operation is Operation.CONST and s.arg == 2)
    assert any(h <= in_handler for h in handlers)


def test_steps_carry_source_lines():
    def f(x):
        y = x + 1
        return y * 2

    first = f.__code__.co_firstlineno
    lines = {s.operation: s.line - first for s in decode(f.__code__).steps if s.operation in (Operation.BINARY, Operation.RETURN)}
    assert lines[Operation.RETURN] == 2
    adds = [s for s in decode(f.__code__).steps if s.operation is Operation.BINARY]
    assert [(s.arg, s.line - first) for s in adds] == [("+", 1), ("*", 2)]


def generator():
    yield 1


async def coroutine():
    pass


async def asynchronous():
    yield 1


@pytest.mark.parametrize("function", [generator, coroutine, asynchronous], ids=lambda f: f.__name__)
def test_what_suspends_is_refused_by_name(function):
    with pytest.raises(NotTranslated, match="generator|coroutine"):
        decode(function.__code__)


def test_an_interpreter_without_a_table_is_refused():
    with pytest.raises(NotTranslated, match=r"Python 3\.9"):
        decode(test_an_interpreter_without_a_table_is_refused.__code__, (3, 9))


def test_an_unknown_instruction_is_named_with_its_line(monkeypatch):
    import sys

    from flexor.frontend.cpython import versions

    table = versions.TABLES[sys.version_info[:2]]
    monkeypatch.delitem(table, "CONTAINS_OP")

    def f(x):
        return x in (1, 2)

    with pytest.raises(NotTranslated, match="CONTAINS_OP") as caught:
        decode(f.__code__)
    assert caught.value.line == f.__code__.co_firstlineno + 1


def test_steps_are_values():
    step = decode(executed.__code__).steps[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.arg = 1
