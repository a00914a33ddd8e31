"""Facts of a function's control flow that the translator asks for again and again."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Sequence

from flexor.frontend.cpython.decode import Decoded, Step, decode
from flexor.frontend.cpython.operations import ENDS, IN_HANDLERS, JUMPS, Operation


@functools.cache
def decoded(code: types.CodeType) -> Decoded:
    """The steps of a code object, with what the translator asks of them."""
    return decode(code, generators=True)


@dataclasses.dataclass(frozen=True)
class Flow:
    """Facts of a code object's control flow."""

    joins: frozenset[int]  # steps that several steps lead to
    heads: frozenset[int]  # steps that a jump backwards leads to
    live: tuple[frozenset[str], ...]  # locals that may be read from a step on
    caught: frozenset[int]  # steps whose exceptions a handler of the function's own looks at


# What a handler does to its own stack and to the variables that a comprehension has borrowed.
_HARMLESS = frozenset(
    {Operation.SWAP, Operation.POP, Operation.COPY, Operation.CONST, Operation.STORE_LOCAL, Operation.EXCEPTION_BEGIN, Operation.EXCEPTION_END}
)


def _only_passes_on(handler: Sequence[Step]) -> bool:
    """Whether a handler hands the exception on without looking at it; the end of a `with` that is followed does."""
    for step in handler:
        if step.operation in (Operation.WITH_EXCEPT, Operation.RERAISE):
            return True
        if step.operation not in _HARMLESS:
            return False
    return False


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
    live: list[frozenset[str]] = [frozenset()] * len(steps)
    todo = set(range(len(steps)))
    cells = frozenset(code.co_cellvars + code.co_freevars)
    if "__class__" in cells and code.co_argcount:
        cells |= {code.co_varnames[0]}  # super() reads it without naming it
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
        if step.operation in (Operation.LOAD_LOCAL, Operation.LOAD_LOCAL_AND_CLEAR, Operation.MAKE_CELL):
            after |= {step.arg}
        if after != live[i]:
            live[i] = after
            todo |= before[i]
    caught: set[int] = set()
    for region in decoded(code).guarded:
        if not _only_passes_on(steps[region.handler :]):
            caught |= set(range(region.start, region.stop))
    in_handlers = {i for i, s in enumerate(steps) if s.operation in IN_HANDLERS}
    return Flow(
        frozenset(i for i, b in enumerate(before) if len(b) > 1),
        heads,
        tuple(names | cells for names in live),
        frozenset(caught - in_handlers),
    )
