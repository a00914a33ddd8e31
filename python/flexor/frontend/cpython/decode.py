"""Code objects as stable steps."""

from __future__ import annotations

import dataclasses
import dis
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from flexor.frontend.cpython.operations import JUMPS, Operation
from flexor.frontend.cpython.versions import TABLES

_SUSPENDS = {
    inspect.CO_GENERATOR: "a generator",
    inspect.CO_COROUTINE: "a coroutine",
    inspect.CO_ASYNC_GENERATOR: "an asynchronous generator",
}


class NotTranslated(Exception):
    """A function that the front end leaves to Python; `reason` says what it met, `line` where (None: the whole function)."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(f"not translated: {reason}" + ("" if line is None else f" (line {line})"))
        self.reason, self.line = reason, line
        self.check: Callable[[], bool] | None = None  # whether what was read until then is still so


class Restart(Exception):
    """A translation has learnt something that changes what it has written already."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One operation. `arg` as `Operation` says; of a jump it is an index into `Decoded.steps`."""

    operation: Operation
    arg: Any
    line: int


@dataclasses.dataclass(frozen=True, slots=True)
class Guarded:
    """Steps [start, stop) whose exceptions go to step `handler`, with `depth` values left on the stack (None: not told) and, if it
    saves the place, one more below the exception."""

    start: int
    stop: int
    handler: int
    depth: int | None = None
    saves_place: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Decoded:
    """A function's code in the form that is the same on every interpreter."""

    code: types.CodeType
    steps: tuple[Step, ...]
    guarded: tuple[Guarded, ...]


def decode(code: types.CodeType, version: tuple[int, int] | None = None, generators: bool = False) -> Decoded:
    """The steps of a function's code object. `version` is the interpreter that compiled it; by default this one. The steps of a
    generator begin behind its creation, with None on the stack as what is sent first.

    Raises NotTranslated for coroutines, for generators if they are not wanted, for an instruction that no table has, and on an interpreter without a
    table.
    """
    version = version or (sys.version_info.major, sys.version_info.minor)
    if version not in TABLES:
        raise NotTranslated(f"Python {version[0]}.{version[1]}")
    for flag, what in _SUSPENDS.items():
        if code.co_flags & flag and not (generators and flag == inspect.CO_GENERATOR):
            raise NotTranslated(what)
    table = TABLES[version]
    steps: list[tuple[Operation, Any, int]] = []
    first_step: dict[int, int] = {}  # offset of an instruction -> index of its first step
    blocks: list[tuple[int, int]] = []  # 3.10: (offset of the SETUP, offset of its handler)
    line, names = code.co_firstlineno, None
    if code.co_flags & inspect.CO_GENERATOR and version < (3, 11):
        steps.append((Operation.CONST, None, line))
    if version < (3, 11):  # cells are made by the call there
        steps += [(Operation.MAKE_CELL, name, line) for name in code.co_cellvars]
    for instruction in dis.get_instructions(code):
        # From 3.13 on starts_line says whether, and line_number stands beside it.
        started: int | None = getattr(instruction, "line_number", instruction.starts_line)
        line = line if started is None else started
        first_step[instruction.offset] = len(steps)
        name = instruction.opname
        if name == "KW_NAMES":
            names = code.co_consts[instruction.arg or 0]
            continue
        if name in ("SETUP_FINALLY", "SETUP_WITH"):
            blocks.append((instruction.offset, instruction.argval))
        row = table.get(name)
        if callable(row) and not isinstance(row, Operation):
            row = row(instruction, code)
        if row is None:
            raise NotTranslated(name, line)
        pairs = ((row, instruction.argval),) if isinstance(row, Operation) else row
        for operation, arg in pairs:
            if operation is Operation.CALL and names is not None:
                steps.append((Operation.CONST, names, line))
                operation, names = Operation.CALL_KW, None
            steps.append((operation, arg, line))
    end = len(steps)
    at = [Step(op, first_step[arg] if op in JUMPS else arg, where) for op, arg, where in steps]
    if version >= (3, 11):
        entries: list[Any] = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        guarded = [Guarded(first_step[e.start], first_step.get(e.end, end), first_step[e.target], e.depth, e.lasti) for e in entries]
    else:
        guarded = _guarded_by_blocks(code, at, first_step, dict(blocks))
    return Decoded(code, tuple(at), tuple(g for g in guarded if g.start < g.stop))


def _guarded_by_blocks(
    code: types.CodeType, steps: list[Step], first_step: dict[int, int], handler_of: dict[int, int]
) -> list[Guarded]:
    """3.10 has no table of exceptions: follows the block stack from the entry and from every handler."""
    instructions = list(dis.get_instructions(code))
    index_of = {instruction.offset: i for i, instruction in enumerate(instructions)}
    handler_at: dict[int, int] = {}  # index of an instruction -> offset of its innermost handler
    seen: set[int] = set()
    todo: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while todo:
        i, stack = todo.pop()
        while i < len(instructions) and i not in seen:
            seen.add(i)
            instruction = instructions[i]
            if stack:
                handler_at[i] = stack[-1]
            name = instruction.opname
            if instruction.offset in handler_of:
                handler = handler_of[instruction.offset]
                todo.append((index_of[handler], stack))
                stack = (*stack, handler)
            elif name == "POP_BLOCK":
                stack = stack[:-1]
            elif instruction.opcode in dis.hasjabs or instruction.opcode in dis.hasjrel:
                todo.append((index_of[instruction.argval], stack))
            if name in ("JUMP_FORWARD", "JUMP_ABSOLUTE", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE"):
                break
            i += 1
    out: list[Guarded] = []
    bounds = [first_step[instruction.offset] for instruction in instructions] + [len(steps)]
    for i in sorted(handler_at):
        handler = first_step[handler_at[i]]
        if out and out[-1].handler == handler and out[-1].stop == bounds[i]:
            out[-1] = dataclasses.replace(out[-1], stop=bounds[i + 1])
        else:
            out.append(Guarded(bounds[i], bounds[i + 1], handler))
    return out
