"""Module: a program, callable with NumPy or torch CPU tensors."""

from __future__ import annotations

import difflib
import os
from typing import Any

from flexor import _flexor, _kinds
from flexor._flexor_fast import CallerBase
from flexor.errors import FunctionNotFound

_SCALARS = {"int": "i", "float": "f", "bool": "b"}  # kinds of inputs that take numbers of any library


class Module(CallerBase):
    """A verified, immutable program with its weights, callable as its function `function` on the default session.

    `module(*inputs, out=None, **named_inputs)`: inputs stand in order or by name; optional ones may be left out, or be None. A tensor is a
    numpy.ndarray or a torch.Tensor in CPU memory, of one of the dtypes bool, uint8, int8, int32, int64, float16, bfloat16 (of
    ml_dtypes in NumPy), float32 and float64, or an object with __dlpack__; it is not copied. Its dtype and rank are those that
    `inputs()` tells, and its sizes fit the declared dims: equal where the same symbol stands, inside the symbol's range. An int,
    float or bool may also be a NumPy scalar, or have __index__ or __float__. For an input of kind "any" every other object is a
    foreign value: the program may hold it, call it and read its attributes.

    One output comes back bare, several as a tuple; tensors as torch tensors if an input was one, else as NumPy arrays. A result
    is new memory, unless the program returns an argument, which is that very object, or a view of one.

    `out`, an array or tensor or a list or tuple of one for each output, gets the outputs and is returned. Each has the output's
    dtype and sizes (else E0514), any strides, and shares no memory with an input or another one (E0515).

    Raises ArgumentError (E05xx) for inputs that contradict the declaration, DTypeError (E04xx) and ShapeError (E03xx) for what
    an op refuses, AssertionFailed (E0508), ResourceLimit (E06xx), NotSupported (E0704 for tensors without plain memory, E0705
    for a foreign function that nobody bound), Interrupted (E0509), and whatever a foreign function raises. A refused call
    leaves the session usable. `Session.run` does the same on a session of one's own.
    """

    def __init__(self, native: _flexor.NativeModule, function: str = "main") -> None:
        self.native = native
        self.function = function
        index = _flexor.function_index(native, _kinds.text("Module", "function", function))
        if index < 0:
            known = native.functions()
            near = difflib.get_close_matches(function, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else "`functions()` lists them"
            expected = f"a function of the module: {', '.join(known)}"
            refusal = _kinds.refusal(112, argument="function", found=function, expected=expected, hint=hint)
            raise FunctionNotFound(str(refusal))
        arguments = native.inputs(function)
        names = tuple(argument["name"] for argument in arguments)
        kinds = "".join(_SCALARS.get(argument["kind"], ".") for argument in arguments)
        session = _flexor.default_session()
        self._bind(native, native.address(), session, session.address(), index, native.writes_arguments(), names, kinds)

    def __getitem__(self, function: str) -> Module:
        """Another function of the same program, as a callable of its own. Raises FunctionNotFound, a KeyError."""
        return Module(self.native, function)

    def __repr__(self) -> str:
        inputs = ", ".join(argument["text"] for argument in self.native.inputs(self.function))
        return f"<flexor.Module {self.function}({inputs})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.native.to_bytes(), self.function)

    def inputs(self) -> list[dict[str, Any]]:
        """Of each input: name, kind ("tensor", "int", "float", "bool", "str", "any"), dtype ("float32"; None: any), any_rank, dims
        (text, lo, hi, frozen; hi None: no upper end), optional, and all that as text."""
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

    def explain(self, *inputs: Any, profile: bool = False, **named_inputs: Any) -> str:
        """Runs the function once on the default session and tells what was compiled, and why; see Session.explain."""
        from flexor.session import default_session

        return default_session().explain(self, *inputs, profile=profile, **named_inputs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `.fasm` text for a name that ends so, else the binary `.flx` form; the file is replaced in one step. Raises
        FileError (E0206)."""
        self.native.save(os.fspath(path))

    def dis(self, *, pcs: bool = False) -> str:
        """The text form."""
        return str(self.native.disassemble(True, bool(pcs)))


def _from_bytes(data: bytes, function: str) -> Module:
    return Module(_flexor.NativeModule.from_bytes(data), function)


def load(path: str | os.PathLike[str], function: str = "main") -> Module:
    """Loads a `.flx` file (weights are mapped, not copied) or a `.fasm` text.

    Raises FileError, TextError or ModuleError.
    """
    return Module(_flexor.NativeModule.load(os.fspath(path)), function)


def from_text(text: str, name: str = "<text>", function: str = "main") -> Module:
    """Assembles `.fasm` text. Raises TextError or ModuleError, with file and line."""
    source = _kinds.text("from_text", "text", text)
    return Module(_flexor.NativeModule.from_text(source, _kinds.text("from_text", "name", name)), function)


def registry() -> list[dict[str, Any]]:
    """Every op: name, family, summary, numbered constraints, operands (name, kind, whether a scalar will do), attributes (name,
    kind, default as text; "": required), number of results (-1: an attribute decides), dtypes and its names elsewhere."""
    return list(_flexor.registry())
