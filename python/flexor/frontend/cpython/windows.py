"""Pooling, unfolding and padding of images, and their sizes changed: in ops of the registry, one axis after the other where that is the
same."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, Value, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer

MOST_PLACES = 64  # of a window, each of which is a slice of its own


class Windows:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    # ------------------------------------------------------------------------------------------------ numbers of the run

    def _of_sizes(self, op: str, x: Value, y: Value) -> Value:
        """Arithmetic on sizes."""
        if isinstance(x, Known) and isinstance(y, Known):
            folded = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "floor_div": int.__floordiv__}[op]
            return Known(folded(x.object, y.object))
        return self.writer.scalar(op, x, y)

    def _each(self, given: Any, count: int, otherwise: Sequence[int] | None = None) -> list[int]:
        """One integer, or one for each of `count` axes."""
        if otherwise is not None and (is_none(given) or plain(given) in ((), [])):
            return list(otherwise)
        numbers = [plain(n) for n in self.sizes(given)]
        numbers = numbers * count if len(numbers) == 1 else numbers
        if len(numbers) != count or not all(type(n) is int for n in numbers):
            raise NotWritten("numbers that do not fit")
        return numbers

    def _axes_behind(self, x: Any, count: int) -> list[int]:
        rank = plain(self.rank(x))
        if rank not in (count + 1, count + 2):
            raise NotWritten("an image of another rank")
        for axis in range(rank - count - 1, rank):  # eager takes batches of nothing alone
            self._assume_some(self._size(x, axis))
        return list(range(rank - count, rank))

    # ----------------------------------------------------------------------------------------------------------- windows

    def _window(self, x: Any, axis: int, size: int, stride: int, dilation: int = 1) -> list[Any]:
        """For each place of a window along an axis the elements there, of all windows."""
        if min(size, stride, dilation) < 1 or size > MOST_PLACES:
            raise NotWritten("a window of that size")
        reach = dilation * (size - 1)
        last = self._of_sizes("floor_div", self._of_sizes("sub", self._size(x, axis), Known(reach + 1)), Known(stride))
        self.assume(self._compared("ge", last, Known(0)), "an image that a window fits in", RuntimeError)
        stop = self._of_sizes("add", self._of_sizes("mul", last, Known(stride)), Known(1))
        places = range(0, reach + 1, dilation)
        return [
            self.writer.op("slice", x, axis=axis, start=Known(at), stop=self._of_sizes("add", stop, Known(at)), step=Known(stride)) for at in places
        ]

    def windows_beside(self, x: Any, dim: Any, size: Any, step: Any) -> Any:
        """Tensor.unfold where windows stand beside each other, a view; those that share elements are torch's."""
        length, rank, axis = plain(size), plain(self.rank(x)), plain(dim)
        if type(length) is not int or length < 1 or plain(step) != length or not -rank <= axis < rank:
            raise NotWritten("windows that share elements, or leave some out")
        axis %= rank
        count = self._of_sizes("floor_div", self._size(x, axis), Known(length))
        self.assume(self._compared("gt", count, Known(0)), "a window that fits", RuntimeError)
        sizes = self.shape_of(x)
        whole = self.writer.op("narrow", x, axis=axis, start=Known(0), length=self._of_sizes("mul", count, Known(length)))
        parts = self.writer.op("view", whole, shape=[*sizes[:axis], count, length, *sizes[axis + 1 :]])
        return self.writer.op("permute", parts, axes=[*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])

    def _size(self, x: Any, axis: int) -> Value:
        size = self.shape_of(x)[axis]
        return size if isinstance(size, (Known, Dynamic)) else Known(size)

    def _edged(self, x: Any, axes: list[int], amounts: list[int], value: float) -> Any:
        if not any(amounts):
            return x
        pads = [0] * plain(self.rank(x))
        for axis, amount in zip(axes, amounts):
            pads[axis] = amount
        return self.writer.op("pad", x, before=pads, after=pads, value=value)

    def max_pooled(self, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, count: int) -> Any:
        """The largest of every window; a NaN in it is."""
        axes = self._axes_behind(self.wide(x), count)
        sizes = self._each(kernel, count)
        strides, pads, dilations = self._each(stride, count, sizes), self._each(padding, count), self._each(dilation, count)
        if any(pad < 0 or 2 * pad > size for pad, size in zip(pads, sizes)):
            raise NotWritten("a padding that is refused")
        x = self._edged(x, axes, pads, float("-inf"))
        for axis, size, step, spread in zip(axes, sizes, strides, dilations):
            x = functools.reduce(lambda a, b: self.writer.op("maximum", a, b), self._window(x, axis, size, step, spread))
        return x

    def mean_pooled(self, x: Any, kernel: Any, stride: Any, padding: Any, counts_padding: Any, divisor: Any, count: int) -> Any:
        """The mean of every window, of all its places or of those that are in the image."""
        axes = self._axes_behind(self.wide(x), count)
        sizes = self._each(kernel, count)
        strides, pads = self._each(stride, count, sizes), self._each(padding, count)
        if any(pad < 0 or 2 * pad > size for pad, size in zip(pads, sizes)) or plain(counts_padding) not in (True, False):
            raise NotWritten("a padding that is refused")

        def totals(values: Any) -> Any:
            values = self._edged(values, axes, pads, 0.0)
            for axis, size, step in zip(axes, sizes, strides):
                values = functools.reduce(lambda a, b: self.writer.op("add", a, b), self._window(values, axis, size, step))
            return values

        places: Any = Known(float(functools.reduce(int.__mul__, sizes)))
        if not is_none(divisor):
            places = Known(float(plain(divisor)))
            if places.object <= 0:
                raise NotWritten("a divisor that is refused")
        elif any(pads) and not plain(counts_padding):
            places = totals(self.writer.op("ones_like", x))
        return self.writer.op("div", totals(x), places)

    def adaptively_pooled(self, x: Any, output_size: Any, count: int) -> Any:
        """The means of equal parts of the last axes."""
        axes = self._axes_behind(self.wide(x), count)
        wanted = self.sizes(output_size)
        wanted = wanted * count if len(wanted) == 1 else wanted
        if len(wanted) != count:
            raise NotWritten("sizes that do not fit")
        given = x
        for axis, parts in zip(axes, wanted):
            own = self._size(x, axis)
            if isinstance(parts, Dynamic) and isinstance(own, Dynamic) and str(parts.native) == str(own.native):
                continue
            parts = plain(parts)
            if parts == 1:
                x = self.writer.op("reduce_mean", x, axes=[axis], keepdim=True)
                continue
            if type(parts) is not int or parts < 1 or not isinstance(own, Known) or own.object % parts:
                raise NotWritten("parts of several sizes")
            sizes = self.shape_of(x)
            x = self.writer.op("reshape", x, shape=[*sizes[:axis], Known(parts), Known(own.object // parts), *sizes[axis + 1 :]])
            x = self.writer.op("reduce_mean", x, axes=[axis + 1])
        return self.writer.op("clone", x) if x is given else x

    def unfolded(self, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
        """F.unfold: the windows of an image as columns."""
        axes = self._axes_behind(self.wide(x), 2)
        sizes, strides, dilations, pads = (self._each(given, 2) for given in (kernel, stride, dilation, padding))
        if min(pads) < 0 or sizes[0] * sizes[1] > MOST_PLACES:
            raise NotWritten("a window of that size")
        batch = self.shape_of(x)[: axes[0] - 1]
        x = self._edged(x, axes, pads, 0.0)
        parts = [
            part
            for row in self._window(x, axes[0], sizes[0], strides[0], dilations[0])
            for part in self._window(row, axes[1], sizes[1], strides[1], dilations[1])
        ]
        stacked = self.writer.op("stack", *parts, axis=axes[0])  # [..., channels, place, row, column]
        found = self.shape_of(stacked)
        columns = self.multiplied(self._size(stacked, axes[0] + 1), self._size(stacked, axes[1] + 1))
        rows = self.multiplied(self._size(stacked, axes[0] - 1), Known(len(parts)))
        assert len(found) == len(batch) + 4
        return self.writer.op("reshape", stacked, shape=[*batch, rows, columns])

    # ----------------------------------------------------------------------------------------------------------- padding

    def padded_by(self, x: Any, pad: Any, mode: Any, value: Any) -> Any:
        """F.pad: with a number, with the edge, mirrored at it, or with the other end."""
        mode = plain(mode)
        if mode == "constant":
            return self.padded(x, pad, value)
        amounts, rank = [plain(n) for n in self.sizes(pad)], plain(self.rank(x))
        count = len(amounts) // 2
        is_refused = len(amounts) % 2 or rank not in (count + 1, count + 2) or count > 3
        if is_refused or not all(type(n) is int and n >= 0 for n in amounts) or not (is_none(value) or plain(value) == 0):
            raise NotWritten("a padding that does not fit")
        for size in self.shape_of(x)[1:]:
            self._assume_some(size if isinstance(size, (Known, Dynamic)) else Known(size))
        for at in range(count):
            before, after = amounts[2 * at : 2 * at + 2]
            if before or after:
                x = self._padded_axis(x, rank - 1 - at, before, after, mode)
        return x

    def padded_array(self, x: Any, amounts: Any, mode: Any, value: Any) -> Any:
        """np.pad: with a number, with the edge, mirrored at it or behind it, or with the other end."""
        rank, given, how = plain(self.rank(x)), plain(amounts), plain(mode)
        pairs = [[given, given]] if type(given) is int else [[each, each] if type(each) is int else list(each) for each in given]
        if pairs and type(given) is not int and all(type(each) is int for each in given):
            pairs = [list(given) if len(given) == 2 else [given[0]] * 2]
        pairs = pairs * rank if len(pairs) == 1 else pairs
        if rank < 1 or len(pairs) != rank or not all(len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair) for pair in pairs):
            raise NotWritten("a padding that does not fit")
        if how == "constant":
            number: Any = value.object if isinstance(value, Known) else None
            if type(number) not in ((int, float) if "float" in self.dtype_of(x) else (int,)) or abs(number) > 2**53:
                raise NotWritten("a padding of another kind")
            return self.writer.op("pad", x, before=[b for b, _ in pairs], after=[a for _, a in pairs], value=float(number))
        modes = {"edge": "replicate", "wrap": "circular", "reflect": "reflect", "symmetric": "symmetric"}
        if how not in modes or not is_none(value) and plain(value) != 0:
            raise NotWritten("another manner of padding")
        for axis, (before, after) in enumerate(pairs):
            if before or after:
                self._assume_some(self._size(x, axis))
                x = self._padded_axis(x, axis, before, after, modes[how], repeats=True)
        return x

    def _padded_axis(self, x: Any, axis: int, before: int, after: int, mode: str, repeats: bool = False) -> Any:
        """`repeats`: what is padded with may be longer than the axis."""
        op, size = self.writer.op, self._size(x, axis)
        last = self._of_sizes("sub", size, Known(1))
        if mode not in ("replicate", "circular") if repeats else mode != "replicate":
            most = last if mode == "reflect" else size
            self.assume(self._compared("ge", most, Known(max(before, after))), "a padding no longer than the image", RuntimeError)
        places = op("arange", start=Known(-before), stop=self._of_sizes("add", size, Known(after)), step=Known(1), dtype="int64")
        if mode == "reflect":
            places = op("abs", places)
            places = op("sub", last, op("abs", op("sub", last, places)))
        elif mode == "symmetric":
            twice = self._of_sizes("mul", size, Known(2))  # mirrored between places: in halves of them
            places = op("abs", op("add", op("mul", places, Known(2)), Known(1)))
            places = op("sub", twice, op("abs", op("sub", twice, places)))
            places = op("floor_divide", op("sub", places, Known(1)), Known(2))
        elif mode == "replicate":
            places = op("minimum", op("maximum", places, Known(0)), last)
        elif mode == "circular":
            places = op("remainder", places, size)
        else:
            raise NotWritten("another manner of padding")
        return op("take", x, places, axis=axis)

    # ------------------------------------------------------------------------------------------------------------- sizes

    def _ratios(self, x: Any, output_size: Any, factors: Sequence[Any]) -> list[tuple[int, Value, Value, Value]]:
        """(axis, size before, size after, their ratio) of the axes behind the first two. A factor that is given is the ratio."""
        axes = list(range(2, plain(self.rank(x))))
        given = [Known(None)] * len(axes) if all(map(is_none, factors)) else [*factors]
        if len(given) != len(axes):
            raise NotWritten("factors that do not fit")
        scales = [plain(factor) for factor in given]
        out: list[tuple[int, Value, Value, Value]] = []
        wanted = [None] * len(axes) if is_none(output_size) else self.sizes(output_size)
        if len(wanted) != len(axes) or not all(scale is None or (isinstance(scale, (int, float)) and scale > 0) for scale in scales):
            raise NotWritten("sizes that do not fit")
        for axis, size, scale in zip(axes, wanted, scales):
            before = self._size(x, axis)
            self._assume_some(before)
            if size is None:
                size = Known(int(before.object * scale)) if isinstance(before, Known) else self._times(before, scale)
            after = size if isinstance(size, (Known, Dynamic)) else Known(size)
            self._assume_some(after)
            out.append((axis, before, after, self._ratio(before, after) if scale is None else Known(1.0 / scale)))
        return out

    def _times(self, size: Value, scale: float) -> Value:
        scaled = self.writer.scalar("mul", self.writer.scalar("to_float", size), Known(float(scale)))
        return self.writer.scalar("to_int", scaled)

    def nearest(self, x: Any, output_size: Any, *factors: Any) -> Any:
        """Pixels repeated or left out. Ratios of sizes are of float32, as torch has them."""
        op = self.writer.op
        for axis, before, after, ratio in self._ratios(x, output_size, self._listed(factors)):
            places = op("cast", op("floor", op("mul", self._float_places(after), ratio)), dtype="int64")
            x = op("take", x, op("minimum", places, self._of_sizes("sub", before, Known(1))), axis=axis)
        return x

    def blended(self, x: Any, output_size: Any, aligned: Any, *factors: Any) -> Any:
        """Pixels blended linearly between those before and behind."""
        op = self.writer.op
        if self.dtype_of(x) not in ("float32", "float64") or plain(aligned) not in (True, False):
            raise NotWritten("halves, or a flag that is no bool")
        for axis, before, after, ratio in self._ratios(x, output_size, self._listed(factors)):
            last = self._of_sizes("sub", before, Known(1))
            if plain(aligned):
                if not (isinstance(before, Known) and isinstance(after, Known)):
                    raise NotWritten("aligned corners of sizes that only the run knows")
                ratio = Known((before.object - 1) / (after.object - 1) if after.object > 1 else 0.0)
                places = op("mul", self._float_places(after), ratio)
            else:
                half = op("add", self._float_places(after), Known(0.5))
                places = op("maximum", op("sub", op("mul", half, ratio), Known(0.5)), Known(0.0))
            places = op("cast", places, dtype=self.dtype_of(x)) if self.dtype_of(x) != "float32" else places
            low = op("floor", places)
            share = op("sub", places, low)
            for _ in range(plain(self.rank(x)) - 1 - axis):
                share = op("unsqueeze", share, axis=-1)
            low = op("minimum", op("cast", low, dtype="int64"), last)
            high = op("minimum", op("add", low, Known(1)), last)
            first, second = op("take", x, low, axis=axis), op("take", x, high, axis=axis)
            x = op("add", op("mul", first, op("sub", Known(1.0), share)), op("mul", second, share))
        return x

    def _listed(self, factors: Sequence[Any]) -> Sequence[Any]:
        """Factors given one by one, or as one sequence or None."""
        if len(factors) != 1 or is_none(factors[0]):
            return factors or (Known(None),)
        given = plain(factors[0])
        return [Known(part) for part in given] if isinstance(given, (list, tuple)) else factors
