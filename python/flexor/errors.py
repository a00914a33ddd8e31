"""Exceptions by kind. Each carries the id and name of its diagnostic and, where eager would raise a type of its own, is that type too."""

from __future__ import annotations


class FlexorError(Exception):
    """Base of every refusal. `code` is the stable id ("E0301"), `name` its name ("ShapeMismatch")."""

    code: str = "E0000"
    name: str = ""


class ModuleError(FlexorError, ValueError):
    """The bytecode or the builder call is wrong (E01xx)."""


class FunctionNotFound(ModuleError, KeyError):
    """The module has no function of this name (E0112)."""

    code = "E0112"
    name = "UnknownName"
    __str__ = Exception.__str__  # KeyError quotes its text


class FileError(FlexorError, ValueError, OSError):
    """A file cannot be read, written or trusted (E02xx)."""


class ShapeError(FlexorError, ValueError, RuntimeError):
    """Operands, shapes or element indices do not fit (E03xx)."""


class IndexShapeError(ShapeError, IndexError):
    """An axis or element index lies outside its dimension, or the largest of no elements is asked for."""


class DivisionError(ShapeError, ZeroDivisionError):
    """An integer is divided by zero."""


class SizeOverflowError(ShapeError, OverflowError):
    """A size or an integer does not fit in 64 bits."""


class DTypeError(FlexorError, TypeError, RuntimeError):
    """A dtype, device or kind of value is not taken here (E04xx)."""


class IntegerRangeError(DTypeError, OverflowError, ValueError):
    """An integer does not fit in the dtype that an op computes in."""


class ArgumentError(FlexorError, ValueError, RuntimeError):
    """An argument or option contradicts what the program declares (E05xx)."""


class AssertionFailed(ArgumentError, AssertionError):
    """An assertion of the program does not hold (E0508)."""


class StaleWeights(ArgumentError):
    """Frozen weights have been changed since they were packed (E0513)."""


class Interrupted(FlexorError, RuntimeError):
    """The run was stopped by Session.interrupt (E0509)."""


class ResourceLimit(FlexorError, MemoryError, RuntimeError):
    """A limit was reached (E06xx)."""


class RecursionLimit(ResourceLimit, RecursionError):
    """Calls are nested deeper than the limit (E0603)."""


class NotSupported(FlexorError, RuntimeError):
    """This build does not do it (E07xx)."""


class TextError(FlexorError, ValueError):
    """The text form has a syntax error (E08xx)."""


class InternalError(FlexorError, RuntimeError):
    """A bug of ours (E09xx)."""


_FAMILIES: dict[str, type[FlexorError]] = {
    "1": ModuleError,
    "2": FileError,
    "3": ShapeError,
    "4": DTypeError,
    "5": ArgumentError,
    "6": ResourceLimit,
    "7": NotSupported,
    "8": TextError,
    "9": InternalError,
}
_BY_NAME: dict[str, type[FlexorError]] = {
    "AxisOutOfRange": IndexShapeError,
    "ElementIndexOutOfRange": IndexShapeError,
    "EmptyReduction": IndexShapeError,
    "DivisionByZero": DivisionError,
    "IntegerOutOfRange": IntegerRangeError,
    "SizeOverflow": SizeOverflowError,
    "AssertionFailed": AssertionFailed,
    "Interrupted": Interrupted,
    "StaleWeights": StaleWeights,
    "CallDepthLimit": RecursionLimit,
}


def from_diagnostic(code: str, name: str, text: str) -> FlexorError:
    """The exception of a diagnostic: its type follows from its name or the hundred of its id."""
    error = _BY_NAME.get(name, _FAMILIES.get(code[2], InternalError))(text)
    error.code = code
    error.name = name
    return error
