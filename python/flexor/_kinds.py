"""What the arguments of the package's own functions may be: conversions, and the refusals (E0404, E0309) that name the argument
and the kind that was found."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flexor import _flexor
from flexor.errors import FlexorError


def refusal(number: int, **parts: str) -> FlexorError:
    """The exception of a diagnostic that the package itself finds; parts are verb, argument, found, expected and hint."""
    error = _flexor.refusal(number, **parts)
    assert isinstance(error, FlexorError)
    return error


def wrong_kind(verb: str, argument: str, found: Any, expected: str) -> FlexorError:
    """The refusal of `found` as `argument` of `verb`."""
    name = f"a value of type {type(found).__name__}"
    return refusal(404, verb=verb, argument=argument, found=name, expected=expected)


def plain(value: Any) -> Any:
    """A number of another library as Python's own; everything else, tensors among it, as it is."""
    if isinstance(value, np.generic):
        return value.item()
    kind = type(value)
    if isinstance(value, (bool, int, float, str)) or hasattr(kind, "__dlpack__") or hasattr(kind, "__array__"):
        return value
    if hasattr(kind, "__index__"):
        return operator.index(value)
    return float(value) if hasattr(kind, "__float__") else value


def text(verb: str, argument: str, value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise wrong_kind(verb, argument, value, "a str")
    return str(value)


def integer(verb: str, argument: str, value: Any, bits: int = 64) -> int:
    """A signed integer of so many bits, from whatever has __index__."""
    try:
        number = operator.index(plain(value))
    except TypeError:
        raise wrong_kind(verb, argument, value, "an int") from None
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise refusal(309, verb=verb, argument=argument, expected=f"an int of {bits} bits")
    return number


def flag(verb: str, argument: str, value: Any) -> bool:
    """True or False."""
    truth = plain(value)
    if not isinstance(truth, bool):
        raise wrong_kind(verb, argument, value, "True or False")
    return truth


def function(verb: str, argument: str, value: Any) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise wrong_kind(verb, argument, value, "a function")
    result: Callable[..., Any] = value
    return result


def items(verb: str, argument: str, value: Any) -> list[Any]:
    """The elements of a list, a tuple or another iterable, but no text."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong_kind(verb, argument, value, "a list")
    try:
        return list(value)
    except TypeError:  # a value under construction
        raise wrong_kind(verb, argument, value, "a list") from None


def dtype_name(value: Any) -> Any:
    """The name of a dtype of NumPy or torch; everything else as it is."""
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    return str(value).removeprefix("torch.") if type(value).__module__ == "torch" and type(value).__name__ == "dtype" else value
