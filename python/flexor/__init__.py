"""Flexor: programs over tensors whose shapes change, compiled once per family of shapes.

    import flexor
    module = flexor.load("model.flx")
    y = module(x)                      # NumPy or torch CPU tensors, without a copy
    print(flexor.stats()["hit_rate"])
"""

import logging

from flexor._jit import FROZEN, Dim, disable, jit
from flexor._module import Module, from_text, load, registry
from flexor.builder import Builder, FunctionBuilder, Symbol, Var
from flexor.errors import (
    ArgumentError,
    DTypeError,
    FileError,
    FlexorError,
    InternalError,
    ModuleError,
    NotSupported,
    ResourceLimit,
    ShapeError,
    TextError,
)
from flexor.session import Session, dashboard, default_session, prometheus, stats

__version__ = "0.1.0"

logging.getLogger("flexor").addHandler(logging.NullHandler())

__all__ = [
    "FROZEN",
    "Dim",
    "disable",
    "jit",
    "ArgumentError",
    "Builder",
    "DTypeError",
    "FileError",
    "FlexorError",
    "FunctionBuilder",
    "InternalError",
    "Module",
    "ModuleError",
    "NotSupported",
    "ResourceLimit",
    "Session",
    "ShapeError",
    "Symbol",
    "TextError",
    "Var",
    "dashboard",
    "default_session",
    "from_text",
    "load",
    "prometheus",
    "registry",
    "stats",
]
