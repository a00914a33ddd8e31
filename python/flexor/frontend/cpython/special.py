"""Special methods that a class defines in Python: an operation on its instances is a call of theirs, which is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import calls, helpers, instances
from flexor.frontend.cpython.values import Known, MethodValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def method(t: Translator, value: Value, name: str) -> Value | None:
    """The bound method of this name; None where the class has none in Python."""
    function = instances.method(t, value, name)
    return None if function is None else MethodValue(value, function)


def has_own_truth(t: Translator, value: Value) -> bool:
    """Whether the truth of a value is what a method says."""
    return method(t, value, "__bool__") is not None or method(t, value, "__len__") is not None


def ask_truth(t: Translator, value: Value, negated: bool = False) -> None:
    """Enters what gives the truth of a value that has its own, or the opposite."""
    by = "bool" if method(t, value, "__bool__") is not None else "length"
    _enter(t, helpers.TRUTHS[by, negated], value)


def ask_contains(t: Translator, item: Value, container: Value, negated: bool) -> bool:
    """Enters what `item in container` asks, or its opposite; False where the class says nothing about it."""
    if method(t, container, "__contains__") is None:
        return False
    _enter(t, helpers.lacks if negated else helpers.contains, container, item)
    return True


def _enter(t: Translator, function: Any, *arguments: Value) -> None:
    entered = calls.call(t, Known(function), list(arguments), {})
    assert entered is None
