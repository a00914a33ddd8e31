#!/usr/bin/env python3
"""Prints python/flexor/_ops.pyi from the methods that the package makes of the registry; tools/generate.py runs it with the
built package first on the path."""

from __future__ import annotations

import inspect

from flexor import _ops

HEAD = '''"""Written by tools/generate.py from the registry of ops; edit the entry of the op."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from flexor.builder import Symbol, Var, Weight

Tensor: TypeAlias = Var | Weight
Scalar: TypeAlias = bool | int | float | np.generic | Symbol  # beside a tensor it does not widen the dtype's category
Integer: TypeAlias = int | np.integer[Any] | Symbol | Var
Integers: TypeAlias = Sequence[Integer] | Var
Real: TypeAlias = int | float | np.number[Any] | Var
DType: TypeAlias = Any  # the name of a dtype ("float32"), or a dtype of NumPy or torch

class Op:
    name: str
    operands: list[str]
    attributes: dict[str, str]  # name -> kind
    several: bool

OPS: Mapping[str, Op]
'''


def parameter(p: inspect.Parameter) -> str:
    star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
    annotation = "" if p.annotation is inspect.Parameter.empty else f": {p.annotation}"
    default = "" if p.default is inspect.Parameter.empty else f" = {p.default!r}"
    return f"{star}{p.name}{annotation}{default}"


def method(name: str, function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parts: list[str] = []
    keywords = False
    for p in signature.parameters.values():
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            if not any(q.kind is inspect.Parameter.VAR_POSITIONAL for q in signature.parameters.values()):
                parts.append("*")
            keywords = True
        parts.append(parameter(p))
        if p.name == "self":
            parts.append("/")
    if len(parts) == 2:
        parts = ["self"]  # nothing follows the slash
    doc = "\n        ".join(line for line in (function.__doc__ or "").splitlines()).replace("\n        \n", "\n\n")
    return f'    def {name}({", ".join(parts)}) -> {signature.return_annotation}:\n        """{doc}"""\n'


def owner(cls: type) -> str:
    methods = [method(name, value) for name, value in vars(cls).items() if name in _ops.OPS]
    return f'class {cls.__name__}:\n    """{cls.__doc__}"""\n\n' + "\n".join(methods)


def main() -> None:
    print("\n".join([HEAD, owner(_ops.FunctionOps), owner(_ops.VarOps)]), end="")


if __name__ == "__main__":
    main()
