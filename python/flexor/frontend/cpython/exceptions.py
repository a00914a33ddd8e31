"""Exceptions that are known to be raised when a function is translated, on their way to a handler of the function's own."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from flexor.frontend.cpython.operations import Operation
from flexor.frontend.cpython.values import Known, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.decode import Guarded
    from flexor.frontend.cpython.state import Frame
    from flexor.frontend.cpython.translate import Translator


class Thrown(Exception):
    """Control has gone to a handler: the state says where."""


def throw(t: Translator, function: Callable[..., Any], values: list[Value]) -> None:
    """Goes to the handler of what function(*values) raises; returns where no handler looks at it, or the run knows the values."""
    found = _handler(t)
    if found is None or not all(isinstance(value, Known) for value in values):
        return
    try:
        function(*(value.object for value in values))  # type: ignore[attr-defined]
    except Exception as error:
        _enter(t, *found, error.with_traceback(None))


def throw_again(t: Translator, error: BaseException) -> NoReturn:
    """A handler has not wanted an exception."""
    found = _handler(t)
    if found is not None:
        _enter(t, *found, error)

    def fail() -> None:
        raise error

    t.foreign("raise", fail, [], result="none")
    t.unreachable()


def is_thrown_here(t: Translator, cls: type, values: list[Value]) -> bool:
    """Whether an exception of known parts is made to be raised at once, to a handler that looks at it."""
    frame = t.state.top
    raises = frame.steps[frame.pc].operation is Operation.RAISE
    is_plain = all(not isinstance(getattr(cls, name), types.FunctionType) for name in ("__init__", "__new__"))
    return raises and is_plain and all(isinstance(value, Known) for value in values) and _handler(t) is not None


def handled(t: Translator) -> BaseException | None:
    """The exception whose handler is open, which a bare raise means."""
    for frame in reversed(t.state.frames):
        if frame.handled and isinstance(frame.handled[-1], Known):
            return frame.handled[-1].object  # type: ignore[no-any-return]
    return None


def _handler(t: Translator) -> tuple[int, Guarded] | None:
    """(depth of its frame, region) of the innermost handler that looks at what the step at hand raises."""
    for depth in range(len(t.state.frames) - 1, -1, -1):
        frame = t.state.frames[depth]
        region = _region(frame)
        if region is not None:
            return depth, region
    return None


def _region(frame: Frame) -> Guarded | None:
    facts = frame.flow
    region = facts.regions[frame.at] if frame.at in facts.guarded else None
    return region if region is not None and region.depth is not None and region.depth <= len(frame.stack) else None


def _enter(t: Translator, depth: int, region: Guarded, error: BaseException) -> NoReturn:
    del t.state.frames[depth + 1 :]
    frame = t.state.top
    del frame.stack[region.depth :]
    frame.stack += [Known(None)] * region.saves_place + [Known(error)]
    frame.pc = region.handler
    raise Thrown
