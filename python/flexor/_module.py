"""Module: a program, callable with NumPy or torch CPU tensors."""

from __future__ import annotations

import os
from typing import Any

from flexor import _flexor
from flexor._flexor_fast import CallerBase


class Module(CallerBase):
    """A verified, immutable program with its weights.

    Called with its inputs in order (or by name), it runs its main function on the default session: NumPy arrays give
    NumPy arrays, torch tensors give torch tensors, and neither is copied. One output comes back bare, several as a tuple.
    """

    def __init__(self, native: _flexor.NativeModule, function: str = "main") -> None:
        self.native = native
        self.function = function
        index = _flexor.function_index(native, function)
        if index < 0:
            raise KeyError(f"the module has no function {function!r}")
        names = tuple(argument["name"] for argument in native.inputs(function))
        session = _flexor.default_session()
        self._bind(native, native.address(), session, session.address(), index, native.writes_arguments(), names)

    def __getitem__(self, function: str) -> Module:
        """Another function of the same program, as a callable of its own."""
        return Module(self.native, function)

    def __repr__(self) -> str:
        inputs = ", ".join(argument["text"] for argument in self.native.inputs(self.function))
        return f"<flexor.Module {self.function}({inputs})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.native.to_bytes(), self.function)

    def inputs(self) -> list[dict[str, Any]]:
        """Name, kind, dtype, dims (text, lo, hi, frozen) and optionality of each input."""
        return list(self.native.inputs(self.function))

    def outputs(self) -> list[dict[str, Any]]:
        """The same of each output; dims that are known only at run time are spelt "?"."""
        return list(self.native.outputs(self.function))

    def functions(self) -> list[str]:
        """Names of the program's functions."""
        return list(self.native.functions())

    def symbols(self) -> dict[str, tuple[int, int | None]]:
        """Declared symbols with their ranges; None: no upper end."""
        return dict(self.native.symbols())

    def weights(self) -> list[dict[str, Any]]:
        """Name, dtype, shape and bytes of each weight."""
        return list(self.native.weights())

    def metadata(self) -> dict[str, str]:
        """Free text that the file carries."""
        return dict(self.native.metadata())

    def hooks(self) -> list[str]:
        """Foreign functions that a session must bind before the program runs."""
        return list(self.native.hooks())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `.fasm` text for a name that ends so, else the binary `.flx` form; the file is replaced in one step."""
        self.native.save(os.fspath(path))

    def dis(self, *, pcs: bool = False) -> str:
        """The text form."""
        return str(self.native.disassemble(True, pcs))


def _from_bytes(data: bytes, function: str) -> Module:
    return Module(_flexor.NativeModule.from_bytes(data), function)


def load(path: str | os.PathLike[str], function: str = "main") -> Module:
    """Loads a `.flx` file (weights are mapped, not copied) or a `.fasm` text.

    Raises FileError, TextError or ModuleError.
    """
    return Module(_flexor.NativeModule.load(os.fspath(path)), function)


def from_text(text: str, name: str = "<text>", function: str = "main") -> Module:
    """Assembles `.fasm` text. Raises TextError or ModuleError, with file and line."""
    return Module(_flexor.NativeModule.from_text(text, name), function)


def registry() -> list[dict[str, Any]]:
    """Every op: name, summary, numbered constraints, operands, attributes and its names elsewhere."""
    return list(_flexor.registry())
