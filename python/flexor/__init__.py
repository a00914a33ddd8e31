"""Flexor: programs over tensors whose shapes change, compiled once per family of shapes.

    import flexor
    module = flexor.load("model.flx")
    y = module(x)                      # NumPy or torch CPU tensors, without a copy
    print(flexor.stats()["hit_rate"])
"""

import logging

from flexor._decorator import disable, jit, op
from flexor._module import Module, from_text, load, registry
from flexor._options import FROZEN, Dim
from flexor.builder import Builder, FunctionBuilder, Symbol, Var, Weight
from flexor.errors import (
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
from flexor.frontend.cpython.typed import TensorType
from flexor.session import Session, dashboard, default_session, prometheus, stats

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
    "from_text",
    "jit",
    "load",
    "op",
    "prometheus",
    "registry",
    "stats",
]
