"""Facts of a function's control flow that the translator asks for again and again."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import inspect
import types
from collections.abc import Sequence

from flexor.frontend.cpython.decode import Decoded, Guarded, Step, decode
from flexor.frontend.cpython.operations import ENDS, IN_HANDLERS, JUMPS, NAMES, Operation


@functools.cache
def decoded(code: types.CodeType) -> Decoded:
    """The steps of a code object, with what the translator asks of them."""
    return decode(code, generators=True)


@dataclasses.dataclass(frozen=True)
class Flow:
    """Facts of a code object's control flow."""

    joins: frozenset[int]  # steps that several steps lead to
    heads: frozenset[int]  # steps that a jump backwards leads to
    live: tuple[tuple[str, ...], ...]  # locals that may be read from a step on, sorted
    caught: frozenset[int]  # steps whose exceptions a handler of the function's own looks at
    guarded: frozenset[int]  # the same, with the steps of handlers
    closing: frozenset[int]  # steps whose handlers may look at GeneratorExit
    regions: tuple[Guarded | None, ...]  # of every step the region whose handler its exceptions go to first
    left: frozenset[int]  # FOR_ITERs of loops that something in their body leaves


# What a handler does to its own stack and to the variables that a comprehension has borrowed.
_HARMLESS = frozenset(
    {Operation.SWAP, Operation.POP, Operation.COPY, Operation.CONST, Operation.STORE_LOCAL, Operation.EXCEPTION_BEGIN, Operation.EXCEPTION_END}
)


def _only_passes_on(handler: Sequence[Step]) -> bool:
    """Whether a handler hands the exception on without looking at it; the end of a `with` that is followed does."""
    for step in handler:
        if step.operation in _PASSES_ON:
            return True
        if step.operation not in _HARMLESS:
            return False
    return False


_PASSES_ON = (Operation.WITH_EXCEPT, Operation.RERAISE)


def _passes_on_at(steps: Sequence[Step], handler: int) -> int:
    return next(i for i in range(handler, len(steps)) if steps[i].operation in _PASSES_ON)


def _is_for_exceptions(handler: Sequence[Step]) -> bool:
    """Whether a handler is for one class of Python's own exceptions: it does not look at the end of a generator."""
    begins = [step.operation for step in handler[:3]] == [Operation.EXCEPTION_BEGIN, Operation.LOAD_GLOBAL, Operation.EXCEPTION_MATCH]
    cls = getattr(builtins, handler[1].arg, None) if begins else None
    return isinstance(cls, type) and issubclass(cls, Exception)


def _is_left(steps: Sequence[Step], head: int) -> bool:
    """Whether a `break` or `return` stands in the body of a loop."""
    end = steps[head].arg
    leaves = (s.operation is Operation.RETURN or (s.operation in JUMPS and not head <= s.arg < end) for s in steps[head + 1 : end])
    return any(leaves)


@functools.cache
def flow(code: types.CodeType) -> Flow:
    """The facts of a code object, found once."""
    steps = decoded(code).steps
    before: list[set[int]] = [set() for _ in steps]
    for i, step in enumerate(steps):
        if step.operation in JUMPS:
            before[step.arg].add(i)
        if step.operation not in ENDS and i + 1 < len(steps):
            before[i + 1].add(i)
    heads = frozenset(s.arg for i, s in enumerate(steps) if s.operation in JUMPS and s.arg <= i)
    joins = frozenset(i for i, b in enumerate(before) if len(b) > 1)
    handlers: list[set[int]] = [set() for _ in steps]  # where a step goes that raises
    for guarded in decoded(code).guarded:
        for i in range(guarded.start, guarded.stop):
            handlers[i].add(guarded.handler)
            before[guarded.handler].add(i)
    live: list[frozenset[str]] = [frozenset()] * len(steps)
    todo = list(range(len(steps)))  # from the end: what is read later is known by then
    cells = frozenset(code.co_cellvars + code.co_freevars)
    if "__class__" in cells and code.co_argcount:
        cells |= {code.co_varnames[0]}  # super() reads it without naming it
    if not code.co_flags & inspect.CO_OPTIMIZED:
        cells |= {NAMES}  # the class holds them
    while todo:
        i = todo.pop()
        step = steps[i]
        after: frozenset[str] = frozenset()
        if step.operation in JUMPS:
            after |= live[step.arg]
        if step.operation not in ENDS and i + 1 < len(steps):
            after |= live[i + 1]
        if step.operation in (Operation.STORE_LOCAL, Operation.DELETE_LOCAL):
            after -= {step.arg}
        for handler in handlers[i]:
            after |= live[handler]
        if step.operation in (Operation.LOAD_LOCAL, Operation.LOAD_LOCAL_AND_CLEAR, Operation.MAKE_CELL):
            after |= {step.arg}
        if after != live[i]:
            live[i] = after
            todo += before[i]
    looking = {region for region in decoded(code).guarded if not _only_passes_on(steps[region.handler :])}
    regions: list[Guarded | None] = [None] * len(steps)  # the innermost of every step
    for guarded in sorted(decoded(code).guarded, key=lambda region: region.start - region.stop):
        regions[guarded.start : guarded.stop] = [guarded] * (guarded.stop - guarded.start)
    looked_at: dict[int, Guarded] = {}
    for i in range(len(steps)):
        region: Guarded | None = regions[i]
        passed = set[Guarded]()
        while region is not None and region not in looking and region not in passed:
            passed.add(region)  # it raises the exception again, where another region may stand around it
            region = regions[_passes_on_at(steps, region.handler)]
        if region is not None and region in looking:
            looked_at[i] = region
    caught = frozenset(looked_at)
    sorted_once: dict[frozenset[str], tuple[str, ...]] = {}  # most steps have the same ones as their neighbours
    in_handlers = {i for i, s in enumerate(steps) if s.operation in IN_HANDLERS}
    return Flow(
        joins,
        heads,
        tuple(sorted_once.get(names) or sorted_once.setdefault(names, tuple(sorted(names | cells))) for names in live),
        caught - in_handlers,
        caught,
        frozenset(i for i, region in looked_at.items() if not _is_for_exceptions(steps[region.handler :])),
        tuple(regions),
        frozenset(i for i, step in enumerate(steps) if step.operation is Operation.FOR_ITER and _is_left(steps, i)),
    )
