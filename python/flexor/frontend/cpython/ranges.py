"""Calls of the frameworks over evenly spaced points: ranges of numbers, differences, gradients and integrals along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, ListValue, TupleValue, Value, is_none
from flexor.frontend.cpython.writer import NotWritten, dtype_name, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Ranges:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    # ---------------------------------------------------------------------------------------------------- new tensors

    def permuted_zeros(self, size: Any, layout: Any, dtype: Any) -> Any:
        """torch.empty_permuted: sizes in the order of axes, memory in the order of the layout."""
        sizes, order = self.sizes(size), plain(layout)
        if sorted(order) != list(range(len(sizes))):
            raise NotWritten("a layout that does not name every axis")
        made = self.writer.op("zeros", shape=[sizes[axis] for axis in order], dtype=dtype)
        return self.writer.op("permute", made, axes=[list(order).index(axis) for axis in range(len(order))])

    def spaced(self, start: Any, end: Any, steps: Any, dtype: Any) -> Any:
        """torch.linspace: from both ends to the middle, so that both are met."""
        return self.to(self._spaced(start, end, steps, dtype), dtype)

    def spaced_powers(self, start: Any, end: Any, steps: Any, base: Any, dtype: Any) -> Any:
        """torch.logspace."""
        if "float" not in str(dtype_name(dtype)) and plain(steps) > 1:
            raise NotWritten("powers that are rounded to integers")
        base = base if isinstance(base, Dynamic) else Known(float(plain(base)))
        return self.to(self.writer.op("pow", base, self._spaced(start, end, steps, dtype)), dtype)

    def _spaced(self, start: Any, end: Any, steps: Any, dtype: Any) -> Any:
        steps, op, name = plain(steps), self.writer.op, dtype_name(dtype)
        if type(steps) is not int or steps < 0 or name in (None, "bool"):
            raise NotWritten("steps that torch refuses")
        is_integer = "float" not in str(name)
        first, last = (self._end(value, is_integer) for value in (start, end))
        if steps < 2:
            return op("expand", first, shape=[steps])
        place = op("cast", op("arange", start=Known(0), stop=Known(steps), step=Known(1), dtype="int64"), dtype="float64")
        step = op("div", op("sub", last, first), Known(float(steps - 1)))
        rising = op("add", first, op("mul", place, step))
        falling = op("sub", last, op("mul", op("sub", Known(float(steps - 1)), place), step))
        return op("where", op("lt", place, Known(float(steps // 2))), rising, falling)

    def _end(self, value: Any, is_integer: bool) -> Any:
        op = self.writer.op
        if self.is_tensor(value):
            made = self.to(self.ranked(value, 0), "float64")
        else:
            number: Any = value.object if isinstance(value, Known) else None
            if type(number) in (int, float) and (abs(number) >= 2**53 or not math.isfinite(number)):
                raise NotWritten("an end beyond what floats hold exactly")
            made = op("full", value, shape=[], dtype="float64")
        return op("trunc", made) if is_integer else made

    def bounds_of(self, given: Sequence[Any], start: Any, end: Any, step: Any) -> list[Any]:
        """The bounds of torch.arange, by place or by name; bools are numbers."""
        names = (["end"] if len(given) == 1 and is_none(end) else ["start", "end", "step"])[: len(given)]
        named = {name: value for name, value in (("start", start), ("end", end), ("step", step)) if not is_none(value)}
        if len(names) != len(given) or set(names) & set(named):
            raise NotWritten("bounds that do not fit")
        named.update(zip(names, given))
        if "end" not in named:
            raise NotWritten("bounds that do not fit")
        bounds = [named["end"]] if set(named) == {"end"} else [named.get("start", Known(0)), named["end"], named.get("step", Known(1))]
        return [Known(int(b.object)) if isinstance(b, Known) and type(b.object) is bool else b for b in bounds]

    def stepped_floats(self, bounds: Sequence[Any], dtype: Any) -> Any:
        """torch.arange of numbers that are known, floats among them."""
        numbers = [plain(bound) for bound in bounds]
        start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        if self.framework != "torch":
            raise NotWritten("a range of floats")
        name = dtype_name(self.float_dtype(dtype, None))
        if name == "int64" and all(type(n) in (int, float) and math.isfinite(n) for n in (start, stop, step)) and int(step):
            return self.stepped([Known(int(n)) for n in (start, stop, step)], dtype)
        if name not in ("float32", "float64") or not all(type(n) in (int, float) for n in (start, stop, step)):
            raise NotWritten("a range of floats")
        if not step or not all(map(math.isfinite, (start, stop, step))) or (stop - start) / step < 0:
            raise NotWritten("a range that torch refuses")
        count, op = math.ceil((stop - start) / step), self.writer.op
        place = op("cast", op("arange", start=Known(0), stop=Known(count), step=Known(1), dtype="int64"), dtype="float64")
        return self.to(op("add", op("mul", place, Known(float(step))), Known(float(start))), name)

    # ------------------------------------------------------------------------------------------------- along an axis

    def _neighbours(self, x: Any, axis: int) -> tuple[Any, Any]:
        return self.writer.op("slice", x, axis=axis, start=1), self.writer.op("slice", x, axis=axis, stop=-1)

    def difference(self, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> Any:
        """torch.diff; of bools where they change."""
        n, axis, op = plain(n), plain(dim), self.writer.op
        if type(n) is not int or n < 0 or plain(self.rank(x)) < 1:
            raise NotWritten("a difference of this order, or of a number")
        if n == 0:  # as it is, whatever stands around it
            return op("clone", x)
        parts = [part for part in (prepend, x, append) if self.is_tensor(part)]
        if any(plain(part) is not None for part in (prepend, append) if not self.is_tensor(part)):
            raise NotWritten("a part that is no tensor")
        if len(parts) > 1:
            if len({self.tensor(part).rank for part in parts}) != 1:
                raise NotWritten("parts of several ranks")
            self.alike(*parts)
            x = op("concat", *parts, axis=axis)
        kind = "ne" if self.dtype_of(x) == "bool" else "sub"
        for _ in range(n):
            x = op(kind, *self._neighbours(x, axis))
        return x

    def gradient(self, x: Any, spacing: Any, dim: Any, edge_order: Any) -> Any:
        """torch.gradient over points of one distance."""
        axes, order, op = plain(dim), plain(edge_order), self.writer.op
        rank = plain(self.rank(x))
        axes = list(range(rank)) if axes is None else [axes] if type(axes) is int else list(axes)
        if order not in (1, 2) or not rank or not all(-rank <= axis < rank for axis in axes):
            raise NotWritten("a gradient over other points")
        if len({axis % rank for axis in axes}) != len(axes):
            raise NotWritten("an axis named twice")
        if self.dtype_of(x) in ("bool", "uint8") or "16" in self.dtype_of(x):
            raise NotWritten("a gradient of this dtype")
        out = []
        for axis, h in zip(axes, self._distances(spacing, len(axes))):
            self.assume(self._compared("gt", self.shape_of(x)[axis], Known(order)), "more points than the order of the edges")
            around = op("sub", op("slice", x, axis=axis, start=2), op("slice", x, axis=axis, stop=-2))
            inner = op("div", op("div", around, h), Known(2.0))
            if order == 1:
                begin, end = self._weighed(x, axis, {1: 1.0, 0: -1.0}, h), self._weighed(x, axis, {-1: 1.0, -2: -1.0}, h)
            else:
                begin = self._weighed(x, axis, {0: -1.5, 1: 2.0, 2: -0.5}, h)
                end = self._weighed(x, axis, {-1: 1.5, -2: -2.0, -3: 0.5}, h)
            out.append(op("concat", begin, inner, end, axis=axis))
        return TupleValue(out)

    def _distances(self, spacing: Any, count: int) -> list[Value]:
        """One number for all axes, or one for each."""
        if isinstance(spacing, Known) and isinstance(spacing.object, (tuple, list)):
            given: list[Value] = [Known(each) for each in spacing.object]
        elif isinstance(spacing, (TupleValue, ListValue)):
            given = list(spacing.items)
        else:
            given = [Known(1) if isinstance(spacing, Known) and spacing.object is None else spacing] * count
        is_number = [each.is_scalar if isinstance(each, Dynamic) else isinstance(each, Known) and type(each.object) in (int, float) for each in given]
        if len(given) != count or not all(is_number):
            raise NotWritten("a gradient over other points")
        return given

    def _weighed(self, x: Any, axis: int, weights: dict[int, float], distance: Value) -> Any:
        """A weighed sum of the elements at some places along an axis, over a distance."""
        op = self.writer.op
        total: Any = None
        for place, weight in weights.items():
            at = op("narrow", x, axis=axis, start=place, length=1)
            part = at if weight == 1 else op("mul", at, Known(weight))
            total = part if total is None else op("add", total, part)
        return op("div", total, distance)

    def running_integral(self, y: Any, x: Any, dx: Any, dim: Any) -> Any:
        """torch.cumulative_trapezoid."""
        axis, op = plain(dim), self.writer.op
        later, earlier = self._neighbours(self.numbers(y), axis)
        pairs = op("add", later, earlier)
        if isinstance(x, Known) and x.object is None:
            width = 1 if plain(dx) is None else plain(dx)
            return op("mul", op("cumsum", pairs, axis=axis), Known(width / 2.0))
        if plain(dx) is not None:
            raise NotWritten("both points and a distance")
        if self.tensor(x).rank != self.tensor(y).rank:
            raise NotWritten("points of another rank")
        self.same_sizes(x, y)
        widths = op("sub", *self._neighbours(self.numbers(x, y), axis))
        return op("div", op("cumsum", op("mul", pairs, widths), axis=axis), Known(2.0))
