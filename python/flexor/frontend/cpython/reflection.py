"""What functions ask about other functions: their signatures are known where they are."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.guards import MISSING
from flexor.frontend.cpython.values import Arguments, Keywords, Known, MethodValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

VALUES = (inspect.Signature, inspect.Parameter, inspect.BoundArguments)  # whose attributes say what they always said


def signature(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    """inspect.signature of a known function or bound method."""
    function = _callable(arguments[0]) if len(arguments) == 1 and not keywords else None
    if function is None:
        return NotImplemented
    inner: Any = function.__func__ if isinstance(function, types.MethodType) else function
    while inner is not None:
        following = getattr(inner, "__wrapped__", None)
        for name in ("__code__", "__defaults__", "__kwdefaults__", "__wrapped__", "__signature__"):
            t.guards.attribute(inner, name, getattr(inner, name, MISSING))
        inner = following
    return Known(inspect.signature(function))


def _callable(value: Value) -> Any:
    if isinstance(value, Known) and isinstance(value.object, types.FunctionType):
        return value.object
    if isinstance(value, MethodValue) and isinstance(value.receiver, Known) and isinstance(value.function, Known):
        function = value.function.object
        return types.MethodType(function, value.receiver.object) if isinstance(function, types.FunctionType) else None
    return None
