"""The ops of the registry as methods: of a function under construction, with every operand, and of a value, which is the first
operand. Made from the registry when the package is imported; _ops.pyi, which `./dev generate` writes from these methods, tells
type checkers and editors the same.

Operands stand in order or by name, attributes by name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from flexor import _flexor


class Op:
    """One op of the registry: how it is called from Python."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.name: str = entry["name"]
        self.operands: list[str] = [name for name, _, _ in entry["operands"]]
        self.attributes: dict[str, str] = {name: kind for name, kind, _ in entry["attributes"]}
        self.several: bool = entry["results"] != 1
        self._entry = entry

    def signature(self, receiver: inspect.Parameter, *, method_of_value: bool) -> inspect.Signature:
        """The parameters behind `receiver`, which stands for the first operand if this is a method of values."""
        parameters = [receiver]
        for name, kind, scalar in self._entry["operands"][1 if method_of_value else 0 :]:
            if kind == "tensor list":
                annotation = "Tensor | Sequence[Tensor]"
                parameters.append(inspect.Parameter(name, inspect.Parameter.VAR_POSITIONAL, annotation=annotation))
                continue
            annotation = "Tensor | Scalar" if scalar else "Tensor"
            default: Any = inspect.Parameter.empty
            if kind.startswith("optional"):
                annotation, default = annotation + " | None", None
            place = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(inspect.Parameter(name, place, annotation=annotation, default=default))
        for name, kind, fallback in self._entry["attributes"]:
            annotation = _ATTRIBUTES[kind.rstrip("?")] + (" | None" if kind.endswith("?") else "")
            default = _default(kind, fallback) if fallback else inspect.Parameter.empty
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            )
        return inspect.Signature(parameters, return_annotation="list[Var]" if self.several else "Var")

    def doc(self) -> str:
        """Summary, dtypes, constraints and spellings elsewhere."""
        entry = self._entry
        lines = [entry["summary"], ""]
        if entry["operands"]:
            lines.append("dtypes: " + ", ".join(entry["dtypes"]))
        lines += [f"C{number}: {text}" for number, text in enumerate(entry["constraints"], 1)]
        if entry["writes_first"]:
            lines.append("writes its first operand")
        elsewhere = [entry[where] for where in ("torch", "numpy", "onnx") if entry[where]]
        if elsewhere:
            lines.append("elsewhere: " + ", ".join(elsewhere))
        return "\n".join(lines).rstrip()


_ATTRIBUTES = {"bool": "bool", "int": "Integer", "float": "Real", "string": "str", "dtype": "DType", "int list": "Integers"}


def _default(kind: str, text: str) -> Any:
    """The default of an attribute from the text form."""
    if kind.startswith("dtype") and text != "none":
        return next(framework for framework, short in _flexor.dtypes().items() if short == text)
    words = {"none": None, "true": True, "false": False}
    return words[text] if text in words else ast.literal_eval(text)


class FunctionOps:
    """Every op as a method: operands first, attributes by name."""

    def op(self, name: str, /, *operands: Any, **attributes: Any) -> Any:
        """Writes the op of that name."""
        raise NotImplementedError


class VarOps:
    """Every op that has an operand as a method of its first one."""

    def _op(self, name: str, /, *operands: Any, **attributes: Any) -> Any:
        raise NotImplementedError


def _of_function(name: str) -> Callable[..., Any]:
    def method(self: FunctionOps, /, *operands: Any, **attributes: Any) -> Any:
        return self.op(name, *operands, **attributes)

    return method


def _of_value(name: str) -> Callable[..., Any]:
    def method(self: VarOps, /, *operands: Any, **attributes: Any) -> Any:
        return self._op(name, *operands, **attributes)

    return method


def _add(owner: type, op: Op, method: Any, *, method_of_value: bool) -> None:
    method.__name__ = op.name
    method.__qualname__ = f"{owner.__name__}.{op.name}"
    method.__doc__ = op.doc()
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = op.signature(receiver, method_of_value=method_of_value)
    setattr(owner, op.name, method)


OPS = {entry["name"]: Op(entry) for entry in _flexor.registry()}

for _op in OPS.values():
    _add(FunctionOps, _op, _of_function(_op.name), method_of_value=False)
    if _op.operands:
        _add(VarOps, _op, _of_value(_op.name), method_of_value=True)
