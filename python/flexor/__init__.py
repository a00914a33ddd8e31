"""Flexor: programs over tensors whose shapes change, compiled once per family of shapes.

    import flexor
    module = flexor.load("model.flx")
    y = module(x)                      # NumPy arrays or torch tensors, on the CPU or a CUDA device, without a copy
    print(flexor.stats()["hit_rate"])
"""

import logging
from typing import TYPE_CHECKING, Any

from flexor import _platform

_platform.check()

from flexor._module import Module, from_text, load, registry  # noqa: E402
from flexor.errors import (  # noqa: E402
    ArgumentError,
    AssertionFailed,
    DivisionError,
    DTypeError,
    FileError,
    FlexorError,
    FunctionNotFound,
    IndexShapeError,
    IntegerRangeError,
    InternalError,
    Interrupted,
    ModuleError,
    NotSupported,
    RecursionLimit,
    ResourceLimit,
    ShapeError,
    SizeOverflowError,
    StaleWeights,
    TextError,
)
from flexor.session import Session, dashboard, default_session, doctor, prometheus, stats  # noqa: E402

if TYPE_CHECKING:
    from flexor._decorator import disable, jit, op
    from flexor._options import FROZEN, Dim
    from flexor.builder import Builder, FunctionBuilder, Symbol, Var, Weight
    from flexor.frontend.cpython.typed import TensorType
else:
    # Read when they are first asked for: what follows Python functions is half of the package.
    _LATER = {
        "disable": "_decorator",
        "jit": "_decorator",
        "op": "_decorator",
        "FROZEN": "_options",
        "Dim": "_options",
        "Builder": "builder",
        "FunctionBuilder": "builder",
        "Symbol": "builder",
        "Var": "builder",
        "Weight": "builder",
        "TensorType": "frontend.cpython.typed",
    }

    def __getattr__(name: str) -> Any:
        import importlib

        if name == "builder":  # a module that needs no import of its own
            return importlib.import_module("flexor.builder")
        home = _LATER.get(name)
        if home is None:
            raise AttributeError(f"module 'flexor' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"flexor.{home}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


__version__ = "0.1.0"

logging.getLogger("flexor").addHandler(logging.NullHandler())

__all__ = [
    "FROZEN",
    "ArgumentError",
    "AssertionFailed",
    "Builder",
    "DTypeError",
    "Dim",
    "DivisionError",
    "FileError",
    "FlexorError",
    "FunctionBuilder",
    "FunctionNotFound",
    "IndexShapeError",
    "IntegerRangeError",
    "InternalError",
    "Interrupted",
    "Module",
    "ModuleError",
    "NotSupported",
    "RecursionLimit",
    "ResourceLimit",
    "Session",
    "ShapeError",
    "SizeOverflowError",
    "StaleWeights",
    "Symbol",
    "TensorType",
    "TextError",
    "Var",
    "Weight",
    "dashboard",
    "default_session",
    "disable",
    "doctor",
    "from_text",
    "jit",
    "load",
    "op",
    "prometheus",
    "registry",
    "stats",
]
