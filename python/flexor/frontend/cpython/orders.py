"""Calls of the frameworks that pick elements by their order: medians and other ranks, all from sorted lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Known, TupleValue
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Orders:
    """Methods of Lowering, which has the rest of what they call. Of equal elements any may be the one that is picked."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def _sorted(self, x: Any, axis: int) -> tuple[Any, Any]:
        values, places = self.writer.ops("sort", [self.tensor(x)], {"axis": axis, "descending": False})
        return values, places

    def sort_values(self, x: Any, axis: int) -> Any:
        """torch.msort."""
        return self._sorted(x, axis)[0]

    def kth_value(self, x: Any, k: Any, dim: Any, keepdim: Any) -> Any:
        """torch.kthvalue."""
        k, axis, op = plain(k), plain(dim), self.writer.op
        if type(k) is not int or k < 1 or (plain(self.rank(x)) < 1 and (k > 1 or axis not in (0, -1))):
            raise NotWritten("an element that is not there")
        if plain(self.rank(x)) < 1:
            given = [op("clone", x), op("zeros", shape=[], dtype="int64")]
            return TupleValue(given, sys.modules["torch"].return_types.kthvalue)
        found = []
        for part in self._sorted(x, axis):
            chosen = op("select", part, axis=axis, index=k - 1)
            found.append(op("clone", op("unsqueeze", chosen, axis=axis) if plain(keepdim) else chosen))
        return TupleValue(found, sys.modules["torch"].return_types.kthvalue)

    def median(self, x: Any, dim: Any, keepdim: Any, which: str) -> Any:
        """torch.median, of all or along an axis, and torch.nanmedian."""
        axis, op, rank = plain(dim), self.writer.op, plain(self.rank(x))
        if "bool" in self.dtype_of(x) or axis is None and plain(keepdim):
            raise NotWritten("a median of this form")
        if axis is None:
            return op("reshape", self._medians(op("reshape", x, shape=[-1]), 0, which)[0], shape=[])
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise NotWritten("an axis that is not there")
        found = self._medians(self.at_least(x, 1), axis, which)
        if not rank or not plain(keepdim):
            found = [op("squeeze", part, axes=[axis], strict=True) for part in found]
        return TupleValue(found, getattr(sys.modules["torch"].return_types, which))

    def _medians(self, x: Any, axis: int, which: str) -> list[Any]:
        """Values and places along an axis, which they keep. NaN stands behind everything in a sorted line."""
        op = self.writer.op
        size = self.shape_of(x)[axis]
        self.assume(self._compared("gt", size, Known(0)), "elements to choose among")
        given = {"axes": [axis], "keepdim": True}
        there = op("reduce_sum", op("logical_not", op("isnan", x)), **given)
        middle = op("floor_divide", op("clamp", op("sub", there, Known(1)), Known(0)), Known(2))
        if which == "median":  # the first NaN, if there is one
            middle = op("where", op("lt", there, size), there, middle)
        return [op("gather", part, middle, axis=axis) for part in self._sorted(x, axis)]

    def mode(self, x: Any, dim: Any, keepdim: Any) -> Any:
        """torch.mode: the least of the elements that stand most often in their line."""
        axis, op, rank = plain(dim), self.writer.op, plain(self.rank(x))
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise NotWritten("an axis that is not there")
        x = self.at_least(x, 1)
        axis %= self.tensor(x).rank
        size = self.shape_of(x)[axis]
        self.assume(self._compared("gt", size, Known(0)), "elements to choose among")
        found = self._sorted(x, axis)
        first = op("narrow", found[0], axis=axis, start=0, length=1)
        changes = op("ne", op("slice", found[0], axis=axis, start=1), op("slice", found[0], axis=axis, stop=-1))
        begins = op("concat", op("full_like", first, Known(True), dtype="bool"), changes, axis=axis)
        places = op("arange", start=Known(0), stop=size, step=Known(1), dtype="int64")
        for _ in range(self.tensor(x).rank - axis - 1):
            places = op("unsqueeze", places, axis=-1)
        since = self.writer.ops("cummax", [op("where", begins, places, Known(0))], {"axis": axis})[0]
        last = op("argmax", op("sub", places, since), axes=[axis], keepdim=True)  # of the first of the longest runs
        chosen = [op("gather", part, last, axis=axis) for part in found]
        if not rank or not plain(keepdim):
            chosen = [op("squeeze", part, axes=[axis], strict=True) for part in chosen]
        return TupleValue(chosen, sys.modules["torch"].return_types.mode)
