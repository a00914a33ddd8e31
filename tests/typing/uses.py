"""Typed uses of flexor.jit: type checkers accept every line, and find the types that are asserted. They are not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, assert_type

import flexor

Array = npt.NDArray[np.float32]


@flexor.jit
def scaled(x: Array, k: int = 2, *, shift: float = 0.0) -> Array:
    return (x * k + shift).astype(np.float32)


@flexor.jit(dims={"x": ["B", flexor.Dim("S", 1, 4096), flexor.FROZEN, None]}, weights="frozen", compile="async", fallback="raise")
def pooled(x: Array) -> tuple[Array, int]:
    return x.mean(1), len(x)


def functions(x: Array, t: Array) -> None:
    assert_type(scaled(x), Array)
    assert_type(scaled(x, 3, shift=1.5), Array)
    assert_type(pooled(t), tuple[Array, int])
    assert_type(scaled.explain(x, 3), str)
    assert_type(scaled.stats(), dict[str, Any])
    assert_type(scaled.module(x), flexor.Module)
    assert_type(pooled.save("pooled.flx", t), flexor.Module)
    pooled.repack()
    plain: Callable[[Array], Array] = scaled
    assert_type(plain(x), Array)
    assert_type(flexor.jit(len)([1]), int)


class Kinds:
    @flexor.jit
    def method(self, x: Array, k: int) -> Array:
        return x * np.float32(k)

    @staticmethod
    @flexor.jit
    def inner(x: Array) -> Array:
        return x

    @flexor.jit
    @staticmethod
    def outer(x: Array) -> Array:
        return x

    @classmethod
    @flexor.jit
    def made(cls, x: Array) -> Array:
        return x

    @property
    @flexor.jit
    def size(self) -> int:
        return 3


def methods(kinds: Kinds, x: Array) -> None:
    assert_type(kinds.method(x, 3), Array)
    assert_type(Kinds.method(kinds, x, 3), Array)
    assert_type(Kinds.method.stats(), dict[str, Any])
    assert_type(Kinds.inner(x), Array)
    assert_type(Kinds.outer(x), Array)
    assert_type(kinds.size, int)


class Module:
    """Has what tells a module of torch, whose own annotations take a type checker long."""

    def state_dict(self, *args: Any, prefix: str = "") -> dict[str, Any]:
        return {}

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> None:
        pass

    def eval(self) -> Self:
        return self


class Head(Module):
    width = 8

    def forward(self, x: Array) -> Array:
        return x


@flexor.jit
class Called:
    def __call__(self, x: Array) -> Array:
        return x


def modules(x: Array) -> None:
    head = flexor.jit(Head(), weights="frozen")
    assert_type(head, Head)
    assert_type(head.width, int)
    assert_type(head.eval(), Head)
    assert_type(Called(), Called)
    assert_type(Called()(x), Array)


@flexor.disable
def noted(x: Array) -> Array:
    return x


def disabled(x: Array) -> None:
    assert_type(noted(x), Array)
