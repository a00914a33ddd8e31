"""`with`: managers of the frameworks that do nothing here, managers of Python that are followed, contextlib's generators.

A manager of Python that is known at translation is open from its __enter__ to its __exit__. Where the run raises in between, what is
open is left in the order of Python's, with the exception (`Run.leave_all`); such an __exit__ must not swallow it. Every other manager
makes the call one that looks at exceptions: Python begins it anew.
"""

from __future__ import annotations

import contextlib
import sys
import types
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import calls, foreign, helpers, instances
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.flow import decoded
from flexor.frontend.cpython.operations import Operation
from flexor.frontend.cpython.values import Arguments, GeneratorValue, InstanceValue, Keywords, Known, MethodValue, TupleValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def leave_context(*_exception: Any) -> None:
    """What a context manager that is followed does at its end: nothing."""


def opened(manager: Any) -> None:
    """A manager is open from here on; the run keeps it."""
    foreign.run.open.append(manager)


def closed() -> None:
    """The innermost manager is no longer open."""
    foreign.run.open.pop()


class ManagerValue(TupleValue):
    """What a function under contextlib.contextmanager gives."""

    __slots__ = ()

    def __init__(self, generator: Value) -> None:
        super().__init__([generator], contextlib._GeneratorContextManager)


_MADE = contextlib.contextmanager(lambda: iter(())).__code__  # type: ignore[attr-defined]


def makes_manager(function: types.FunctionType) -> bool:
    """A function under contextlib.contextmanager."""
    return function.__code__ is _MADE and isinstance(getattr(function, "__wrapped__", None), types.FunctionType)


def manager_of(t: Translator, function: types.FunctionType, arguments: Arguments, keywords: Keywords) -> Value:
    """What such a function gives."""
    generator = calls.call(t, t.known(function.__wrapped__), arguments, keywords)  # type: ignore[attr-defined]
    if not isinstance(generator, GeneratorValue):
        raise NotTranslated("a context manager of no generator", t.state.top.line)
    generator.is_managed = True
    return ManagerValue(generator)


def enter(t: Translator, manager: Value) -> tuple[Value, Value | None]:
    """Begins a `with`: (what is called at its end, what it binds; None: a call was entered that pushes it)."""
    if isinstance(manager, InstanceValue) and manager.cls is contextlib.nullcontext:
        return Known(leave_context), manager.fields["enter_result"]
    if _is_idle(manager):
        return Known(leave_context), Known(None)
    if isinstance(manager, ManagerValue):
        t.look_at_exceptions()
        return MethodValue(manager.items[0], Known(helpers.leave_generator)), calls.call(t, Known(helpers.enter_generator), [manager.items[0]], {})
    begins, ends = (instances.method(t, manager, name) for name in ("__enter__", "__exit__"))
    what = _what(manager)
    if begins is None or ends is None or what is None:
        raise NotTranslated(f"with {what or 'a value of the run'}", t.state.top.line)
    if isinstance(manager, Known) and not _may_swallow(ends.object.__code__):
        t.opens = True
        leaving = MethodValue(TupleValue([manager, ends, Known(closed)]), Known(helpers.leave))
        return leaving, calls.call(t, Known(helpers.enter), [manager, begins, Known(opened)], {})
    t.look_at_exceptions()
    return MethodValue(manager, ends), calls.call(t, begins, [manager], {})


def _what(manager: Value) -> str | None:
    if isinstance(manager, InstanceValue):
        return manager.cls.__name__
    return type(manager.object).__name__ if isinstance(manager, Known) else None


def _is_idle(manager: Value) -> bool:
    torch = sys.modules.get("torch")
    if not isinstance(manager, Known):
        return False
    obj = manager.object
    if isinstance(obj, contextlib.nullcontext) and obj.enter_result is None:
        return True
    if torch is None:
        return False
    if isinstance(obj, (torch.no_grad, torch.inference_mode)):
        return True
    return (isinstance(obj, torch.set_grad_enabled) and not obj.mode) or (isinstance(obj, torch.autocast) and not obj._enabled)


def _may_swallow(code: types.CodeType) -> bool:
    """Whether an __exit__ may return something true."""
    steps = decoded(code).steps
    ends = [at for at, step in enumerate(steps) if step.operation is Operation.RETURN]
    return not all(at > 0 and steps[at - 1].operation is Operation.CONST and not steps[at - 1].arg for at in ends)
