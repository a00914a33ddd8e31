"""Mistakes in uses of flexor.jit: type checkers tell of every line that ends in a mark. They are not run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import flexor

Array = npt.NDArray[np.float32]


@flexor.jit
def scaled(x: Array, k: int = 2) -> Array:
    return x * np.float32(k)


class Kinds:
    @flexor.jit
    def method(self, x: Array) -> Array:
        return x


def mistakes(x: Array, kinds: Kinds) -> None:
    scaled()  # wrong
    scaled(x, "3")  # wrong
    scaled(x, shift=1)  # wrong
    scaled.explain()  # wrong
    scaled.save(x)  # wrong
    kinds.method(3)  # wrong
    count: int = scaled(x)  # wrong
    flexor.jit(3)  # wrong
    flexor.jit(scaled, threds=2)  # wrong
    flexor.jit(scaled, weights=True)  # wrong
    flexor.jit(scaled, dims={"x": [1.5]})  # wrong
    print(count)
